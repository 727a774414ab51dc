//! Strings that are words in keys of aggregations: a copy of a string, and the hash of a longer key, are most of what a
//! firing costs.
//!
//! A part of a key is one where each clause that adds to the aggregation has the same fact there.

use std::collections::{HashMap, HashSet};

use super::registers::{read, written};
use crate::form::{Clause, Fact, Form, Register, Step};

/// How a part of an aggregation's key is laid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyPart {
    /// As its type says: a word, or a string with its length.
    Whole,
    /// A string of the probe, by its place in a description: the number that stands for it.
    OfProbe(u16),
    /// `execname`: two words, with nothing behind its end.
    Name,
}

/// Bytes of the longest string of a probe, and of a name, with their ends.
const LONGEST: [u32; 2] = [64, 16];

impl KeyPart {
    fn of(step: &Step, strsize: u32) -> Self {
        let Step::Fact { fact: Fact::Variable(variable), .. } = step else { return Self::Whole };
        let which = ["probeprov", "probemod", "probefunc", "probename"];
        match which.iter().position(|name| *name == variable.name) {
            Some(at) if strsize >= LONGEST[0] => Self::OfProbe(at as u16),
            None if variable.name == "execname" && strsize >= LONGEST[1] => Self::Name,
            _ => Self::Whole,
        }
    }
}

/// What the registers of a clause hold that only one step writes.
fn held(form: &Form, clause: &Clause) -> HashMap<Register, KeyPart> {
    let mut held = HashMap::new();
    for step in &clause.steps {
        let Some((to, _)) = written(form, step, &|_| false) else { continue };
        let part = KeyPart::of(step, form.options.strsize);
        held.entry(to).and_modify(|had| *had = KeyPart::Whole).or_insert(part);
    }
    held
}

/// The parts of the keys of all aggregations.
pub(super) fn of(form: &Form) -> Vec<Vec<KeyPart>> {
    let keys = form.aggregations.iter().map(|one| vec![None; one.keys.len()]);
    let mut all: Vec<Vec<Option<KeyPart>>> = keys.collect();
    for clause in &form.clauses {
        let held = held(form, clause);
        for step in &clause.steps {
            let Step::Aggregate { aggregation, keys, .. } = step else { continue };
            for (part, key) in all[usize::from(*aggregation)].iter_mut().zip(keys) {
                let is = held.get(key).copied().unwrap_or(KeyPart::Whole);
                *part = Some(if part.is_none_or(|had| had == is) { is } else { KeyPart::Whole });
            }
        }
    }
    let whole = |part: Option<KeyPart>| part.unwrap_or(KeyPart::Whole);
    all.into_iter().map(|parts| parts.into_iter().map(whole).collect()).collect()
}

/// The registers of a clause that nothing but such parts of keys reads: no step needs to write them.
pub(super) fn unread(form: &Form, clause: &Clause, parts: &[Vec<KeyPart>]) -> HashSet<Register> {
    let held = held(form, clause).into_iter().filter(|(_, part)| *part != KeyPart::Whole);
    let mut unread: HashSet<Register> = held.map(|(register, _)| register).collect();
    for step in &clause.steps {
        if let Step::Aggregate { aggregation, keys, value, times } = step {
            let parts = &parts[usize::from(*aggregation)];
            let whole = keys.iter().zip(parts).filter(|(_, part)| **part == KeyPart::Whole);
            for register in whole.map(|(key, _)| key).chain(value).chain(times) {
                unread.remove(register);
            }
        } else {
            for register in read(step) {
                unread.remove(&register);
            }
        }
    }
    unread
}
