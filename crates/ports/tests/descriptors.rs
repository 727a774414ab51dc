//! Descriptors in a port.

use std::fs::File;
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use iotomy_ports::{Closes, Errno, Event, Port, Source};
use rustix::event::PollFlags;

const NOW: Option<Duration> = Some(Duration::ZERO);
const BOTH: [Closes; 2] = [Closes::Checked, Closes::Reported];

fn port() -> Port {
    Port::new(Closes::Checked).unwrap()
}

/// A pipe with a byte in it.
fn filled() -> (PipeReader, PipeWriter) {
    let (out, mut into) = pipe().unwrap();
    into.write_all(b"x").unwrap();
    (out, into)
}

fn nothing(port: &Port) {
    assert_eq!(port.get(NOW), Err(Errno::TIME));
}

#[test]
fn a_descriptor_that_is_ready_sends_its_event_at_once() {
    for closes in BOTH {
        let port = Port::new(closes).unwrap();
        let (out, _into) = filled();
        port.associate(out.as_raw_fd(), PollFlags::IN, 42).unwrap();
        let event = port.get(NOW).unwrap();
        assert_eq!(event.source, Source::Fd);
        assert_eq!(event.events, i32::from(PollFlags::IN.bits()));
        assert_eq!((event.object, event.user), (out.as_raw_fd() as usize, 42));
    }
}

#[test]
fn a_descriptor_that_becomes_ready_sends_one_event() {
    let port = port();
    let (out, mut into) = pipe().unwrap();
    port.associate(out.as_raw_fd(), PollFlags::IN, 1).unwrap();
    nothing(&port);
    into.write_all(b"ab").unwrap();
    into.write_all(b"cd").unwrap();
    assert_eq!(port.queued(), 1);
    assert_eq!(port.get_many(5, 1, NOW).unwrap().len(), 1);
    nothing(&port);
}

#[test]
fn retrieval_ends_the_association() {
    let port = port();
    let (out, mut into) = filled();
    port.associate(out.as_raw_fd(), PollFlags::IN, 1).unwrap();
    port.get(NOW).unwrap();
    into.write_all(b"more").unwrap();
    nothing(&port);
    assert_eq!(port.dissociate(out.as_raw_fd()), Err(Errno::NOENT));
    // The level is looked at again with the next association.
    port.associate(out.as_raw_fd(), PollFlags::IN, 2).unwrap();
    assert_eq!(port.get(NOW).unwrap().user, 2);
}

#[test]
fn re_association_updates_events_and_user() {
    let port = port();
    let (left, mut right) = UnixStream::pair().unwrap();
    let fd = left.as_raw_fd();
    port.associate(fd, PollFlags::IN, 1).unwrap();
    port.associate(fd, PollFlags::IN, 2).unwrap();
    right.write_all(b"x").unwrap();
    assert_eq!(port.get(NOW).unwrap().user, 2);
    nothing(&port);
    port.associate(fd, PollFlags::IN, 3).unwrap();
    port.associate(fd, PollFlags::OUT, 4).unwrap();
    let event = port.get(NOW).unwrap();
    assert_eq!((event.user, event.events), (4, i32::from(PollFlags::OUT.bits())));
}

#[test]
fn re_association_makes_an_event_void_that_was_not_retrieved() {
    let port = port();
    let (mut left, mut right) = UnixStream::pair().unwrap();
    let fd = left.as_raw_fd();
    right.write_all(b"x").unwrap();
    port.associate(fd, PollFlags::IN, 1).unwrap();
    assert_eq!(port.queued(), 1);
    left.read_exact(&mut [0]).unwrap();
    port.associate(fd, PollFlags::IN, 2).unwrap();
    assert_eq!(port.queued(), 0);
    nothing(&port);
    right.write_all(b"y").unwrap();
    assert_eq!(port.get(NOW).unwrap().user, 2);
}

#[test]
fn a_queued_event_is_delivered_although_the_descriptor_is_no_longer_ready() {
    let port = port();
    let (mut out, _into) = filled();
    port.associate(out.as_raw_fd(), PollFlags::IN, 1).unwrap();
    assert_eq!(port.queued(), 1);
    out.read_exact(&mut [0]).unwrap();
    assert_eq!(port.get(NOW).unwrap().events, 1);
}

