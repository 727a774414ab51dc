//! The record of one interval of a watch, as a few lines: its sums, the calls that took most time, the
//! ring operations, and the peers.

use iotomy_record::{SortKey, Times, Trace};

use crate::Style;
use crate::numbers::{bytes, counted, decimals_for, duration, figure, fixed, thousands};
use crate::page::{Ink, Page};
use crate::table::{Column, Row, Table};
use crate::trace::images::{CallSum, Ledger, cpus_used};
use crate::trace::{peers, print_hidden, rings, until};

const COLUMNS: [Column; 11] = [
    Column::text("call", 11).at_least(16),
    Column::number("calls", "", 10).at_least(9),
    Column::number("errors", "", 5).at_least(6),
    Column::number("open", "", 7).at_least(4),
    Column::number("bytes", "", 6).at_least(8),
    Column::number("wall", "ms", 9).at_least(8),
    Column::number("on-CPU", "ms", 8).at_least(7),
    Column::number("blocked", "ms", 7).at_least(8),
    Column::number("p50", "µs", 3).at_least(6),
    Column::number("p99", "µs", 4).at_least(7),
    Column::number("max", "µs", 2).at_least(8),
];

/// The default number of calls, of ring operations and of peers.
const USUAL_ROWS: usize = 5;

/// The record of an interval as the text a terminal shows, ending in a line break.
pub fn interval(record: &Trace, style: &Style) -> String {
    let mut page = Page::new(style);
    headline(&mut page, record);
    calls(&mut page, record);
    rings::print_in_interval(&mut page, record, USUAL_ROWS);
    peers::print_in_interval(&mut page, record, USUAL_ROWS);
    until::print_in_interval(&mut page, record);
    page.blank();
    page.finish()
}

fn headline(page: &mut Page<'_>, record: &Trace) {
    let total = CallSum::total("", &record.calls);
    let mut parts = vec![duration(record.wall_ns as f64)];
    let mut made = counted(total.calls, "call", "calls");
    if total.bytes > 0 {
        made = format!("{made}, {}", bytes(total.bytes));
    }
    parts.push(made);
    parts.extend(rings::requests(record));
    if total.errors > 0 {
        parts.push(counted(total.errors, "error", "errors"));
    }
    let mut ledger = Ledger::default();
    record.ledger.iter().for_each(|row| ledger.add(row));
    if !record.ledger.is_empty() && record.wall_ns > 0 {
        let (on_cpu, thread) = ((ledger.user + ledger.calls) as f64, ledger.thread as f64);
        let threads = record.thread_count().max(1) as f64;
        let cpus = cpus_used(on_cpu, thread, record.wall_ns as f64, threads);
        parts.push(format!("{} CPUs used", fixed(cpus, 2)));
        parts.push(format!("runq {}", duration(ledger.runnable.max(0) as f64)));
    }
    if record.observer.lost_events > 0 {
        parts.push(format!(
            "{} lost",
            counted(record.observer.lost_events.into(), "event", "events")
        ));
    }
    if record.observer.lost_connections > 0 {
        let lost = record.observer.lost_connections.into();
        parts.push(format!("{} lost", counted(lost, "connection", "connections")));
    }
    if record.observer.lost_requests > 0 {
        let lost = record.observer.lost_requests.into();
        parts.push(format!("{} lost", counted(lost, "request", "requests")));
    }
    // The time of day: `2026-11-24T03:12:45.123Z`.
    let time = record.started.split('T').nth(1).unwrap_or(&record.started);
    let time = format!("{}  ", page.name(time, 24));
    page.line(&[(Ink::Bold, &time), (Ink::Plain, &parts.join(" · "))]);
}

fn calls(page: &mut Page<'_>, record: &Trace) {
    if record.calls.is_empty() {
        return;
    }
    let sums = CallSum::by_name(&record.calls, record.view.sort);
    let most = match record.view.top {
        None => USUAL_ROWS,
        Some(0) => usize::MAX,
        Some(rows) => rows,
    };
    let shown = most.min(sums.len());
    let wall: u128 = sums.iter().map(|sum| sum.wall).sum();
    let decimals = decimals_for(wall as f64 / 1e6);
    let mut table = Table::new(&COLUMNS);
    for sum in &sums[..shown] {
        table.push(Row { cells: cells(page, record, sum, decimals), ..Row::default() });
    }
    table.print(page);
    let order = if record.view.sort == SortKey::Wall { "" } else { " calls" };
    print_hidden(page, shown, sums.len(), order);
}

fn cells(page: &Page<'_>, record: &Trace, sum: &CallSum<'_>, decimals: usize) -> Vec<String> {
    let ms = |ns: u128| fixed(ns as f64 / 1e6, decimals);
    let us = |ns: u64| figure(ns as f64 / 1e3);
    let few = |n: u128| if n > 0 { thousands(n) } else { String::new() };
    let rows = || record.calls.iter().filter(|call| call.syscall == sum.name);
    let mut times = Times::default();
    rows().for_each(|call| times.merge(&call.wall_times));
    let quantile = |share| if times.is_empty() { String::new() } else { us(times.quantile(share)) };
    vec![
        page.name(sum.name, 28),
        thousands(sum.calls),
        few(sum.errors),
        few(sum.open),
        if sum.bytes > 0 { bytes(sum.bytes) } else { String::new() },
        ms(sum.wall),
        sum.on_cpu.map(ms).unwrap_or_default(),
        sum.blocked.map(ms).unwrap_or_default(),
        quantile(0.5),
        quantile(0.99),
        if sum.max > 0 { sum.max_us(page) } else { String::new() },
    ]
}
