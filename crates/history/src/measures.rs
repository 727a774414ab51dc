//! The index of a record: its subject and its measures.

use iotomy_record::store::RecordRef;
use iotomy_record::{Contender, CopyRun, DRow, DRun, Limits, Measure, Race, Sweep, Trace};

/// The commands that ran, in a line.
pub fn subject(record: RecordRef<'_>) -> String {
    match record {
        RecordRef::Trace(trace) => of_trace(trace),
        RecordRef::Race(race) => {
            let each: Vec<String> = race.contenders.iter().map(of_contender).collect();
            each.join(" | ")
        }
        RecordRef::Copy(copy) => of_copy(copy),
        RecordRef::Limits(_) => "limits".to_owned(),
        RecordRef::Anatomy(anatomy) => of_trace(&anatomy.trace),
        RecordRef::Sweep(sweep) => format!("lab {}", sweep.experiment),
        RecordRef::D(run) => of_d(run),
    }
}

/// Its measures, the one to show first in front.
pub fn measures(record: RecordRef<'_>) -> Vec<Measure> {
    let mut found = match record {
        RecordRef::Trace(trace) => in_trace(trace),
        RecordRef::Anatomy(anatomy) => in_trace(&anatomy.trace),
        RecordRef::Race(race) => in_race(race),
        RecordRef::Copy(copy) => in_copy(copy),
        RecordRef::Limits(limits) => in_limits(limits),
        RecordRef::Sweep(sweep) => in_sweep(sweep),
        RecordRef::D(run) => in_d(run),
    };
    // A record may contain anything; an index of values other than numbers finds nothing.
    found.retain(|measure| measure.value.is_finite());
    found
}

/// Further measures that two records are compared by: the calls of traces, including those of an
/// anatomy.
pub(crate) fn details(record: RecordRef<'_>) -> Vec<Measure> {
    let trace = match record {
        RecordRef::Trace(trace) => trace,
        RecordRef::Anatomy(anatomy) => &anatomy.trace,
        _ => return Vec::new(),
    };
    let mut calls: Vec<(&str, u128, u128)> = Vec::new();
    for row in &trace.calls {
        let (count, ns) = (u128::from(row.calls), u128::from(row.wall_ns));
        match calls.iter_mut().find(|(name, ..)| *name == row.syscall) {
            Some(known) => (known.1, known.2) = (known.1 + count, known.2 + ns),
            None => calls.push((&row.syscall, count, ns)),
        }
    }
    let subject = of_trace(trace);
    let one = |name: String, unit: &str, value: u128| single(&subject, &name, unit, value as f64);
    calls
        .into_iter()
        .flat_map(|(name, count, ns)| {
            [one(format!("{name} calls"), "", count), one(format!("{name} time"), "ns", ns)]
        })
        .collect()
}

fn single(subject: &str, name: &str, unit: &str, value: f64) -> Measure {
    Measure {
        subject: subject.to_owned(),
        name: name.to_owned(),
        unit: unit.to_owned(),
        value,
        samples: Vec::new(),
        runs: 1,
    }
}

fn of_trace(trace: &Trace) -> String {
    if trace.view.machine {
        return "(watched) the machine".to_owned();
    }
    if trace.command.is_empty() {
        let first = trace.processes.first().map_or("", |process| process.name());
        return format!("(watched) {first}").trim_end().to_owned();
    }
    let word = |word: &String| match word.is_empty() || word.contains(char::is_whitespace) {
        true => format!("'{word}'"),
        false => word.clone(),
    };
    trace.command.iter().map(word).collect::<Vec<String>>().join(" ")
}

fn of_contender(contender: &Contender) -> String {
    match contender.denied.is_empty() {
        true => contender.command.clone(),
        false => format!("{} (without {})", contender.command, contender.denied.join(", ")),
    }
}

fn of_copy(copy: &CopyRun) -> String {
    format!("copy {} {}", copy.sources.join(" "), copy.target)
}

fn in_trace(trace: &Trace) -> Vec<Measure> {
    let subject = of_trace(trace);
    let sum = |of: fn(&iotomy_record::LedgerRow) -> u64| -> f64 {
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
            single(&subject, "waiting", "ns", sum(|row| row.runnable_ns)),
        ]);
    }
    found.push(single(&subject, "calls", "", calls));
    found.push(single(&subject, "errors", "", errors));
    found
}

fn in_race(race: &Race) -> Vec<Measure> {
    let counts = |block: u64| {
        let block = usize::try_from(block).ok().and_then(|block| race.blocks.get(block));
        !block.is_some_and(|block| block.redone)
    };
    let mut found = Vec::new();
    for one in &race.contenders {
        let runs: Vec<_> = one.runs.iter().filter(|run| counts(run.block)).collect();
        let wall = runs.iter().map(|run| run.wall_ns as f64).collect();
        let cpu = runs.iter().map(|run| run.cpu_ns() as f64).collect();
        for (name, spread, samples) in [("wall", one.wall, wall), ("cpu", one.cpu, cpu)] {
            found.push(Measure {
                subject: of_contender(one),
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
    let of = |limit: &iotomy_record::Limit| {
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
        true => words,
        false => format!("{words} -c '{}'", run.command.join(" ")),
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

fn in_sweep(sweep: &Sweep) -> Vec<Measure> {
    let subject = format!("lab {}", sweep.experiment);
    let of = |case: &iotomy_record::Case| {
        let params = sweep
            .axes
            .iter()
            .filter_map(|axis| Some(format!("{}={}", axis.name, case.params.get(&axis.name)?)));
        Some(Measure {
            subject: subject.clone(),
            name: params.collect::<Vec<String>>().join(" "),
            unit: case.unit.clone(),
            value: case.median?,
            samples: case.samples.clone(),
            runs: case.samples.len() as u64,
        })
    };
    sweep.cases.iter().filter_map(of).collect()
}
