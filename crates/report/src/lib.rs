//! Records to text.
//!
//! Reads records only, never an engine: a saved record always renders the same. The invariants of
//! all output: no line is wider than requested, no byte of a record reaches the terminal unless it
//! is a glyph, any record renders (sums are wide, divisions guarded), and colour repeats the
//! meaning of a word or a position.

mod anatomy;
mod axis;
mod ceilings;
mod chart;
mod columns;
mod copy;
mod d;
mod diff;
mod doctor;
mod escape;
mod findings;
mod frames;
mod histogram;
mod history;
mod html;
mod interval;
mod limits;
pub mod live;
#[cfg(test)]
mod looks;
mod machines;
mod markdown;
mod page;
mod parts;
mod peers;
mod quantize;
mod race;
mod section;
mod sections;
mod sheet;
mod signals;
mod source;
mod style;
mod sweep;
mod table;
mod trace;

use iotomy_record::numbers;

pub use anatomy::{anatomy, anatomy_brief, difference, flame, folded};
pub use copy::{copy, copy_end, copy_outcome, copy_plan};
pub use d::{d, d_csv};
pub use diff::{DiffView, diff, diff_csv, diff_markdown};
pub use doctor::doctor;
pub use history::{against, history, trends};
pub use html::html;
pub use interval::interval;
pub use iotomy_record::numbers::{bytes, duration, thousands};
pub use limits::limits;
pub use page::hanging;
pub use parts::{PartError, PartKind, ReportPart, csv, markdown, parts, svg};
pub use race::{race, race_csv, race_markdown};
pub use source::Source;
pub use style::Style;
pub use sweep::sweep;
pub use trace::{trace, trace_brief};
