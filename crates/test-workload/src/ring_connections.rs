//! Connections that are made, used and refused by requests of io_uring.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use io_uring::{opcode, squeue, types};

use crate::ring::{Ring, buffer};

/// An address as the kernel takes it; it is never freed.
fn address(of: &TcpListener) -> &'static libc::sockaddr_in {
    let SocketAddr::V4(at) = of.local_addr().expect("its address") else { panic!("of IPv4") };
    Box::leak(Box::new(libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: at.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(at.ip().octets()) },
        sin_zero: [0; 8],
    }))
}

fn socket() -> OwnedFd {
    let socket = rustix::net::socket(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::STREAM,
        None,
    );
    socket.expect("a socket")
}

fn connect(socket: &OwnedFd, to: &'static libc::sockaddr_in) -> squeue::Entry {
    let length = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    let to = std::ptr::from_ref(to).cast();
    opcode::Connect::new(types::Fd(socket.as_raw_fd()), to, length).build()
}

/// Connections with itself, one after another, and 100 bytes through each.
pub(crate) fn run(count: u64, flags: squeue::Flags, is_multishot: bool) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = types::Fd(listener.as_raw_fd());
    let to = address(&listener);
    let (mut ring, mut acceptor) = (Ring::new(), Ring::new());
    if is_multishot {
        acceptor.push(&opcode::AcceptMulti::new(at).build().user_data(99));
        acceptor.submit();
    }
    for nth in 1..=count {
        let ours = socket();
        ring.each(1, &connect(&ours, to).flags(flags));
        if !is_multishot {
            let (nobody, nothing) = (std::ptr::null_mut(), std::ptr::null_mut());
            acceptor.push(&opcode::Accept::new(at, nobody, nothing).build().flags(flags));
        }
        // SAFETY: the request has just made it.
        let theirs = unsafe { OwnedFd::from_raw_fd(acceptor.reap(nth)) };
        let send = opcode::Send::new(types::Fd(ours.as_raw_fd()), buffer().as_ptr(), 100);
        ring.each(1, &send.build().flags(flags));
        let receive = opcode::Recv::new(types::Fd(theirs.as_raw_fd()), buffer().as_mut_ptr(), 100);
        ring.each(1, &receive.build().flags(flags));
    }
    if is_multishot {
        acceptor.push(&opcode::AsyncCancel::new(99).build());
        acceptor.reap(count + 2);
    }
}

/// Connects to a port at which nobody listens.
pub(crate) fn refused(count: u64) {
    let taken = socket();
    rustix::net::bind(&taken, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let taken = TcpListener::from(taken);
    let to = address(&taken);
    let mut ring = Ring::new();
    for _ in 0..count {
        let ours = socket();
        ring.each(1, &connect(&ours, to));
    }
}
