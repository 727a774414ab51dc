//! The record of one interval of a watch, as a few lines: its sums, the calls that took most time, the
//! ring operations, and the peers.

use iotomy_record::{SortKey, Times, Trace};

use crate::Style;
use crate::numbers::{bytes, counted, decimals_for, duration, figure, fixed};
use crate::page::{Ink, Page};
use crate::table::{Column, Row, Table};
use crate::trace::call_columns::{self, CallColumn, Whole};
use crate::trace::images::{Ledger, cpus_used};
use crate::trace::{CallSum, peers, print_hidden, rings, until};

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
    let mut made = counted(total.calls(), "call", "calls");
    if total.bytes() > 0 {
        made = format!("{made}, {}", bytes(total.bytes()));
    }
    parts.push(made);
    parts.extend(rings::requests(record));
    if total.errors() > 0 {
        parts.push(counted(total.errors(), "error", "errors"));
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
    let wall: u128 = sums.iter().map(CallSum::wall).sum();
    let whole = Whole { wall, decimals: decimals_for(wall as f64 / 1e6) };
    let columns = columns();
    let mut heads = vec![Column::text("call", 11).at_least(16)];
    heads.extend(columns.iter().map(|column| column.column().at_least(column.width())));
    let mut table = Table::new(&heads);
    for sum in &sums[..shown] {
        let mut cells = vec![page.name(sum.name, 28)];
        let times = times(record, sum);
        cells.extend(columns.iter().map(|column| match column {
            CallColumn::Quantile(_, share) if !times.is_empty() => {
                figure(times.quantile(*share) as f64 / 1e3)
            }
            column => column.cell(page, sum, whole).text,
        }));
        table.push(Row { cells, ..Row::default() });
    }
    table.print(page);
    let order = if record.view.sort == SortKey::WALL { "" } else { " calls" };
    print_hidden(page, shown, sums.len(), order);
}

/// As in the record of a whole watch, with quantiles in place of what says less of a short time, and without the
/// columns that are worth least.
fn columns() -> Vec<CallColumn> {
    let mut columns = call_columns::all();
    columns.retain(|column| {
        column.worth() > 1 && !matches!(column, CallColumn::Share | CallColumn::Mean)
    });
    let quantiles = [CallColumn::Quantile("p50", 0.5), CallColumn::Quantile("p99", 0.99)];
    columns.splice(columns.len() - 1..columns.len() - 1, quantiles);
    columns
}

/// How long the calls of a name took.
fn times(record: &Trace, sum: &CallSum<'_>) -> Times {
    let mut times = Times::default();
    let rows = record.calls.iter().filter(|call| call.syscall == sum.name);
    rows.for_each(|call| times.merge(&call.wall_times));
    times
}
