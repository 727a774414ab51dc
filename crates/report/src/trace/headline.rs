//! The first line: the command, its end, its duration, its requests, the overhead of watching.
//! Under it, if there are any, the limitations of the numbers.
//!
//! Computed by `outcome` in `crates/observe/src/bpf/outcome.rs`.

use std::collections::BTreeSet;

use iotomy_record::{CpuCapacity, Exit, ObserverUse, Process, Running, Trace};

use super::call_sum::CallSum;
use super::images::{Image, Names, label};
use super::{overhead, rings, sample};
use crate::numbers::{bytes, counted, duration, fixed, thousands};
use crate::page::{Ink, Page, columns};
use crate::signals;

pub(super) fn print(page: &mut Page<'_>, record: &Trace, images: &[Image<'_>]) {
    print_facts(page, record, images);
    for warning in warnings(page, record) {
        warn(page, &warning, usize::MAX);
    }
}

/// The same in at most so many lines: of what has no room, the limitations of the numbers go last.
pub(super) fn print_brief(page: &mut Page<'_>, record: &Trace, images: &[Image<'_>], most: usize) {
    let lines = |print: &dyn Fn(&mut Page<'_>)| -> Vec<String> {
        let mut part = page.another();
        print(&mut part);
        part.finish().lines().map(str::to_owned).collect()
    };
    let facts = lines(&|page| print_facts(page, record, images));
    let mut warnings = warnings(page, record);
    warnings.sort_by_key(|warning| warning.ink == Ink::Dim);
    let of_warnings = |most: usize| -> Vec<Vec<String>> {
        warnings.iter().map(|one| lines(&|page| warn(page, one, most))).collect()
    };
    let whole = of_warnings(usize::MAX);
    let all = facts.len() + whole.iter().map(Vec::len).sum::<usize>();
    let (facts, warnings, hidden) = match all.checked_sub(most) {
        None | Some(0) => (&facts[..], whole, 0),
        Some(_) => {
            // The first line and that which tells of the others remain.
            let room = most.saturating_sub(2);
            let mut shown = of_warnings((room / warnings.len().max(1)).max(1));
            shown.truncate(room);
            let taken = shown.iter().map(Vec::len).sum::<usize>();
            let facts = &facts[..facts.len().min(1 + room - taken)];
            (facts, shown, all - facts.len() - taken)
        }
    };
    facts.iter().chain(warnings.iter().flatten()).for_each(|line| page.put(line));
    if hidden > 0 {
        let more = format!("  … {} more", counted(hidden as u128, "line", "lines"));
        page.line(&[(Ink::Dim, &more)]);
    }
}

fn print_facts(page: &mut Page<'_>, record: &Trace, images: &[Image<'_>]) {
    let subject = subject(page, record, images);
    let parts = parts(page, record);
    print_parts(page, &subject, &parts);
}

/// The end, the duration, the requests, and the overhead of watching.
pub(super) fn parts(page: &Page<'_>, record: &Trace) -> Vec<String> {
    let total = CallSum::total("", &record.calls);
    let mut parts = Vec::new();
    if let Some(ended) = ended(record) {
        parts.push(ended);
    }
    let wall = duration(record.wall_ns as f64);
    parts.push(match (record.ring, record.command.is_empty()) {
        (Some(ring), _) => {
            let whole = duration(ring.start_ns.saturating_add(record.wall_ns) as f64);
            format!("the last {wall} of {whole}")
        }
        (None, true) => format!("watched for {wall}"),
        (None, false) => format!("wall {wall}"),
    });
    let mut asked = counted(total.calls(), "call", "calls");
    if total.bytes() > 0 {
        asked = format!("{asked}, {}", bytes(total.bytes()));
    }
    parts.push(sample::headline(record, &total).unwrap_or(asked));
    parts.extend(rings::requests(record));
    parts.extend(cpu_use(record));
    parts.push(overhead::text(page, record, total.calls()));
    parts.extend(overhead::own(record));
    parts
}

/// Parts on one line, or under each other where they do not fit.
fn print_parts(page: &mut Page<'_>, subject: &str, parts: &[String]) {
    let mut line = String::new();
    let mut lead = format!("{subject}  ");
    for part in parts {
        let joint = if line.is_empty() { "" } else { " · " };
        if !line.is_empty() && columns(&lead) + columns(&line) + 3 + columns(part) > page.width() {
            page.wrapped(&[(Ink::Bold, &lead)], Ink::Plain, &line);
            lead = "  ".into();
            line = part.clone();
        } else {
            line = format!("{line}{joint}{part}");
        }
    }
    page.wrapped(&[(Ink::Bold, &lead)], Ink::Plain, &line);
}

