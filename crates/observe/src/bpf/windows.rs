//! A part of the time (`--sample 1/N`): a thread opens a window of 10 ms in which calls count, at a random place of each
//! period of N times as long, and closes it.
//!
//! What a window saw is read before the next one opens, so that calls that were entered in it and return soon after are
//! in it. A window closes by the programs' own clock, at the time that was given when it was opened: it is as long as it
//! was meant to be, also where this thread is late. It opens late where this thread is, and what counts is how long it
//! was open then. Time that was missed is made up for by windows that follow at once, so that one part of N is counted.
//!
//! A viewer may have N change while the watch goes on ([`Sampling::pause`]); 1 is a window without end.
//!
//! The one tricky invariant: the thread opens nothing once it was asked to end, so that every window but the last lies
//! within the watch. The end of the last one is cut off where the watch ends.

mod estimates;

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use iotomy_record::{CallMargins, Margins, Sample, SampledTime};
use iotomy_stats::order::Random;
use iotomy_stats::{Series, Windows};
use iotomy_sys::syscalls;

pub(super) use self::estimates::Estimates;
use self::estimates::Variances;
use super::layout::CALL_I386;
use super::names::name;
use super::object::{SERIES, Seen, Session, Shutter};
use crate::ObserveError;
use crate::clock::kernel_now;
use crate::naming::plain_name;
use crate::request::Request;

/// The length of a window.
const WINDOW_NS: u64 = 10_000_000;

/// So long before a window opens, the thread is woken to read what the last one saw.
const LEAD_NS: u64 = 1_000_000;

/// A window that cannot open as planned opens so much later, when the programs have been told.
const TELL_NS: u64 = 50_000;

/// Time that was missed is made up for, up to so many periods: one of a thread that was stopped for long is lost.
const MOST_MISSED: u64 = 16;

const FAILED: &str = "no windows are opened any more: the kernel refused it";

/// The numbers of a call that have margins.
const NUMBERS: usize = 4;

/// The thread that opens windows.
pub(super) struct Sampling {
    ask: Sender<Pause>,
    thread: JoinHandle<Result<Log, String>>,
    variances: Arc<Mutex<Variances>>,
}

/// No window is to be open, until it is said of how many one is from then on. Both are answered once it is so.
struct Pause {
    is_done: SyncSender<()>,
    n: Receiver<u32>,
}

/// No window is open.
pub(super) struct Paused {
    resume: Sender<u32>,
    done: Receiver<()>,
}

impl Paused {
    /// One window of so many opens from now on.
    pub(super) fn resume(self, n: u32) {
        // Of a thread that has ended, the next look tells.
        if self.resume.send(n.max(1)).is_ok() {
            let _ = self.done.recv();
        }
    }
}

/// Why a thread waits no more.
enum Woken {
    /// It is time.
    Due,
    /// The watch ends.
    Ended,
    Asked(Pause),
}

/// What windows saw.
struct Log {
    n: u32,
    /// The calls that are reported, and of these, those whose bytes are: by place in the programs' table.
    is_wanted: Vec<bool>,
    moves_bytes: Vec<bool>,
    windows: Windows,
    /// By place, of those that were seen.
    calls: BTreeMap<usize, [Series; NUMBERS]>,
    all: [Series; NUMBERS],
    /// What was seen until the window before the last.
    seen: Vec<Seen>,
    /// The last one, which may go on: when it opened, and closes.
    last: Option<[u64; 2]>,
    variances: Arc<Mutex<Variances>>,
}

impl Sampling {
    /// Opens windows from now on, until it is ended.
    ///
    /// # Errors
    /// The resource that did not suffice.
    pub(super) fn begin(session: &Session, n: u32, request: &Request) -> Result<Self, String> {
        let shutter = session.shutter()?;
        let log = Log::new(n, request, shutter.seen()?);
        open_for_all(&shutter, n)?;
        let variances = log.variances.clone();
        let (ask, asked) = channel();
        let seed = kernel_now() ^ u64::from(std::process::id()) << 32;
        let thread = std::thread::Builder::new()
            .name("sample".to_owned())
            .spawn(move || log.keep(shutter, Random::new(seed), &asked))
            .map_err(|error| format!("cannot sample: no thread: {error}"))?;
        Ok(Self { ask, thread, variances })
    }

