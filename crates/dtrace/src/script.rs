//! Scripted firings, and a program's run over them: what its output is compared with.
//!
//! A script has a command a line; `#` begins a comment.
//!
//! | line | does |
//! | --- | --- |
//! | `set NAME=VALUE…` | facts of all firings that follow; `NAME+=N` adds |
//! | `fire PROBE NAME=VALUE…` | fires `provider:module:function:name`, with facts of its own |
//! | `repeat N fire …` | the same N times |
//! | `loop N`, `end` | the lines between, N times |
//! | `user ADDRESS VALUE`, `kernel ADDRESS VALUE` | memory: a string in quotes with its end, or bytes in hexadecimal |
//! | `parent PID PPID` | the process tree |
//! | `symbol ADDRESS NAME` | the name of an address |
//! | `stack ADDRESS…`, `ustack ADDRESS…` | the frames of the firings that follow |
//! | `hold`, `drain` | the buffer is not read until `drain` |
//! | `interrupt` | a new line, as behind the ^C that ends a program |
//!
//! BEGIN fires first and END last, of their own accord.

use std::collections::BTreeMap;

use crate::engine::{Engine, deliver};
use crate::form::{DropCause, Form};
use crate::machine::{Firing, Machine, Value, World};
use crate::output::Printer;
use crate::program::Probe;

/// What a run left.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Run {
    /// What was printed.
    pub text: Vec<u8>,
    /// Errors, a line each.
    pub errors: Vec<String>,
    /// The commands of `system()`.
    pub commands: Vec<String>,
    /// What was not kept, by cause.
    pub drops: BTreeMap<DropCause, u64>,
    /// How often clauses ended by an error, by its kind.
    pub faults: BTreeMap<&'static str, u64>,
    /// The status of `exit()`.
    pub status: Option<i32>,
}

/// The deepest loop, and the most firings of a script.
const MOST_LOOPS: usize = 4;
const MOST_FIRINGS: u64 = 1 << 22;

/// Runs a program over a script. `source` is the program's text, for the places of errors.
///
/// # Errors
/// A line of the script that cannot be read.
pub fn run(form: &Form, source: &str, script: &str) -> Result<Run, String> {
    run_on(&mut Machine::new(form), form, source, script)
}

/// Runs a program over a script by an engine that has it.
///
/// # Errors
/// A line of the script that cannot be read, or what the engine cannot fire.
pub fn run_on(
    engine: &mut impl Engine,
    form: &Form,
    source: &str,
    script: &str,
) -> Result<Run, String> {
    let lines: Vec<Vec<String>> =
        script.lines().map(words).collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    let mut runner = Runner {
        source,
        form,
        engine,
        printer: Printer::new(form),
        world: World::default(),
        defaults: Firing::default(),
        is_held: false,
        firings: 0,
    };
    runner.fire(Probe::of_language("BEGIN"), BTreeMap::new())?;
    runner.lines(&lines, 0)?;
    runner.fire(Probe::of_language("END"), BTreeMap::new())?;
    runner.drain();
    let Runner { engine, mut printer, .. } = runner;
    engine.refresh();
    printer.unprinted(engine.aggregations());
    Ok(Run {
        text: printer.text,
        errors: printer.errors,
        commands: printer
            .commands
            .into_iter()
            .map(|(_, command)| command.to_string_lossy().into_owned())
            .collect(),
        drops: engine.drops(),
        faults: engine.faults(),
        status: engine.exit(),
    })
}

/// The probes that a script fires.
///
/// # Errors
/// A line that cannot be read.
pub fn probes(script: &str) -> Result<Vec<Probe>, String> {
    let mut all = Vec::new();
    for line in script.lines() {
        let words = words(line)?;
        let at = words.iter().take(3).position(|word| word == "fire");
        let Some(text) = at.and_then(|at| words.get(at + 1)) else {
            continue;
        };
        let probe = probe_of(text);
        if !all.contains(&probe) {
            all.push(probe);
        }
    }
    Ok(all)
}

struct Runner<'f, E> {
    source: &'f str,
    form: &'f Form,
    engine: &'f mut E,
    printer: Printer<'f>,
    world: World,
    defaults: Firing,
    is_held: bool,
    firings: u64,
}

