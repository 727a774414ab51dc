//! The answer: one line per pair of commands, with its interval and its basis.
//!
//! Computed by `compare` in `crates/race/src/compare.rs` and
//! `interim_test` in `crates/stats/src/sequential.rs`.

use iotomy_record::{Comparison, Exit, Metric, Race, RaceCommand, RaceVerdict, Verdict};

use crate::numbers::{counted, duration};
use crate::page::{Ink, Page, columns};

/// An answer and its basis.
pub(super) struct Answer {
    pub(super) ink: Ink,
    pub(super) answer: String,
    pub(super) rest: String,
}

pub(super) fn print(page: &mut Page<'_>, record: &Race) {
    print_impossible(page, record);
    for said in answers(page, record) {
        print_answer(page, &said);
    }
}

/// The result of the race: for one command alone, how long it takes; otherwise a line per
/// comparison of possible times.
pub(super) fn answers(page: &Page<'_>, record: &Race) -> Vec<Answer> {
    let mut answers: Vec<Answer> = interrupted(record).into_iter().collect();
    if record.comparisons.is_empty() {
        answers.extend(record.commands.iter().map(|one| {
            match killed_runs(page, record, &one.label) {
                None => alone(page, one),
                Some(rest) => {
                    let answer = format!("no result for {}", page.name(&one.label, 8));
                    Answer { ink: Ink::Yellow, answer, rest }
                }
            }
        }));
        return answers;
    }
    for metric in [Metric::Wall, Metric::Cpu] {
        for found in record.comparisons.iter().filter(|found| found.metric == metric) {
            if !is_impossible(record, &found.base) && !is_impossible(record, &found.other) {
                let killed = [&found.base, &found.other];
                let killed =
                    killed.into_iter().filter_map(|label| killed_runs(page, record, label));
                match killed.collect::<Vec<_>>() {
                    killed if killed.is_empty() => answers.push(comparison(page, record, found)),
                    _ if found.metric == Metric::Cpu => {}
                    killed => answers.push(Answer {
                        ink: Ink::Yellow,
                        answer: format!(
                            "no result for {} and {}",
                            page.name(&found.base, 8),
                            page.name(&found.other, 8)
                        ),
                        rest: killed.join("; "),
                    }),
                }
            }
        }
    }
    answers
}

/// That signals ended all runs of a command, where they did: their times are those of no work.
fn killed_runs(page: &Page<'_>, record: &Race, label: &str) -> Option<String> {
    let runs = &record.command(label)?.runs;
    let mut signals = runs.iter().map(|run| match run.exit {
        Exit::Signal(signal) => Some(signal),
        Exit::Code(_) => None,
    });
    let first = signals.next()??;
    let label = page.name(label, 8);
    let text =
        format!("signals ended all runs of {label} (the first: {})", crate::signals::name(first));
    signals.all(|signal| signal.is_some()).then_some(text)
}

/// That the race was interrupted, and how far it came.
fn interrupted(record: &Race) -> Option<Answer> {
    let signal = i32::try_from(record.interrupted?).unwrap_or(i32::MAX);
    let made = record.commands.iter().map(|one| one.runs.len()).min().unwrap_or(0);
    let rest = match record.plan.runs {
        Some(planned) => format!("{made} of {planned} runs of each"),
        None => format!("{} of each", counted(made as u128, "run", "runs")),
    };
    let answer = format!("interrupted by {}", crate::signals::name(signal));
    Some(Answer { ink: Ink::Yellow, answer, rest })
}

/// Impossible rates come first, and no ratio is computed from them.
fn print_impossible(page: &mut Page<'_>, record: &Race) {
    let impossible = record.findings.iter().filter(|found| found.verdict == Verdict::Impossible);
    for found in impossible.clone() {
        let lead = [(Ink::Red, "  IMPOSSIBLE  ")];
        page.wrapped(&lead, Ink::Plain, &page.name(&found.text, crate::findings::TEXT));
        if let Some(advice) = &found.advice {
            let lead = [(Ink::Dim, "              try: ")];
            page.wrapped(&lead, Ink::Green, &page.name(advice, crate::findings::TEXT));
        }
    }
    if impossible.count() > 0 && !record.comparisons.is_empty() {
        let text = NOT_THE_SAME;
        page.wrapped(&[(Ink::Plain, "              ")], Ink::Plain, text);
    }
}

/// The remark beside an impossible command.
pub(super) const NOT_THE_SAME: &str =
    "the commands did not do the same work: no ratio is computed from an impossible rate";

/// Whether a command's numbers cannot be true.
pub(super) fn is_impossible(record: &Race, label: &str) -> bool {
    record.findings.iter().any(|found| {
        found.verdict == Verdict::Impossible
            && found.evidence.get("contender").and_then(|value| value.as_str()) == Some(label)
    })
}

