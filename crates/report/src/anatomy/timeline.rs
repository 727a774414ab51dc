//! Single calls, and the events inside them.
//!
//! Computed by `timelines` in `crates/observe/src/bpf/block/timelines.rs`.

use std::iter::Peekable;
use std::slice::Iter;

use iotomy_record::{CallEvent, Hidden, SlowCall, SlowestCalls};

use crate::numbers::{bytes, counted, duration, fixed, thousands};
use crate::page::{Ink, Page};
use crate::trace::images::NAMELESS;

/// Columns of a moment in µs.
const MOMENT: usize = 12;

/// Prints the timelines; there are none unless requested.
pub(crate) fn print(page: &mut Page<'_>, timelines: &SlowestCalls) {
    page.blank();
    let lead = [(Ink::Plain, "  "), (Ink::Bold, "timelines"), (Ink::Plain, "  ")];
    page.wrapped(&lead, Ink::Plain, &headline(timelines));
    if let Some(text) = lost(timelines) {
        page.wrapped(&[(Ink::Plain, "  "), (Ink::Red, "lost  ")], Ink::Plain, &text);
    }
    for timeline in &timelines.calls {
        print_one(page, timeline);
    }
}

/// The number of calls of which these are the slowest, and the gaps.
pub(super) fn headline(timelines: &SlowestCalls) -> String {
    let mut text = format!(
        "the slowest of {}",
        counted(timelines.followed.into(), "read, write or sync", "reads, writes and syncs")
    );
    if timelines.not_followed > 0 {
        let n = thousands(timelines.not_followed.into());
        text += &format!(" · not followed: {n} of pipes, sockets, terminals and the like");
    }
    if !timelines.absent.is_empty() {
        let n = counted(timelines.absent.len() as u128, "tracepoint", "tracepoints");
        text += &format!(" · {n} unavailable here");
    }
    text
}

/// Timelines that found no room, in words.
pub(super) fn lost(timelines: &SlowestCalls) -> Option<String> {
    let n = timelines.lost;
    (n > 0).then(|| format!("{} of calls did not fit into a bounded table", thousands(n.into())))
}

/// `dd (4711) fsync`.
pub(super) fn call(page: &Page<'_>, timeline: &SlowCall) -> String {
    let (exec, call) = (page.name(&timeline.exec, 20), page.name(&timeline.syscall, 24));
    format!("{exec} ({}) {call}", timeline.pid)
}

fn print_one(page: &mut Page<'_>, timeline: &SlowCall) {
    page.blank();
    let call = call(page, timeline);
    let text = format!("{} · {}", subject(page, timeline), asked(page, timeline));
    let lead = [(Ink::Plain, "  "), (Ink::Bold, call.as_str()), (Ink::Plain, "  ")];
    page.wrapped(&lead, Ink::Plain, &text);
    page.line(&[(Ink::Plain, "  "), (Ink::Plain, &times(timeline))]);
    let head = format!("  {:>MOMENT$}  CPU  what happened", "µs");
    page.line(&[(Ink::Dim, &head)]);
    let mut hidden = timeline.hidden.iter().peekable();
    for event in &timeline.events {
        print_hidden(page, &mut hidden, event.at_ns);
        print_event(page, event);
    }
    print_hidden(page, &mut hidden, u64::MAX);
}

/// The descriptor, or the place of a registered file, and the file behind it.
pub(super) fn subject(page: &Page<'_>, timeline: &SlowCall) -> String {
    let path = timeline.path.as_ref().map(|path| page.name(path, 60.min(page.width())));
    let kind = if timeline.registered_file { "registered file" } else { "descriptor" };
    match path {
        Some(path) => format!("{path} ({kind} {})", timeline.fd),
        None => format!("{kind} {}", timeline.fd),
    }
}

/// The request and its result.
pub(super) fn asked(page: &Page<'_>, timeline: &SlowCall) -> String {
    let asked = timeline.asked_bytes.map_or_else(String::new, |n| {
        let at = timeline.offset.map(|at| format!(" at {}", thousands(at.into())));
        format!("{}{}", bytes(n.into()), at.unwrap_or_default())
    });
    let came = match (&timeline.error, timeline.asked_bytes) {
        (Some(error), _) => page.name(error, 20),
        (None, Some(n)) if i64::try_from(n) == Ok(timeline.returned) => String::new(),
        (None, _) => format!("returned {}", signed(timeline.returned)),
    };
    let parts = [asked, came].into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(", ")
}

