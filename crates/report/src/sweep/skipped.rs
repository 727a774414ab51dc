//! The cases that were not measured, or not completely, and the reasons.

use iotomy_record::{Case, Sweep};

use super::label;
use crate::numbers::{counted, thousands};
use crate::page::{Ink, Page};

/// Most reasons that are listed.
const REASONS: usize = 40;

/// Cases that are named with a reason they share.
const NAMED: usize = 3;

pub(super) fn print(page: &mut Page<'_>, record: &Sweep) {
    let skipped = |case: &&Case| case.skipped.is_some() && !case.had_no_time();
    let cases: Vec<&Case> = record.cases.iter().filter(skipped).collect();
    if !cases.is_empty() {
        page.blank();
        page.line(&[(Ink::Bold, "skipped")]);
    }
    list(page, record, &cases, |case| case.skipped.as_deref());
    let late: Vec<&Case> = record.cases.iter().filter(|case| case.had_no_time()).collect();
    if !late.is_empty() {
        page.blank();
        let lead = format!("{} had no time: ", counted(late.len() as u128, "case", "cases"));
        let text = format!("{}; raise the limit with --max-time", named(page, record, &late));
        page.wrapped(&[(Ink::Bold, &lead)], Ink::Yellow, &text);
    }
    let noted: Vec<&Case> = record.cases.iter().filter(|case| case.note.is_some()).collect();
    list(page, record, &noted, |case| case.note.as_deref());
}

/// The cases with their reasons; those with one reason stand together, as there may be many.
fn list(
    page: &mut Page<'_>,
    record: &Sweep,
    cases: &[&Case],
    reason: impl Fn(&Case) -> Option<&str>,
) {
    let mut reasons: Vec<(&str, Vec<&Case>)> = Vec::new();
    for case in cases {
        let reason = reason(case).unwrap_or_default();
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, cases)) => cases.push(case),
            None => reasons.push((reason, vec![case])),
        }
    }
    let hidden = reasons.len().saturating_sub(REASONS);
    for (reason, cases) in reasons.iter().take(REASONS) {
        let text = format!("{}: {}", named(page, record, cases), page.sentence(reason));
        page.wrapped(&[(Ink::Plain, "  ")], Ink::Yellow, &text);
    }
    if hidden > 0 {
        page.line(&[(Ink::Dim, &format!("  {} more reasons", thousands(hidden as u128)))]);
    }
}

fn named(page: &Page<'_>, record: &Sweep, cases: &[&Case]) -> String {
    let labels = cases.iter().take(NAMED).map(|case| label(page, record, &case.params));
    let mut text = labels.collect::<Vec<_>>().join("; ");
    let more = cases.len().saturating_sub(NAMED);
    if more > 0 {
        text += &format!("; {} more", thousands(more as u128));
    }
    text
}
