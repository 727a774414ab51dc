//! Which calls and ring operations are counted: a condition on each (`--where`), in D's expressions (crate `d`);
//! which of these ends the watch (`--until`); what they are grouped by (`grouping.rs`). The variables are the same.
//!
//! A condition is decided in two steps. By a call's number alone much is known ([`Filter::of_call`]):
//! its name, its groups, whether it has a descriptor or a path at all. Only where that leaves it open,
//! the facts of the single call decide, in the kernel or here ([`Filter::holds`]).

use std::ops::RangeInclusive;
use std::time::Duration;

use iotomy_dtrace::{Aggregation, Instruction, Kind, Outcome, Problem, StringTest, Variable};
use iotomy_record::calls::{ALL_RINGS, GROUPS, RING_PREFIX};
use iotomy_record::{EndedBy, WholeCall};
use iotomy_sys::syscalls::{self, Abi};

use crate::compiled::Compiled;
use crate::grouping::Grouping;
use crate::naming::{CallNumber, call_name, plain_name};

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

/// Instructions that there is room for in `condition` of `where.bpf.h`.
pub(crate) const MOST_INSTRUCTIONS: usize = 2040;

/// Which calls are counted, which of them ends the watch, and by what they are grouped. The usual one
/// lets every call pass, and none end anything.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    r#where: Option<Compiled>,
    until: Option<Compiled>,
    /// Where the watch goes on after a call that was to end it: how long no other is asked.
    pause: Option<Duration>,
    pub(crate) by: Grouping,
}

/// What has been counted so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) count: i64,
    pub(crate) bytes: i64,
    pub(crate) duration_ns: i64,
}

/// What a filter makes of a call by its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// All of them are counted.
    All,
    /// None is.
    None,
    /// The single call decides.
    Open,
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

