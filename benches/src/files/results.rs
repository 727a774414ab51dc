//! What is judged, printed, and kept in a folder: the tables and the raw record.

use std::fmt::Write as _;

use iotomy_benches::conditions::Conditions;
use iotomy_benches::lanes::Lane;
use iotomy_benches::record::{Case, Sweep};
use iotomy_benches::results::Results;
use iotomy_benches::stats::{Estimate, median, ratio};
use iotomy_benches::tables::{digits, interval, table};
use iotomy_benches::targets::{Bound, Target, target_table};

use crate::fio::Agreement;

/// Targets: of the bare loop's CPU time; of raw's time by the clock; how far from fio.
const OF_BARE: f64 = 1.03;
const OF_RAW: f64 = 1.0;
const OF_FIO: f64 = 0.10;

/// Everything a bench found out.
pub(crate) struct Found {
    pub(crate) blocks: u32,
    pub(crate) skipped: Vec<(String, String)>,
    pub(crate) lanes: Vec<Lane>,
    pub(crate) agreement: Vec<Agreement>,
}

impl Found {
    /// As text and as a record.
    pub(crate) fn results(&self, conditions: &Conditions) -> Results {
        Results {
            folder: "files",
            title: "What small files cost",
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
        let target = |text: String, bound: Bound, found: Option<Estimate>| {
            Target::new(&text.clone(), text, bound, found.ok_or_else(|| "no peer".to_owned()))
        };
        let bare = self.cpu("raw", "bare");
        let mut targets =
            vec![target("raw ÷ bare, CPU time".to_owned(), Bound::at_most(OF_BARE, ""), bare)];
        for name in ["io-uring 8", "io-uring 32"] {
            let text = format!("{name} ÷ raw, by the clock");
            targets.push(target(text, Bound::at_most(OF_RAW, ""), self.wall(name, "raw")));
        }
        for one in &self.agreement {
            let text = format!("iotomy ÷ fio, {}", one.name);
            let bound = Bound { least: 1.0 - OF_FIO, most: 1.0 + OF_FIO, unit: "" };
            targets.push(target(text, bound, ratio(&one.iotomy_ns, &one.fio_ns)));
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
            let middle = |figures: &[f64]| median(figures).unwrap_or(f64::NAN);
            // What the kernel's threads do for a ring is not on its account.
            let is_ring = lane.name.starts_with("io-uring");
            let cpu = self.cpu(&lane.name, "bare").filter(|_| lane.name != "bare" && !is_ring);
            let wall = self.wall(&lane.name, "raw").filter(|_| lane.name != "raw");
            let shown = |found: Option<Estimate>| {
                found.map_or_else(String::new, |found| interval(found, 3))
            };
            rows.push(vec![
                lane.name.clone(),
                digits(middle(&lane.cpu_ns) / 1e3, 2),
                digits(middle(&lane.wall_ns) / 1e3, 2),
                digits(1e9 / middle(&lane.wall_ns), 0),
                shown(cpu),
                shown(wall),
            ]);
        }
        table(&rows, 1)
    }

    fn record(&self, conditions: &Conditions) -> Sweep {
        let lanes = self.lanes.iter().map(|lane| lane.name.clone()).collect();
        let mut sweep = Sweep::new("files-speed", conditions, &[("contender", lanes)]);
        for lane in &self.lanes {
            let params = [("contender", lane.name.as_str())];
            sweep.cases.push(Case::new(&params, "cpu", "ns", &lane.cpu_ns));
            sweep.cases.push(Case::new(&params, "wall", "ns", &lane.wall_ns));
        }
        for one in &self.agreement {
            for (name, samples) in [("iotomy", &one.iotomy_ns), ("fio", &one.fio_ns)] {
                sweep.cases.push(Case::new(&[("contender", name)], one.name, "ns", samples));
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
chains of linked requests handed over at once, a file each.

In a block each contender makes seven batches of 320 rounds, in random order, after one that does not \
count; the middle batch is the figure. After three blocks all are started anew. A ratio is one of the \
same block; then its median is taken, with an interval of order statistics of at least 95 %. CPU time is \
that of the process: what the kernel's threads do for a ring is not in it, so io-uring is held against \
raw by the clock. A target is met when the median reaches it, within noise when the interval does, \
missed otherwise.

Requests that create or unlink are never made by the thread that hands them over: the kernel passes each \
to a thread of its own (io-wq), and the rest of the chain follows it there. One chain at once is \
therefore slower than the calls; several are worked on by several CPUs.

fio and `iotomy lab run device` take turns of 1.5 s on one file system, past the page cache, one request \
at once.

`raw.json` (`iotomy.sweep/1`) has every block's figure, in the order of the blocks.
";
