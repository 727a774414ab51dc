//! Where a difference went: its terms, the largest first, down to the residual.

use iotomy_record::{Attribution, Metric, Race, Term, TermKind};

use crate::numbers::{bytes, decimals_for, fixed, share, thousands};
use crate::page::{Ink, Page};
use crate::table::{Column, Row, Table, bar};

/// Columns of the longest bar.
const BAR: usize = 18;

/// Terms that get a row, and the share of the whole movement below which none does.
const ROWS: usize = 8;
const SMALL: u128 = 100;

pub(super) fn print(page: &mut Page<'_>, record: &Race, found: &Attribution) {
    if found.terms.is_empty() {
        return;
    }
    let alone = found.base == found.other;
    let inflated = is_inflated(record, found);
    if inflated {
        if found.metric == Metric::Wall {
            print_counts(page, found, alone);
        }
        return;
    }
    let ms = |ns: i128| ns as f64 / 1e6;
    let moved: u128 = found.terms.iter().map(|term| u128::from(term.delta_ns.unsigned_abs())).sum();
    let moved = moved + u128::from(found.residual_ns.unsigned_abs());
    let largest = found.terms.iter().map(|term| term.delta_ns.unsigned_abs()).max().unwrap_or(0);
    let largest = largest.max(found.residual_ns.unsigned_abs());
    let decimals = decimals_for(ms(i128::from(largest.max(found.delta_ns.unsigned_abs()))));
    let terms = timed(found);
    let shown = rows(&terms, moved);
    let title = title(page, found, alone, decimals);
    page.blank();
    let of = format!("  {title}");
    page.line(&[(Ink::Bold, &of)]);
    if let Some(sentence) = replaced(page, found, decimals) {
        page.wrapped(&[(Ink::Plain, "  ")], Ink::Plain, &sentence);
    }
    let mut table = Table::new(&columns(found, alone));
    for term in &terms[..shown] {
        let delta = i128::from(term.delta_ns);
        table.push(Row {
            cells: cells(
                page,
                found,
                alone,
                decimals,
                Line {
                    name: name(page, term),
                    counts: Some((term.calls_base, term.calls_other)).filter(|_| counts(term)),
                    delta,
                    largest,
                },
            ),
            remarks: remarks(found, term, alone),
            ink: Ink::Plain,
        });
    }
    let rest: i128 = terms[shown..].iter().map(|term| i128::from(term.delta_ns)).sum();
    let hidden = terms.len() - shown;
    let mut ends = vec![("residual".to_owned(), i128::from(found.residual_ns), Ink::Plain)];
    if hidden > 0 {
        ends.insert(0, (format!("other terms ({hidden})"), rest, Ink::Plain));
    }
    let whole = if alone { "total" } else { "difference" };
    ends.push((whole.to_owned(), i128::from(found.delta_ns), Ink::Bold));
    for (name, delta, ink) in ends {
        let bars = if ink == Ink::Bold { u64::MAX } else { largest };
        let line = Line { name, counts: None, delta, largest: bars };
        table.push(Row { cells: cells(page, found, alone, decimals, line), ink, ..Row::default() });
    }
    table.print(page);
    print_notes(page, found, alone);
}

/// Whether the observer slowed the calls too much for their times to be used.
pub(super) fn is_inflated(record: &Race, found: &Attribution) -> bool {
    [&found.base, &found.other].into_iter().any(|label| {
        let trace = record.command(label).and_then(|one| one.trace.as_ref());
        trace.is_some_and(|trace| trace.observer.times_inflated || trace.ledger.is_empty())
    })
}

/// The content of a row.
struct Line {
    name: String,
    counts: Option<(u64, u64)>,
    delta: i128,
    /// The value of the longest bar; for `u64::MAX`, there is none.
    largest: u64,
}

/// Every label there is: heads of columns are known beforehand.
const LABELS: [&str; 26] = [
    "A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "L", "M", "N", "O", "P", "Q", "R", "S",
    "T", "U", "V", "W", "X", "Y", "Z",
];

