//! The record of one interval of a watch, as a few lines: its sums, the calls that took most time, the
//! ring operations, the peers, the requests, and the slowest calls.

use iotomy_record::statistic::Statistics;
use iotomy_record::{Call, LedgerRow, SortKey, Times, Trace, statistic};

use crate::Style;
use crate::columns::Extent;
use crate::numbers::{bytes, counted, duration, figure, fixed};
use crate::page::{Ink, Page};
use crate::sheet::{Cell, Field};
use crate::trace::images::{cpus_used, on_cpu};
use crate::trace::{CallSum, call_columns, peers, requests, rings, rows, slowest, until};

/// The default number of calls, of ring operations and of peers.
const USUAL_ROWS: usize = 5;

/// The record of an interval as the text a terminal shows, ending in a line break.
pub fn interval(record: &Trace, style: &Style) -> String {
    let mut page = Page::new(style);
    headline(&mut page, record);
    calls(&mut page, record);
    rings::print_in_interval(&mut page, record, USUAL_ROWS);
    peers::print_in_interval(&mut page, record, USUAL_ROWS);
    requests::print_in_interval(&mut page, record, USUAL_ROWS);
    slowest::print_in_interval(&mut page, record);
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
    let ledger: LedgerRow = statistic::total(&record.ledger);
    if !record.ledger.is_empty() && record.wall_ns > 0 {
        let (on_cpu, thread) = (on_cpu(&ledger) as f64, ledger.thread_ns as f64);
        let threads = record.thread_count().max(1) as f64;
        let cpus = cpus_used(on_cpu, thread, record.wall_ns as f64, threads);
        parts.push(format!("{} CPUs used", fixed(cpus, 2)));
        parts.push(format!("runq {}", duration(ledger.runnable_ns as f64)));
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
    if record.observer.lost_exchanges > 0 {
        let lost = record.observer.lost_exchanges.into();
        parts.push(format!("{} of connections lost", counted(lost, "request", "requests")));
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
    let total = CallSum::total("", &record.calls);
    let extent = Extent { rows: rows(record, USUAL_ROWS), name: 28 };
    let quantile = |share: f64| {
        move |sum: &CallSum<'_>| {
            let times = times(record, sum);
            Cell::from_option((!times.is_empty()).then(|| times.quantile(share)), |ns| {
                Cell::whole(ns, figure(ns as f64 / 1e3))
            })
        }
    };
    // As in the record of a whole watch, with quantiles in place of what says less of a short time, and without the
    // columns that are worth least. They stay where they are from one interval to the next.
    let sheet = call_columns::columns(page, &total, extent)
        .behind("mean_ns", Field::number("p99_ns", "p99", "µs").worth(3), quantile(0.99))
        .behind("mean_ns", Field::number("p50_ns", "p50", "µs").worth(3), quantile(0.5))
        .only(|field| field.worth > 1 && !["wall_percent", "mean_ns"].contains(&&*field.key))
        .at_least(|key| match (key, Call::statistic(key).and_then(|one| one.shape.column?.live)) {
            (_, Some((_, width))) => width,
            ("call", _) => 16,
            ("open", _) => 4,
            ("max_ns", _) => 8,
            _ => 6,
        })
        .sheet("calls", "Calls", &sums, None, extent);
    let order = if record.view.sort.of_calls() == SortKey::WALL { "" } else { " calls" };
    sheet.print(page, order);
}

/// How long the calls of a name took.
fn times(record: &Trace, sum: &CallSum<'_>) -> Times {
    let mut times = Times::default();
    let rows = record.calls.iter().filter(|call| call.syscall == sum.name);
    rows.for_each(|call| times.merge(&call.wall_times));
    times
}