impl<E: Engine> Runner<'_, E> {
    fn lines(&mut self, lines: &[Vec<String>], depth: usize) -> Result<(), String> {
        let mut at = 0;
        while let Some(line) = lines.get(at) {
            at += 1;
            if line.first().map(String::as_str) != Some("loop") {
                self.line(line)?;
                continue;
            }
            let mut open = 1;
            let is_end = |line: &Vec<String>| {
                match line.first().map(String::as_str) {
                    Some("loop") => open += 1,
                    Some("end") => open -= 1,
                    _ => {}
                }
                open == 0
            };
            let end = lines[at..].iter().position(is_end).ok_or("a loop without its end")? + at;
            if depth >= MOST_LOOPS {
                return Err("too many loops within one another".to_owned());
            }
            for _ in 0..number(line.get(1))? {
                self.lines(&lines[at..end], depth + 1)?;
            }
            at = end + 1;
        }
        Ok(())
    }

    fn line(&mut self, line: &[String]) -> Result<(), String> {
        let Some((command, arguments)) = line.split_first() else {
            return Ok(());
        };
        let first = arguments.first();
        match command.as_str() {
            "set" => {
                let mut facts = std::mem::take(&mut self.defaults.facts);
                for argument in arguments {
                    assign(&mut facts, argument)?;
                }
                self.defaults.facts = facts;
            }
            "fire" => self.fire_line(arguments, 1)?,
            "repeat" if arguments.get(1).is_some_and(|word| word == "fire") => {
                self.fire_line(&arguments[2..], number(first)?)?;
            }
            "user" | "kernel" => {
                let bytes = memory(&arguments[1.min(arguments.len())..])?;
                let memory = match command.as_str() {
                    "user" => &mut self.world.user,
                    _ => &mut self.world.kernel,
                };
                memory.insert(number(first)?, bytes);
            }
            "parent" => {
                let (child, parent) = (number(first)?, number(arguments.get(1))?);
                self.world.parents.insert(child.cast_signed(), parent.cast_signed());
            }
            "symbol" => {
                let name = arguments.get(1).cloned().unwrap_or_default();
                self.world.symbols.insert(number(first)?, name);
                self.printer.symbols.clone_from(&self.world.symbols);
            }
            "stack" | "ustack" => {
                let frames: Result<_, _> = arguments.iter().map(|one| number(Some(one))).collect();
                match command.as_str() {
                    "stack" => self.defaults.stack = frames?,
                    _ => self.defaults.ustack = frames?,
                }
            }
            "hold" => self.is_held = true,
            "drain" => {
                self.is_held = false;
                self.drain();
            }
            // What stands behind the ^C of a terminal.
            "interrupt" => self.printer.text.push(b'\n'),
            other => return Err(format!("unknown command {other}")),
        }
        Ok(())
    }

    fn fire_line(&mut self, arguments: &[String], times: u64) -> Result<(), String> {
        let (probe, facts) = arguments.split_first().ok_or("fire without a probe")?;
        let mut own = BTreeMap::new();
        for fact in facts {
            assign(&mut own, fact)?;
        }
        for _ in 0..times {
            self.fire(probe_of(probe), own.clone())?;
        }
        Ok(())
    }

    fn fire(&mut self, probe: Probe, own: BTreeMap<String, Value>) -> Result<(), String> {
        self.firings += 1;
        if self.firings > MOST_FIRINGS {
            return Err("too many firings".to_owned());
        }
        let mut facts = self.defaults.facts.clone();
        facts.extend(own);
        let firing = Firing { probe, facts, ..self.defaults.clone() };
        self.engine.fire(&self.world, &firing)?;
        if !self.is_held {
            self.drain();
        }
        Ok(())
    }

    fn drain(&mut self) {
        while let Some(output) = self.engine.take() {
            deliver(self.engine, self.form, &mut self.printer, &output, self.source);
        }
    }
}

/// A probe by its four parts; its `id` is made of them.
fn probe_of(text: &str) -> Probe {
    let mut parts = text.splitn(4, ':').map(str::to_owned);
    let mut part = || parts.next().unwrap_or_default();
    let probe = Probe { provider: part(), module: part(), function: part(), name: part(), id: 0 };
    let sum = text.bytes().fold(0u32, |sum, byte| (sum * 31 + u32::from(byte)) % 9000);
    Probe { id: sum + 1000, ..probe }
}

/// Words by blanks; those within quotes are one, which keeps its opening quote.
fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut in_quotes = false;
    let mut signs = line.chars();
    while let Some(sign) = signs.next() {
        match sign {
            '"' => {
                if !in_quotes {
                    word.push('"');
                }
                in_quotes = !in_quotes;
            }
            '\\' if in_quotes => match signs.next() {
                Some('n') => word.push('\n'),
                Some('t') => word.push('\t'),
                Some(other) => word.push(other),
                None => {}
            },
            '#' if !in_quotes && word.is_empty() => break,
            ' ' | '\t' if !in_quotes => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            other => word.push(other),
        }
    }
    if in_quotes {
        return Err(format!("a quote is left open: {line}"));
    }
    if !word.is_empty() {
        words.push(word);
    }
    Ok(words)
}

fn assign(facts: &mut BTreeMap<String, Value>, argument: &str) -> Result<(), String> {
    // The names of facts have `->` and brackets, but no `=`.
    let (name, value) = argument.split_once('=').ok_or_else(|| format!("no fact: {argument}"))?;
    if let Some(name) = name.strip_suffix('+') {
        let old = facts.get(name).map_or(0, Value::integer);
        let sum = old.wrapping_add(number(Some(&value.to_owned()))?);
        facts.insert(name.to_owned(), Value::Integer(sum));
        return Ok(());
    }
    let value = match value.strip_prefix('"') {
        Some(text) => Value::Text(text.as_bytes().to_vec()),
        None => match number(Some(&value.to_owned())) {
            Ok(number) => Value::Integer(number),
            Err(_) => Value::Text(value.as_bytes().to_vec()),
        },
    };
    facts.insert(name.to_owned(), value);
    Ok(())
}

fn number(word: Option<&String>) -> Result<u64, String> {
    let word = word.ok_or("a number is missing")?;
    let (is_negative, digits) = match word.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, word.as_str()),
    };
    let value = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => digits.parse(),
    };
    let value = value.map_err(|_| format!("no number: {word}"))?;
    Ok(if is_negative { value.wrapping_neg() } else { value })
}

/// A string in quotes and its end, or bytes in hexadecimal.
fn memory(words: &[String]) -> Result<Vec<u8>, String> {
    if let Some(text) = words.first().and_then(|word| word.strip_prefix('"')) {
        return Ok([text.as_bytes(), &[0]].concat());
    }
    words
        .iter()
        .map(|word| u8::from_str_radix(word, 16).map_err(|_| format!("no byte: {word}")))
        .collect()
}
