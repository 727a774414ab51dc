//! What a program prints, as DTrace prints it.

mod aggregations;
mod pictures;
mod rows;
mod text;

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::OsStringExt;
use std::rc::Rc;

use crate::form::{Action, Form};
use crate::format::{Format, Piece};
use crate::machine::{Aggregations, Event, Output, Value};
use crate::program::Options;
use crate::types::Type;
pub use rows::{Bucket, Key, Row};
use text::Field;

/// Knows the names of addresses; one without is a number.
pub trait Names: fmt::Debug {
    /// An address in the kernel.
    fn kernel(&self, address: u64) -> String;

    /// An address in a process.
    fn user(&self, process: u64, address: u64) -> String;

    /// Whether a frame of the kernel's is one of the probe itself.
    fn is_probe(&self, address: u64) -> bool;
}

/// Prints the records of a program.
#[derive(Debug)]
pub struct Printer<'f> {
    form: &'f Form,
    options: Options,
    /// The names of addresses.
    pub(crate) symbols: std::collections::BTreeMap<u64, String>,
    /// What knows them in place of these.
    names: Option<Rc<dyn Names>>,
    /// What was printed, to be taken.
    pub text: Vec<u8>,
    /// The commands of `system()`, in their order, each with how much of the text comes before it.
    pub commands: Vec<(usize, OsString)>,
    /// What was wrong, a line each.
    pub errors: Vec<String>,
    has_heading: bool,
    /// The aggregations that printa() printed.
    printed: Vec<bool>,
}

impl<'f> Printer<'f> {
    /// For a program.
    pub fn new(form: &'f Form) -> Self {
        Self {
            form,
            options: form.options.clone(),
            symbols: std::collections::BTreeMap::new(),
            names: None,
            text: Vec::new(),
            commands: Vec::new(),
            errors: Vec::new(),
            has_heading: false,
            printed: vec![false; form.aggregations.len()],
        }
    }

    /// With the names of these addresses.
    #[must_use]
    pub fn with_symbols(mut self, symbols: std::collections::BTreeMap<u64, String>) -> Self {
        self.symbols = symbols;
        self
    }

    /// With what knows the names of addresses on this machine.
    #[must_use]
    pub fn with_names(mut self, names: Rc<dyn Names>) -> Self {
        self.names = Some(names);
        self
    }

    /// Prints what came out of a buffer.
    pub fn output(&mut self, output: &Output, aggregations: &mut Aggregations, source: &str) {
        match output {
            Output::Event(event) => self.event(event, aggregations),
            Output::Error(error) => {
                let place = self.form.place(error.clause, error.step);
                let (line, column) = crate::error::line_and_column(source, place.start);
                self.errors.push(format!("{line}:{column}: {} in {}", error.fault, error.probe));
            }
        }
    }

    /// The line of an event, and what its records print.
    pub fn event(&mut self, event: &Event, aggregations: &mut Aggregations) {
        if !self.options.quiet {
            self.heading();
            let name = format!("{}:{}", event.probe.function, event.probe.name);
            self.push(&format!("{:3} {:6} {name:>32} ", event.cpu, event.probe.id));
        }
        for (number, values) in &event.records {
            self.record(usize::from(*number), values, aggregations);
        }
        if !self.options.quiet {
            self.push("\n");
        }
    }

    fn heading(&mut self) {
        if !self.has_heading {
            self.has_heading = true;
            self.push(&format!("{:>3} {:>6} {:>32}\n", "CPU", "ID", "FUNCTION:NAME"));
        }
    }

    fn push(&mut self, text: &str) {
        self.text.extend_from_slice(text.as_bytes());
    }

    fn record(&mut self, number: usize, values: &[Value], aggregations: &mut Aggregations) {
        let form = self.form;
        let record = &form.records[number];
        let number = || values.first().map_or(0, |value| value.integer().cast_signed());
        match &record.action {
            Action::Trace => {
                for (value, of) in values.iter().zip(&record.values) {
                    self.traced(value, *of);
                }
            }
            Action::TraceMemory(_) => {
                if let Some(Value::Memory(bytes)) = values.first() {
                    text::dump(&mut self.text, bytes);
                }
            }
            Action::Printf(format) => {
                let text = self.formatted(format, values, &record.values);
                self.text.extend(text);
            }
            Action::System(format) => {
                let command = self.formatted(format, values, &record.values);
                self.commands.push((self.text.len(), OsString::from_vec(command)));
            }
            Action::Printa(format, all) => self.printa(format.as_ref(), all, aggregations),
            Action::Clear(aggregation) => aggregations.clear(*aggregation),
            Action::Truncate(aggregation) => aggregations.truncate(*aggregation, number()),
            Action::Normalize(aggregation) => match number() {
                0 => self.errors.push("normalize() by 0 is left out".to_owned()),
                by => aggregations.normalize(*aggregation, by),
            },
            Action::Denormalize(aggregation) => aggregations.normalize(*aggregation, 1),
            Action::SetOption(name, value) => {
                // It was tried when the program was compiled.
                if let Err((message, _)) = self.options.set_by_name(name, value.as_deref()) {
                    self.errors.push(message);
                }
            }
            Action::Event | Action::Exit => {}
        }
    }

