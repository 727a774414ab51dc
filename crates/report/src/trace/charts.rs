//! The pictures of a trace: where the time went, the same of each process, and distributions.

use iotomy_record::calls::RING_PREFIX;
use iotomy_record::{Histogram, LedgerRow, Quantity, SortKey, Trace};

use super::call_sum::CallSum;
use super::distributions::{
    OFTEN, merged, of_ring_operation, ring_operations, ring_title, that_matter, what,
};
use super::images::{self, Image, residual};
use super::ledger::{self, Kind};
use crate::chart::{Chart, Drawing, Key, WIDE, fit, fit_process};
use crate::histogram;
use crate::numbers::{bytes, decimals_for, duration, fixed, share, thousands};
use crate::page::Page;

/// Where labels end, bars begin and end, and figures end.
const LABELS: f64 = 196.0;
const BARS: f64 = 206.0;
const BARS_END: f64 = 590.0;
const FIGURES: f64 = 676.0;
const SHARES: f64 = 748.0;

/// Height of a row, and of its bar.
const ROW: f64 = 26.0;
const BAR: f64 = 16.0;

/// Processes that are drawn, at most.
const PROCESSES: usize = 24;

/// Distributions that are drawn, at most.
const DISTRIBUTIONS: usize = 9;

/// The class of a kind of time.
fn class(kind: Kind) -> &'static str {
    match kind {
        Kind::Call => "t-call",
        Kind::User => "t-user",
        Kind::Blocked => "t-blocked",
        Kind::Waiting => "t-waiting",
        Kind::Residual => "t-residual",
    }
}

fn legend(has_parts: bool) -> Vec<Key> {
    if !has_parts {
        return Vec::new();
    }
    [
        (Kind::Call, "in system calls, on-CPU"),
        (Kind::User, "outside calls, on-CPU"),
        (Kind::Blocked, "blocked"),
        (Kind::Waiting, "run queue delay"),
        (Kind::Residual, "residual"),
    ]
    .map(|(kind, label)| Key::new(class(kind), label))
    .to_vec()
}

/// Where the time went, a bar a part.
pub(super) fn ledger(page: &Page<'_>, record: &Trace, images: &[Image<'_>]) -> Option<Chart> {
    let account = ledger::account(page, record, images)?;
    let ms = |ns: i128| ns as f64 / 1e6;
    let whole = i128::try_from(account.whole).unwrap_or(i128::MAX);
    let decimals = decimals_for(ms(whole));
    let largest = account.parts.iter().map(|part| part.ns.unsigned_abs()).max().unwrap_or(1).max(1);
    let mut drawing = Drawing::new(WIDE, ROW * (account.parts.len() + 1) as f64 + 22.0);
    drawing.text(FIGURES, 12.0, "end dim", "ms");
    drawing.text(SHARES, 12.0, "end dim", "share");
    let mut says = Vec::new();
    for (at, part) in account.parts.iter().enumerate() {
        let y = 22.0 + ROW * at as f64;
        let shared = share(part.ns, account.whole);
        let figure = fixed(ms(part.ns), decimals);
        drawing.text(LABELS, y + 12.5, "end", &fit(&part.label, LABELS - 4.0));
        let long = part.ns.max(0) as f64 / largest as f64 * (BARS_END - BARS);
        let remarks = match part.remarks.is_empty() {
            true => String::new(),
            false => format!(" ({} ms)", part.remarks.join(", ")),
        };
        let tip = format!("{}: {figure} ms, {shared}{remarks}", part.label);
        drawing.rect([BARS, y, long.max(1.0), BAR], class(part.kind), &tip);
        drawing.text(FIGURES, y + 12.5, "end num", &figure);
        drawing.text(SHARES, y + 12.5, "end num dim", &shared);
        says.push(tip);
    }
    let y = 22.0 + ROW * account.parts.len() as f64;
    drawing.line([LABELS - 90.0, y - 3.0, SHARES, y - 3.0], "grid");
    drawing.text(LABELS, y + 12.5, "end bold", account.sum);
    drawing.text(FIGURES, y + 12.5, "end num bold", &fixed(ms(whole), decimals));
    drawing.text(SHARES, y + 12.5, "end num bold", &share(whole, account.whole));
    let has_parts = account.parts.iter().any(|part| part.kind != Kind::Call);
    Some(Chart {
        id: "ledger".into(),
        title: capital(account.title),
        says: says.join("; "),
        legend: legend(has_parts),
        notes: account.notes,
        drawing,
    })
}

