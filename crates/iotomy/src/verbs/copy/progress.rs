//! Progress: bytes, rate, time left, and the mover at work.
//!
//! A thread of its own reads the movers' counter and draws; it is started only for work that can
//! take long. Small copies pay for none of it.

use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use iotomy_copy::Progress;
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

/// Draws the progress line at its times.
pub(super) struct Meter {
    when: Choice,
    /// Read only when it is needed: the first reading of the clock costs as much as several calls.
    begun: Option<Instant>,
    terminal: Option<bool>,
    drawing: Option<Drawing>,
}

/// What is drawn, and the thread that draws.
struct Drawing {
    line: Arc<Line>,
    thread: Option<JoinHandle<()>>,
}

/// The state that the copying and the drawing thread share.
struct Line {
    progress: Arc<Progress>,
    begun: Instant,
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
    /// Draws nothing yet.
    pub(super) fn new(when: Choice) -> Self {
        let begun = (when == Choice::Always).then(Instant::now);
        Self { when, begun, terminal: None, drawing: None }
    }

    /// A part is about to run: starts drawing if it can take long. `is_on_terminal`: an end of it is a
    /// terminal, which drawing would disturb.
    pub(super) fn begin(&mut self, progress: &Arc<Progress>, is_on_terminal: impl Fn() -> bool) {
        let is_wanted = match self.when {
            Choice::Never => false,
            Choice::Always => true,
            Choice::Auto => self.sees_terminal() && self.is_long(progress) && !is_on_terminal(),
        };
        if !is_wanted || self.drawing.is_some() {
            return;
        }
        let line = Arc::new(Line {
            progress: Arc::clone(progress),
            begun: *self.begun.get_or_insert_with(Instant::now),
            terminal: self.sees_terminal(),
            state: Mutex::default(),
            wake: Condvar::new(),
        });
        let first = if self.when == Choice::Always { REDRAW } else { QUIET };
        let drawn = Arc::clone(&line);
        // If no thread can be created, there is no progress line, and the copy goes on.
        let thread = std::thread::Builder::new().spawn(move || drawn.draw(first)).ok();
        self.drawing = Some(Drawing { line, thread });
    }

    /// Whether the next part can take long, or the last one did.
    fn is_long(&mut self, progress: &Progress) -> bool {
        let begun = *self.begun.get_or_insert_with(Instant::now);
        progress.expected().is_none_or(|bytes| bytes >= LONG) || begun.elapsed() >= LONG_AGO
    }

    /// Whether standard error is a terminal; checked once, for any number of files.
    fn sees_terminal(&mut self) -> bool {
        *self.terminal.get_or_insert_with(|| std::io::stderr().is_terminal())
    }

    /// Removes the line, to make room for other text.
    pub(super) fn clear(&self) {
        if let Some(Drawing { line, .. }) = &self.drawing {
            line.clear(&mut line.state());
        }
    }

    /// Ends the drawing; if it was requested explicitly, the last line stays.
    pub(super) fn end(&mut self) {
        let (mut moved, mut mover) = (0, "");
        if let Some(Drawing { line, thread }) = self.drawing.take() {
            line.state().over = true;
            line.wake.notify_all();
            // A thread that panicked has printed the reason.
            let _ = thread.map(JoinHandle::join);
            line.clear(&mut line.state());
            (moved, mover) = (line.progress.moved(), line.progress.mover());
        }
        if let (Choice::Always, Some(begun)) = (self.when, self.begun) {
            let last = fitted(line(moved, None, begun.elapsed(), mover, true));
            let _ = writeln!(std::io::stderr(), "{last}");
        }
    }
}

impl Line {
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
            let (moved, total) = (self.progress.moved(), self.progress.total());
            let took = self.begun.elapsed();
            let line = fitted(line(moved, total, took, self.progress.mover(), false));
            let text =
                if self.terminal { format!("{}{line}", erased()) } else { format!("{line}\n") };
            state.drawn = self.terminal;
            let mut stderr = std::io::stderr();
            let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
        }
    }

    fn clear(&self, state: &mut State) {
        if std::mem::take(&mut state.drawn) {
            let _ = std::io::stderr().write_all(erased().as_bytes());
        }
    }
}

/// As much of a line as the terminal has columns for.
fn fitted(line: String) -> String {
    let columns =
        rustix::termios::tcgetwinsize(std::io::stderr()).map_or(0, |size| usize::from(size.ws_col));
    match columns {
        0 => line,
        // The last column would wrap.
        columns => line.chars().take(columns.saturating_sub(1)).collect(),
    }
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
