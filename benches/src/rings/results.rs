//! Costs and ratios of the runs, judged, printed and stored. Differences and quotients are computed within a block, and
//! their median is computed afterwards.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::conditions::Conditions;
use crate::record::{Case, Sweep};
use crate::results::Results;
use crate::rings::rounds::{Item, Observer, Sample};
use crate::rings::subject::{BATCH, Subject};
use crate::stats::{Estimate, estimate, median};
use crate::tables::{digits, interval, table};
use crate::targets::{Bound, Target, target_table};

/// The most that watching may cost, in costs of two empty programs.
const MOST: f64 = 2.5;

/// What the bench has measured.
pub(crate) struct RingResults {
    blocks: u32,
    disturbed: u64,
    version: Option<String>,
    samples: BTreeMap<Item, Vec<Sample>>,
}

impl RingResults {
    pub(crate) fn new(
        blocks: u32,
        disturbed: u64,
        version: Option<String>,
        samples: BTreeMap<Item, Vec<Sample>>,
    ) -> Self {
        Self { blocks, disturbed, version, samples }
    }

    /// Returns ns per request, block by block.
    fn times(&self, item: Item) -> Vec<f64> {
        let samples = self.samples.get(&item).map_or(&[][..], Vec::as_slice);
        samples.iter().map(|sample| sample.ns_per_request).collect()
    }

    /// Returns ns per request above the bare run of the same block.
    fn costs(&self, (subject, observer): Item) -> Vec<f64> {
        let (times, bare) =
            (self.times((subject, observer)), self.times((subject, Observer::Bare)));
        times.iter().zip(bare).map(|(time, bare)| time - bare).collect()
    }

    /// Returns costs in costs of the empty programs of the same block.
    fn ratios(&self, (subject, observer): Item) -> Vec<f64> {
        let empty = self.costs((subject, Observer::Empty));
        self.costs((subject, observer))
            .iter()
            .zip(empty)
            .map(|(cost, empty)| cost / empty)
            .collect()
    }

    fn targets(&self) -> Vec<Target> {
        let target = |subject: &Subject| {
            let name = subject.name();
            let found: Result<Estimate, String> =
                estimate(&self.ratios((*subject, Observer::Trace)))
                    .ok_or_else(|| "no run".to_owned());
            let text = format!("{name}: cost of iotomy trace ÷ two empty programs'");
            Target::new(&format!("{name}-empty"), text, Bound::at_most(MOST, "×"), found)
        };
        Subject::ALL.iter().map(target).collect()
    }

    /// Returns the results as text and as a record.
    pub(crate) fn results(&self, conditions: &Conditions) -> Results {
        Results {
            folder: "rings",
            title: "Overhead of watching io_uring",
            text: self.text(conditions),
            method: method(),
            record: self.sweep(conditions),
            is_on_one_line: false,
        }
    }

    fn text(&self, conditions: &Conditions) -> String {
        let order = format!(
            "{} blocks, seed {}; {} runs begun beside other watchers",
            self.blocks, conditions.seed, self.disturbed
        );
        let version = self.version.clone().unwrap_or_default();
        let mut text = conditions.text(&[("version", version), ("order", order)]);
        let _ = writeln!(text, "\n## Cost of a request\n");
        text += &self.cost_table();
        for subject in Subject::ALL {
            let samples = self.samples.get(&(subject, Observer::Trace));
            let inside: Vec<f64> =
                samples.iter().flat_map(|s| s.iter()).filter_map(|s| s.inside_ns).collect();
            if let Some(inside) = median(&inside) {
                let _ = writeln!(
                    text,
                    "\n{}: {inside:.0} ns pass from the submission of a request to its completion by iotomy's own count.",
                    subject.name()
                );
            }
        }
        let _ = writeln!(text, "\n## Targets\n");
        text + &target_table(&self.targets(), 2)
    }

