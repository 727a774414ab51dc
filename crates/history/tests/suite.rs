//! The suites of the history. One program has all of them, because it is linked once.

#![expect(clippy::unwrap_used, reason = "a failed step of a test is a failed test")]

mod baseline;
mod machines;
mod store;
