//! More descriptors than a set of select(2) has room for, more events than the caller has, and
//! descriptors that are closed while they are watched.

use crate::support;

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use iotomy_waiters::{Closed, Interest, Kind, Ready, Trigger};

use support::watched::{self, Pair};
use support::{TestedWaiter, raise_descriptors, waiters};

/// More than FD_SETSIZE.
const MANY: usize = 1_100;

fn pairs(count: usize) -> Vec<Pair> {
    raise_descriptors();
    (0..count).map(|_| watched::unix()).collect()
}

#[test]
fn more_than_1024_are_watched_or_refused_clearly() {
    let pairs = pairs(MANY);
    for waiter in waiters() {
        let mut under = TestedWaiter::room_for(waiter, 2 * MANY);
        let mut watched = Vec::new();
        for (token, pair) in pairs.iter().enumerate() {
            match (
                under.try_add(pair.as_fd(), Interest::READ, token as u64),
                waiter.capabilities.highest,
            ) {
                (Ok(()), highest) => {
                    assert!(highest.is_none_or(|highest| pair.watched.as_raw_fd() <= highest));
                    watched.push(token);
                }
                (Err(error), Some(highest)) => {
                    let fd = pair.watched.as_raw_fd();
                    assert!(fd > highest, "{error}");
                    let message = error.to_string();
                    assert!(message.contains(&format!("descriptor {fd}")), "{message}");
                    assert!(message.contains("1,024") && message.contains("epoll"), "{message}");
                }
                (Err(error), None) => panic!("{error}"),
            }
        }
        assert_eq!(watched.len() == MANY, waiter.capabilities.highest.is_none());
        under.silent("none is ready");
        for pair in &pairs {
            pair.make_ready();
        }
        let mut told: Vec<_> = under.next().iter().map(|(token, _)| *token as usize).collect();
        told.sort_unstable();
        assert!(told == watched, "{}: {} of {}", waiter.name, told.len(), watched.len());
        for pair in &pairs {
            pair.drain();
        }
    }
}

#[test]
fn what_there_is_no_room_for_is_told_by_the_next_waits() {
    const COUNT: usize = 100;
    for waiter in waiters() {
        for room in [1, 7, 99] {
            let pairs = pairs(COUNT);
            let mut under = TestedWaiter::room_for(waiter, room);
            for (token, pair) in pairs.iter().enumerate() {
                under.add(pair.as_fd(), token as u64);
                pair.make_ready();
            }
            let mut told = vec![0; COUNT];
            let mut waits = 0;
            while told.contains(&0) {
                for (token, ready) in under.next() {
                    assert!(ready.contains(Ready::READABLE));
                    told[token as usize] += 1;
                }
                waits += 1;
                assert!(waits <= COUNT, "{}: {room}: some are never told: {told:?}", waiter.name);
            }
            // In turns: none twice before all were told once, but for what fills the last wait.
            assert!(told.iter().all(|times| *times <= 2), "{}: {told:?}", waiter.name);
            if waiter.capabilities.trigger != Trigger::Level {
                assert!(told.iter().all(|times| *times == 1), "{}: {told:?}", waiter.name);
                under.silent("all were told");
            }
        }
    }
}

#[test]
fn descriptors_come_and_go_and_the_others_stay() {
    let pairs = pairs(40);
    for waiter in waiters() {
        let mut under = TestedWaiter::test(waiter);
        for round in 0..30_usize {
            let is_in = |at: usize| !(at + round).is_multiple_of(3);
            for (at, pair) in pairs.iter().enumerate().filter(|(at, _)| is_in(*at)) {
                under.add(pair.as_fd(), (at * 1000 + round) as u64);
            }
            for pair in &pairs {
                pair.make_ready();
            }
            let mut told: Vec<_> = under.next().iter().map(|(token, _)| *token as usize).collect();
            told.sort_unstable();
            let expected: Vec<_> =
                (0..pairs.len()).filter(|at| is_in(*at)).map(|at| at * 1000 + round).collect();
            assert_eq!(told, expected, "{}", waiter.name);
            for (at, pair) in pairs.iter().enumerate() {
                pair.drain();
                if is_in(at) {
                    under.waiter.remove(pair.as_fd()).unwrap();
                }
            }
        }
    }
}

