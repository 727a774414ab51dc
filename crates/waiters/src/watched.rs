//! The table of those waiters that pass the whole set with each call: dense, in poll(2)'s form, and
//! indexed by the descriptor's number.

use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use iotomy_sys::poll::PollFd;
use rustix::io::Errno;

use crate::{Events, Interest, Ready, WaitError};

/// Where a descriptor is not watched.
const NOWHERE: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct Watched {
    /// The waiter, for errors.
    waiter: &'static str,
    /// The table for poll(2).
    fds: Vec<PollFd>,
    /// The token of each, in the same order.
    tokens: Vec<u64>,
    /// The index of each descriptor in them, by its number.
    places: Vec<u32>,
    /// Where the next collection begins, so that one that had no room for all does not starve some.
    start: usize,
}

impl Watched {
    /// An empty table of `waiter`, with room for this many.
    pub(crate) fn new(waiter: &'static str, descriptors: usize) -> Self {
        let (fds, tokens) = (Vec::with_capacity(descriptors), Vec::with_capacity(descriptors));
        Self { waiter, fds, tokens, places: Vec::new(), start: 0 }
    }

    /// As [`crate::Waiter::add`].
    pub(crate) fn add(
        &mut self,
        fd: BorrowedFd<'_>,
        interest: Interest,
        token: u64,
    ) -> Result<(), WaitError> {
        let fd = fd.as_raw_fd();
        self.insert(fd, interest, token).map_err(|e| self.refused("watch", e, fd))
    }

    /// As [`crate::Waiter::modify`].
    pub(crate) fn modify(
        &mut self,
        fd: BorrowedFd<'_>,
        interest: Interest,
        token: u64,
    ) -> Result<(), WaitError> {
        let fd = fd.as_raw_fd();
        let place = self.place(fd).map_err(|e| self.refused("modify", e, fd))?;
        self.fds[place].events = poll_bits(interest);
        self.tokens[place] = token;
        Ok(())
    }

    /// As [`crate::Waiter::remove`].
    pub(crate) fn remove(&mut self, fd: BorrowedFd<'_>) -> Result<(), WaitError> {
        let fd = fd.as_raw_fd();
        let place = self.place(fd).map_err(|e| self.refused("remove", e, fd))?;
        self.forget(place);
        Ok(())
    }

    /// The tokens of all.
    pub(crate) fn tokens(&self) -> &[u64] {
        &self.tokens
    }

    /// The table for poll(2).
    pub(crate) fn fds(&mut self) -> &mut [PollFd] {
        &mut self.fds
    }

    /// The settings of a descriptor: its token and its watched events, in poll(2)'s bits.
    pub(crate) fn find(&self, fd: RawFd) -> Option<(u64, u32)> {
        let place = self.place(fd).ok()?;
        Some((self.tokens[place], u32::from(self.fds[place].events.cast_unsigned())))
    }

    /// Makes events from the kernel's results for `found` descriptors. A closed one is forgotten.
    pub(crate) fn collect(&mut self, found: usize, events: &mut Events) {
        let mut left = found;
        let mut closed = Vec::new();
        let all = self.fds.len();
        let first = if self.start < all { self.start } else { 0 };
        self.start = 0;
        for range in [first..all, 0..first] {
            let offset = range.start;
            let tokens = &self.tokens[range.clone()];
            for (at, (fd, token)) in self.fds[range].iter().zip(tokens).enumerate() {
                if left == 0 {
                    break;
                }
                if fd.revents == 0 {
                    continue;
                }
                if events.room() == 0 {
                    self.start = offset + at;
                    left = 0;
                    break;
                }
                left -= 1;
                let ready = Ready::from_bits(u32::from(fd.revents.cast_unsigned()));
                events.push(*token, ready);
                if ready.contains(Ready::INVALID) {
                    closed.push(offset + at);
                }
            }
        }
        // From the end: a forgotten entry is replaced by the last one.
        closed.sort_unstable();
        for place in closed.into_iter().rev() {
            self.forget(place);
        }
    }

