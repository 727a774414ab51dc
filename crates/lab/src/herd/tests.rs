//! The processes of `herd` and `accept`.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};

use iotomy_sys::epoll::{Change, EpollEvent, epoll_create1, epoll_ctl};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;

use iotomy_host::Skip;
use iotomy_needs::wait::until;
use iotomy_needs::{Need, skip};

use super::clients::Clients;
use super::gate::{probe, waits};
use super::processes::{Herd, MemberError, Plan, Wait, bind_shared};

/// Returns a herd of `members` once they are ready, or the error.
fn herd(wait: Wait, members: usize) -> Result<(Herd, SocketAddr), MemberError> {
    let listener = match wait {
        // The socket is only bound: the members listen.
        Wait::ReusePort => None,
        _ => Some(TcpListener::bind("127.0.0.1:0").unwrap()),
    };
    let bound = bind_shared().unwrap();
    let address = match &listener {
        Some(listener) => listener.local_addr().unwrap(),
        None => bound.1,
    };
    if let Some(listener) = &listener {
        listener.set_nonblocking(wait != Wait::Accept).unwrap();
    }
    let epoll = epoll_create1().unwrap();
    if let Some(listener) = &listener {
        let events = (EventFlags::IN | EventFlags::ONESHOT).bits();
        let event = EpollEvent { events, data: 0 };
        epoll_ctl(epoll.as_fd(), Change::Add, listener.as_raw_fd(), event).unwrap();
    }
    let plan = Plan {
        listener: listener.as_ref().map_or(bound.0.as_fd(), |listener| listener.as_fd()),
        address,
        epoll: (wait == Wait::EpollOneshot).then_some(epoll.as_fd()),
        wait,
        members,
        duplicates: if matches!(wait, Wait::ReusePort | Wait::Waiter(_)) { 0 } else { 3 },
    };
    let herd = Herd::start(&plan)?;
    for _ in 0..45_000 {
        if herd.is_ready()? {
            return Ok((herd, address));
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    panic!("waited in vain until the herd was ready");
}

#[test]
fn every_way_to_wait_serves_every_connection_once() {
    for name in waits() {
        let wait = match probe(name) {
            Ok(wait) => wait,
            Err(Skip(reason)) => {
                let is_ring = reason.contains("io_uring");
                let need = if is_ring { Need::IoUring } else { Need::Machine };
                skip(need, &format!("{name}: {reason}"));
                continue;
            }
        };
        let (herd, address) = herd(wait, 5).unwrap_or_else(|e| panic!("{wait:?}: {e:?}"));
        for connection in 1..=11u64 {
            let mut stream = TcpStream::connect(address).unwrap();
            // Only a guard against a hanging test.
            stream.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
            // The connection ends when the process that accepted it closes it.
            let end = io::Read::read(&mut stream, &mut [0]);
            assert_eq!(end.unwrap_or_else(|e| panic!("{wait:?}: {e}, {:?}", herd.check())), 0);
            let accepts = || herd.counts().iter().map(|one| one.accepts).sum::<u64>();
            until("it has been counted", || accepts() == connection);
        }
        herd.check().unwrap();
        let wakes: u64 = herd.counts().iter().map(|one| one.wakes).sum();
        assert!(wakes >= 10, "{wait:?}: {wakes}");
    }
}

#[test]
fn a_herd_that_is_dropped_is_gone() {
    let (herd, _) = herd(Wait::Epoll, 20).unwrap();
    let pids = herd.pids().to_vec();
    assert_eq!(pids.len(), 20);
    drop(herd);
    for pid in pids {
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }
}

#[test]
fn what_a_member_could_not_do_is_told() {
    let file = std::fs::File::open("/dev/null").unwrap();
    let plan = Plan {
        listener: file.as_fd(),
        address: "127.0.0.1:1".parse().unwrap(),
        epoll: None,
        wait: Wait::Accept,
        members: 2,
        duplicates: 0,
    };
    let herd = Herd::start(&plan).unwrap();
    until("a member has failed", || herd.check().is_err());
    let error = herd.is_ready().unwrap_err();
    assert_eq!(
        (error.call, error.source.raw_os_error()),
        ("accept4", Some(Errno::NOTSOCK.raw_os_error()))
    );
}

#[test]
fn clients_tell_how_long_each_connection_took() {
    let (herd, address) = herd(Wait::Poll, 2).unwrap();
    let mut clients = Clients::start(address, 3, 7).unwrap();
    until("the clients are ready", || clients.is_ready());
    clients.go();
    until("the clients are over", || clients.is_over());
    let served = clients.end().unwrap();
    assert_eq!(served.times_ns.len(), 21);
    assert!(served.times_ns.iter().all(|time| (1..=served.wall_ns).contains(time)), "{served:?}");
    until("all are counted", || herd.counts().iter().map(|one| one.accepts).sum::<u64>() == 21);
}

#[test]
fn clients_that_find_nobody_say_so() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut clients = Clients::start(address, 1, 2).unwrap();
    clients.go();
    let error = clients.end().unwrap_err();
    assert_eq!(error.source.raw_os_error(), Some(Errno::CONNREFUSED.raw_os_error()));
}
