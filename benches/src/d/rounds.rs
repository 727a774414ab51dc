//! The runs: blocks in which every question is asked by each observer, in random order.
//!
//! The overhead of an observer is the difference between its run and the bare run of the same block. A disturbance of a run
//! only makes it slower; therefore a block makes several runs of each kind, and the fastest represents the block.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use crate::child::{Signals, guarded};
use crate::d::questions::Question;
use crate::d::subject;
use crate::floor::Floor;
use crate::order::Order;
use crate::scratch::Scratch;

/// Runs of a kind in a block.
const REPEATS: usize = 2;

/// The observers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Observer {
    Bare,
    Empty,
    D,
    Bpftrace,
}

impl Observer {
    pub(crate) const ALL: [Self; 4] = [Self::Bare, Self::Empty, Self::D, Self::Bpftrace];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Empty => "empty BPF programs",
            Self::D => "iotomy d",
            Self::Bpftrace => "bpftrace",
        }
    }
}

/// A kind of run: the question by its number.
pub(crate) type Item = (usize, Observer);

/// The environment of runs.
pub(crate) struct Rounds<'a> {
    signals: &'a Signals,
    iotomy: &'a str,
    folder: &'a Scratch,
    empty: Floor,
    cpu: usize,
    pub(crate) questions: Vec<Question>,
    /// ns per call, of the fastest run of each block.
    pub(crate) samples: BTreeMap<Item, Vec<f64>>,
}

impl<'a> Rounds<'a> {
    pub(crate) fn prepare(
        signals: &'a Signals,
        iotomy: &'a str,
        folder: &'a Scratch,
        questions: Vec<Question>,
    ) -> Result<Self> {
        let cpu = crate::cpus::last()?;
        let empty = Floor::empty()?;
        Ok(Self { signals, iotomy, folder, empty, cpu, questions, samples: BTreeMap::new() })
    }

    /// Makes one block of runs.
    pub(crate) fn block(&mut self, order: &mut Order) -> Result<()> {
        let kinds =
            (0..self.questions.len()).flat_map(|number| Observer::ALL.map(|by| (number, by)));
        let mut items: Vec<Item> =
            kinds.flat_map(|item| std::iter::repeat_n(item, REPEATS)).collect();
        order.shuffle(&mut items);
        let mut fastest: BTreeMap<Item, f64> = BTreeMap::new();
        for item in items {
            let ns = self.run(item)?;
            let best = fastest.entry(item).or_insert(ns);
            *best = best.min(ns);
        }
        for (item, ns) in fastest {
            self.samples.entry(item).or_default().push(ns);
        }
        Ok(())
    }

    fn run(&mut self, (number, observer): Item) -> Result<f64> {
        self.signals.check()?;
        let question = self.questions[number];
        let [result, errors, seen] =
            ["result", "errors", "seen"].map(|name| self.folder.path().join(name));
        for file in [&result, &seen] {
            let _ = fs::remove_file(file);
        }
        let subject = subject::argv(self.cpu, &result)?;
        let argv = self.argv(&question, observer, &subject, &seen);
        let mut command =
            guarded(&argv, File::create(&errors).context("cannot create a temporary file")?)?;
        // bpftrace sets aside less for keys unasked.
        command.env("BPFTRACE_MAP_KEYS_MAX", "131072");
        let attached = match observer {
            Observer::Empty => Some(self.empty.attach_first(question.firings as usize)?),
            _ => None,
        };
        let mut child = command.spawn().context("cannot start a run")?;
        let status = self.signals.wait(&mut child);
        drop(attached);
        let status = status.with_context(|| observer.name())?;
        let complaint = fs::read_to_string(&errors).unwrap_or_default();
        if !status.success() {
            // The reason stands before the program's text and what underlines a part of it.
            let hint = match complaint.contains("tracepoint not found") {
                true => "; mount tracefs: mount -t tracefs tracefs /sys/kernel/tracing",
                false => "",
            };
            let (who, complaint) = (observer.name(), complaint.trim());
            bail!("{who}, {}: ended with {status}{hint}:\n{complaint}", question.name);
        }
        if observer > Observer::Empty {
            // An observer that does not count would win every comparison; D's drops are told on standard error.
            let is_quiet = observer == Observer::Bpftrace || complaint.is_empty();
            ensure!(is_quiet, "{}, {}: {complaint}", observer.name(), question.name);
            let output = fs::read_to_string(&seen).context("an observer left no output")?;
            let is_right = match question.is_counted {
                true => total(&output) == subject::ALL_CALLS,
                false => !output.trim().is_empty(),
            };
            let (by, name, all) = (observer.name(), question.name, subject::ALL_CALLS);
            ensure!(is_right, "{by}, {name}: counted {} calls of {all}", total(&output));
        }
        subject::read_result(&result, question.call)
    }

    fn argv(
        &self,
        question: &Question,
        observer: Observer,
        subject: &[String],
        seen: &Path,
    ) -> Vec<String> {
        let seen = seen.to_string_lossy();
        let joined = subject.join(" ");
        let words: Vec<&str> = match observer {
            Observer::Bare | Observer::Empty => return subject.to_vec(),
            Observer::D => {
                vec![self.iotomy, "d", "-q", "-o", &seen, "-n", question.d, "-c", &joined]
            }
            Observer::Bpftrace => {
                vec!["bpftrace", "-q", "-o", &seen, "-c", &joined, "-e", question.bpftrace]
            }
        };
        words.into_iter().map(str::to_owned).collect()
    }
}

/// The sum of the numbers at the ends of lines.
fn total(output: &str) -> u64 {
    output.lines().filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_both_are_added_up() {
        assert_eq!(total("\n  getpgid                    400\n  5000001    2\n"), 402);
        assert_eq!(total("@[121]: 400\n@[5000001]: 2\n\n"), 402);
    }
}
