//! The variables of conditions and groups, and their values.

use std::ops::RangeInclusive;

use iotomy_dtrace::{Aggregation, Kind, Variable};

/// Numbers of facts: `enum fact` of `where.h`, and of strings.
pub(crate) mod fact {
    pub(crate) const FD: u16 = 0;
    pub(crate) const ERRNO: u16 = 1;
    pub(crate) const BYTES: u16 = 2;
    pub(crate) const DURATION: u16 = 3;
    pub(crate) const THREAD: u16 = 4;
    pub(crate) const PID: u16 = 5;
    /// Of all counted calls so far.
    pub(crate) const COUNT: u16 = 6;
    pub(crate) const SUM_OF_BYTES: u16 = 7;
    pub(crate) const SUM_OF_DURATIONS: u16 = 8;
    /// With the word of matches.
    pub(crate) const WORDS: u16 = 10;

    pub(crate) const CALL: u16 = 0x100;
    pub(crate) const GROUP: u16 = 0x101;
    pub(crate) const PATH: u16 = 0x102;
    pub(crate) const IMAGE: u16 = 0x103;
    pub(crate) const THREADNAME: u16 = 0x104;
    pub(crate) const CGROUP: u16 = 0x105;
    pub(crate) const PEER: u16 = 0x106;
    pub(crate) const TITLE: u16 = 0x107;
}

/// The variables of conditions. D's own words stand for the same as DTrace's.
#[rustfmt::skip]
pub static VARIABLES: &[Variable] = &[
    string("call", fact::CALL, "the system call's name, as in \"read\"; or a ring operation's, as in \"ring:read\""),
    string("group", fact::GROUP, "a group of calls it belongs to, as in \"%file\" (see --call); \"%ring\" for ring operations"),
    number("fd", fact::FD, "the descriptor it works on, of two the one that bytes come from; or -1"),
    string("path", fact::PATH, "the path it is given, or that of its descriptor, as in \"/etc/*\", \"pipe:*\", \"socket:*\"; \
        or \"\""),
    number("errno", fact::ERRNO, "the error it returned, as in ENOENT; 0 where it succeeded"),
    number("bytes", fact::BYTES, "the bytes it moved; 0 where it failed or moves none"),
    number("duration", fact::DURATION, "its time from entry to return, or from submission to completion, as in 10ms"),
    string("image", fact::IMAGE, "the program's name: as it was executed, or of the file that runs"),
    string("execname", fact::IMAGE, "the same, D's word"),
    number("pid", fact::PID, "the process id"),
    number("thread", fact::THREAD, "the thread id"),
    number("tid", fact::THREAD, "the same, D's word"),
    string("threadname", fact::THREADNAME, "the thread's name"),
    string("title", fact::TITLE, "the title that its process has set, as in \"postgres: walwriter\"; or \"\""),
    string("cgroup", fact::CGROUP, "the path of a control group that the thread is in, as in \"/system.slice/*\""),
    string("peer", fact::PEER, "what its socket is connected to, as in \"tcp 10.0.0.7:5432\", \"unix /run/*\"; or \"\""),
];

/// What the condition that ends a watch may ask of all calls that were counted so far, the one that
/// returns included.
#[rustfmt::skip]
pub static AGGREGATIONS: &[Aggregation] = &[
    Aggregation { function: "count", of: None, fact: fact::COUNT, summary: "the calls counted so far, this one included" },
    Aggregation { function: "sum", of: Some("bytes"), fact: fact::SUM_OF_BYTES, summary: "the bytes they moved" },
    Aggregation { function: "sum", of: Some("duration"), fact: fact::SUM_OF_DURATIONS, summary: "the time from their entries to their returns" },
];

/// The values that a fact can have: whatever a call is given, and comes to.
pub(crate) fn range(fact: u16) -> RangeInclusive<i64> {
    /// The kernel has no process ids beyond (`PID_MAX_LIMIT`).
    const MOST_IDS: i64 = 1 << 22;
    /// Nor errors (`MAX_ERRNO`).
    const MOST_ERRNO: i64 = 4095;
    match fact {
        // A program may pass a number that is no descriptor.
        fact::FD => i32::MIN.into()..=i32::MAX.into(),
        fact::ERRNO => 0..=MOST_ERRNO,
        fact::THREAD | fact::PID => 0..=MOST_IDS,
        fact::COUNT => 1..=i64::MAX,
        _ => 0..=i64::MAX,
    }
}

const fn number(name: &'static str, fact: u16, summary: &'static str) -> Variable {
    Variable { name, kind: Kind::Integer, fact, summary }
}

const fn string(name: &'static str, fact: u16, summary: &'static str) -> Variable {
    Variable { name, kind: Kind::String, fact, summary }
}

/// What has been counted so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) count: i64,
    pub(crate) bytes: i64,
    pub(crate) duration_ns: i64,
}

/// The facts of a call that returned.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallFacts {
    pub(crate) fd: i64,
    pub(crate) errno: i64,
    pub(crate) bytes: i64,
    pub(crate) duration_ns: i64,
    pub(crate) thread: i64,
    pub(crate) pid: i64,
    pub(crate) paths: Vec<String>,
    /// The names of its program.
    pub(crate) images: Vec<String>,
    pub(crate) threadname: String,
    pub(crate) cgroups: Vec<String>,
    /// What its socket is connected to.
    pub(crate) peer: String,
    /// The title that its process has set.
    pub(crate) title: String,
}
