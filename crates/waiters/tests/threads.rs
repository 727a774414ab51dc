//! Several threads and one waiter: woken from outside, changed while it waits, waited at by many.

use crate::support;

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use iotomy_waiters::{Events, Interest, Settings, Trigger, Waiter, WaiterDeclaration, Waker};

use support::asleep::{this_thread, until_asleep};
use support::watched;
use support::{PATIENCE, TestedWaiter, waiters};

/// Waiters several threads can wait at.
fn shared() -> Vec<&'static WaiterDeclaration> {
    let all = waiters();
    for waiter in all.iter().filter(|waiter| !waiter.capabilities.shared) {
        assert!((waiter.open)(&Settings::default()).unwrap().share().is_none());
    }
    all.into_iter().filter(|waiter| waiter.capabilities.shared).collect()
}

#[test]
fn a_waiter_is_woken_by_another_thread() {
    for waiter in waiters() {
        let mut under = TestedWaiter::test(waiter);
        let waker = Waker::new(under.waiter.as_mut(), 77).unwrap();
        let thread = this_thread();
        for _ in 0..20 {
            thread::scope(|scope| {
                scope.spawn(|| {
                    until_asleep(thread, waiter);
                    waker.wake();
                });
                assert!(under.only(77).wants_read());
            });
            waker.clear(under.waiter.as_mut(), 77).unwrap();
            under.silent("woken once");
        }
        // Nobody waits: the next wait is ended.
        waker.wake();
        assert!(under.only(77).wants_read());
    }
}

#[test]
fn what_is_removed_while_another_thread_waits_is_not_told() {
    for waiter in shared() {
        let (pair, mut under) = (watched::unix(), TestedWaiter::test(waiter));
        let waker = Waker::new(under.waiter.as_mut(), 77).unwrap();
        under.add(pair.as_fd(), 1);
        let mut other = under.waiter.share().unwrap();
        let thread = this_thread();
        thread::scope(|scope| {
            scope.spawn(|| {
                until_asleep(thread, waiter);
                other.remove(pair.as_fd()).unwrap();
                pair.make_ready();
                waker.wake();
            });
            under.only(77);
        });
    }
}

#[test]
fn what_is_added_while_another_thread_waits_is_told() {
    for waiter in shared() {
        let (pair, mut under) = (watched::unix(), TestedWaiter::test(waiter));
        let mut other = under.waiter.share().unwrap();
        let thread = this_thread();
        thread::scope(|scope| {
            scope.spawn(|| {
                until_asleep(thread, waiter);
                other.add(pair.as_fd(), Interest::READ, 5).unwrap();
                pair.make_ready();
            });
            assert!(under.only(5).wants_read());
        });
    }
}

/// What one of many threads at one set does until it is told to stop: takes what it is told of, and
/// returns how often it was told.
fn work(
    waiter: &mut dyn Waiter,
    pairs: &[watched::Pair],
    read: &[AtomicUsize],
    stop: &AtomicBool,
) -> usize {
    let mut events = Events::with_capacity(4);
    let mut told = 0;
    while !stop.load(Ordering::Acquire) {
        waiter.wait(&mut events, Some(PATIENCE)).unwrap();
        for event in &events {
            let Ok(at) = usize::try_from(event.token) else { continue };
            let Some(pair) = pairs.get(at) else { continue };
            told += 1;
            let mut bytes = [0; 16];
            while let Ok(count @ 1..) = rustix::io::read(&pair.watched, &mut bytes) {
                read[at].fetch_add(count, Ordering::Relaxed);
            }
            if waiter.declaration().capabilities.trigger == Trigger::OneShot {
                waiter.modify(pair.as_fd(), Interest::READ, event.token).unwrap();
            }
        }
    }
    told
}

