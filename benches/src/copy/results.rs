//! Prints the results and stores them in a directory: the tables and the raw record.

use std::fmt::Write as _;

use crate::conditions::Conditions;
use crate::copy::lanes::{Lane, Role, best_peer};
use crate::copy::races::{Kind, Race};
use crate::record::{Case, Sweep};
use crate::results::Results;
use crate::stats::median;
use crate::tables::{digits, interval, table};
use crate::targets::{Target, target_table};

/// The results of the bench.
pub(crate) struct CopyResults {
    pub(crate) blocks: u32,
    pub(crate) bytes: u64,
    pub(crate) versions: Vec<String>,
    /// Memory copy bandwidth in bytes per second, before and after the races.
    pub(crate) bandwidths: [f64; 2],
    pub(crate) races: Vec<Race>,
    pub(crate) skipped: Vec<(String, String)>,
    /// Empty in a sweep of movers.
    pub(crate) targets: Vec<Target>,
    pub(crate) sweep: bool,
}

impl CopyResults {
    /// Returns the results as text and as a record.
    pub(crate) fn results(&self, conditions: &Conditions) -> Results {
        let (folder, title) = match self.sweep {
            true => ("copy/movers", "Which mover is fastest on which route"),
            false => ("copy", "Speed of copying"),
        };
        Results {
            folder,
            title,
            text: self.text(conditions),
            method: METHOD.to_owned(),
            record: self.record(conditions),
            is_on_one_line: false,
        }
    }

    fn text(&self, conditions: &Conditions) -> String {
        let [before, after] = self.bandwidths.map(|rate| format!("{:.2} GB/s", rate / 1e9));
        let mut text = conditions.text(&[
            ("peers", self.versions.join("; ")),
            ("bytes", format!("{} MiB along each route", self.bytes >> 20)),
            ("order", format!("up to {} blocks, seed {}", self.blocks, conditions.seed)),
            ("copying memory, one thread", format!("{before} before, {after} after")),
        ]);
        for race in &self.races {
            let _ = writeln!(text, "\n## {}\n", race.name);
            text += &self.race(race);
        }
        if !self.skipped.is_empty() {
            let _ = writeln!(text, "\n## Skipped: {}\n", self.skipped.len());
            for (name, reason) in &self.skipped {
                let _ = writeln!(text, "- {name}: {reason}");
            }
        }
        if !self.targets.is_empty() {
            let _ = writeln!(text, "\n## Targets\n\n{}", target_table(&self.targets, 2).trim_end());
        }
        text
    }

    /// Formats a table of the contenders, fastest first.
    fn race(&self, race: &Race) -> String {
        let route = race.kind == Kind::Route;
        let mut text = String::new();
        let remark = if race.remark.is_empty() { "" } else { ": " };
        if route {
            let _ = writeln!(
                text,
                "{} MiB{remark}{}; {} blocks. The chooser's first choice is {}.\n",
                race.bytes >> 20,
                race.remark,
                race.lanes.iter().map(|lane| lane.runs.len()).max().unwrap_or(0),
                race.choice
            );
        }
        let reference = self.reference(race);
        let against = reference.map_or("÷ none", |lane| lane.name.as_str());
        let against =
            if self.sweep { format!("÷ {against} [95 %]") } else { "iotomy ÷ it [95 %]".into() };
        let mut titles = vec!["contender".to_owned(), "ms".to_owned(), "CPU ms".to_owned()];
        if route {
            titles.extend(["GB/s", "÷ memory copy"].map(str::to_owned));
        }
        titles.push(against);
        let mut rows = vec![titles];
        for lane in ranked(&race.lanes) {
            let Some(wall) = lane.wall() else { continue };
            let cpu = median(&lane.cpus()).unwrap_or_default();
            let mut row = vec![lane.name.clone(), digits(wall / 1e6, 2), digits(cpu / 1e6, 2)];
            if route {
                let rate = race.bytes as f64 / wall;
                let share = rate * 1e9 / self.bandwidth();
                let counts = lane.role != Role::Floor;
                row.push(if counts { digits(rate, 2) } else { String::new() });
                row.push(if counts { share_text(share, race.remark) } else { String::new() });
            }
            let ratio = reference.filter(|other| other.name != lane.name).and_then(|other| {
                let (above, below) = if self.sweep { (lane, other) } else { (other, lane) };
                if lane.role == Role::Floor { None } else { above.ratio(below, |run| run.wall_ns) }
            });
            row.push(ratio.map_or_else(String::new, |found| interval(found, 2)));
            rows.push(row);
        }
        text += &table(&rows, 1);
        for lane in &race.lanes {
            if let Some(reason) = &lane.skipped {
                let _ = writeln!(text, "\nskipped: {}: {reason}", lane.name);
            }
        }
        if race.kind == Kind::Startup
            && let Some(ours) = race.lanes.iter().find(|lane| lane.role == Role::Ours)
        {
            for peer in race.lanes.iter().filter(|lane| lane.role == Role::Peer) {
                if let Some(found) = ours.ratio(peer, |run| run.cpu_ns) {
                    let found = interval(found, 2);
                    let _ = writeln!(text, "\nCPU time, iotomy copy ÷ {}: {found}", peer.name);
                }
            }
        }
        text
    }

