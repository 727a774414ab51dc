//! `--live`: the viewer of a watch that shows it on the terminal.
//!
//! It owns the terminal and the command's output during the watch, but not the content, which is
//! [`iotomy_report::live`]'s. It runs in the watch's own loop, so its time is bounded: a refresh is
//! due after twenty times the duration of the last one, and after a second at least.

mod capture;
mod keys;
mod save;
mod terminal;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use iotomy_observe::{TakeSnapshot, Viewer, ViewerRequest, WatchStart};
use iotomy_record::Trace;
use iotomy_report::bytes;
use iotomy_report::live::{Event, Screen, ScreenRequest, Setting};
use iotomy_sys::launch::Streams;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, raise, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::time::{ClockId, clock_gettime};

use self::capture::Capture;
use self::save::Saver;
use self::terminal::Terminal;
use crate::screen::is_dumb;

/// The interval of refreshes, unless they take long.
const SECOND: Duration = Duration::from_secs(1);

/// The interval in multiples of the CPU time of the last refresh: one in twenty, 5 %.
const SPARING: u32 = 20;

/// The delay of an early first screen, before the first second is over.
const FIRST: Duration = Duration::from_millis(250);

/// The interval of drawing the command's output.
const FRAME: Duration = Duration::from_millis(100);

/// The view of a watch. Dropping it restores the terminal, with the command's output.
pub(super) struct LiveView {
    terminal: Terminal,
    screen: Screen,
    saver: Saver,
    capture: Option<Capture>,
    signals: Option<Signals>,
    is_command: bool,
    is_up: bool,
    /// Whether the view was left because its terminal is gone.
    is_lost: bool,
    /// When the next refresh is due.
    next: Instant,
    /// When the screen is to be drawn again.
    redraw: Option<Instant>,
    /// Interrupts so far.
    interrupts: u32,
}

/// The signals of a terminal, held back.
struct Signals {
    held: SigSet,
    descriptor: SignalFd,
}

impl LiveView {
    /// Finds the terminal; nothing is shown before the watch begins.
    ///
    /// # Errors
    /// There is none, or none that can show a view.
    /// `common` is what records of this watch have in common; `each` keeps images apart.
    pub(super) fn open(setting: Setting, common: Trace, each: bool) -> Result<Self> {
        if is_dumb() {
            bail!(
                "cannot show a live view: TERM is dumb or not set; set it to the type of the \
                 terminal, or leave out --live"
            );
        }
        let terminal = Terminal::open().context(
            "cannot show a live view without a terminal (/dev/tty); leave out --live, or run \
             iotomy under `script` or `ssh -t`",
        )?;
        let is_command = setting.is_command;
        Ok(Self {
            terminal,
            screen: Screen::new(setting),
            saver: Saver::new(common, each),
            capture: None,
            signals: None,
            is_command,
            is_up: false,
            is_lost: false,
            next: Instant::now(),
            redraw: None,
            interrupts: 0,
        })
    }

    /// The streams of the command: those that are a terminal are captured for the view.
    ///
    /// # Errors
    /// When no terminal can be opened for it.
    pub(super) fn streams(&mut self) -> Result<Streams> {
        let made = capture::streams(self.terminal.size());
        let (streams, capture) = made.context(
            "cannot open a pseudo-terminal for the command's \
            output",
        )?;
        self.capture = capture;
        Ok(streams)
    }

    fn take_screen(&mut self) {
        self.next = Instant::now() + FIRST;
        let taken = Signals::hold().and_then(|signals| {
            self.signals = Some(signals);
            self.terminal.take()
        });
        self.is_up = true;
        match taken {
            Ok(()) => self.draw(),
            Err(error) => self.leave(Some(&format!("cannot show the live view: {error}"))),
        }
    }

    fn draw(&mut self) {
        self.redraw = None;
        let (width, height) = self.terminal.size();
        let buffer = self.screen.draw(width, height);
        if self.terminal.show(buffer).is_err() {
            self.lose();
        }
    }

    /// Gives the terminal back: the command's output goes there from now on.
    fn leave(&mut self, word: Option<&str>) {
        if !std::mem::take(&mut self.is_up) {
            return;
        }
        self.redraw = None;
        self.terminal.give_back();
        if let Some(capture) = &mut self.capture {
            let (kept, dropped) = capture.take_kept();
            if dropped > 0 {
                let dropped = bytes(dropped.into());
                let line = format!(
                    "iotomy: {dropped} of earlier output were dropped; redirect it to a file to keep all of it\n"
                );
                self.terminal.write(line.as_bytes());
            }
            self.terminal.write(&kept);
        }
        if let Some(word) = word {
            self.terminal.write(format!("iotomy: {word}\n").as_bytes());
        }
    }

    fn take_output(&mut self) {
        let Some(capture) = &mut self.capture else { return };
        let written = capture.written();
        if written.is_empty() {
            return;
        }
        if self.is_up {
            capture.keep(&written);
            self.screen.on(Event::Output(&written));
            self.redraw.get_or_insert_with(|| Instant::now() + FRAME);
        } else {
            self.terminal.write(&written);
        }
    }

    /// Takes keys and the terminal's signals; whether the user wants to leave.
    fn take_input(&mut self) -> bool {
        while let Some(signal) = self.signals.as_ref().and_then(Signals::next) {
            if signal == Signal::SIGTSTP {
                self.stop();
            } else if let Some(capture) = &self.capture {
                capture.resize(self.terminal.size());
            }
            self.redraw = Some(Instant::now());
        }
        let Some(typed) = self.terminal.typed() else { return true };
        for key in keys::keys(&typed) {
            match self.screen.on(Event::Key(key)) {
                ScreenRequest::Leave => return true,
                ScreenRequest::Repaint => self.terminal.forget(),
                ScreenRequest::Save => {
                    let told = self.saver.save(&self.screen);
                    self.screen.on(Event::Notice(&told));
                }
                ScreenRequest::Redraw => {}
            }
            self.redraw = Some(Instant::now());
        }
        false
    }

