//! `watch WAITER OPERATION TIMES [DESCRIPTORS [EVENTS]]`: does one thing exactly so often, for tests
//! that count its calls from outside.
//!
//! Operations: `open`, `add`, `modify`, `remove`, and `wait`: each wait finds EVENTS, made ready by
//! nothing but plain writes, and read by nothing but plain reads. `overflow` has the queue of signals
//! overflow and tells what was counted. What was done is a line on stderr.

use std::error::Error;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use iotomy_waiters::{Events, Interest, RING, Settings, Trigger, Waiter, WaiterDeclaration};
use rustix::io::{read, write};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Sockets, the first of each pair watched.
type Pairs = Vec<(UnixStream, UnixStream)>;

fn main() -> Outcome<()> {
    let words: Vec<_> = std::env::args().skip(1).collect();
    let word = |at: usize| words.get(at).map(String::as_str);
    let number = |at: usize, otherwise: usize| word(at).map_or(Ok(otherwise), str::parse);
    let usage = "usage: watch WAITER OPERATION TIMES [DESCRIPTORS [EVENTS]]";
    let (name, operation) = (word(0).ok_or(usage)?, word(1).ok_or(usage)?);
    let (times, descriptors, count) = (number(2, 0)?, number(3, 1)?, number(4, 1)?);
    let waiter = iotomy_waiters::waiter(name).ok_or("no such waiter")?;
    let pairs = pairs(descriptors.max(times))?;
    match operation {
        // What dropping one takes is not to be counted.
        "open" => (0..times).try_for_each(|_| open(waiter).map(std::mem::forget))?,
        "add" | "modify" | "remove" => change(waiter, operation, times, &pairs)?,
        "wait" => wait(waiter, times, &pairs[..descriptors], count)?,
        "overflow" => overflow(waiter, &pairs[..descriptors])?,
        _ => return Err(usage.into()),
    }
    eprintln!("done");
    // What is watched is not closed: a ring would have results of that, too.
    std::process::exit(0);
}

fn pairs(count: usize) -> Outcome<Pairs> {
    let mut pairs = Pairs::new();
    for _ in 0..count {
        let (watched, other) = UnixStream::pair()?;
        watched.set_nonblocking(true)?;
        pairs.push((watched, other));
    }
    Ok(pairs)
}

fn open(waiter: &WaiterDeclaration) -> Outcome<Box<dyn Waiter>> {
    Ok((waiter.open)(&Settings::default())?)
}

fn change(waiter: &WaiterDeclaration, operation: &str, times: usize, pairs: &Pairs) -> Outcome<()> {
    let mut waiter = open(waiter)?;
    let several = if operation == "add" { times } else { pairs.len() };
    for (token, (watched, _)) in (0..).zip(&pairs[..several]) {
        waiter.add(watched.as_fd(), Interest::READ, token)?;
    }
    for (watched, _) in &pairs[..if operation == "add" { 0 } else { times }] {
        if operation == "modify" {
            waiter.modify(watched.as_fd(), Interest::READ, 7)?;
        } else {
            waiter.remove(watched.as_fd())?;
        }
    }
    let queues = waiter.declaration().calls.add.iter().any(|call| call.name.starts_with(RING));
    if queues {
        // What it has queued is submitted.
        waiter.wait(&mut Events::with_capacity(1), Some(Duration::ZERO))?;
    }
    std::mem::forget(waiter);
    Ok(())
}

fn wait(
    waiter: &WaiterDeclaration,
    times: usize,
    pairs: &[(UnixStream, UnixStream)],
    count: usize,
) -> Outcome<()> {
    let mut waiter = open(waiter)?;
    for (token, (watched, _)) in (0..).zip(pairs) {
        waiter.add(watched.as_fd(), Interest::READ, token)?;
    }
    let mut events = Events::with_capacity(pairs.len().max(count) + 1);
    for _ in 0..times {
        for (_, other) in &pairs[..count] {
            write(other, b"a")?;
        }
        let found = waiter.wait(&mut events, None)?;
        if found != count {
            return Err(format!("{found} of {count} were told").into());
        }
        for event in &events {
            let watched = &pairs[usize::try_from(event.token)?].0;
            if !waiter.declaration().capabilities.receives {
                read(watched, &mut [0])?;
            }
            if waiter.declaration().capabilities.trigger == Trigger::OneShot {
                waiter.modify(watched.as_fd(), Interest::READ, event.token)?;
            }
        }
    }
    std::mem::forget(waiter);
    Ok(())
}

/// Many things happen, with room for few signals: all of them must be told.
fn overflow(waiter: &WaiterDeclaration, pairs: &[(UnixStream, UnixStream)]) -> Outcome<()> {
    let maximum = getrlimit(Resource::Sigpending).maximum;
    setrlimit(Resource::Sigpending, Rlimit { current: Some(4), maximum })?;
    let mut waiter = open(waiter)?;
    for (token, (watched, _)) in (0..).zip(pairs) {
        waiter.add(watched.as_fd(), Interest::READ, token)?;
    }
    let mut events = Events::with_capacity(7);
    for round in 0..3 {
        for (_, other) in pairs {
            write(other, b"a")?;
        }
        let mut told = vec![false; pairs.len()];
        while told.contains(&false) {
            waiter.wait(&mut events, Some(Duration::from_secs(60)))?;
            if events.is_empty() {
                return Err(format!("round {round}: some were never told: {told:?}").into());
            }
            for event in &events {
                let at = usize::try_from(event.token)?;
                // The signals that found room may be told of beside the look at all of them.
                told[at] |= matches!(read(&pairs[at].0, &mut [0; 16]), Ok(1..));
            }
        }
    }
    let counts = waiter.counts();
    eprintln!("overflows {} sweeps {}", counts.overflows, counts.sweeps);
    Ok(())
}
