//! The one process of a pipeline that the others wait for.

use std::collections::HashMap;

use iotomy_record::numbers::{duration, share};
use iotomy_record::{FileKind, Process, Verdict};
use serde_json::{Value, json};

use crate::facts::Fact;
use crate::finding::{FindingDeclaration, Rule, UnnamedFinding};
use crate::run::{Rows, Run};

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "pipeline-limit",
    verdict: Verdict::Note,
    summary: "one process of a pipeline ran all the time, and the others waited for it",
    description: "A process with one thread, connected to others by pipes, was on a CPU for \
        at least 90 % of its time, and lived for at least half of the run and 50 ms. Every \
        process that writes into its pipe, or reads from the pipe that it writes, was on a \
        CPU for less than 90 % of its time and blocked for at least 5 % of it in calls that \
        write or read, most of them on that pipe; these sleeps are most of the time in which \
        it was off its CPU. The pipeline is as fast as this process. There is no finding if \
        two processes are that busy, if the run may use one CPU only (then the CPU is the \
        limit), if threads of io_uring worked for the run, or if events were lost.",
    facts: &[
        Fact::Calls(&READS),
        Fact::Calls(&WRITES),
        Fact::Files,
        Fact::Ledger,
        Fact::Tree,
        Fact::Beginning,
    ],
    rules: &[Rule::Run(judge)],
};

/// The part of its time that the limit is on a CPU at least, and a process that waits for it less.
const BUSY: f64 = 0.9;
/// A shorter life is mostly a start.
const SHORTEST_NS: u64 = 50_000_000;

/// Calls that wait for room in a pipe, and for data.
const WRITES: [&str; 5] = ["write", "writev", "splice", "vmsplice", "sendfile"];
const READS: [&str; 3] = ["read", "readv", "splice"];

/// A process with its time by state.
struct Stage<'a> {
    process: &'a Process,
    rows: &'a Rows<'a>,
    thread_ns: u64,
    on_cpu_ns: u64,
    runnable_ns: u64,
}

/// A process that waits, and how long in these calls.
struct Neighbour<'a> {
    process: &'a Process,
    blocked_ns: u64,
}

fn judge(run: &Run<'_>) -> Option<UnnamedFinding> {
    let trace = run.trace;
    // What a process waits for may be its own worker of io_uring.
    let has_workers = run.ring_threads_ns() > 0;
    let is_unclear = has_workers || trace.observer.lost_events > 0 || !trace.view.calls.is_empty();
    let cpus = trace.cpu_capacity.map_or(f64::from(trace.machine.cpus), |capacity| capacity.cpus);
    if trace.ledger.is_empty() || is_unclear || cpus < 2.0 {
        return None;
    }
    let stages: Vec<Stage<'_>> = trace.processes.iter().filter_map(|one| stage(run, one)).collect();
    let mut users: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, stage) in stages.iter().enumerate() {
        for pipe in stage.pipes() {
            users.entry(pipe).or_default().push(at);
        }
    }
    let mut limits = stages.iter().enumerate().filter_map(|(at, stage)| {
        let is_long = stage.thread_ns >= SHORTEST_NS.max(trace.wall_ns / 2);
        let is_limit = stage.is_busy() && stage.process.threads == 1 && is_long;
        is_limit.then(|| neighbours(&stages, &users, at)).flatten().map(|found| (stage, found))
    });
    let (stage, (before, after)) = limits.next()?;
    // Two that are not neighbours of each other.
    if limits.next().is_some() {
        return None;
    }
    let name = stage.process.name();
    let text = format!(
        "{name} ({}) limited its pipeline: it was on a CPU for {} of {}, and {}",
        stage.process.pid,
        share(stage.on_cpu_ns.into(), stage.thread_ns.into()),
        duration(stage.thread_ns as f64),
        waits(&before, &after),
    );
    let listed = |all: &[Neighbour<'_>]| -> Vec<Value> {
        let one = |one: &Neighbour<'_>| json!({"pid": one.process.pid, "exec": one.process.exec, "blocked_ns": one.blocked_ns});
        all.iter().map(one).collect()
    };
    let evidence = [
        ("pid", json!(stage.process.pid)),
        ("exec", json!(stage.process.exec)),
        ("on_cpu_ns", json!(stage.on_cpu_ns)),
        ("thread_ns", json!(stage.thread_ns)),
        ("runnable_ns", json!(stage.runnable_ns)),
        ("before", json!(listed(&before))),
        ("after", json!(listed(&after))),
    ];
    let found = UnnamedFinding::new(text, evidence);
    Some(match parallel(&stage.process.argv, name) {
        Some(advice) => found.advise_command(advice),
        None => found,
    })
}

