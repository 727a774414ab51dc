//! Servers that answer exactly so many requests of known think time: by epoll and calls, and by io_uring, in each
//! way that it has. The client is a thread of the same process.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::thread;
use std::time::Duration;

use io_uring::{IoUring, cqueue, opcode, squeue, types};
use rustix::event::epoll;

use crate::ring::buffer;

/// Bytes of a request, and of an answer.
const ASK: usize = 100;
const ANSWER: usize = 200;

/// Between a request and its answer; the tests know it, too.
const THINK: Duration = Duration::from_millis(2);

const ACCEPTED: u64 = 1;
const RECEIVED: u64 = 2;
const SENT: u64 = 3;
const PROVIDED: u64 = 4;

/// The buffers of multishot receives: more than there are requests.
const GROUP: u16 = 7;
const BUFFERS: u16 = 64;

/// Answers `count` requests, by a way.
pub(crate) fn run(way: &str, count: u64) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    let is_pair = way == "two";
    let client =
        thread::spawn(
            move || if is_pair { asks_two(address, count) } else { asks(address, count) },
        );
    match way {
        "calls" => by_calls(&listener, count),
        "ring" => one_by_one(&listener, count, squeue::Flags::empty()),
        "async" => one_by_one(&listener, count, squeue::Flags::ASYNC),
        "silent" => one_by_one(&listener, count, squeue::Flags::SKIP_SUCCESS),
        "multishot" => multishot(&listener, count),
        "linked" => linked(&listener, count),
        "fixed" => fixed(&listener, count),
        "zero-copy" => zero_copy(&listener, count),
        "messages" => messages(&listener, count),
        "sqpoll" => by_sq_thread(&listener, count),
        "two" => two(&listener, count),
        "late" => late(&listener, count),
        _ => panic!("no such way: {way}"),
    }
    client.join().expect("all were answered");
}

fn ask(to: &mut TcpStream) {
    to.write_all(&[1; ASK]).expect("it is sent");
}

fn answered(by: &mut TcpStream) {
    by.read_exact(&mut [0; ANSWER]).expect("there is an answer");
}

fn asks(address: SocketAddr, count: u64) {
    let mut stream = TcpStream::connect(address).expect("a connection");
    for _ in 0..count {
        ask(&mut stream);
        answered(&mut stream);
    }
}

/// Half of them over each connection, side by side.
fn asks_two(address: SocketAddr, count: u64) {
    let mut streams = [(); 2].map(|()| TcpStream::connect(address).expect("a connection"));
    for _ in 0..count {
        streams.iter_mut().for_each(ask);
        streams.iter_mut().for_each(answered);
    }
}

/// A ring, and the completions that nobody has asked for yet.
struct Server {
    ring: IoUring,
    come: VecDeque<cqueue::Entry>,
}

impl Server {
    fn new() -> Self {
        Self::of(IoUring::new(64))
    }

    fn of(ring: std::io::Result<IoUring>) -> Self {
        Self { ring: ring.expect("a ring"), come: VecDeque::new() }
    }

    fn push(&mut self, name: u64, request: squeue::Entry) {
        // SAFETY: the buffers of the requests are never freed.
        unsafe { self.ring.submission().push(&request.user_data(name)) }.expect("room for it");
    }

    /// Submits, and waits for a completion of this name.
    fn completed(&mut self, name: u64) -> cqueue::Entry {
        loop {
            if let Some(at) = self.come.iter().position(|one| one.user_data() == name) {
                return self.come.remove(at).expect("it is there");
            }
            self.ring.submit_and_wait(1).expect("a completion");
            let come = self.ring.completion().filter(|one| !cqueue::notif(one.flags()));
            self.come.extend(come);
        }
    }

    fn result(&mut self, name: u64, request: squeue::Entry) -> i32 {
        self.push(name, request);
        self.completed(name).result()
    }

    fn accept(&mut self, listener: &TcpListener, flags: squeue::Flags) -> OwnedFd {
        let nobody = std::ptr::null_mut();
        let accept = opcode::Accept::new(types::Fd(listener.as_raw_fd()), nobody, nobody.cast());
        owned(self.result(ACCEPTED, accept.build().flags(flags)))
    }