    fn insert(&mut self, fd: RawFd, interest: Interest, token: u64) -> Result<(), Errno> {
        let number = usize::try_from(fd).map_err(|_| Errno::BADF)?;
        if number >= self.places.len() {
            self.places.resize(number + 1, NOWHERE);
        }
        if self.places[number] != NOWHERE {
            return Err(Errno::EXIST);
        }
        self.places[number] = u32::try_from(self.fds.len()).map_err(|_| Errno::NOMEM)?;
        self.fds.push(PollFd { fd, events: poll_bits(interest), revents: 0 });
        self.tokens.push(token);
        Ok(())
    }

    fn refused(&self, attempt: &'static str, errno: Errno, fd: RawFd) -> WaitError {
        WaitError::refused(self.waiter, attempt, errno).on(fd)
    }

    fn place(&self, fd: RawFd) -> Result<usize, Errno> {
        let number = usize::try_from(fd).map_err(|_| Errno::BADF)?;
        match self.places.get(number) {
            Some(place) if *place != NOWHERE => Ok(*place as usize),
            _ => Err(Errno::NOENT),
        }
    }

    fn forget(&mut self, place: usize) {
        let fd = self.fds.swap_remove(place).fd;
        self.tokens.swap_remove(place);
        self.places[number(fd)] = NOWHERE;
        if let Some(moved) = self.fds.get(place) {
            self.places[number(moved.fd)] = u32::try_from(place).expect("it is already a waker");
        }
    }
}

fn number(fd: RawFd) -> usize {
    usize::try_from(fd).expect("negative descriptors are invalid")
}

fn poll_bits(interest: Interest) -> i16 {
    i16::try_from(interest.bits()).expect("poll's bits are 16")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A table of these descriptors, each with its number as the token.
    fn table(fds: &[RawFd]) -> Watched {
        let mut watched = Watched::new("test", 0);
        for fd in fds {
            watched.insert(*fd, Interest::READ, u64::from(fd.unsigned_abs())).unwrap();
        }
        watched
    }

    fn ready(watched: &mut Watched, fds: &[RawFd], bits: i16) {
        for fd in watched.fds() {
            fd.revents = if fds.contains(&fd.fd) { bits } else { 0 };
        }
    }

    fn tokens(events: &Events) -> Vec<u64> {
        events.iter().map(|event| event.token).collect()
    }

    #[test]
    fn a_removed_one_leaves_the_others_where_they_are_found() {
        let mut watched = table(&[7, 3, 9, 4]);
        assert_eq!(watched.insert(9, Interest::READ, 0), Err(Errno::EXIST));
        watched.forget(watched.place(3).unwrap());
        assert_eq!(watched.place(3), Err(Errno::NOENT));
        watched.insert(3, Interest::WRITE, 33).unwrap();
        assert_eq!(watched.tokens.len(), 4);
        let mut events = Events::with_capacity(8);
        ready(&mut watched, &[3, 4, 7], 1);
        watched.collect(3, &mut events);
        let mut seen = tokens(&events);
        seen.sort_unstable();
        assert_eq!(seen, [4, 7, 33]);
    }

    #[test]
    fn what_there_was_no_room_for_comes_first_the_next_time() {
        let mut watched = table(&[0, 1, 2, 3, 4]);
        let mut seen = Vec::new();
        let mut events = Events::with_capacity(2);
        for _ in 0..5 {
            ready(&mut watched, &[0, 1, 2, 3, 4], 1);
            events.clear();
            watched.collect(5, &mut events);
            seen.extend(tokens(&events));
        }
        assert_eq!(seen, [0, 1, 2, 3, 4, 0, 1, 2, 3, 4]);
    }

    #[test]
    fn closed_ones_are_told_once_and_forgotten() {
        let mut watched = table(&[0, 1, 2, 3]);
        ready(&mut watched, &[0, 3], 0x20);
        let mut events = Events::with_capacity(8);
        watched.collect(2, &mut events);
        assert_eq!((tokens(&events), watched.tokens.len()), (vec![0, 3], 2));
        assert!(watched.place(1).is_ok() && watched.place(2).is_ok());
        watched.insert(0, Interest::READ, 10).unwrap();
    }
}
