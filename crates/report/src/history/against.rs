//! A record against an earlier one: the differences of their conditions, then a row per measure.
//!
//! Computed by `against` in `crates/history/src/against.rs` and `apart` in `crates/stats/src/sessions.rs`.

use iotomy_record::{Against, Change, Difference, RaceVerdict};

use super::{amount, when};
use crate::Style;
use crate::numbers::{counted, fixed};
use crate::page::{Ink, Page};
use crate::sheet::{Cell, Field, Sheet, name};
use crate::table::{Column, Row, Table};

/// Rows of measures.
const MOST: usize = 60;

/// The comparison as the text a terminal shows, ending in a line break.
pub fn against(record: &Against, style: &Style) -> String {
    let mut page = Page::new(style);
    print(&mut page, record);
    page.finish()
}

pub(crate) fn print(page: &mut Page<'_>, record: &Against) {
    page.blank();
    let name = page.name(&record.baseline, 60);
    let head = format!("  against {name}, of {}", when(page, &record.started));
    page.line(&[(Ink::Bold, &head), (Ink::Dim, &runs(record))]);
    for difference in &record.differences {
        print_difference(page, difference);
    }
    print_changes(page, record);
    page.wrapped(&[(Ink::Plain, "  ")], Ink::Dim, &what_it_rests_on(record));
    if let Some(text) = what_would_decide(page, record) {
        page.wrapped(&[(Ink::Plain, "  to decide  ")], Ink::Green, &text);
    }
}

/// The runs of the history that the baseline is, where they are several.
fn runs(record: &Against) -> String {
    const MOST: usize = 8;
    if record.runs.len() < 2 {
        return String::new();
    }
    let left_out = record.runs.len().saturating_sub(MOST);
    let newest = record.runs.iter().skip(left_out).map(u64::to_string);
    let newest: Vec<String> = newest.collect();
    let before = if left_out > 0 { format!("{left_out} older, ") } else { String::new() };
    format!("   {} sessions: {before}runs {}", record.runs.len(), newest.join(", "))
}

fn print_difference(page: &mut Page<'_>, difference: &Difference) {
    if let Some((command, whose)) = in_one_only(difference) {
        let text = format!("{}, only in the {whose} run", page.name(command, 200));
        page.wrapped(&[(Ink::Dim, "  left out     ")], Ink::Plain, &text);
        return;
    }
    let (ink, lead) = match difference.matters {
        true => (Ink::Yellow, "  differs      "),
        false => (Ink::Dim, "  differs too  "),
    };
    let what = page.name(&difference.what, 40);
    let or_none = |text: &str| match text.is_empty() {
        true => "none".to_owned(),
        false => page.name(text, 200),
    };
    let text = format!("{what}: {} → {}", or_none(&difference.then), or_none(&difference.now));
    page.wrapped(&[(ink, lead)], Ink::Plain, &text);
}

/// A command without a counterpart, and its side.
fn in_one_only(difference: &Difference) -> Option<(&str, &'static str)> {
    let Difference { what, then, now, .. } = difference;
    match (then.is_empty(), now.is_empty()) {
        _ if what != Difference::COMMAND => None,
        (false, true) => Some((then, "earlier")),
        (true, false) => Some((now, "later")),
        _ => None,
    }
}

/// The same as tables of a report: a row a measure, and the conditions that differ.
pub(crate) fn sheets(page: &Page<'_>, record: &Against) -> Vec<Sheet> {
    let mut sheets = vec![changes(page, record)];
    if !record.differences.is_empty() {
        sheets.push(differences(page, record));
    }
    sheets
}

