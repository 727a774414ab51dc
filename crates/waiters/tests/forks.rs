//! Several processes and one waiter: children of fork(2) that go on with the set of their parent.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use iotomy_sys::children::Children;
use iotomy_waiters::{Events, Interest, Settings, Trigger, Waiter, WaiterDeclaration};

use crate::support::watched::{Pair, pipe, unix};
use crate::support::{PATIENCE, TestedWaiter, waiters};

/// Waiters whose sets children inherit.
fn inherited() -> Vec<&'static WaiterDeclaration> {
    let all = waiters();
    for waiter in &all {
        let set = (waiter.open)(&Settings::default()).unwrap();
        assert_eq!(!set.descriptors().is_empty(), waiter.capabilities.inherited, "{}", waiter.name);
    }
    all.into_iter().filter(|waiter| waiter.capabilities.inherited).collect()
}

/// What a child needs of the set, and these.
fn kept(set: &dyn Waiter, others: &[BorrowedFd<'_>]) -> Vec<RawFd> {
    set.descriptors().iter().chain(others).map(AsRawFd::as_raw_fd).collect()
}

/// Waits for the one event that has this token, and reads what was announced.
fn take(set: &mut dyn Waiter, pair: &Pair, token: u64) {
    let mut events = Events::with_capacity(4);
    assert_eq!(set.wait(&mut events, Some(PATIENCE)).unwrap(), 1);
    assert!(events.iter().all(|event| event.token == token && event.ready.wants_read()));
    pair.drain();
}

#[test]
fn a_child_and_its_parent_wait_at_one_set() {
    for waiter in inherited() {
        let (pair, report) = (unix(), pipe());
        let written = report.other.as_ref().unwrap();
        rustix::io::ioctl_fionbio(&report.watched, false).unwrap();
        let mut under = TestedWaiter::test(waiter);
        under.add(pair.as_fd(), 5);
        let kept = kept(under.waiter.as_ref(), &[pair.as_fd(), written.as_fd()]);
        let mut children = Children::with_capacity(1);
        let work = || {
            take(under.waiter.as_mut(), &pair, 5);
            under.waiter.modify(pair.as_fd(), Interest::READ, 6).unwrap();
            rustix::io::write(written, b"a").unwrap();
        };
        children.fork(&kept, work).unwrap();
        pair.make_ready();
        assert_eq!(rustix::io::read(&report.watched, &mut [0; 1]), Ok(1), "{}", waiter.name);
        // The parent is told what the child asked for, and nothing twice.
        pair.make_ready();
        assert!(under.only(6).wants_read(), "{}", waiter.name);
        pair.drain();
        under.silent("it was told");
        children.wait();
    }
}

#[test]
fn one_event_goes_to_one_process_where_it_is_told_once() {
    const CHILDREN: usize = 4;
    const ROUNDS: usize = 200;
    for waiter in inherited() {
        if waiter.capabilities.trigger != Trigger::OneShot {
            continue;
        }
        let (pair, report) = (unix(), pipe());
        let written = report.other.as_ref().unwrap();
        rustix::io::ioctl_fionbio(&report.watched, false).unwrap();
        let mut under = TestedWaiter::test(waiter);
        under.add(pair.as_fd(), 5);
        let kept = kept(under.waiter.as_ref(), &[pair.as_fd(), written.as_fd()]);
        let mut children = Children::with_capacity(CHILDREN);
        for child in 0..CHILDREN {
            let mut work = || {
                loop {
                    take(under.waiter.as_mut(), &pair, 5);
                    rustix::io::write(written, &[child as u8]).unwrap();
                    under.waiter.modify(pair.as_fd(), Interest::READ, 5).unwrap();
                }
            };
            children.fork(&kept, &mut work).unwrap();
        }
        let mut by_child = [0; CHILDREN];
        for _ in 0..ROUNDS {
            pair.make_ready();
            let mut child = [0; 1];
            assert_eq!(rustix::io::read(&report.watched, &mut child), Ok(1), "{}", waiter.name);
            by_child[usize::from(child[0])] += 1;
        }
        drop(children);
        println!("{}: {by_child:?}", waiter.name);
        rustix::io::ioctl_fionbio(&report.watched, true).unwrap();
        let more = rustix::io::read(&report.watched, &mut [0; 1]);
        assert_eq!(more, Err(rustix::io::Errno::AGAIN), "{}: told twice", waiter.name);
    }
}
