//! Judges and prints the results, and stores them in a directory: the tables and the raw record.

use std::fmt::Write as _;

use crate::conditions::Conditions;
use crate::files::agreement::Agreement;
use crate::lanes::Lane;
use crate::record::{Case, Sweep};
use crate::results::Results;
use crate::stats::{Estimate, estimate, median, median_or_nan, ratio};
use crate::tables::{digits, interval, table};
use crate::targets::{Bound, Target, target_table};

/// Targets: the ratio to the bare loop's CPU time, the ratio to raw's wall time, the deviation from
/// fio and sysbench.
const OF_BARE: f64 = 1.03;
const OF_RAW: f64 = 1.0;
const OF_PEER: f64 = 0.10;

/// The results of the bench.
pub(crate) struct FilesResults {
    pub(crate) blocks: u32,
    pub(crate) skipped: Vec<(String, String)>,
    /// The ratio of raw's CPU time to the bare loop's, one per life.
    pub(crate) pairs: Vec<f64>,
    pub(crate) lanes: Vec<Lane>,
    pub(crate) agreement: Vec<Agreement>,
}

impl FilesResults {
    /// Returns the results as text and as a record.
    pub(crate) fn results(&self, conditions: &Conditions) -> Results {
        Results {
            folder: "files",
            title: "Time per operation on small files",
            text: self.text(conditions),
            method: METHOD.to_owned(),
            record: self.record(conditions),
            is_on_one_line: false,
        }
    }

    fn lane(&self, name: &str) -> Option<&Lane> {
        self.lanes.iter().find(|lane| lane.name == name)
    }

    fn cpu(&self, one: &str, other: &str) -> Option<Estimate> {
        ratio(&self.lane(one)?.cpu_ns, &self.lane(other)?.cpu_ns)
    }

    fn wall(&self, one: &str, other: &str) -> Option<Estimate> {
        ratio(&self.lane(one)?.wall_ns, &self.lane(other)?.wall_ns)
    }

    fn targets(&self) -> Vec<Target> {
        let judged = |found: Option<Estimate>| found.ok_or_else(|| "no peer".to_owned());
        let (bare, raw) = ("raw ÷ bare, CPU time", Bound::at_most(OF_RAW, ""));
        let pairs = judged(estimate(&self.pairs));
        let mut targets =
            vec![Target::new(bare, bare.to_owned(), Bound::at_most(OF_BARE, ""), pairs)];
        for name in ["io-uring 8", "io-uring 32"] {
            let text = format!("{name} ÷ raw, by the clock");
            targets.push(Target::new(&text.clone(), text, raw, judged(self.wall(name, "raw"))));
        }
        for one in &self.agreement {
            for (peer, figures) in &one.peers {
                let text = format!("iotomy ÷ {peer}, {}", one.name);
                let bound = Bound { least: 1.0 - OF_PEER, most: 1.0 + OF_PEER, unit: "" };
                let found = figures.as_ref().ok().and_then(|ns| ratio(&one.iotomy_ns, ns));
                targets.push(Target::new(&text.clone(), text, bound, judged(found)));
            }
        }
        targets
    }

    fn text(&self, conditions: &Conditions) -> String {
        let order = format!("{} blocks, seed {}", self.blocks, conditions.seed);
        let mut text = conditions.text(&[("order", order)]);
        let _ = writeln!(text, "\n## Rounds on tmpfs\n\n{}", self.table().trim_end());
        for (name, reason) in &self.skipped {
            let _ = writeln!(text, "\nskipped: {name}: {reason}");
        }
        let _ =
            writeln!(text, "\n## Reads of one file, one at a time\n\n{}", self.reads().trim_end());
        let _ = writeln!(text, "\n## Targets\n");
        text + &target_table(&self.targets(), 3)
    }

    fn table(&self) -> String {
        let titles = [
            "contender",
            "CPU µs",
            "wall µs",
            "rounds a second",
            "CPU ÷ bare [95 %]",
            "wall ÷ raw [95 %]",
        ];
        let mut rows = vec![titles.map(str::to_owned).to_vec()];
        for lane in &self.lanes {
            let cpu = self.cpu(&lane.name, "bare").filter(|_| lane.name != "bare");
            let wall = self.wall(&lane.name, "raw").filter(|_| lane.name != "raw");
            let shown = |found: Option<Estimate>| {
                found.map_or_else(String::new, |found| interval(found, 3))
            };
            rows.push(vec![
                lane.name.clone(),
                digits(median_or_nan(&lane.cpu_ns) / 1e3, 2),
                digits(median_or_nan(&lane.wall_ns) / 1e3, 2),
                digits(1e9 / median_or_nan(&lane.wall_ns), 0),
                shown(cpu),
                shown(wall),
            ]);
        }
        table(&rows, 1)
    }

