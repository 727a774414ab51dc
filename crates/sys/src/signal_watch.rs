//! Counts of the signals that come to this process, beside what the program does with them.
//!
//! The handler of a watched signal is one of this module: it counts, tells those who watch, and then does
//! what the program wants of the signal, which a library that replaces `sigaction(2)` says here ([`set`]).
//! So the program needs no mask, and its handlers run as ever. A signal that all threads block is counted
//! when it is pending.
//!
//! The tricky invariant: a signal that was counted while it was pending (`is_counted`) is not counted again
//! when it is handled. Whoever finds it pending marks it *before* it looks again, so that a handler that
//! runs between the two either counts it or takes the mark, and the other one learns which.

use std::cell::{Cell, UnsafeCell};
use std::ffi::{c_int, c_void};
use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::forks;
use crate::private_fd::PrivateFd;

/// Signals are numbered from 1 to this.
const HIGHEST: usize = 64;

unsafe extern "C" {
    /// The C library's own `sigaction(2)`, whichever function has that name.
    fn __sigaction(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int;
}

/// What is known of a signal.
struct Signal {
    /// How often it came.
    came: AtomicU64,
    /// Whether the one that is pending was counted.
    is_counted: AtomicBool,
    /// An eventfd to which its handler writes, or -1.
    bell: AtomicI32,
}

static SIGNALS: [Signal; HIGHEST + 1] = [const {
    Signal { came: AtomicU64::new(0), is_counted: AtomicBool::new(false), bell: AtomicI32::new(-1) }
}; HIGHEST + 1];

/// Whether a signal was ever watched.
static IS_USED: AtomicBool = AtomicBool::new(false);

/// Those that are watched.
static WATCHED: Mutex<[Weak<Descriptors>; HIGHEST + 1]> =
    Mutex::new([const { Weak::new() }; HIGHEST + 1]);

thread_local! {
    /// How many watched signals came to this thread of which the program has no handler.
    static UNHANDLED: Cell<u64> = const { Cell::new(0) };
}

/// What the program wants of each watched signal; `None` of the others.
struct Wanted {
    is_locked: AtomicBool,
    actions: UnsafeCell<[Option<libc::sigaction>; HIGHEST + 1]>,
}

// SAFETY: the actions are used only by who holds the lock.
unsafe impl Sync for Wanted {}

static WANTED: Wanted =
    Wanted { is_locked: AtomicBool::new(false), actions: UnsafeCell::new([None; HIGHEST + 1]) };

impl Wanted {
    /// Does something with the action of a signal. Whoever holds the lock is not interrupted, so handlers
    /// may wait for it.
    fn with<T>(&self, number: usize, act: impl FnOnce(&mut Option<libc::sigaction>) -> T) -> T {
        let mut all = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: fills the set in.
        unsafe { libc::sigfillset(all.as_mut_ptr()) };
        let mut before = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: the first set is filled in, and there is room for the second.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
        while self.is_locked.swap(true, Ordering::Acquire) {
            std::hint::spin_loop();
        }
        // SAFETY: this thread holds the lock.
        let actions = unsafe { &mut *self.actions.get() };
        let done = act(&mut actions[number]);
        self.is_locked.store(false, Ordering::Release);
        // SAFETY: the set was filled in by the first call.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), null_mut()) };
        done
    }
}

/// A child has the lock as it was, and not the thread that held it.
extern "C" fn in_child() {
    WANTED.is_locked.store(false, Ordering::Release);
}

/// The descriptors that tell of a signal.
#[derive(Debug)]
struct Descriptors {
    number: usize,
    /// Which process made them: a child has copies that its parent is told by, and may have closed them.
    depth: u64,
    /// Readable from the first signal that was handled; each one is an edge.
    bell: PrivateFd,
    /// A signalfd, which is never read: readable while the signal is pending.
    pending: PrivateFd,
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        let mut watched = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
        // Somebody may have begun to watch it again meanwhile.
        if watched[self.number].strong_count() > 0 {
            return;
        }
        watched[self.number] = Weak::new();
        SIGNALS[self.number].bell.store(-1, Ordering::SeqCst);
        WANTED.with(self.number, |wanted| {
            if let Some(action) = wanted.take() {
                // SAFETY: the action is the program's own.
                unsafe { __sigaction(self.number as c_int, &raw const action, null_mut()) };
            }
        });
    }
}

/// A signal that is watched for as long as this lives.
#[derive(Debug)]
pub struct Watched(Arc<Descriptors>);

