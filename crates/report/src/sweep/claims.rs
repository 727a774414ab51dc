//! The verdict on each claim.

use iotomy_record::{ClaimVerdict, Sweep};

use super::merged;
use crate::page::{Ink, Page, columns};

pub(super) fn print(page: &mut Page<'_>, record: &Sweep) {
    if record.claims.is_empty() {
        return;
    }
    page.blank();
    let longest = ClaimVerdict::Inconclusive.name().len();
    for claim in &record.claims {
        let (word, ink) = match claim.verdict {
            ClaimVerdict::Holds => ("holds", Ink::Green),
            ClaimVerdict::Fails => ("fails", Ink::Red),
            ClaimVerdict::Inconclusive => ("inconclusive", Ink::Yellow),
        };
        let space = " ".repeat(longest - columns(word) + 2);
        let (id, source) = (page.name(&claim.id, 40), page.name(&claim.source, 20));
        let text = format!("{id} ({source}): {}", page.sentence(&claim.text));
        page.wrapped(&[(Ink::Plain, "  "), (ink, word), (Ink::Plain, &space)], Ink::Plain, &text);
        if !claim.because.is_empty() {
            let lead = " ".repeat(longest + 4);
            let because = page.sentence(&claim.because);
            page.wrapped(&[(Ink::Plain, &lead)], Ink::Dim, &because);
        }
        merged::print_verdicts(page, record, &claim.id, longest + 4);
    }
}
