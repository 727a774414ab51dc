//! Judges and prints the results, and stores them in a directory: the tables and the raw record.

use std::fmt::Write as _;

use crate::conditions::Conditions;
use crate::record::{Case, Sweep};
use crate::results::Results;
use crate::stats::Estimate;
use crate::tables::table;
use crate::targets::{Bound, Target, target_table};
use crate::wait::results::Point;

/// The loops that are judged by the ratio to another one's time, and the bound.
pub(crate) const RATIOS: [(&str, &str, f64); 7] = [
    ("event-port", "epoll-oneshot", 1.10),
    ("kqueue-dispatch", "epoll-oneshot", 1.10),
    ("kqueue-dispatch", "epoll-oneshot-counted", 1.10),
    ("kqueue", "epoll", 1.10),
    ("kqueue", "epoll-counted", 1.10),
    ("dev-poll", "epoll", 1.10),
    ("event-port", "event-port-get", 1.0),
];

/// What threads that share a port retrieved.
pub(crate) struct Shared {
    pub(crate) threads: u64,
    pub(crate) events: u64,
    pub(crate) came: u64,
    pub(crate) twice: u64,
    pub(crate) never: u64,
}

/// The memory that a watched descriptor takes in the process.
pub(crate) struct Memory {
    pub(crate) name: String,
    pub(crate) bytes: i64,
}

/// The results of the bench.
pub(crate) struct PortsResults {
    pub(crate) blocks: u32,
    pub(crate) points: Vec<Point>,
    pub(crate) shared: Shared,
    pub(crate) memory: Vec<Memory>,
}

impl PortsResults {
    /// Returns the results as text and as a record.
    pub(crate) fn results(&self, conditions: &Conditions) -> Results {
        Results {
            folder: "ports",
            title: "CPU time of event ports, /dev/poll and kqueue",
            text: self.text(conditions),
            method: METHOD.to_owned(),
            record: self.record(conditions),
            is_on_one_line: false,
        }
    }

    fn targets(&self) -> Vec<Target> {
        let of_point = |point: &Point| {
            let name = point.name();
            RATIOS.map(|(one, other, most)| {
                Target::new(
                    &format!("{one} {other} {name}"),
                    format!("{name}: {one} ÷ {other}"),
                    Bound::at_most(most, ""),
                    point.ratio(one, other).ok_or_else(|| "no such loop".to_owned()),
                )
            })
        };
        let mut targets: Vec<Target> = self.points.iter().flat_map(of_point).collect();
        let Shared { threads, events, twice, never, .. } = self.shared;
        let wrong = (twice + never) as f64;
        targets.push(Target::new(
            "shared",
            format!("events lost or doubled, of {events}, by {threads} threads at one port"),
            Bound::at_most(0.0, ""),
            Ok(Estimate { median: wrong, low: wrong, high: wrong }),
        ));
        targets
    }

    fn text(&self, conditions: &Conditions) -> String {
        let order = format!("{} blocks, seed {}", self.blocks, conditions.seed);
        let mut text = conditions.text(&[("order", order)]);
        for point in &self.points {
            let times = point.table("epoll", "event-port");
            let _ = writeln!(text, "\n## {}\n\n{}", point.name(), times.trim_end());
        }
        let mut rows = vec![["loop", "bytes a descriptor"].map(str::to_owned).to_vec()];
        rows.extend(self.memory.iter().map(|one| vec![one.name.clone(), one.bytes.to_string()]));
        let _ = writeln!(text, "\n## Memory of the process\n\n{}", table(&rows, 1).trim_end());
        let Shared { threads, came, twice, never, .. } = self.shared;
        let _ = writeln!(
            text,
            "\nOne port, {threads} threads: {came} events came, {twice} of them twice, and {never} never."
        );
        let _ = writeln!(text, "\n## Targets\n");
        text + &target_table(&self.targets(), 3)
    }

    fn record(&self, conditions: &Conditions) -> Sweep {
        let names = self.points.iter().map(Point::name).collect();
        let lanes = self.points.first().map_or(&[][..], |point| &point.lanes);
        let lanes = lanes.iter().map(|lane| lane.name.clone()).collect();
        let axes = [("rounds", names), ("contender", lanes)];
        let mut sweep = Sweep::new("ports-speed", conditions, &axes);
        sweep.cases.extend(self.points.iter().flat_map(Point::cases));
        for one in &self.memory {
            let of = [("contender", one.name.as_str())];
            sweep.cases.push(Case::new(&of, "memory", "bytes", &[one.bytes as f64]));
        }
        let Shared { came, twice, never, .. } = self.shared;
        for (metric, count) in [("came", came), ("twice", twice), ("never", never)] {
            let of = [("contender", "event-port")];
            sweep.cases.push(Case::new(&of, metric, "events", &[count as f64]));
        }
        sweep.claims = self.targets().iter().map(Target::claim).collect();
        sweep
    }
}

const METHOD: &str = "
## Method

A round is one of libevent's benchmark, with n pairs of UNIX sockets, so 2 n open descriptors. All readers are registered \
again, the loop runs once without sleeping, and one byte is sent to `a` of the pairs. Then, timed, a loop that never \
sleeps runs until every byte has been received; each event receives one byte and, while `w` are left, sends one to the \
next pair. All loops are in C (`loops.c`), by the C library's functions, with the static library of event ports; each is \
a process with pairs of its own.

`epoll` is level-triggered. `epoll-oneshot` has `EPOLLONESHOT` and one `EPOLL_CTL_MOD` for each event. `event-port` \
retrieves all events that there are by `port_getn` and associates each again; `event-port-get` retrieves one a call. \
`kqueue` has notes without flags, `kqueue-dispatch` notes with `EV_DISPATCH` that the next `kevent` enables again. kqueue \
tells with each event how many bytes there are, which is one more call to the kernel, and epoll does not: \
`epoll-counted` and `epoll-oneshot-counted` are bare epoll with that call (`FIONREAD`) for each event. `dev-poll` asks by \
`DP_POLL`.

In a block, each loop makes some rounds, in random order. The first round finds the caches filled by others and does \
not count; the median of the next fifteen does, or of three where rounds are long. After three blocks, all loops are \
restarted. The figure is the CPU time of the thread. A ratio is one of the same block; the table has its median, with an \
interval of order statistics of at least 95 %. A target is met when all of the interval is inside the bound, missed when \
all of it is outside, and undecided otherwise.

Memory is what anonymous and shared pages of the process grow by with each of 7,500 watched descriptors; what the kernel \
keeps of them is in no loop's figure. Threads share one port to which another one sends events with different values.

`raw.json` (`iotomy.sweep/1`) has every block's figure, in the order of the blocks.
";