/// The subject of the record.
pub(super) fn subject(page: &Page<'_>, record: &Trace, images: &[Image<'_>]) -> String {
    let count = count(record, images);
    let Some(command) = record.command.first() else {
        return match images {
            _ if record.view.machine => {
                let seen = counted(count, "process", "processes");
                format!("the machine, {seen}")
            }
            [one] if !is_of_several(record) => match one.binary(page) {
                Some(binary) => format!("{} [{binary}]", one.label(page)),
                None => one.label(page),
            },
            _ => match target(page, record, images) {
                Some(target) if count > 0 => {
                    format!("{target}, {}", counted(count, "process", "processes"))
                }
                Some(target) => format!("{target}, no process"),
                None => counted(count, "process", "processes"),
            },
        };
    };
    let name = command.rsplit('/').find(|part| !part.is_empty()).unwrap_or(command);
    let pid = root(record).map(|process| process.pid).or(images.first().map(|i| i.pid));
    let mut subject = match pid {
        Some(pid) => label(page, name, pid),
        None => page.name(name, 24),
    };
    if count > 1 {
        let others = counted(count - 1, "more process", "more processes");
        subject = format!("{subject} and {others}");
    }
    subject
}

/// Whether more than processes by their ids were to be watched.
fn is_of_several(record: &Trace) -> bool {
    record.targets.iter().any(|target| target.kind != PROCESS)
}

/// The kind of a target that is a process by its id.
const PROCESS: &str = "process";

/// What was to be watched, where that was no command.
fn target(page: &Page<'_>, record: &Trace, images: &[Image<'_>]) -> Option<String> {
    let [first, others @ ..] = &record.targets[..] else { return None };
    let named = || images.iter().find(|image| image.pid.to_string() == first.name);
    let name = match named().filter(|_| first.kind == PROCESS) {
        Some(image) => image.label(page),
        None => format!("{} {}", page.name(&first.kind, 12), page.name(&first.name, 60)),
    };
    Some(match others.len() {
        0 => name,
        1 => format!("{name} and 1 other"),
        more => format!("{name} and {more} others"),
    })
}

