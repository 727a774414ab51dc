//! The `select` waiter.
//!
//! ```text
//! sets of bits ──select(2)──▶ kernel asks each descriptor, sleeps on each, asks each again
//!              ◀── the sets, with the ready ones left ──
//! ```
//!
//! As `poll`, with a bit for each number up to the highest one instead of an entry for each watched
//! descriptor. A set has room for 1,024 numbers: a higher one is refused, because the C library's
//! sets end there and bits behind them would be written into other memory.
//!
//! The one invariant: the kernel changes the sets it is given, so it is given copies.

use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use iotomy_sys::select::{FD_SETSIZE, FdSet, select};
use rustix::io::Errno;

use crate::calls::{once, rarely};
use crate::deadline::wait_until;
use crate::{
    Calls, Capabilities, Closed, Counts, Events, Interest, Kind, Model, Probe, Ready, Room,
    Trigger, WaitError, Waiter, WaiterDeclaration,
};

const NAME: &str = "select";

pub(crate) static DECLARATION: WaiterDeclaration = WaiterDeclaration {
    name: NAME,
    summary: "select(2) of bit sets passed with each call",
    description: "As poll, with a bit for each number up to the highest descriptor watched, at \
        most 1,023. If one of them is closed, fcntl(2) of each finds it.",
    man: &["select(2)"],
    calls: Calls {
        open: &[],
        add: &[],
        modify: &[],
        remove: &[],
        wait: &[once("select"), rarely("fcntl")],
    },
    capabilities: Capabilities {
        model: Model::Passed,
        trigger: Trigger::Level,
        exclusive: false,
        room: Room::Told,
        names_hang_up: false,
        receives: false,
        shared: false,
        inherited: false,
        sleeps: true,
        serves: &Kind::ALL,
        closed: Closed::Told,
        highest: Some(FD_SETSIZE as i32 - 1),
        timeout_step_ns: 1000,
    },
    probe: || Probe::Ready,
    open: |_| Ok(Box::new(Select::new())),
};

struct Select {
    read: FdSet,
    write: FdSet,
    tokens: [u64; FD_SETSIZE],
    /// One above the highest number that is watched.
    end: usize,
    /// Where the next collection begins, as in [`crate::watched::Watched`].
    start: usize,
    counts: Counts,
}

impl Select {
    fn new() -> Self {
        let (read, write, tokens) = ([0; 16], [0; 16], [0; FD_SETSIZE]);
        Self { read, write, tokens, end: 0, start: 0, counts: Counts::default() }
    }

    fn is_watched(&self, number: usize) -> bool {
        (self.read[number / 64] | self.write[number / 64]) >> (number % 64) & 1 == 1
    }

    fn set(&mut self, number: usize, interest: Interest, token: u64) {
        let bit = 1 << (number % 64);
        self.forget(number);
        if interest.reads() {
            self.read[number / 64] |= bit;
        }
        if interest.writes() {
            self.write[number / 64] |= bit;
        }
        self.tokens[number] = token;
        self.end = self.end.max(number + 1);
    }

    fn forget(&mut self, number: usize) {
        let bit = 1 << (number % 64);
        self.read[number / 64] &= !bit;
        self.write[number / 64] &= !bit;
        while self.end > 0 && !self.is_watched(self.end - 1) {
            self.end -= 1;
        }
    }

    /// Makes events of the sets the kernel has left.
    fn collect(&mut self, read: &FdSet, write: &FdSet, events: &mut Events) {
        let start = std::mem::take(&mut self.start);
        for (first, last) in [(start, self.end), (0, start)] {
            let mut word = first / 64;
            while word * 64 < last {
                let mut bits = read[word] | write[word];
                if word == first / 64 {
                    bits &= u64::MAX << (first % 64);
                }
                while bits != 0 {
                    let number = word * 64 + bits.trailing_zeros() as usize;
                    if number >= last {
                        break;
                    }
                    if events.room() == 0 {
                        self.start = number;
                        return;
                    }
                    let has = |set: &FdSet| set[word] >> (number % 64) & 1 == 1;
                    let mut ready = Ready::default();
                    if has(read) {
                        ready |= Ready::READABLE;
                    }
                    if has(write) {
                        ready |= Ready::WRITABLE;
                    }
                    events.push(self.tokens[number], ready);
                    bits &= bits - 1;
                }
                word += 1;
            }
        }
    }

