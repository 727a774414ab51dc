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
    pub(crate) fn name(&self) -> String {
        format!("n={} a={} w={}", self.pairs, self.active, self.writes)
    }

    fn lane(&self, name: &str) -> Option<&Lane> {
        self.lanes.iter().find(|lane| lane.name == name)
    }

    /// Returns the ratio of one contender's CPU time to the other's, by block.
    pub(crate) fn ratio(&self, one: &str, other: &str) -> Option<Estimate> {
        ratio(&self.lane(one)?.cpu_ns, &self.lane(other)?.cpu_ns)
    }

    /// Returns the times of all contenders, and their ratios to two of them: each one's to the first, and the
    /// second's to each.
    pub(crate) fn table(&self, bare: &str, ours: &str) -> String {
        let events = (self.active + self.writes) as f64;
        let over = format!("÷ {bare} [95 %]");
        let under = format!("{ours} ÷ it");
        let titles = ["contender", "CPU µs", "wall µs", "ns an event", &over, &under];
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
                of(&lane.name, bare),
                of(ours, &lane.name),
            ]);
        }
        table(&rows, 1)
    }

    /// Returns the times as cases of a record.
    pub(crate) fn cases(&self) -> Vec<Case> {
        let name = self.name();
        let of_lane = |lane: &Lane| {
            let params = [("rounds", name.as_str()), ("contender", lane.name.as_str())];
            let mut cpu = Case::new(&params, "cpu", "ns", &lane.cpu_ns);
            cpu.extra.insert("events", (self.active + self.writes) as f64);
            [cpu, Case::new(&params, "wall", "ns", &lane.wall_ns)]
        };
        self.lanes.iter().flat_map(of_lane).collect()
    }
}

impl WaitResults {
    /// Returns the results as text and as a record.
    pub(crate) fn results(&self, conditions: &Conditions) -> Results {
        Results {
            folder: "wait",
            title: "CPU time of waiting",
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
            let _ =
                writeln!(text, "\n## {}\n\n{}", point.name(), point.table("bare", OURS).trim_end());
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
            sweep.cases.extend(point.cases());
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

A round is one of libevent's benchmark, with n pairs of UNIX sockets. All readers are registered again, the loop \
runs once without sleeping, and one byte is sent to `a` of the pairs. Then, timed, a loop that never sleeps runs \
until every byte has been received; each event receives one byte and, while `w` are left, sends one to the next \
pair. Each contender is a process with pairs of its own. \"bare\" is a loop in C with nothing between it and \
`epoll_wait`; \"bare-inline\" is the same without a function of its own, because the first return or indirect call \
after a system call can cost as much as the rest of a wait (AMD's CPUs under `Safe RET`). Every event also makes one \
receive and one send, the same for all contenders, by direct system calls: the C library's wrappers cost several \
percent of a small round. mio is edge-triggered (`EPOLLET`), so its readers read until `EAGAIN`: one more receive \
per event.

In a block, each contender makes some rounds, in random order. The first round finds the caches filled by others \
and does not count; the median of the next fifteen does, or of three where rounds are long. After three blocks, all \
contenders are restarted. The figure is the CPU time of the thread: nothing sleeps, and other work of the machine is \
not included, except for its effect on the caches. A ratio is one of the same block; the table has its median, with \
an interval of order statistics of at least 95 %. A target is met when all of the interval is inside the bound, \
missed when all of it is outside, and undecided otherwise. The overhead of the trait is that of the waiter `null`, \
which makes no call, minus a loop over the same tokens.

`raw.json` (`iotomy.sweep/1`) has every block's figure, in the order of the blocks.
";