/// The number of processes, as far as the record tells.
fn count(record: &Trace, images: &[Image<'_>]) -> u128 {
    let pids: BTreeSet<u32> = images.iter().map(|image| image.pid).collect();
    let entries: BTreeSet<u32> = record.processes.iter().map(|process| process.pid).collect();
    // Those that another table names and this one does not.
    let others = pids.difference(&entries).count();
    u128::from(record.process_count()) + others as u128
}

/// The command: the process whose parent is not watched.
fn root(record: &Trace) -> Option<&Process> {
    let known: BTreeSet<u32> = record.processes.iter().map(|p| p.pid).collect();
    let root = record.processes.iter().find(|p| !known.contains(&p.ppid));
    root.or(record.processes.first())
}

fn ended(record: &Trace) -> Option<String> {
    match record.exit {
        Some(Exit::Code(code)) => Some(format!("exit {code}")),
        Some(Exit::Signal(signal)) => Some(format!("killed by {}", signals::name(signal))),
        None if record.command.is_empty() => None,
        None => Some("still running".into()),
    }
}

/// `CPU 1.37 of 2 (68 %)`: the CPUs that were used, of those that might be; with the limit that makes
/// these less than the machine has. Nothing where the capacity is not known, or where it cannot have
/// been that of all processes, since they used more.
pub(super) fn cpu_use(record: &Trace) -> Option<String> {
    let CpuCapacity { cpus, affinity, quota, .. } = record.cpu_capacity?;
    let used = cpus_used(record)?;
    let share = used / cpus;
    if !share.is_finite() || share > 1.05 {
        return None;
    }
    let limit = match quota {
        Some(quota) if quota < f64::from(affinity) => " by quota",
        _ if affinity < record.machine.cpus => " by affinity",
        _ => "",
    };
    let of = if cpus.fract() == 0.0 { fixed(cpus, 0) } else { fixed(cpus, 2) };
    Some(format!("CPU {} of {of}{limit} ({} %)", fixed(used, 2), fixed(share * 100.0, 0)))
}

/// The CPU time of the processes in the time of the watch.
fn cpus_used(record: &Trace) -> Option<f64> {
    let cpu_ns: u128 =
        record.processes.iter().map(|p| u128::from(p.user_ns) + u128::from(p.system_ns)).sum();
    let workers_ns: u128 = record.ledger.iter().map(|row| u128::from(row.worker_ns)).sum();
    let used =
        (record.wall_ns > 0).then(|| (cpu_ns + workers_ns) as f64 / record.wall_ns as f64)?;
    // The kernel's clock of CPU time and that of the watch differ by a little; a thread uses no more than one CPU.
    let threads = record.thread_count();
    Some(if workers_ns == 0 && threads > 0 { used.min(threads as f64) } else { used })
}

/// A limitation of the numbers, or a process that runs on unwatched.
pub(crate) struct Warning {
    pub(crate) ink: Ink,
    pub(crate) word: &'static str,
    pub(crate) text: String,
}

/// What the machine refused to the observer, and what the record lacks because of that.
pub(crate) fn refusals(page: &Page<'_>, observer: &ObserverUse) -> Vec<Warning> {
    let fallback = observer.fallback.iter().map(|reason| {
        let name = page.name(&observer.name, 20);
        let text = format!("watched by {name}, because of {}", page.name(reason, 1_000));
        Warning { ink: Ink::Yellow, word: "fallback", text }
    });
    let missing = observer.missing.iter().map(|row| {
        let [feature, reason, lost] =
            [&row.feature, &row.reason, &row.lost].map(|text| page.name(text, 200));
        let text = format!("the kernel refused {feature} ({reason}); lost: {lost}");
        Warning { ink: Ink::Yellow, word: "missing", text }
    });
    fallback.chain(missing).collect()
}

/// The warnings.
pub(super) fn warnings(page: &Page<'_>, record: &Trace) -> Vec<Warning> {
    let observer = &record.observer;
    let mut warnings = refusals(page, observer);
    let mut warn = |ink, word, text: String| warnings.push(Warning { ink, word, text });
    if let Some(sample) = &record.sample {
        warn(Ink::Dim, "sampled", sample::line(record, sample));
    }
    if observer.untraced_tasks > 0 {
        let text = format!(
            "{} created with CLONE_UNTRACED, which {} cannot follow: their calls are not counted; \
             try --observer bpf as root",
            counted(observer.untraced_tasks.into(), "task was", "tasks were"),
            page.name(&observer.name, 20)
        );
        warn(Ink::Yellow, "not followed", text);
    }
    if observer.times_inflated {
        let text = "the observer slowed every call: compare these times only with each other";
        warn(Ink::Yellow, "inflated", text.to_owned());
    }
    let lost_files = if record.view.files { observer.lost_files } else { 0 };
    let lost = u128::from(observer.lost_events) + u128::from(lost_files);
    for (count, word, [one, several], [before, behind]) in [
        (
            observer.lost_paths,
            "paths",
            ["call", "calls"],
            ["the paths of ", " did not fit: raise --max-rows, or restrict the calls"],
        ),
        (
            observer.lost_connections,
            "peers",
            ["connection", "connections"],
            ["", " did not fit: raise --max-rows"],
        ),
        (
            observer.lost_exchanges,
            "requests",
            ["request", "requests"],
            ["", " of connections did not fit, or calls on such: raise --max-rows"],
        ),
        (
            observer.unclear_connections,
            "requests",
            ["connection", "connections"],
            [
                "which end asks is not known of ",
                " from before the watch: their requests are left out",
            ],
        ),
        (
            observer.lost_requests,
            "rings",
            ["request", "requests"],
            ["", " did not fit, or ended unseen: the table of ring operations is too low by these"],
        ),
    ] {
        if count > 0 {
            let count = counted(count.into(), one, several);
            warn(Ink::Yellow, word, format!("{before}{count}{behind}"));
        }
    }
    if lost > 0 {
        let lost = counted(lost, "event", "events");
        let text = format!(
            "{lost} could not be counted, because a bounded table was full: any figure below may be \
             too low"
        );
        warn(Ink::Red, "lost", text);
    }
    if observer.incomplete_calls > 0 {
        let text = format!(
            "only one end of {} was seen: the other lay outside the watch, or the thread died in \
             between",
            counted(observer.incomplete_calls.into(), "call", "calls")
        );
        warn(Ink::Yellow, "incomplete", text);
    }
    let others = match observer.calls_left_out {
        None => "other calls are not counted".to_owned(),
        Some(1) => "1 other call is not counted".to_owned(),
        Some(calls) => format!("{} other calls are not counted", thousands(calls.into())),
    };
    if !record.view.calls.is_empty() {
        let calls = some_of(&record.view.calls, |call| page.name(call, 40));
        warn(Ink::Dim, "restricted", format!("only {calls} watched; {others}"));
    }
    if !record.view.r#where.is_empty() {
        let condition = page.name(&record.view.r#where, 200);
        warn(Ink::Dim, "restricted", format!("only calls where {condition}; {others}"));
    }
    if let Some(text) = super::nothing::reason(page, record) {
        warn(Ink::Yellow, NOTHING_SEEN, text);
    }
    if let Some(text) = super::until::outcome(page, record) {
        let ink = if record.ended_by.is_some() { Ink::Bold } else { Ink::Dim };
        warn(ink, "until", text);
    }
    if observer.end_divided_by_zero > 0 {
        let text = format!(
            "the condition that ends the watch divides by zero for {}",
            counted(observer.end_divided_by_zero.into(), "call", "calls")
        );
        warn(Ink::Yellow, "condition", text);
    }
    if let Some(text) = super::groups::lost(record) {
        warn(Ink::Yellow, "groups", text);
    }
    if observer.divided_by_zero > 0 {
        let text = format!(
            "{} left out: the condition divides by zero for them",
            counted(observer.divided_by_zero.into(), "call was", "calls were")
        );
        warn(Ink::Yellow, "condition", text);
    }
    if !record.unwatched_children.is_empty() {
        let names = some_of(&record.unwatched_children, |one| label(page, &one.exec, one.pid));
        let why = match record.view.only {
            true => "made by the watched processes; leave out --only to include them",
            // As it was before there was --only.
            false => "started before the watch, so not included",
        };
        let text = format!("{names}: {why}");
        warnings.push(Warning { ink: Ink::Yellow, word: "not watched", text });
    }
    warnings.extend(left_running(page, record));
    let others = overhead::of_others(record);
    warnings.extend(others.map(|text| Warning { ink: Ink::Dim, word: "unwatched", text }));
    warnings
}

/// The processes that still ran when the watch ended. Where running processes were watched, that
/// means nothing, as where the watch goes on.
fn left_running(page: &Page<'_>, record: &Trace) -> Option<Warning> {
    let goes_on = record.ring.is_some_and(|ring| ring.goes_on);
    if record.still_running.is_empty() || record.command.is_empty() || goes_on {
        return None;
    }
    let root = root(record).map(|process| process.pid);
    let (command, others): (Vec<&Running>, Vec<&Running>) =
        record.still_running.iter().partition(|one| Some(one.pid) == root);
    let named = Names::from_record(record);
    let names = |all: &[&Running]| some_of(all, |one| named.label(page, &one.exec, one.pid));
    // A command is waited for, however its watch ends.
    if let ([command, ..], Some(_)) = (&command[..], record.exit) {
        let mut text =
            format!("the watch ended before {} did", named.label(page, &command.exec, command.pid));
        if !others.is_empty() {
            text += &format!("; still running then: {}", names(&others));
        }
        return Some(Warning { ink: Ink::Yellow, word: "cut short", text });
    }
    let all: Vec<&Running> = record.still_running.iter().collect();
    let advice =
        if record.view.wait { "the watch ended before them" } else { "to wait for them: --wait" };
    let text = format!("{}; {advice}", names(&all));
    Some(Warning { ink: Ink::Yellow, word: STILL_RUNNING, text })
}

/// The words that are too long for the column of the others.
const STILL_RUNNING: &str = "still running";
const NOTHING_SEEN: &str = "nothing seen";

/// In at most so many lines.
fn warn(page: &mut Page<'_>, Warning { ink, word, text }: &Warning, most: usize) {
    let behind = match [STILL_RUNNING, NOTHING_SEEN].contains(word) {
        true => ": ".to_owned(),
        false => " ".repeat("incomplete".len().saturating_sub(word.len()) + 2),
    };
    let lead = [(Ink::Plain, "  "), (*ink, *word), (Ink::Plain, &*behind)];
    let text = page.clipped(&lead, text, most);
    page.wrapped(&lead, Ink::Plain, &text);
}

/// The first few by name, the rest by number.
fn some_of<T>(all: &[T], name: impl Fn(&T) -> String) -> String {
    const FEW: usize = 8;
    let mut text = all.iter().take(FEW).map(name).collect::<Vec<_>>().join(", ");
    if all.len() > FEW {
        text += &format!(" and {} more", thousands((all.len() - FEW) as u128));
    }
    text
}