    /// Reports the closed descriptors, which the kernel does not name.
    fn tell_closed(&mut self, events: &mut Events) {
        for number in 0..self.end {
            if self.is_watched(number) && events.room() > 0 && is_closed(number) {
                events.push(self.tokens[number], Ready::INVALID);
                self.forget(number);
            }
        }
    }
}

fn is_closed(number: usize) -> bool {
    let fd = i32::try_from(number).expect("below 1,024");
    !iotomy_sys::poll::is_open(fd)
}

/// The number as a place in the sets.
fn place(fd: RawFd, attempt: &'static str) -> Result<usize, WaitError> {
    match usize::try_from(fd) {
        Ok(number) if number < FD_SETSIZE => Ok(number),
        _ => Err(WaitError::refused(NAME, attempt, Errno::INVAL).on(fd).hinting(
            "a set holds descriptors below 1,024 (FD_SETSIZE); use poll or epoll, which have no \
             such limit",
        )),
    }
}

impl Waiter for Select {
    fn declaration(&self) -> &'static WaiterDeclaration {
        &DECLARATION
    }

    fn add(&mut self, fd: BorrowedFd<'_>, interest: Interest, token: u64) -> Result<(), WaitError> {
        let fd = fd.as_raw_fd();
        let number = place(fd, "watch")?;
        if self.is_watched(number) {
            return Err(WaitError::refused(NAME, "watch", Errno::EXIST).on(fd));
        }
        self.set(number, interest, token);
        Ok(())
    }

    fn modify(
        &mut self,
        fd: BorrowedFd<'_>,
        interest: Interest,
        token: u64,
    ) -> Result<(), WaitError> {
        let fd = fd.as_raw_fd();
        let number = place(fd, "modify")?;
        if !self.is_watched(number) {
            return Err(WaitError::refused(NAME, "modify", Errno::NOENT).on(fd));
        }
        self.set(number, interest, token);
        Ok(())
    }

    fn remove(&mut self, fd: BorrowedFd<'_>) -> Result<(), WaitError> {
        let fd = fd.as_raw_fd();
        let number = place(fd, "remove")?;
        if !self.is_watched(number) {
            return Err(WaitError::refused(NAME, "remove", Errno::NOENT).on(fd));
        }
        self.forget(number);
        Ok(())
    }

    fn wait(&mut self, events: &mut Events, timeout: Option<Duration>) -> Result<usize, WaitError> {
        events.clear();
        let (mut read, mut write) = (self.read, self.write);
        let answer = wait_until(timeout, &mut self.counts.interrupted, |left| {
            (read, write) = (self.read, self.write);
            select(self.end, &mut read, &mut write, left)
        });
        match answer {
            Ok(0) => {}
            Ok(_) => self.collect(&read, &write, events),
            Err(error) => {
                if Errno::from_io_error(&error) == Some(Errno::BADF) {
                    self.tell_closed(events);
                }
                if events.is_empty() {
                    return Err(WaitError::kernel(NAME, "wait", "select", error));
                }
            }
        }
        Ok(events.len())
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_was_no_room_for_comes_first_the_next_time() {
        let mut select = Select::new();
        let numbers = [1, 63, 64, 700, 1023];
        for number in numbers {
            select.set(number, Interest::BOTH, number as u64);
        }
        let (read, write) = (select.read, select.write);
        let mut seen = Vec::new();
        let mut events = Events::with_capacity(2);
        for _ in 0..5 {
            events.clear();
            select.collect(&read, &write, &mut events);
            assert!(events.iter().all(|event| event.ready == Ready::READABLE | Ready::WRITABLE));
            seen.extend(events.iter().map(|event| event.token as usize));
        }
        assert_eq!(seen, [numbers, numbers].concat());
    }

    #[test]
    fn the_end_is_behind_the_highest_one() {
        let mut select = Select::new();
        select.set(5, Interest::READ, 0);
        select.set(200, Interest::WRITE, 0);
        assert_eq!(select.end, 201);
        select.forget(200);
        assert_eq!(select.end, 6);
        select.forget(5);
        assert_eq!(select.end, 0);
    }
}
