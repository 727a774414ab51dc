//! Tests of data sets: what is in them, and what is left of an export that was cut short.

#![expect(clippy::unwrap_used, reason = "a failed step of a test is a failed test")]

mod data_sets;
mod expected;
mod fleet_queries;
mod guide;
mod read_back;
mod round_trip;
