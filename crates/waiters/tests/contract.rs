//! The contract every waiter keeps, held against all of them on real descriptors: what is told, when,
//! and what is not.

use crate::support;

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use iotomy_waiters::{Interest, Kind, Ready, Room, Trigger, WaiterDeclaration};
use rustix::io::Errno;

use support::watched::{self, Pair};
use support::{LOOK, PATIENCE, TestedWaiter, waiters};

/// Every waiter with every kind it serves.
fn each(test: impl Fn(&mut TestedWaiter, Pair)) {
    for waiter in waiters() {
        for make in watched::ALL {
            let pair = make();
            if waiter.capabilities.serves.contains(&pair.kind) {
                println!("{} on a {}", waiter.name, pair.name);
                test(&mut TestedWaiter::test(waiter), pair);
            }
        }
    }
}

/// Every waiter that `can`, on every kind of stream it serves.
fn each_stream(can: impl Fn(&WaiterDeclaration) -> bool, test: impl Fn(&mut TestedWaiter, Pair)) {
    for waiter in waiters() {
        if !can(waiter) {
            continue;
        }
        for make in watched::STREAMS {
            let pair = make();
            if waiter.capabilities.serves.contains(&pair.kind) {
                println!("{} on a {}", waiter.name, pair.name);
                test(&mut TestedWaiter::test(waiter), pair);
            }
        }
    }
}

fn any(_: &WaiterDeclaration) -> bool {
    true
}

fn writable(waiter: &WaiterDeclaration) -> bool {
    waiter.capabilities.room != Room::Never
}

/// Takes back what was told, so that it can be told again.
fn take(under: &mut TestedWaiter, pair: &Pair, token: u64) {
    let capabilities = &under.waiter.declaration().capabilities;
    if !capabilities.receives {
        pair.drain();
    }
    if capabilities.trigger == Trigger::OneShot {
        under.waiter.modify(pair.as_fd(), Interest::READ, token).unwrap();
    }
}

#[test]
fn what_becomes_ready_is_told_once_it_is_and_not_before() {
    each(|under, pair| {
        for token in [0, 7, u64::MAX] {
            under.add(pair.as_fd(), token);
            under.silent("before it is ready");
            pair.make_ready();
            assert!(under.only(token).wants_read());
            take(under, &pair, token);
            under.silent("after all was read");
            pair.make_ready();
            assert!(under.only(token).contains(Ready::READABLE), "ready a second time");
            take(under, &pair, token);
            under.waiter.remove(pair.as_fd()).unwrap();
        }
    });
}

#[test]
fn what_was_ready_before_it_was_added_is_told() {
    each(|under, pair| {
        pair.make_ready();
        under.add(pair.as_fd(), 3);
        assert!(under.only(3).wants_read());
    });
}

#[test]
fn it_is_told_again_as_the_trigger_says() {
    each_stream(any, |under, pair| {
        under.add(pair.as_fd(), 5);
        pair.make_ready();
        assert!(under.only(5).wants_read());
        match under.waiter.declaration().capabilities.trigger {
            Trigger::Level => {
                assert!(under.only(5).wants_read());
                pair.drain();
                under.silent("after all was read");
            }
            Trigger::Edge => {
                under.silent("without anything new");
                pair.make_ready();
                assert!(under.only(5).wants_read(), "something new");
            }
            Trigger::OneShot => {
                pair.make_ready();
                under.silent("before it is armed again");
                under.waiter.modify(pair.as_fd(), Interest::READ, 6).unwrap();
                assert!(under.only(6).wants_read());
            }
        }
    });
}

#[test]
fn the_end_of_a_stream_is_told() {
    each_stream(any, |under, mut pair| {
        under.add(pair.as_fd(), 9);
        under.silent("before the end");
        pair.hang_up();
        let ready = under.only(9);
        assert!(ready.wants_read(), "{ready:?}");
        // One direction of a TCP connection has ended, which is no hang-up.
        if under.waiter.declaration().capabilities.names_hang_up && pair.name != "tcp socket" {
            assert!(ready.contains(Ready::HANG_UP), "{}: {ready:?}", under.name());
        }
        if under.waiter.declaration().capabilities.receives {
            assert_eq!(under.events.received(0), b"");
        }
    });
}

#[test]
fn what_was_sent_before_the_end_is_not_lost() {
    each_stream(any, |under, mut pair| {
        under.add(pair.as_fd(), 9);
        pair.make_ready();
        pair.hang_up();
        assert!(under.first(9).wants_read());
        if under.waiter.declaration().capabilities.receives {
            assert_eq!(under.events.received(0), b"a");
        } else {
            assert_eq!(rustix::io::read(&pair.watched, &mut [0; 8]).unwrap(), 1);
        }
    });
}

