//! The `dev-poll` waiter.
//!
//! ```text
//! descriptor ──write──▶ epoll_ctl(2)          once
//! ready ones ◀──DP_POLL── epoll_pwait2(2)     each wait, whoever is ready and no others
//! ```
//!
//! `/dev/poll` of Solaris, by the crate `iotomy-ports`: as `epoll`, with regular files. Its entries have no room for
//! a token, so the waiter keeps the tokens; and a write adds to the events of an entry, so an entry is removed
//! before it is written with others.

use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::time::Duration;

use iotomy_ports::{PollEntry, PollSet, REMOVE};
use rustix::io::Errno;

use crate::calls::{exactly, once, rarely};
use crate::deadline::wait_until;
use crate::{
    Calls, Capabilities, Closed, Counts, Events, Interest, Kind, Model, Probe, Ready, Room,
    Trigger, WaitError, Waiter, WaiterDeclaration,
};

const NAME: &str = "dev-poll";

pub(crate) static DECLARATION: WaiterDeclaration = WaiterDeclaration {
    name: NAME,
    summary: "/dev/poll of Solaris, by iotomy-ports",
    description: "A level-triggered epoll set, and a table of what is wanted of each descriptor. \
        A wait takes from the kernel's list of ready descriptors; a change of a descriptor's \
        events removes it and adds it again.",
    man: &["devpoll(7)", "epoll(7)", "epoll_ctl(2)", "epoll_wait(2)", "epoll_pwait2(2)"],
    calls: Calls {
        open: &[once("epoll_create1"), once("eventfd2"), once("epoll_ctl")],
        add: &[once("epoll_ctl")],
        modify: &[exactly(2, "epoll_ctl")],
        remove: &[once("epoll_ctl")],
        wait: &[once("epoll_wait"), rarely("epoll_pwait2")],
    },
    capabilities: Capabilities {
        model: Model::Readiness,
        trigger: Trigger::Level,
        exclusive: false,
        room: Room::Told,
        names_hang_up: true,
        receives: false,
        shared: false,
        inherited: false,
        sleeps: true,
        serves: &Kind::ALL,
        closed: Closed::Silent,
        highest: None,
        timeout_step_ns: 1,
    },
    probe: || match PollSet::new() {
        Ok(_) => Probe::Ready,
        Err(errno) => Probe::Unsupported(format!("open of /dev/poll: {errno}")),
    },
    open: |_| {
        let set = PollSet::new().map_err(|e| WaitError::kernel(NAME, "open", "open", e.into()))?;
        Ok(Box::new(DevPoll { set, tokens: Vec::new(), counts: Counts::default() }))
    },
};

struct DevPoll {
    set: PollSet,
    /// The tokens of what is watched, by the descriptor's number.
    tokens: Vec<Option<u64>>,
    counts: Counts,
}

impl DevPoll {
    fn write(
        &mut self,
        attempt: &'static str,
        fd: RawFd,
        entries: &[PollEntry],
    ) -> Result<(), WaitError> {
        self.set
            .write(entries)
            .map_err(|e| WaitError::kernel(NAME, attempt, "write", e.into()).on(fd))
    }

    /// Refuses what is not watched.
    fn known(&self, attempt: &'static str, fd: RawFd) -> Result<(), WaitError> {
        match token(&self.tokens, fd) {
            Some(_) => Ok(()),
            None => Err(WaitError::refused(NAME, attempt, Errno::NOENT).on(fd)),
        }
    }
}

fn token(tokens: &[Option<u64>], fd: RawFd) -> Option<u64> {
    tokens.get(number(fd)).copied().flatten()
}

fn number(fd: RawFd) -> usize {
    usize::try_from(fd).expect("negative descriptors are invalid")
}

fn wanted(fd: RawFd, interest: Interest) -> PollEntry {
    PollEntry { fd, events: interest.bits() as u16, revents: 0 }
}

fn removed(fd: RawFd) -> PollEntry {
    PollEntry { fd, events: REMOVE, revents: 0 }
}

impl Waiter for DevPoll {
    fn declaration(&self) -> &'static WaiterDeclaration {
        &DECLARATION
    }

    fn add(&mut self, fd: BorrowedFd<'_>, interest: Interest, token: u64) -> Result<(), WaitError> {
        let fd = fd.as_raw_fd();
        if self.known("watch", fd).is_ok() {
            return Err(WaitError::refused(NAME, "watch", Errno::EXIST).on(fd));
        }
        self.write("watch", fd, &[wanted(fd, interest)])?;
        if self.tokens.len() <= number(fd) {
            self.tokens.resize(number(fd) + 1, None);
        }
        self.tokens[number(fd)] = Some(token);
        Ok(())
    }

    fn modify(
        &mut self,
        fd: BorrowedFd<'_>,
        interest: Interest,
        token: u64,
    ) -> Result<(), WaitError> {
        let fd = fd.as_raw_fd();
        self.known("modify", fd)?;
        self.write("modify", fd, &[removed(fd), wanted(fd, interest)])?;
        self.tokens[number(fd)] = Some(token);
        Ok(())
    }

    fn remove(&mut self, fd: BorrowedFd<'_>) -> Result<(), WaitError> {
        let fd = fd.as_raw_fd();
        self.known("remove", fd)?;
        self.write("remove", fd, &[removed(fd)])?;
        self.tokens[number(fd)] = None;
        Ok(())
    }

    fn wait(&mut self, events: &mut Events, timeout: Option<Duration>) -> Result<usize, WaitError> {
        events.clear();
        let (set, tokens, room) = (&self.set, &self.tokens, events.capacity());
        let call = |left| {
            let put = |entry: PollEntry| {
                if let Some(token) = token(tokens, entry.fd) {
                    events.push(token, Ready::from_bits(entry.revents.into()));
                }
            };
            Ok(set.poll(room, left, None, put)?)
        };
        wait_until(timeout, &mut self.counts.interrupted, call)
            .map_err(|e| WaitError::kernel(NAME, "wait", "ioctl DP_POLL", e))?;
        Ok(events.len())
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}
