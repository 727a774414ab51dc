//! `iotomy.race/1`: commands run against each other, and which calls account for the difference.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::absent::is_zero;
use crate::{Against, Exit, Finding, Machine, RaceVerdict, Sampled, Trace};

/// One race. A race of one command is that command timed and traced alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct Race {
    /// Always [`Race::SCHEMA`].
    pub schema: String,
    /// When the race began, RFC 3339.
    pub started: String,
    /// Where it ran.
    pub machine: Machine,
    /// The commands, the first being the base of comparisons.
    #[serde(rename = "contenders")]
    pub commands: Vec<RaceCommand>,
    /// The label of each timed run, in the order they were made.
    pub order: Vec<String>,
    /// One entry a (pair of commands, metric).
    pub comparisons: Vec<Comparison>,
    /// One entry a (pair of commands, metric); empty without traced runs.
    pub attributions: Vec<Attribution>,
    /// The findings.
    pub findings: Vec<Finding>,
    /// The request.
    #[serde(default)]
    pub plan: RacePlan,
    /// One entry per round of runs: the pairs that are compared.
    #[serde(default)]
    #[serde(rename = "blocks")]
    pub rounds: Vec<Round>,
    /// The overhead of the measurement itself on this machine.
    #[serde(default)]
    pub harness: Harness,
    /// The comparison with an earlier race, if requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<Against>,
    /// The signal that ended it before it was decided or all runs were made; absent of a race that was
    /// run to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<u32>,
}

impl Race {
    /// The schema this type reads and writes.
    pub const SCHEMA: &'static str = "iotomy.race/1";

    /// The command called `label`.
    pub fn command(&self, label: &str) -> Option<&RaceCommand> {
        self.commands.iter().find(|command| command.label == label)
    }
}

/// A command of a race.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct RaceCommand {
    /// `A`, `B`, …
    pub label: String,
    /// The command as it was given, its placeholders filled in.
    pub command: String,
    /// Its timed, untraced runs, in the order they were made, including those of repeated rounds.
    pub runs: Vec<Run>,
    /// A run of it that was traced, and not timed.
    pub trace: Option<Trace>,
    /// Whether it ran under `sh -c`.
    #[serde(default)]
    pub shell: bool,
    /// The calls it was run without, as `CALL=ERRNO`.
    #[serde(default)]
    pub denied: Vec<String>,
    /// The placeholders' values.
    #[serde(default, deserialize_with = "crate::store::unique_keys")]
    pub parameters: BTreeMap<String, String>,
    /// Timed runs that failed.
    #[serde(default)]
    pub failures: u64,
    /// Processes it left running, over all runs.
    #[serde(default)]
    pub left_behind: u64,
    /// Why there is no trace, where one was wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untraced: Option<String>,
    /// The samples of that traced run; absent where it was not sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled: Option<Sampled>,
    /// Its wall time over the rounds that count.
    #[serde(default)]
    pub wall: Spread,
    /// Its time on CPUs over the rounds that count.
    #[serde(default)]
    pub cpu: Spread,
}

/// One timed run, from just before its process was made until it had been waited for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Run {
    /// From before the process was made to the return of `wait4`.
    pub wall_ns: u64,
    /// On a CPU in user mode, children waited for included, as the kernel accounts it.
    pub user_ns: u64,
    /// The same in the kernel.
    pub system_ns: u64,
    /// Largest resident set.
    pub max_rss_bytes: u64,
    /// How it ended.
    pub exit: Exit,
    /// The part of the wall time until the new process called `execve`.
    #[serde(default)]
    pub startup_ns: u64,
    /// Page faults served without I/O.
    #[serde(default)]
    pub minor_faults: u64,
    /// Page faults that waited for I/O.
    #[serde(default)]
    pub major_faults: u64,
    /// Times it was made to give up its CPU.
    #[serde(default)]
    pub involuntary_switches: u64,
    /// The bytes written to standard output; absent where they were not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_bytes: Option<u64>,
    /// Its round's place in [`Race::rounds`].
    #[serde(default)]
    #[serde(rename = "block")]
    pub round: u64,
}

impl Run {
    /// Time on CPUs.
    pub fn cpu_ns(&self) -> u64 {
        self.user_ns.saturating_add(self.system_ns)
    }
}

/// Figures of the runs of one command, in ns. The interval is the median's, with 95 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Spread {
    /// Runs that count.
    pub runs: u64,
    /// The middle.
    pub median_ns: f64,
    /// The ends of its interval; `None` with too few runs.
    pub ci95: Option<[f64; 2]>,
    /// The least.
    pub min_ns: f64,
    /// The most.
    pub max_ns: f64,
    /// The arithmetic mean.
    pub mean_ns: f64,
    /// The standard deviation.
    pub stddev_ns: f64,
}

/// Every command once and, mirrored, once more; or only the first half of that.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Round {
    /// The disturbances, each in a few words; empty if none.
    pub disturbed: Vec<String>,
    /// Whether it was made again and so does not count.
    pub redone: bool,
    /// The machine while it ran.
    pub state: State,
}

