//! Values in slots: constants, facts, strings, and the functions of programs.

use super::clause::Emitter;
use super::conversion::convert;
use super::layout::{self, fact};
use super::registers::{FACTS, Home};
use super::{Emitted, KernelError};
use crate::assembler::{Code, code};
use crate::form::{Fact, Register};
use crate::program::Holder;
use crate::program::variables::same_variable;
use crate::types::Type;

const MACHINE: u8 = layout::MACHINE;

pub(super) fn slot_at(slot: usize) -> i16 {
    layout::SLOT + (slot * 8) as i16
}

pub(super) fn fact_at(number: u16) -> i16 {
    layout::FACTS + (number * 8) as i16
}

impl Emitter<'_> {
    /// Has the value of a form's register in one of BPF's.
    pub(super) fn value(&self, code: &mut Code, to: u8, register: Register) {
        match (self.slots.constant(register), self.slots.own(register)) {
            (Some(value), _) => code.number(to, value.cast_signed()),
            (None, Some(own)) if own == to => {}
            (None, Some(own)) => code.operate(code::MOV, to, own),
            (None, None) => {
                let slot = self.slots.slot(register);
                code.push(code::LOAD, to, MACHINE, slot_at(slot), 0);
            }
        }
    }

    /// The register of BPF that has the value of a form's: its own, or else this one.
    pub(super) fn read(&self, code: &mut Code, or: u8, register: Register) -> u8 {
        self.slots.own(register).unwrap_or_else(|| {
            self.value(code, or, register);
            or
        })
    }

    /// The register of BPF to make the value of a form's in.
    pub(super) fn target(&self, register: Register) -> u8 {
        self.slots.own(register).unwrap_or(2)
    }

    /// Keeps a register of BPF as a form's.
    pub(super) fn keep(&self, code: &mut Code, from: u8, register: Register) {
        match self.slots.own(register) {
            Some(own) if own == from => {}
            Some(own) => code.operate(code::MOV, own, from),
            None => code.push(code::STORE, MACHINE, from, slot_at(self.slots.slot(register)), 0),
        }
    }

    fn keep_length(&self, code: &mut Code, from: u8, register: Register) {
        code.push(code::STORE, MACHINE, from, slot_at(self.slots.slot(register) + 1), 0);
    }

    pub(super) fn assign(&self, code: &mut Code, to: Register, from: Register) {
        let target = self.target(to);
        self.value(code, target, from);
        self.keep(code, target, to);
        if self.slots.is_string(from) {
            code.push(code::LOAD, 2, MACHINE, slot_at(self.slots.slot(from) + 1), 0);
            self.keep_length(code, 2, to);
        }
    }

    /// A string as written.
    pub(super) fn literal(&self, code: &mut Code, to: Register, text: usize) {
        let most = self.form.options.strsize as usize - 1;
        code.push(code::LOAD, 2, MACHINE, layout::LITERALS, 0);
        code.operate_on(code::ADD, 2, self.literals[text] as i32);
        self.keep(code, 2, to);
        code.number(2, self.form.texts[text].len().min(most) as i64);
        self.keep_length(code, 2, to);
    }

    pub(super) fn fact(
        &self,
        code: &mut Code,
        to: Register,
        which: &Fact,
        emitted: &mut Emitted,
    ) -> Result<(), KernelError> {
        let (name, of) = match which {
            Fact::Argument(number) | Fact::Typed(number, Type::Integer(_)) if *number < 10 => {
                let at = fact_at(fact::ARGUMENT + u16::from(*number));
                code.push(code::LOAD, 2, MACHINE, at, 0);
                self.keep(code, 2, to);
                return Ok(());
            }
            Fact::Variable(variable) if variable.name == "epid" => {
                code.number(2, self.number as i64 + 1);
                self.keep(code, 2, to);
                return Ok(());
            }
            Fact::Variable(variable) => (variable.name, variable.of),
            Fact::Member(holder, member) => match same(*holder, member.name) {
                Some(name) => (name, member.of),
                None => return Err(self.unsupported(format!("the member {}", member.name))),
            },
            Fact::Argument(number) | Fact::Typed(number, _) => {
                return Err(self.unsupported(format!("args[{number}]")));
            }
            Fact::Word(..) if self.slots.home != Home::Machine => {
                self.word(code, to, which);
                return Ok(());
            }
            Fact::Word(_, name, _) => return Err(self.unsupported(*name)),
            Fact::Matches(bit, is) => {
                let target = self.target(to);
                self.word(code, to, which);
                code.operate_on(code::RSH, target, i32::from(*bit));
                code.operate_on(code::AND, target, 1);
                if !is {
                    code.operate_on(code::XOR, target, 1);
                }
                return Ok(());
            }
        };
        let known = fact::NAMES.iter().find(|(known, _)| *known == name);
        let (_, number) = known.ok_or_else(|| self.unsupported(name))?;
        emitted.uses_vtimestamp |= *number == fact::VTIMESTAMP;
        self.demand(code, *number)?;
        code.push(code::LOAD, 2, MACHINE, fact_at(*number), 0);
        match of {
            Type::String => {
                self.keep(code, 2, to);
                code.push(code::LOAD, 2, MACHINE, fact_at(number + 1), 0);
                let (most, end) = (self.form.options.strsize as i32 - 1, code.label());
                code.jump(code::JLE, 2, most, end);
                code.number(2, i64::from(most));
                code.place(end);
                self.keep_length(code, 2, to);
            }
            of => {
                if let Some(integer) = of.as_integer() {
                    convert(code, 2, integer);
                }
                self.keep(code, 2, to);
            }
        }
        Ok(())
    }

    /// The word of a condition's fact.
    pub(super) fn word(&self, code: &mut Code, to: Register, fact: &Fact) {
        let word = match (fact, self.slots.home) {
            (Fact::Word(number, ..), _) => *number,
            (_, Home::Registers { matches }) => matches,
            (_, Home::Machine) => return,
        };
        code.push(code::LOAD, self.target(to), FACTS, (word * 8) as i16, 0);
    }

    /// Finds a fact, unless it was found for this firing.
    pub(super) fn demand(&self, code: &mut Code, number: u16) -> Result<(), KernelError> {
        if number < fact::ON_DEMAND {
            return Ok(());
        }
        let is_there = code.label();
        code.push(code::LOAD_BYTE, 2, MACHINE, layout::PRESENT + number as i16, 0);
        code.jump(code::JNE, 2, 0, is_there);
        if number == fact::VTIMESTAMP {
            code.operate(code::MOV, 2, layout::THREAD);
            self.call(code, "d_vtimestamp")?;
        } else {
            code.number(2, i64::from(number));
            self.try_call(code, "d_fact")?;
        }
        code.place(is_there);
        Ok(())
    }
}

/// The fact that a member is the same as.
fn same(holder: Holder, member: &str) -> Option<&'static str> {
    Some(match (holder, member) {
        (Holder::Psinfo, "pr_psargs") => fact::PSARGS,
        (Holder::Argument(_), "pr_pid") => fact::OTHER_PID,
        (Holder::Argument(_), "pr_lwpid") => fact::OTHER_TID,
        (Holder::Argument(_), "pr_fname") => fact::OTHER_NAME,
        (Holder::Argument(_), member) => return fact::of_request(member),
        _ => return same_variable(holder, member),
    })
}
