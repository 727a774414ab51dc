//! Records to text.
//!
//! Sees records only, never an engine: a saved record renders the same for ever. The invariants
//! of everything printed here: no line is wider than asked, no byte of a record reaches the
//! terminal unless it is a glyph, any record renders (sums are wide, divisions guarded), and
//! colour repeats what a word or a position already says.

mod anatomy;
mod axis;
mod ceilings;
mod chart;
mod copy;
mod escape;
mod findings;
mod frames;
mod histogram;
mod history;
mod html;
mod limits;
pub mod live;
#[cfg(test)]
mod looks;
mod markdown;
mod page;
mod parts;
mod quantize;
mod race;
mod section;
mod sheet;
mod signals;
mod sweep;
mod table;
mod trace;

use iotomy_record::numbers;
use iotomy_record::store::Record;

pub use anatomy::{anatomy, difference, flame, folded};
pub use copy::{copy, copy_end, copy_outcome, copy_plan};
pub use history::{against, history, trend};
pub use html::html;
pub use iotomy_record::numbers::{bytes, duration, thousands};
pub use limits::limits;
pub use parts::{Part, PartError, PartKind, csv, markdown, parts, svg};
pub use race::race;
pub use sweep::sweep;
pub use trace::trace;

/// A record, and where it is from.
#[derive(Debug, Clone, Copy)]
pub struct Source<'a> {
    /// The name of its file.
    pub name: &'a str,
    /// What it holds.
    pub record: &'a Record,
    /// The file's content.
    pub bytes: &'a [u8],
}

/// How text is to look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Style {
    /// Whether to use ANSI colours.
    pub color: bool,
    /// Whether characters outside ASCII may be used; without, names that hold some are escaped.
    pub unicode: bool,
    /// Columns a line may take; below 20 it is taken for 20.
    pub width: usize,
}

impl Default for Style {
    fn default() -> Self {
        Self { color: false, unicode: true, width: 100 }
    }
}
