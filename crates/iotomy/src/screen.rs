//! What the terminal can show, and what the user wants it to.

use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use iotomy_record::printable;
use iotomy_report::Style;

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Default)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set or TERM is `dumb`.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How reports look; every verb that prints one has these.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct Looks {
    /// When to colour the report
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    color: Color,

    /// Keep to ASCII characters
    #[arg(long)]
    ascii: bool,
}

/// The widest a report gets, however wide the terminal.
const WIDEST: usize = 100;
/// The narrowest, below which a table is no table.
const NARROWEST: usize = 60;

impl Looks {
    /// How a report on `stream` is to look.
    pub(crate) fn on(self, stream: &(impl AsFd + IsTerminal)) -> Style {
        let terminal = stream.is_terminal();
        let columns = rustix::termios::tcgetwinsize(stream).ok().filter(|_| terminal);
        let columns = columns.map_or(WIDEST, |size| usize::from(size.ws_col));
        let color = match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => terminal && set("NO_COLOR").is_none() && !is_dumb(),
        };
        let width = if columns == 0 { WIDEST } else { columns.clamp(NARROWEST, WIDEST) };
        Style { color, unicode: !self.ascii, width }
    }

    /// How a view of a whole terminal is to look, with nothing in it yet.
    pub(crate) fn of_a_screen(self) -> iotomy_report::live::Setting {
        let color = match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => set("NO_COLOR").is_none(),
        };
        iotomy_report::live::Setting { color, unicode: !self.ascii, ..Default::default() }
    }

    /// How a report in a file is to look: the same everywhere.
    pub(crate) fn in_a_file(self) -> Style {
        Style { color: self.color == Color::Always, unicode: !self.ascii, width: WIDEST }
    }
}

/// One line that is written over and over, on a terminal, of work longer than a second.
#[derive(Debug)]
pub(crate) struct StatusLine {
    began: Instant,
    is_wanted: bool,
    is_shown: bool,
}

impl StatusLine {
    /// For standard error; without `quiet`, and where that is a terminal.
    pub(crate) fn new(quiet: bool) -> Self {
        let is_wanted = !quiet && !is_dumb() && std::io::stderr().is_terminal();
        Self { began: Instant::now(), is_wanted, is_shown: false }
    }

    /// Shows a text, cut where it is too wide.
    pub(crate) fn show(&mut self, text: &str) {
        if self.is_wanted && self.began.elapsed() > Duration::from_secs(1) {
            let text: String = printable(text, true).chars().take(78).collect();
            let _ = write!(std::io::stderr(), "\r\x1b[K{text}");
            self.is_shown = true;
        }
    }

    /// Takes it away, for other text.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

fn set(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

pub(crate) fn is_dumb() -> bool {
    set("TERM").is_some_and(|term| term == "dumb")
}