    /// Returns the denominator of ratios: iotomy, or in a sweep the best peer.
    fn reference<'a>(&self, race: &'a Race) -> Option<&'a Lane> {
        if self.sweep {
            return best_peer(&race.lanes);
        }
        race.lanes.iter().find(|lane| lane.role == Role::Ours && lane.wall().is_some())
    }

    /// Returns the higher of the two measured bandwidths, because it serves as a ceiling.
    fn bandwidth(&self) -> f64 {
        self.bandwidths[0].max(self.bandwidths[1])
    }

    fn record(&self, conditions: &Conditions) -> Sweep {
        let names = self.races.iter().map(|race| race.name.clone()).collect();
        let mut lanes: Vec<String> =
            self.races.iter().flat_map(|race| &race.lanes).map(|lane| lane.name.clone()).collect();
        lanes.sort();
        lanes.dedup();
        let axes = [("route", names), ("contender", lanes)];
        let mut sweep = Sweep::new("copy-speed", conditions, &axes);
        let memory = [("route", "memory"), ("contender", "memory copy")];
        sweep.cases.push(Case::new(&memory, "bandwidth", "B/s", &self.bandwidths));
        for race in &self.races {
            for lane in &race.lanes {
                let params = [("route", race.name.as_str()), ("contender", lane.name.as_str())];
                let mut wall = Case::new(&params, "wall", "ns", &lane.walls());
                wall.extra.insert("bytes", race.bytes as f64);
                wall.skipped.clone_from(&lane.skipped);
                sweep.cases.push(wall);
                sweep.cases.push(Case::new(&params, "cpu", "ns", &lane.cpus()));
            }
        }
        sweep.cases.extend(self.skipped.iter().map(|(name, reason)| {
            Case::new(&[("route", name)], "wall", "ns", &[]).skipped_for(reason)
        }));
        sweep.claims = self.targets.iter().map(Target::claim).collect();
        sweep
    }
}

/// Returns the measured lanes, fastest first.
fn ranked(lanes: &[Lane]) -> Vec<&Lane> {
    let mut lanes: Vec<&Lane> = lanes.iter().filter(|lane| lane.wall().is_some()).collect();
    let wall = |lane: &Lane| lane.wall().unwrap_or(f64::INFINITY);
    lanes.sort_by(|a, b| wall(a).total_cmp(&wall(b)));
    lanes
}

/// Formats a rate as a share of the memory bandwidth. Above 100 %, the bytes cannot have been
/// copied, and the text names the actual operation.
fn share_text(share: f64, remark: &str) -> String {
    let percent = format!("{} %", digits(share * 100.0, 0));
    match share {
        share if share <= 1.0 => percent,
        _ if remark.is_empty() => format!("{percent} (above one thread's)"),
        _ => format!("{percent} ({remark})"),
    }
}

const METHOD: &str = "
## Method

A contender is a process whose ends are there before it starts. Its time goes from just before the \
start until it has ended and the far end has seen the last byte. Source files are in the page cache. \
A target file is new in each run, and making it is timed for all: for a contender that writes to its \
standard output the bench makes it, as a shell does for `>`. Removing it and writing an image back are \
not timed, and nothing is asked to reach a disk. ext4, xfs and btrfs are in \
images in memory. Pipes and connections are as the kernel makes them; contenders may widen a pipe. \
What feeds them gives references to a file in memory (splice, sendfile); what reads from them reads \
every byte into a buffer of 256 KiB. Both are threads of the bench and the same for all, and \
\"far ends alone\" is their time when joined directly by a wide pipe or a connection, with a process \
that does nothing beside it. \
All of it runs in a session of its own at nice −20, \
which keeps other work of the machine out where that is allowed.

A first run of each contender compares every byte with the source and does not count. Then a block \
holds one run of each, in random order; a ratio is one of times of the same block, then its median is \
taken, with an interval of order statistics of at least 95 %. The best peer is the one with the lowest \
median. A target is met when all of the interval is inside the bound, missed when all of it is outside, undecided \
otherwise. dd runs with the block size that was best of 64 KiB to 4 MiB on the route. On routes called \
\"shared\" contenders share extents as they do by default, and only those who do compete; on the others \
they are told not to (cp: `--reflink=never`), and GNU cat, which shares and cannot be told, does not \
compete.

Copying memory is one thread between two buffers of 256 MiB in pieces of 64 KiB, the fastest of seven \
passes; bytes count once. A share above 100 % says why: nothing was copied, or by several CPUs.

`raw.json` (`iotomy.sweep/1`) has every sample, in the order of the blocks.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_above_the_memory_says_why() {
        assert_eq!(share_text(0.5, "moved without touching"), "50 %");
        assert_eq!(share_text(80.0, "moved without touching"), "8000 % (moved without touching)");
        assert_eq!(share_text(1.2, ""), "120 % (above one thread's)");
    }
}