fn changes(page: &Page<'_>, record: &Against) -> Sheet {
    let baseline = page.name(&record.baseline, 60);
    let mut sheet = Sheet::new(
        "against",
        &format!("Against {baseline}, of {}", when(page, &record.started)),
        vec![
            Field::text("measure", "measure"),
            Field::text("subject", "of"),
            Field::number("then", "then", ""),
            Field::number("now", "now", ""),
            Field::number("ratio", "now ÷ then", ""),
            Field::number("ratio_low", "95 % CI from", ""),
            Field::number("ratio_high", "to", ""),
            Field::text("verdict", "now it is"),
            Field::number("runs_then", "runs then", ""),
            Field::number("runs_now", "runs now", ""),
            Field::text("unit", "recorded in"),
        ],
    );
    for change in &record.changes {
        let value = |value: f64| Cell::real(value, amount(value, &change.unit));
        let of_1 = |x: f64| Cell::real(x, ratio(x));
        let [low, high] = Cell::ends(change.ci95, of_1);
        let is = match change.verdict {
            None if change.then == change.now => "the same",
            None => "changed",
            Some(_) => verdict(change),
        };
        sheet.push(vec![
            Cell::text(page.name(&change.measure, 60)),
            Cell::text(name(page, &change.subject)),
            value(change.then),
            value(change.now),
            Cell::from_option(change.ratio, of_1),
            low,
            high,
            Cell::text(is),
            Cell::count(change.runs_then),
            Cell::count(change.runs_now),
            Cell::text(page.name(&change.unit, 20)),
        ]);
    }
    sheet.notes.push(what_it_rests_on(record));
    sheet.notes.extend(what_would_decide(page, record).map(|text| format!("to decide: {text}")));
    sheet.without_empty_columns()
}

fn differences(page: &Page<'_>, record: &Against) -> Sheet {
    let heads = [("what", "condition"), ("then", "then"), ("now", "now"), ("so", "so")];
    let fields = heads.map(|(key, head)| Field::text(key, head));
    let mut sheet = Sheet::new("differences", "Different conditions", fields.into());
    for one in &record.differences {
        let so = match in_one_only(one) {
            Some((_, whose)) => format!("left out: only in the {whose} run"),
            None if one.matters => "may be the cause: no verdict".to_owned(),
            None => "does not matter".to_owned(),
        };
        let cells = [page.name(&one.what, 40), name(page, &one.then), name(page, &one.now), so];
        sheet.push(cells.map(Cell::text).into());
    }
    sheet
}

fn print_changes(page: &mut Page<'_>, record: &Against) {
    let is_same = |change: &&Change| change.verdict.is_none() && change.then == change.now;
    let same = record.changes.iter().filter(is_same).count();
    let mut rows: Vec<&Change> = record.changes.iter().filter(|one| !is_same(one)).collect();
    let left_out = rows.len().saturating_sub(MOST);
    rows.truncate(MOST);
    let has_several = rows.iter().any(|row| row.subject != rows[0].subject);
    let mut table = Table::new(&[
        Column::text("", 9),
        Column::number("then", "", 8),
        Column::number("now", "", 8),
        Column::number("now ÷ then", "", 9),
        Column::text("95 % CI", 7),
        Column::text("", 9),
    ]);
    for change in rows {
        let measure = page.name(&change.measure, 60);
        let first = match has_several {
            true => format!("{}: {measure}", page.name(&change.subject, 40)),
            false => measure,
        };
        table.push(Row {
            cells: vec![
                first,
                amount(change.then, &change.unit),
                amount(change.now, &change.unit),
                change.ratio.map_or_else(String::new, ratio),
                change.ci95.map_or_else(String::new, |[low, high]| {
                    format!("{} … {}", ratio(low), ratio(high))
                }),
                verdict(change).to_owned(),
            ],
            remarks: Vec::new(),
            ink: ink(change.verdict),
        });
    }
    table.print(page);
    let mut rest = Vec::new();
    if same > 0 {
        rest.push(format!("{} the same", counted(same as u128, "count is", "counts are")));
    }
    if left_out > 0 {
        rest.push(format!("{} not shown", counted(left_out as u128, "measure", "measures")));
    }
    if !rest.is_empty() {
        page.wrapped(&[(Ink::Plain, "  ")], Ink::Dim, &rest.join("; "));
    }
}

fn ink(verdict: Option<RaceVerdict>) -> Ink {
    match verdict {
        Some(RaceVerdict::Faster) => Ink::Green,
        Some(RaceVerdict::Slower) => Ink::Yellow,
        _ => Ink::Plain,
    }
}

