//! Judges, prints and stores the results.

use crate::conditions::Conditions;
use crate::live::subject::CALL;
use crate::live::terminal::SIZE;
use crate::live::watch::{Lane, Samples, WatchMode};
use crate::record::{Case, Sweep};
use crate::results::Results;
use crate::stats::{Estimate, estimate, ratio};
use crate::tables::{interval, table};
use crate::targets::{Bound, Target, target_table};

/// The view's own limit on its share of a CPU, in percent: after each update it sleeps twenty times as long as the
/// update took.
const SHARE: f64 = 5.0;
/// The view must therefore not slow down processes on the same machine by more than this.
const SLOWER: f64 = 1.05;

/// The results of the bench.
pub(crate) struct LiveResults {
    pub(crate) blocks: u32,
    pub(crate) seconds: u32,
    pub(crate) version: Option<String>,
    pub(crate) samples: Samples,
}

impl LiveResults {
    /// Returns the results as text and as a record.
    pub(crate) fn results(&self, conditions: &Conditions) -> Results {
        let targets = self.targets();
        Results {
            folder: "live",
            title: "Overhead of the live view",
            text: self.text(conditions, &targets),
            method: METHOD.to_owned(),
            record: self.sweep(conditions, &targets),
            is_on_one_line: false,
        }
    }

    /// Returns the ratio of the view's figure to another mode's, block by block.
    fn over(&self, way: WatchMode, of: fn(&Lane) -> &Vec<f64>) -> Result<Estimate, String> {
        let found = ratio(of(self.samples.lane(WatchMode::Live)), of(self.samples.lane(way)));
        found.ok_or_else(|| "not in pairs".to_owned())
    }

    fn targets(&self) -> [Target; 3] {
        let slower = |id: &str, how: &str, of: fn(&Lane) -> &Vec<f64>| {
            let text = format!("{CALL}: time {how} under iotomy trace --live ÷ iotomy trace");
            Target::new(id, text, Bound::at_most(SLOWER, "×"), self.over(WatchMode::Trace, of))
        };
        let own =
            estimate(&self.samples.lane(WatchMode::Live).own).ok_or_else(|| "no run".to_owned());
        [
            slower("cpu", "on a CPU", |lane| &lane.cpu),
            slower("wall", "by the clock", |lane| &lane.wall),
            Target::new(
                "own",
                "what iotomy trace --live itself takes of a CPU".to_owned(),
                Bound::at_most(SHARE, "%"),
                own,
            ),
        ]
    }

    fn text(&self, conditions: &Conditions, targets: &[Target]) -> String {
        let Self { blocks, seconds, .. } = self;
        let order = format!("{blocks} blocks of runs of {seconds} s, seed {}", conditions.seed);
        let version = self.version.clone().unwrap_or_default();
        let mut text = conditions.text(&[("program", version), ("order", order)]);
        let titles = [
            "watched by",
            "ns a call by the clock",
            "on a CPU",
            "÷ bare, by the clock",
            "on a CPU",
            "iotomy, % of a CPU",
            "drawn, bytes/s",
        ];
        let mut rows = vec![titles.map(str::to_owned).to_vec()];
        let shown = |samples: &[f64], decimals| {
            estimate(samples).map_or_else(String::new, |found| interval(found, decimals))
        };
        let bare = self.samples.lane(WatchMode::Bare);
        for way in WatchMode::ALL {
            let lane = self.samples.lane(way);
            let over = |one: &[f64], other: &[f64]| match ratio(one, other) {
                Some(found) if way != WatchMode::Bare => interval(found, 3),
                _ => String::new(),
            };
            rows.push(vec![
                way.name().to_owned(),
                shown(&lane.wall, 1),
                shown(&lane.cpu, 1),
                over(&lane.wall, &bare.wall),
                over(&lane.cpu, &bare.cpu),
                shown(&lane.own, 2),
                shown(&lane.drawn, 0),
            ]);
        }
        text += &format!("\n## {CALL} of 4 KiB of a cached file\n\n{}", table(&rows, 1));
        text + &format!("\n## Targets\n\n{}", target_table(targets, 3))
    }

    fn sweep(&self, conditions: &Conditions, targets: &[Target]) -> Sweep {
        let names = WatchMode::ALL.map(|way| way.name().to_owned()).to_vec();
        let mut sweep = Sweep::new("live-cost", conditions, &[("watched by", names)]);
        for way in WatchMode::ALL {
            let lane = self.samples.lane(way);
            let params = [("watched by", way.name())];
            let all = [
                ("wall", "ns a call", &lane.wall),
                ("cpu", "ns a call", &lane.cpu),
                ("own", "% of a CPU", &lane.own),
                ("drawn", "bytes/s", &lane.drawn),
            ];
            let there = all.into_iter().filter(|(_, _, samples)| !samples.is_empty());
            let cases = there.map(|(metric, unit, samples)| {
                let mut case = Case::new(&params, metric, unit, samples);
                case.extra.insert("seconds", self.seconds.into());
                case.extra.extend([("columns", SIZE[0].into()), ("rows", SIZE[1].into())]);
                case
            });
            sweep.cases.extend(cases);
        }
        sweep.claims = targets.iter().map(Target::claim).collect();
        sweep
    }
}

const METHOD: &str = "
## Method

A process on one CPU reads pages of 4 KiB of a file in the page cache, one `pread64` after another, for as long as a \
run is, and times itself. A block has one run of it alone, one under `iotomy trace` and one under `iotomy trace \
--live`, in random order; a ratio is one of the same block. All three run in a session of their own, at nice −20, on \
a terminal of 120 columns and 40 rows that is read as fast as it is written. The view looks 250 ms after the start and \
then each second, and draws what has changed.

What iotomy takes of a CPU is the time of its threads (`schedstat`) from the subject's first call to its last: neither \
the start of a watch nor its end is in it. That the traced runs saw every call, and that the view drew, is checked in \
each run.

`raw.json` (`iotomy.sweep/1`) has every sample, in the order of the blocks.
";
