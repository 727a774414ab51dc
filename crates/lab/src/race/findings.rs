//! What a race's reader should know before believing its numbers.

use std::collections::BTreeMap;

use iotomy_record::{Contender, Finding, Metric, Race, Verdict};
use serde_json::{Value, json};

use super::attribution::less_price;

/// Of a contender that was not traced.
pub(super) fn untraced(label: &str, why: String) -> Finding {
    let text = format!("{label} was not traced, so no difference to it is accounted for: {why}");
    finding("untraced", Verdict::Note, text, [], None)
}

/// Adds what the record itself shows; `strays` are processes left behind, by contender.
pub(super) fn add(race: &mut Race, strays: &[usize]) {
    let mut found = Vec::new();
    for (contender, strays) in race.contenders.iter().zip(strays) {
        found.extend(failures(contender));
        found.extend(traced_otherwise(contender));
        if *strays > 0 {
            let label = &contender.label;
            let text = format!(
                "{label} left processes running when it ended, {strays} in all; they were killed \
                 before the next run, and their time is in no figure"
            );
            found.push(finding(
                "left-behind",
                Verdict::Suspect,
                text,
                [("left", json!(strays))],
                None,
            ));
        }
    }
    found.extend(outputs(race));
    found.extend(shells(race));
    found.extend(disturbed(race));
    if race.contenders.iter().any(|contender| !contender.denied.is_empty()) {
        let text = "every contender ran with a seccomp filter, those that were denied nothing \
                    with an empty one: what filtering costs is the same for all";
        found.push(finding("filtered", Verdict::Note, text.to_owned(), [], None));
    }
    race.findings.extend(found);
}

fn finding<const N: usize>(
    id: &str,
    verdict: Verdict,
    text: String,
    evidence: [(&str, Value); N],
    advice: Option<&str>,
) -> Finding {
    Finding {
        id: id.to_owned(),
        verdict,
        text,
        evidence: evidence.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
        advice: advice.map(str::to_owned),
    }
}

fn failures(contender: &Contender) -> Option<Finding> {
    let (label, failed, all) = (&contender.label, contender.failures, contender.runs.len());
    (failed > 0).then(|| {
        let text = format!("{failed} of {all} timed runs of {label} failed");
        let evidence = [("failed", json!(failed)), ("runs", json!(all))];
        finding("failures", Verdict::Suspect, text, evidence, None)
    })
}

/// A traced run that is not like the timed ones explains little.
fn traced_otherwise(contender: &Contender) -> Option<Finding> {
    let trace = contender.trace.as_ref().filter(|trace| !trace.observer.times_inflated)?;
    let (traced, timed) = (less_price(trace), contender.wall.median_ns);
    let ratio = traced / timed.max(1.0);
    (!(0.8..=1.25).contains(&ratio)).then(|| {
        let text = format!(
            "the traced run of {} took {:.2} × the median of the timed ones, the observer's price \
             taken off: its terms are of that run",
            contender.label, ratio
        );
        let evidence = [("traced_ns", json!(traced)), ("timed_ns", json!(timed))];
        finding("traced-otherwise", Verdict::Suspect, text, evidence, None)
    })
}

/// Who writes another number of bytes may do other work.
fn outputs(race: &Race) -> Vec<Finding> {
    let bytes = |contender: &Contender| -> Option<u64> {
        let mut seen = contender.runs.iter().map(|run| run.output_bytes);
        let first = seen.next()??;
        seen.all(|bytes| bytes == Some(first)).then_some(first)
    };
    let pairs = race.comparisons.iter().filter(|comparison| comparison.metric == Metric::Wall);
    pairs
        .filter_map(|pair| {
            let (a, b) = (race.contender(&pair.base)?, race.contender(&pair.other)?);
            let (x, y) = (bytes(a)?, bytes(b)?);
            (x != y).then(|| {
                let text = format!(
                    "{} wrote {x} bytes to standard output and {} {y}: did they do the same work?",
                    a.label, b.label
                );
                let evidence = [("base_bytes", json!(x)), ("other_bytes", json!(y))];
                finding("different-output", Verdict::Suspect, text, evidence, None)
            })
        })
        .collect()
}

/// A shell on one side only is part of that side's time.
fn shells(race: &Race) -> Option<Finding> {
    let startup = race.harness.shell_startup_ns?;
    let under: Vec<&Contender> = race.contenders.iter().filter(|one| one.shell).collect();
    let largest = under.iter().map(|one| startup as f64 / one.wall.median_ns.max(1.0));
    let share = largest.max_by(f64::total_cmp)?;
    if share < 0.02 || under.len() == race.contenders.len() && share < 0.2 {
        return None;
    }
    let labels: Vec<&str> = under.iter().map(|one| one.label.as_str()).collect();
    let others = if under.len() < race.contenders.len() { ", and the others do not" } else { "" };
    let text = format!(
        "{} run{} under sh{others}: its start-up is up to {:.0} % of the time",
        labels.join(", "),
        if labels.len() == 1 { "s" } else { "" },
        share * 100.0
    );
    let evidence = [("startup_ns", json!(startup)), ("share", json!(share))];
    let advice = "a command without redirections, pipes and variables runs without a shell";
    Some(finding("shell", Verdict::Note, text, evidence, Some(advice)))
}

fn disturbed(race: &Race) -> Option<Finding> {
    let marked: Vec<_> = race.blocks.iter().filter(|block| !block.disturbed.is_empty()).collect();
    if marked.is_empty() {
        return None;
    }
    // The largest of each kind stands for it: without its figures, a reason is the same in all.
    let mut reasons: BTreeMap<String, (u64, u64, &str)> = BTreeMap::new();
    for reason in marked.iter().flat_map(|block| &block.disturbed) {
        let words: String = reason.chars().filter(|c| !c.is_ascii_digit()).collect();
        let figures: String = reason.chars().filter(char::is_ascii_digit).collect();
        let figure = figures.parse().unwrap_or(0);
        let (blocks, largest, text) = reasons.entry(words).or_insert((0, figure, reason));
        *blocks += 1;
        if figure > *largest {
            (*largest, *text) = (figure, reason);
        }
    }
    let reasons: Vec<String> = reasons
        .values()
        .map(|(blocks, _, text)| match blocks {
            1 => format!("{text} in one"),
            _ => format!("{text} at worst, in {blocks}"),
        })
        .collect();
    let redone = marked.iter().filter(|block| block.redone).count();
    let text = format!(
        "{} of {} blocks were disturbed, {redone} of them redone: {}",
        marked.len(),
        race.blocks.len(),
        reasons.join("; ")
    );
    let evidence = [("disturbed", json!(marked.len())), ("redone", json!(redone))];
    let advice = (marked.len() > redone).then_some("a quieter machine, or --redo N");
    Some(finding("disturbed", Verdict::Note, text, evidence, advice))
}