#[test]
fn a_connection_that_was_reset_is_told_and_its_error_is_left_to_be_read() {
    for waiter in waiters() {
        let (pair, mut under) = (watched::reset(), TestedWaiter::test(waiter));
        under.add(pair.as_fd(), 1);
        let ready = under.only(1);
        assert!(ready.wants_read(), "{}: {ready:?}", waiter.name);
        if waiter.capabilities.receives {
            assert!(ready.contains(Ready::ERROR), "{}: {ready:?}", waiter.name);
        } else {
            let read = rustix::io::read(&pair.watched, &mut [0; 8]);
            assert_eq!(read, Err(Errno::CONNRESET), "{}", waiter.name);
        }
    }
}

#[test]
fn a_pipe_that_nobody_reads_is_an_error_to_who_would_write() {
    for waiter in waiters() {
        if !waiter.capabilities.serves.contains(&Kind::Pipe)
            || waiter.capabilities.room == Room::Never
        {
            continue;
        }
        let (mut pair, mut under) = (watched::pipe_to_write(), TestedWaiter::test(waiter));
        pair.fill();
        under.try_add(pair.as_fd(), Interest::WRITE, 1).unwrap();
        under.silent("a full pipe");
        pair.hang_up();
        let ready = under.only(1);
        assert!(ready.wants_write(), "{}: {ready:?}", waiter.name);
        if waiter.capabilities.names_hang_up {
            assert!(ready.contains(Ready::ERROR), "{}: {ready:?}", waiter.name);
        }
    }
}

#[test]
fn room_to_write_is_told_when_there_is_some() {
    each_stream(writable, |under, pair| {
        let pair = if pair.kind == Kind::Pipe { watched::pipe_to_write() } else { pair };
        under.try_add(pair.as_fd(), Interest::WRITE, 2).unwrap();
        assert!(under.only(2).contains(Ready::WRITABLE), "an empty one");
        if under.waiter.declaration().capabilities.room == Room::Told {
            under.waiter.remove(pair.as_fd()).unwrap();
            pair.fill();
            under.try_add(pair.as_fd(), Interest::WRITE, 3).unwrap();
        } else {
            under.waiter.modify(pair.as_fd(), Interest::WRITE, 3).unwrap();
            assert!(under.only(3).contains(Ready::WRITABLE), "an empty one");
            pair.fill();
        }
        under.silent("a full one");
        pair.drain_other();
        let ready = under.only(3);
        assert!(ready.contains(Ready::WRITABLE), "{ready:?}");
    });
}

#[test]
fn reading_and_writing_are_told_apart_and_together() {
    each_stream(writable, |under, pair| {
        if pair.kind == Kind::Pipe {
            return;
        }
        under.try_add(pair.as_fd(), Interest::BOTH, 2).unwrap();
        assert_eq!(under.only(2), Ready::WRITABLE);
        under.waiter.modify(pair.as_fd(), Interest::READ, 3).unwrap();
        under.silent("there is room, but nobody asked");
        pair.make_ready();
        assert_eq!(under.only(3), Ready::READABLE);
        under.waiter.modify(pair.as_fd(), Interest::BOTH, 4).unwrap();
        assert_eq!(under.only(4), Ready::READABLE | Ready::WRITABLE);
    });
}

#[test]
fn it_is_watched_once_and_removed_once() {
    each(|under, pair| {
        let token = 4;
        let errno = |answer: Result<(), iotomy_waiters::WaitError>| {
            let error = answer.unwrap_err();
            assert!(error.to_string().starts_with(error.waiter), "{error}");
            error.errno()
        };
        let gone = Errno::NOENT.raw_os_error();
        assert_eq!(errno(under.waiter.remove(pair.as_fd())), gone);
        assert_eq!(errno(under.waiter.modify(pair.as_fd(), Interest::READ, token)), gone);
        under.add(pair.as_fd(), token);
        let twice = errno(under.try_add(pair.as_fd(), Interest::READ, token));
        assert_eq!(twice, Errno::EXIST.raw_os_error());
        under.waiter.remove(pair.as_fd()).unwrap();
        assert_eq!(errno(under.waiter.remove(pair.as_fd())), gone);
    });
}

#[test]
fn what_was_removed_is_told_no_more_though_it_is_ready() {
    each(|under, pair| {
        under.add(pair.as_fd(), 1);
        pair.make_ready();
        under.waiter.remove(pair.as_fd()).unwrap();
        under.silent("removed after it was ready");
        pair.make_ready();
        under.silent("ready after it was removed");
        if under.waiter.declaration().capabilities.receives {
            pair.drain();
        }
        pair.make_ready();
        under.add(pair.as_fd(), 2);
        assert!(under.only(2).wants_read(), "added again");
    });
}

