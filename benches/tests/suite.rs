//! The suites of the benches. One program has all of them, because it is linked once.

#![expect(clippy::unwrap_used, reason = "a failed step of a test is a failed test")]

mod all;
mod killed;
mod summary;
