//! The overhead of watching: of a call, of a call that was left out, of those that are not watched, and in all.
//!
//! Computed by `of_run` in `crates/observe/src/price.rs`.

use iotomy_record::{Process, RingOperation, Trace};

use crate::numbers::{bytes, counted, duration_range, fixed};
use crate::page::Page;

/// `observer bpf: overhead 160 … 320 ns a call (1.9 … 2.7 % of its CPU)`
pub(super) fn text(page: &Page<'_>, record: &Trace, calls: u128) -> String {
    let name = page.name(&record.observer.name, 20);
    let mut text = format!("observer {name}: overhead {}", of_calls(record, calls));
    if let Some(share) = Overhead::from_record(record, calls) {
        text += &format!(" ({} of its {})", share.text(), share.of);
    }
    text + not_in_it(record)
}

/// What a watch that may last costs iotomy itself: `iotomy itself: 0.4 % of a CPU, 23.1 MiB, 71.0 MiB of tables`
pub(super) fn own(record: &Trace) -> Option<String> {
    let ring = record.ring?;
    let own = ring.own?;
    let whole_ns = ring.start_ns.saturating_add(record.wall_ns);
    let share = own.cpu_ns as f64 / whole_ns.max(1) as f64 * 100.0;
    let share = match fixed(share, 1) {
        share if share == "0.0" => String::from("under 0.1"),
        share => share,
    };
    let (rss, tables) = (bytes(own.rss_bytes.into()), bytes(own.table_bytes.into()));
    let tables = match own.table_bytes {
        0 => String::new(),
        _ => format!(", {tables} of tables in the kernel"),
    };
    Some(format!("iotomy itself: {share} % of a CPU, {rss}{tables}"))
}

/// The overhead of a call that was counted, and of one that was left out.
pub(super) fn of_calls(record: &Trace, calls: u128) -> String {
    let observer = &record.observer;
    let of_a_call = format!("{} a call", duration_range(observer.cost_range_ns()));
    if record.sample.is_some() {
        let outside = duration_range(observer.left_out_range_ns());
        return format!("{of_a_call} in windows, {outside} outside");
    }
    let left_out = observer.calls_left_out.filter(|_| observer.cost_left_out_ns_high > 0.0);
    let Some(left_out) = left_out.filter(|calls| *calls > 0) else { return of_a_call };
    let of_others = duration_range(observer.left_out_range_ns());
    match calls {
        0 => format!("{of_others} each of {} left out", counted(left_out.into(), "call", "calls")),
        _ => format!("{of_a_call}, {of_others} a call left out"),
    }
}

/// What the overhead of calls does not have in it.
pub(super) fn not_in_it(record: &Trace) -> &'static str {
    let is_counted = |row: &RingOperation| row.submitted > 0 || row.before > 0;
    match record.ring_operations.iter().any(is_counted) {
        true => ", plus ring operations",
        false => "",
    }
}

/// What the processes pay that are not watched.
pub(super) fn of_others(record: &Trace) -> Option<String> {
    let range = record.observer.unwatched_range_ns().filter(|_| !record.view.machine)?;
    Some(format!(
        "while the watch lasted, it added {} to each call of every other process",
        duration_range(range)
    ))
}

/// The overhead of watching in all, as a share of the time it is part of.
pub(super) struct Overhead {
    shares: [f64; 2],
    /// The kind of time.
    pub(super) of: &'static str,
}

impl Overhead {
    /// Nothing where there were no calls, or no time, or where it is not known how many calls were slowed.
    pub(super) fn from_record(record: &Trace, calls: u128) -> Option<Self> {
        let sum = |ns: fn(&Process) -> u64| {
            record.processes.iter().map(|p| u128::from(ns(p))).sum::<u128>()
        };
        let observer = &record.observer;
        let cpu: u128 = sum(|process| process.user_ns) + sum(|process| process.system_ns);
        // Where every call stops for the observer, it is the observer that runs meanwhile.
        let (whole, of) = match observer.times_inflated || cpu == 0 {
            true => (u128::from(record.wall_ns), "wall"),
            false => (cpu, "CPU"),
        };
        let is_restricted = !record.view.calls.is_empty() || !record.view.r#where.is_empty();
        let left_out = match observer.calls_left_out {
            None if is_restricted => return None,
            left_out => left_out.unwrap_or(0),
        };
        // Of a part of the time, the number of all calls is an estimate.
        let counted = match &record.sample {
            Some(sample) => calls as f64 / sample.factor().ratio(),
            None => calls as f64,
        };
        let left_out = left_out as f64 + (calls as f64 - counted);
        let [low, high] = [0, 1].map(|end| {
            let of_calls = observer.cost_range_ns()[end] * counted;
            of_calls + observer.left_out_range_ns()[end] * left_out
        });
        let share = |cost: f64| (cost / whole as f64).min(1.0);
        (whole > 0 && (calls > 0 || left_out > 0.0))
            .then(|| Self { shares: [low, high].map(share), of })
    }

    /// `1.9 … 2.7 %`
    pub(super) fn text(&self) -> String {
        let percent = |share: f64| fixed(share * 100.0, 1);
        match self.shares.map(percent) {
            [_, high] if high == "0" || high == "0.0" => "under 0.1 %".to_owned(),
            [low, high] if low == high => format!("{high} %"),
            [low, high] => format!("{low} … {high} %"),
        }
    }
}