/// The same of each process, its parts behind one another.
pub(super) fn processes(page: &Page<'_>, images: &[Image<'_>]) -> Option<Chart> {
    let with: Vec<_> = images
        .iter()
        .filter_map(|image| Some((image.label(page), image.ledger.clone()?)))
        .collect();
    if with.len() < 2 {
        return None;
    }
    let shown = with.len().min(PROCESSES);
    let (drawing, says) = stacked(&with[..shown]);
    let notes = match with.len() - shown {
        0 => Vec::new(),
        n => vec![format!("{} processes with less time are not drawn", thousands(n as u128))],
    };
    Some(Chart {
        id: "processes-time".into(),
        title: "The time of each process".into(),
        says,
        legend: legend(true),
        notes,
        drawing,
    })
}

/// The time of several traced runs, beside each other.
pub(crate) fn side_by_side(runs: &[(String, &Trace)]) -> Option<Chart> {
    let rows: Vec<(String, LedgerRow)> = runs
        .iter()
        .filter_map(|(label, trace)| Some((label.clone(), images::ledger(&images::list(trace))?)))
        .take(PROCESSES)
        .collect();
    if rows.is_empty() {
        return None;
    }
    let (drawing, says) = stacked(&rows);
    Some(Chart {
        id: "time".into(),
        title: "Where the time of the traced runs went".into(),
        says,
        legend: legend(true),
        notes: vec!["thread time of all processes; these runs are not among the timed ones".into()],
        drawing,
    })
}

/// A bar a row, its parts behind one another.
fn stacked(rows: &[(String, LedgerRow)]) -> (Drawing, String) {
    let time = |of: &LedgerRow| of.thread_ns as f64 / 1e6;
    let largest = rows.iter().map(|(_, of)| time(of)).fold(1e-9, f64::max);
    let decimals = decimals_for(largest);
    let mut drawing = Drawing::new(WIDE, ROW * rows.len() as f64 + 24.0);
    drawing.text(FIGURES, 12.0, "end dim", "ms");
    let mut says = Vec::new();
    for (at, (label, of)) in rows.iter().enumerate() {
        let y = 22.0 + ROW * at as f64;
        drawing.text(LABELS, y + 12.5, "end", &fit_process(label, LABELS - 4.0));
        let parts = [
            (Kind::Call, "in calls", of.calls_on_cpu_ns.into()),
            (Kind::User, "user", of.user_ns.into()),
            (Kind::Blocked, "blocked", of.blocked_ns.into()),
            (Kind::Waiting, "run queue delay", of.runnable_ns.into()),
            (Kind::Residual, "residual", residual(of)),
        ];
        // A record that does not add up must not draw over its figures.
        let sum: i128 = parts.iter().map(|(_, _, ns)| (*ns).max(0)).sum();
        let room = (time(of) / largest).clamp(0.0, 1.0) * (BARS_END - BARS);
        let mut x = BARS;
        for (kind, what, ns) in parts.into_iter().filter(|(_, _, ns)| *ns > 0) {
            let long = ns as f64 / sum.max(1) as f64 * room;
            let tip = format!(
                "{label}: {what} {} ms, {}",
                fixed(ns as f64 / 1e6, decimals),
                share(ns, of.thread_ns.into())
            );
            drawing.rect([x, y, long, BAR], class(kind), &tip);
            x += long;
        }
        drawing.text(FIGURES, y + 12.5, "end num", &fixed(time(of), decimals));
        says.push(format!("{label} {} ms", fixed(time(of), decimals)));
    }
    (drawing, says.join("; "))
}

