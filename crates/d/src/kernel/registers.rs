//! Which slots the registers of a clause take: those that are never needed at the same time share one.

use std::collections::HashMap;

use super::{KernelError, layout};
use crate::form::{Clause, Fact, Form, Register, Step};
use crate::program::functions::{FUNCTIONS, Function};
use crate::types::Type;

/// The slots of a clause's registers, and the values of those that are constant.
#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: HashMap<Register, usize>,
    constants: HashMap<Register, u64>,
    strings: HashMap<Register, bool>,
}

/// What a step writes, and whether it is a string.
pub(super) fn written(
    form: &Form,
    step: &Step,
    strings: &HashMap<Register, bool>,
) -> Option<(Register, bool)> {
    let is_string = |of: Type| of == Type::String;
    Some(match step {
        Step::Integer { to, .. }
        | Step::Unary { to, .. }
        | Step::Binary { to, .. }
        | Step::Compare { to, .. }
        | Step::Convert { to, .. }
        | Step::Read { to, .. } => (*to, false),
        // A stack is handled as a string is.
        Step::Stack { to, .. } | Step::Text { to, .. } | Step::ReadText { to, .. } => (*to, true),
        Step::Fact { to, fact, .. } => (*to, is_string(fact_type(fact))),
        Step::Move { to, from } => (*to, strings.get(from).copied().unwrap_or(false)),
        Step::Load { to, variable, .. } => {
            (*to, is_string(form.variables[usize::from(*variable)].of))
        }
        Step::Call { to, function, .. } => (*to, is_string(value_of(*function))),
        Step::Jump { .. }
        | Step::JumpIf { .. }
        | Step::Store { .. }
        | Step::Free { .. }
        | Step::Aggregate { .. }
        | Step::Record { .. } => return None,
    })
}

/// The type of a fact.
pub(super) fn fact_type(fact: &Fact) -> Type {
    match fact {
        Fact::Variable(variable) => variable.of,
        Fact::Argument(_) => Type::Integer(crate::types::Integer::I64),
        Fact::Typed(_, of) | Fact::Word(_, _, of) => *of,
        Fact::Member(_, member) => member.of,
    }
}

fn value_of(function: Function) -> Type {
    let known = FUNCTIONS.iter().find(|one| one.function == function);
    known.map_or(Type::Void, |one| one.of)
}

/// What a step reads.
pub(super) fn read(step: &Step) -> Vec<Register> {
    match step {
        Step::Integer { .. } | Step::Text { .. } | Step::Stack { .. } | Step::Jump { .. } => {
            Vec::new()
        }
        Step::Fact { index, .. } => index.iter().copied().collect(),
        Step::Unary { from, .. } | Step::Convert { from, .. } | Step::Move { from, .. } => {
            vec![*from]
        }
        Step::Binary { left, right, .. } | Step::Compare { left, right, .. } => vec![*left, *right],
        Step::Read { address, .. } | Step::ReadText { address, .. } => vec![*address],
        Step::JumpIf { value, .. } => vec![*value],
        Step::Load { keys, .. } | Step::Free { keys, .. } => keys.clone(),
        Step::Store { keys, from, .. } => keys.iter().copied().chain([*from]).collect(),
        Step::Call { arguments, .. } => arguments.clone(),
        Step::Aggregate { keys, value, times, .. } => {
            keys.iter().copied().chain(*value).chain(*times).collect()
        }
        Step::Record { values, .. } => values.clone(),
    }
}

impl Slots {
    pub(super) fn of(form: &Form, clause: &Clause) -> Result<Self, KernelError> {
        let mut strings = HashMap::new();
        let mut spans: HashMap<Register, (usize, usize)> = HashMap::new();
        let mut values: HashMap<Register, Option<u64>> = HashMap::new();
        for (at, step) in clause.steps.iter().enumerate() {
            for register in read(step) {
                // One that no step wrote is 0, as all are at first.
                spans.entry(register).or_insert((0, at)).1 = at;
            }
            if let Some((to, is_string)) = written(form, step, &strings) {
                let known = strings.entry(to).or_insert(false);
                *known |= is_string;
                spans.entry(to).or_insert((at, at)).1 = at;
                let value = match step {
                    Step::Integer { value, .. } if !values.contains_key(&to) => Some(*value),
                    _ => None,
                };
                values.insert(to, value);
            }
        }
        let mut slots = Self::default();
        for (register, value) in values {
            if let Some(value) = value {
                slots.constants.insert(register, value);
            }
        }
        let mut all: Vec<_> = spans
            .into_iter()
            .filter(|(register, _)| !slots.constants.contains_key(register))
            .map(|(register, (first, last))| (first, last, register))
            .collect();
        all.sort_unstable();
        let mut free_from = vec![0; layout::SLOTS];
        for (first, last, register) in all {
            let size = if strings.get(&register) == Some(&true) { 2 } else { 1 };
            let found =
                free_from.windows(size).position(|part| part.iter().all(|one| *one <= first));
            let Some(at) = found else {
                let has = usize::from(clause.registers);
                return Err(KernelError::TooLarge {
                    of: "values at a time",
                    has,
                    most: layout::SLOTS,
                });
            };
            free_from[at..at + size].fill(last + 1);
            slots.slots.insert(register, at);
        }
        slots.strings = strings;
        Ok(slots)
    }

    /// The slot of a register, the first of a string's.
    pub(super) fn slot(&self, register: Register) -> usize {
        // One without a span is never read.
        self.slots.get(&register).copied().unwrap_or(layout::SLOTS - 2)
    }

    /// Whether a register has a string.
    pub(super) fn is_string(&self, register: Register) -> bool {
        self.strings.get(&register).copied().unwrap_or(false)
    }

    /// The value of a register that has always the same.
    pub(super) fn constant(&self, register: Register) -> Option<u64> {
        self.constants.get(&register).copied()
    }
}
