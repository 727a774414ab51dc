//! Why records cannot be compared.

use iotomy_record::{message, printable};

/// Why records cannot be compared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiffError {
    /// A side has no record.
    #[error("a side has no record")]
    Empty,
    /// A record is neither a trace nor an anatomy.
    #[error(
        "cannot compare {}: it is {schema}, and diff compares traces and anatomies{}",
        printable(name, true),
        advice(schema)
    )]
    Kind {
        /// Where the record is from.
        name: String,
        /// Its kind and version.
        schema: &'static str,
    },
    /// The records are of two kinds.
    #[error(
        "cannot compare {} ({first_kind}) with {} ({other_kind}): give records of one kind",
        printable(first, true),
        printable(other, true)
    )]
    Kinds {
        /// Where the first record is from.
        first: String,
        /// Its kind.
        first_kind: &'static str,
        /// Where the other is from.
        other: String,
        /// Its kind.
        other_kind: &'static str,
    },
    /// A record has a part of the calls.
    #[error(
        "cannot compare {}: it counted calls in 1/{n} of the time (--sample), and estimates do not tell what differs; \
         trace without --sample",
        printable(name, true)
    )]
    Sampled {
        /// Where the record is from.
        name: String,
        /// One part in so many.
        n: u32,
    },
    /// The traces counted different calls.
    #[error(
        "cannot compare {} with {}: one counted {}, the other {}; trace both with the same --call and --where",
        printable(first, true),
        printable(other, true),
        message(first_calls, true),
        message(other_calls, true)
    )]
    Calls {
        /// Where the first record is from.
        first: String,
        /// Its calls.
        first_calls: String,
        /// Where the other is from.
        other: String,
        /// Its calls.
        other_calls: String,
    },
}

fn advice(schema: &str) -> &'static str {
    match schema.split('/').next() {
        Some("iotomy.race") => "; `iotomy show` says where the difference of a race is",
        Some("iotomy.limits" | "iotomy.sweep" | "iotomy.copy") => "; try `iotomy history diff`",
        _ => "",
    }
}
