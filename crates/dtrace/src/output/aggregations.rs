//! Aggregations as text: in columns, or by a format.

use std::cmp::Ordering;

use super::text::{self, Field};
use super::{Printer, pictures};
use crate::format::{Conversion, Format, Piece};
use crate::machine::{Aggregations, Data, Entry, Value};
use crate::types::{Integer, Type};

impl Printer<'_> {
    /// What is printed at the end: all aggregations that printa() did not print.
    pub fn unprinted(&mut self, aggregations: &Aggregations) {
        let form = self.form;
        for number in 0..form.aggregations.len() as u16 {
            if !self.printed[usize::from(number)] {
                self.columns(&[number], aggregations);
            }
        }
    }

    /// `printa()`
    pub(super) fn printa(
        &mut self,
        format: Option<&Format>,
        all: &[u16],
        aggregations: &Aggregations,
    ) {
        for number in all {
            self.printed[usize::from(*number)] = true;
        }
        match format {
            None => {
                self.push("\n");
                self.columns(all, aggregations);
            }
            Some(format) => {
                for keys in self.sorted(all, aggregations) {
                    self.by_format(format, all, &keys, aggregations);
                }
            }
        }
    }

    /// The keys that any of these aggregations has, in the order in which they are printed.
    pub(super) fn sorted(&self, all: &[u16], aggregations: &Aggregations) -> Vec<Vec<Value>> {
        let mut keys: Vec<Vec<Value>> = Vec::new();
        for number in all {
            keys.extend(aggregations.of(*number).map(|(keys, _)| keys.to_vec()));
        }
        keys.sort();
        keys.dedup();
        let position = usize::from(self.options.aggsortpos);
        let by = all.get(position).or(all.first()).copied().unwrap_or(0);
        let first_key = usize::from(self.options.aggsortkeypos);
        let order = |one: &Vec<Value>, other: &Vec<Value>| -> Ordering {
            let order = match self.options.aggsortkey {
                true => rotated(one, first_key).cmp(rotated(other, first_key)),
                false => aggregations.order(by, one, other),
            };
            if self.options.aggsortrev { order.reverse() } else { order }
        };
        keys.sort_by(order);
        keys
    }

    /// A line a key: the keys and the values.
    fn columns(&mut self, all: &[u16], aggregations: &Aggregations) {
        let form = self.form;
        for keys in self.sorted(all, aggregations) {
            let types = &form.aggregations[usize::from(all[0])].keys;
            for (key, of) in keys.iter().zip(types) {
                self.key(key, *of);
            }
            for number in all {
                let entry = entry(*number, &keys, aggregations);
                let function = aggregations.function(*number);
                let text = match &entry.data {
                    Data::Bins(bins) => pictures::picture(function, bins, entry.normal),
                    data => format!(" {:>16}", data.number(function, entry.normal)),
                };
                self.push(&text);
            }
            self.push("\n");
        }
    }

    fn key(&mut self, key: &Value, of: Type) {
        match (key, of) {
            (Value::Stack(frames), of) => self.stack(frames, of, self.options.stackindent),
            (Value::Text(bytes), _) => {
                let field = Field { left: true, width: 50, ..Field::default() };
                let padded = field.padded(bytes.clone());
                self.text.extend_from_slice(b"  ");
                self.text.extend(padded);
            }
            (key, Type::Symbol) => {
                let line = format!("  {:<50}", self.symbol(key.integer()));
                self.push(&line);
            }
            (key, of) => {
                let (width, number) = text::traced(key.integer(), of);
                self.push(&format!(" {number:>width$}"));
            }
        }
    }

    fn by_format(
        &mut self,
        format: &Format,
        all: &[u16],
        keys: &[Value],
        aggregations: &Aggregations,
    ) {
        let form = self.form;
        let types = &form.aggregations[usize::from(all[0])].keys;
        let mut next_key = keys.iter().zip(types);
        let mut value = 0;
        let mut line = Vec::new();
        for piece in &format.pieces {
            match piece {
                Piece::Text(plain) => line.extend_from_slice(plain),
                Piece::Conversion(conversion) if conversion.aggregation => {
                    // Further ones print the last aggregation again.
                    let number = all[value.min(all.len() - 1)];
                    value += 1;
                    let entry = entry(number, keys, aggregations);
                    self.aggregated(&mut line, conversion, number, &entry, aggregations);
                }
                Piece::Conversion(conversion) => {
                    if let Some((key, of)) = next_key.next() {
                        self.convert(&mut line, conversion.letter, Field::of(conversion), key, *of);
                    }
                }
            }
        }
        self.text.extend(line);
    }

    fn aggregated(
        &self,
        line: &mut Vec<u8>,
        conversion: &Conversion,
        number: u16,
        entry: &Entry,
        aggregations: &Aggregations,
    ) {
        let function = aggregations.function(number);
        match &entry.data {
            Data::Bins(bins) => {
                line.extend(pictures::picture(function, bins, entry.normal).bytes());
            }
            data => {
                let value = data.number(function, entry.normal).cast_unsigned();
                let of = Type::Integer(Integer::I64);
                let field = Field::of(conversion);
                self.convert(line, conversion.letter, field, &Value::Integer(value), of);
            }
        }
    }
}

/// An aggregation's value; what has no such key is zero.
fn entry(number: u16, keys: &[Value], aggregations: &Aggregations) -> Entry {
    match aggregations.get(number, keys) {
        Some(entry) => entry.clone(),
        None => aggregations.empty(number),
    }
}

/// The keys from one on, then those before it.
fn rotated(keys: &[Value], first: usize) -> impl Iterator<Item = &Value> {
    let first = if first < keys.len() { first } else { 0 };
    keys[first..].iter().chain(&keys[..first])
}
