//! A member's side of the fork: system calls and words of the board, no lock and no parent's memory.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use io_uring::{IoUring, cqueue, opcode, types};

use super::{ACCEPTS, CALL, EMPTY, ERRNO, Plan, READY, WAKES, Wait, end_with, keep_only, leave};
use crate::epoll::{Change, EpollEvent, epoll_create1, epoll_ctl, epoll_wait};
use crate::poll::{PollFd, poll};
use crate::select::{FdSet, select};

/// The calls a member can fail in.
pub(super) const CALLS: [&str; 12] = [
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
];

/// Descriptors a member waits for at most: what a set of select has room for.
const MOST: usize = 1024;

/// The listener, in every member.
const LISTENER: i32 = 0;

/// The backlog of a listener of its own, which the kernel cuts to `net.core.somaxconn`.
const BACKLOG: i32 = 4096;

struct Failed(&'static str, io::Error);

fn failed(call: &'static str) -> impl FnOnce(io::Error) -> Failed {
    move |error| Failed(call, error)
}

/// Waits for connections until it is killed.
pub(super) fn run(parent: libc::pid_t, plan: &Plan<'_>, slot: &[AtomicU64]) -> ! {
    end_with(parent);
    keep_only(plan.listener, plan.epoll);
    let Failed(call, error) = match serve(plan, slot) {
        Ok(never) => never,
        Err(failed) => failed,
    };
    let place = CALLS.iter().position(|known| *known == call).unwrap_or(CALLS.len());
    slot[CALL].store(place as u64, Ordering::Relaxed);
    let errno = error.raw_os_error().unwrap_or(libc::EIO);
    slot[ERRNO].store(u64::from(errno.unsigned_abs()), Ordering::Release);
    leave()
}

fn serve(plan: &Plan<'_>, slot: &[AtomicU64]) -> Result<Failed, Failed> {
    raise_limit();
    for _ in 0..plan.duplicates {
        // SAFETY: takes a plain integer.
        if unsafe { libc::dup(LISTENER) } < 0 {
            return Err(failed("dup")(io::Error::last_os_error()));
        }
    }
    let fds = plan.duplicates as usize + 1;
    match plan.wait {
        Wait::Accept => by_accept(slot),
        Wait::Select => by_select(fds, slot),
        Wait::Poll => by_poll(fds, slot),
        Wait::Epoll => by_epoll(fds, libc::EPOLLIN, None, slot),
        Wait::EpollExclusive => by_epoll(fds, libc::EPOLLIN | libc::EPOLLEXCLUSIVE, None, slot),
        Wait::EpollExclusiveAgain(every) => {
            by_epoll(fds, libc::EPOLLIN | libc::EPOLLEXCLUSIVE, Some(every), slot)
        }
        Wait::EpollOneshot => {
            // An epoll knows a socket by the number it was put in under, too.
            let number = plan.listener.as_raw_fd();
            // SAFETY: takes plain integers; the number is this process's own to give.
            unsafe { libc::dup2(LISTENER, number) };
            by_oneshot(number, slot)
        }
        Wait::IoUring => by_ring(fds, slot),
        Wait::ReusePort => {
            listen_alone(plan)?;
            by_epoll(1, libc::EPOLLIN, None, slot)
        }
    }
}

/// What is inherited is soft, and belongs to this process alone from the fork on.
fn raise_limit() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is room for the structure.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } == 0 {
        limit.rlim_cur = limit.rlim_max;
        // SAFETY: `limit` is a whole structure.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
    }
}

fn ready(slot: &[AtomicU64]) {
    slot[READY].store(1, Ordering::Release);
}

fn count(slot: &[AtomicU64], word: usize) {
    slot[word].fetch_add(1, Ordering::Release);
}

/// Accepts a connection, if there is one, and ends it.
fn accept(slot: &[AtomicU64]) -> Result<bool, Failed> {
    loop {
        let none = std::ptr::null_mut();
        // SAFETY: the address is not asked for.
        let fd = unsafe { libc::accept4(LISTENER, none, none.cast(), libc::SOCK_CLOEXEC) };
        if fd >= 0 {
            end_connection(fd);
            count(slot, ACCEPTS);
            return Ok(true);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EAGAIN) => {
                count(slot, EMPTY);
                return Ok(false);
            }
            // The client has gone, or a signal came.
            Some(libc::ECONNABORTED | libc::EINTR) => {}
            _ => return Err(failed("accept4")(error)),
        }
    }
}

fn end_connection(fd: i32) {
    // SAFETY: the descriptor was just made by accept and has no other owner.
    unsafe { libc::close(fd) };
}

fn by_accept(slot: &[AtomicU64]) -> Result<Failed, Failed> {
    ready(slot);
    loop {
        accept(slot)?;
        count(slot, WAKES);
    }
}

fn by_select(fds: usize, slot: &[AtomicU64]) -> Result<Failed, Failed> {
    let mut all: FdSet = [0; MOST / 64];
    for fd in 0..fds.min(MOST) {
        all[fd / 64] |= 1 << (fd % 64);
    }
    ready(slot);
    loop {
        let (mut read, mut write) = (all, [0; MOST / 64]);
        select(fds.min(MOST), &mut read, &mut write, None).map_err(failed("select"))?;
        count(slot, WAKES);
        accept(slot)?;
    }
}

