//! The steps of a clause as instructions.

use std::collections::HashSet;

use super::conversion::convert;
use super::registers::{FACTS, Home, Slots};
use super::{Emitted, Functions, KernelError, KeyPart, Places, layout, parts};
use crate::assembler::{Code, Label, code};
use crate::ast::Unary;
use crate::error::Span;
use crate::form::{Action, Clause, Form, Register, Step};
use crate::types::Type;

pub(super) struct Emitter<'f> {
    pub(super) form: &'f Form,
    pub(super) number: usize,
    clause: &'f Clause,
    pub(super) slots: Slots,
    pub(super) places: &'f Places,
    pub(super) literals: &'f [usize],
    functions: Functions<'f>,
    /// Registers that no step needs to write.
    unread: HashSet<Register>,
    /// The step that is emitted.
    at: usize,
    /// The steps that jumps go to.
    labels: Vec<Label>,
    /// Ends the clause by the error that was noted.
    pub(super) failed: Label,
    full: Label,
}

impl<'f> Emitter<'f> {
    pub(super) fn new(
        form: &'f Form,
        number: usize,
        home: Home,
        places: &'f Places,
        literals: &'f [usize],
        functions: Functions<'f>,
        parts: &[Vec<KeyPart>],
    ) -> Result<Self, KernelError> {
        let clause = &form.clauses[number];
        let slots = Slots::of(form, clause, home)?;
        Ok(Self {
            form,
            number,
            clause,
            slots,
            places,
            literals,
            functions,
            unread: parts::unread(form, clause, parts),
            at: 0,
            labels: Vec::new(),
            failed: Label::default(),
            full: Label::default(),
        })
    }

    pub(super) fn emit(
        mut self,
        code: &mut Code,
        emitted: &mut Emitted,
    ) -> Result<(), KernelError> {
        self.labels = (0..=self.clause.steps.len()).map(|_| code.label()).collect();
        (self.failed, self.full) = (code.label(), code.label());
        super::bounded("bytes of a clause's records", self.event_bytes(), layout::EVENT_MOST)?;
        match self.slots.home {
            // The verifier has a pointer that is passed to a function be checked.
            Home::Registers { .. } => {
                code.jump(code::JEQ, FACTS, 0, self.labels[self.clause.steps.len()]);
            }
            Home::Machine if self.places.keeps_strings => {}
            Home::Machine => {
                code.push(code::STORE_NUMBER_32, layout::MACHINE, 0, layout::ARENA_LENGTH, 0);
            }
        }
        let mut is_done = false;
        for (at, step) in self.clause.steps.iter().enumerate() {
            code.place(self.labels[at]);
            self.at = at;
            if std::mem::take(&mut is_done) {
                continue;
            }
            // A value that only the jump behind it needs is not made.
            is_done = match self.clause.steps.get(at + 1) {
                Some(Step::JumpIf { value, is, to }) if self.slots.is_for(*value, at + 1) => {
                    self.branch(code, step, *is, self.labels[*to as usize])?
                }
                _ => false,
            };
            if !is_done {
                self.step(step, code, emitted)?;
            }
        }
        code.place(self.labels[self.clause.steps.len()]);
        Self::end(code, layout::outcome::DONE);
        code.place(self.failed);
        match self.slots.home {
            Home::Machine => Self::end(code, layout::outcome::FAULT),
            Home::Registers { .. } => Self::end(code, layout::outcome::DIVIDED_BY_ZERO),
        }
        code.place(self.full);
        Self::end(code, layout::outcome::FULL);
        Ok(())
    }

    fn end(code: &mut Code, outcome: i64) {
        code.number(0, outcome);
        code.push(code::EXIT, 0, 0, 0, 0);
    }

    /// The refusal of what there is nothing for, at the current step.
    pub(super) fn unsupported(&self, what: impl Into<String>) -> KernelError {
        let span: Span = self.form.place(self.number, self.at);
        KernelError::Unsupported { what: what.into(), span }
    }

    /// Calls a function whose arguments behind the machine are in `r2` on.
    pub(super) fn call(&self, code: &mut Code, name: &'static str) -> Result<(), KernelError> {
        code.operate(code::MOV, 1, layout::MACHINE);
        self.call_bare(code, name)
    }

    /// Calls one that has no machine.
    pub(super) fn call_bare(&self, code: &mut Code, name: &'static str) -> Result<(), KernelError> {
        code.call((self.functions.place)(name).ok_or(KernelError::Lacks(name))?);
        Ok(())
    }

    /// Notes the step, for errors at it.
    pub(super) fn note_step(&self, code: &mut Code) {
        let step = self.at as i32;
        code.push(code::STORE_NUMBER_32, layout::MACHINE, 0, layout::STEP, step);
    }

    /// Calls a function that may fail.
    pub(super) fn try_call(&self, code: &mut Code, name: &'static str) -> Result<(), KernelError> {
        self.note_step(code);
        self.call(code, name)?;
        code.jump(code::JNE, 0, 0, self.failed);
        Ok(())
    }

