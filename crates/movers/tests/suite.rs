//! The suites of the movers. One program has all of them, because it is linked once.

#![expect(clippy::unwrap_used, reason = "a failed step of a test is a failed test")]

mod changing;
mod choosing;
mod contract;
mod faults;
mod hole_faults;
mod holes;
mod memory;
mod patience;
mod sizes;
mod special;
mod support;
mod truth;
