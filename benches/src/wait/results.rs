//! Judges and prints the results, and stores them in a directory: the tables and the raw record.

use std::fmt::Write as _;

use serde_json::json;

use crate::conditions::Conditions;
use crate::lanes::Lane;
use crate::record::{Case, Claim, Sweep};
use crate::results::Results;
use crate::stats::{Estimate, estimate, median, ratio};
use crate::tables::{digits, interval, table};
use crate::targets::{Bound, Target, target_table};
use crate::wait::contender::OURS;

/// Targets: the ratio to libevent's time, the ratio to the bare loop's time, and the overhead of
/// the trait per event.
const OF_LIBEVENT: f64 = 0.95;
const OF_BARE: f64 = 1.02;
const TRAIT_NS: f64 = 10.0;

/// The times of all contenders for one shape of rounds.
pub(crate) struct Point {
    pub(crate) pairs: usize,
    pub(crate) active: usize,
    pub(crate) writes: usize,
    pub(crate) lanes: Vec<Lane>,
}

/// The results of the bench.
pub(crate) struct WaitResults {
    pub(crate) blocks: u32,
    pub(crate) versions: Vec<String>,
    pub(crate) skipped: Vec<(String, String)>,
    pub(crate) points: Vec<Point>,
    /// The overhead of the trait per event, in ns.
    pub(crate) trait_ns: Vec<f64>,
}

impl Point {
    fn name(&self) -> String {
        format!("n={} a={} w={}", self.pairs, self.active, self.writes)
    }

    fn lane(&self, name: &str) -> Option<&Lane> {
        self.lanes.iter().find(|lane| lane.name == name)
    }

    /// Returns the ratio of one contender's CPU time to the other's, by block.
    fn ratio(&self, one: &str, other: &str) -> Option<Estimate> {
        ratio(&self.lane(one)?.cpu_ns, &self.lane(other)?.cpu_ns)
    }

    fn table(&self) -> String {
        let events = (self.active + self.writes) as f64;
        let titles =
            ["contender", "CPU µs", "wall µs", "ns an event", "÷ bare [95 %]", "ours ÷ it"];
        let mut rows = vec![titles.map(str::to_owned).to_vec()];
        let mut lanes: Vec<&Lane> = self.lanes.iter().collect();
        let cpu = |lane: &Lane| median(&lane.cpu_ns).unwrap_or(f64::INFINITY);
        lanes.sort_by(|a, b| cpu(a).total_cmp(&cpu(b)));
        for lane in lanes {
            let wall = median(&lane.wall_ns).unwrap_or(f64::NAN);
            let of = |one: &str, other: &str| {
                let found = self.ratio(one, other).filter(|_| one != other);
                found.map_or_else(String::new, |found| interval(found, 3))
            };
            rows.push(vec![
                lane.name.clone(),
                digits(cpu(lane) / 1e3, 1),
                digits(wall / 1e3, 1),
                digits(cpu(lane) / events, 0),
                of(&lane.name, "bare"),
                of(OURS, &lane.name),
            ]);
        }
        table(&rows, 1)
    }
}

impl WaitResults {
    /// Returns the results as text and as a record.
    pub(crate) fn results(&self, conditions: &Conditions) -> Results {
        Results {
            folder: "wait",
            title: "What waiting costs",
            text: self.text(conditions),
            method: METHOD.to_owned(),
            record: self.record(conditions),
            is_on_one_line: false,
        }
    }

    fn targets(&self) -> Vec<Target> {
        let mut targets = Vec::new();
        for point in &self.points {
            for (peer, most) in [("libevent", OF_LIBEVENT), ("bare", OF_BARE)] {
                let name = point.name();
                targets.push(Target::new(
                    &format!("{peer} {name}"),
                    format!("{name}: epoll ÷ {peer}"),
                    Bound::at_most(most, ""),
                    point.ratio(OURS, peer).ok_or_else(|| "no peer".to_owned()),
                ));
            }
        }
        targets.push(Target::new(
            "trait",
            "the trait, ns an event, by `null`".to_owned(),
            Bound::at_most(TRAIT_NS, ""),
            estimate(&self.trait_ns).ok_or_else(|| "not measured".to_owned()),
        ));
        targets
    }

