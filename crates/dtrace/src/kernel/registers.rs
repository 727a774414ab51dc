//! Where the registers of a clause are: those that are never needed at the same time share a slot.

use std::collections::HashMap;

use super::{KernelError, layout};
use crate::assembler::SCRATCH;
use crate::form::{Clause, Fact, Form, Register, Step};
use crate::program::functions::{FUNCTIONS, Function};
use crate::types::Type;

/// What slots are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Home {
    /// Words of the machine.
    Machine,
    /// Registers of BPF, of a condition: its values are integers, and few are needed at a time.
    Registers {
        /// The fact that is the word of matches.
        matches: u16,
    },
}

/// The slots of a clause's registers, and the values of those that are constant.
#[derive(Debug)]
pub(super) struct Slots {
    pub(super) home: Home,
    lives: HashMap<Register, Life>,
}

/// What the steps do with a register.
#[derive(Debug, Default)]
struct Life {
    first: usize,
    last: usize,
    writes: usize,
    reads: usize,
    is_string: bool,
    /// As the only step that writes it has it: such a register has no slot.
    value: Option<u64>,
    /// The last step may write its own value over it.
    is_overwritten: bool,
    slot: Option<usize>,
}

/// What a step writes, and whether it is a string.
pub(super) fn written(
    form: &Form,
    step: &Step,
    has_string: &dyn Fn(Register) -> bool,
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
        Step::Move { to, from } => (*to, has_string(*from)),
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
        Fact::Matches(..) => Type::INT,
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

/// What a step has read before it writes its value.
fn overwritten(step: &Step) -> Option<Register> {
    match step {
        Step::Unary { from, .. } | Step::Convert { from, .. } => Some(*from),
        Step::Binary { left, right, .. } if left != right => Some(*left),
        _ => None,
    }
}

impl Slots {
    pub(super) fn of(form: &Form, clause: &Clause, home: Home) -> Result<Self, KernelError> {
        let mut lives: HashMap<Register, Life> = HashMap::new();
        for (at, step) in clause.steps.iter().enumerate() {
            for register in read(step) {
                // One that no step wrote is 0, as all are at first.
                let life = lives.entry(register).or_default();
                (life.last, life.reads) = (at, life.reads + 1);
                life.is_overwritten = overwritten(step) == Some(register);
            }
            let has_string = |from| lives.get(&from).is_some_and(|life| life.is_string);
            let Some((to, is_string)) = written(form, step, &has_string) else { continue };
            let life = lives.entry(to).or_insert(Life { first: at, ..Life::default() });
            (life.last, life.writes) = (at, life.writes + 1);
            life.is_string |= is_string;
            life.is_overwritten = false;
            life.value = match step {
                Step::Integer { value, .. } if life.writes == 1 => Some(*value),
                _ => None,
            };
        }
        let mut all: Vec<_> = lives.iter_mut().filter(|(_, life)| life.value.is_none()).collect();
        all.sort_unstable_by_key(|(register, life)| (life.first, life.last, **register));
        let most = home.slots();
        let mut free_from = vec![0; most];
        for (_, life) in all {
            let size = 1 + usize::from(life.is_string);
            let is_free = |part: &[usize]| part.iter().all(|one| *one <= life.first);
            let Some(at) = free_from.windows(size).position(is_free) else {
                let has = usize::from(clause.registers);
                return Err(KernelError::TooLarge { of: "values at a time", has, most });
            };
            free_from[at..at + size].fill(life.last + usize::from(!life.is_overwritten));
            life.slot = Some(at);
        }
        Ok(Self { home, lives })
    }

    /// The slot of a register, the first of a string's.
    pub(super) fn slot(&self, register: Register) -> usize {
        // One that no step writes or reads is never asked for.
        self.lives.get(&register).and_then(|life| life.slot).unwrap_or(layout::SLOTS - 2)
    }

    /// The register of BPF that a register is.
    pub(super) fn own(&self, register: Register) -> Option<u8> {
        match self.home {
            Home::Machine => None,
            Home::Registers { .. } => Some(FIRST + self.lives.get(&register)?.slot? as u8),
        }
    }

    /// Whether a register has a string.
    pub(super) fn is_string(&self, register: Register) -> bool {
        self.lives.get(&register).is_some_and(|life| life.is_string)
    }

    /// The value of a register that has always the same.
    pub(super) fn constant(&self, register: Register) -> Option<u64> {
        self.lives.get(&register)?.value
    }

    /// The same where an instruction has room for it.
    pub(super) fn short(&self, register: Register) -> Option<i32> {
        i32::try_from(self.constant(register)?.cast_signed()).ok()
    }

    /// Whether a step alone reads what another one alone wrote.
    pub(super) fn is_for(&self, register: Register, step: usize) -> bool {
        let life = self.lives.get(&register);
        life.is_some_and(|life| (life.writes, life.reads, life.last) == (1, 1, step))
    }
}

/// The register that has the facts of a condition.
pub(super) const FACTS: u8 = 1;

/// The first register of BPF that is a slot.
const FIRST: u8 = 2;

impl Home {
    fn slots(self) -> usize {
        match self {
            Self::Machine => layout::SLOTS,
            Self::Registers { .. } => 7,
        }
    }

    /// The registers of BPF for the sides of an operator that have none.
    pub(super) fn sides(self) -> [u8; 2] {
        match self {
            Self::Machine => [2, 3],
            Self::Registers { .. } => [SCRATCH, 9],
        }
    }
}
