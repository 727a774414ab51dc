//! Progress: bytes, rate, time left, and the mover at work.
//!
//! A thread of its own reads the movers' counter and draws; it is started only for work that can
//! take long. Small copies pay for none of it.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use iotomy_movers::chooser::Plan;
use iotomy_movers::{Declaration, End, Job, MOVERS, MoveError, Mover, Outcome, Probe, Session};
use iotomy_report::bytes;

use super::options::Choice;
use crate::screen::is_dumb;

/// Work that no terminal is bothered with before.
const QUIET: Duration = Duration::from_secs(1);
/// Between two drawings on a terminal.
const REDRAW: Duration = Duration::from_millis(200);
/// Sizes from here on can take longer than [`QUIET`].
const LONG: u64 = 8 << 20;
/// Many small files take long from here on.
const LONG_AGO: Duration = Duration::from_millis(500);
/// No total is known.
const UNKNOWN: u64 = u64::MAX;

/// Draws the progress line at its times.
pub(super) struct Meter {
    when: Choice,
    /// Read only when it is needed: the first reading of the clock costs as much as several calls.
    begun: Option<Instant>,
    /// The size of the next part.
    size: Option<u64>,
    shared: Arc<Shared>,
    drawing: Option<JoinHandle<()>>,
    terminal: Option<bool>,
}

/// The state that the copying and the drawing thread share.
pub(super) struct Shared {
    /// Bytes moved so far, by all parts.
    pub(super) moved: AtomicU64,
    total: AtomicU64,
    begun: Option<Instant>,
    terminal: bool,
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    over: bool,
    drawn: bool,
}

impl Meter {
    /// Draws nothing yet. `timed`: the time since the start will be needed.
    pub(super) fn new(when: Choice, timed: bool) -> Self {
        let begun = (timed || when == Choice::Always).then(Instant::now);
        Self {
            when,
            begun,
            size: None,
            shared: Shared::new(false, begun),
            drawing: None,
            terminal: None,
        }
    }

    /// Since the start, where that is timed.
    pub(super) fn elapsed(&self) -> Duration {
        since(self.begun)
    }

    /// The counter for a job.
    pub(super) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Announces the next part with its size, as far as that is known: the total, unless `more`
    /// parts follow.
    pub(super) fn expect(&mut self, size: Option<u64>, more: bool) {
        self.size = size;
        let total = size.filter(|_| !more).unwrap_or(UNKNOWN);
        self.shared.total.store(total, Ordering::Relaxed);
    }