    fn text(&self, conditions: &Conditions) -> String {
        let mut text = conditions.text(&[
            ("peers", self.versions.join("; ")),
            ("order", format!("{} blocks, seed {}", self.blocks, conditions.seed)),
        ]);
        for point in &self.points {
            let _ = writeln!(text, "\n## {}\n\n{}", point.name(), point.table().trim_end());
        }
        for (name, reason) in &self.skipped {
            let _ = writeln!(text, "\nskipped: {name}: {reason}");
        }
        let _ = writeln!(text, "\n## Targets\n");
        text += &target_table(&self.targets(), 3);
        let Claim { id, text: claim, verdict, .. } = self.reactor_tax();
        let _ = writeln!(text, "\nThe claim `{id}` (article 000), {claim}: {verdict}.");
        text
    }

    /// Returns the claim that a portable event library has overhead compared with the bare
    /// mechanism.
    fn reactor_tax(&self) -> Claim {
        let found: Vec<(String, Estimate)> = ["libevent", "libuv", "mio"]
            .into_iter()
            .flat_map(|peer| self.points.iter().map(move |point| (peer, point)))
            .filter_map(|(peer, point)| {
                Some((format!("{peer} {}", point.name()), point.ratio(peer, "bare")?))
            })
            .collect();
        let is_all = |is: fn(&Estimate) -> bool| found.iter().all(|(_, one)| is(one));
        let verdict = match found.is_empty() {
            false if is_all(|one| one.low > 1.0) => "holds",
            false if is_all(|one| one.high < 1.0) => "fails",
            _ => "inconclusive",
        };
        let evidence = found.iter().map(|(name, one)| {
            (name.clone(), json!({"value": one.median, "ci95": [one.low, one.high]}))
        });
        Claim {
            id: "reactor-tax".to_owned(),
            source: "000",
            text: "a portable event library costs more than the bare mechanism".to_owned(),
            verdict,
            evidence: evidence.collect::<serde_json::Map<_, _>>().into(),
        }
    }

    fn record(&self, conditions: &Conditions) -> Sweep {
        let names = self.points.iter().map(Point::name).collect();
        let lanes = self.points.first().map_or(&[][..], |point| &point.lanes);
        let lanes = lanes.iter().map(|lane| lane.name.clone()).collect();
        let axes = [("rounds", names), ("contender", lanes)];
        let mut sweep = Sweep::new("wait-speed", conditions, &axes);
        for point in &self.points {
            let name = point.name();
            for lane in &point.lanes {
                let params = [("rounds", name.as_str()), ("contender", lane.name.as_str())];
                let mut cpu = Case::new(&params, "cpu", "ns", &lane.cpu_ns);
                cpu.extra.insert("events", (point.active + point.writes) as f64);
                sweep.cases.push(cpu);
                sweep.cases.push(Case::new(&params, "wall", "ns", &lane.wall_ns));
            }
        }
        let trait_of = [("rounds", "null"), ("contender", OURS)];
        sweep.cases.push(Case::new(&trait_of, "trait, an event", "ns", &self.trait_ns));
        sweep.cases.extend(self.skipped.iter().map(|(name, reason)| {
            Case::new(&[("contender", name)], "cpu", "ns", &[]).skipped_for(reason)
        }));
        sweep.claims = self.targets().iter().map(Target::claim).collect();
        sweep.claims.push(self.reactor_tax());
        sweep
    }
}

const METHOD: &str = "
## Method

A round is one of libevent's benchmark: n pairs of UNIX sockets; all readers are registered anew and \
one look is taken; one byte is sent to `a` of them; then, timed, a loop that never sleeps runs until \
every byte has been received, where each event receives one and, while `w` are left, sends one to the \
next pair. Each contender is a process with pairs of its own; \"bare\" is a loop in C with nothing \
between it and `epoll_wait`, and \"bare-inline\" the same without a function of its own: behind a call of \
the kernel the first return, or call through a pointer, of a program may cost as much as all the rest of \
a wait (AMD's CPUs under `Safe RET`), and this one has none. Every event is one receive and one send besides, the same for all: made \
directly, because the C library's way around them costs several hundredths of a small round. mio tells \
of what is new and no more (`EPOLLET`), so that its readers read until `EAGAIN`: one receive more an event.

In a block each contender makes some rounds, in random order: the first finds the caches with others and \
does not count, then the middle of fifteen does, or of three where they are long. After three blocks all \
are started anew. The figure is the CPU time of the thread: nothing \
sleeps, and what else the machine does is not in it, but for caches. A ratio is one of the same block; \
then its median is taken, with an interval of order statistics of at least 95 %. A target is met when \
all of the interval is inside the bound, missed when all of it is outside, undecided otherwise. The price of the trait is \
that of the waiter `null`, which makes no call, less a loop over the same tokens.

`raw.json` (`iotomy.sweep/1`) has every block's figure, in the order of the blocks.
";
