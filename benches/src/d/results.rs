//! Overheads and ratios of the runs, judged, printed and stored. Differences and quotients are computed within a block,
//! and their median is computed afterwards.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::conditions::Conditions;
use crate::d::questions::Question;
use crate::d::rounds::{Item, Observer};
use crate::d::startup::Startup;
use crate::d::subject::ALL_CALLS;
use crate::record::{Case, Sweep};
use crate::results::Results;
use crate::stats::{estimate, median};
use crate::tables::{digits, interval, table};
use crate::targets::{Bound, Target, target_table};

/// The most that a firing may cost, in costs of bpftrace's.
const MOST: f64 = 0.4;
/// The most that start and end of a script may take, in ms.
const MOST_MS: f64 = 150.0;

/// What the bench has measured.
pub(crate) struct DResults {
    pub(crate) blocks: u32,
    pub(crate) versions: Vec<String>,
    pub(crate) questions: Vec<Question>,
    pub(crate) samples: BTreeMap<Item, Vec<f64>>,
    pub(crate) startup: Startup,
}

impl DResults {
    fn times(&self, item: Item) -> &[f64] {
        self.samples.get(&item).map_or(&[], Vec::as_slice)
    }

    /// Returns ns per firing above the bare run of the same block.
    fn costs(&self, (number, observer): Item) -> Vec<f64> {
        let firings = f64::from(self.questions[number].firings);
        let (times, bare) = (self.times((number, observer)), self.times((number, Observer::Bare)));
        times.iter().zip(bare).map(|(time, bare)| (time - bare) / firings).collect()
    }

    /// Returns costs in costs of bpftrace's program of the same block.
    fn ratios(&self, (number, observer): Item) -> Vec<f64> {
        let peer = self.costs((number, Observer::Bpftrace));
        self.costs((number, observer)).iter().zip(peer).map(|(cost, peer)| cost / peer).collect()
    }

    fn targets(&self) -> Vec<Target> {
        let of_question = |(number, question): (usize, &Question)| {
            let found =
                estimate(&self.ratios((number, Observer::D))).ok_or_else(|| "no run".to_owned());
            let text = format!("{}: cost of a firing of iotomy d ÷ bpftrace's", question.name);
            Target::new(question.name, text, Bound::at_most(MOST, "×"), found)
        };
        let mut targets: Vec<Target> = self.questions.iter().enumerate().map(of_question).collect();
        let ms: Vec<f64> = self.startup.added().iter().map(|ns| ns / 1e6).collect();
        let found = estimate(&ms).ok_or_else(|| "no run".to_owned());
        let text = "start-up and output together, a script over `true` less `true`".to_owned();
        targets.push(Target::new("startup", text, Bound::at_most(MOST_MS, "ms"), found));
        targets
    }

    /// Returns the results as text and as a record.
    pub(crate) fn results(&self, conditions: &Conditions) -> Results {
        Results {
            folder: "d",
            title: "Overhead of D programs",
            text: self.text(conditions),
            method: method(),
            record: self.sweep(conditions),
            is_on_one_line: false,
        }
    }

    fn text(&self, conditions: &Conditions) -> String {
        let order = format!("{} blocks, seed {}", self.blocks, conditions.seed);
        let mut text = conditions.text(&[("versions", self.versions.join("; ")), ("order", order)]);
        let _ = writeln!(text, "\n## Cost of a firing\n");
        text += &self.cost_table();
        let _ = writeln!(text, "\n## The questions\n");
        for Question { name, text: asked, d, bpftrace, .. } in &self.questions {
            let _ = writeln!(text, "- {name}: {asked}\n  - `{d}`\n  - `{bpftrace}`");
        }
        let _ = writeln!(text, "\n## Targets\n");
        text + &target_table(&self.targets(), 2)
    }

    fn cost_table(&self) -> String {
        let titles =
            ["question", "observer", "ns a call", "ns a firing [95 %]", "÷ bpftrace [95 %]"];
        let mut rows = vec![titles.map(str::to_owned).to_vec()];
        let shown = |samples: &[f64], decimals| {
            estimate(samples).map_or_else(String::new, |found| interval(found, decimals))
        };
        for item in self.samples.keys() {
            let (number, observer) = *item;
            let time = median(self.times(*item)).unwrap_or(f64::NAN);
            let cost = match observer {
                Observer::Bare => String::new(),
                _ => shown(&self.costs(*item), 0),
            };
            let ratio = match observer {
                Observer::Empty | Observer::D => shown(&self.ratios(*item), 2),
                _ => String::new(),
            };
            let name = self.questions[number].name.to_owned();
            rows.push(vec![name, observer.name().to_owned(), digits(time, 0), cost, ratio]);
        }
        table(&rows, 2)
    }

    /// The raw record, `iotomy.sweep/1`.
    fn sweep(&self, conditions: &Conditions) -> Sweep {
        let names = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect();
        let axes = [
            ("question", names(self.questions.iter().map(|one| one.name).collect())),
            ("observer", names(Observer::ALL.map(Observer::name).to_vec())),
        ];
        let mut sweep = Sweep::new("d-cost", conditions, &axes);
        for item in self.samples.keys() {
            let (number, observer) = *item;
            let params = [("question", self.questions[number].name), ("observer", observer.name())];
            sweep.cases.push(Case::new(&params, "time_per_call", "ns", self.times(*item)));
            if observer != Observer::Bare {
                sweep.cases.push(Case::new(&params, "cost_per_firing", "ns", &self.costs(*item)));
            }
        }
        let params = [("question", "startup"), ("observer", Observer::D.name())];
        sweep.cases.push(Case::new(&params, "startup", "ns", &self.startup.added()));
        sweep.claims = self.targets().iter().map(Target::claim).collect();
        sweep
    }
}

fn method() -> String {
    format!(
        "\n## Method\n\n\
         The subject is a process pinned to one CPU that times itself: {ALL_CALLS} calls each of `getpgid` of processes that \
         there are not, whose argument is one of 100,000, and of `lseek` that stays where it is, in pieces, of which the one a \
         twentieth from the fastest counts. Every observer asks after that process only, and its output must add up to the \
         calls; one that has lost something ends the bench. bpftrace's programs are at `raw_syscalls`, with room for as many \
         keys.\n\n\
         A block holds two runs of every observer with every question, in random order; the faster one stands for the block. \
         The empty programs, which do nothing at the same tracepoints, are the least that any D program costs. Cost is the difference from the bare run of the same block, divided by the firings of a call, and a ratio is one of \
         costs of the same block; then the median is taken, with an interval of order statistics of at least 95 %.\n\n\
         `raw.json` (`iotomy.sweep/1`) has every sample, in the order of the blocks.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::d::questions::ALL;

    #[test]
    fn costs_and_ratios_are_those_of_the_block_and_of_a_firing() {
        let samples = [
            ((2, Observer::Bare), vec![100.0, 200.0]),
            ((2, Observer::D), vec![200.0, 400.0]),
            ((2, Observer::Bpftrace), vec![300.0, 1000.0]),
        ];
        let results = DResults {
            blocks: 2,
            versions: Vec::new(),
            questions: ALL.to_vec(),
            samples: samples.into_iter().collect(),
            startup: Startup::default(),
        };
        assert_eq!(results.costs((2, Observer::D)), [50.0, 100.0]);
        assert_eq!(results.ratios((2, Observer::D)), [0.5, 0.25]);
        let targets = results.targets();
        assert_eq!(targets.len(), ALL.len() + 1);
        assert_eq!(targets[2].found.as_ref().map(|found| found.median), Ok(0.375));
    }
}
