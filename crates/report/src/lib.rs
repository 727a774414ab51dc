//! Records to text.
//!
//! Sees records only, never an engine: a saved record renders the same for ever. The invariants
//! of everything printed here: no line is wider than asked, no byte of a record reaches the
//! terminal unless it is a glyph, any record renders (sums are wide, divisions guarded), and
//! colour repeats what a word or a position already says.

mod anatomy;
mod copy;
mod findings;
mod limits;
#[cfg(test)]
mod looks;
mod page;
mod quantize;
mod race;
mod signals;
mod sweep;
mod table;
mod trace;

use iotomy_record::numbers;

pub use anatomy::{FlameError, anatomy, difference, flame, folded};
pub use copy::{copy, copy_end, copy_outcome, copy_plan};
pub use iotomy_record::numbers::{bytes, duration, thousands};
pub use limits::limits;
pub use race::race;
pub use sweep::sweep;
pub use trace::trace;

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
