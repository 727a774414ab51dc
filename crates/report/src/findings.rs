//! The findings with their advice, the gravest first.
//!
//! Computed by `trace` in `crates/findings/src/lib.rs` and `race` in `crates/findings/src/lib.rs`.

use iotomy_record::{Finding, Verdict};

use crate::page::{Ink, Page, columns};

/// Columns of text a finding may take in all, far above any of ours.
pub(crate) const TEXT: usize = 2_000;

pub(crate) fn print<'r>(page: &mut Page<'_>, findings: impl IntoIterator<Item = &'r Finding>) {
    let mut findings: Vec<&Finding> = findings.into_iter().collect();
    if findings.is_empty() {
        return;
    }
    findings.sort_by_key(|finding| grade(finding.verdict).0);
    let longest =
        findings.iter().map(|f| columns(grade(f.verdict).1)).max().unwrap_or(0).max("advice".len());
    page.blank();
    for finding in findings {
        let (_, word, ink) = grade(finding.verdict);
        let space = " ".repeat(longest - columns(word) + 2);
        let id = page.name(&finding.id, 40);
        let text = format!("{id}: {}", page.name(&finding.text, TEXT));
        page.wrapped(&[(Ink::Plain, "  "), (ink, word), (Ink::Plain, &space)], Ink::Plain, &text);
        if let Some(advice) = &finding.advice {
            let lead = format!("{}try: ", " ".repeat(longest + 4));
            let advice = page.name(advice, TEXT);
            page.wrapped(&[(Ink::Dim, &lead)], Ink::Green, &advice);
        }
    }
}

/// Rank, word and colour.
pub(crate) fn grade(verdict: Verdict) -> (u8, &'static str, Ink) {
    match verdict {
        Verdict::Impossible => (0, "impossible", Ink::Red),
        Verdict::Suspect => (1, "suspect", Ink::Yellow),
        Verdict::Advice => (2, "advice", Ink::Green),
        Verdict::Note => (3, "note", Ink::Dim),
    }
}