    fn step(&self, step: &Step, code: &mut Code, emitted: &mut Emitted) -> Result<(), KernelError> {
        match step {
            Step::Integer { to, value } => {
                if self.slots.constant(*to).is_none() {
                    let target = self.target(*to);
                    code.number(target, value.cast_signed());
                    self.keep(code, target, *to);
                }
            }
            Step::Text { to, text } => self.literal(code, *to, *text as usize),
            Step::Fact { to, .. } if self.unread.contains(to) => {}
            Step::Fact { to, fact, index } => {
                if !self.file_fact(code, *to, fact, *index)? {
                    self.fact(code, *to, fact, emitted)?;
                }
            }
            Step::Stack { to, user, frames } => {
                code.number(2, self.slots.slot(*to) as i64);
                code.number(3, i64::from(*user));
                code.number(4, layout::frames_kept(*user, *frames) as i64);
                self.try_call(code, "d_stack")?;
            }
            Step::Unary { to, operator: Unary::Not, .. } | Step::Compare { to, .. } => {
                self.truth(code, *to, step)?;
            }
            Step::Binary { to, operator, .. } if operator.compares() => {
                self.truth(code, *to, step)?;
            }
            Step::Unary { to, operator, from } => self.unary(code, *to, *operator, *from),
            Step::Binary { to, operator, signed, left, right } => {
                self.binary(code, *to, (*operator, *signed), [*left, *right]);
            }
            Step::Convert { to, from, integer } => {
                let target = self.target(*to);
                self.value(code, target, *from);
                convert(code, target, *integer);
                self.keep(code, target, *to);
            }
            Step::Move { to, from } => self.assign(code, *to, *from),
            Step::Read { to, address, integer } => {
                self.value(code, 3, *address);
                code.number(2, self.slots.slot(*to) as i64);
                code.number(4, i64::from(integer.bytes));
                self.try_call(code, "d_read")?;
                self.value(code, 2, *to);
                convert(code, 2, *integer);
                self.keep(code, 2, *to);
            }
            Step::ReadText { to, address } => {
                self.value(code, 3, *address);
                code.number(2, self.slots.slot(*to) as i64);
                self.try_call(code, "d_read_text")?;
            }
            Step::Jump { to } => code.jump(code::JA, 0, 0, self.labels[*to as usize]),
            Step::JumpIf { value, is, to } => {
                let value = self.read(code, 2, *value);
                let operation = if *is { code::JNE } else { code::JEQ };
                code.jump(operation, value, 0, self.labels[*to as usize]);
            }
            Step::Load { to, variable, keys } => self.load(code, *to, *variable, keys, emitted)?,
            Step::Store { variable, keys, from } => {
                self.store(code, *variable, keys, Some(*from), emitted)?;
            }
            Step::Free { variable, keys } => self.store(code, *variable, keys, None, emitted)?,
            Step::Call { to, function, arguments } => {
                self.function(code, *to, *function, arguments)?;
            }
            Step::Aggregate { aggregation, keys, value, times } => {
                self.aggregate(code, *aggregation, keys, [*value, *times], emitted)?;
            }
            // The end of a condition that holds.
            Step::Record { .. } if self.slots.home != Home::Machine => {
                Self::end(code, layout::outcome::HOLDS);
            }
            Step::Record { record, values } => self.record(code, *record, values)?,
        }
        Ok(())
    }

    /// Bytes of the clause's records in the buffer, as the program's options count them.
    fn event_bytes(&self) -> usize {
        let sizes = self.clause.steps.iter().map(|step| match step {
            Step::Record { record, .. } => {
                let record = &self.form.records[usize::from(*record)];
                let memory = match record.action {
                    Action::TraceMemory(bytes) => usize::from(bytes),
                    _ => 0,
                };
                // Frames that are left out later, and lengths.
                let stacks = record.values.iter().filter_map(|of| match of {
                    Type::Stack { user, frames } => {
                        let kept = layout::frames_kept(*user, *frames);
                        Some(8 * (kept - usize::from(*frames).min(kept)) + 16)
                    }
                    _ => None,
                });
                let bytes = record.bytes(self.form.options.strsize) as usize;
                bytes + memory + stacks.sum::<usize>()
            }
            _ => 0,
        });
        16 + sizes.sum::<usize>()
    }

    fn record(&self, code: &mut Code, number: u16, values: &[Register]) -> Result<(), KernelError> {
        let record = &self.form.records[usize::from(number)];
        code.number(2, i64::from(number));
        code.number(3, self.event_bytes() as i64);
        self.call(code, "d_record")?;
        code.jump(code::JNE, 0, 0, self.full);
        if let (Action::TraceMemory(bytes), Some(address)) = (&record.action, values.first()) {
            self.value(code, 2, *address);
            code.number(3, i64::from(*bytes));
            return self.try_call(code, "d_put_memory");
        }
        for (value, of) in values.iter().zip(&record.values) {
            match of {
                Type::String | Type::Stack { .. } => {
                    code.number(2, self.slots.slot(*value) as i64);
                    self.call(code, "d_put_text")?;
                }
                of => {
                    self.value(code, 2, *value);
                    if let Some(integer) = of.as_integer() {
                        convert(code, 2, integer);
                    }
                    self.call(code, "d_put")?;
                }
            }
        }
        if record.action == Action::Exit {
            code.push(code::STORE_NUMBER_32, layout::MACHINE, 0, layout::EXITS, 1);
        }
        Ok(())
    }
}