#[test]
fn what_is_closed_while_it_is_watched_comes_out_as_declared() {
    for waiter in waiters() {
        let (stays, closed) = (watched::unix(), watched::unix());
        let mut under = TestedWaiter::test(waiter);
        under.add(stays.as_fd(), 1);
        under.add(closed.as_fd(), 2);
        under.silent("before it is closed");
        let Pair { watched, other, .. } = closed;
        let number = watched.as_raw_fd();
        drop(watched);
        let other = other.unwrap();
        let is_gone = || rustix::io::write(&other, b"a").is_err();
        match waiter.capabilities.closed {
            Closed::Told => {
                assert!(is_gone());
                assert_eq!(under.only(2), Ready::INVALID, "{}", waiter.name);
                under.silent("told once");
            }
            Closed::Forgotten | Closed::Silent => {
                assert!(is_gone());
                under.silent("nothing is told");
            }
            Closed::Held => {
                assert!(!is_gone(), "{}: it is held open", waiter.name);
                assert!(under.only(2).wants_read());
                let gone = number_of(number);
                under.waiter.remove(gone.as_fd()).unwrap();
                assert!(is_gone(), "{}: held no longer", waiter.name);
            }
        }
        stays.make_ready();
        assert!(under.only(1).wants_read(), "{}: the others stay", waiter.name);
    }
}

/// Another descriptor that gets the number of one that was closed.
fn number_of(closed: i32) -> std::os::fd::OwnedFd {
    let mut kept = Vec::new();
    loop {
        let fd = rustix::event::eventfd(0, rustix::event::EventfdFlags::empty()).unwrap();
        if fd.as_raw_fd() == closed {
            return fd;
        }
        assert!(kept.len() < 10_000, "{closed} is taken");
        kept.push(fd);
    }
}

#[test]
fn epoll_goes_on_watching_what_is_closed_but_has_a_duplicate() {
    for waiter in waiters().into_iter().filter(|w| w.capabilities.closed == Closed::Forgotten) {
        let Pair { watched, other, .. } = watched::pipe();
        let mut under = TestedWaiter::test(waiter);
        under.add(watched.as_fd(), 2);
        let duplicate = rustix::io::dup(&watched).unwrap();
        drop(watched);
        rustix::io::write(other.unwrap(), b"a").unwrap();
        assert!(under.only(2).wants_read(), "{}", waiter.name);
        drop(duplicate);
        under.silent("the last one is closed");
    }
}

#[test]
fn a_waiter_that_ends_leaves_the_descriptors_as_they_were() {
    for waiter in waiters() {
        let flags = |fd: BorrowedFd<'_>| rustix::fs::fcntl_getfl(fd).unwrap();
        for make in watched::STREAMS {
            let mut pair = make();
            if pair.kind == Kind::Pipe && !waiter.capabilities.serves.contains(&Kind::Pipe) {
                continue;
            }
            let before = flags(pair.as_fd());
            let mut under = TestedWaiter::test(waiter);
            under.add(pair.as_fd(), 1);
            under.silent("nothing yet");
            drop(under);
            assert_eq!(flags(pair.as_fd()), before, "{}", waiter.name);
            pair.make_ready();
            assert_eq!(rustix::io::read(&pair.watched, &mut [0; 8]).unwrap(), 1);
            // Nobody holds it open.
            let other = pair.other.take().unwrap();
            drop(pair);
            // TCP learns of it by the answer to what it sends.
            let _ = rustix::io::write(&other, b"a");
            assert!(rustix::io::write(&other, b"a").is_err(), "{}", waiter.name);
        }
    }
}
