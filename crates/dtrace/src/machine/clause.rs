//! The steps of a clause.

use super::memory::{bytes_at, text_at};
use super::{Event, Firing, Machine, Output, Value, World};
use crate::arithmetic::{calculated, unary};
use crate::ast::Binary;
use crate::form::{Action, Clause, DropCause, Fault, Register, Step};
use crate::types::Integer;

/// The memory of `copyin()` and `alloca()`: its first address, and its size.
const SCRATCH: u64 = 0xffff_c000_0000_0000;
const SCRATCH_BYTES: usize = 64 << 10;

/// A clause that runs.
pub(super) struct Running<'a> {
    pub(super) registers: Vec<Value>,
    pub(super) scratch: Vec<u8>,
    pub(super) world: &'a World,
    pub(super) firing: &'a Firing,
    /// What `strtok()` has left.
    pub(super) tokens: Vec<u8>,
    thread: u64,
    number: usize,
}

impl Running<'_> {
    pub(super) fn value(&self, register: Register) -> &Value {
        const NONE: &Value = &Value::Integer(0);
        self.registers.get(usize::from(register)).unwrap_or(NONE)
    }

    pub(super) fn integer(&self, register: Register) -> u64 {
        self.value(register).integer()
    }

    fn values(&self, registers: &[Register]) -> Vec<Value> {
        registers.iter().map(|register| self.value(*register).clone()).collect()
    }

    /// A place of so many bytes; its address.
    pub(super) fn allocate(&mut self, bytes: Vec<u8>) -> Result<u64, Fault> {
        if self.scratch.len() + bytes.len() > SCRATCH_BYTES {
            return Err(Fault::NoScratch);
        }
        let address = SCRATCH + self.scratch.len() as u64;
        self.scratch.extend(bytes);
        // Aligned, and with a boundary that a read across it meets.
        self.scratch.resize(self.scratch.len().next_multiple_of(8), 0);
        Ok(address)
    }

    /// Where an address is in the scratch memory.
    pub(super) fn scratch_at(&self, address: u64) -> Option<usize> {
        let at = usize::try_from(address.checked_sub(SCRATCH)?).ok()?;
        (at < self.scratch.len()).then_some(at)
    }

    pub(super) fn memory(&self, address: u64, length: usize) -> Result<Vec<u8>, Fault> {
        match self.scratch_at(address) {
            Some(at) => {
                let bytes = self.scratch.get(at..at + length);
                bytes.map(<[u8]>::to_vec).ok_or(Fault::BadAddress(address))
            }
            None => bytes_at(&self.world.kernel, address, length),
        }
    }

    fn text(&self, address: u64, most: usize) -> Result<Vec<u8>, Fault> {
        match self.scratch_at(address) {
            Some(at) => {
                let rest = &self.scratch[at..];
                let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
                Ok(rest[..end.min(most)].to_vec())
            }
            None => text_at(&self.world.kernel, address, most),
        }
    }
}

