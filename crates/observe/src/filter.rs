//! Which calls are counted: a condition on each (`--where`), in D's expressions (crate `d`); what they
//! are grouped by (`grouping.rs`) are the same variables.
//!
//! A condition is decided in two steps. By a call's number alone much is known ([`Filter::of_call`]):
//! its name, its groups, whether it has a descriptor or a path at all. Only where that leaves it open,
//! the facts of the single call decide, in the kernel or here ([`Filter::holds`]).

use iotomy_d::{
    Condition, Instruction, Kind, Outcome, Problem, Scope, StringTest, Variable, compile,
};
use iotomy_record::calls::GROUPS;
use iotomy_sys::errno;
use iotomy_sys::syscalls::{self, Abi};

use crate::grouping::Grouping;
use crate::naming::{call_name, plain_name};
use crate::tally::CallNumber;

/// Numbers of facts: `enum fact` of `where.h`, and of strings.
pub(crate) mod fact {
    pub(crate) const FD: u16 = 0;
    pub(crate) const ERRNO: u16 = 1;
    pub(crate) const BYTES: u16 = 2;
    pub(crate) const DURATION: u16 = 3;
    pub(crate) const THREAD: u16 = 4;
    pub(crate) const PID: u16 = 5;
    /// With the word of matches.
    pub(crate) const WORDS: u16 = 7;

    pub(crate) const CALL: u16 = 0x100;
    pub(crate) const GROUP: u16 = 0x101;
    pub(crate) const PATH: u16 = 0x102;
    pub(crate) const IMAGE: u16 = 0x103;
    pub(crate) const THREADNAME: u16 = 0x104;
    pub(crate) const CGROUP: u16 = 0x105;
}

/// The variables of conditions. D's own words stand for the same as DTrace's.
#[rustfmt::skip]
pub static VARIABLES: &[Variable] = &[
    string("call", fact::CALL, "the system call's name, as in \"read\""),
    string("group", fact::GROUP, "a group of calls it belongs to, as in \"%file\" (see --call)"),
    number("fd", fact::FD, "the descriptor it works on, of two the one that bytes come from; or -1"),
    string("path", fact::PATH, "the path it is given, or that of its descriptor, as in \"/etc/*\", \"pipe:*\", \"socket:*\"; \
        or \"\""),
    number("errno", fact::ERRNO, "the error it returned, as in ENOENT; 0 where it succeeded"),
    number("bytes", fact::BYTES, "the bytes it moved; 0 where it failed or moves none"),
    number("duration", fact::DURATION, "its time from entry to return, as in 10ms"),
    string("image", fact::IMAGE, "the program's name: as it was executed, or of the file that runs"),
    string("execname", fact::IMAGE, "the same, D's word"),
    number("pid", fact::PID, "the process id"),
    number("thread", fact::THREAD, "the thread id"),
    number("tid", fact::THREAD, "the same, D's word"),
    string("threadname", fact::THREADNAME, "the thread's name"),
    string("cgroup", fact::CGROUP, "the path of a control group that the thread is in, as in \"/system.slice/*\""),
];

const fn number(name: &'static str, fact: u16, summary: &'static str) -> Variable {
    Variable { name, kind: Kind::Integer, fact, summary }
}

const fn string(name: &'static str, fact: u16, summary: &'static str) -> Variable {
    Variable { name, kind: Kind::String, fact, summary }
}

/// Instructions that there is room for in `condition` of `where.bpf.h`.
pub(crate) const MOST_INSTRUCTIONS: usize = 2040;

/// Which calls are counted, and by what they are grouped. The usual one lets every call pass.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    condition: Option<Condition>,
    pub(crate) code: Vec<Instruction>,
    pub(crate) by: Grouping,
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
}

