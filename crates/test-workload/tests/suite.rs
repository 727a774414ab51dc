//! The truth suites: an observer watches the subject do exactly N of something. One program has all of them, because it is linked once.

#![expect(clippy::unwrap_used, reason = "a failed step of a test is a failed test")]

mod harness;
mod namespace;
mod rings;
mod rings_connections;
mod rings_where;
mod served;
mod titles;
mod truth;
mod truth_anatomy;
mod truth_processes;
mod truth_threads;
