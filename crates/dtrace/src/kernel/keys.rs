//! Variables and aggregations, by their keys.
//!
//! A key has the integers of its parts first, then the strings, each with its length before it: where
//! an integer is does not depend on what strings are before it. In front of them, a variable's number
//! and its thread, if it is one of a thread.

use std::iter::repeat;

use super::clause::Emitter;
use super::layout::{self, aggregating, fact};
use super::values::fact_at;
use super::{Emitted, KernelError, KeyPart, Place};
use crate::assembler::{Code, code};
use crate::form::{Aggregating, Register, VariableScope};
use crate::machine::aggregate::bins;
use crate::types::Type;

const MACHINE: u8 = layout::MACHINE;

/// Bytes that a variable takes besides its value and keys, as the evaluator counts them.
const HEAD: u64 = 64;

/// Bytes that the value of an aggregation takes besides its keys, as the evaluator counts them.
pub const ROW_BYTES: u64 = 24;

fn local_at(word: usize) -> i16 {
    layout::LOCAL + (word * 8) as i16
}

impl Emitter<'_> {
    /// Lays a key behind so many words, and returns how many bytes it takes at most.
    fn key(
        &self,
        code: &mut Code,
        words: usize,
        keys: &[Register],
        types: &[Type],
        parts: &[KeyPart],
    ) -> Result<usize, KernelError> {
        let mut at = words;
        let mut keep = |code: &mut Code| {
            code.push(code::STORE, MACHINE, 2, layout::KEY + (at * 8) as i16, 0);
            at += 1;
        };
        let is_text = |of: &Type| matches!(of, Type::String | Type::Stack { .. });
        let parts = parts.iter().copied().chain(repeat(KeyPart::Whole));
        let all = || keys.iter().zip(types).zip(parts.clone());
        for ((key, of), part) in all() {
            match part {
                KeyPart::Whole if is_text(of) => {}
                KeyPart::Whole => {
                    self.value(code, 2, *key);
                    keep(code);
                }
                KeyPart::OfProbe(which) => {
                    code.push(code::LOAD, 2, MACHINE, layout::NAMES, 0);
                    code.operate_on(code::RSH, 2, i32::from(which) * 16);
                    code.operate_on(code::AND, 2, 0xffff);
                    keep(code);
                }
                KeyPart::Name => {
                    self.demand(code, fact::EXECNAME)?;
                    for word in 0..2 {
                        code.push(code::LOAD, 2, MACHINE, layout::EXECNAME + word * 8, 0);
                        keep(code);
                    }
                }
            }
        }
        code.push(code::STORE_NUMBER_32, MACHINE, 0, layout::KEY_LENGTH, (at * 8) as i32);
        let mut size = at * 8;
        for ((key, of), part) in all() {
            size += match (of, part) {
                (_, KeyPart::OfProbe(_) | KeyPart::Name) => continue,
                (Type::String, _) => (self.form.options.strsize as usize + 2).next_multiple_of(8),
                (Type::Stack { user, frames }, _) => 8 * layout::frames_kept(*user, *frames) + 16,
                _ => continue,
            };
            code.number(2, self.slots.slot(*key) as i64);
            self.call(code, "d_key_text")?;
        }
        super::bounded("bytes in a key", size, layout::LARGE_KEY)?;
        Ok(size)
    }

    /// What keys count as, in bytes.
    fn key_bytes(&self, types: &[Type]) -> u64 {
        let strsize = u64::from(self.form.options.strsize);
        let bytes = |of: &Type| match of {
            Type::String => strsize,
            Type::Stack { frames, .. } => 8 * u64::from(*frames) + 8,
            _ => 8,
        };
        types.iter().map(bytes).sum()
    }

    fn variable_key(
        &self,
        code: &mut Code,
        number: u16,
        keys: &[Register],
        emitted: &mut Emitted,
    ) -> Result<u64, KernelError> {
        let variable = &self.form.variables[usize::from(number)];
        let types = variable.keys.as_deref().unwrap_or_default();
        code.number(2, i64::from(number));
        let mut words = 1;
        if variable.scope == VariableScope::Thread {
            code.push(code::LOAD, 3, MACHINE, fact_at(fact::TID), 0);
            code.operate_on(code::LSH, 3, 32);
            code.operate(code::OR, 2, 3);
            code.push(code::LOAD, 3, MACHINE, fact_at(fact::THREAD_START), 0);
            code.push(code::STORE, MACHINE, 3, layout::KEY + 8, 0);
            words = 2;
        }
        code.push(code::STORE, MACHINE, 2, layout::KEY, 0);
        let size = self.key(code, words, keys, types, &[])?;
        emitted.largest_variable = emitted.largest_variable.max(size);
        Ok(self.variable_bytes(number))
    }

    /// What a variable counts as that comes and goes, in bytes.
    fn variable_bytes(&self, number: u16) -> u64 {
        let variable = &self.form.variables[usize::from(number)];
        let value = variable.of.bytes(self.form.options.strsize);
        let keys = variable.keys.as_deref().unwrap_or_default();
        HEAD + u64::from(value) + self.key_bytes(keys)
    }

    /// Loads a variable from the row of its thread. One that had none may have been made since.
    fn load_of_thread(
        &self,
        code: &mut Code,
        to: Register,
        word: usize,
    ) -> Result<(), KernelError> {
        let (has_none, end) = (code.label(), code.label());
        code.jump(code::JEQ, layout::THREAD, 0, has_none);
        code.push(code::LOAD, 0, layout::THREAD, layout::THREAD_WORD + (word * 8) as i16, 0);
        code.jump(code::JA, 0, 0, end);
        code.place(has_none);
        code.number(2, word as i64);
        self.call(code, "d_load_of_thread")?;
        code.place(end);
        self.keep(code, 0, to);
        Ok(())
    }

    pub(super) fn load(
        &self,
        code: &mut Code,
        to: Register,
        number: u16,
        keys: &[Register],
        emitted: &mut Emitted,
    ) -> Result<(), KernelError> {
        let is_string = self.form.variables[usize::from(number)].of == Type::String;
        let slot = self.slots.slot(to);
        match self.places.all[usize::from(number)] {
            Place::Local(word) => {
                for at in 0..if is_string { 2 } else { 1 } {
                    code.push(code::LOAD, 2, MACHINE, local_at(word + at), 0);
                    code.push(code::STORE, MACHINE, 2, layout::SLOT + ((slot + at) * 8) as i16, 0);
                }
                Ok(())
            }
            Place::Global(at) => {
                code.number(2, at as i64);
                code.number(3, slot as i64);
                match is_string {
                    true => self.try_call(code, "d_load_global_text"),
                    false => self.call(code, "d_load_global"),
                }
            }
            Place::Thread(word) => self.load_of_thread(code, to, word),
            Place::Keyed => {
                self.variable_key(code, number, keys, emitted)?;
                code.number(2, slot as i64);
                match is_string {
                    true => self.try_call(code, "d_load_text"),
                    false => self.call(code, "d_load"),
                }
            }
        }
    }

    /// Gives a variable a value, or frees it.
    pub(super) fn store(
        &self,
        code: &mut Code,
        number: u16,
        keys: &[Register],
        from: Option<Register>,
        emitted: &mut Emitted,
    ) -> Result<(), KernelError> {
        let is_string = self.form.variables[usize::from(number)].of == Type::String;
        let integer = |code: &mut Code, register: u8| match from {
            Some(from) => self.value(code, register, from),
            None => code.number(register, 0),
        };
        // Beyond all slots there is none.
        let text = from.map_or(layout::SLOTS, |from| self.slots.slot(from)) as i64;
        match self.places.all[usize::from(number)] {
            Place::Local(word) => {
                integer(code, 2);
                code.push(code::STORE, MACHINE, 2, local_at(word), 0);
                if is_string {
                    match from {
                        Some(from) => {
                            let at = layout::SLOT + ((self.slots.slot(from) + 1) * 8) as i16;
                            code.push(code::LOAD, 2, MACHINE, at, 0);
                        }
                        None => code.number(2, 0),
                    }
                    code.push(code::STORE, MACHINE, 2, local_at(word + 1), 0);
                }
                Ok(())
            }
            Place::Global(at) if is_string => {
                code.number(2, at as i64);
                code.number(3, text);
                self.call(code, "d_store_global_text")
            }
            Place::Global(at) => {
                integer(code, 2);
                code.number(1, at as i64);
                self.call_bare(code, "d_store_global")
            }
            Place::Thread(word) => {
                integer(code, 4);
                code.operate(code::MOV, 2, layout::THREAD);
                code.number(3, word as i64);
                code.number(5, self.variable_bytes(number) as i64);
                self.call(code, "d_store_of_thread")
            }
            Place::Keyed => {
                let bytes = self.variable_key(code, number, keys, emitted)?;
                match is_string {
                    true => code.number(2, text),
                    false => integer(code, 2),
                }
                code.number(3, bytes as i64);
                self.call(code, if is_string { "d_store_text" } else { "d_store" })
            }
        }
    }

    pub(super) fn aggregate(
        &self,
        code: &mut Code,
        number: u16,
        keys: &[Register],
        [value, times]: [Option<Register>; 2],
        emitted: &mut Emitted,
    ) -> Result<(), KernelError> {
        let aggregation = &self.form.aggregations[usize::from(number)];
        let parts = &emitted.parts[usize::from(number)];
        let size = self.key(code, 1, keys, &aggregation.keys, parts)?;
        emitted.largest_row = emitted.largest_row.max(size);
        super::bounded("steps of a distribution", bins(aggregation.function), 65_000)?;
        let bytes = self.key_bytes(&aggregation.keys) + ROW_BYTES - 8
            + 8 * bins(aggregation.function).max(1) as u64;
        if !keys.is_empty() {
            emitted.least_row = Some(emitted.least_row.map_or(bytes, |least| least.min(bytes)));
        }
        let value = |code: &mut Code, register: u8| match value {
            Some(value) => self.value(code, register, value),
            None => code.number(register, 1),
        };
        let kind = match aggregation.function {
            Aggregating::Count | Aggregating::Sum => aggregating::SUM,
            Aggregating::Minimum => aggregating::MINIMUM,
            Aggregating::Maximum => aggregating::MAXIMUM,
            Aggregating::Average | Aggregating::StandardDeviation => aggregating::MOMENTS,
            Aggregating::Quantize => {
                code.number(2, i64::from(number));
                value(code, 3);
                self.times(code, 4, times);
                code.number(5, bytes as i64);
                return self.call(code, "d_quantize");
            }
            Aggregating::Linear { lower, step, .. } => {
                value(code, 1);
                code.number(2, i64::from(lower));
                code.number(3, i64::from(step));
                code.number(4, bins(aggregation.function) as i64 - 1);
                self.call_bare(code, "d_linear_bin")?;
                return self.add_to_bin(code, number, times, bytes);
            }
            Aggregating::LogLinear { factor, low, high, steps } => {
                let lowest = i64::from(factor).saturating_pow(u32::from(low));
                let by = u64::from(factor)
                    | u64::from(steps) << 16
                    | u64::from(low) << 32
                    | u64::from(high) << 48;
                value(code, 1);
                code.number(2, by.cast_signed());
                code.number(3, lowest);
                self.call_bare(code, "d_log_linear_bin")?;
                return self.add_to_bin(code, number, times, bytes);
            }
        };
        code.number(2, i64::from(u32::from(number) | kind << 16));
        value(code, 3);
        code.number(4, bytes as i64);
        self.call(code, "d_aggregate")
    }

    /// Adds to the bin in `r0`.
    fn add_to_bin(
        &self,
        code: &mut Code,
        number: u16,
        times: Option<Register>,
        bytes: u64,
    ) -> Result<(), KernelError> {
        code.operate(code::MOV, 2, 0);
        code.operate_on(code::LSH, 2, 16);
        code.operate_on(code::OR, 2, i32::from(number));
        self.times(code, 3, times);
        code.number(4, bytes as i64);
        self.call(code, "d_add_to_bin")
    }

    /// How often a value counts.
    fn times(&self, code: &mut Code, to: u8, times: Option<Register>) {
        match times {
            Some(times) => self.value(code, to, times),
            None => code.number(to, 1),
        }
    }
}