    fn receive(&mut self, from: &OwnedFd, flags: squeue::Flags) {
        assert_eq!(self.result(RECEIVED, receive(from).flags(flags)), ASK as i32);
    }

    fn send(&mut self, to: &OwnedFd, flags: squeue::Flags) {
        assert_eq!(self.result(SENT, send(to).flags(flags)), ANSWER as i32);
    }
}

fn owned(accepted: i32) -> OwnedFd {
    assert!(accepted >= 0, "{accepted}");
    // SAFETY: the request has just made it.
    unsafe { OwnedFd::from_raw_fd(accepted) }
}

fn receive(from: &OwnedFd) -> squeue::Entry {
    let at = types::Fd(from.as_raw_fd());
    opcode::Recv::new(at, buffer().as_mut_ptr(), ASK as u32).build()
}

fn send(to: &OwnedFd) -> squeue::Entry {
    let at = types::Fd(to.as_raw_fd());
    opcode::Send::new(at, buffer().as_ptr(), ANSWER as u32).build()
}

fn by_calls(listener: &TcpListener, count: u64) {
    let (mut stream, _) = listener.accept().expect("a connection");
    let events = epoll::create(epoll::CreateFlags::CLOEXEC).expect("an epoll");
    let data = epoll::EventData::new_u64(0);
    epoll::add(&events, &stream, data, epoll::EventFlags::IN).expect("it is watched");
    for _ in 0..count {
        let mut ready = Vec::with_capacity(1);
        epoll::wait(&events, rustix::buffer::spare_capacity(&mut ready), None).expect("a request");
        stream.read_exact(&mut [0; ASK]).expect("it is there");
        thread::sleep(THINK);
        stream.write_all(&[2; ANSWER]).expect("it is sent");
    }
}

fn one_by_one(listener: &TcpListener, count: u64, flags: squeue::Flags) {
    let mut server = Server::new();
    let is_silent = flags.contains(squeue::Flags::SKIP_SUCCESS);
    let others = if is_silent { squeue::Flags::empty() } else { flags };
    let stream = server.accept(listener, others);
    for _ in 0..count {
        server.receive(&stream, others);
        thread::sleep(THINK);
        if is_silent {
            server.push(SENT, send(&stream).flags(flags));
        } else {
            server.send(&stream, flags);
        }
    }
    server.ring.submit().expect("the last is sent");
}

/// One accept and one receive for all of them.
fn multishot(listener: &TcpListener, count: u64) {
    let mut server = Server::new();
    let room = Box::leak(Box::new([0u8; BUFFERS as usize * 4096]));
    let buffers = opcode::ProvideBuffers::new(room.as_mut_ptr(), 4096, BUFFERS, GROUP, 0);
    assert!(server.result(PROVIDED, buffers.build()) >= 0);
    server.push(ACCEPTED, opcode::AcceptMulti::new(types::Fd(listener.as_raw_fd())).build());
    let stream = owned(server.completed(ACCEPTED).result());
    let at = types::Fd(stream.as_raw_fd());
    server.push(RECEIVED, opcode::RecvMulti::new(at, GROUP).build());
    for _ in 0..count {
        assert_eq!(server.completed(RECEIVED).result(), ASK as i32);
        thread::sleep(THINK);
        server.send(&stream, squeue::Flags::empty());
    }
}

/// Each answer is linked to the receive of its request, and both are submitted at once.
fn linked(listener: &TcpListener, count: u64) {
    let mut server = Server::new();
    let stream = server.accept(listener, squeue::Flags::empty());
    for _ in 0..count {
        server.push(RECEIVED, receive(&stream).flags(squeue::Flags::IO_LINK));
        server.push(SENT, send(&stream));
        assert_eq!(server.completed(SENT).result(), ANSWER as i32);
        assert_eq!(server.completed(RECEIVED).result(), ASK as i32);
    }
}