    /// A plan is about to run: starts drawing if it can take long. `quiet`: an end is a terminal,
    /// which drawing would disturb.
    pub(super) fn begin(&mut self, plan: &mut Plan, quiet: impl Fn() -> bool) {
        let wanted = match self.when {
            Choice::Never => false,
            Choice::Always => true,
            Choice::Auto => self.is_on_terminal() && self.is_long() && !quiet(),
        };
        if !wanted {
            return;
        }
        announce(plan);
        if self.drawing.is_none() {
            let shared = Shared::new(self.is_on_terminal(), self.begun);
            for (new, old) in
                [(&shared.moved, &self.shared.moved), (&shared.total, &self.shared.total)]
            {
                new.store(old.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            self.shared = shared;
            let shared = Arc::clone(&self.shared);
            let first = if self.when == Choice::Always { REDRAW } else { QUIET };
            // If no thread can be created, there is no progress line, and the copy goes on.
            self.drawing = std::thread::Builder::new().spawn(move || shared.draw(first)).ok();
        }
    }

    /// Whether the next part can take long, or the last one did.
    fn is_long(&mut self) -> bool {
        let begun = *self.begun.get_or_insert_with(Instant::now);
        self.size.is_none_or(|size| size >= LONG) || begun.elapsed() >= LONG_AGO
    }

    /// Checked once, for any number of files.
    fn is_on_terminal(&mut self) -> bool {
        *self.terminal.get_or_insert_with(|| std::io::stderr().is_terminal())
    }

    /// Removes the line, to make room for other text.
    pub(super) fn clear(&self) {
        self.shared.clear_line(&mut self.shared.state());
    }

    /// Ends the drawing; if it was requested explicitly, the last line stays.
    pub(super) fn end(&mut self) {
        self.shared.state().over = true;
        self.shared.wake.notify_all();
        if let Some(drawing) = self.drawing.take() {
            // A thread that panicked has printed the reason.
            let _ = drawing.join();
        }
        self.clear();
        if self.when == Choice::Always {
            let line = self.shared.line(self.shared.moved.load(Ordering::Relaxed), true);
            let _ = writeln!(std::io::stderr(), "{line}");
        }
    }
}

impl Shared {
    fn new(terminal: bool, begun: Option<Instant>) -> Arc<Self> {
        Arc::new(Self {
            moved: AtomicU64::new(0),
            total: AtomicU64::new(UNKNOWN),
            begun,
            terminal,
            state: Mutex::default(),
            wake: Condvar::new(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn draw(&self, first: Duration) {
        let mut state = self.state();
        let mut pause = first;
        loop {
            let (now, _) =
                self.wake.wait_timeout(state, pause).unwrap_or_else(PoisonError::into_inner);
            state = now;
            if state.over {
                return;
            }
            // A file that is not a terminal gets a line a second.
            pause = if self.terminal { REDRAW } else { QUIET };
            let line = self.line(self.moved.load(Ordering::Relaxed), false);
            let text =
                if self.terminal { format!("{}{line}", erased()) } else { format!("{line}\n") };
            state.drawn = self.terminal;
            let mut stderr = std::io::stderr();
            let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
        }
    }

    fn clear_line(&self, state: &mut State) {
        if std::mem::take(&mut state.drawn) {
            let _ = std::io::stderr().write_all(erased().as_bytes());
        }
    }

    fn line(&self, moved: u64, done: bool) -> String {
        let total = Some(self.total.load(Ordering::Relaxed)).filter(|total| *total != UNKNOWN);
        let mover = MOVERS.get(AT_WORK.load(Ordering::Relaxed));
        let name = mover.map_or("", |mover| mover.declaration().name);
        let text = line(moved, total, since(self.begun), name, done);
        let columns = rustix::termios::tcgetwinsize(std::io::stderr())
            .map_or(0, |size| usize::from(size.ws_col));
        match columns {
            0 => text,
            // The last column would wrap.
            columns => text.chars().take(columns.saturating_sub(1)).collect(),
        }
    }
}

fn since(begun: Option<Instant>) -> Duration {
    begun.map_or(Duration::ZERO, |begun| begun.elapsed())
}

/// The sequence that clears the cursor's line.
fn erased() -> &'static str {
    if is_dumb() {
        "\r                                                                    \r"
    } else {
        "\r\x1b[K"
    }
}

/// The line, as `512 MiB of 1 GiB   50 %   1.2 GiB/s   0:03 left   copy-file-range`.
fn line(moved: u64, total: Option<u64>, took: Duration, mover: &str, done: bool) -> String {
    let mut line = bytes(moved.into());
    let rate = moved as f64 / took.as_secs_f64().max(1e-9);
    if let Some(total) = total.filter(|_| !done) {
        let percent = if total == 0 { 100.0 } else { moved as f64 / total as f64 * 100.0 };
        let _ = write!(line, " of {}   {:.0} %", bytes(total.into()), percent.min(100.0));
    }
    if done {
        let _ = write!(line, " in {}", iotomy_report::duration(took.as_nanos() as f64));
    }
    let _ = write!(line, "   {}/s", bytes(rate as u128));
    match total {
        _ if done => {}
        Some(total) if rate > 0.0 => {
            let left = total.saturating_sub(moved) as f64 / rate;
            let _ = write!(line, "   {} left", clock(left.ceil()));
        }
        _ => {
            let _ = write!(line, "   {} so far", clock(took.as_secs_f64()));
        }
    }
    if !mover.is_empty() {
        let _ = write!(line, "   {mover}");
    }
    line
}

/// Seconds as `0:07`, `12:34`, `3:07:00`.
fn clock(seconds: f64) -> String {
    // The cast saturates, beyond any time that means something.
    let all = seconds as u64;
    let (hours, minutes, seconds) = (all / 3600, all / 60 % 60, all % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}

/// The mover that began last, by its place in [`MOVERS`].
static AT_WORK: AtomicUsize = AtomicUsize::new(usize::MAX);

/// A mover that reports its start: a plan may try several before one is not refused.
struct Announced(usize);

impl Mover for Announced {
    fn declaration(&self) -> &'static Declaration {
        MOVERS[self.0].declaration()
    }

    fn probe(&self) -> Probe {
        MOVERS[self.0].probe()
    }

    fn serves(&self, source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Result<(), String> {
        MOVERS[self.0].serves(source, target, job)
    }

    fn run(&self, source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Result<Outcome, MoveError> {
        AT_WORK.store(self.0, Ordering::Relaxed);
        MOVERS[self.0].run(source, target, job)
    }

    fn session<'a>(&'a self, source: &'a End<'a>, target: &'a End<'a>) -> Box<dyn Session + 'a> {
        AT_WORK.store(self.0, Ordering::Relaxed);
        MOVERS[self.0].session(source, target)
    }
}

/// Makes the movers of a plan report their start.
fn announce(plan: &mut Plan) {
    static ALL: OnceLock<Vec<Announced>> = OnceLock::new();
    let all = ALL.get_or_init(|| (0..MOVERS.len()).map(Announced).collect());
    for step in &mut plan.steps {
        let name = step.mover.declaration().name;
        let found = all.iter().find(|announced| announced.declaration().name == name);
        if let Some(announced) = found {
            step.mover = announced;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Duration = Duration::from_secs(1);

    #[test]
    fn a_line_says_what_is_known() {
        let known = line(512 << 20, Some(2 << 30), S * 4, "splice", false);
        assert_eq!(known, "512 MiB of 2 GiB   25 %   128 MiB/s   0:12 left   splice");
        let unknown = line(512 << 20, None, S * 64, "", false);
        assert_eq!(unknown, "512 MiB   8 MiB/s   1:04 so far");
        let done = line(1 << 30, Some(1 << 30), S * 2, "sendfile", true);
        assert_eq!(done, "1 GiB in 2 s   512 MiB/s   sendfile");
    }

    #[test]
    fn nothing_divides_by_zero_and_nothing_passes_the_whole() {
        assert_eq!(
            line(0, Some(0), Duration::ZERO, "", false),
            "0 B of 0 B   100 %   0 B/s   0:00 so far"
        );
        assert!(line(3, Some(2), S, "", false).contains("100 %   3 B/s   0:00 left"));
        assert_eq!(clock(0.2), "0:00");
        assert_eq!(clock(11_220.0), "3:07:00");
        clock(f64::INFINITY);
    }
}
