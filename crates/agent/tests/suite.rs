//! Tests of the built agent on the real kernel.

#![expect(clippy::unwrap_used, reason = "a failed step of a test is a failed test")]

mod access;
mod budget;
mod counts;
mod ends;
mod fleet_otlp;
mod fleet_prometheus;
mod guide;
mod otlp;
mod refusals;
mod reload;
mod scrapes;
mod support;
mod unit;
