//! The capabilities of the terminal, and the user's settings for it.

use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use clap::ValueEnum;
pub(crate) use iotomy_host::speaks_utf8;
use iotomy_record::{message, printable};
use iotomy_report::Style;

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Default)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set, or TERM is `dumb` or not set
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The style options of reports; every verb that prints a report has them.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct OutputStyle {
    /// When to colour the report
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Color::Auto)]
    color: Color,

    /// Use ASCII characters only, as by default where the locale (LC_ALL, LC_CTYPE, LANG) is not
    /// UTF-8
    #[arg(long)]
    ascii: bool,
}

/// The widest that the text of a report gets, however wide the terminal: tables take what they need.
const WIDEST: usize = 100;
/// The narrowest, below which a table is not a table.
const NARROWEST: usize = 60;

impl OutputStyle {
    /// The style of a report on `stream`.
    pub(crate) fn on(self, stream: &(impl AsFd + IsTerminal)) -> Style {
        let terminal = stream.is_terminal();
        let size = rustix::termios::tcgetwinsize(stream).ok().filter(|_| terminal);
        let columns = size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0);
        let color = match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => terminal && set("NO_COLOR").is_none() && !is_dumb(),
        };
        let width = columns.map_or(WIDEST, |columns| columns.clamp(NARROWEST, WIDEST));
        let table_width = columns.unwrap_or_else(wanted_columns);
        Style { color, unicode: self.unicode(), width, table_width }
    }

    /// The style of a view on a whole, empty terminal.
    pub(crate) fn of_a_screen(self) -> iotomy_report::live::Setting {
        let color = match self.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => set("NO_COLOR").is_none(),
        };
        iotomy_report::live::Setting { color, unicode: self.unicode(), ..Default::default() }
    }

    /// The style of a report in a file: the same width everywhere, unless the user wants another.
    pub(crate) fn in_a_file(self) -> Style {
        Style {
            color: self.color == Color::Always,
            unicode: self.unicode(),
            width: WIDEST,
            table_width: wanted_columns(),
        }
    }

    fn unicode(self) -> bool {
        !self.ascii && speaks_utf8()
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
            let text: String = shown(text).chars().take(78).collect();
            let _ = write!(std::io::stderr(), "\r\x1b[K{text}");
            self.is_shown = true;
        }
    }

    /// Removes it, to make room for other text.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

/// The columns for tables where no terminal has any; 0 without a wish.
fn wanted_columns() -> usize {
    /// Beyond any table.
    const MOST: usize = 2_000;
    let columns = set("COLUMNS").and_then(|columns| columns.to_str()?.parse().ok());
    columns.unwrap_or(0usize).min(MOST)
}

fn set(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Whether the terminal only takes characters: `TERM` is `dumb`, unset or empty.
pub(crate) fn is_dumb() -> bool {
    set("TERM").is_none_or(|term| term == "dumb")
}

/// A line for the user, with names escaped as this locale needs.
pub(crate) fn shown(text: &str) -> String {
    message(text, speaks_utf8())
}

/// A path in a line for the user, each of its bytes as [`iotomy_record::lossless`] writes it.
pub(crate) fn path_text(path: impl AsRef<Path>) -> String {
    printable(&iotomy_record::path_text(path), true)
}

/// As [`shown`], of several lines.
pub(crate) fn shown_lines(text: &str) -> String {
    iotomy_record::lines(text, speaks_utf8())
}