    /// What `trace()` prints.
    fn traced(&mut self, value: &Value, of: Type) {
        let quiet = self.options.quiet;
        let text = match (value, of) {
            (Value::Stack(frames), of) => return self.stack(frames, of, self.options.stackindent),
            (Value::Text(bytes), _) => {
                let text = bytes.clone();
                let field =
                    Field { left: true, width: if quiet { 0 } else { 33 }, ..Field::default() };
                self.text.extend_from_slice(if quiet { b"" } else { b"  " });
                self.text.extend(field.padded(text));
                return;
            }
            (value, Type::Symbol) => {
                let name = self.symbol(value.integer());
                format!("  {name:<50}")
            }
            (value, of) => {
                let (width, number) = text::traced(value.integer(), of);
                if quiet { number } else { format!(" {number:>width$}") }
            }
        };
        self.push(&text);
    }

    /// The frames of a stack, one a line.
    fn stack(&mut self, frames: &[u64], of: Type, indent: u16) {
        self.push("\n");
        for frame in self.frames(frames, of) {
            let line = format!("{:indent$}{frame}\n", "", indent = usize::from(indent));
            self.push(&line);
        }
    }

    /// The frames of a stack by their names. In front of those of user space is their process; before those of the
    /// kernel may be the probe's own.
    fn frames(&self, frames: &[u64], of: Type) -> Vec<String> {
        let Type::Stack { user, frames: most } = of else { return Vec::new() };
        let most = usize::from(most);
        if let (true, [process, frames @ ..]) = (user, frames) {
            let name = |frame: &u64| match &self.names {
                Some(names) => names.user(*process, *frame),
                None => self.symbol(*frame),
            };
            return frames.iter().take(most).map(name).collect();
        }
        let is_own =
            |frame: &&u64| self.names.as_ref().is_some_and(|names| names.is_probe(**frame));
        frames.iter().skip_while(is_own).take(most).map(|frame| self.symbol(*frame)).collect()
    }

    /// An address by its name, or as a number.
    fn symbol(&self, address: u64) -> String {
        if let Some(names) = &self.names {
            return names.kernel(address);
        }
        match self.symbols.range(..=address).next_back() {
            Some((start, name)) if *start == address => name.clone(),
            Some((start, name)) if address - start < 1 << 16 => {
                format!("{name}+{:#x}", address - start)
            }
            _ => format!("{address:#x}"),
        }
    }

    /// Values by a format.
    fn formatted(&self, format: &Format, values: &[Value], types: &[Type]) -> Vec<u8> {
        let mut text = Vec::new();
        let mut values = values.iter().zip(types);
        for piece in &format.pieces {
            let conversion = match piece {
                Piece::Text(plain) => {
                    text.extend_from_slice(plain);
                    continue;
                }
                Piece::Conversion(conversion) => conversion,
            };
            let mut field = Field::of(conversion);
            if conversion.width_argument {
                let width = values.next().map_or(0, |(value, _)| value.integer() as i32);
                field.left |= width < 0;
                field.width = usize::try_from(width.unsigned_abs().min(1024)).unwrap_or(0);
            }
            if conversion.precision_argument {
                let precision = values.next().map_or(0, |(value, _)| value.integer() as i32);
                field.precision = usize::try_from(precision).ok().map(|one| one.min(1024));
            }
            if let Some((value, of)) = values.next() {
                self.convert(&mut text, conversion.letter, field, value, *of);
            }
        }
        text
    }

    /// One value by its conversion.
    fn convert(&self, text: &mut Vec<u8>, letter: u8, field: Field, value: &Value, of: Type) {
        match (letter, value) {
            (_, Value::Stack(frames)) => {
                let indent = if field.left { field.width } else { 0 };
                text.push(b'\n');
                for frame in self.frames(frames, of) {
                    text.extend(format!("{:indent$}{frame}\n", "").bytes());
                }
            }
            (b's', value) => text.extend(field.string(value.text().to_vec())),
            (b'S', value) => text.extend(field.string(text::escaped(value.text()))),
            (b'a' | b'A', value) => {
                text.extend(field.string(self.symbol(value.integer()).into_bytes()));
            }
            (b'Y', value) => text.extend(field.string(text::time(value.integer()).into_bytes())),
            (b'T', value) => {
                text.extend(field.string(text::mail_time(value.integer()).into_bytes()))
            }
            (b'c', value) => text.extend(field.padded(vec![value.integer() as u8])),
            (b'C', value) => text.extend(field.string(text::escaped(&[value.integer() as u8]))),
            (letter, value) => {
                let integer = of.as_integer().unwrap_or(crate::types::Integer::U64);
                text.extend(field.integer(letter, value.integer(), integer));
            }
        }
    }
}