#[test]
fn several_threads_at_one_set_lose_nothing() {
    const ROUNDS: usize = 50;
    const THREADS: usize = 4;
    // Also where no more than one or two of them may run at once.
    let each = |waiter| [0, 1, 2].map(|concurrency| (waiter, concurrency));
    for (waiter, concurrency) in shared().into_iter().flat_map(each) {
        let pairs: Vec<_> = (0..32).map(|_| watched::unix()).collect();
        let read: Vec<_> = pairs.iter().map(|_| AtomicUsize::new(0)).collect();
        let settings = Settings { concurrency, ..Settings::default() };
        let waits = (waiter.open)(&settings).unwrap();
        let mut under = TestedWaiter { waiter: waits, events: Events::with_capacity(64) };
        for (at, pair) in pairs.iter().enumerate() {
            under.add(pair.as_fd(), at as u64);
        }
        let stop = AtomicBool::new(false);
        let told: usize = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|_| {
                    let (mut shared, pairs, read, stop) =
                        (under.waiter.share().unwrap(), &pairs, &read, &stop);
                    scope.spawn(move || work(shared.as_mut(), pairs, read, stop))
                })
                .collect();
            for round in 1..=ROUNDS {
                pairs.iter().for_each(watched::Pair::make_ready);
                // Round by round, so that the threads sleep and are woken.
                iotomy_test_requirements::wait::until("all has been read", || {
                    read.iter().all(|read| read.load(Ordering::Relaxed) >= round)
                });
            }
            stop.store(true, Ordering::Release);
            // One that nobody takes back ends every wait.
            let mut over = TestedWaiter {
                waiter: under.waiter.share().unwrap(),
                events: Events::with_capacity(1),
            };
            let end = end_all(&mut over, THREADS);
            let told = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
            drop(end);
            told
        });
        assert!(read.iter().all(|read| read.load(Ordering::Relaxed) == ROUNDS), "{}", waiter.name);
        println!("{}: {told} events for {} bytes", waiter.name, ROUNDS * pairs.len());
        assert!(told >= pairs.len(), "{}", waiter.name);
    }
}

/// As many wake-ups as there may be threads that wait; each ends one wait, of whatever trigger.
fn end_all(under: &mut TestedWaiter, threads: usize) -> Vec<Waker> {
    let token = |at: usize| u64::MAX - at as u64;
    let wakers: Vec<_> =
        (0..threads * 4).map(|at| Waker::new(under.waiter.as_mut(), token(at)).unwrap()).collect();
    wakers.iter().for_each(Waker::wake);
    wakers
}

#[test]
fn one_readiness_goes_to_one_thread_where_it_is_told_once() {
    for waiter in shared() {
        if waiter.capabilities.trigger == Trigger::Level {
            continue;
        }
        let pairs: Vec<_> = (0..200).map(|_| watched::event()).collect();
        let mut under = TestedWaiter::test(waiter);
        for (at, pair) in pairs.iter().enumerate() {
            under.add(pair.as_fd(), at as u64);
            pair.make_ready();
        }
        let told = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                let mut shared = under.waiter.share().unwrap();
                let (told, all) = (&told, pairs.len());
                scope.spawn(move || {
                    let mut events = Events::with_capacity(3);
                    while told.load(Ordering::Relaxed) < all {
                        let found = shared.wait(&mut events, support::LOOK).unwrap();
                        told.fetch_add(found, Ordering::Relaxed);
                    }
                });
            }
        });
        under.silent("each was told");
        assert_eq!(told.load(Ordering::Relaxed), pairs.len(), "{}", waiter.name);
    }
}

/// How many of several sets that watch one descriptor are told of one event, while all wait.
fn told_of_one_event(waiter: &'static WaiterDeclaration, sets: usize) -> usize {
    let herd = watched::event();
    let (ready, is_ready) = channel();
    let (saw, seen) = channel();
    thread::scope(|scope| {
        for _ in 0..sets {
            let (ready, saw, herd) = (ready.clone(), saw.clone(), &herd);
            scope.spawn(move || {
                let mut under = TestedWaiter::test(waiter);
                let own = watched::event();
                under.add(herd.as_fd(), 1);
                under.add(own.as_fd(), 2);
                ready.send((this_thread(), rustix::io::dup(&own).unwrap())).unwrap();
                saw.send(under.next().iter().any(|(token, _)| *token == 1)).unwrap();
            });
        }
        let threads: Vec<_> = (0..sets).map(|_| is_ready.recv().unwrap()).collect();
        threads.iter().for_each(|(thread, _)| until_asleep(*thread, waiter));
        herd.make_ready();
        let first = seen.recv_timeout(PATIENCE).unwrap();
        // The others are asked only now what they saw.
        for (_, own) in &threads {
            rustix::io::write(own, &1_u64.to_ne_bytes()).unwrap();
        }
        let others = (1..sets).filter(|_| seen.recv_timeout(PATIENCE).unwrap()).count();
        usize::from(first) + others
    })
}

#[test]
fn an_exclusive_one_does_not_wake_the_herd() {
    const SETS: usize = 8;
    for waiter in waiters() {
        if !waiter.capabilities.serves.contains(&iotomy_waiters::Kind::Event) {
            continue;
        }
        if !waiter.capabilities.sleeps {
            continue;
        }
        let told = told_of_one_event(waiter, SETS);
        println!("{}: {told} of {SETS} were told", waiter.name);
        assert!(told >= 1, "{}", waiter.name);
        assert_eq!(told < SETS, waiter.capabilities.exclusive, "{}", waiter.name);
    }
}