    fn cost_table(&self) -> String {
        let titles = [
            "subject",
            "observer",
            "ns a request",
            "cost ns a request [95 %]",
            "÷ empty [95 %]",
            "requests/s",
        ];
        let mut rows = vec![titles.map(str::to_owned).to_vec()];
        let shown = |samples: &[f64], decimals| {
            estimate(samples).map_or_else(String::new, |found| interval(found, decimals))
        };
        for item in self.samples.keys() {
            let (subject, observer) = *item;
            let time = median(&self.times(*item)).unwrap_or(f64::NAN);
            let (mut cost, mut ratio) = (String::new(), String::new());
            if observer != Observer::Bare {
                cost = shown(&self.costs(*item), 1);
            }
            if observer > Observer::Empty {
                ratio = shown(&self.ratios(*item), 2);
            }
            rows.push(vec![
                subject.name().to_owned(),
                observer.name().to_owned(),
                digits(time, 1),
                cost,
                ratio,
                digits(1e9 / time, 0),
            ]);
        }
        table(&rows, 2)
    }

    /// The raw record, `iotomy.sweep/1`.
    fn sweep(&self, conditions: &Conditions) -> Sweep {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let axes = [
            ("subject", names(&Subject::ALL.map(Subject::name))),
            ("observer", names(&Observer::ALL.map(Observer::name))),
        ];
        let mut sweep = Sweep::new("ring-cost", conditions, &axes);
        for item in self.samples.keys() {
            let (subject, observer) = *item;
            let params = [("subject", subject.name()), ("observer", observer.name())];
            let case = |metric, samples: &[f64]| Case::new(&params, metric, "ns", samples);
            sweep.cases.push(case("time_per_request", &self.times(*item)));
            if observer != Observer::Bare {
                let mut above = case("cost_per_request", &self.costs(*item));
                above
                    .extra
                    .extend(median(&self.ratios(*item)).map(|ratio| ("ratio_to_empty", ratio)));
                sweep.cases.push(above);
            }
        }
        sweep.claims = self.targets().iter().map(Target::claim).collect();
        sweep
    }
}

fn method() -> String {
    format!(
        "\n## Method\n\n\
         Subjects are processes pinned to one CPU that time themselves: they submit {BATCH} requests by each call of \
         `io_uring_enter`, which waits for their completions; of 256 pieces of a run the one a twentieth from the \
         fastest counts. `nop` does nothing; `read` reads 4 KiB that are in the page cache, and is carried out inline. \
         Observers and subjects run at nice −20, which keeps other work of the machine out.\n\n\
         A block holds two runs of every observer on every subject, in random order; the faster one stands for the \
         block. Cost is the difference from the bare run of the same block and a ratio is one of costs of the same \
         block; then the median is taken, with an interval of order statistics of at least 95 %. The empty programs, \
         and those that read the clock, are on `io_uring_submit_req` and `io_uring_complete`.\n\n\
         `iotomy trace` has all it has by default: calls, files, the ledger, the whole process tree. A run counts only \
         if it saw every request and lost none.\n\n\
         `raw.json` (`iotomy.sweep/1`) has every sample, in the order of the blocks.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_and_ratios_are_those_of_the_block() {
        let samples = [
            (Observer::Bare, [100.0, 200.0]),
            (Observer::Empty, [150.0, 300.0]),
            (Observer::Trace, [200.0, 500.0]),
        ];
        let sample = |ns_per_request| Sample { ns_per_request, inside_ns: None };
        let samples = samples.map(|(by, times)| ((Subject::Nop, by), times.map(sample).to_vec()));
        let results = RingResults::new(2, 0, None, samples.into_iter().collect());
        assert_eq!(results.costs((Subject::Nop, Observer::Trace)), [100.0, 300.0]);
        assert_eq!(results.ratios((Subject::Nop, Observer::Trace)), [2.0, 3.0]);
        let [nop, read] = &results.targets()[..] else { panic!("two targets") };
        assert_eq!((nop.found.as_ref().map(|f| f.median), read.found.is_err()), (Ok(2.5), true));
    }
}
