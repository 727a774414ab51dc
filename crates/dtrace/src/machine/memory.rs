//! What the evaluator reads: the firing's facts, memory, the process tree.

use std::collections::BTreeMap;

use super::Value;
use crate::form::{Fact, Fault};
use crate::program::variables::same_variable;
use crate::program::{Holder, Probe};
use crate::types::Type;

/// What is so besides a firing.
#[derive(Debug, Clone, Default)]
pub struct World {
    /// The memory of processes: address and bytes.
    pub user: BTreeMap<u64, Vec<u8>>,
    /// The kernel's.
    pub kernel: BTreeMap<u64, Vec<u8>>,
    /// The parent of each process.
    pub parents: BTreeMap<i64, i64>,
    /// The names of addresses.
    pub symbols: BTreeMap<u64, String>,
}

/// A probe that fires, and its facts by the names that programs have for them (`pid`, `arg0`,
/// `args[0]->b_bcount`, `fds[3].fi_pathname`). A fact that is not given is 0 or empty.
#[derive(Debug, Clone, Default)]
pub struct Firing {
    /// Which.
    pub probe: Probe,
    /// Its facts.
    pub facts: BTreeMap<String, Value>,
    /// The kernel's frames.
    pub stack: Vec<u64>,
    /// The user's frames.
    pub ustack: Vec<u64>,
}

/// The most bytes of a name that is read for a value.
const MOST_DEPTH: usize = 1024;

impl World {
    /// Whether a process is another one, or descends from it.
    pub(super) fn descends(&self, firing: &Firing, from: i64) -> bool {
        let mut at = firing.integer("pid").cast_signed();
        let mut parent = firing.integer("ppid").cast_signed();
        for _ in 0..MOST_DEPTH {
            if at == from {
                return true;
            }
            let next = self.parents.get(&at).copied().unwrap_or(parent);
            if next == 0 || next == at {
                return false;
            }
            (at, parent) = (next, 0);
        }
        false
    }
}

/// Bytes of a memory.
pub(super) fn bytes_at(
    memory: &BTreeMap<u64, Vec<u8>>,
    address: u64,
    length: usize,
) -> Result<Vec<u8>, Fault> {
    let fault = Fault::BadAddress(address);
    let (start, bytes) = memory.range(..=address).next_back().ok_or(fault)?;
    let from = usize::try_from(address - start).map_err(|_| fault)?;
    let end = from.checked_add(length).ok_or(fault)?;
    bytes.get(from..end).map(<[u8]>::to_vec).ok_or(fault)
}

/// The string of a memory, of at most so many bytes.
pub(super) fn text_at(
    memory: &BTreeMap<u64, Vec<u8>>,
    address: u64,
    most: usize,
) -> Result<Vec<u8>, Fault> {
    let fault = Fault::BadAddress(address);
    let (start, bytes) = memory.range(..=address).next_back().ok_or(fault)?;
    let from = usize::try_from(address - start).map_err(|_| fault)?;
    let rest = bytes.get(from..).filter(|rest| !rest.is_empty()).ok_or(fault)?;
    let end = rest.iter().position(|byte| *byte == 0);
    match end {
        Some(end) => Ok(rest[..end.min(most)].to_vec()),
        // It goes on into what cannot be read.
        None if rest.len() < most => Err(fault),
        None => Ok(rest[..most].to_vec()),
    }
}

impl Firing {
    pub(super) fn integer(&self, name: &str) -> u64 {
        self.facts.get(name).map_or(0, Value::integer)
    }

    /// A fact's value.
    pub(super) fn fact(&self, fact: &Fact, index: Option<u64>, clause: usize) -> Value {
        let (name, of) = match fact {
            Fact::Variable(variable) => {
                let text = |text: &str| Value::Text(text.as_bytes().to_vec());
                match variable.name {
                    "probeprov" => return text(&self.probe.provider),
                    "probemod" => return text(&self.probe.module),
                    "probefunc" => return text(&self.probe.function),
                    "probename" => return text(&self.probe.name),
                    "id" => return Value::Integer(u64::from(self.probe.id)),
                    "epid" => return Value::Integer(clause as u64 + 1),
                    "stackdepth" => return Value::Integer(self.stack.len() as u64),
                    "ustackdepth" => return Value::Integer(self.ustack.len() as u64),
                    "caller" => return Value::Integer(self.stack.get(1).copied().unwrap_or(0)),
                    "ucaller" => return Value::Integer(self.ustack.get(1).copied().unwrap_or(0)),
                    name => (name.to_owned(), variable.of),
                }
            }
            Fact::Argument(number) => {
                let value = self.facts.get(&format!("arg{number}"));
                let typed = || self.facts.get(&format!("args[{number}]"));
                return value.or_else(typed).cloned().unwrap_or(Value::Integer(0));
            }
            Fact::Typed(number, of) => {
                let value = self.facts.get(&format!("args[{number}]"));
                let untyped = || self.facts.get(&format!("arg{number}"));
                let value = value.or_else(untyped).cloned();
                return value.unwrap_or_else(|| nothing(*of));
            }
            Fact::Member(holder, member) => {
                let name = match holder {
                    Holder::Psinfo => format!("curpsinfo->{}", member.name),
                    Holder::Lwpsinfo => format!("curlwpsinfo->{}", member.name),
                    Holder::Cpuinfo => format!("curcpu->{}", member.name),
                    Holder::Argument(number) => format!("args[{number}]->{}", member.name),
                    Holder::File => {
                        format!("fds[{}].{}", index.unwrap_or(0).cast_signed(), member.name)
                    }
                };
                if !self.facts.contains_key(&name)
                    && let Some(same) = same_variable(*holder, member.name)
                {
                    (same.to_owned(), member.of)
                } else {
                    (name, member.of)
                }
            }
            Fact::Word(_, name, of) => ((*name).to_owned(), *of),
            // Of conditions, which are not run here.
            Fact::Matches(..) => return Value::Integer(0),
        };
        let value = self.facts.get(&name).cloned().unwrap_or_else(|| nothing(of));
        match (of, value) {
            (Type::Integer(integer), value) => Value::Integer(integer.held(value.integer())),
            (_, value) => value,
        }
    }
}

fn nothing(of: Type) -> Value {
    match of {
        Type::String => Value::Text(Vec::new()),
        _ => Value::Integer(0),
    }
}
