//! A condition with its instructions, and what it makes of a call.

use iotomy_dtrace::{
    Aggregation, Condition, Instruction, Outcome, Problem, Scope, StringTest, compile_beside,
    nearest,
};
use iotomy_record::bytes_of;
use iotomy_record::calls::{ALL_RINGS, GROUPS, RING_PREFIX};
use iotomy_sys::syscalls::Abi;
use iotomy_sys::{errno, syscalls};

use crate::call_names::{bits, calls, descriptor, is_of_call, is_of_ring};
use crate::naming::{CallNumber, UNNAMED, call_name, choice_name, plain_name};
use crate::ring_names;
use crate::variables::{self, CallFacts, Sums, VARIABLES, fact};

/// Instructions that there is room for in `condition` of `where.bpf.h`.
pub(crate) const MOST_INSTRUCTIONS: usize = 2040;

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

/// A condition, and its instructions.
#[derive(Debug, Clone)]
pub(crate) struct Compiled {
    pub(crate) condition: Condition,
    pub(crate) code: Vec<Instruction>,
}

impl Compiled {
    /// Beside a condition with these string tests.
    pub(crate) fn new(
        text: &str,
        aggregations: &[Aggregation],
        tests: &[StringTest],
    ) -> Result<Self, Problem> {
        let mut constants: Vec<(&str, i64)> =
            errno::all().iter().map(|(number, name)| (*name, i64::from(*number))).collect();
        constants.extend([("EWOULDBLOCK", 11), ("EDEADLOCK", 35)]);
        let scope = Scope { variables: VARIABLES, constants: &constants, aggregations };
        let condition = compile_beside(text, scope, tests)?;
        for (test, span) in condition.own_tests() {
            if let Some((message, advice)) = names_nothing(test) {
                return Err(Problem { span: span.clone(), message: message.to_owned(), advice });
            }
        }
        if let Some(problem) = condition.unfulfilled(&variables::range) {
            return Err(problem);
        }
        let code = condition.emit(fact::WORDS, MOST_INSTRUCTIONS).map_err(|error| Problem {
            span: 0..text.len(),
            message: error.to_string(),
            advice: String::new(),
        })?;
        Ok(Self { condition, code })
    }

    /// What is settled for all calls of a name as records have it.
    pub(crate) fn of_call(&self, name: &str) -> Verdict {
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
            fact::PEER if !has_descriptor => Some(test.pattern.matches(b"")),
            _ => None,
        };
        verdict(self.condition.settled(&known, &matches))
    }

    /// What is settled for all requests by an operation of io_uring.
    pub(crate) fn of_ring(&self, operation: &str) -> Verdict {
        let has_descriptor = ring_names::has_descriptor(operation);
        let has_path = has_descriptor || ring_names::has_path(operation);
        let known = |fact: u16| match fact {
            fact::FD if !has_descriptor => Some(-1),
            fact::BYTES if !ring_names::moves_bytes(operation) => Some(0),
            _ => None,
        };
        let matches = |test: &StringTest| match test.fact {
            fact::CALL | fact::GROUP => Some(is_of_ring(test, operation)),
            fact::PATH if !has_path => Some(test.pattern.matches(b"")),
            fact::PEER if !has_descriptor => Some(test.pattern.matches(b"")),
            _ => None,
        };
        verdict(self.condition.settled(&known, &matches))
    }

    /// The outcome for a call that returned, and the sums with it.
    pub(crate) fn holds(
        &self,
        (abi, number): CallNumber,
        facts: &CallFacts,
        sums: &Sums,
    ) -> Outcome {
        let of = |fact: u16| match fact {
            fact::FD => facts.fd,
            fact::ERRNO => facts.errno,
            fact::BYTES => facts.bytes,
            fact::DURATION => facts.duration_ns,
            fact::THREAD => facts.thread,
            fact::COUNT => sums.count,
            fact::SUM_OF_BYTES => sums.bytes,
            fact::SUM_OF_DURATIONS => sums.duration_ns,
            _ => facts.pid,
        };
        let any = |test: &StringTest, texts: &[String]| {
            texts.iter().any(|text| test.pattern.matches(text.as_bytes()))
        };
        let name = call_name(abi, number);
        let matches = |test: &StringTest| match test.fact {
            fact::PATH if facts.paths.is_empty() => test.pattern.matches(b""),
            fact::PATH => any(test, &facts.paths),
            fact::PEER => test.pattern.matches(facts.peer.as_bytes()),
            fact::IMAGE => any(test, &facts.images),
            fact::CGROUP => any(test, &facts.cgroups),
            fact::TITLE => test.pattern.matches(&bytes_of(&facts.title)),
            fact::THREADNAME => test.pattern.matches(facts.threadname.as_bytes()),
            _ => is_of_call(test, &name),
        };
        self.condition.evaluate(&of, bits(self.condition.tests().iter().map(matches)))
    }
}

/// What is wrong with a string that is compared with a call or a group, if none has such a name; and
/// what to write.
fn names_nothing(test: &StringTest) -> Option<(&'static str, String)> {
    if !matches!(test.fact, fact::CALL | fact::GROUP) {
        return None;
    }
    let is_call = || calls(|name| is_of_call(test, name)) != calls(|_| false);
    if is_call() || (0..256).any(|op| is_of_ring(test, &ring_names::name(op))) {
        return None;
    }
    // That of a pattern as far as its first star.
    let text = String::from_utf8_lossy(test.pattern.prefix()).into_owned();
    let groups: Vec<&str> = GROUPS.iter().map(|group| group.name).chain([ALL_RINGS]).collect();
    let (problem, near, known) = match test.fact {
        fact::CALL if call_advice(&text).is_some() => {
            return Some(("no call has this name", call_advice(&text)?));
        }
        fact::CALL => (
            "no call has this name",
            nearest_call(&text),
            String::from("names are those of man 2, or of ring operations as in \"ring:read\""),
        ),
        _ => (
            "no group has this name",
            nearest(&text, groups.iter().copied()).map(str::to_owned),
            format!("groups are {}", groups.join(", ")),
        ),
    };
    Some((problem, near.map_or(known, |near| format!("did you mean \"{near}\"?"))))
}

/// What to choose in place of a number that is not distinguished.
pub fn call_advice(name: &str) -> Option<String> {
    let other = choice_name(name);
    (other != name).then(|| format!("numbers that no call has, from {UNNAMED} on, are {other}"))
}

/// The call or the ring operation that a misspelt name may mean.
pub fn nearest_call(text: &str) -> Option<String> {
    let names = [Abi::X86_64, Abi::I386]
        .into_iter()
        .flat_map(|abi| (0..512).map(move |number| syscalls::name(abi, number)))
        .filter(|name| !name.starts_with("syscall_"));
    let rings = ring_names::ring_operations().map(|name| format!("{RING_PREFIX}{name}"));
    let known: Vec<String> = names.chain(rings).collect();
    nearest(text, known.iter().map(String::as_str)).map(str::to_owned)
}

fn verdict(settled: Option<Outcome>) -> Verdict {
    match settled {
        Some(Outcome::True) => Verdict::All,
        Some(Outcome::False) => Verdict::None,
        // Divisions by zero are counted, call by call.
        Some(Outcome::DividedByZero) | None => Verdict::Open,
    }
}