pub(super) fn times(timeline: &SlowCall) -> String {
    if timeline.is_request() {
        return format!("{} from submission to completion", duration(timeline.wall_ns as f64));
    }
    let ready =
        timeline.wall_ns.saturating_sub(timeline.on_cpu_ns).saturating_sub(timeline.blocked_ns);
    let parts = [
        (timeline.on_cpu_ns, "on-CPU"),
        (timeline.blocked_ns, "blocked"),
        (ready, "run queue delay"),
    ];
    let parts = parts.iter().filter(|(ns, _)| *ns > 0);
    let parts: Vec<String> =
        parts.map(|(ns, what)| format!("{} {what}", duration(*ns as f64))).collect();
    format!("{} in total: {}", duration(timeline.wall_ns as f64), parts.join(" · "))
}

fn signed(n: i64) -> String {
    let sign = if n < 0 { "−" } else { "" };
    format!("{sign}{}", thousands(n.unsigned_abs().into()))
}

fn print_hidden(page: &mut Page<'_>, hidden: &mut Peekable<Iter<'_, Hidden>>, until: u64) {
    while let Some(next) = hidden.next_if(|hidden| hidden.before_ns <= until) {
        let text = format!("  {:>MOMENT$}       {}", "", untold(page, &next.event, next.count));
        page.line(&[(Ink::Dim, &text)]);
    }
}

fn print_event(page: &mut Page<'_>, event: &CallEvent) {
    let at = fixed(event.at_ns as f64 / 1000.0, 1);
    let lead = format!("  {at:>MOMENT$}  {:>3}  ", event.cpu);
    let (what, ink) = match ours(&event.event) {
        Some(words) => (words.to_owned(), Ink::Dim),
        None => (page.name(&event.event, 40), Ink::Plain),
    };
    let more = details(page, event);
    let gap = if more.is_empty() { "" } else { "  " };
    page.line(&[(Ink::Plain, &lead), (ink, &what), (Ink::Plain, gap), (Ink::Dim, &more)]);
}

/// Events that are only counted, in the words of the recorded ones.
pub(super) fn untold(page: &Page<'_>, event: &str, count: u64) -> String {
    let more = thousands(count.into());
    match (ours(event), count) {
        (Some(words), 1) => format!("… {words} once more"),
        (Some(words), _) => format!("… {words} {more} times more"),
        (None, _) => format!("… {more} more {}", page.name(event, 40)),
    }
}

/// The text for events of the thread or the request itself; none for those that the kernel has a name for.
pub(super) fn ours(event: &str) -> Option<&'static str> {
    match event {
        "off-cpu" => Some("leaves its CPU"),
        "on-cpu" => Some("is back on a CPU"),
        "woken" => Some("woken"),
        "worker-queue" => Some("is queued for a worker"),
        _ => None,
    }
}

/// The words and values of an event, the words that make a sentence first.
pub(super) fn details(page: &Page<'_>, event: &CallEvent) -> String {
    let word = |name: &str| event.words.get(name).map(|word| page.name(word, 40));
    if let Some(state) = word("state") {
        return state;
    }
    if let Some(by) = word("by") {
        return match by.as_str() {
            "an interrupt" => "by an interrupt".to_owned(),
            "" => format!("while {NAMELESS} ran"),
            by => format!("while {by} ran"),
        };
    }
    let mut parts = Vec::new();
    let value = |name: &str| event.values.get(name).copied();
    if let (Some(operation), Some(device)) = (word("operation"), word("device")) {
        let size = value("bytes").and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
        let size = if size > 0 { format!(" {}", bytes(size.into())) } else { String::new() };
        parts.push(format!("{device} {operation}{size}"));
        // A flush has no place.
        parts.extend(
            value("sector").filter(|at| *at > 0).map(|at| format!("sector {}", signed(at))),
        );
        parts.extend(value("status").map(|status| format!("failed, status {status}")));
        parts.extend(word("flags"));
        return parts.join(" · ");
    }
    for (name, value) in &event.values {
        let value = if *value == i64::MAX { "all".to_owned() } else { signed(*value) };
        parts.push(format!("{} {value}", page.name(name, 30)));
    }
    parts.join(" · ")
}