#[test]
fn dissociation_ends_the_association_and_its_event() {
    let port = port();
    let (out, mut into) = pipe().unwrap();
    let fd = out.as_raw_fd();
    port.associate(fd, PollFlags::IN, 1).unwrap();
    port.dissociate(fd).unwrap();
    into.write_all(b"x").unwrap();
    nothing(&port);
    port.associate(fd, PollFlags::IN, 1).unwrap();
    assert_eq!(port.queued(), 1);
    port.dissociate(fd).unwrap();
    assert_eq!(port.queued(), 0);
    nothing(&port);
    assert_eq!(port.dissociate(fd), Err(Errno::NOENT));
}

#[test]
fn what_is_no_open_descriptor_is_ebadfd() {
    let port = port();
    for fd in [-1, i32::MIN, 1_000_000, i32::MAX] {
        assert_eq!(port.associate(fd, PollFlags::IN, 0), Err(Errno::BADFD), "{fd}");
        assert_eq!(port.dissociate(fd), Err(Errno::BADFD), "{fd}");
    }
    let (out, _into) = pipe().unwrap();
    assert_eq!(port.dissociate(out.as_raw_fd()), Err(Errno::NOENT));
    nothing(&port);
}

#[test]
fn events_of_zero_report_hang_ups_and_errors_alone() {
    let port = port();
    let (out, mut into) = pipe().unwrap();
    port.associate(out.as_raw_fd(), PollFlags::empty(), 1).unwrap();
    into.write_all(b"x").unwrap();
    nothing(&port);
    drop(into);
    assert_eq!(port.get(NOW).unwrap().events, i32::from(PollFlags::HUP.bits()));
    let (out, into) = pipe().unwrap();
    port.associate(into.as_raw_fd(), PollFlags::empty(), 1).unwrap();
    nothing(&port);
    drop(out);
    assert_eq!(port.get(NOW).unwrap().events, i32::from(PollFlags::ERR.bits()));
}

#[test]
fn the_events_are_those_of_poll() {
    let port = port();
    let (left, mut right) = UnixStream::pair().unwrap();
    right.write_all(b"x").unwrap();
    let asked = PollFlags::IN | PollFlags::RDNORM | PollFlags::OUT | PollFlags::WRNORM;
    port.associate(left.as_raw_fd(), asked, 1).unwrap();
    assert_eq!(port.get(NOW).unwrap().events, i32::from(asked.bits()));
    drop(right);
    port.associate(left.as_raw_fd(), PollFlags::IN, 1).unwrap();
    let hung_up = PollFlags::IN | PollFlags::HUP;
    assert_eq!(port.get(NOW).unwrap().events, i32::from(hung_up.bits()));
}

#[test]
fn regular_files_and_directories_are_always_ready() {
    let port = port();
    let file = tempfile::tempfile().unwrap();
    let asked = PollFlags::IN | PollFlags::OUT | PollFlags::PRI;
    for closes_of in BOTH {
        let port = Port::new(closes_of).unwrap();
        port.associate(file.as_raw_fd(), asked, 1).unwrap();
        assert_eq!(
            port.get(NOW).unwrap().events,
            i32::from((PollFlags::IN | PollFlags::OUT).bits())
        );
        nothing(&port);
        assert_eq!(port.dissociate(file.as_raw_fd()), Err(Errno::NOENT));
        port.associate(file.as_raw_fd(), PollFlags::IN, 2).unwrap();
        assert_eq!(port.get(NOW).unwrap().user, 2);
    }
    let folder = File::open("/").unwrap();
    port.associate(folder.as_raw_fd(), PollFlags::RDNORM, 3).unwrap();
    assert_eq!(port.get(NOW).unwrap().user, 3);
    port.associate(file.as_raw_fd(), PollFlags::PRI, 4).unwrap();
    nothing(&port);
    port.dissociate(file.as_raw_fd()).unwrap();
    port.associate(file.as_raw_fd(), PollFlags::IN, 4).unwrap();
    port.dissociate(file.as_raw_fd()).unwrap();
    nothing(&port);
}

