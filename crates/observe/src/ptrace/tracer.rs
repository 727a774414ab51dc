//! The two threads of a watch: the tracer, which sleeps for its tracees, and the requesting thread,
//! which sleeps for signals, the deadline, and the tracer's end.

use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use iotomy_record::Exit;
use iotomy_sys::ptrace::{Status, WaitResult, news_of};
use iotomy_sys::thread_wake::ThreadWake;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::session::Flags;
use crate::interrupts::Interrupts;
use crate::{OptionalViewer, Viewer, ViewerRequest};

/// How a watch treats signals, and when it ends.
pub(super) struct Guide<'a> {
    pub(super) wake: &'a ThreadWake,
    /// Signals to heed; `None` to leave them for later.
    pub(super) interrupts: Option<&'a Interrupts>,
    /// The command signals are passed on to while it runs. Without one, they end the watch.
    pub(super) command: Option<u32>,
    pub(super) duration: Option<Duration>,
    /// The viewer.
    pub(super) viewer: OptionalViewer<'a>,
}

/// Runs `body` on a thread of its own, whose end releases all tracees; tells it to stop when it is
/// time.
pub(super) fn on_tracer_thread<T: Send>(
    mut guide: Guide<'_>,
    body: impl FnOnce(&Flags) -> T + Send,
) -> io::Result<T> {
    let (rung, bell) = std::io::pipe()?;
    let flags = Flags::new(guide.viewer.is_some(), bell);
    let tid = AtomicU32::new(0);
    let (ended, running) = std::io::pipe()?;
    std::thread::scope(|scope| {
        let work = || {
            // Closed when this returns, or panics: the other thread waits for it.
            let _running = running;
            tid.store(guide.wake.enter(), Ordering::Relaxed);
            body(&flags)
        };
        let thread = std::thread::Builder::new().name("tracer".into()).spawn_scoped(scope, work)?;
        guide.until_stop(&flags, &tid, ended.as_fd(), &rung);
        flags.stop.store(true, Ordering::Relaxed);
        while !is_ready(ended.as_fd(), Duration::from_millis(1)) {
            guide.wake.wake(tid.load(Ordering::Relaxed));
        }
        guide.tell(&flags, &rung);
        Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

impl Guide<'_> {
    /// Returns when the watch is to end or has ended.
    fn until_stop(
        &mut self,
        flags: &Flags,
        tid: &AtomicU32,
        ended: BorrowedFd<'_>,
        rung: &PipeReader,
    ) {
        let deadline = self.duration.and_then(|length| Instant::now().checked_add(length));
        let wait = |guide: &Self| {
            let bells = [Some(rung.as_fd()), guide.interrupts.map(AsFd::as_fd)];
            sleep(ended, &bells, deadline, guide.viewer.as_deref())
        };
        // When not even waiting works, the watch ends: the command does not.
        while let Ok(has_ended) = wait(self) {
            self.tell(flags, rung);
            let is_past = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if has_ended || is_past || self.ends_it(flags) {
                return;
            }
            let wake = self.wake;
            let mut look = || {
                Ok(flags.snapshot(|| {
                    wake.wake(tid.load(Ordering::Relaxed));
                    !is_ready(ended, Duration::ZERO)
                }))
            };
            if let Some(viewer) = &mut self.viewer
                && viewer.update(Some(&mut look)) == ViewerRequest::End
            {
                return;
            }
        }
    }

    /// Tells the viewer of a call that fulfilled the condition of a watch that goes on.
    fn tell(&mut self, flags: &Flags, mut rung: &PipeReader) {
        // It is rung just after the call was left: where that was told of by then, it wakes for nothing.
        if is_ready(rung.as_fd(), Duration::ZERO) {
            let _ = rung.read(&mut [0]);
        }
        let Some((call, now)) = flags.told() else { return };
        if let Some(viewer) = &mut self.viewer {
            viewer.on_firing(call, Ok(now));
        }
    }

    /// Passes signals on to the command; returns whether one ends the watch.
    fn ends_it(&mut self, flags: &Flags) -> bool {
        while let Some(interrupt) = self.interrupts.and_then(Interrupts::next) {
            if let Some(viewer) = &mut self.viewer
                && viewer.takes_signal(interrupt.number())
            {
                continue;
            }
            match self.command {
                // A command that has just been reaped, before the flag is set, cannot receive it.
                Some(pid)
                    if !flags.root_ended.load(Ordering::Relaxed) && interrupt.pass_on(pid) => {}
                _ if interrupt.ends_a_watch() => return true,
                _ => {}
            }
        }
        false
    }
}

/// Waits for a command that is not watched any more, passing signals on to it.
pub(super) fn outlive(
    pid: u32,
    interrupts: &Interrupts,
    mut viewer: OptionalViewer<'_>,
) -> Option<Exit> {
    let process = Pid::from_raw(pid.cast_signed())?;
    let process = pidfd_open(process, PidfdFlags::empty()).ok()?;
    loop {
        if let Some(viewer) = &mut viewer {
            viewer.update(None);
        }
        let signals = [Some(interrupts.as_fd())];
        let ended = sleep(process.as_fd(), &signals, None, viewer.as_deref()).ok()?;
        while let Some(interrupt) = interrupts.next() {
            if let Some(viewer) = &mut viewer
                && viewer.takes_signal(interrupt.number())
            {
                continue;
            }
            interrupt.pass_on(pid);
        }
        match news_of(pid).ok()? {
            WaitResult::Task(_, Status::Exited(code)) => return Some(Exit::Code(code)),
            WaitResult::Task(_, Status::Killed(signal)) => return Some(Exit::Signal(signal)),
            WaitResult::Nobody => return None,
            // A last stop for a tracer that is just ending, or threads that are not quite gone.
            WaitResult::Task(_, Status::Stopped(_)) | WaitResult::Nothing if ended => {
                std::thread::yield_now();
            }
            WaitResult::Task(_, Status::Stopped(_)) | WaitResult::Nothing => {}
        }
    }
}

/// Sleeps until there is something on `fd` or on one of the others, `until`, or something for the
/// viewer; returns whether it was `fd`.
fn sleep(
    fd: BorrowedFd<'_>,
    others: &[Option<BorrowedFd<'_>>],
    until: Option<Instant>,
    viewer: Option<&dyn Viewer>,
) -> io::Result<bool> {
    let due = viewer.and_then(Viewer::deadline);
    let until = [until, due].into_iter().flatten().min();
    let left = until.map(|until| until.saturating_duration_since(Instant::now()));
    // A length of centuries, which the kernel's clock cannot hold, is for ever.
    let left = left.and_then(|left| Timespec::try_from(left).ok());
    let mut waits = vec![PollFd::from_borrowed_fd(fd, PollFlags::IN)];
    waits.extend(others.iter().flatten().map(|fd| PollFd::new(fd, PollFlags::IN)));
    let wakers = viewer.map(Viewer::wakers).unwrap_or_default();
    waits.extend(wakers.iter().map(|waker| PollFd::new(waker, PollFlags::IN)));
    match rustix::event::poll(&mut waits, left.as_ref()) {
        Ok(_) => Ok(!waits[0].revents().is_empty()),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn is_ready(fd: BorrowedFd<'_>, within: Duration) -> bool {
    // A failure to wait is no reason to go on for ever: joining waits, too.
    sleep(fd, &[], Some(Instant::now() + within), None).unwrap_or(true)
}
