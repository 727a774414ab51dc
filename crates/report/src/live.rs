//! A watch under way as a screen that is drawn over and over: [`Screen`] takes events, and
//! [`Screen::draw`] makes cells of it. Both are pure: the terminal, its keys and the clock are the
//! caller's.
//!
//! The figures are those of the time between two looks, a second as a rule; the labels and numbers
//! those of the report. As everywhere here, no byte of a name reaches the terminal unless it is a
//! glyph.

mod draw;
mod output;
mod rows;
mod screen;

pub use screen::{Event, Key, Screen, ScreenRequest, Setting};

#[cfg(test)]
mod tests;
