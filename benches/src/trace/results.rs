//! Prints the results and stores them in a directory: the tables, the raw record, an example.

use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::child::{Signals, guarded};
use crate::conditions::Conditions;
use crate::results::Results;
use crate::stats::{estimate, median};
use crate::tables::{digits, interval, table};
use crate::targets::target_table;
use crate::trace::found::TraceResults;
use crate::trace::observer::{BPFTRACE_SCRIPT, Observer};
use crate::trace::rounds::{Measured, Rounds};
use crate::trace::sweep::sweep;
use crate::trace::{cold, paid};

const MIB: f64 = (1 << 20) as f64;

impl TraceResults {
    /// Returns the results as text and as a record.
    pub(crate) fn results(&self, conditions: &Conditions) -> Results {
        Results {
            folder: "trace",
            title: "Overhead of tracing",
            text: self.text(conditions),
            method: method(),
            record: sweep(self, conditions),
            is_on_one_line: false,
        }
    }

    fn text(&self, conditions: &Conditions) -> String {
        let Measured { runs, disturbed, .. } = self.measured;
        let order = format!(
            "{} blocks, seed {}; {runs} runs, {disturbed} of them begun beside other work",
            self.blocks, conditions.seed
        );
        let mut text = conditions.text(&[("peers", self.versions.join("; ")), ("order", order)]);
        let _ = writeln!(text, "\n## Cost of a call\n");
        text += &self.cost_table();
        for ((subject, observer), reason) in &self.measured.skipped {
            let _ =
                writeln!(text, "\nskipped: {} on {}: {reason}", observer.name(), subject.name());
        }
        text += &self.inside();
        let _ = writeln!(text, "\n## Calls that find nothing in the caches\n");
        text += &self.cold.text();
        let _ = writeln!(text, "\n## What programs paid\n");
        text += &paid::text(&self.paid);
        let _ = writeln!(text, "\n## Start-up and memory\n");
        text += &self.startup_and_memory();
        let _ = writeln!(text, "\n## Targets\n");
        text + &target_table(&self.targets, 2)
    }

    fn cost_table(&self) -> String {
        let titles = [
            "subject",
            "observer",
            "calls a run",
            "ns a call",
            "cost ns a call [95 %]",
            "÷ empty [95 %]",
            "÷ bpftrace [95 %]",
            "× bare",
            "calls seen",
        ];
        let mut rows = vec![titles.map(str::to_owned).to_vec()];
        for cost in &self.costs {
            let watched = cost.observer != Observer::Bare;
            let if_watched = |text: String| if watched { text } else { String::new() };
            let ratio = |samples: &[f64], of: Observer| match estimate(samples) {
                Some(found) if cost.observer != of => interval(found, 2),
                _ => String::new(),
            };
            rows.push(vec![
                cost.subject.name().to_owned(),
                cost.observer.name().to_owned(),
                cost.calls.to_string(),
                median(&cost.times).map_or_else(String::new, |ns| digits(ns, 1)),
                if_watched(cost.cost().map_or_else(String::new, |found| interval(found, 1))),
                if_watched(ratio(&cost.to_empty, Observer::Empty)),
                if_watched(ratio(&cost.to_bpftrace, Observer::Bpftrace)),
                if_watched(cost.slower().map_or_else(String::new, |times| digits(times, 2))),
                cost.seen.map_or_else(String::new, |share| {
                    // Start and end of the program add a few calls.
                    if share >= 1.0 { "all".into() } else { format!("{:.2} %", share * 100.0) }
                }),
            ]);
        }
        table(&rows, 2)
    }

    /// Describes how much of the observer's own work it attributes to the calls.
    fn inside(&self) -> String {
        let mut text = String::new();
        for cost in &self.costs {
            let (Some(inside), Some(bare), Some(whole), Some(price)) = (
                median(&cost.inside),
                median(&cost.bare),
                cost.cost().map(|found| found.median),
                median(&cost.prices),
            ) else {
                continue;
            };
            let _ = write!(
                text,
                "\n{}, {}: it books {inside:.1} ns as the time of a call, and prices itself at \
                 {price:.1} ns a call; a bare call and the program's own time around it take \
                 {bare:.1} ns, and {whole:.1} ns more when watched.\n",
                cost.subject.name(),
                cost.observer.name(),
            );
        }
        text
    }

