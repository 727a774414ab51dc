//! Copies by the library: what ends where, what is refused, and what is said of it. One program has all of them,
//! because it is linked once.

#![expect(clippy::unwrap_used, reason = "a failed step of a test is a failed test")]

mod accounts;
mod claims;
mod faults;
#[path = "../../movers/tests/support/folders.rs"]
#[expect(dead_code, reason = "the suites of the movers use total")]
mod file_systems;
mod files;
mod refusals;
mod support;
mod verify;
