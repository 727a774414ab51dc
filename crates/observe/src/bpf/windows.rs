//! A part of the time (`--sample 1/N`): a thread opens a window of 10 ms in which calls count, at a random place of each
//! period of N times as long, and closes it.
//!
//! What a window saw is read before the next one opens, so that calls that were entered in it and return soon after are
//! in it. A window closes by the programs' own clock, at the time that was given when it was opened: it is as long as it
//! was meant to be, also where this thread is late. It opens late where this thread is, and what counts is how long it
//! was open then.
//!
//! The one tricky invariant: the thread opens nothing once it was asked to end, so that every window but the last lies
//! within the watch. The end of the last one is cut off where the watch ends.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use iotomy_record::{CallMargins, Margins, Sample};
use iotomy_stats::order::Random;
use iotomy_stats::{Series, Windows};
use iotomy_sys::syscalls;

use super::kernel_now;
use super::layout::CALL_I386;
use super::names::name;
use super::object::{SERIES, Seen, Session, Shutter};
use crate::ObserveError;
use crate::naming::plain_name;
use crate::request::Request;

/// The length of a window.
const WINDOW_NS: u64 = 10_000_000;

/// So long before a window opens, the thread is woken to read what the last one saw.
const LEAD_NS: u64 = 1_000_000;

/// A window that cannot open as planned opens so much later, when the programs have been told.
const TELL_NS: u64 = 50_000;

/// The numbers of a call that have margins.
const NUMBERS: usize = 4;

/// The thread that opens windows.
pub(super) struct Sampling {
    end: Sender<()>,
    thread: JoinHandle<Result<Log, String>>,
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
}

impl Sampling {
    /// Opens windows from now on, until it is ended.
    ///
    /// # Errors
    /// The resource that did not suffice.
    pub(super) fn begin(session: &Session, n: u32, request: &Request) -> Result<Self, String> {
        let shutter = session.shutter()?;
        let log = Log::new(n, request, shutter.seen()?);
        let (end, ended) = channel();
        let seed = kernel_now() ^ u64::from(std::process::id()) << 32;
        let thread = std::thread::Builder::new()
            .name("sample".to_owned())
            .spawn(move || log.keep(&shutter, Random::new(seed), &ended))
            .map_err(|error| format!("cannot sample: no thread: {error}"))?;
        Ok(Self { end, thread })
    }

    /// Opens no more windows, and closes one that is open.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn end(self) -> Result<Ended, ObserveError> {
        drop(self.end);
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
        }
    }

    /// Opens a window in each period, until the other end of `ended` is gone.
    fn keep(
        mut self,
        shutter: &Shutter,
        mut random: Random,
        ended: &Receiver<()>,
    ) -> Result<Self, String> {
        let period_ns = WINDOW_NS * u64::from(self.n);
        let began = kernel_now();
        let mut period = 0;
        loop {
            let slot = random.below(self.n as usize) as u64;
            let at = began + period * period_ns + slot * WINDOW_NS;
            if has_ended(ended, at.saturating_sub(LEAD_NS)) {
                return Ok(self);
            }
            self.take(shutter.seen()?);
            let opens = at.max(kernel_now() + TELL_NS);
            let closes = opens + WINDOW_NS;
            shutter.open(opens, closes)?;
            // Where they were told too late, it has opened since: in the middle of that time, as far as is known.
            let late = kernel_now().clamp(opens, closes) - opens;
            let opens = opens + late / 2;
            let is_over = has_ended(ended, closes);
            shutter.close()?;
            self.last = Some([opens, closes.min(kernel_now())]);
            if is_over {
                return Ok(self);
            }
            // Periods that have passed meanwhile have no window.
            period = (period + 1).max((kernel_now() - began) / period_ns);
        }
    }

    /// Takes what was seen since the last window but one: the last one's.
    fn take(&mut self, seen: Vec<Seen>) {
        let Some([opens, closes]) = self.last.take() else { return };
        if closes <= opens {
            return; // the watch was over
        }
        self.windows.add((closes - opens) as f64);
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
        }
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

/// Waits until a time on the kernel's clock, or until the watch ends.
fn has_ended(ended: &Receiver<()>, until_ns: u64) -> bool {
    let left = Duration::from_nanos(until_ns.saturating_sub(kernel_now()));
    !matches!(ended.recv_timeout(left), Err(RecvTimeoutError::Timeout))
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
        seen[READ] = Seen { calls, errors, bytes, wall_ns };
        seen[GETPPID] = Seen { calls: getppid, errors: 0, bytes: 9 * getppid, wall_ns: 0 };
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
