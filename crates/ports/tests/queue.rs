//! The queue of a port: events that threads send, waits, alerts.

use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use iotomy_ports::{Closes, Errno, Port, Shortfall, Source};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::thread::Pid;

const NOW: Option<Duration> = Some(Duration::ZERO);

fn port() -> Port {
    Port::new(Closes::Checked).unwrap()
}

/// Whether the port's descriptor is readable.
fn is_readable(port: &Port) -> bool {
    let mut polled = [PollFd::new(port, PollFlags::IN)];
    poll(&mut polled, Some(&rustix::time::Timespec::default())).unwrap() == 1
}

/// Waits until a thread sleeps in the kernel's set.
fn until_asleep(thread: Pid) {
    let path = format!("/proc/self/task/{}/syscall", thread.as_raw_nonzero());
    // epoll_wait and epoll_pwait2.
    let is_asleep = |call: &str| call.starts_with("232 ") || call.starts_with("441 ");
    iotomy_test_requirements::wait::until("the thread is asleep", || {
        is_asleep(&std::fs::read_to_string(&path).unwrap_or_default())
    });
}

/// Starts a thread, and returns when it sleeps in the kernel's set.
fn asleep<'s, T: Send + 's>(
    scope: &'s Scope<'s, '_>,
    act: impl FnOnce() -> T + Send + 's,
) -> ScopedJoinHandle<'s, T> {
    let (tell, told) = channel();
    let started = scope.spawn(move || {
        tell.send(rustix::thread::gettid()).unwrap();
        act()
    });
    until_asleep(told.recv().unwrap());
    started
}

#[test]
fn a_sent_event_has_the_events_and_user_of_the_sender() {
    let port = port();
    port.send(0x1234, 77).unwrap();
    let event = port.get(None).unwrap();
    assert_eq!((event.source, event.events, event.user), (Source::User, 0x1234, 77));
}

#[test]
fn events_of_zero_and_below_can_be_sent() {
    let port = port();
    port.send(0, 0).unwrap();
    port.send(-5, usize::MAX).unwrap();
    let got = port.get_many(2, 2, None).unwrap();
    assert_eq!((got[0].events, got[0].user), (0, 0));
    assert_eq!((got[1].events, got[1].user), (-5, usize::MAX));
}

#[test]
fn events_are_retrieved_in_the_order_in_which_they_were_sent() {
    let port = port();
    (0..1000).for_each(|user| port.send(1, user).unwrap());
    let got = port.get_many(400, 1, None).unwrap();
    let rest = port.get_many(1000, 1, None).unwrap();
    assert_eq!((got.len(), rest.len()), (400, 600));
    assert!(got.iter().chain(&rest).map(|event| event.user).eq(0..1000));
}

#[test]
fn a_zero_timeout_polls_and_ends_with_etime() {
    let port = port();
    assert_eq!(port.get(NOW), Err(Errno::TIME));
    port.send(1, 1).unwrap();
    assert!(port.get(NOW).is_ok());
    assert_eq!(port.get(NOW), Err(Errno::TIME));
}

#[test]
fn a_timeout_never_fires_early() {
    let port = port();
    for timeout in [1, 999_999, 1_000_001, 30_000_000].map(Duration::from_nanos) {
        let start = Instant::now();
        assert_eq!(port.get(Some(timeout)), Err(Errno::TIME));
        assert!(start.elapsed() >= timeout);
    }
}

#[test]
fn getn_with_a_timeout_delivers_what_there_is_with_etime() {
    let port = port();
    for timeout in [NOW, Some(Duration::from_millis(5))] {
        port.send(1, 1).unwrap();
        port.send(1, 2).unwrap();
        let mut users = Vec::new();
        let short = port.get_each(5, 3, timeout, |event| users.push(event.user)).unwrap_err();
        assert_eq!(short, Shortfall { errno: Errno::TIME, retrieved: 2 });
        assert_eq!(users, [1, 2]);
    }
}

