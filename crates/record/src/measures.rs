//! What a record is of, in a line, and its measures: what the history is searched by, and what records of many
//! machines are put together by. Their texts are [labels](crate::label).

use crate::label::{Label, label};
use crate::store::RecordRef;
use crate::{CopyRun, DRow, DRun, Limits, Measure, Race, RaceCommand, Sweep, Trace};

/// The measure of the time in which threads were ready to run and had no CPU.
const RUN_QUEUE_DELAY: &str = "run queue delay";

/// Its name in runs that earlier versions kept.
const WAITING: &str = "waiting";

/// The present name of a measure: `runq` is it in tables, `waiting` was it in earlier versions.
pub fn present_name(name: &str) -> &str {
    if matches!(name, WAITING | "runq") { RUN_QUEUE_DELAY } else { name }
}

/// The name that earlier versions kept a measure by.
pub fn earlier_name(name: &str) -> &str {
    if name == RUN_QUEUE_DELAY { WAITING } else { name }
}

/// The commands that ran, in a line.
pub fn subject(record: RecordRef<'_>) -> String {
    match record {
        RecordRef::Trace(trace) => of_trace(trace),
        RecordRef::Race(race) => {
            let mut subject = Label::default();
            for (at, one) in race.commands.iter().enumerate() {
                subject.push(if at == 0 { "" } else { " | " });
                push_command(&mut subject, one);
            }
            subject.finish()
        }
        RecordRef::Copy(copy) => of_copy(copy),
        RecordRef::Limits(_) => "limits".to_owned(),
        RecordRef::Anatomy(anatomy) => of_trace(&anatomy.trace),
        RecordRef::Sweep(sweep) => of_sweep(sweep),
        RecordRef::D(run) => of_d(run),
    }
}

/// Whether measures have the samples that they are of, which may be most of a record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Samples {
    Wanted,
    LeftOut,
}

/// Its measures, the one to show first in front.
pub fn measures(record: RecordRef<'_>) -> Vec<Measure> {
    found(record, Samples::Wanted)
}

/// The same as the history has them, which are without samples.
pub fn indexed(record: RecordRef<'_>) -> Vec<Measure> {
    found(record, Samples::LeftOut)
}

fn found(record: RecordRef<'_>, samples: Samples) -> Vec<Measure> {
    let mut found = match record {
        RecordRef::Trace(trace) => in_trace(trace),
        RecordRef::Anatomy(anatomy) => in_trace(&anatomy.trace),
        RecordRef::Race(race) => in_race(race, samples),
        RecordRef::Copy(copy) => in_copy(copy),
        RecordRef::Limits(limits) => in_limits(limits),
        RecordRef::Sweep(sweep) => in_sweep(sweep, samples),
        RecordRef::D(run) => in_d(run),
    };
    // A record may contain anything; an index of values other than numbers finds nothing.
    found.retain(|measure| measure.value.is_finite());
    found
}

fn single(subject: &str, name: &str, unit: &str, value: f64) -> Measure {
    Measure {
        subject: subject.to_owned(),
        name: label(name),
        unit: label(unit),
        value,
        samples: Vec::new(),
        runs: 1,
    }
}

fn of_trace(trace: &Trace) -> String {
    if trace.view.machine {
        return "(watched) the machine".to_owned();
    }
    let mut subject = Label::default();
    if trace.command.is_empty() {
        subject.push("(watched)");
        if let Some(first) = trace.processes.first().map(|process| process.program()) {
            let first = first.trim_end();
            subject.push(if first.is_empty() { "" } else { " " });
            subject.push(first);
        }
        return subject.finish();
    }
    for (at, word) in trace.command.iter().enumerate() {
        subject.push(if at == 0 { "" } else { " " });
        let quote = if word.is_empty() || word.contains(char::is_whitespace) { "'" } else { "" };
        [quote, word, quote].iter().for_each(|part| subject.push(part));
    }
    subject.finish()
}

/// What a command of a race runs, and what it is denied.
fn of_command(command: &RaceCommand) -> String {
    let mut subject = Label::default();
    push_command(&mut subject, command);
    subject.finish()
}

fn push_command(subject: &mut Label, command: &RaceCommand) {
    subject.push(&command.command);
    for (at, call) in command.denied.iter().enumerate() {
        subject.push(if at == 0 { " (without " } else { ", " });
        subject.push(call);
    }
    subject.push(if command.denied.is_empty() { "" } else { ")" });
}

fn of_copy(copy: &CopyRun) -> String {
    let mut subject = Label::default();
    subject.push("copy");
    for name in copy.sources.iter().chain([&copy.target]) {
        subject.push(" ");
        subject.push(name);
    }
    subject.finish()
}

fn of_sweep(sweep: &Sweep) -> String {
    label(&format!("lab {}", sweep.experiment))
}