/// Of how many images the ring operations that are used often are drawn, and how many of each.
const RING_OPERATIONS: usize = 2;

/// The distributions that matter: return values, and durations.
pub(super) fn distributions(page: &Page<'_>, record: &Trace, images: &[Image<'_>]) -> Vec<Chart> {
    let mut charts = Vec::new();
    for (image, name) in that_matter(record, images) {
        for quantity in [Quantity::Return, Quantity::Wall] {
            charts.extend(distribution(page, image, name, quantity, charts.len()));
        }
    }
    for image in images.iter().filter(|one| !one.ring_operations.is_empty()).take(RING_OPERATIONS) {
        let often = ring_operations(image).into_iter().filter(|(_, ended)| *ended >= OFTEN);
        for (op, _) in often.take(RING_OPERATIONS) {
            for quantity in [Quantity::Return, Quantity::Wall] {
                charts.extend(ring_distribution(page, image, op, quantity, charts.len()));
            }
        }
    }
    // Of calls that only wait, how long.
    for image in images.iter().take(4) {
        for sum in CallSum::by_name(image.calls.iter().copied(), SortKey::BLOCKED).iter().take(2) {
            let of_image = |chart: &Chart| chart.says.starts_with(&subject(page, image, sum.name));
            if sum.calls() > 1 && sum.blocked().unwrap_or(0) > 0 && !charts.iter().any(of_image) {
                charts.extend(distribution(page, image, sum.name, Quantity::Wall, charts.len()));
            }
        }
    }
    charts.truncate(DISTRIBUTIONS);
    charts
}

fn subject(page: &Page<'_>, image: &Image<'_>, name: &str) -> String {
    format!("{} of {}: ", page.name(name, 40), image.label(page))
}

fn distribution(
    page: &Page<'_>,
    image: &Image<'_>,
    name: &str,
    quantity: Quantity,
    number: usize,
) -> Option<Chart> {
    let calls = image.calls.iter().filter(|call| call.syscall == name);
    let moves_bytes = calls.clone().any(|call| call.bytes > 0);
    let drawn = Distribution {
        title: format!("{} {} — {}", page.name(name, 40), what(quantity), image.label(page)),
        subject: subject(page, image, name),
        histogram: merged(calls, quantity),
        is_time: quantity != Quantity::Return,
        moves_bytes,
        many: "calls",
    };
    drawn.chart(number)
}

/// The results of a ring operation, or the time from submission to completion.
fn ring_distribution(
    page: &Page<'_>,
    image: &Image<'_>,
    op: &str,
    quantity: Quantity,
    number: usize,
) -> Option<Chart> {
    let drawn = Distribution {
        title: format!("{} — {}", ring_title(page, op, quantity), image.label(page)),
        subject: subject(page, image, &format!("{RING_PREFIX}{op}")),
        histogram: of_ring_operation(image, op, quantity),
        is_time: quantity != Quantity::Return,
        moves_bytes: true,
        many: "requests",
    };
    drawn.chart(number)
}

/// A distribution to be drawn.
struct Distribution {
    title: String,
    subject: String,
    histogram: Histogram,
    is_time: bool,
    moves_bytes: bool,
    many: &'static str,
}

impl Distribution {
    fn chart(self, number: usize) -> Option<Chart> {
        let shown = |label: &str| match label.parse::<u64>() {
            Err(_) => label.to_owned(),
            Ok(value) if self.is_time => duration(value as f64),
            Ok(value) if self.moves_bytes => bytes(value.into()),
            Ok(value) => thousands(value.into()),
        };
        let parts = [histogram::BarSegment { label: "", histogram: &self.histogram }];
        let (drawing, says) = histogram::draw(&parts, shown, self.many)?;
        Some(Chart {
            id: format!("distribution-{}", number + 1),
            title: self.title,
            says: self.subject + &says.join("; "),
            legend: Vec::new(),
            notes: Vec::new(),
            drawing,
        })
    }
}

/// With a capital letter.
pub(crate) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