    fn startup_and_memory(&self) -> String {
        let ms = |samples: &[f64]| {
            let samples: Vec<f64> = samples.iter().map(|ns| ns / 1e6).collect();
            estimate(&samples).map_or_else(|| "not measured".to_owned(), |found| interval(found, 1))
        };
        let mib = |bytes: u64| format!("{:.2}", bytes as f64 / MIB);
        let memory = &self.memory;
        let rows = [
            (
                "start-up and report, ms: `iotomy trace -- true` less `true`",
                ms(&self.startup.added()),
            ),
            (
                "of it until the command is let go, ms: load, attach, calibrate",
                ms(&self.startup.before_command),
            ),
            (
                "the same of `iotomy anatomy -- true` less `true`, ms",
                ms(&self.startup.added_by_anatomy()),
            ),
            ("wall of `true`, ms", ms(&self.startup.bare)),
            ("memory for 1,000 processes at its peak, MiB", mib(memory.peak)),
            ("iotomy's own high-water mark", mib(memory.process)),
            ("which was, while all of them lived", mib(memory.process_alive)),
            ("BPF maps, while all of them lived", mib(memory.maps)),
            ("task storage then (computed)", mib(memory.task_storage)),
            ("BPF programs", mib(memory.programs)),
            ("processes in the record", memory.seen_processes.to_string()),
            ("different calls of the median process", memory.seen_calls.to_string()),
        ];
        let titles = vec!["figure".to_owned(), "value [95 %]".to_owned()];
        let rows = rows.map(|(name, value)| vec![name.to_owned(), value]);
        table(&[&[titles], &rows[..]].concat(), 1)
    }
}

/// Traces the second subject once more, outside the measurements, as an example of the record.
pub(crate) fn keep_example(signals: &Signals, rounds: &Rounds, folder: &Path) -> Result<()> {
    let record = folder.join("dd.json").to_string_lossy().into_owned();
    let argv = [&rounds.iotomy, "trace", "-q", "--files", "--json", &record].into_iter().chain([
        "--",
        "dd",
        "of=/dev/null",
        "bs=8k",
    ]);
    let argv: Vec<String> = argv.map(str::to_owned).collect();
    let null = File::options().write(true).open("/dev/null").context("cannot open /dev/null")?;
    let mut command = guarded(&argv, null)?;
    command.stdin(rounds.memory()?);
    let status = signals.wait(&mut command.spawn().context("cannot start iotomy")?)?;
    if !status.success() {
        bail!("iotomy ended with {status}");
    }
    Ok(())
}

fn method() -> String {
    let cold = cold::method();
    format!(
        "\n## Method\n\n\
         Subjects are processes pinned to one CPU that time themselves: `getppid` in a loop, of \
         whose 256 batches the one a twentieth from the fastest counts; `dd of=/dev/null bs=8k` from a memory file on \
         standard input, by the time it says it took. So start and end of an observer are not in \
         the figures. Observers and subjects run at nice −20, which keeps other work of the \
         machine out, and observers are free to choose their CPU.\n\n\
         A block holds three runs of every observer on every subject (`perf` and `strace`: one, \
         and a shorter one), and bare ones of the same number of calls, all in random order; \
         the fastest of the three stands for the block. Cost is the difference from the bare run of the same \
         block and a ratio is one of costs of the same block; then the median is taken, with an \
         interval of order statistics of at least 95 %. \
         Each observer's own count of the calls is read back: \"all\" means that none is \
         missing.\n\n\
         {cold}\n\n\
         What programs paid is CPU time of all their processes (getrusage(2)), of a watched run less that of a bare one beside it, \
         in random order: `getppid` in a loop, `dd bs=8k`, redis-server with redis-benchmark and an HTTP server in Go with its clients over \
         the loopback, sqlite3 on a file. All of a run is watched, clients, too. It is held against the range that the watched \
         run itself printed; \"met\" means that the whole interval lies inside.\n\n\
         `iotomy trace` has all it has by default: counts, errors, bytes, distributions, \
         files, the ledger, the whole process tree. bpftrace follows one process by this script:\n\n\
         ```\n{BPFTRACE_SCRIPT}```\n\n\
         `raw.json` (`iotomy.sweep/1`) has every sample, in the order of the blocks; `dd.json` \
         (`iotomy.trace/1`) is the record of `iotomy trace --files -- dd of=/dev/null bs=8k` on \
         the memory file.\n"
    )
}
