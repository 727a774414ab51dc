//! The member's side of the fork: system calls and words of the board only, without locks or the
//! parent's memory. Rings, and waiters of the registry, use the allocator besides.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use iotomy_sys::accept_ring::AcceptRing;
use iotomy_sys::epoll::{Change, EpollEvent, epoll_create1, epoll_ctl, epoll_wait};
use iotomy_sys::poll::{PollFd, poll};
use iotomy_sys::select::{FD_SETSIZE, FdSet, select};
use iotomy_waiters::{Events, Interest, Settings, Trigger, WaitError, Waiter, waiter};
use rustix::event::epoll::EventFlags;
use rustix::io::{Errno, dup};
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, accept_with, bind, listen, socket_with, sockopt,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::plan::{HerdPlan, SharedSet, Wait};
use super::slot::{ACCEPTS, CALL, EMPTY, ERRNO, READY, WAKES};

/// The calls in which a member can fail.
pub(super) const CALLS: [&str; 13] = [
    "accept4",
    "select",
    "poll",
    "epoll_create1",
    "epoll_ctl",
    "epoll_wait",
    "io_uring_setup",
    "io_uring_enter",
    "dup",
    "socket",
    "bind",
    "listen",
    WAITER,
];

/// What a waiter of the registry does, in [`CALLS`] the last.
const WAITER: &str = "the waiter";

/// Maximum number of descriptors a member waits for: the capacity of a set of select.
const MOST: usize = FD_SETSIZE;

/// The backlog of a member's own listener; the kernel limits it to `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

const INPUT: EventFlags = EventFlags::IN;

struct Failed(&'static str, io::Error);

fn failed<E: Into<io::Error>>(call: &'static str) -> impl FnOnce(E) -> Failed {
    move |error| Failed(call, error.into())
}

fn refused(error: WaitError) -> Failed {
    Failed(error.call.unwrap_or(WAITER), error.source)
}

/// The type of a result that never occurs: a member works until its parent ends it.
enum Never {}

/// Waits for connections until it is killed; returns when a call has failed.
pub(super) fn run(plan: &HerdPlan<'_>, slot: &[AtomicU64]) {
    let Err(Failed(call, error)) = serve(plan, slot);
    // A waiter of the registry can have calls of its own.
    let place = CALLS.iter().position(|known| *known == call).unwrap_or(CALLS.len() - 1);
    slot[CALL].store(place as u64, Ordering::Relaxed);
    let errno = error.raw_os_error().unwrap_or(Errno::IO.raw_os_error());
    slot[ERRNO].store(u64::from(errno.unsigned_abs()), Ordering::Release);
}

fn serve(plan: &HerdPlan<'_>, slot: &[AtomicU64]) -> Result<Never, Failed> {
    raise_limit();
    let member = Member { listener: plan.listener, slot };
    match plan.duplicates {
        0 => wait(&member, plan, &[plan.listener.as_raw_fd()]),
        _ => wait_with_duplicates(&member, plan),
    }
}

/// Not inlined, because the memory of a member without duplicates is measured.
#[inline(never)]
fn wait_with_duplicates(member: &Member<'_>, plan: &HerdPlan<'_>) -> Result<Never, Failed> {
    let mut numbers = [0; MOST];
    let all = plan.duplicates as usize + 1;
    let numbers = numbers.get_mut(..all).ok_or(Errno::MFILE).map_err(failed("dup"))?;
    numbers[0] = plan.listener.as_raw_fd();
    for number in &mut numbers[1..] {
        *number = dup(plan.listener).map_err(failed("dup"))?.into_raw_fd();
    }
    wait(member, plan, numbers)
}

fn wait(member: &Member<'_>, plan: &HerdPlan<'_>, numbers: &[RawFd]) -> Result<Never, Failed> {
    match plan.wait {
        Wait::Accept => member.by_accept(),
        Wait::Select => member.by_select(numbers),
        Wait::Poll => member.by_poll(numbers),
        Wait::Epoll => member.by_epoll(numbers, INPUT, None),
        Wait::EpollExclusive => member.by_epoll(numbers, INPUT | EventFlags::EXCLUSIVE, None),
        Wait::EpollExclusiveAgain(every) => {
            member.by_epoll(numbers, INPUT | EventFlags::EXCLUSIVE, Some(every))
        }
        Wait::IoUring => member.by_ring(numbers.len()),
        Wait::ReusePort => {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let own = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)
                .map_err(failed("socket"))?;
            sockopt::set_socket_reuseport(&own, true).map_err(failed("bind"))?;
            bind(&own, &plan.address).map_err(failed("bind"))?;
            listen(&own, BACKLOG).map_err(failed("listen"))?;
            let alone = Member { listener: own.as_fd(), slot: member.slot };
            alone.by_epoll(&[own.as_raw_fd()], INPUT, None)
        }
        Wait::Waiter(name) => match plan.set {
            Some(SharedSet(set)) => member.at_set(&mut **set.borrow_mut()),
            None => member.by_waiter(name),
        },
    }
}

/// Raises the soft limit on descriptors, which after the fork belongs to this process alone.
fn raise_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // If the limit is too low, the call that needs more descriptors reports it.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// A member that waits on a socket.
struct Member<'a> {
    listener: BorrowedFd<'a>,
    slot: &'a [AtomicU64],
}