impl Filter {
    /// By a condition on the variables of [`VARIABLES`].
    ///
    /// # Errors
    /// What is wrong with the text, and where.
    pub fn new(text: &str) -> Result<Self, Problem> {
        let mut constants: Vec<(&str, i64)> =
            errno::all().iter().map(|(number, name)| (*name, i64::from(*number))).collect();
        constants.extend([("EWOULDBLOCK", 11), ("EDEADLOCK", 35)]);
        let scope = Scope { variables: VARIABLES, constants: &constants };
        let condition = compile(text, scope)?;
        let code = condition.emit(fact::WORDS, MOST_INSTRUCTIONS).map_err(|error| Problem {
            span: 0..text.len(),
            message: error.to_string(),
            advice: String::new(),
        })?;
        Ok(Self { condition: Some(condition), code, by: Grouping::default() })
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
        self.condition.is_none() && self.by.is_none()
    }

    /// Whether the condition needs a fact.
    pub(crate) fn uses(&self, fact: u16) -> bool {
        self.condition.as_ref().is_some_and(|condition| condition.uses(fact))
            || self.by.facts().contains(&fact)
    }

    /// The strings that are compared, by their bit.
    pub(crate) fn tests(&self) -> &[StringTest] {
        self.condition.as_ref().map_or(&[], Condition::tests)
    }