    /// Formats a table of the medians of the turns.
    fn reads(&self) -> String {
        let titles = ["reads", "program", "µs a read"];
        let mut rows = vec![titles.map(str::to_owned).to_vec()];
        for one in &self.agreement {
            let us = |ns: &[f64]| digits(median(ns).unwrap_or(f64::NAN) / 1e3, 2);
            rows.push(vec![one.name.to_owned(), "iotomy".to_owned(), us(&one.iotomy_ns)]);
            for (peer, figures) in &one.peers {
                let figure = figures.as_ref().map_or_else(Clone::clone, |ns| us(ns));
                rows.push(vec![one.name.to_owned(), (*peer).to_owned(), figure]);
            }
        }
        table(&rows, 2)
    }

    fn record(&self, conditions: &Conditions) -> Sweep {
        let lanes = self.lanes.iter().map(|lane| lane.name.clone()).collect();
        let mut sweep = Sweep::new("files-speed", conditions, &[("contender", lanes)]);
        for lane in &self.lanes {
            let params = [("contender", lane.name.as_str())];
            sweep.cases.push(Case::new(&params, "cpu", "ns", &lane.cpu_ns));
            sweep.cases.push(Case::new(&params, "wall", "ns", &lane.wall_ns));
        }
        let pairs = [("contender", "raw beside bare")];
        sweep.cases.push(Case::new(&pairs, "cpu ratio", "", &self.pairs));
        for one in &self.agreement {
            let ours = [("contender", "iotomy")];
            sweep.cases.push(Case::new(&ours, one.name, "ns", &one.iotomy_ns));
            for (peer, figures) in &one.peers {
                let case =
                    |samples: &[f64]| Case::new(&[("contender", *peer)], one.name, "ns", samples);
                sweep.cases.push(match figures {
                    Ok(samples) => case(samples),
                    Err(reason) => case(&[]).skipped_for(reason),
                });
            }
        }
        sweep.cases.extend(self.skipped.iter().map(|(name, reason)| {
            Case::new(&[("contender", name)], "cpu", "ns", &[]).skipped_for(reason)
        }));
        sweep.claims = self.targets().iter().map(Target::claim).collect();
        sweep
    }
}

const METHOD: &str = "
## Method

A round is create, write of 10 bytes, close, open, read, close, unlink of one file in a folder of its own \
in /dev/shm. Each contender is a process, the worker of the experiment `files` as compiled for a way; \
\"bare\" is a loop in C of the same system calls that checks and chooses nothing. io-uring is that many \
chains of linked requests under way at once, a file each.

Raw is held against bare by pairs: two fresh processes kept on one CPU make batches of 640 rounds in turns \
(raw, bare, bare, raw, or the other way round), five fours after one that does not count. A four gives the \
ratio of CPU times, a life of the two processes the median of its ratios; then the median of the 80 lives \
is taken. Batches are some 10 ms apart, so that what the machine does falls on both alike.

For the table, in a block each contender makes seven batches of 320 rounds, in random order, after one that \
does not count; the middle batch is the figure. After three blocks all are started anew. A ratio is one of \
the same block; then its median is taken. Intervals are of order statistics, of at least 95 %. CPU time is \
that of the process with all its threads, also those the kernel adds to it for a ring (io-wq), which work \
beside it: a ring's CPU time may be above its wall time. A target is met when all of the interval is \
inside the bound, missed when all of it is outside, undecided otherwise.

Requests that create or unlink are never made by the thread that hands them over: the kernel passes each \
to io-wq, and the rest of the chain stays there. One half of the files is described while io-wq works on the \
other, and completions are looked for, not slept for; so a ring uses two CPUs where raw uses one.

The reads are of one file of 32 MiB of random bytes, written and synced beforehand, 512 a turn (cached \
ones each block of it once), one at a time. A turn asks the requests of the experiment `device`, fio (psync) and sysbench (sync) in random order; \
each tells its mean time of a read, without its start. Direct reads ask the disk; cached ones find the whole \
file in memory. All read by the C library, and look at the clock once a read or more: of a cached read of 4 KiB \
what a program does between two looks is a good part. So the same is asked of all three under `iotomy trace`, too: \
\"in the call\" is the time on a CPU from the call's entry to its return, watching included, which is alike for all.

`raw.json` (`iotomy.sweep/1`) has every block's figure, in the order of the blocks.
";
