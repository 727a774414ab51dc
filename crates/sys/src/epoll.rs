//! `epoll(7)` by its own calls: libraries make `epoll_pwait(2)` of `epoll_wait(2)`.

use std::arch::asm;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

/// `struct epoll_event`, which is packed on x86-64.
#[cfg_attr(target_arch = "x86_64", repr(C, packed))]
#[cfg_attr(not(target_arch = "x86_64"), repr(C))]
#[derive(Debug, Clone, Copy, Default)]
pub struct EpollEvent {
    /// `EPOLLIN`…
    pub events: u32,
    /// The caller's value.
    pub data: u64,
}

/// The operations of `epoll_ctl(2)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// `EPOLL_CTL_ADD`.
    Add,
    /// `EPOLL_CTL_MOD`.
    Modify,
    /// `EPOLL_CTL_DEL`.
    Remove,
}

/// `int epoll_create1(EPOLL_CLOEXEC)`.
///
/// # Errors
/// As epoll_create1(2).
pub fn epoll_create1() -> io::Result<OwnedFd> {
    // SAFETY: takes a flag and makes a descriptor.
    let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just made the descriptor and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// `int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)`.
///
/// # Errors
/// As epoll_ctl(2).
#[inline]
pub fn epoll_ctl(
    epoll: BorrowedFd<'_>,
    change: Change,
    fd: RawFd,
    mut event: EpollEvent,
) -> io::Result<()> {
    let op = match change {
        Change::Add => libc::EPOLL_CTL_ADD,
        Change::Modify => libc::EPOLL_CTL_MOD,
        Change::Remove => libc::EPOLL_CTL_DEL,
    };
    let event = (&raw mut event).cast();
    // SAFETY: the kernel reads one `epoll_event`.
    let done = unsafe { libc::epoll_ctl(epoll.as_raw_fd(), op, fd, event) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// `int epoll_wait(int epfd, struct epoll_event *events, int maxevents, int timeout)`; how many
/// events there are.
///
/// Made by the instruction itself, followed by a call to the next line. On AMD's CPUs from before
/// 2024 the kernel returns through thunks (`Safe RET`, against speculative return stack overflow)
/// that fill the CPU's stack of return addresses; the program's first `ret` after a system call is
/// then mispredicted, which is slow. The call puts an address of this program there: a
/// misprediction then takes 6 ns for each return up to the loop (`wait-peers returns`), as on
/// kernels without such thunks.
///
/// # Errors
/// As epoll_wait(2).
#[inline]
pub fn epoll_wait(
    epoll: BorrowedFd<'_>,
    events: &mut [EpollEvent],
    timeout_ms: i32,
) -> io::Result<usize> {
    let room = i32::try_from(events.len()).unwrap_or(i32::MAX);
    // SAFETY: the slice has that many.
    unsafe { wait_at(epoll.as_raw_fd(), events.as_mut_ptr(), room, timeout_ms) }
}

/// # Safety
/// There is room for so many events.
#[inline]
unsafe fn wait_at(
    fd: RawFd,
    start: *mut EpollEvent,
    room: i32,
    timeout_ms: i32,
) -> io::Result<usize> {
    let mut register: i64 = libc::SYS_epoll_wait;
    // SAFETY: the kernel writes at most `room` events, for which there is room; the instruction
    // overwrites rcx and r11, which are named; what the call puts on the stack is taken away again,
    // which no shadow stack hears of, as programs made by Rust run without one.
    unsafe {
        asm!(
            "syscall",
            "call 2f",
            "int3",
            "2: lea rsp, [rsp + 8]",
            inlateout("rax") register,
            in("rdi") fd,
            in("rsi") start,
            in("rdx") room,
            in("r10") timeout_ms,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    // A number below 0 is the negated error, which is far above −2³¹.
    usize::try_from(register).map_err(|_| io::Error::from_raw_os_error(-(register as i32)))
}

/// `int epoll_pwait2(int epfd, struct epoll_event *events, int maxevents, const struct timespec
/// *timeout, const sigset_t *sigmask)`: as `epoll_wait`, to the nanosecond. No timeout waits without
/// end. The mask's lowest bit is signal 1; without one the thread's own stays.
///
/// # Errors
/// As epoll_pwait2(2).
pub fn epoll_pwait2(
    epoll: BorrowedFd<'_>,
    events: &mut [EpollEvent],
    timeout: Option<Duration>,
    mask: Option<u64>,
) -> io::Result<usize> {
    let room = i32::try_from(events.len()).unwrap_or(i32::MAX);
    // SAFETY: the slice has that many.
    unsafe { wait_long_at(epoll.as_raw_fd(), events.as_mut_ptr(), room, timeout, mask) }
}

/// # Safety
/// There is room for so many events.
unsafe fn wait_long_at(
    fd: RawFd,
    start: *mut EpollEvent,
    room: i32,
    timeout: Option<Duration>,
    mask: Option<u64>,
) -> io::Result<usize> {
    let limit = timeout.map(|timeout| libc::timespec {
        tv_sec: timeout.as_secs().try_into().unwrap_or(libc::time_t::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let mask = mask.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the kernel writes at most `room` events, for which there is room, and reads a
    // `timespec` and a mask of 8 bytes that live during the call, or none.
    let count =
        unsafe { libc::syscall(libc::SYS_epoll_pwait2, fd, start, room, limit, mask, 8usize) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// Room for events on the stack. Nothing is written to it before the kernel does: to fill the room for hundreds
/// takes as long as to ask for one.
#[derive(Debug)]
pub struct EventBuffer<const ROOM: usize> {
    events: [MaybeUninit<EpollEvent>; ROOM],
    /// How many the kernel has written.
    filled: usize,
}

impl<const ROOM: usize> EventBuffer<ROOM> {
    /// Without events.
    #[inline]
    #[must_use]
    pub const fn new() -> Self {
        Self { events: [const { MaybeUninit::uninit() }; ROOM], filled: 0 }
    }

    /// [`epoll_wait`] for no more than `most` events; none are left of an earlier wait.
    ///
    /// # Errors
    /// As epoll_wait(2).
    #[inline]
    pub fn wait(
        &mut self,
        epoll: BorrowedFd<'_>,
        most: usize,
        timeout_ms: i32,
    ) -> io::Result<usize> {
        self.filled = 0;
        let (room, start) = (most.min(ROOM) as i32, self.events.as_mut_ptr().cast());
        // SAFETY: there is room for `ROOM` events.
        self.filled = unsafe { wait_at(epoll.as_raw_fd(), start, room, timeout_ms) }?;
        Ok(self.filled)
    }

    /// [`epoll_pwait2`] for no more than `most` events, with the thread's own mask; none are left of an
    /// earlier wait.
    ///
    /// # Errors
    /// As epoll_pwait2(2).
    pub fn wait_for(
        &mut self,
        epoll: BorrowedFd<'_>,
        most: usize,
        timeout: Duration,
    ) -> io::Result<usize> {
        self.filled = 0;
        let (room, start) = (most.min(ROOM) as i32, self.events.as_mut_ptr().cast());
        // SAFETY: as above.
        let waited = unsafe { wait_long_at(epoll.as_raw_fd(), start, room, Some(timeout), None) };
        self.filled = waited?;
        Ok(self.filled)
    }

    /// Forgets the events of the last wait.
    #[inline]
    pub fn clear(&mut self) {
        self.filled = 0;
    }

    /// The events of the last wait.
    #[inline]
    #[must_use]
    pub fn events(&self) -> &[EpollEvent] {
        // SAFETY: the kernel has written so many, from the first on.
        unsafe { std::slice::from_raw_parts(self.events.as_ptr().cast(), self.filled) }
    }
}

impl<const ROOM: usize> Default for EventBuffer<ROOM> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsFd;

    #[test]
    fn what_was_given_comes_back_with_an_event() {
        assert_eq!(size_of::<EpollEvent>(), size_of::<libc::epoll_event>());
        let epoll = epoll_create1().unwrap();
        let (out, mut into) = io::pipe().unwrap();
        let asked = EpollEvent { events: libc::EPOLLIN.unsigned_abs(), data: u64::MAX - 1 };
        epoll_ctl(epoll.as_fd(), Change::Add, out.as_raw_fd(), asked).unwrap();
        let mut events = [EpollEvent::default(); 4];
        assert_eq!(epoll_wait(epoll.as_fd(), &mut events, 0).unwrap(), 0);
        into.write_all(b"a").unwrap();
        assert_eq!(epoll_wait(epoll.as_fd(), &mut events, -1).unwrap(), 1);
        assert_eq!({ events[0].data }, u64::MAX - 1);
        let again = epoll_ctl(epoll.as_fd(), Change::Add, out.as_raw_fd(), asked).unwrap_err();
        assert_eq!(again.raw_os_error(), Some(libc::EEXIST));
    }

    #[test]
    fn a_buffer_has_what_its_last_wait_has_told() {
        let epoll = epoll_create1().unwrap();
        let pipes: Vec<_> = (0..3).map(|_| io::pipe().unwrap()).collect();
        for (at, (out, into)) in pipes.iter().enumerate() {
            let asked = EpollEvent { events: libc::EPOLLIN.unsigned_abs(), data: at as u64 };
            epoll_ctl(epoll.as_fd(), Change::Add, out.as_raw_fd(), asked).unwrap();
            (&*into).write_all(b"a").unwrap();
        }
        let mut buffer = EventBuffer::<2>::new();
        assert!(buffer.events().is_empty());
        assert_eq!(buffer.wait(epoll.as_fd(), 5, 0).unwrap(), 2);
        assert_eq!(buffer.events().len(), 2);
        assert_eq!(buffer.wait_for(epoll.as_fd(), 1, Duration::from_secs(9)).unwrap(), 1);
        assert!(buffer.events().iter().all(|event| event.data < 3));
        assert!(buffer.wait(epoll.as_fd(), 0, 0).is_err());
        assert!(buffer.events().is_empty());
        assert_eq!(buffer.wait(epoll.as_fd(), 2, 0).unwrap(), 2);
        buffer.clear();
        assert!(buffer.events().is_empty());
    }
}