    /// For the looks of a watch that has begun with one window of so many.
    ///
    /// # Errors
    /// The resource that did not suffice.
    pub(super) fn estimates(&self, session: &Session, n: u32) -> Result<Estimates, String> {
        Estimates::new(session.shutter()?, n, self.variances.clone())
    }

    /// The estimates with a look that is taken now.
    ///
    /// # Errors
    /// The kernel's error, or no more windows are opened because of one.
    pub(super) fn look(&self, estimates: &mut Estimates) -> Result<SampledTime, String> {
        if self.thread.is_finished() { Err(FAILED.to_owned()) } else { estimates.look() }
    }

    /// Closes the window. Calls that were entered in it and have not returned will not count.
    ///
    /// # Errors
    /// The thread has ended.
    pub(super) fn pause(&self) -> Result<Paused, String> {
        let (is_done, done) = sync_channel(1);
        let (resume, n) = channel();
        let asked = self.ask.send(Pause { is_done, n }).ok().and_then(|()| done.recv().ok());
        asked.map(|()| Paused { resume, done }).ok_or_else(|| FAILED.to_owned())
    }

    /// Opens no more windows, and closes one that is open.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn end(self) -> Result<Ended, ObserveError> {
        drop(self.ask);
        let log = self.thread.join().unwrap_or_else(|_| Err("the thread ended".to_owned()));
        log.map(Ended).map_err(|reason| {
            ObserveError::system("open the windows of --sample")(std::io::Error::other(reason))
        })
    }
}

/// All windows, once none is open.
pub(super) struct Ended(Log);

impl Ended {
    /// What was sampled of a watch from one time until another, which has been settled.
    pub(super) fn sample(self, session: &Session, began_ns: u64, ended_ns: u64) -> Sample {
        let Self(mut log) = self;
        log.last = log.last.map(|[opens, closes]| [opens.max(began_ns), closes.min(ended_ns)]);
        // Without them, the last window has seen nothing more.
        let seen = session.shutter().and_then(|shutter| shutter.seen());
        log.take(seen.unwrap_or_else(|_| log.seen.clone()));
        log.into_sample(ended_ns.saturating_sub(began_ns))
    }
}

impl Log {
    fn new(n: u32, request: &Request, seen: Vec<Seen>) -> Self {
        let names: Vec<Option<String>> = (0..SERIES).map(name_at).collect();
        let is = |test: &dyn Fn(&str) -> bool| {
            names.iter().map(|name| name.as_deref().is_none_or(test)).collect()
        };
        Self {
            n,
            is_wanted: is(&|name| request.wants(name)),
            moves_bytes: is(&|name| syscalls::returns_bytes(plain_name(name))),
            windows: Windows::default(),
            calls: BTreeMap::new(),
            all: Default::default(),
            seen,
            last: None,
            variances: Arc::default(),
        }
    }

    /// Opens windows until the other end of `asked` is gone. One without end is open already.
    fn keep(
        mut self,
        mut shutter: Shutter,
        mut random: Random,
        asked: &Receiver<Pause>,
    ) -> Result<Self, String> {
        loop {
            let Some(Pause { is_done, n }) = self.open(&shutter, &mut random, asked)? else {
                return Ok(self);
            };
            shutter.let_go(kernel_now())?;
            // Who asked may have gone.
            let _ = is_done.send(());
            let n = n.recv().unwrap_or(self.n);
            self.turn(n, shutter.seen()?);
            open_for_all(&shutter, self.n)?;
            let _ = is_done.send(());
        }
    }

