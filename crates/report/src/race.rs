//! A [`Race`] as text: the faster command with its confidence, the commands, and the attribution
//! of the difference.

mod charts;
mod commands;
mod export;
mod headline;
mod section;
mod terms;
mod waterfall;

use iotomy_record::{Attribution, Metric, Race, RaceVerdict, Verdict};

use crate::anatomy::{self, SampleWarning};
use crate::page::{Ink, Page};
use crate::trace::{Warning, refusals};
use crate::{Style, findings};
pub use export::{race_csv, race_markdown};
pub(crate) use headline::ratio;
pub(crate) use section::section;

/// The record as the text a terminal shows, ending in a line break. Any record renders.
pub fn race(record: &Race, style: &Style) -> String {
    let mut page = Page::new(style);
    page.blank();
    headline::print(&mut page, record);
    commands::print(&mut page, record);
    if let Some(against) = &record.against {
        crate::history::print_against(&mut page, against);
    }
    for attribution in &record.attributions {
        if is_told(record, attribution) {
            waterfall::print(&mut page, record, attribution);
        }
    }
    // Impossible rates come first.
    let others = record.findings.iter().filter(|found| found.verdict != Verdict::Impossible);
    findings::print(&mut page, others);
    print_doubts(&mut page, record);
    print_how(&mut page, record);
    page.finish()
}

/// Whether a difference is attributed: for an impossible command there is none.
fn is_told(record: &Race, attribution: &Attribution) -> bool {
    let (base, other) = (&attribution.base, &attribution.other);
    let is_doubtful =
        headline::is_impossible(record, base) || headline::is_impossible(record, other);
    (base == other || !is_doubtful) && is_worth_it(record, base, other, attribution.metric)
}

/// A comparison without a difference, or without a significant one, has none to account for; where
/// there were too few runs for significance, the difference is shown.
fn is_worth_it(record: &Race, base: &str, other: &str, metric: Metric) -> bool {
    record
        .comparisons
        .iter()
        .find(|found| found.base == base && found.other == other && found.metric == metric)
        .is_none_or(|found| match found.verdict {
            RaceVerdict::Faster | RaceVerdict::Slower => true,
            RaceVerdict::NoDifference => false,
            RaceVerdict::Undecided => found.ci95 == [0.0, 0.0],
        })
}

/// A limitation of the traced or the sampled run of a command.
struct Doubt {
    ink: Ink,
    /// For the text.
    word: &'static str,
    /// For a page, where it stands alone.
    says: &'static str,
    text: String,
}

/// What the machine refused to the observers of the traced runs, and the limitations of the samples for the flame graph,
/// per command.
fn doubts(page: &Page<'_>, record: &Race) -> Vec<Doubt> {
    let mut doubts: Vec<Doubt> = Vec::new();
    for trace in record.commands.iter().filter_map(|one| one.trace.as_ref()) {
        for Warning { ink, word, text } in refusals(page, &trace.observer) {
            let text = format!("of the traced runs: {text}");
            if doubts.iter().all(|doubt| doubt.text != text) {
                doubts.push(Doubt { ink, word, says: word, text });
            }
        }
    }
    let sampled = record.commands.iter().filter_map(|one| Some((one, one.sampled.as_ref()?)));
    doubts.extend(sampled.flat_map(|(one, found)| {
        let label = page.name(&one.label, 20);
        let doubts = anatomy::doubts(&found.sampling, &found.calls).into_iter();
        doubts.map(move |SampleWarning { ink, word, says, text }| {
            let text = format!("of {label}, for the flame graph: {text}");
            Doubt { ink, word, says, text }
        })
    }));
    doubts
}

fn print_doubts(page: &mut Page<'_>, record: &Race) {
    let doubts = doubts(page, record);
    if !doubts.is_empty() {
        page.blank();
    }
    for doubt in doubts {
        let word = format!("{}  ", doubt.word);
        page.wrapped(&[(Ink::Plain, "  "), (doubt.ink, &word)], Ink::Plain, &doubt.text);
    }
}

/// The way to run the same race again.
fn print_how(page: &mut Page<'_>, record: &Race) {
    let parts = how(page, record);
    page.blank();
    page.wrapped(&[(Ink::Plain, "  ")], Ink::Dim, &parts.join(" · "));
}

fn how(page: &Page<'_>, record: &Race) -> Vec<String> {
    let plan = &record.plan;
    let mut parts = vec![format!("seed {}", plan.seed)];
    parts.push(format!("caches {}", page.name(&plan.cache, 20)));
    if plan.drop_caches {
        parts.push("all caches dropped".to_owned());
    }
    parts.push(format!("output to {}", page.name(&plan.output, 40)));
    parts.push(match plan.warmup {
        1 => "1 warm-up of each".to_owned(),
        n => format!("{n} warm-ups of each"),
    });
    let compared = record.comparisons.iter().filter(|found| found.metric == Metric::Wall).count();
    if let Some(error) = plan.shared_error.filter(|_| compared > 1) {
        let percent = crate::numbers::fixed(error * 100.0, 0);
        parts
            .push(format!("the {compared} comparisons share a false-positive rate of {percent} %"));
    }
    let observers = record.commands.iter().filter_map(|one| one.trace.as_ref());
    if let Some(trace) = observers.clone().next() {
        let name = page.name(&trace.observer.name, 20);
        let price = crate::numbers::duration_range(trace.observer.cost_range_ns());
        parts.push(format!("traced by {name}: overhead {price} a call, subtracted"));
    }
    parts
}

#[cfg(test)]
mod tests;
