//! What disturbs a wait: signals, and queues of the kernel that have no more room.

use crate::support;

use std::os::fd::AsFd;
use std::os::fd::AsRawFd;
use std::thread;

use iotomy_sys::io_signals::Signals;
use iotomy_waiters::{Events, Interest, Settings};

use support::asleep::{this_thread, until_asleep, until_signals_are_handled};
use support::watched::{self, Pair};
use support::{PATIENCE, TestedWaiter, waiters};

#[test]
fn a_wait_that_a_signal_interrupts_goes_on() {
    for waiter in waiters() {
        // Writing to this pipe sends this thread a signal whose handler does nothing.
        let bell = watched::pipe();
        let signals = Signals::hold().unwrap();
        signals.ask(bell.watched.as_raw_fd()).unwrap();
        drop(signals);
        let (pair, mut under) = (watched::unix(), TestedWaiter::test(waiter));
        under.add(pair.as_fd(), 6);
        let thread = this_thread();
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..3 {
                    until_asleep(thread, waiter);
                    bell.make_ready();
                    until_signals_are_handled(thread);
                }
                until_asleep(thread, waiter);
                pair.make_ready();
            });
            let found = under.waiter.wait(&mut under.events, None).unwrap();
            assert_eq!((found, under.events.as_slice()[0].token), (1, 6), "{}", waiter.name);
        });
        let counts = under.waiter.counts();
        if waiter.capabilities.sleeps {
            // What waits for signals takes it for one of a descriptor it does not watch; and a call
            // that has handed requests over tells of them, and not of the signal.
            let disturbed = counts.interrupted + counts.stale;
            assert!(disturbed >= 2, "{}: {counts:?}", waiter.name);
        }
    }
}

/// A waiter that was told to expect little.
fn small(name: &str) -> Option<TestedWaiter> {
    let waiter = waiters().into_iter().find(|waiter| waiter.name == name)?;
    let settings = Settings { descriptors: 1, buffer_bytes: 16, ..Settings::default() };
    let waiter = (waiter.open)(&settings).unwrap();
    Some(TestedWaiter { waiter, events: Events::with_capacity(64) })
}

#[test]
fn completions_that_find_no_room_are_counted_and_nothing_is_lost() {
    support::raise_descriptors();
    for name in ["io-uring-poll", "io-uring-recv"] {
        let Some(mut under) = small(name) else { continue };
        let pairs: Vec<_> = (0..1500).map(|_| watched::unix()).collect();
        for (at, pair) in pairs.iter().enumerate() {
            under.add(pair.as_fd(), at as u64);
        }
        under.silent("nothing is ready");
        for round in 0..3 {
            pairs.iter().for_each(Pair::make_ready);
            let mut told = vec![false; pairs.len()];
            while told.contains(&false) {
                for (token, ready) in under.next() {
                    assert!(ready.wants_read(), "{name}: {ready:?}");
                    told[token as usize] = true;
                    pairs[token as usize].drain();
                }
            }
            assert!(under.waiter.counts().overflows > round, "{name}");
        }
        println!("{name}: {:?}", under.waiter.counts());
    }
}

#[test]
fn more_bytes_than_buffers_are_received_in_their_order() {
    let Some(mut under) = small("io-uring-recv") else { return };
    let (pair, content) = (watched::unix(), content());
    under.try_add(pair.as_fd(), Interest::READ, 1).unwrap();
    rustix::io::ioctl_fionbio(pair.other.as_ref().unwrap(), false).unwrap();
    let mut received = Vec::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut left = &content[..];
            while !left.is_empty() {
                let sent = rustix::io::write(pair.other.as_ref().unwrap(), left).unwrap();
                left = &left[sent..];
            }
        });
        while received.len() < content.len() {
            let found = under.waiter.wait(&mut under.events, Some(PATIENCE)).unwrap();
            assert!(found > 0, "{} of {} came", received.len(), content.len());
            (0..found).for_each(|at| received.extend_from_slice(under.events.received(at)));
        }
    });
    assert!(received == content, "the bytes are others");
    let counts = under.waiter.counts();
    println!("{counts:?}");
    assert!(counts.rearmed > 0, "{counts:?}");
}

/// Many times what all buffers hold, of no short period.
fn content() -> Vec<u8> {
    (0..400_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}