impl Member<'_> {
    fn ready(&self) {
        self.slot[READY].store(1, Ordering::Release);
    }

    fn count(&self, word: usize) {
        self.slot[word].fetch_add(1, Ordering::Release);
    }

    /// Accepts a connection, if there is one, and ends it; counts if there is none.
    fn accept(&self) -> Result<bool, Failed> {
        let has_accepted = self.accept_next()?;
        if !has_accepted {
            self.count(EMPTY);
        }
        Ok(has_accepted)
    }

    fn accept_next(&self) -> Result<bool, Failed> {
        loop {
            match accept_with(self.listener, SocketFlags::CLOEXEC) {
                Ok(connection) => {
                    drop(connection);
                    self.count(ACCEPTS);
                    return Ok(true);
                }
                Err(Errno::AGAIN) => return Ok(false),
                // The client has closed the connection, or a signal arrived.
                Err(Errno::CONNABORTED | Errno::INTR) => {}
                Err(error) => return Err(failed("accept4")(error)),
            }
        }
    }

    fn by_accept(&self) -> Result<Never, Failed> {
        self.ready();
        loop {
            self.accept()?;
            self.count(WAKES);
        }
    }

    fn by_select(&self, numbers: &[RawFd]) -> Result<Never, Failed> {
        let mut all: FdSet = [0; MOST / 64];
        let mut end = 0;
        for fd in numbers.iter().map(|fd| fd.unsigned_abs() as usize) {
            let word = all.get_mut(fd / 64).ok_or(Errno::INVAL).map_err(failed("select"))?;
            *word |= 1 << (fd % 64);
            end = end.max(fd + 1);
        }
        self.ready();
        loop {
            let (mut read, mut write) = (all, [0; MOST / 64]);
            select(end, &mut read, &mut write, None).map_err(failed("select"))?;
            self.count(WAKES);
            self.accept()?;
        }
    }

    fn by_poll(&self, numbers: &[RawFd]) -> Result<Never, Failed> {
        let mut all = [PollFd { fd: -1, events: INPUT.bits() as i16, revents: 0 }; MOST];
        for (entry, fd) in all.iter_mut().zip(numbers) {
            entry.fd = *fd;
        }
        self.ready();
        loop {
            poll(&mut all[..numbers.len()], -1).map_err(failed("poll"))?;
            self.count(WAKES);
            self.accept()?;
        }
    }

    fn by_epoll(
        &self,
        numbers: &[RawFd],
        events: EventFlags,
        again_every: Option<u32>,
    ) -> Result<Never, Failed> {
        let epoll = epoll_create1().map_err(failed("epoll_create1"))?;
        for fd in numbers {
            change(epoll.as_fd(), Change::Add, *fd, events)?;
        }
        let listener = self.listener.as_raw_fd();
        let mut found = [EpollEvent::default(); 64];
        let mut accepted = 0;
        self.ready();
        loop {
            epoll_wait(epoll.as_fd(), &mut found, -1).map_err(failed("epoll_wait"))?;
            self.count(WAKES);
            accepted += u32::from(self.accept()?);
            if again_every == Some(accepted) {
                accepted = 0;
                // Waiters are woken in the order in which they were added: moving to the end shares
                // the work.
                change(epoll.as_fd(), Change::Remove, listener, EventFlags::empty())?;
                change(epoll.as_fd(), Change::Add, listener, events)?;
            }
        }
    }

    /// Waits on a set of its own of a waiter of the registry.
    fn by_waiter(&self, name: &'static str) -> Result<Never, Failed> {
        let found = waiter(name).ok_or(Errno::INVAL).map_err(failed(WAITER))?;
        let mut set = (found.open)(&Settings::default()).map_err(refused)?;
        set.add(self.listener, Interest::READ, 0).map_err(refused)?;
        self.at_set(set.as_mut())
    }

    /// Waits on a set that contains the listener, and takes what an event announces.
    fn at_set(&self, set: &mut dyn Waiter) -> Result<Never, Failed> {
        let trigger = set.declaration().capabilities.trigger;
        let mut events = Events::with_capacity(1);
        self.ready();
        loop {
            set.wait(&mut events, None).map_err(refused)?;
            self.count(WAKES);
            let has_accepted = self.accept()?;
            match trigger {
                Trigger::Level => {}
                // The others that an edge announced are announced no more.
                Trigger::Edge => while has_accepted && self.accept_next()? {},
                Trigger::OneShot => {
                    set.modify(self.listener, Interest::READ, 0).map_err(refused)?;
                }
            }
        }
    }

    /// Waits on a ring of its own, which uses the allocator.
    fn by_ring(&self, sockets: usize) -> Result<Never, Failed> {
        let mut ring = AcceptRing::new(sockets).map_err(failed("io_uring_setup"))?;
        for _ in 0..sockets {
            ring.arm(self.listener);
        }
        self.ready();
        loop {
            ring.wait().map_err(failed("io_uring_enter"))?;
            self.count(WAKES);
            let mut is_empty = true;
            while let Some(accepted) = ring.next_accepted() {
                match accepted.connection {
                    Ok(connection) => {
                        drop(connection);
                        self.count(ACCEPTS);
                        is_empty = false;
                    }
                    Err(error) => {
                        let none = [Errno::AGAIN, Errno::CONNABORTED, Errno::INTR];
                        if !none.iter().any(|e| error.raw_os_error() == Some(e.raw_os_error())) {
                            return Err(failed("accept4")(error));
                        }
                    }
                }
                if accepted.has_ended {
                    ring.arm(self.listener);
                }
            }
            if is_empty {
                self.count(EMPTY);
            }
        }
    }
}

fn change(
    epoll: BorrowedFd<'_>,
    change: Change,
    fd: RawFd,
    events: EventFlags,
) -> Result<(), Failed> {
    let event = EpollEvent { events: events.bits(), data: 0 };
    epoll_ctl(epoll, change, fd, event).map_err(failed("epoll_ctl"))
}
