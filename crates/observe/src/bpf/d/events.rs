//! Events of the ring as the program's output.

use iotomy_dtrace::Probe;
use iotomy_dtrace::form::{Action, Fault, Form};
use iotomy_dtrace::machine::{ErrorEvent, Event, Output, Value};
use iotomy_dtrace::types::Type;

/// What is left to read.
pub(super) struct Bytes<'b>(pub(super) &'b [u8]);

impl Bytes<'_> {
    fn number(&mut self, bytes: usize) -> Option<u64> {
        let (head, rest) = self.0.split_at_checked(bytes)?;
        let mut word = [0; 8];
        word.get_mut(..bytes)?.copy_from_slice(head);
        self.0 = rest;
        Some(u64::from_ne_bytes(word))
    }

    /// A word.
    pub(super) fn word(&mut self) -> Option<u64> {
        self.number(8)
    }

    /// So many bytes, and those up to the next word.
    fn memory(&mut self, length: usize) -> Option<Vec<u8>> {
        let memory = self.0.get(..length)?.to_vec();
        self.0 = self.0.get(length.next_multiple_of(8)..)?;
        Some(memory)
    }

    /// A string, as keys and records have it.
    pub(super) fn text(&mut self) -> Option<Vec<u8>> {
        let length = self.number(2)? as usize;
        let text = self.0.get(..length)?.to_vec();
        let padded = (length + 2).next_multiple_of(8) - 2;
        self.0 = self.0.get(padded..)?;
        Some(text)
    }
}

/// Reads an event; `None`: it is not one of this program's.
pub(super) fn output(form: &Form, probes: &[Probe], bytes: &[u8]) -> Option<Output> {
    let mut bytes = Bytes(bytes);
    let fault = bytes.number(2)?;
    let clause = bytes.number(2)? as usize;
    let probe = probes.get(bytes.number(2)? as usize)?.clone();
    let cpu = bytes.number(2)?;
    let step = bytes.number(4)? as usize;
    let count = bytes.number(4)?;
    let address = bytes.word()?;
    if fault != 0 {
        let fault = match fault {
            1 => Fault::BadAddress(address),
            3 => Fault::IllegalOperation,
            4 => Fault::DividedByZero,
            5 => Fault::NoScratch,
            _ => Fault::StringTooLong,
        };
        return Some(Output::Error(ErrorEvent { probe, fault, clause, step }));
    }
    let mut records = Vec::new();
    for _ in 0..count {
        let number = bytes.word()? as u16;
        let record = form.records.get(usize::from(number))?;
        if let Action::TraceMemory(length) = record.action {
            records.push((number, vec![Value::Memory(bytes.memory(usize::from(length))?)]));
            continue;
        }
        let values: Option<Vec<Value>> =
            record.values.iter().map(|of| value(&mut bytes, *of)).collect();
        records.push((number, values?));
    }
    Some(Output::Event(Event { probe, cpu, records }))
}

/// A value of a type.
pub(super) fn value(bytes: &mut Bytes<'_>, of: Type) -> Option<Value> {
    match of {
        Type::String => bytes.text().map(Value::Text),
        Type::Stack { .. } => {
            let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap_or_default());
            let mut frames: Vec<u64> = bytes.text()?.chunks_exact(8).map(word).collect();
            // A walk along frame pointers may end with nothing.
            while frames.len() > 1 && frames.last() == Some(&0) {
                frames.pop();
            }
            Some(Value::Stack(frames))
        }
        _ => bytes.word().map(Value::Integer),
    }
}