#[test]
fn getn_returns_more_than_were_wanted_up_to_the_room() {
    let port = port();
    (0..10).for_each(|user| port.send(1, user).unwrap());
    assert_eq!(port.get_many(4, 2, NOW).unwrap().len(), 4);
    assert_eq!(port.get_many(50, 2, NOW).unwrap().len(), 6);
}

#[test]
fn getn_of_no_events_returns_at_once_and_of_more_than_there_is_room_for_is_invalid() {
    let port = port();
    assert_eq!(port.get_many(4, 0, None), Ok(vec![]));
    assert_eq!(port.get_many(4, 5, NOW), Err(Errno::INVAL));
    port.alert(1, 1);
    assert_eq!(port.get_many(4, 0, None), Ok(vec![]));
}

#[test]
fn queued_counts_and_retrieves_nothing() {
    let port = port();
    assert_eq!(port.queued(), 0);
    (0..3).for_each(|user| port.send(1, user).unwrap());
    assert_eq!(port.queued(), 3);
    assert_eq!(port.queued(), 3);
    port.alert(1, 1);
    assert_eq!(port.queued(), 3);
}

#[test]
fn a_full_port_refuses_events_until_some_are_retrieved() {
    let port = port();
    for user in 0..65_536 {
        port.send(1, user).unwrap();
    }
    assert_eq!(port.send(1, 0), Err(Errno::AGAIN));
    assert_eq!(port.get_many(10, 10, None).unwrap().len(), 10);
    (0..10).for_each(|user| port.send(1, user).unwrap());
    assert_eq!(port.send(1, 0), Err(Errno::AGAIN));
    assert_eq!(port.get_many(100_000, 65_536, NOW).unwrap().len(), 65_536);
    assert_eq!(port.queued(), 0);
}

#[test]
fn a_thread_that_waits_is_woken_by_an_event() {
    let port = port();
    thread::scope(|scope| {
        let waiter = asleep(scope, || port.get(None).unwrap());
        port.send(7, 8).unwrap();
        assert_eq!(waiter.join().unwrap().events, 7);
    });
}

#[test]
fn a_thread_that_wants_several_leaves_one_to_a_thread_that_wants_one() {
    let port = port();
    thread::scope(|scope| {
        let many = asleep(scope, || port.get_many(8, 3, None).unwrap());
        port.send(1, 10).unwrap();
        // Both find one event; only this one may take it.
        assert_eq!(port.get(None).unwrap().user, 10);
        assert!(!many.is_finished());
        (0..3).for_each(|user| port.send(1, user).unwrap());
        assert_eq!(many.join().unwrap().len(), 3);
    });
}

