//! Pushes over OTLP: the metrics of scrapes as messages of OpenTelemetry, sent to a collector at an interval.
//!
//! Counters are sums since the agent began, so the newest push has all that one before it had: one that failed is not kept,
//! and nothing queues.

mod attempt;
mod backoff;
mod endpoint;
mod message;
mod push;

pub use self::endpoint::Endpoint;
pub(crate) use self::message::{Origin, message};
pub(crate) use self::push::{keep_pushing, push_last};