fn verdict(change: &Change) -> &'static str {
    match change.verdict {
        Some(RaceVerdict::Faster) => "faster",
        Some(RaceVerdict::Slower) => "slower",
        Some(RaceVerdict::NoDifference) => "no difference",
        Some(RaceVerdict::Undecided) => "undecided",
        None => "",
    }
}

/// Why there are the verdicts there are.
fn what_it_rests_on(record: &Against) -> String {
    let mut parts = vec![
        "the two were not run in turn: the difference includes any change of the machine in \
         between"
            .to_owned(),
    ];
    let judged = record.changes.iter().filter(|change| change.verdict.is_some());
    if record.differences.iter().any(|difference| difference.matters) {
        parts.push("no verdict: the different conditions may be the cause".to_owned());
    } else if let Some(change) = judged.clone().min_by_key(|change| change.sessions) {
        let least = fixed(change.min_effect * 100.0, 0);
        let below = format!("a change below {least} % counts as no difference");
        parts.push(match (change.ci95, change.sessions) {
            (None, _) => "too few measurements for a confidence interval".to_owned(),
            (_, 0..3) => {
                format!("the baseline has too few sessions to estimate their variation: {below}")
            }
            (_, sessions) => {
                format!(
                    "the variation between sessions is estimated from the {sessions} of the \
                     baseline; {below}"
                )
            }
        });
        parts.extend(judged.clone().find_map(disagreement));
        if let Some(first) = judged.clone().next() {
            parts.push(format!("{} and {} runs", first.runs_then, first.runs_now));
        }
    }
    parts.join(" · ")
}

/// That the sessions of a baseline lie far apart.
fn disagreement(change: &Change) -> Option<String> {
    let [low, high] = change.range.filter(|[low, high]| *low > 0.0 && high / low > 1.1)?;
    let (low, high) = (amount(low, &change.unit), amount(high, &change.unit));
    Some(format!("its sessions measured {low} … {high}"))
}

/// The advice where there is no verdict.
fn what_would_decide(page: &Page<'_>, record: &Against) -> Option<String> {
    let name = page.name(&record.baseline, 60);
    // No run can be kept by the number of another.
    let is_number = record.baseline.bytes().all(|byte| byte.is_ascii_digit());
    let undecided =
        || record.changes.iter().filter(|change| change.verdict == Some(RaceVerdict::Undecided));
    let first = undecided().next()?;
    if record.differences.iter().any(|difference| difference.matters) {
        return Some(
            "keep a baseline under the conditions of this run, with --save=NAME".to_owned(),
        );
    }
    let ways = [
        undecided().filter_map(|change| change.more_runs).max().map(|more| {
            format!("about {} of this one", counted(u128::from(more), "more run", "more runs"))
        }),
        (first.sessions < 3).then(|| match is_number {
            false => format!(
                "a baseline of at least 3 sessions: repeat the earlier one with --save={name}"
            ),
            true => "a baseline of at least 3 sessions: keep them by one name, with --save=NAME"
                .to_owned(),
        }),
        (first.unit == "ns").then(|| {
            "both in turn on this machine: `iotomy race` with the earlier and the later command"
                .to_owned()
        }),
    ];
    let ways: Vec<String> = ways.into_iter().flatten().collect();
    let judged = record.changes.iter().filter(|change| change.verdict.is_some()).count();
    let mut of: Vec<String> = undecided().map(|change| page.name(&change.measure, 30)).collect();
    of.dedup();
    // Where another measure is decided, the present one is named.
    let of = match of.len() {
        1..=3 if undecided().count() < judged => format!("{}: ", of.join(", ")),
        _ => String::new(),
    };
    (!ways.is_empty()).then(|| format!("{of}{}", ways.join("; or ")))
}

/// A ratio with its significant digits.
fn ratio(x: f64) -> String {
    match x {
        x if !x.is_finite() => "∞".to_owned(),
        x if x >= 100.0 => crate::numbers::figure(x),
        x if (0.9..1.1).contains(&x) => format!("{x:.3}"),
        x => format!("{x:.2}"),
    }
}
