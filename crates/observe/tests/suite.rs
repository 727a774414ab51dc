//! The suites of the observers. One program has all of them, because it is linked once.

#![expect(clippy::unwrap_used, reason = "a failed step of a test is a failed test")]

mod d;
mod sampled;
mod wakeups;
