//! The record's functions as a table.

use std::collections::BTreeMap;

use iotomy_record::{Anatomy, StackKind};

use super::stacks::{DEEPEST, stacks};
use crate::numbers::{counted, decimals_for, fixed, percent, thousands};
use crate::page::Page;
use crate::sheet::{Cell, Field, Sheet};

/// The times of a function.
#[derive(Default)]
struct Times {
    /// Time in the function itself, on a CPU and blocked.
    own: u128,
    asleep: u128,
    samples: u128,
    /// Including the functions it calls.
    all: u128,
}

fn by_function(record: &Anatomy) -> Vec<(&str, Times)> {
    let mut by_name: BTreeMap<&str, Times> = BTreeMap::new();
    for stack in &record.stacks {
        let ns = u128::from(stack.ns);
        let mut seen: Vec<&str> = stack.user.iter().take(DEEPEST).map(String::as_str).collect();
        let inside = seen.len();
        seen.extend(stack.frames.iter().take(DEEPEST).map(String::as_str));
        if let Some(innermost) = seen[inside..].last() {
            let times = by_name.entry(innermost).or_default();
            match stack.kind {
                StackKind::OnCpu => {
                    times.own += ns;
                    times.samples += u128::from(stack.samples);
                }
                StackKind::Blocked => times.asleep += ns,
            }
        }
        // One that calls itself is there once.
        seen.sort_unstable();
        seen.dedup();
        seen.iter().for_each(|name| by_name.entry(name).or_default().all += ns);
    }
    let mut rows: Vec<_> = by_name.into_iter().collect();
    rows.sort_by_key(|(_, times)| std::cmp::Reverse((times.own + times.asleep, times.all)));
    rows
}

/// Rows of the table of functions, at most: no program has as many in its stacks, a stranger's record might.
const MOST_FUNCTIONS: usize = 100_000;

/// Every function with its own time, and its time including callees.
pub(super) fn functions(page: &Page<'_>, record: &Anatomy) -> Sheet {
    let whole: u128 = stacks(record, 0).iter().map(|one| one.ns).sum();
    let decimals = decimals_for(whole as f64 / 1e6);
    let some = |n: u128, shown: String| Cell::whole(n, if n > 0 { shown } else { String::new() });
    let ms = |ns: u128| some(ns, fixed(ns as f64 / 1e6, decimals));
    let mut sheet = Sheet::new(
        "functions",
        "Functions",
        vec![
            Field::text("function", "function"),
            Field::number("on_cpu_ns", "innermost, on-CPU", "ms"),
            Field::number("samples", "samples", ""),
            Field::number("asleep_ns", "innermost, blocked", "ms"),
            Field::number("all_ns", "with its callees", "ms"),
            Field::number("all_percent", "share", "%"),
        ],
    );
    let all = by_function(record);
    if all.len() > MOST_FUNCTIONS {
        let more = counted((all.len() - MOST_FUNCTIONS) as u128, "function", "functions");
        sheet.notes.push(format!("{more} with less time of their own are omitted"));
    }
    for (name, times) in all.into_iter().take(MOST_FUNCTIONS) {
        let all = i128::try_from(times.all).unwrap_or(i128::MAX);
        let part = times.all as f64 / whole.max(1) as f64 * 100.0;
        sheet.push(vec![
            Cell::text(page.name(name, 100)),
            ms(times.own),
            some(times.samples, thousands(times.samples)),
            ms(times.asleep),
            ms(times.all),
            Cell::real(part, percent(all, whole)),
        ]);
    }
    sheet.folded = true;
    sheet
}

#[cfg(test)]
mod tests {
    use iotomy_record::Stack;

    use super::*;

    #[test]
    fn functions_beyond_any_number_a_program_has_are_left_out_of_the_table() {
        let mut record = iotomy_record::store::parse_anatomy(include_bytes!(
            "../../../../docs/examples/dd-to-disk.json"
        ))
        .unwrap();
        let stack = |at: usize| Stack {
            frames: (0..100).map(|depth| format!("{at}.{depth}")).collect(),
            ns: 1,
            ..Stack::default()
        };
        record.stacks = (0..1_001).map(stack).collect();
        let style = crate::sheet::wide_style();
        let sheet = functions(&Page::new(&style), &record);
        assert_eq!(sheet.rows.len(), MOST_FUNCTIONS);
        assert_eq!(sheet.notes, ["100 functions with less time of their own are omitted"]);
    }
}
