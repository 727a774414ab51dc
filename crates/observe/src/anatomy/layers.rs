//! Which layer a stack belongs to, and what a sleep waits for: the rules of `layers.txt`.
//!
//! Pure: names in, a name out. The one tricky rule is that of the enclosing functions: a stack is
//! walked from the inside out, the first function with a rule is kept, and is given up for an
//! enclosing one that is met further out.

use std::collections::HashMap;

/// Functions that no rule names, in the kernel and in user space.
pub(crate) const UNKNOWN: &str = "unknown";
/// Time of calls that no sample fell into.
pub(crate) const NOT_SAMPLED: &str = "not sampled";

const SCHEDULER: &str = "scheduler and wake-up";

/// The rules, and what they said of functions before.
pub(crate) struct Layers {
    rules: Rules,
    known: HashMap<String, Verdict>,
}

/// What the rules say of one function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Verdict {
    encloses: Option<&'static str>,
    layer: Option<&'static str>,
    wait: Option<&'static str>,
}

#[derive(Debug, Default)]
struct Rules {
    enclosing: Vec<Rule>,
    layers: Vec<Rule>,
    waits: Vec<Rule>,
}

/// A line of the table.
#[derive(Debug)]
struct Rule {
    name: &'static str,
    patterns: Vec<&'static str>,
}

impl Layers {
    pub(crate) fn new() -> Self {
        Self { rules: Rules::read(include_str!("layers.txt")), known: HashMap::new() }
    }

    /// The layer of a thread that runs; `frames` begin with the innermost function.
    pub(crate) fn of<'a>(&mut self, frames: impl IntoIterator<Item = &'a str>) -> &'static str {
        self.layer(frames, false)
    }

    /// The layer of a thread that sleeps: how it fell asleep is no part of it.
    pub(crate) fn asleep<'a>(&mut self, frames: impl IntoIterator<Item = &'a str>) -> &'static str {
        self.layer(frames, true)
    }

    fn layer<'a>(
        &mut self,
        frames: impl IntoIterator<Item = &'a str>,
        asleep: bool,
    ) -> &'static str {
        let mut innermost = None;
        for frame in frames {
            let verdict = self.verdict(frame);
            if let Some(enclosing) = verdict.encloses {
                return enclosing;
            }
            let layer = verdict.layer.filter(|layer| !asleep || *layer != SCHEDULER);
            innermost = innermost.or(layer);
        }
        innermost.unwrap_or(if asleep { SCHEDULER } else { UNKNOWN })
    }

    /// What a thread sleeps for; `frames` begin with the innermost function.
    pub(crate) fn wait<'a>(&mut self, frames: impl IntoIterator<Item = &'a str>) -> &'static str {
        frames.into_iter().find_map(|frame| self.verdict(frame).wait).unwrap_or("other")
    }

    fn verdict(&mut self, function: &str) -> Verdict {
        if let Some(verdict) = self.known.get(function) {
            return *verdict;
        }
        let verdict = self.rules.verdict(function);
        self.known.insert(function.to_owned(), verdict);
        verdict
    }
}

impl Rules {
    fn read(table: &'static str) -> Self {
        let mut rules = Self::default();
        let mut section = "";
        for line in table.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(head) = line.strip_prefix('[') {
                section = head.trim_end_matches(']');
                continue;
            }
            let (name, patterns) = line.split_once(": ").expect("a line of layers.txt is a rule");
            let rule = Rule { name, patterns: patterns.split_whitespace().collect() };
            match section {
                "enclosing" => rules.enclosing.push(rule),
                "layers" => rules.layers.push(rule),
                _ => rules.waits.push(rule),
            }
        }
        rules
    }

    fn verdict(&self, function: &str) -> Verdict {
        let of = |rules: &[Rule]| {
            let fits = |rule: &&Rule| rule.patterns.iter().any(|pattern| fits(pattern, function));
            rules.iter().find(fits).map(|rule| rule.name)
        };
        Verdict { encloses: of(&self.enclosing), layer: of(&self.layers), wait: of(&self.waits) }
    }
}

/// Whether a pattern, in which `*` stands for any characters, is all of a name.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(head) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let tail = parts.pop().unwrap_or_default();
    for part in parts {
        let Some(at) = name.find(part) else { return false };
        name = &name[at + part.len()..];
    }
    name.ends_with(tail)
}