/// The machine during a round. A value that could not be read is absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct State {
    /// How long the round took.
    pub wall_ns: u64,
    /// Time other programs had on CPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_cpu_ns: Option<u64>,
    /// Time the hypervisor gave to other guests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steal_ns: Option<u64>,
    /// Time in which some task of the machine waited for memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_stall_ns: Option<u64>,
    /// The mean frequency of the CPUs at the round's end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_khz: Option<u64>,
    /// Memory that waited to be written to disks at the round's end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dirty_bytes: Option<u64>,
}

/// The compared quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// Wall time.
    Wall,
    /// Time on CPUs.
    Cpu,
}

/// Two commands compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The label of the base.
    pub base: String,
    /// The label of the other.
    pub other: String,
    /// The compared quantity.
    pub metric: Metric,
    /// other ÷ base, in the middle.
    pub ratio: f64,
    /// The interval of `ratio`. All interim tests together, and with [`RacePlan::shared_error`] also
    /// all comparisons of the metric, are wrong 5 times in 100; `[0, 0]` with too few runs for any.
    pub ci95: [f64; 2],
    /// The verdict.
    pub verdict: RaceVerdict,
    /// Pairs it rests on.
    pub runs: u64,
    /// About how many more pairs a verdict would take, where that can be foreseen; without an
    /// interval, how many at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_runs: Option<u64>,
    /// The mean of other ÷ base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ratio: Option<f64>,
    /// Its interval, of 95 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ci95: Option<[f64; 2]>,
}

/// A difference explained: its terms and the residual add up to it exactly.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attribution {
    /// The label of the base; the same as `other` where one command is accounted for alone.
    pub base: String,
    /// The label of the other.
    pub other: String,
    /// The compared quantity.
    pub metric: Metric,
    /// other − base of the untraced medians.
    pub delta_ns: i64,
    /// The parts.
    pub terms: Vec<Term>,
    /// The remainder that the terms do not explain.
    pub residual_ns: i64,
    /// The traced run of the base, less the observer's price.
    #[serde(default)]
    pub traced_base_ns: u64,
    /// The traced run of the other, less the observer's price.
    #[serde(default)]
    pub traced_other_ns: u64,
}

/// The kind of time that a term stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TermKind {
    /// On a CPU in one system call.
    Syscall,
    /// On a CPU outside calls and page faults.
    User,
    /// On a CPU in page faults; estimated from their number.
    Faults,
    /// Blocked, in one system call or in a page fault.
    Blocked,
    /// Ready to run and waiting for a CPU.
    Runnable,
    /// Until the program was executed.
    Startup,
    /// Less the time in which several threads of a side were at it at once.
    Overlap,
    /// On a CPU in the threads that io_uring made.
    Workers,
    /// No time: the requests by one operation of io_uring. While one is in flight, threads run and wait.
    Ring,
}

/// A part of a difference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Term {
    /// The call's name, or the kind of time.
    pub name: String,
    /// The kind of time.
    pub kind: TermKind,
    /// other − base.
    pub delta_ns: i64,
    /// Calls, page faults, or requests to io_uring, of the base.
    pub calls_base: u64,
    /// The same of the other.
    pub calls_other: u64,
    /// The base's time.
    #[serde(default)]
    pub base_ns: i64,
    /// The other's time.
    #[serde(default)]
    pub other_ns: i64,
    /// The most that watching these calls cost, of the side with more of them; a difference below it is not
    /// to be relied on.
    #[serde(default)]
    pub price_ns: u64,
    /// Of operations of io_uring, the bytes that the base's requests moved.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bytes_base: u64,
    /// The same of the other.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub bytes_other: u64,
}

/// The request for a race.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct RacePlan {
    /// The smallest relevant difference: 0.01 is 1 %.
    pub min_effect: f64,
    /// Untimed runs of each before the timed ones.
    pub warmup: u64,
    /// Timed runs of each; absent where the race ended when it was decided.
    pub runs: Option<u64>,
    /// The most the race was to take.
    pub max_time_ns: Option<u64>,
    /// The seed of the random order.
    pub seed: u64,
    /// Where standard output went: `null`, `pipe`, `inherit` or a file's name.
    pub output: String,
    /// The treatment of caches: `warm`, `cold` or `asis`.
    pub cache: String,
    /// Whether all the machine's caches were dropped before each run.
    pub drop_caches: bool,
    /// Run before each run.
    pub prepare: Option<String>,
    /// Run once, first.
    pub setup: Option<String>,
    /// Run once, last.
    pub cleanup: Option<String>,
    /// Whether runs might fail.
    pub ignore_failure: bool,
    /// Disturbed rounds that might be made again.
    pub redo: u64,
    /// The chance that any of the comparisons of a metric is wrong, which they share evenly; absent
    /// in records of races in which each had 5 % of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared_error: Option<f64>,
}

/// The overhead of measuring on this machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(default)]
pub struct Harness {
    /// The start-up of `sh -c`; absent where no command runs under it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell_startup_ns: Option<u64>,
    /// A system call that does next to nothing: the cost of entering and leaving the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_ns: Option<f64>,
    /// A page fault that finds an empty page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault_ns: Option<f64>,
}
