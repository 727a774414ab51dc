//! [`DRun`] as text: what ran, the program's output, and the aggregations that it did not print.
//!
//! The values are those that `iotomy d` printed, in its order; keys stand in columns.

mod section;

use iotomy_record::{DKey, DRow, DRun};

pub(crate) use section::section;

use crate::Style;
use crate::escape::csv_field;
use crate::numbers::{bytes, counted, duration, thousands};
use crate::page::{Ink, Page, columns};
use crate::table::{Column, Row, Table};

/// Columns that a name takes at most.
const NAME: usize = 400;

/// Lines of output, and rows of an aggregation, that are shown at most.
const MOST_LINES: usize = 2_000;

/// The longest bar of a distribution.
const BAR: usize = 40;

/// The rows of an aggregation: those of one name and function that stand behind each other.
struct Group<'r> {
    rows: &'r [DRow],
    /// How many keys the rows have at most.
    keys: usize,
}

fn groups(record: &DRun) -> Vec<Group<'_>> {
    let same = |one: &DRow, other: &DRow| {
        (&one.name, &one.kind, one.is_distribution())
            == (&other.name, &other.kind, other.is_distribution())
    };
    let of = |rows| Group { rows, keys: most_keys(rows) };
    record.aggregations.chunk_by(same).map(of).collect()
}

fn most_keys(rows: &[DRow]) -> usize {
    rows.iter().map(|row| row.keys.len()).max().unwrap_or(0).min(64)
}

/// The record as the text a terminal shows, ending in a line break. Any record renders, a hostile one
/// included.
pub fn d(record: &DRun, style: &Style) -> String {
    let mut page = Page::new(style);
    let title = page.name(&title(record), NAME);
    page.wrapped(&[(Ink::Plain, "  ")], Ink::Bold, &title);
    let mut says = vec![
        page.name(&record.started, 40),
        format!("probes attached for {}", duration(record.wall_ns as f64)),
    ];
    says.extend(record.status.map(|status| format!("exit({status})")));
    page.wrapped(&[(Ink::Plain, "  ")], Ink::Dim, &says.join("; "));
    print_output(&mut page, record);
    for group in groups(record).iter().filter(|group| !group.rows[0].printed) {
        page.blank();
        print_group(&mut page, group);
    }
    for (_, text) in losses(&page, record) {
        page.blank();
        page.wrapped(&[(Ink::Plain, "  ")], Ink::Yellow, &text);
    }
    page.finish()
}