pub(super) fn head(label: &str, otherwise: &'static str) -> &'static str {
    LABELS.iter().find(|known| **known == label).copied().unwrap_or(otherwise)
}

fn columns(found: &Attribution, alone: bool) -> [Column<'static>; 6] {
    let delta = if alone { "ms" } else { "Δ ms" };
    [
        Column::text("", 9),
        Column::number(if alone { "" } else { head(&found.base, "base") }, "calls", 6),
        Column::number(if alone { "" } else { head(&found.other, "other") }, "calls", 6),
        Column::number(delta, "", 8),
        Column::number("share", "", 7),
        Column::text("", 1),
    ]
}

fn cells(
    page: &Page<'_>,
    found: &Attribution,
    alone: bool,
    decimals: usize,
    line: Line,
) -> Vec<String> {
    let count = |n: u64| thousands(u128::from(n));
    let (base, other) = line.counts.map_or_else(Default::default, |(base, other)| {
        (if alone { String::new() } else { count(base) }, count(other))
    });
    let delta = fixed(line.delta as f64 / 1e6, decimals);
    // Shares are of the difference: terms of the opposite sign are below 0.
    let whole = u128::from(found.delta_ns.unsigned_abs());
    let part = line.delta * i128::from(found.delta_ns.signum());
    let bars = match line.largest {
        u64::MAX => String::new(),
        largest => bar(
            i128::try_from(line.delta.unsigned_abs()).unwrap_or(i128::MAX),
            u128::from(largest),
            BAR,
            page.unicode(),
        ),
    };
    let signed = if !alone && line.delta > 0 { format!("+{delta}") } else { delta };
    // A share of a difference near zero means nothing.
    let says_nothing = part.unsigned_abs() > whole.saturating_mul(10);
    let share = if says_nothing { String::new() } else { share(part, whole) };
    vec![line.name, base, other, signed, share, bars]
}

/// The terms that have time; operations of io_uring are said apart.
pub(super) fn timed(found: &Attribution) -> Vec<&Term> {
    found.terms.iter().filter(|term| term.kind != TermKind::Ring).collect()
}

/// How many terms get a row.
pub(super) fn rows(terms: &[&Term], moved: u128) -> usize {
    let large = |term: &&&Term| u128::from(term.delta_ns.unsigned_abs()) * SMALL >= moved;
    let shown = terms.iter().take(ROWS).take_while(large).count().max(1).min(terms.len());
    // A row "1 more" takes the place of the row itself.
    if shown + 1 == terms.len() { terms.len() } else { shown }
}

pub(super) fn title(page: &Page<'_>, found: &Attribution, alone: bool, decimals: usize) -> String {
    let what = match found.metric {
        Metric::Wall => "",
        Metric::Cpu => " of CPU time",
    };
    let (base, other) = (page.name(&found.base, 8), page.name(&found.other, 8));
    let ms = fixed(found.delta_ns as f64 / 1e6, decimals);
    match alone {
        true => format!("where {ms} ms{what} go"),
        false if found.delta_ns > 0 => format!("where +{ms} ms{what} come from, {base} → {other}"),
        false => format!("where {ms} ms{what} went, {base} → {other}"),
    }
}

/// Older records name these two terms in other words, so their names come from the kind.
pub(super) fn name(page: &Page<'_>, term: &Term) -> String {
    let name = page.name(&term.name, 28);
    match term.kind {
        TermKind::Blocked => format!("{name}, blocked"),
        TermKind::Runnable => "run queue delay".to_owned(),
        TermKind::Overlap => "overlap".to_owned(),
        TermKind::Ring => format!("{name}, ring operation"),
        _ => name,
    }
}

pub(super) fn counts(term: &Term) -> bool {
    matches!(term.kind, TermKind::Syscall | TermKind::Blocked | TermKind::Faults | TermKind::Ring)
        && term.calls_base.saturating_add(term.calls_other) > 0
}

/// The only side that makes it, the cost of a call, and whether the number can be trusted.
pub(super) fn remarks(found: &Attribution, term: &Term, alone: bool) -> Vec<String> {
    let mut remarks = Vec::new();
    if counts(term) && !alone {
        match (term.calls_base, term.calls_other) {
            (0, _) => remarks.push(format!("only in {}", head(&found.other, "the other"))),
            (_, 0) => remarks.push(format!("only in {}", head(&found.base, "the base"))),
            _ => {}
        }
    }
    if term.kind == TermKind::Syscall && term.delta_ns.unsigned_abs() < term.price_ns {
        remarks.push("below the overhead of tracing".to_owned());
    }
    remarks
}

/// Calls that replace each other: a program makes one where another makes the other.
const FAMILIES: &[&[&str]] = &[
    &[
        "read",
        "pread64",
        "readv",
        "preadv",
        "preadv2",
        "mmap",
        "recvfrom",
        "recvmsg",
        "splice",
        "sendfile",
        "copy_file_range",
        "io_uring_enter",
    ],
    &[
        "write",
        "pwrite64",
        "writev",
        "pwritev",
        "pwritev2",
        "sendto",
        "sendmsg",
        "splice",
        "vmsplice",
        "sendfile",
        "copy_file_range",
        "io_uring_enter",
    ],
    &["select", "pselect6", "poll", "ppoll", "epoll_wait", "epoll_pwait", "io_uring_enter"],
    &["stat", "lstat", "fstat", "newfstatat", "statx"],
    &["fork", "vfork", "clone", "clone3"],
    &["open", "openat", "openat2"],
];

/// The factor from which on a call counts as being of the side where it takes longer.
const MOSTLY: i64 = 4;

/// The call of one side that took the place of another's, where one did.
pub(super) fn replaced(page: &Page<'_>, found: &Attribution, decimals: usize) -> Option<String> {
    let calls = || found.terms.iter().filter(|term| term.kind == TermKind::Syscall);
    let lead = calls().next()?;
    let is_of = |one: i64, other: i64| one > other.saturating_mul(MOSTLY);
    let in_base = is_of(lead.base_ns, lead.other_ns);
    if found.base == found.other || in_base == is_of(lead.other_ns, lead.base_ns) {
        return None;
    }
    let took_over = |term: &&Term| match in_base {
        true => is_of(term.other_ns, term.base_ns),
        false => is_of(term.base_ns, term.other_ns),
    };
    let partner = calls().filter(took_over).find(|term| {
        term.delta_ns.unsigned_abs() > lead.delta_ns.unsigned_abs() / 50
            && FAMILIES
                .iter()
                .any(|all| all.contains(&lead.name.as_str()) && all.contains(&term.name.as_str()))
    })?;
    let (from, to) = if in_base { (lead, partner) } else { (partner, lead) };
    let both = i128::from(lead.delta_ns) + i128::from(partner.delta_ns);
    let ms = |ns: i128| fixed(ns as f64 / 1e6, decimals);
    let part = share(
        both * i128::from(found.delta_ns.signum()),
        u128::from(found.delta_ns.unsigned_abs()),
    );
    let each = |ns: i64, calls: u64| crate::numbers::duration(ns as f64 / calls.max(1) as f64);
    Some(format!(
        "{} → {}: {} ms of {} ms{}; {} calls of {} become {} of {}",
        page.name(&from.name, 28),
        page.name(&to.name, 28),
        ms(both),
        ms(i128::from(found.delta_ns)),
        if part.is_empty() { part } else { format!(", {part}") },
        thousands(u128::from(from.calls_base)),
        each(from.base_ns, from.calls_base),
        thousands(u128::from(to.calls_other)),
        each(to.other_ns, to.calls_other),
    ))
}

fn print_notes(page: &mut Page<'_>, found: &Attribution, alone: bool) {
    let notes = notes(page, found, alone);
    if !notes.is_empty() {
        page.wrapped(&[(Ink::Plain, "  ")], Ink::Dim, &notes.join(" · "));
    }
}

/// Notes that are needed to read the terms.
pub(super) fn notes(page: &Page<'_>, found: &Attribution, alone: bool) -> Vec<String> {
    if found.metric == Metric::Cpu {
        return Vec::new();
    }
    let has = |kind| found.terms.iter().any(|term| term.kind == kind && term.delta_ns != 0);
    let mut notes = Vec::new();
    let traced = |ns: u64| crate::numbers::duration(ns as f64);
    notes.push(match alone {
        true => format!("the traced run took {}", traced(found.traced_other_ns)),
        false => format!(
            "the traced runs took {} and {}",
            traced(found.traced_base_ns),
            traced(found.traced_other_ns)
        ),
    });
    if has(TermKind::Faults) {
        notes.push("page faults: their number times the cost of one on this machine".to_owned());
    }
    if has(TermKind::Overlap) {
        notes.push(
            "overlap: time that several processes or threads spent concurrently counts once"
                .to_owned(),
        );
    }
    notes.extend(rings(page, found, alone));
    notes
}

/// The requests to io_uring of both sides.
fn rings(page: &Page<'_>, found: &Attribution, alone: bool) -> Option<String> {
    let side = |of: fn(&Term) -> (u64, u64)| {
        let terms = found.terms.iter().filter(|term| term.kind == TermKind::Ring);
        let each = terms.map(|term| (term, of(term))).filter(|(_, (requests, _))| *requests > 0);
        let each = each.map(|(term, (requests, moved))| {
            let text = format!("{} {}", thousands(requests.into()), page.name(&term.name, 28));
            match moved {
                0 => text,
                moved => format!("{text} ({})", bytes(moved.into())),
            }
        });
        let each: Vec<String> = each.collect();
        if each.is_empty() { "none".to_owned() } else { each.join(", ") }
    };
    let base = side(|term| (term.calls_base, term.bytes_base));
    let other = side(|term| (term.calls_other, term.bytes_other));
    let text = match (alone, base.as_str(), other.as_str()) {
        (_, "none", "none") => return None,
        (true, ..) => other,
        (false, ..) => {
            format!("{} {base}; {} {other}", head(&found.base, "base"), head(&found.other, "other"))
        }
    };
    Some(format!(
        "requests to io_uring, whose time in flight is beside that of threads and no term: {text}"
    ))
}

/// Where the observer cannot time calls: how often each was made.
fn print_counts(page: &mut Page<'_>, found: &Attribution, alone: bool) {
    let mut terms: Vec<&Term> = found.terms.iter().collect();
    terms.sort_by_key(|term| std::cmp::Reverse(term.calls_base.abs_diff(term.calls_other)));
    let shown = if terms.len() <= ROWS + 1 { terms.len() } else { ROWS };
    page.blank();
    let title = if alone { "  calls" } else { "  calls of both, those that differ most first" };
    page.line(&[(Ink::Bold, title)]);
    let mut table = Table::new(&columns(found, alone)[..3]);
    for term in &terms[..shown] {
        let count = |n: u64| thousands(u128::from(n));
        let base = if alone { String::new() } else { count(term.calls_base) };
        table.push(Row {
            cells: vec![page.name(&term.name, 28), base, count(term.calls_other)],
            remarks: remarks(found, &Term { price_ns: 0, ..(*term).clone() }, alone),
            ink: Ink::Plain,
        });
    }
    table.print(page);
    if shown < terms.len() {
        let text = format!("  … {} more", terms.len() - shown);
        page.line(&[(Ink::Dim, &text)]);
    }
    let note = "this observer inflates the times of calls, so the difference is not accounted \
        for; try --observer bpf, as root";
    page.wrapped(&[(Ink::Plain, "  ")], Ink::Dim, note);
}