#[test]
fn a_modified_one_carries_its_new_token() {
    each(|under, pair| {
        under.add(pair.as_fd(), 1);
        pair.make_ready();
        under.waiter.modify(pair.as_fd(), Interest::READ, 2).unwrap();
        assert!(under.only(2).wants_read());
    });
}

#[test]
fn what_a_waiter_does_not_watch_it_refuses_and_says_why() {
    for waiter in waiters() {
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        let mut under = TestedWaiter::test(waiter);
        if waiter.capabilities.serves.contains(&Kind::File) {
            under.add(file.as_fd(), 1);
            assert!(under.only(1).wants_read(), "{}: a regular file is always ready", waiter.name);
            continue;
        }
        let others = watched::ALL.map(|make| make());
        let refused = others.iter().filter(|pair| !waiter.capabilities.serves.contains(&pair.kind));
        let refused = refused.map(|pair| pair.as_fd()).chain([file.as_fd()]);
        for fd in refused {
            let error = under.try_add(fd, Interest::READ, 1).unwrap_err();
            let message = error.to_string();
            assert!(
                message.contains("cannot watch descriptor") && error.hint.is_some(),
                "{message}"
            );
            under.silent("what was refused");
        }
    }
}

#[test]
fn timeouts_are_never_early() {
    for waiter in waiters() {
        let (pair, mut under) = (watched::unix(), TestedWaiter::test(waiter));
        under.add(pair.as_fd(), 1);
        for micros in [0, 1, 300, 999, 1000, 1001, 1500, 20_000] {
            let timeout = Duration::from_micros(micros);
            let start = Instant::now();
            let found = under.waiter.wait(&mut under.events, Some(timeout)).unwrap();
            let took = start.elapsed();
            assert!(found == 0 && took >= timeout, "{}: {took:?} of {timeout:?}", waiter.name);
        }
    }
}

#[test]
fn a_wait_with_nothing_to_watch_ends_with_its_time_out() {
    for waiter in waiters() {
        let mut under = TestedWaiter::test(waiter);
        under.silent("nothing is watched");
        let timeout = Duration::from_millis(3);
        let start = Instant::now();
        assert_eq!(under.waiter.wait(&mut under.events, Some(timeout)).unwrap(), 0);
        assert!(start.elapsed() >= timeout, "{}", waiter.name);
    }
}

#[test]
fn a_time_out_beyond_all_numbers_is_a_wait() {
    for waiter in waiters() {
        let (pair, mut under) = (watched::unix(), TestedWaiter::test(waiter));
        under.add(pair.as_fd(), 1);
        pair.make_ready();
        for timeout in [None, Some(Duration::MAX), Some(PATIENCE * 1_000_000), LOOK] {
            let found = under.waiter.wait(&mut under.events, timeout).unwrap();
            assert_eq!(found, 1, "{}: {timeout:?}", waiter.name);
            take(&mut under, &pair, 1);
            pair.make_ready();
        }
    }
}

#[test]
fn a_drain_takes_all_there_is_whatever_there_is_room_for() {
    for waiter in waiters() {
        println!("{}", waiter.name);
        let pairs: Vec<Pair> = (0..5).map(|_| watched::unix()).collect();
        // Room for fewer events than there are.
        let mut under = TestedWaiter::room_for(waiter, 2);
        for (token, pair) in (0..).zip(&pairs) {
            under.add(pair.as_fd(), token);
        }
        let mut drain = || {
            let mut tokens = Vec::new();
            let TestedWaiter { waiter: of, events } = &mut under;
            let all = of.drain(events, &mut |events| {
                for event in events.iter() {
                    tokens.push(event.token);
                    if !waiter.capabilities.receives {
                        pairs[usize::try_from(event.token).unwrap()].drain();
                    }
                }
            });
            assert_eq!(all.unwrap(), tokens.len() as u64, "{}", waiter.name);
            tokens.sort_unstable();
            tokens
        };
        assert_eq!(drain(), [0; 0], "{}: nothing is ready", waiter.name);
        // What nobody asked for must not hide what was: a reader makes room that a writer lacked.
        let (near, far) = (pairs[0].as_fd(), pairs[0].other.as_ref().unwrap());
        for _ in 0..8 {
            while rustix::io::write(near, &[0; 65_536]).is_ok() {}
            while rustix::io::read(far, &mut [0u8; 65_536]).is_ok() {}
        }
        pairs[1..].iter().for_each(Pair::make_ready);
        assert_eq!(drain(), [1, 2, 3, 4], "{}", waiter.name);
        assert_eq!(drain(), [0; 0], "{}: all was taken", waiter.name);
    }
}