    /// Opens a window in each period, until the watch ends, or no window is to be open.
    fn open(
        &mut self,
        shutter: &Shutter,
        random: &mut Random,
        asked: &Receiver<Pause>,
    ) -> Result<Option<Pause>, String> {
        if self.n == 1 {
            let asked = asked.recv().ok();
            shutter.close()?;
            return Ok(asked);
        }
        let period_ns = WINDOW_NS * u64::from(self.n);
        let mut began = kernel_now();
        let mut open_ns = 0;
        loop {
            // As many as windows that were open in full.
            let period = (open_ns + WINDOW_NS / 2) / WINDOW_NS;
            let missed = ((kernel_now() - began) / period_ns).saturating_sub(period);
            began += period_ns * missed.saturating_sub(MOST_MISSED);
            let slot = random.below(self.n as usize) as u64;
            let at = began + period * period_ns + slot * WINDOW_NS;
            match wait(asked, at.saturating_sub(LEAD_NS)) {
                Woken::Due => {}
                Woken::Ended => return Ok(None),
                Woken::Asked(pause) => return Ok(Some(pause)),
            }
            self.take(shutter.seen()?);
            let opens = at.max(kernel_now() + TELL_NS);
            let closes = opens + WINDOW_NS;
            shutter.open(opens, closes)?;
            // Where they were told too late, it has opened since: in the middle of that time, as far as is known.
            let late = kernel_now().clamp(opens, closes) - opens;
            let opens = opens + late / 2;
            let woken = wait(asked, closes);
            shutter.close()?;
            let closed = closes.min(kernel_now());
            self.last = Some([opens, closed]);
            open_ns += closed.saturating_sub(opens);
            match woken {
                Woken::Due => {}
                Woken::Ended => return Ok(None),
                Woken::Asked(pause) => return Ok(Some(pause)),
            }
        }
    }

    /// From here on one window of so many is open.
    fn turn(&mut self, n: u32, seen: Vec<Seen>) {
        self.take(seen.clone());
        // Of a window without end, what it saw is in no window's difference.
        self.seen = seen;
        self.n = n;
        estimates::locked(&self.variances).turn();
    }

    /// Takes what was seen since the last window but one: the last one's.
    fn take(&mut self, seen: Vec<Seen>) {
        let Some([opens, closes]) = self.last.take() else { return };
        if closes <= opens {
            return; // the watch was over
        }
        self.windows.add((closes - opens) as f64);
        let mut variances = estimates::locked(&self.variances);
        let mut all = [0; NUMBERS];
        for (at, (now, before)) in seen.iter().zip(&self.seen).enumerate() {
            let more = now.since(*before);
            if !self.is_wanted[at] || (more == Seen::default() && !self.calls.contains_key(&at)) {
                continue;
            }
            let bytes = if self.moves_bytes[at] { more.bytes } else { 0 };
            let numbers = [more.calls, more.errors, bytes, more.wall_ns];
            for (sum, more) in all.iter_mut().zip(numbers) {
                *sum += more;
            }
            let of_call = self.calls.entry(at).or_default();
            add(of_call, &self.windows, numbers);
            variances.add(at, self.n, more.calls);
        }
        variances.end_window();
        drop(variances);
        add(&mut self.all, &self.windows, all);
        self.seen = seen;
    }

    fn into_sample(self, watched_ns: u64) -> Sample {
        let margins = |of: &[Series; NUMBERS]| {
            let margin = |series: &Series| {
                let margin = self.windows.estimate(series, watched_ns as f64).margin?;
                Some(margin.ceil() as u64)
            };
            let [calls, errors, bytes, wall_ns] = of;
            Some(Margins {
                calls: margin(calls)?,
                errors: margin(errors)?,
                bytes: margin(bytes)?,
                wall_ns: margin(wall_ns)?,
            })
        };
        let of_calls = self.calls.iter().filter_map(|(at, of_call)| {
            Some(CallMargins { syscall: name_at(*at)?, margins: margins(of_call)? })
        });
        Sample {
            n: self.n,
            window_ns: WINDOW_NS,
            windows: self.windows.count(),
            open_ns: self.windows.open() as u64,
            watched_ns,
            margins: margins(&self.all),
            calls: of_calls.collect(),
        }
    }
}

fn add(series: &mut [Series; NUMBERS], windows: &Windows, numbers: [u64; NUMBERS]) {
    for (series, number) in series.iter_mut().zip(numbers) {
        series.add(windows, number as f64);
    }
}

/// The name of the call at a place of the programs' table; none where several calls share it.
fn name_at(at: usize) -> Option<String> {
    const HALF: usize = SERIES / 2;
    let abi = if at < HALF { 0 } else { CALL_I386 };
    let number = at % HALF;
    (number < HALF - 1).then(|| name(number as u16 | abi))
}