fn in_trace(trace: &Trace) -> Vec<Measure> {
    let subject = of_trace(trace);
    let sum = |of: fn(&crate::LedgerRow) -> u64| -> f64 {
        trace.ledger.iter().map(|row| of(row) as f64).sum()
    };
    let calls = trace.calls.iter().map(|row| row.calls as f64).sum();
    let errors = trace.calls.iter().map(|row| row.errors as f64).sum();
    let mut found = vec![single(&subject, "wall", "ns", trace.wall_ns as f64)];
    if !trace.ledger.is_empty() {
        found.extend([
            single(&subject, "user", "ns", sum(|row| row.user_ns)),
            single(&subject, "in calls", "ns", sum(|row| row.calls_on_cpu_ns)),
            single(&subject, "blocked", "ns", sum(|row| row.blocked_ns)),
            single(&subject, RUN_QUEUE_DELAY, "ns", sum(|row| row.runnable_ns)),
        ]);
    }
    found.push(single(&subject, "calls", "", calls));
    found.push(single(&subject, "errors", "", errors));
    found
}

fn in_race(race: &Race, wanted: Samples) -> Vec<Measure> {
    let counts = |round: u64| {
        let round = usize::try_from(round).ok().and_then(|round| race.rounds.get(round));
        !round.is_some_and(|round| round.redone)
    };
    let mut found = Vec::new();
    for one in &race.commands {
        let runs: Vec<_> = one.runs.iter().filter(|run| counts(run.round)).collect();
        let of_each = |value: fn(&crate::Run) -> u64| match wanted {
            Samples::Wanted => runs.iter().map(|run| value(run) as f64).collect(),
            Samples::LeftOut => Vec::new(),
        };
        let wall = of_each(|run| run.wall_ns);
        let cpu = of_each(|run| run.cpu_ns());
        for (name, spread, samples) in [("wall", one.wall, wall), ("cpu", one.cpu, cpu)] {
            found.push(Measure {
                subject: of_command(one),
                name: name.to_owned(),
                unit: "ns".to_owned(),
                value: spread.median_ns,
                samples,
                runs: spread.runs,
            });
        }
    }
    found
}

fn in_copy(copy: &CopyRun) -> Vec<Measure> {
    let subject = of_copy(copy);
    let rate = copy.bytes as f64 / (copy.wall_ns.max(1) as f64 / 1e9);
    vec![
        single(&subject, "wall", "ns", copy.wall_ns as f64),
        single(&subject, "rate", "bytes/s", rate),
        single(&subject, "bytes", "", copy.bytes as f64),
    ]
}

fn in_limits(limits: &Limits) -> Vec<Measure> {
    let of = |limit: &crate::Limit| {
        let name = match &limit.volume {
            Some(volume) => format!("{} at {}", limit.name, volume.path),
            None => limit.name.clone(),
        };
        Some(single("limits", &name, &limit.unit, limit.value?))
    };
    limits.limits.iter().filter_map(of).collect()
}

/// Rows of a D program that become measures: a program may have very many keys.
const MOST_ROWS: usize = 200;

fn of_d(run: &DRun) -> String {
    // A program on the command line is its own name.
    let program = match run.script.as_str() {
        "-n" => format!("-n '{}'", run.program.split_whitespace().collect::<Vec<_>>().join(" ")),
        script => script.to_owned(),
    };
    let words = [vec![format!("d {program}")], run.arguments.clone()].concat().join(" ");
    match run.command.is_empty() {
        true => label(&words),
        false => label(&format!("{words} -c '{}'", run.command.join(" "))),
    }
}

fn in_d(run: &DRun) -> Vec<Measure> {
    let subject = of_d(run);
    let mut found = vec![single(&subject, "wall", "ns", run.wall_ns as f64)];
    let of_row = |row: &DRow| {
        let keys: Vec<String> = row.keys.iter().map(ToString::to_string).collect();
        let keys = if keys.is_empty() { String::new() } else { format!("[{}]", keys.join(", ")) };
        let (name, unit) = (format!("@{}{keys} {}", row.name, row.kind), "");
        match row.shown_value() {
            Some(value) => single(&subject, &name, unit, value as f64),
            None => {
                let values = row.buckets.iter().map(|bucket| row.divided(bucket.count) as f64);
                single(&subject, &format!("{name} values"), unit, values.sum())
            }
        }
    };
    found.extend(run.aggregations.iter().take(MOST_ROWS).map(of_row));
    found
}

fn in_sweep(sweep: &Sweep, samples: Samples) -> Vec<Measure> {
    let subject = of_sweep(sweep);
    let of = |case: &crate::Case| {
        let mut name = Label::default();
        let params =
            sweep.axes.iter().filter_map(|axis| Some((&axis.name, case.params.get(&axis.name)?)));
        for (at, (axis, value)) in params.enumerate() {
            name.push(if at == 0 { "" } else { " " });
            name.push(axis);
            name.push(&format!("={value}"));
        }
        Some(Measure {
            subject: subject.clone(),
            name: name.finish(),
            unit: label(&case.unit),
            value: case.median?,
            samples: match samples {
                Samples::Wanted => case.samples.clone(),
                Samples::LeftOut => Vec::new(),
            },
            runs: case.samples.len() as u64,
        })
    };
    sweep.cases.iter().filter_map(of).collect()
}
