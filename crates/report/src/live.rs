//! A running watch as a screen that is drawn repeatedly: [`Screen`] receives events, and
//! [`Screen::draw`] makes cells of it. Both are pure: the terminal, its keys and the clock belong
//! to the caller.
//!
//! The figures are those of the time between two snapshots, usually a second; the labels and
//! numbers those of the report. As everywhere here, no byte of a name reaches the terminal unless
//! it is a glyph.

mod draw;
mod output;
mod peer_rows;
mod request_rows;
mod ring_rows;
mod rows;
mod screen;
mod subject;
mod tabs;
mod tails;

pub use screen::{Event, Key, Screen, ScreenRequest, Setting};

#[cfg(test)]
mod peer_tests;
#[cfg(test)]
mod request_tests;
#[cfg(test)]
mod ring_tests;
#[cfg(test)]
mod tests;
