//! The suites of the waiters. One program has all of them, because it is linked once.

#![expect(clippy::unwrap_used, reason = "a failed step of a test is a failed test")]

mod contract;
mod disturbed;
mod docs;
mod forks;
mod many;
mod support;
mod threads;
mod truth;