#[test]
fn each_event_goes_to_one_of_several_threads() {
    const EVENTS: usize = 40_000;
    let port = port();
    let left = AtomicUsize::new(EVENTS);
    let got = thread::scope(|scope| {
        let take = |room: usize| {
            let (port, left) = (&port, &left);
            move || {
                let mut got = Vec::new();
                while left.load(Ordering::SeqCst) > 0 {
                    let each = |event: iotomy_ports::Event| got.push(event.user);
                    if let Ok(count) = port.get_each(room, 1, Some(Duration::from_millis(5)), each)
                    {
                        left.fetch_sub(count, Ordering::SeqCst);
                    }
                }
                got
            }
        };
        let takers = [1, 1, 7, 64].map(|room| scope.spawn(take(room)));
        let senders = [0, 1].map(|half| {
            let port = &port;
            scope.spawn(move || {
                for user in (half..EVENTS).step_by(2) {
                    while port.send(1, user) == Err(Errno::AGAIN) {
                        thread::yield_now();
                    }
                }
            })
        });
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        takers.into_iter().flat_map(|taker| taker.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(got.len(), EVENTS);
    assert_eq!(got.into_iter().collect::<BTreeSet<_>>().len(), EVENTS);
}

#[test]
fn the_descriptor_of_a_port_is_readable_as_long_as_there_are_events() {
    let port = port();
    assert!(!is_readable(&port));
    port.send(1, 1).unwrap();
    port.send(1, 2).unwrap();
    assert!(is_readable(&port));
    port.get(None).unwrap();
    assert!(is_readable(&port));
    port.get(None).unwrap();
    assert!(!is_readable(&port));
    port.alert(1, 1);
    assert!(is_readable(&port));
    port.end_alert();
    assert!(!is_readable(&port));
}

#[test]
fn a_port_in_another_port_is_a_descriptor_like_others() {
    let (outer, inner) = (port(), port());
    let fd = std::os::fd::AsRawFd::as_raw_fd(&inner.as_fd());
    outer.associate(fd, PollFlags::IN, 5).unwrap();
    assert_eq!(outer.get(NOW), Err(Errno::TIME));
    inner.send(1, 1).unwrap();
    assert_eq!(outer.get(None).unwrap().user, 5);
    assert_eq!(inner.associate(fd, PollFlags::IN, 5), Err(Errno::INVAL));
}

#[test]
fn alert_mode_returns_the_alert_alone_until_it_ends() {
    let port = port();
    port.send(1, 1).unwrap();
    port.alert(9, 10);
    for _ in 0..3 {
        let got = port.get_many(5, 2, None).unwrap();
        assert_eq!(got.len(), 1);
        assert_eq!((got[0].source, got[0].events, got[0].user), (Source::Alert, 9, 10));
    }
    assert_eq!(port.get(NOW).unwrap().source, Source::Alert);
    port.end_alert();
    assert_eq!(port.get(NOW).unwrap().source, Source::User);
    assert_eq!(port.get(NOW), Err(Errno::TIME));
}

#[test]
fn events_sent_in_alert_mode_wait_for_its_end() {
    let port = port();
    port.alert(9, 10);
    port.send(4, 5).unwrap();
    assert_eq!(port.get(NOW).unwrap().source, Source::Alert);
    port.end_alert();
    assert_eq!(port.get(NOW).unwrap().events, 4);
}

#[test]
fn an_alert_can_be_changed_but_not_entered_twice() {
    let port = port();
    port.alert_once(1, 2).unwrap();
    assert_eq!(port.alert_once(3, 4), Err(Errno::BUSY));
    assert_eq!(port.get(NOW).unwrap().events, 1);
    port.alert(5, 6);
    assert_eq!(port.get(NOW).unwrap().events, 5);
    port.end_alert();
    port.end_alert();
    port.alert_once(3, 4).unwrap();
    assert_eq!(port.get(NOW).unwrap().events, 3);
}

#[test]
fn an_alert_wakes_all_threads_also_one_that_ends_at_once() {
    for ends in [false, true] {
        let port = port();
        thread::scope(|scope| {
            let waiters = [1, 1, 1, 3].map(|wanted| {
                let port = &port;
                asleep(scope, move || port.get_many(4, wanted, None).unwrap())
            });
            port.alert(6, 7);
            if ends {
                port.end_alert();
            }
            for waiter in waiters {
                let got = waiter.join().unwrap();
                assert_eq!((got.len(), got[0].source, got[0].user), (1, Source::Alert, 7));
            }
        });
        if ends {
            assert_eq!(port.get(NOW), Err(Errno::TIME));
            assert!(!is_readable(&port));
        }
    }
}

#[test]
fn threads_that_wait_return_when_the_port_is_closed() {
    let port = port();
    thread::scope(|scope| {
        let waiters = [1, 1, 3].map(|wanted| {
            let port = &port;
            asleep(scope, move || port.get_many(4, wanted, None))
        });
        port.close();
        for waiter in waiters {
            assert_eq!(waiter.join().unwrap(), Err(Errno::BADFD));
        }
    });
    assert_eq!(port.get(None), Err(Errno::BADFD));
}