    /// What is settled for all calls of a name as records have it.
    pub(crate) fn of_call(&self, name: &str) -> Verdict {
        let Some(condition) = &self.condition else { return Verdict::All };
        let plain = plain_name(name);
        let has_descriptor = descriptor(plain).is_some();
        let has_path = has_descriptor || !syscalls::paths(plain).is_empty();
        let known = |fact: u16| match fact {
            fact::FD if !has_descriptor => Some(-1),
            fact::BYTES if !syscalls::returns_bytes(plain) => Some(0),
            _ => None,
        };
        let matches = |test: &StringTest| match test.fact {
            fact::CALL | fact::GROUP => Some(is_of_call(test, name)),
            fact::PATH if !has_path => Some(test.pattern.matches(b"")),
            _ => None,
        };
        match condition.settled(&known, &matches) {
            Some(Outcome::True) => Verdict::All,
            Some(Outcome::False) => Verdict::None,
            // Divisions by zero are counted, call by call.
            Some(Outcome::DividedByZero) | None => Verdict::Open,
        }
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

    /// Bits of the tests of paths that no path at all passes.
    pub(crate) fn bits_of_no_path(&self) -> u64 {
        let passes = |test: &StringTest| test.fact == fact::PATH && test.pattern.matches(b"");
        bits(self.tests().iter().map(passes))
    }

    /// The outcome for a call that returned.
    pub(crate) fn holds(&self, (abi, number): CallNumber, facts: &CallFacts) -> Outcome {
        let Some(condition) = &self.condition else { return Outcome::True };
        let of = |fact: u16| match fact {
            fact::FD => facts.fd,
            fact::ERRNO => facts.errno,
            fact::BYTES => facts.bytes,
            fact::DURATION => facts.duration_ns,
            fact::THREAD => facts.thread,
            _ => facts.pid,
        };
        let any = |test: &StringTest, texts: &[String]| {
            texts.iter().any(|text| test.pattern.matches(text.as_bytes()))
        };
        let name = call_name(abi, number);
        let matches = |test: &StringTest| match test.fact {
            fact::PATH if facts.paths.is_empty() => test.pattern.matches(b""),
            fact::PATH => any(test, &facts.paths),
            fact::IMAGE => any(test, &facts.images),
            fact::CGROUP => any(test, &facts.cgroups),
            fact::THREADNAME => test.pattern.matches(facts.threadname.as_bytes()),
            _ => is_of_call(test, &name),
        };
        condition.evaluate(&of, bits(condition.tests().iter().map(matches)))
    }

    /// A bit for each number of a call for which a verdict is as asked; of both entries.
    pub(crate) fn calls(&self, is: &dyn Fn(&str, Verdict) -> bool) -> [[u64; 8]; 2] {
        [Abi::X86_64, Abi::I386].map(|abi| {
            let mut words = [0u64; 8];
            for number in 0..512u32 {
                let name = call_name(abi, number);
                let is_in = is(&name, self.of_call(&name));
                words[number as usize / 64] |= u64::from(is_in) << (number % 64);
            }
            words
        })
    }
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
fn is_of_call(test: &StringTest, name: &str) -> bool {
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

fn bits(of: impl Iterator<Item = bool>) -> u64 {
    of.enumerate().map(|(bit, is_set)| u64::from(is_set) << bit).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(text: &str, call: &str) -> Verdict {
        Filter::new(text)
            .unwrap_or_else(|problem| panic!("{}", problem.shown_in(text)))
            .of_call(call)
    }

    #[test]
    fn much_is_settled_by_the_call_alone() {
        for (text, call, expected) in [
            ("call == \"read\"", "read", Verdict::All),
            ("call == \"read\"", "read(i386)", Verdict::All),
            ("call == \"*(i386)\"", "read(i386)", Verdict::All),
            ("call == \"*(i386)\"", "read", Verdict::None),
            ("call == \"read\"", "write", Verdict::None),
            ("call == \"read\" && bytes < 512", "read", Verdict::Open),
            ("call == \"read\" && bytes < 512", "write", Verdict::None),
            ("bytes < 512", "getpid", Verdict::All),
            ("fd == 5", "getpid", Verdict::None),
            ("fd == 5", "close", Verdict::Open),
            ("path == \"/etc/*\"", "getpid", Verdict::None),
            ("path == \"/etc/*\"", "openat", Verdict::Open),
            ("path == \"/etc/*\"", "read", Verdict::Open),
            ("path == \"\"", "getpid", Verdict::All),
            ("group == \"%net\"", "sendto", Verdict::All),
            ("group == \"net\" || group == \"%file\"", "openat", Verdict::All),
            ("group != \"%net\"", "sendto", Verdict::None),
            ("errno == ENOENT", "getpid", Verdict::Open),
            ("1 / bytes", "getpid", Verdict::Open),
            ("execname == \"cat\" && pid == tid", "getpid", Verdict::Open),
        ] {
            assert_eq!(verdict(text, call), expected, "{text} of {call}");
        }
        assert_eq!(Filter::default().of_call("read"), Verdict::All);
    }

    #[test]
    fn the_facts_of_a_call_decide_the_rest() {
        let facts = CallFacts {
            fd: 3,
            errno: 2,
            duration_ns: 1_500_000,
            paths: vec!["/a".to_owned(), "/b/c".to_owned()],
            images: vec!["script.py".to_owned(), "python3".to_owned()],
            threadname: "worker".to_owned(),
            cgroups: vec!["/".to_owned(), "/x/y".to_owned()],
            ..CallFacts::default()
        };
        let holds = |text: &str| {
            Filter::new(text).unwrap().holds((Abi::X86_64, 82), &facts) == Outcome::True
        };
        for text in [
            "call == \"rename\" && path == \"/b/*\" && path == \"/a\"",
            "errno == ENOENT && duration > 1ms && fd == 3",
            "image == \"python*\" && execname == \"script.py\" && image != \"perl\"",
            "threadname == \"work*\" && cgroup == \"/x/*\" && cgroup != \"/z\"",
        ] {
            assert!(holds(text), "{text}");
        }
        assert!(!holds("path == \"\"") && !holds("errno == EWOULDBLOCK"));
    }

    #[test]
    fn the_whole_room_is_for_instructions() {
        let long = |terms: i32| {
            let terms: Vec<String> = (0..terms).map(|term| format!("fd == {term}")).collect();
            Filter::new(&terms.join(" || "))
        };
        assert!(long(250).is_ok());
        let sums = vec!["fd * 3 / bytes - errno % (duration + 1) != 7"; 120].join(" || ");
        assert!(Filter::new(&sums).unwrap_err().message.contains("of at most 2040"));
    }
}