/// One command alone.
fn alone(page: &Page<'_>, one: &RaceCommand) -> Answer {
    let figures = &one.wall;
    let answer = format!("{} takes {}", page.name(&one.label, 8), duration(figures.median_ns));
    let interval = figures.ci95.map_or_else(
        || "too few runs for a confidence interval".to_owned(),
        |[low, high]| format!("95 % CI: {} … {}", duration(low), duration(high)),
    );
    let runs = counted(u128::from(figures.runs), "run", "runs");
    let cpu = duration(one.cpu.median_ns);
    Answer { ink: Ink::Bold, answer, rest: format!("{interval} · {runs} · CPU time {cpu}") }
}

fn comparison(page: &Page<'_>, record: &Race, found: &Comparison) -> Answer {
    let (base, other) = (page.name(&found.base, 8), page.name(&found.other, 8));
    let has_interval = found.ci95 != [0.0, 0.0];
    let [low, high] = found.ci95;
    let is_cpu = found.metric == Metric::Cpu;
    let of = if is_cpu { "the CPU time of " } else { "the time of " };
    let quotient = format!("{other} takes {} × {of}{base}", ratio(found.ratio));
    let over = |x: f64| if x > 0.0 { 1.0 / x } else { f64::INFINITY };
    let (answer, ink, ends) = match found.verdict {
        RaceVerdict::Faster if !is_cpu => {
            let times = ratio(over(found.ratio));
            (format!("{other} is {times} × as fast as {base}"), Ink::Green, [over(high), over(low)])
        }
        RaceVerdict::Faster => (quotient, Ink::Green, [low, high]),
        RaceVerdict::Slower => (quotient, Ink::Yellow, [low, high]),
        RaceVerdict::NoDifference => {
            let least = record.plan.min_effect * 100.0;
            let what = if is_cpu { "the same CPU time" } else { "the same time" };
            let text = format!("{base} and {other} take {what}, within {} %", ratio(least));
            (text, Ink::Bold, [low, high])
        }
        RaceVerdict::Undecided => (format!("undecided: {quotient}"), Ink::Bold, [low, high]),
    };
    let mut rest = Vec::new();
    if has_interval {
        rest.push(format!("95 % CI: {} … {}", ratio(ends[0]), ratio(ends[1])));
    }
    if let (Some(mean), Some([low, high]), false) = (found.mean_ratio, found.mean_ci95, is_cpu) {
        let mut three = [mean, low, high];
        if found.verdict == RaceVerdict::Faster {
            three = [over(mean), over(high), over(low)];
        }
        let [mean, low, high] = three.map(ratio);
        rest.push(format!("mean {mean}: {low} … {high}"));
    }
    if !is_cpu {
        rest.push(pairs(record, found));
        rest.extend(more(found, has_interval));
    }
    // The answers of wall time are the race's; those of CPU time are below them.
    let ink = if is_cpu { Ink::Plain } else { ink };
    Answer { ink, answer, rest: rest.join(" · ") }
}

/// The answer and its basis, on one line where they fit.
fn print_answer(page: &mut Page<'_>, Answer { ink, answer, rest }: &Answer) {
    let ink = *ink;
    if columns(answer) + columns(rest) + 5 <= page.width() {
        page.line(&[(Ink::Plain, "  "), (ink, answer), (Ink::Plain, "   "), (Ink::Plain, rest)]);
    } else {
        page.wrapped(&[(Ink::Plain, "  ")], ink, answer);
        page.wrapped(&[(Ink::Plain, "    ")], Ink::Plain, rest);
    }
}

fn pairs(record: &Race, found: &Comparison) -> String {
    let redone = record.rounds.iter().filter(|round| round.redone).count();
    let pairs = counted(u128::from(found.runs), "pair", "pairs");
    match redone {
        0 => format!("{pairs} in random order"),
        n => format!("{pairs} in random order, {} redone", counted(n as u128, "round", "rounds")),
    }
}

/// The advice for a decision.
fn more(found: &Comparison, has_interval: bool) -> Option<String> {
    match (found.verdict, found.more_runs) {
        (RaceVerdict::Undecided, more) if !has_interval => {
            // For one comparison, 4 pairs are the fewest that can be significant.
            let runs = more.map_or(4, |more| found.runs.saturating_add(more));
            Some(format!("too few runs to decide: try -r {runs} or more"))
        }
        (RaceVerdict::Undecided, Some(more)) => {
            let runs = found.runs.saturating_add(more);
            Some(format!("about {more} more would decide (-r {runs})"))
        }
        (RaceVerdict::Undecided, None) => {
            Some("the runs vary too much to estimate how many more would decide".to_owned())
        }
        _ => None,
    }
}

/// A ratio with its significant digits.
pub(crate) fn ratio(x: f64) -> String {
    match x {
        x if !x.is_finite() => "∞".to_owned(),
        x if x >= 100.0 => crate::numbers::figure(x),
        x if x >= 10.0 => format!("{x:.1}"),
        x if (0.9..1.1).contains(&x) && (x - 1.0).abs() > 1e-9 => format!("{x:.3}"),
        x if x >= 0.1 => format!("{x:.2}"),
        x => format!("{x:.4}"),
    }
}