/// Closes a descriptor as a caller does who said how closes are learnt of.
fn close(port: &Port, fd: OwnedFd) {
    if port_is_told(port) {
        port.forget(fd.as_raw_fd());
    }
    drop(fd);
}

fn port_is_told(port: &Port) -> bool {
    format!("{port:?}").contains("Reported")
}

#[test]
fn a_closed_descriptor_is_dissociated_although_a_duplicate_is_open() {
    for closes in BOTH {
        let port = Port::new(closes).unwrap();
        let (out, mut into) = pipe().unwrap();
        let duplicate = out.try_clone().unwrap();
        port.associate(out.as_raw_fd(), PollFlags::IN, 1).unwrap();
        close(&port, out.into());
        into.write_all(b"x").unwrap();
        nothing(&port);
        drop(duplicate);
    }
}

#[test]
fn the_event_of_a_descriptor_that_is_closed_is_void() {
    for closes in BOTH {
        let port = Port::new(closes).unwrap();
        let (out, _into) = filled();
        let duplicate = out.try_clone().unwrap();
        port.associate(out.as_raw_fd(), PollFlags::IN, 1).unwrap();
        assert_eq!(port.queued(), 1);
        close(&port, out.into());
        nothing(&port);
        drop(duplicate);
    }
}

#[test]
fn a_number_that_is_closed_and_open_again_is_another_descriptor() {
    for closes in BOTH {
        let port = Port::new(closes).unwrap();
        let (first, mut into_first) = pipe().unwrap();
        let fd = first.as_raw_fd();
        let duplicate = first.try_clone().unwrap();
        let (second, mut into_second) = pipe().unwrap();
        port.associate(fd, PollFlags::IN, 1).unwrap();
        if closes == Closes::Reported {
            port.forget(fd);
        }
        // In one step, so that no other test gets the number.
        let mut first: OwnedFd = first.into();
        rustix::io::dup2(&second, &mut first).unwrap();
        into_first.write_all(b"x").unwrap();
        nothing(&port);
        port.associate(fd, PollFlags::IN, 2).unwrap();
        nothing(&port);
        into_second.write_all(b"y").unwrap();
        assert_eq!(port.get(NOW).unwrap().user, 2);
        nothing(&port);
        drop(duplicate);
    }
}

#[test]
fn a_duplicate_is_a_descriptor_of_its_own() {
    let port = port();
    let (out, mut into) = pipe().unwrap();
    let duplicate = out.try_clone().unwrap();
    port.associate(out.as_raw_fd(), PollFlags::IN, 1).unwrap();
    port.associate(duplicate.as_raw_fd(), PollFlags::IN, 2).unwrap();
    into.write_all(b"x").unwrap();
    let mut users: Vec<_> = port.get_many(4, 2, NOW).unwrap().iter().map(|e| e.user).collect();
    users.sort_unstable();
    assert_eq!(users, [1, 2]);
}

#[test]
fn a_descriptor_in_two_ports_sends_an_event_to_each() {
    let ports = [port(), port()];
    let (out, mut into) = pipe().unwrap();
    for (user, port) in ports.iter().enumerate() {
        port.associate(out.as_raw_fd(), PollFlags::IN, user).unwrap();
    }
    into.write_all(b"x").unwrap();
    for (user, port) in ports.iter().enumerate() {
        assert_eq!(port.get(NOW).unwrap().user, user);
    }
}

#[test]
fn many_descriptors_are_retrieved_together() {
    for wanted in [1, 300] {
        let port = port();
        let pipes: Vec<_> = (0..300).map(|_| filled()).collect();
        for (user, (out, _)) in pipes.iter().enumerate() {
            port.associate(out.as_raw_fd(), PollFlags::IN, user).unwrap();
        }
        let mut users: Vec<_> =
            port.get_many(1000, wanted, NOW).unwrap().iter().map(|event| event.user).collect();
        users.sort_unstable();
        assert!(users.into_iter().eq(0..300));
        nothing(&port);
    }
}