/// Opens a window without end, where all of the time counts: before anyone relies on it.
fn open_for_all(shutter: &Shutter, n: u32) -> Result<(), String> {
    if n == 1 { shutter.open(0, u64::MAX) } else { Ok(()) }
}

/// Waits until a time on the kernel's clock.
fn wait(asked: &Receiver<Pause>, until_ns: u64) -> Woken {
    let left = Duration::from_nanos(until_ns.saturating_sub(kernel_now()));
    match asked.recv_timeout(left) {
        Ok(pause) => Woken::Asked(pause),
        Err(RecvTimeoutError::Timeout) => Woken::Due,
        Err(RecvTimeoutError::Disconnected) => Woken::Ended,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Target;

    /// What a table has of `read` and `getppid`, which returns no bytes.
    fn seen(read: [u64; NUMBERS], getppid: u64) -> Vec<Seen> {
        const READ: usize = 0;
        const GETPPID: usize = 110;
        let [calls, errors, bytes, wall_ns] = read;
        let mut seen = vec![Seen::default(); SERIES];
        seen[READ] = Seen { calls, errors, bytes, wall_ns, waits: 0 };
        seen[GETPPID] = Seen { calls: getppid, bytes: 9 * getppid, ..Seen::default() };
        // Calls that share a place have no margin of their own.
        seen[SERIES / 2 - 1].calls = getppid;
        seen
    }

    fn log(request: &Request) -> Log {
        Log::new(10, request, seen([7, 0, 0, 0], 1))
    }

    /// Adds a window, in which this was seen in all.
    fn window(log: &mut Log, open_ns: u64, all: Vec<Seen>) {
        log.last = Some([1_000, 1_000 + open_ns]);
        log.take(all);
    }

    #[test]
    fn windows_are_added_up_by_call_and_what_came_before_is_in_none() {
        let mut log = log(&Request::new(Target::Machine));
        window(&mut log, 100, seen([17, 1, 50, 900], 3));
        // Cut off at the end of the watch: there was none.
        log.last = Some([2_000, 1_900]);
        log.take(seen([18, 1, 50, 900], 3));
        assert_eq!(log.windows.count(), 1);
        window(&mut log, 100, seen([27, 2, 100, 1_800], 5));
        let sample = log.into_sample(2_000);
        assert_eq!((sample.windows, sample.open_ns, sample.watched_ns), (2, 200, 2_000));
        let none = Margins::default();
        let names: Vec<_> = sample.calls.iter().map(|one| (&*one.syscall, one.margins)).collect();
        assert_eq!(names, [("read", none), ("getppid", none)]);
        assert_eq!(sample.margins, Some(none));
    }

    #[test]
    fn windows_that_differ_leave_a_margin_and_one_window_leaves_it_unknown() {
        let mut log = log(&Request::new(Target::Machine));
        window(&mut log, 100, seen([17, 0, 0, 0], 1));
        window(&mut log, 100, seen([37, 0, 0, 0], 1));
        let sample = log.into_sample(2_000);
        let margins = sample.margins_of("read").unwrap();
        assert!(margins.calls > 100, "{margins:?}");
        assert_eq!((margins.bytes, sample.margins_of("getppid")), (0, None));
        let mut log = self::log(&Request::new(Target::Machine));
        window(&mut log, 100, seen([17, 0, 0, 0], 1));
        let sample = log.into_sample(2_000);
        assert_eq!((sample.margins, sample.calls), (None, vec![]));
    }

    #[test]
    fn calls_that_are_not_reported_are_in_no_sum() {
        let calls = Some([String::from("getppid")].into());
        let mut log = log(&Request { calls, ..Request::new(Target::Machine) });
        window(&mut log, 100, seen([17, 0, 0, 0], 1));
        window(&mut log, 100, seen([37, 0, 0, 0], 1));
        let sample = log.into_sample(2_000);
        assert_eq!(sample.margins, Some(Margins::default()));
        assert!(sample.calls.is_empty());
    }

    #[test]
    fn every_place_but_the_shared_ones_is_a_call() {
        assert_eq!(name_at(0).as_deref(), Some("read"));
        assert_eq!(name_at(511), None);
        assert_eq!(name_at(512 + 3).as_deref(), Some("read(i386)"));
        assert_eq!(name_at(1_023), None);
    }
}