impl Filter {
    /// By a condition on the variables of [`VARIABLES`].
    ///
    /// # Errors
    /// What is wrong with the text, and where.
    pub fn new(text: &str) -> Result<Self, Problem> {
        Ok(Self { r#where: Some(Compiled::new(text, &[], &[])?), ..Self::default() })
    }

    /// The same, with a condition on the variables of [`VARIABLES`] and [`AGGREGATIONS`] that ends the
    /// watch when a call for which it holds has returned. Calls that are not counted end nothing.
    ///
    /// # Errors
    /// What is wrong with the text, and where.
    pub fn until(self, text: &str) -> Result<Self, Problem> {
        let until = Compiled::new(text, AGGREGATIONS, self.tests())?;
        Ok(Self { until: Some(until), ..self })
    }

    /// The same, in which such a call ends nothing: the viewer is shown it, and sees none that returns within
    /// `pause` of it. Sums begin anew after that.
    #[must_use]
    pub fn going_on(self, pause: Duration) -> Self {
        Self { pause: Some(pause), ..self }
    }

    /// The same, whose calls are grouped by variables of [`VARIABLES`] as well.
    ///
    /// # Errors
    /// There is no such variable, it is there twice, or there are more than four.
    pub fn grouped(self, by: &[String]) -> Result<Self, String> {
        Ok(Self { by: Grouping::new(by)?, ..self })
    }

    /// Whether it lets every call pass, and groups none.
    pub fn is_none(&self) -> bool {
        self.conditions().next().is_none() && self.by.is_none()
    }

    /// Whether it may leave calls out.
    pub(crate) fn restricts(&self) -> bool {
        self.r#where.is_some()
    }

    /// Whether a condition is asked of calls that are counted: of the one that ends the watch, or of those that the
    /// viewer is shown.
    pub(crate) fn has_until(&self) -> bool {
        self.until.is_some()
    }

    /// Where the watch goes on after a call that fulfilled that condition: how long no other is asked.
    pub(crate) fn pause(&self) -> Option<Duration> {
        self.pause.filter(|_| self.has_until())
    }

    /// The end of the watch by a call, with the sums that the condition asks for.
    pub(crate) fn ended_by(&self, call: WholeCall, sums: Sums) -> EndedBy {
        let asked = |fact, sum: i64| self.uses(fact).then_some(sum.cast_unsigned());
        EndedBy {
            call,
            count: asked(fact::COUNT, sums.count),
            sum_bytes: asked(fact::SUM_OF_BYTES, sums.bytes),
            sum_duration_ns: asked(fact::SUM_OF_DURATIONS, sums.duration_ns),
        }
    }

    fn conditions(&self) -> impl Iterator<Item = &Compiled> {
        self.r#where.iter().chain(&self.until)
    }

    /// The instructions of the condition on calls that are counted, and of that which ends the watch.
    pub(crate) fn code(&self) -> [&[Instruction]; 2] {
        [&self.r#where, &self.until].map(|one| one.as_ref().map_or(&[][..], |one| &one.code))
    }

    /// Whether a condition needs a fact, or a group does.
    pub(crate) fn uses(&self, fact: u16) -> bool {
        self.conditions().any(|one| one.condition.uses(fact)) || self.by.facts().contains(&fact)
    }

    /// Whether the condition that ends the watch asks for sums.
    pub(crate) fn uses_sums(&self) -> bool {
        AGGREGATIONS.iter().any(|sum| self.uses(sum.fact))
    }

    /// The strings that are compared, by their bit. The tests of the last condition begin with those
    /// of the one before.
    pub(crate) fn tests(&self) -> &[StringTest] {
        self.conditions().last().map_or(&[], |one| one.condition.tests())
    }

    /// Whether the calls of a name as records have it are counted.
    pub(crate) fn of_call(&self, name: &str) -> Verdict {
        self.r#where.as_ref().map_or(Verdict::All, |one| one.of_call(name))
    }

    /// Whether a counted call of a name as records have it ends the watch.
    pub(crate) fn ends_at_call(&self, name: &str) -> Verdict {
        match (self.of_call(name), &self.until) {
            (Verdict::None, _) | (_, None) => Verdict::None,
            (_, Some(until)) => until.of_call(name),
        }
    }

    /// Whether the requests by an operation of io_uring are counted.
    pub(crate) fn of_ring(&self, operation: &str) -> Verdict {
        self.r#where.as_ref().map_or(Verdict::All, |one| one.of_ring(operation))
    }

    /// Whether a counted request by it ends the watch.
    pub(crate) fn ends_at_ring(&self, operation: &str) -> Verdict {
        match (self.of_ring(operation), &self.until) {
            (Verdict::None, _) | (_, None) => Verdict::None,
            (_, Some(until)) => until.of_ring(operation),
        }
    }

    /// Bits of the tests of its call that an operation matches.
    pub(crate) fn ring_bits(&self, operation: &str) -> u64 {
        let of_ring = |test: &StringTest| {
            matches!(test.fact, fact::CALL | fact::GROUP) && is_of_ring(test, operation)
        };
        bits(self.tests().iter().map(of_ring))
    }

    /// Bits of the tests of its call that a call matches.
    pub(crate) fn call_bits(&self, name: &str) -> u64 {
        let of_call = |test: &StringTest| {
            matches!(test.fact, fact::CALL | fact::GROUP) && is_of_call(test, name)
        };
        bits(self.tests().iter().map(of_call))
    }

    /// Bits of the tests of a variable.
    pub(crate) fn bits_of(&self, fact: u16) -> u64 {
        bits(self.tests().iter().map(|test| test.fact == fact))
    }

    /// Bits of the tests of a variable that an empty text passes.
    pub(crate) fn bits_of_no(&self, fact: u16) -> u64 {
        let passes = |test: &StringTest| test.fact == fact && test.pattern.matches(b"");
        bits(self.tests().iter().map(passes))
    }

    /// Whether a call that returned is counted.
    pub(crate) fn holds(&self, call: CallNumber, facts: &CallFacts) -> Outcome {
        let of = |one: &Compiled| one.holds(call, facts, &Sums::default());
        self.r#where.as_ref().map_or(Outcome::True, of)
    }

    /// Whether a call that is counted ends the watch; the sums have it.
    pub(crate) fn ends_at(&self, call: CallNumber, facts: &CallFacts, sums: &Sums) -> Outcome {
        self.until.as_ref().map_or(Outcome::False, |one| one.holds(call, facts, sums))
    }
}

/// A bit for each number of a call whose name, as records have it, is as asked; of both entries.
pub(crate) fn calls(is: impl Fn(&str) -> bool) -> [[u64; 8]; 2] {
    [Abi::X86_64, Abi::I386].map(|abi| {
        let mut words = [0u64; 8];
        for number in 0..512u32 {
            let is_in = is(&call_name(abi, number));
            words[number as usize / 64] |= u64::from(is_in) << (number % 64);
        }
        words
    })
}

/// The argument of a call that is the descriptor it works on; also of a call after which that leads
/// nowhere, or elsewhere.
pub(crate) fn descriptor(name: &str) -> Option<u8> {
    let ends = matches!(
        name,
        "close"
            | "fstat64"
            | "fstatfs64"
            | "fchown32"
            | "setns"
            | "finit_module"
            | "pidfd_getfd"
            | "pidfd_send_signal"
            | "mq_timedsend"
            | "mq_timedreceive"
            | "mq_notify"
            | "_llseek"
    );
    syscalls::descriptor(name).or(ends.then_some(0))
}

/// Whether a call's name, or a group's that it is in, is what a test asks for.
pub(crate) fn is_of_call(test: &StringTest, name: &str) -> bool {
    let plain = plain_name(name);
    let matches = |text: &str| test.pattern.matches(text.as_bytes());
    if test.fact == fact::CALL {
        return matches(plain) || matches(name);
    }
    let groups = GROUPS.iter().filter(|group| group.calls.contains(&plain));
    groups
        .into_iter()
        .any(|group| matches(group.name) || matches(group.name.trim_start_matches('%')))
}

/// The same of an operation of io_uring.
pub(crate) fn is_of_ring(test: &StringTest, operation: &str) -> bool {
    let matches = |text: &str| test.pattern.matches(text.as_bytes());
    match test.fact == fact::CALL {
        true => matches(&format!("{RING_PREFIX}{operation}")),
        false => matches(ALL_RINGS) || matches(ALL_RINGS.trim_start_matches('%')),
    }
}

pub(crate) fn bits(of: impl Iterator<Item = bool>) -> u64 {
    of.enumerate().map(|(bit, is_set)| u64::from(is_set) << bit).sum()
}

#[cfg(test)]
#[path = "filter_tests.rs"]
mod tests;