#[test]
fn descriptors_and_sent_events_share_the_queue() {
    let port = port();
    let (out, _into) = filled();
    port.send(1, 1).unwrap();
    port.associate(out.as_raw_fd(), PollFlags::IN, 2).unwrap();
    let sources: Vec<_> = port.get_many(9, 2, NOW).unwrap().iter().map(|e| e.source).collect();
    assert_eq!(sources, [Source::User, Source::Fd]);
    // Neither source starves the other where events are retrieved one by one.
    for round in 0..100 {
        port.send(1, round).unwrap();
        port.send(1, round).unwrap();
        port.associate(out.as_raw_fd(), PollFlags::IN, 2).unwrap();
        port.get(NOW).unwrap();
    }
    let rest = port.get_many(1000, 1, NOW).unwrap();
    assert!(rest.len() >= 100 && rest.iter().filter(|e| e.source == Source::Fd).count() <= 1);
}

#[test]
fn a_thread_that_waits_is_woken_by_a_descriptor_that_is_associated_meanwhile() {
    let port = port();
    let (out, _into) = filled();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| port.get(None).unwrap());
        port.associate(out.as_raw_fd(), PollFlags::IN, 5).unwrap();
        assert_eq!(waiter.join().unwrap().user, 5);
    });
}

#[test]
fn each_event_of_descriptors_goes_to_one_of_several_threads() {
    const ROUNDS: usize = 3000;
    let port = port();
    let pairs: Vec<_> = (0..8).map(|_| UnixStream::pair().unwrap()).collect();
    let received = AtomicUsize::new(0);
    thread::scope(|scope| {
        for (user, (left, _)) in pairs.iter().enumerate() {
            port.associate(left.as_raw_fd(), PollFlags::IN, user).unwrap();
        }
        for _ in 0..4 {
            scope.spawn(|| {
                while received.load(Ordering::SeqCst) < ROUNDS * pairs.len() {
                    let Ok(event) = port.get(Some(Duration::from_millis(20))) else { continue };
                    // Blocks for ever if another thread was given the event too.
                    let mut left = &pairs[event.user].0;
                    left.read_exact(&mut [0]).unwrap();
                    received.fetch_add(1, Ordering::SeqCst);
                    port.associate(event.object as i32, PollFlags::IN, event.user).unwrap();
                }
            });
        }
        for _ in 0..ROUNDS {
            for (_, right) in &pairs {
                (&mut &*right).write_all(b"x").unwrap();
            }
        }
    });
    assert_eq!(received.into_inner(), ROUNDS * pairs.len());
    nothing(&port);
}

#[test]
fn threads_that_change_the_association_of_one_descriptor_leave_it_whole() {
    let port = port();
    let (left, mut right) = UnixStream::pair().unwrap();
    let fd = left.as_raw_fd();
    right.write_all(b"x").unwrap();
    let valid = |event: Event| assert_eq!((event.source, event.object), (Source::Fd, fd as usize));
    thread::scope(|scope| {
        for number in 0..3 {
            let port = &port;
            scope.spawn(move || {
                for user in 0..2000 {
                    match (user + number) % 3 {
                        0 => port.associate(fd, PollFlags::IN, user).unwrap(),
                        1 => assert!(matches!(port.dissociate(fd), Ok(()) | Err(Errno::NOENT))),
                        _ => port.get(NOW).map_or((), valid),
                    }
                }
            });
        }
    });
    port.associate(fd, PollFlags::IN, 9).unwrap();
    assert_eq!(port.get(NOW).unwrap().user, 9);
    nothing(&port);
    assert_eq!(port.queued(), 0);
}

#[test]
fn descriptors_that_are_closed_while_threads_wait_send_nothing() {
    let port = port();
    for _ in 0..300 {
        let (out, into) = pipe().unwrap();
        let fd = out.as_raw_fd();
        let duplicate = out.try_clone().unwrap();
        port.associate(fd, PollFlags::IN, 1).unwrap();
        thread::scope(|scope| {
            // The event comes, is retrieved or not, and its descriptor goes, in any order.
            scope.spawn(|| port.get(NOW).is_ok());
            scope.spawn(move || (&mut &into).write_all(b"x").unwrap());
            scope.spawn(move || drop(out));
        });
        nothing(&port);
        drop(duplicate);
    }
    assert_eq!(port.queued(), 0);
}