impl Watched {
    /// Watches a signal from now on.
    ///
    /// # Errors
    /// `EINVAL` if it is no signal, or one that cannot be handled; `EMFILE` and `ENFILE`, as
    /// eventfd(2) and signalfd(2).
    pub fn begin(signal: i32) -> io::Result<Self> {
        let number = usize::try_from(signal).ok().filter(|number| (1..=HIGHEST).contains(number));
        let number = number.ok_or_else(|| io::Error::from_raw_os_error(libc::EINVAL))?;
        let depth = forks::depth();
        // Goes after the lock, which its end takes.
        let earlier;
        let mut watched = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
        earlier = watched[number].upgrade();
        if let Some(descriptors) = earlier.as_ref().filter(|earlier| earlier.depth == depth) {
            return Ok(Self(Arc::clone(descriptors)));
        }
        if !IS_USED.swap(true, Ordering::SeqCst) {
            // SAFETY: the handler touches an atomic only.
            unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        }
        // SAFETY: plain integers.
        let bell = private(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        let pending = pending(signal)?;
        let known = &SIGNALS[number];
        known.is_counted.store(false, Ordering::SeqCst);
        WANTED.with(number, |wanted| {
            // Somebody may be about to end an earlier watch.
            let before = match *wanted {
                Some(before) => before,
                None => action_of(signal)?,
            };
            known.bell.store(bell.as_fd().as_raw_fd(), Ordering::SeqCst);
            // Before the handler can run, which waits for the lock.
            *wanted = Some(before);
            install(signal, &before).inspect_err(|_| {
                *wanted = None;
                known.bell.store(-1, Ordering::SeqCst);
            })
        })?;
        let descriptors = Arc::new(Descriptors { number, depth, bell, pending });
        watched[number] = Arc::downgrade(&descriptors);
        Ok(Self(descriptors))
    }

    /// The descriptors that tell of it, to be watched for edges: the first is one with each signal that
    /// is handled, the second when one is pending. Neither must be read.
    pub fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.0.bell.as_fd(), self.0.pending.as_fd()]
    }

    /// How often the signal came since the process began to watch it, one that is pending for this
    /// thread or for all included.
    pub fn count(&self) -> u64 {
        let known = &SIGNALS[self.0.number];
        while is_pending(self.0.number) && !known.is_counted.swap(true, Ordering::SeqCst) {
            let is_still_pending = is_pending(self.0.number);
            if is_still_pending && known.is_counted.load(Ordering::SeqCst) {
                known.came.fetch_add(1, Ordering::SeqCst);
                break;
            }
            // It was handled meanwhile: before the mark, and is counted, or after, and has taken it.
            let unmarked =
                known.is_counted.compare_exchange(true, false, Ordering::SeqCst, Ordering::SeqCst);
            if unmarked.is_err() {
                known.came.fetch_add(1, Ordering::SeqCst);
            }
        }
        known.came.load(Ordering::SeqCst)
    }
}

/// How many watched signals came to this thread of which the program has no handler: a call that was
/// interrupted by nothing else would not have been.
pub fn unhandled() -> u64 {
    UNHANDLED.with(Cell::get)
}

/// `int sigaction(int signum, const struct sigaction *act, struct sigaction *oldact)` for a library that
/// replaces it: what the program wants of a signal. It is the C library's unless the signal is watched.
///
/// # Safety
/// As sigaction(2): both pointers are null or valid.
pub unsafe fn set(signal: c_int, new: *const libc::sigaction, old: *mut libc::sigaction) -> c_int {
    let number = usize::try_from(signal).ok().filter(|number| (1..=HIGHEST).contains(number));
    let Some(number) = number.filter(|_| IS_USED.load(Ordering::SeqCst)) else {
        // SAFETY: the caller's word.
        return unsafe { __sigaction(signal, new, old) };
    };
    WANTED.with(number, |wanted| {
        let Some(before) = *wanted else {
            // SAFETY: the caller's word.
            return unsafe { __sigaction(signal, new, old) };
        };
        // SAFETY: null, or an action of the caller's.
        if let Some(new) = unsafe { new.as_ref() } {
            if install(signal, new).is_err() {
                return -1;
            }
            *wanted = Some(*new);
        }
        // SAFETY: null, or room for an action of the caller's.
        if let Some(old) = unsafe { old.as_mut() } {
            *old = before;
        }
        0
    })
}