/// The program and what it ran for.
fn title(record: &DRun) -> String {
    let mut words = vec!["d".to_owned(), record.script.clone()];
    if record.script == "-n" {
        words.push(record.program.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    words.extend(record.arguments.iter().cloned());
    if !record.command.is_empty() {
        words.extend(["-c".to_owned(), record.command.join(" ")]);
    }
    words.join(" ")
}

fn print_output(page: &mut Page<'_>, record: &DRun) {
    if record.output.is_empty() {
        return;
    }
    page.blank();
    for line in record.output.lines().take(MOST_LINES) {
        let line = page.name(line, NAME);
        page.line(&[(Ink::Plain, &line)]);
    }
    let more = record.output.lines().count().saturating_sub(MOST_LINES);
    if more > 0 {
        let text = counted(more as u128, "more line", "more lines");
        page.line(&[(Ink::Dim, &text)]);
    }
}

fn print_group(page: &mut Page<'_>, group: &Group<'_>) {
    let title = page.name(&format!("@{} {}", group.rows[0].name, group.rows[0].kind), NAME);
    page.line(&[(Ink::Bold, &format!("  {title}"))]);
    let shown = &group.rows[..group.rows.len().min(MOST_LINES)];
    if shown[0].is_distribution() {
        for row in shown {
            print_distribution(page, row);
        }
    } else {
        let heads: Vec<String> = (1..=group.keys).map(|key| format!("key {key}")).collect();
        let mut all: Vec<Column<'_>> = heads.iter().map(|head| Column::text(head, 8)).collect();
        all.push(Column::number("value", "", 10));
        if group.keys == 0 {
            // The first column is the one that stays.
            all.insert(0, Column::text("", 8));
        }
        let mut table = Table::new(&all);
        for row in shown {
            let mut cells: Vec<String> = row.keys.iter().map(|key| key_text(page, key)).collect();
            cells.resize(group.keys.max(1), String::new());
            cells.push(row.shown_value().map_or_else(String::new, |value| value.to_string()));
            table.push(Row { cells, ..Row::default() });
        }
        table.print(page);
    }
    let more = group.rows.len() - shown.len();
    if more > 0 {
        let text = counted(more as u128, "more key", "more keys");
        page.line(&[(Ink::Dim, &format!("  {text}"))]);
    }
}

/// A key in one line: the frames of a stack stand behind each other.
fn key_text(page: &Page<'_>, key: &DKey) -> String {
    let text = key.to_string();
    let lines: Vec<&str> = text.lines().collect();
    page.name(if lines.len() > 1 { lines.join(" < ") } else { text }.as_str(), 120)
}

fn keys_text(page: &Page<'_>, row: &DRow) -> String {
    row.keys.iter().map(|key| key_text(page, key)).collect::<Vec<_>>().join(", ")
}

/// A bucket's label and its count, with a label alone where buckets are left out.
fn buckets(row: &DRow) -> Vec<(String, Option<i64>)> {
    let mut all = Vec::new();
    let mut last: Option<i64> = None;
    for bucket in &row.buckets {
        if last.is_some_and(|last| bucket.low.and_then(|low| low.checked_sub(1)) != Some(last)) {
            all.push(("...".to_owned(), None));
        }
        let label = match (bucket.low, bucket.high) {
            (Some(low), Some(_)) => low.to_string(),
            (Some(low), None) if row.kind == "quantize" => low.to_string(),
            (Some(low), None) => format!(">= {low}"),
            (None, Some(high)) => format!("<= {high}"),
            (None, None) => "any".to_owned(),
        };
        all.push((label, Some(row.divided(bucket.count))));
        last = bucket.high;
    }
    all
}

fn print_distribution(page: &mut Page<'_>, row: &DRow) {
    let keys = keys_text(page, row);
    if !keys.is_empty() {
        page.line(&[(Ink::Plain, &format!("  {keys}"))]);
    }
    let rows = buckets(row);
    let size = |count: &Option<i64>| count.map_or(0, |count| u128::from(count.unsigned_abs()));
    let total: u128 = rows.iter().map(|(_, count)| size(count)).sum();
    let labels = rows.iter().map(|(label, _)| columns(label)).max().unwrap_or(0).max(12);
    let counts = rows.iter().map(|(_, count)| count.unwrap_or(0).to_string().len()).max();
    let bar = BAR.min(page.width().saturating_sub(labels + 6 + counts.unwrap_or(0).max(5))).max(4);
    let head = format!("{:-^bar$}", if bar >= 18 { " Distribution " } else { "" });
    page.line(&[(Ink::Dim, &format!("  {:>labels$}  {head} count", "value"))]);
    for (label, count) in &rows {
        let text = match count {
            Some(number) => {
                let length = (size(count) * 2 * bar as u128 / total.max(1)).div_ceil(2) as usize;
                format!("  {label:>labels$} |{:<bar$} {number}", "@".repeat(length.min(bar)))
            }
            None => format!("  {label:>labels$}"),
        };
        page.line(&[(if count.is_some() { Ink::Plain } else { Ink::Dim }, &text)]);
    }
}

/// What was lost, and what failed: a short text and a longer one.
fn losses(page: &Page<'_>, record: &DRun) -> Vec<(&'static str, String)> {
    let listed = |of: &std::collections::BTreeMap<String, u64>| {
        let each = of.iter().map(|(name, count)| {
            format!("{} {}", thousands((*count).into()), page.name(name, 120))
        });
        each.collect::<Vec<_>>().join(", ")
    };
    let mut all = Vec::new();
    if !record.drops.is_empty() {
        all.push(("lost", format!("lost: {}", listed(&record.drops))));
    }
    if !record.faults.is_empty() {
        all.push(("errors", format!("clauses ended by errors: {}", listed(&record.faults))));
    }
    if record.output_cut_bytes > 0 {
        let text = format!("{} of output were not kept", bytes(record.output_cut_bytes.into()));
        all.push(("output", text));
    }
    all
}

/// All aggregations as CSV: a line per value, and per bucket of a distribution.
pub fn d_csv(record: &DRun) -> String {
    let keys = most_keys(&record.aggregations);
    let mut heads = vec!["aggregation".to_owned(), "function".to_owned()];
    heads.extend((1..=keys).map(|key| format!("key{key}")));
    heads.extend(["low", "high", "value"].map(str::to_owned));
    let mut text = heads.join(",") + "\n";
    let number = |value: Option<i64>| value.map_or_else(String::new, |value| value.to_string());
    for row in &record.aggregations {
        let mut start = vec![csv_field(&row.name), csv_field(&row.kind)];
        start.extend(row.keys.iter().take(keys).map(|key| match key {
            DKey::Text(text) => csv_field(text),
            // A number is one to a spreadsheet, its sign included.
            key => key.to_string(),
        }));
        start.resize(2 + keys, String::new());
        let mut line = |low, high, value: i64| {
            let end = [number(low), number(high), value.to_string()];
            text += &(start.join(",") + "," + &end.join(",") + "\n");
        };
        match row.shown_value() {
            Some(value) => line(None, None, value),
            None => {
                for bucket in &row.buckets {
                    line(bucket.low, bucket.high, row.divided(bucket.count));
                }
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use iotomy_record::store::Record;
    use iotomy_record::{DBucket, Machine, arbitrary};
    use proptest::prelude::*;

    use super::*;
    use crate::looks;

    fn record() -> DRun {
        let row = |name: &str, kind: &str, keys: &[DKey], value| DRow {
            name: name.to_owned(),
            kind: kind.to_owned(),
            keys: keys.to_vec(),
            value,
            ..DRow::default()
        };
        let text = |text: &str| DKey::Text(text.to_owned());
        let bucket = |low, high, count| DBucket { low: Some(low), high: Some(high), count };
        let sizes = DRow {
            buckets: vec![bucket(0, 0, 1), bucket(512, 1023, 2), bucket(1024, 2047, 23)],
            ..row("sizes", "quantize", &[text("dd")], None)
        };
        DRun {
            schema: DRun::SCHEMA.to_owned(),
            started: "2026-01-02T03:04:05Z".to_owned(),
            machine: Machine { kernel: "Linux 6.1".to_owned(), ..Machine::default() },
            script: "sizes.d".to_owned(),
            program: "syscall::read:return\n{ @ = count(); }\n".to_owned(),
            arguments: vec!["7".to_owned()],
            command: vec!["dd".to_owned(), "count=23".to_owned()],
            wall_ns: 1_500_000,
            status: Some(3),
            aggregations: vec![
                row("", "count", &[text("dd"), DKey::Integer(-1)], Some(7)),
                DRow {
                    normal: Some(10),
                    ..row("", "count", &[text("cat"), DKey::Integer(8192)], Some(230))
                },
                sizes,
                DRow { printed: true, ..row("all", "sum", &[], Some(9)) },
            ],
            output: "a line\nall 9\n".to_owned(),
            drops: [("keys of aggregations".to_owned(), 12)].into(),
            ..DRun::default()
        }
    }

    #[test]
    fn a_run_prints_its_output_and_the_aggregations_that_it_did_not_print() {
        insta::assert_snapshot!(d(&record(), &Style::default()));
    }

    #[test]
    fn csv_has_a_line_for_each_value_and_bucket() {
        let lines = [
            "aggregation,function,key1,key2,low,high,value",
            ",count,dd,-1,,,7",
            ",count,cat,8192,,,23",
            "sizes,quantize,dd,,0,0,1",
            "sizes,quantize,dd,,512,1023,2",
            "sizes,quantize,dd,,1024,2047,23",
            "all,sum,,,,,9",
        ];
        assert_eq!(d_csv(&record()), lines.join("\n") + "\n");
    }

    #[test]
    fn a_page() {
        insta::assert_snapshot!(looks::page_alone(&Record::D(Box::new(record()))));
    }

    #[test]
    fn other_forms() {
        insta::assert_snapshot!(looks::other_forms(&Record::D(Box::new(record()))));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn any_record_renders_within_its_width(
            record in arbitrary::d(), width in 0usize..200, unicode: bool,
        ) {
            looks::keeps_to(width, unicode, |style| d(&record, style));
        }

        #[test]
        fn colour_changes_nothing_else(record in arbitrary::d()) {
            looks::is_only_coloured(|style| d(&record, style));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn any_record_is_inert_in_every_form(record in arbitrary::d()) {
            looks::is_inert(&Record::D(Box::new(record)));
        }
    }
}