fn by_poll(fds: usize, slot: &[AtomicU64]) -> Result<Failed, Failed> {
    let mut all = [PollFd { fd: -1, events: libc::POLLIN, revents: 0 }; MOST];
    for (entry, fd) in all.iter_mut().zip(0..fds as i32) {
        entry.fd = fd;
    }
    ready(slot);
    loop {
        poll(&mut all[..fds.min(MOST)], -1).map_err(failed("poll"))?;
        count(slot, WAKES);
        accept(slot)?;
    }
}

fn watch(epoll: BorrowedFd<'_>, change: Change, fd: i32, events: i32) -> Result<(), Failed> {
    let event = EpollEvent { events: events.cast_unsigned(), data: 0 };
    epoll_ctl(epoll, change, fd, event).map_err(failed("epoll_ctl"))
}

fn by_epoll(
    fds: usize,
    events: i32,
    again_every: Option<u32>,
    slot: &[AtomicU64],
) -> Result<Failed, Failed> {
    let epoll: OwnedFd = epoll_create1().map_err(failed("epoll_create1"))?;
    for fd in 0..fds as i32 {
        watch(epoll.as_fd(), Change::Add, fd, events)?;
    }
    let mut found = [EpollEvent::default(); 64];
    let mut accepted = 0;
    ready(slot);
    loop {
        epoll_wait(epoll.as_fd(), &mut found, -1).map_err(failed("epoll_wait"))?;
        count(slot, WAKES);
        accepted += u32::from(accept(slot)?);
        if again_every == Some(accepted) {
            accepted = 0;
            // Those that wait are woken in the order they came: to go to the end is to share.
            watch(epoll.as_fd(), Change::Remove, LISTENER, 0)?;
            watch(epoll.as_fd(), Change::Add, LISTENER, events)?;
        }
    }
}

/// The epoll that all share is number 1.
fn by_oneshot(listener: i32, slot: &[AtomicU64]) -> Result<Failed, Failed> {
    // SAFETY: it was put there before, and is open for as long as this process is.
    let epoll = unsafe { BorrowedFd::borrow_raw(1) };
    let mut found = [EpollEvent::default(); 1];
    ready(slot);
    loop {
        epoll_wait(epoll, &mut found, -1).map_err(failed("epoll_wait"))?;
        count(slot, WAKES);
        accept(slot)?;
        watch(epoll, Change::Modify, listener, libc::EPOLLIN | libc::EPOLLONESHOT)?;
    }
}

/// The allocator may be used here: the C library makes it whole behind a fork.
fn by_ring(fds: usize, slot: &[AtomicU64]) -> Result<Failed, Failed> {
    let room = u32::try_from(fds).unwrap_or(u32::MAX);
    let mut ring = IoUring::new(room.next_power_of_two()).map_err(failed("io_uring_setup"))?;
    for fd in 0..fds as i32 {
        arm(&mut ring, fd);
    }
    ready(slot);
    loop {
        ring.submit_and_wait(1).map_err(failed("io_uring_enter"))?;
        count(slot, WAKES);
        let mut is_empty = true;
        loop {
            let entry = ring.completion().next();
            let Some(entry) = entry else { break };
            let result = entry.result();
            if result >= 0 {
                end_connection(result);
                count(slot, ACCEPTS);
                is_empty = false;
            } else if ![-libc::EAGAIN, -libc::ECONNABORTED, -libc::EINTR].contains(&result) {
                return Err(failed("accept4")(io::Error::from_raw_os_error(-result)));
            }
            if !cqueue::more(entry.flags()) {
                arm(&mut ring, entry.user_data() as i32);
            }
        }
        if is_empty {
            count(slot, EMPTY);
        }
    }
}

fn arm(ring: &mut IoUring, fd: i32) {
    let request = opcode::AcceptMulti::new(types::Fd(fd)).build().user_data(fd as u64);
    // SAFETY: the request refers to no memory.
    let queued = unsafe { ring.submission().push(&request) };
    // There is room for one request a descriptor, and no more are ever queued.
    let _ = queued;
}

/// Puts a listening socket of its own in the place of the listener.
fn listen_alone(plan: &Plan<'_>) -> Result<(), Failed> {
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: takes plain integers.
    let fd = unsafe { libc::socket(libc::AF_INET, kind, 0) };
    if fd < 0 {
        return Err(failed("socket")(io::Error::last_os_error()));
    }
    bind(fd, plan.address).map_err(failed("bind"))?;
    // SAFETY: takes plain integers.
    if unsafe { libc::listen(fd, BACKLOG) } != 0 {
        return Err(failed("listen")(io::Error::last_os_error()));
    }
    // SAFETY: takes plain integers; what was number 0 is not needed any more.
    unsafe { libc::dup2(fd, LISTENER) };
    // SAFETY: made above and not used any more.
    unsafe { libc::close(fd) };
    Ok(())
}

/// Binds a socket to an address that others may share.
pub(super) fn bind(fd: i32, address: SocketAddr) -> io::Result<()> {
    let on: libc::c_int = 1;
    let size = size_of::<libc::c_int>() as libc::socklen_t;
    let option = (&raw const on).cast();
    // SAFETY: the option is one readable integer.
    if unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_REUSEPORT, option, size) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let address = super::clients::raw_address(address);
    let size = size_of::<libc::sockaddr_in>() as libc::socklen_t;
    // SAFETY: the address is a whole structure of that size.
    match unsafe { libc::bind(fd, (&raw const address).cast(), size) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