    /// Stops as a job does; the command was stopped by the terminal itself. Goes on where it was.
    fn stop(&mut self) {
        self.terminal.give_back();
        let _ = raise(Signal::SIGSTOP);
        if self.terminal.take().is_err() {
            self.lose();
        }
    }

    /// The terminal is gone. A write may notice it before a read does.
    fn lose(&mut self) {
        self.leave(None);
        self.is_lost = true;
    }

    /// Without a view, a command is still watched; any other watch ends, as the user could not end
    /// it later.
    fn wish(&self) -> ViewerRequest {
        if self.is_lost && !self.is_command { ViewerRequest::End } else { ViewerRequest::GoOn }
    }

    fn refresh(&mut self, look: &mut TakeSnapshot<'_>) {
        let began = cpu_time();
        match look() {
            Ok(None) => {}
            Ok(Some(snapshot)) => {
                // Drawing takes the smaller part of the time, judged by the last drawing.
                let wait = (cpu_time().saturating_sub(began) * SPARING).max(SECOND);
                self.screen.on(Event::Look(snapshot, wait));
                self.next = Instant::now() + wait;
            }
            Err(reason) => {
                self.screen.on(Event::Notice(&reason));
                self.next = Instant::now() + SECOND;
            }
        }
        self.draw();
        let took = cpu_time().saturating_sub(began) * SPARING;
        self.next = self.next.max(Instant::now() + took);
    }
}

impl Viewer for LiveView {
    fn fall_back(&mut self, reason: &str) {
        self.saver.fall_back(reason);
        self.screen.setting_mut().fallback = Some(reason.to_owned());
    }

    fn begin(&mut self, outset: &WatchStart) {
        self.saver.begin(outset);
        let setting = self.screen.setting_mut();
        setting.pid = outset.pid;
        setting.observer = outset.observer.to_owned();
        setting.cost_range_ns = outset.cost_range_ns;
        setting.times_inflated = outset.times_inflated;
        setting.rings = outset.sees_rings;
        setting.requests_refused = outset.missing.iter().any(|one| one.feature == "requests");
        self.take_screen();
    }

    fn wakers(&self) -> Vec<BorrowedFd<'_>> {
        let mut wakers: Vec<BorrowedFd<'_>> = self.capture.iter().map(AsFd::as_fd).collect();
        if self.is_up {
            wakers.push(self.terminal.as_fd());
            wakers.extend(self.signals.iter().map(|signals| signals.descriptor.as_fd()));
        }
        wakers
    }

    fn deadline(&self) -> Option<Instant> {
        if matches!(self.wish(), ViewerRequest::End) {
            return Some(Instant::now());
        }
        let next = Some(self.next).filter(|_| self.is_up && !self.screen.is_paused());
        [next, self.redraw].into_iter().flatten().min()
    }

    fn update(&mut self, look: Option<&mut TakeSnapshot<'_>>) -> ViewerRequest {
        self.take_output();
        if !self.is_up {
            return self.wish();
        }
        if self.take_input() {
            let word = "view closed; the command is still watched; Ctrl-C interrupts it";
            self.leave(Some(word).filter(|_| self.is_command));
            return if self.is_command { ViewerRequest::GoOn } else { ViewerRequest::End };
        }
        let Some(look) = look else {
            self.leave(Some("the watch has ended; waiting for the command; Ctrl-C interrupts it"));
            return ViewerRequest::GoOn;
        };
        let now = Instant::now();
        if now >= self.next && !self.screen.is_paused() {
            self.refresh(look);
        } else if self.redraw.is_some_and(|at| now >= at) {
            self.draw();
        }
        self.wish()
    }

    fn takes_signal(&mut self, signal: i32) -> bool {
        let Ok(signal) = Signal::try_from(signal) else { return false };
        if !self.is_command || !self.is_up || matches!(signal, Signal::SIGUSR1 | Signal::SIGUSR2) {
            return false;
        }
        self.interrupts += 1;
        // The command has its first chance to end; with the terminal gone nothing is to be seen.
        if self.interrupts > 1 || signal == Signal::SIGHUP {
            self.leave(Some("view closed; the command runs on and is still watched"));
            return false;
        }
        let notice = format!("the command got {signal}; the next one closes the view");
        self.screen.on(Event::Notice(&notice));
        self.redraw = Some(Instant::now() + FRAME);
        false
    }
}

impl Drop for LiveView {
    fn drop(&mut self) {
        // The last output of the command.
        while let Some(capture) = &mut self.capture {
            let written = capture.written();
            if written.is_empty() {
                break;
            }
            if self.is_up {
                capture.keep(&written);
            } else {
                self.terminal.write(&written);
            }
        }
        self.leave(None);
    }
}

impl Signals {
    fn hold() -> io::Result<Self> {
        let held: SigSet = [Signal::SIGTSTP, Signal::SIGWINCH].into_iter().collect();
        sigprocmask(SigmaskHow::SIG_BLOCK, Some(&held), None)?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        Ok(Self { held, descriptor: SignalFd::with_flags(&held, flags)? })
    }

    fn next(&self) -> Option<Signal> {
        let info = self.descriptor.read_signal().ok()??;
        Signal::try_from(info.ssi_signo.cast_signed()).ok()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // Signals that came too late are not delivered a second time.
        while self.next().is_some() {}
        let _ = sigprocmask(SigmaskHow::SIG_UNBLOCK, Some(&self.held), None);
    }
}

/// The CPU time of this thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