impl Machine<'_> {
    /// Runs a clause; an error with its step.
    pub(super) fn clause(
        &mut self,
        number: usize,
        clause: &Clause,
        world: &World,
        firing: &Firing,
    ) -> Result<(), (Fault, usize)> {
        let thread = match firing.facts.contains_key("tid") {
            true => firing.integer("tid"),
            false => firing.integer("pid"),
        };
        let mut running = Running {
            registers: vec![Value::Integer(0); usize::from(clause.registers)],
            scratch: Vec::new(),
            world,
            firing,
            tokens: Vec::new(),
            thread,
            number,
        };
        let event =
            Event { probe: firing.probe.clone(), cpu: firing.integer("cpu"), records: Vec::new() };
        let mut staged = Staged { event, is_full: false, exit: None };
        let mut at = 0;
        while let Some(step) = clause.steps.get(at) {
            let next = self.step(step, at, &mut running, &mut staged, clause);
            at = next.map_err(|fault| (fault, at))?;
            if staged.is_full {
                return Ok(());
            }
        }
        if !staged.event.records.is_empty() {
            self.keep(self.size(clause), Output::Event(staged.event));
        }
        self.exit = staged.exit.or(self.exit);
        Ok(())
    }

    /// Bytes of a clause's records in the buffer.
    fn size(&self, clause: &Clause) -> u64 {
        let sizes = clause.steps.iter().map(|step| match step {
            Step::Record { record, .. } => {
                let record = &self.form.records[usize::from(*record)];
                let memory = match record.action {
                    Action::TraceMemory(bytes) => u64::from(bytes),
                    _ => 0,
                };
                u64::from(record.bytes(self.options.strsize)) + memory
            }
            _ => 0,
        });
        16 + sizes.sum::<u64>()
    }

    /// Does a step; the number of the next one.
    fn step(
        &mut self,
        step: &Step,
        at: usize,
        running: &mut Running<'_>,
        staged: &mut Staged,
        clause: &Clause,
    ) -> Result<usize, Fault> {
        let most = self.options.strsize as usize - 1;
        let (to, value) = match step {
            Step::Integer { to, value } => (*to, Value::Integer(*value)),
            Step::Text { to, text } => {
                let text = &self.form.texts[*text as usize];
                (*to, Value::Text(text[..text.len().min(most)].to_vec()))
            }
            Step::Fact { to, fact, index } => {
                let index = index.map(|index| running.integer(index));
                let value = match running.firing.fact(fact, index, running.number) {
                    Value::Text(mut text) => {
                        text.truncate(most);
                        Value::Text(text)
                    }
                    value => value,
                };
                (*to, value)
            }
            Step::Stack { to, user, frames } => {
                let all = if *user { &running.firing.ustack } else { &running.firing.stack };
                // Addresses of user space are a process's.
                let process = user.then(|| running.firing.integer("pid"));
                let frames = all.iter().copied().take(usize::from(*frames));
                (*to, Value::Stack(process.into_iter().chain(frames).collect()))
            }
            Step::Unary { to, operator, from } => {
                let value = unary(*operator, running.integer(*from));
                (*to, Value::Integer(value))
            }
            Step::Binary { to, operator, signed, left, right } => {
                let (left, right) = (running.integer(*left), running.integer(*right));
                (
                    *to,
                    Value::Integer(
                        calculated(*operator, *signed, left, right)
                            .map_err(|_| Fault::DividedByZero)?,
                    ),
                )
            }
            Step::Compare { to, operator, left, right } => {
                let order = running.value(*left).text().cmp(running.value(*right).text());
                let holds = match operator {
                    Binary::Less => order.is_lt(),
                    Binary::LessOrEqual => order.is_le(),
                    Binary::Greater => order.is_gt(),
                    Binary::GreaterOrEqual => order.is_ge(),
                    Binary::NotEqual => order.is_ne(),
                    _ => order.is_eq(),
                };
                (*to, Value::Integer(u64::from(holds)))
            }
            Step::Convert { to, from, integer } => {
                (*to, Value::Integer(integer.held(running.integer(*from))))
            }
            Step::Move { to, from } => (*to, running.value(*from).clone()),
            Step::Read { to, address, integer } => {
                let bytes =
                    running.memory(running.integer(*address), usize::from(integer.bytes))?;
                let mut all = [0; 8];
                all[..bytes.len()].copy_from_slice(&bytes);
                (*to, Value::Integer(integer.held(u64::from_le_bytes(all))))
            }
            Step::ReadText { to, address } => {
                (*to, Value::Text(running.text(running.integer(*address), most)?))
            }
            Step::Jump { to } => return Ok(*to as usize),
            Step::JumpIf { value, is, to } => {
                let jumps = (running.integer(*value) != 0) == *is;
                return Ok(if jumps { *to as usize } else { at + 1 });
            }
            Step::Load { to, variable, keys } => {
                let keys = running.values(keys);
                (*to, self.variables.load(*variable, running.thread, &keys))
            }
            Step::Store { variable, keys, from } => {
                let value = Some(running.value(*from).clone());
                self.store(*variable, keys, value, running);
                return Ok(at + 1);
            }
            Step::Free { variable, keys } => {
                self.store(*variable, keys, None, running);
                return Ok(at + 1);
            }
            Step::Call { to, function, arguments } => {
                (*to, self.call(*function, arguments, running)?)
            }
            Step::Aggregate { aggregation, keys, value, times } => {
                let keys = running.values(keys);
                let value = value.map_or(1, |value| running.integer(value)).cast_signed();
                let times = times.map_or(1, |times| running.integer(times)).cast_signed();
                if !self.aggregations.update(*aggregation, keys, value, times) {
                    self.count(DropCause::Aggregation);
                }
                return Ok(at + 1);
            }
            Step::Record { record, values } => {
                self.record(*record, values, running, staged, clause)?;
                return Ok(at + 1);
            }
        };
        if let Some(register) = running.registers.get_mut(usize::from(to)) {
            *register = value;
        }
        Ok(at + 1)
    }

    fn store(
        &mut self,
        variable: u16,
        keys: &[Register],
        value: Option<Value>,
        running: &Running<'_>,
    ) {
        let keys = running.values(keys);
        if self.variables.store(variable, running.thread, keys, value).is_err() {
            self.count(DropCause::DynamicVariable);
        }
    }

    fn record(
        &mut self,
        number: u16,
        registers: &[Register],
        running: &mut Running<'_>,
        staged: &mut Staged,
        clause: &Clause,
    ) -> Result<(), Fault> {
        // The records of a clause find room together, or none does and the clause ends.
        let is_first = staged.event.records.is_empty();
        if is_first && self.buffered + self.size(clause) > self.options.bufsize {
            self.count(DropCause::Buffer);
            staged.is_full = true;
            return Ok(());
        }
        let record = &self.form.records[usize::from(number)];
        let mut values = running.values(registers);
        for (value, of) in values.iter_mut().zip(&record.values) {
            if let (Value::Integer(value), Some(integer)) = (value, of.as_integer()) {
                *value = integer.held(*value);
            }
        }
        match record.action {
            Action::TraceMemory(bytes) => {
                let address = values.first().map_or(0, Value::integer);
                let memory = running.memory(address, usize::from(bytes))?;
                values = vec![Value::Memory(memory)];
            }
            Action::Exit => {
                let status = values.first().map_or(0, Value::integer);
                // Of several, the last counts.
                staged.exit = Some(Integer::INT.held(status) as i32);
            }
            _ => {}
        }
        staged.event.records.push((number, values));
        Ok(())
    }
}

/// What a clause leaves if it comes to its end.
struct Staged {
    event: Event,
    is_full: bool,
    exit: Option<i32>,
}