/// What the kernel does with a signal.
fn action_of(signal: c_int) -> io::Result<libc::sigaction> {
    // SAFETY: a zeroed `sigaction` is a valid value of the type (plain integers and pointers).
    let mut action = unsafe { zeroed() };
    // SAFETY: there is room for the action; none is set.
    if unsafe { __sigaction(signal, null(), &raw mut action) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(action)
}

/// Has the kernel call this module's handler in the way in which the program wants a signal handled.
fn install(signal: c_int, wanted: &libc::sigaction) -> io::Result<()> {
    let mut action = *wanted;
    action.sa_sigaction = handle as *const () as libc::sighandler_t;
    let children = wanted.sa_flags & (libc::SA_NOCLDSTOP | libc::SA_NOCLDWAIT);
    match wanted.sa_sigaction {
        libc::SIG_DFL | libc::SIG_IGN => {
            action.sa_flags = children | libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
            // Children of a process that ignores their ends leave no zombies.
            if signal == libc::SIGCHLD && wanted.sa_sigaction == libc::SIG_IGN {
                action.sa_flags |= libc::SA_NOCLDWAIT;
            }
            // SAFETY: empties the set.
            unsafe { libc::sigemptyset(&raw mut action.sa_mask) };
        }
        _ => action.sa_flags = (wanted.sa_flags | libc::SA_SIGINFO) & !libc::SA_RESETHAND,
    }
    // SAFETY: the handler has the type that the flags say; the old action is not asked for.
    if unsafe { __sigaction(signal, &raw const action, null_mut()) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The handler of watched signals.
extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: takes no arguments and cannot fail.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: the calling thread's own.
    let error = unsafe { errno.read() };
    let number = signal as usize;
    let wanted = WANTED.with(number, |wanted| {
        let now = *wanted;
        if let Some(action) = wanted
            && action.sa_flags & libc::SA_RESETHAND != 0
        {
            action.sa_sigaction = libc::SIG_DFL;
        }
        now
    });
    let action = wanted.map_or(libc::SIG_DFL, |wanted| wanted.sa_sigaction);
    // Of these FreeBSD tells nothing.
    if signal != libc::SIGCHLD || action != libc::SIG_IGN {
        count(&SIGNALS[number]);
    }
    match action {
        libc::SIG_IGN => UNHANDLED.with(|count| count.set(count.get() + 1)),
        libc::SIG_DFL => {
            UNHANDLED.with(|count| count.set(count.get() + 1));
            act_as_by_default(signal, wanted.as_ref());
        }
        handler if wanted.is_some_and(|wanted| wanted.sa_flags & libc::SA_SIGINFO != 0) => {
            type Handler = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);
            // SAFETY: the program has said that its handler is of this type.
            let handler: Handler = unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: as above.
            let handler: extern "C" fn(c_int) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
    // SAFETY: the calling thread's own.
    unsafe { errno.write(error) };
}

fn count(known: &Signal) {
    if !known.is_counted.swap(false, Ordering::SeqCst) {
        known.came.fetch_add(1, Ordering::SeqCst);
    }
    let bell: RawFd = known.bell.load(Ordering::SeqCst);
    if bell >= 0 {
        let one = 1u64.to_ne_bytes();
        // Made directly: `write` may be a function of a library that is not for handlers.
        // SAFETY: the kernel reads eight bytes. It fails only if they are 2⁶⁴ − 1.
        unsafe { libc::syscall(libc::SYS_write, bell, one.as_ptr(), one.len()) };
    }
}

/// What the kernel does with a signal that has no handler.
fn act_as_by_default(signal: c_int, wanted: Option<&libc::sigaction>) {
    if [libc::SIGCHLD, libc::SIGURG, libc::SIGWINCH, libc::SIGCONT].contains(&signal) {
        return;
    }
    // SAFETY: a zeroed `sigaction` is a valid value of the type: the default, no flags, no mask.
    let default: libc::sigaction = unsafe { zeroed() };
    // SAFETY: sets a disposition that needs no handler.
    unsafe { __sigaction(signal, &raw const default, null_mut()) };
    let mut only = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: empties the set.
    unsafe { libc::sigemptyset(only.as_mut_ptr()) };
    // SAFETY: the set is filled in.
    unsafe { libc::sigaddset(only.as_mut_ptr(), signal) };
    // SAFETY: plain integers; the signal is this thread's, and comes when it is unblocked.
    unsafe { libc::raise(signal) };
    // SAFETY: the set is filled in. Most signals end the process here.
    unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, only.as_ptr(), null_mut()) };
    // It has stopped the process, which goes on now.
    if let Some(wanted) = wanted {
        let _ = install(signal, wanted);
    }
}

fn is_pending(number: usize) -> bool {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: there is room for a set.
    if unsafe { libc::sigpending(set.as_mut_ptr()) } < 0 {
        return false;
    }
    // SAFETY: the call has succeeded.
    unsafe { libc::sigismember(set.as_ptr(), number as c_int) == 1 }
}

/// A signalfd of one signal.
fn pending(signal: c_int) -> io::Result<PrivateFd> {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: empties the set.
    unsafe { libc::sigemptyset(set.as_mut_ptr()) };
    // SAFETY: the set is filled in.
    if unsafe { libc::sigaddset(set.as_mut_ptr(), signal) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the set is filled in.
    private(unsafe { libc::signalfd(-1, set.as_ptr(), libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) })
}

fn private(fd: RawFd) -> io::Result<PrivateFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel just made the descriptor and nobody else owns it.
    Ok(PrivateFd::from(unsafe { OwnedFd::from_raw_fd(fd) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    static RAN: AtomicU64 = AtomicU64::new(0);

    extern "C" fn note(_: c_int) {
        RAN.fetch_add(1, Ordering::SeqCst);
    }

    fn to(handler: libc::sighandler_t) -> libc::sigaction {
        // SAFETY: a zeroed `sigaction` is a valid value of the type.
        let mut action: libc::sigaction = unsafe { zeroed() };
        action.sa_sigaction = handler;
        action
    }

    fn raise(signal: c_int) {
        // SAFETY: plain integers; the signal is watched, or has a handler.
        unsafe { libc::raise(signal) };
    }

    fn set_to(signal: c_int, action: &libc::sigaction) -> libc::sigaction {
        let mut old = to(0);
        // SAFETY: both are actions.
        assert_eq!(unsafe { set(signal, action, &raw mut old) }, 0);
        old
    }

    #[test]
    fn a_signal_is_counted_and_does_what_the_program_wants() {
        let signal = libc::SIGUSR1;
        let own = to(note as *const () as libc::sighandler_t);
        set_to(signal, &own);
        let watched = Watched::begin(signal).unwrap();
        let again = Watched::begin(signal).unwrap();
        let before = watched.count();
        raise(signal);
        assert_eq!((watched.count() - before, RAN.load(Ordering::SeqCst)), (1, 1));
        assert_eq!(again.count(), watched.count());
        assert_eq!(set_to(signal, &to(libc::SIG_IGN)).sa_sigaction, own.sa_sigaction);
        let unhandled_before = unhandled();
        raise(signal);
        assert_eq!((watched.count() - before, RAN.load(Ordering::SeqCst)), (2, 1));
        assert_eq!(unhandled() - unhandled_before, 1);
        drop(watched);
        raise(signal);
        assert_eq!(again.count() - before, 3);
        set_to(signal, &own);
        drop(again);
        raise(signal);
        assert_eq!(
            RAN.load(Ordering::SeqCst),
            2,
            "the program's own handler is the kernel's again"
        );
        assert_eq!(set_to(signal, &to(libc::SIG_IGN)).sa_sigaction, own.sa_sigaction);
    }

    #[test]
    fn a_pending_signal_is_counted_once() {
        let signal = libc::SIGUSR2;
        set_to(signal, &to(libc::SIG_IGN));
        let watched = Watched::begin(signal).unwrap();
        let before = watched.count();
        let mut only = MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: empties the set.
        unsafe { libc::sigemptyset(only.as_mut_ptr()) };
        // SAFETY: the set is filled in.
        unsafe { libc::sigaddset(only.as_mut_ptr(), signal) };
        for round in 1..=3 {
            // SAFETY: the set is filled in.
            unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, only.as_ptr(), null_mut()) };
            raise(signal);
            assert_eq!(watched.count() - before, round);
            assert_eq!(watched.count() - before, round);
            // SAFETY: the set is filled in.
            unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, only.as_ptr(), null_mut()) };
            assert_eq!(watched.count() - before, round, "its handler has run");
        }
    }

    #[test]
    fn what_is_no_signal_or_cannot_be_handled_is_refused() {
        for signal in [-1, 0, 65, libc::SIGKILL, libc::SIGSTOP] {
            let refused = Watched::begin(signal).unwrap_err();
            assert_eq!(refused.raw_os_error(), Some(libc::EINVAL), "{signal}");
        }
    }
}