fn stage<'a>(run: &'a Run<'a>, process: &'a Process) -> Option<Stage<'a>> {
    let rows = run.of_image(process.pid, &process.exec, process.image);
    let sum = |part: fn(&iotomy_record::LedgerRow) -> u64| {
        rows.ledger.iter().map(|row| part(row)).fold(0, u64::saturating_add)
    };
    let stage = Stage {
        process,
        rows,
        thread_ns: sum(|row| row.thread_ns),
        on_cpu_ns: sum(|row| row.user_ns.saturating_add(row.calls_on_cpu_ns)),
        runnable_ns: sum(|row| row.runnable_ns),
    };
    (process.count() == 1 && stage.thread_ns > 0).then_some(stage)
}

impl<'a> Stage<'a> {
    fn is_busy(&self) -> bool {
        self.on_cpu_ns as f64 >= BUSY * self.thread_ns as f64
    }

    fn pipes(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        let pipes = self.rows.files.iter().filter(|file| file.kind == FileKind::Pipe);
        pipes.map(|file| file.path.as_str())
    }

    /// The calls on this pipe: reads, writes.
    fn calls_on(&self, pipe: &str) -> (u64, u64) {
        let on_it = self.rows.files.iter().filter(|file| file.path == pipe);
        on_it.fold((0, 0), |sum, file| (sum.0 + file.read_calls, sum.1 + file.write_calls))
    }

    /// The time it slept in such calls, where most of them are on this pipe and most of its time off
    /// the CPU is that.
    fn waited(
        &self,
        names: &[&str],
        on_pipe: u64,
        part: fn(&iotomy_record::FileUse) -> u64,
    ) -> Option<u64> {
        let all: u64 = self.rows.files.iter().map(|file| part(file)).fold(0, u64::saturating_add);
        let blocked_ns = self.rows.total(names).blocked_ns;
        let off_ns = self.thread_ns.saturating_sub(self.on_cpu_ns.saturating_add(self.runnable_ns));
        let waits = on_pipe > all / 2
            && blocked_ns >= self.thread_ns / 20
            && blocked_ns > off_ns / 2
            && !self.is_busy();
        waits.then_some(blocked_ns)
    }
}

type Neighbours<'a> = (Vec<Neighbour<'a>>, Vec<Neighbour<'a>>);

/// Those before a stage and those after it, if there are any and all of them wait for it.
fn neighbours<'a>(
    stages: &[Stage<'a>],
    users: &HashMap<&str, Vec<usize>>,
    at: usize,
) -> Option<Neighbours<'a>> {
    let (mut before, mut after) = (Vec::new(), Vec::new());
    let stage = &stages[at];
    for pipe in stage.pipes() {
        let (reads, writes) = stage.calls_on(pipe);
        for other in users[pipe].iter().filter(|other| **other != at).map(|other| &stages[*other]) {
            let (their_reads, their_writes) = other.calls_on(pipe);
            let process = other.process;
            if reads > 0 && their_writes > 0 {
                let blocked_ns = other.waited(&WRITES, their_writes, |file| file.write_calls)?;
                before.push(Neighbour { process, blocked_ns });
            }
            if writes > 0 && their_reads > 0 {
                let blocked_ns = other.waited(&READS, their_reads, |file| file.read_calls)?;
                after.push(Neighbour { process, blocked_ns });
            }
        }
    }
    (!before.is_empty() || !after.is_empty()).then_some((before, after))
}

/// What the others waited for.
fn waits(before: &[Neighbour<'_>], after: &[Neighbour<'_>]) -> String {
    let side = |all: &[Neighbour<'_>], place: &str, what: &str| {
        let longest = all.iter().max_by_key(|one| one.blocked_ns)?;
        let others = match all.len() {
            1 => String::new(),
            n => format!(" (and {} more)", n - 1),
        };
        Some(format!(
            "{}{others}, {place} it, waited {} for {what}",
            longest.process.name(),
            duration(longest.blocked_ns as f64),
        ))
    };
    let sides = [side(before, "before", "room in its pipe"), side(after, "after", "data from it")];
    sides.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// The command that does the same on several CPUs, where it is known.
fn parallel(argv: &[String], name: &str) -> Option<&'static str> {
    let has = |options: &[&str]| {
        argv.iter().skip(1).any(|word| options.iter().any(|option| word.starts_with(option)))
    };
    // As in `-dc` and `-cd`.
    let is_short = |word: &String| word.starts_with('-') && !word.starts_with("--");
    let decompresses = has(&["--decompress", "--uncompress"])
        || argv.iter().skip(1).any(|word| is_short(word) && word.contains('d'));
    match name {
        "gzip" if !decompresses => Some("pigz in place of gzip: it compresses on several CPUs"),
        "bzip2" => Some("lbzip2 in place of bzip2: it works on several CPUs"),
        "xz" if !decompresses && !has(&["-T", "--threads"]) => {
            Some("xz -T0: it compresses on several CPUs")
        }
        "zstd" if !decompresses && !has(&["-T", "--threads"]) => {
            Some("zstd -T0: it compresses on several CPUs")
        }
        _ => None,
    }
}
