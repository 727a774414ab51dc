//! The call that ended the watch, and the condition that it fulfilled.
//!
//! Computed by `put_firing` in `crates/observe/src/bpf/until.bpf.h`.

use iotomy_record::{EndedBy, Ring, Trace};

use super::images::Names;
use super::slowest;
use crate::numbers::{bytes, counted, duration, thousands};
use crate::page::{Ink, Page};
use crate::sheet::Sheet;

/// The condition, and what came of it; nothing where there was none.
pub(super) fn outcome(page: &Page<'_>, record: &Trace) -> Option<String> {
    if record.view.until.is_empty() && record.ended_by.is_none() {
        return None;
    }
    let condition = page.name(&record.view.until, 200);
    let Some(end) = &record.ended_by else {
        return Some(none_ended_it(&condition, record.ring));
    };
    let call = &end.call;
    let who = Names::from_record(record).label_one(page, &call.exec, call.pid);
    let at = duration(call.start_ns.saturating_add(call.wall_ns) as f64);
    let made = page.name(&call.syscall, 28);
    let sums = sums(end);
    Some(match goes_on(record) {
        false => format!("{condition}: {made} in {who} ended the watch after {at}{sums}"),
        true => {
            format!("{condition}: {made} in {who} fulfilled it after {at}{sums}; the watch goes on")
        }
    })
}

/// Where the watch was not ended by a call, or not yet.
fn none_ended_it(condition: &str, ring: Option<Ring>) -> String {
    let Ring { goes_on, fired, .. } = ring.unwrap_or_default();
    let so_far = if goes_on { " so far" } else { "" };
    match fired {
        0 => format!("no call fulfilled {condition}{so_far}"),
        _ => {
            let calls = counted(fired.into(), "call", "calls");
            format!("{calls} fulfilled {condition}{so_far}, counted once a stretch at most")
        }
    }
}

/// Whether the watch went on after the stretch that the record is of.
fn goes_on(record: &Trace) -> bool {
    record.ring.is_some_and(|ring| ring.goes_on)
}

/// The head of the call in a table.
fn head(record: &Trace) -> &'static str {
    if goes_on(record) { "fulfilled by" } else { "ended by" }
}

fn sums(end: &EndedBy) -> String {
    let sums = [
        end.count.map(|calls| format!("count() was {}", thousands(calls.into()))),
        end.sum_bytes.map(|sum| format!("sum(bytes) was {}", bytes(sum.into()))),
        end.sum_duration_ns.map(|ns| format!("sum(duration) was {}", duration(ns as f64))),
    ];
    let sums: Vec<String> = sums.into_iter().flatten().collect();
    match sums.is_empty() {
        true => String::new(),
        false => format!("; {}", sums.join(", ")),
    }
}

/// The call that ended it, whole.
pub(crate) fn print(page: &mut Page<'_>, record: &Trace) {
    let Some(end) = &record.ended_by else { return };
    page.blank();
    slowest::table(page, record, head(record), std::slice::from_ref(&end.call)).print(page);
}

/// The same of the record of an interval, which has no headline.
pub(crate) fn print_in_interval(page: &mut Page<'_>, record: &Trace) {
    if record.ended_by.is_none() {
        return;
    }
    if let Some(outcome) = outcome(page, record) {
        page.wrapped(&[(Ink::Plain, "  ")], Ink::Bold, &outcome);
    }
    print(page, record);
}

/// For a page; nothing where no call ended it.
pub(super) fn sheet(page: &Page<'_>, record: &Trace) -> Option<Sheet> {
    let end = record.ended_by.as_ref()?;
    let title = match goes_on(record) {
        false => "The call that ended the watch",
        true => "The call that fulfilled the condition",
    };
    slowest::sheet(page, record, "ended-by", title, std::slice::from_ref(&end.call))
}