/// A registered file, by read and write.
fn fixed(listener: &TcpListener, count: u64) {
    let mut server = Server::new();
    let stream = server.accept(listener, squeue::Flags::empty());
    server.ring.submitter().register_files(&[-1, stream.as_raw_fd()]).expect("it is registered");
    let at = types::Fixed(1);
    for _ in 0..count {
        let read = opcode::Read::new(at, buffer().as_mut_ptr(), ASK as u32);
        assert_eq!(server.result(RECEIVED, read.build()), ASK as i32);
        thread::sleep(THINK);
        let write = opcode::Write::new(at, buffer().as_ptr(), ANSWER as u32);
        assert_eq!(server.result(SENT, write.build()), ANSWER as i32);
    }
}

fn zero_copy(listener: &TcpListener, count: u64) {
    let mut server = Server::new();
    let stream = server.accept(listener, squeue::Flags::empty());
    let at = types::Fd(stream.as_raw_fd());
    for _ in 0..count {
        server.receive(&stream, squeue::Flags::empty());
        thread::sleep(THINK);
        let send = opcode::SendZc::new(at, buffer().as_ptr(), ANSWER as u32);
        assert_eq!(server.result(SENT, send.build()), ANSWER as i32);
    }
}

/// A message of these bytes; it is never freed.
fn message(bytes: usize) -> *mut libc::msghdr {
    let iov_base = buffer().as_mut_ptr().cast();
    let vector = Box::leak(Box::new(libc::iovec { iov_base, iov_len: bytes }));
    // SAFETY: zeroes are a message of nothing, to nobody.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = vector;
    message.msg_iovlen = 1;
    Box::leak(Box::new(message))
}

/// By recvmsg, after a look at what is there, and sendmsg.
fn messages(listener: &TcpListener, count: u64) {
    let mut server = Server::new();
    let stream = server.accept(listener, squeue::Flags::empty());
    let at = types::Fd(stream.as_raw_fd());
    for _ in 0..count {
        let look = opcode::RecvMsg::new(at, message(ASK)).flags(libc::MSG_PEEK as u32);
        assert_eq!(server.result(RECEIVED, look.build()), ASK as i32);
        let receive = opcode::RecvMsg::new(at, message(ASK));
        assert_eq!(server.result(RECEIVED, receive.build()), ASK as i32);
        thread::sleep(THINK);
        let send = opcode::SendMsg::new(at, message(ANSWER));
        assert_eq!(server.result(SENT, send.build()), ANSWER as i32);
    }
}

fn by_sq_thread(listener: &TcpListener, count: u64) {
    let mut server = Server::of(IoUring::builder().setup_sqpoll(1000).build(64));
    let stream = server.accept(listener, squeue::Flags::empty());
    for _ in 0..count {
        server.receive(&stream, squeue::Flags::empty());
        thread::sleep(THINK);
        server.send(&stream, squeue::Flags::empty());
    }
}

/// Two connections: requests come in one order, and are answered in the other.
fn two(listener: &TcpListener, count: u64) {
    let mut server = Server::new();
    let none = squeue::Flags::empty();
    let streams = [(); 2].map(|()| server.accept(listener, none));
    for _ in 0..count {
        streams.iter().for_each(|from| server.push(RECEIVED, receive(from)));
        for _ in &streams {
            assert_eq!(server.completed(RECEIVED).result(), ASK as i32);
        }
        thread::sleep(THINK);
        streams.iter().rev().for_each(|to| server.send(to, none));
    }
}

/// Sends that a worker makes, of a ring that is looked at only when the next request has been received by another
/// ring: their completions come behind that of the receive.
fn late(listener: &TcpListener, count: u64) {
    let mut receiver = Server::new();
    let deferred = IoUring::builder().setup_single_issuer().setup_defer_taskrun().build(64);
    let mut sender = Server::of(deferred);
    let stream = receiver.accept(listener, squeue::Flags::empty());
    for nth in 0..count {
        receiver.receive(&stream, squeue::Flags::empty());
        if nth > 0 {
            assert_eq!(sender.completed(SENT).result(), ANSWER as i32);
        }
        thread::sleep(THINK);
        sender.push(SENT, send(&stream).flags(squeue::Flags::ASYNC));
        sender.ring.submit().expect("it is taken");
    }
    assert_eq!(sender.completed(SENT).result(), ANSWER as i32);
}
