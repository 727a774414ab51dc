//! Results compared with the measured rates of the machine's memory.
//!
//! The ceilings come from limits of the same machine, or from a finding that was made with them. An
//! impossible rate is marked in the picture itself.

use iotomy_record::{Finding, Limits, Machine, Verdict};

use crate::axis::{Axis, Unit, rate};
use crate::chart::{Chart, Drawing, Key, WIDE, fit, labels_below};

/// A rate something went at.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    pub(crate) label: String,
    /// The file it belongs to, as the record names it.
    pub(crate) path: Option<String>,
    pub(crate) command: Option<String>,
    pub(crate) rate: f64,
}

/// A ceiling.
#[derive(Debug, Clone)]
struct Ceiling {
    label: String,
    rate: f64,
}

/// The machine's limits that results are compared with.
const OF_MEMORY: [(&str, &str); 2] =
    [("memory-read-all", "memory is read at"), ("memory-copy-all", "memory is copied at")];

/// Limits are medians, and the machine may have been busier when they were measured.
const TOLERANCE: f64 = 1.1;

/// Whether limits belong to the machine a record was made on.
pub(crate) fn are_of(limits: &Limits, machine: &Machine) -> bool {
    limits.machine.may_be(machine) && limits.machine.kernel == machine.kernel
}

fn of_limits(limits: Option<&Limits>) -> Vec<Ceiling> {
    let known = OF_MEMORY.iter().filter_map(|(name, label)| {
        let rate = limits?.of_machine(name)?.value?;
        Some(Ceiling { label: (*label).to_owned(), rate })
    });
    known.collect()
}

/// The ceiling that a finding about an impossible rate contains.
fn of_finding(finding: &Finding) -> Option<Ceiling> {
    let rate = finding.evidence.get("ceiling_bytes_per_second")?.as_f64()?;
    Some(Ceiling { label: "memory was measured at".to_owned(), rate })
}

/// Whether a finding calls this result impossible.
fn is_called_impossible(result: &Outcome, finding: &Finding) -> bool {
    let is = |key: &str, value: Option<&str>| {
        finding.evidence.get(key).and_then(|found| found.as_str()) == value
    };
    finding.verdict == Verdict::Impossible
        && is("file", result.path.as_deref())
        && is("contender", result.command.as_deref())
}

const LABELS: f64 = 300.0;
const BARS: f64 = 310.0;
const END: f64 = 660.0;
const ROW: f64 = 30.0;
const TOP: f64 = 62.0;

/// The picture; none where there is nothing to hold results against.
pub(crate) fn chart(
    results: &[Outcome],
    findings: &[Finding],
    limits: Option<&Limits>,
) -> Option<Chart> {
    let mut ceilings = of_limits(limits);
    if ceilings.is_empty() {
        ceilings.extend(findings.iter().find_map(of_finding));
    }
    ceilings.retain(|ceiling| ceiling.rate.is_finite() && ceiling.rate > 0.0);
    let results: Vec<_> =
        results.iter().filter(|result| result.rate.is_finite() && result.rate > 0.0).collect();
    let highest = ceilings.iter().map(|ceiling| ceiling.rate).fold(0.0, f64::max);
    if results.is_empty() || highest <= 0.0 {
        return None;
    }
    let rates = results.iter().map(|r| r.rate).chain(ceilings.iter().map(|c| c.rate));
    let axis = Axis::from_values(rates.collect::<Vec<f64>>().into_iter())?.roomy();
    let place = |value: f64| BARS + axis.share(value) * (END - BARS);
    let floor = TOP + ROW * results.len() as f64;
    let mut drawing = Drawing::new(WIDE, floor + 30.0);
    for tick in axis.ticks(5) {
        drawing.line([place(tick), TOP - 8.0, place(tick), floor], "grid");
    }
    let labels = axis.ticks(5).into_iter().map(|tick| (place(tick), rate(tick)));
    labels_below(&mut drawing, floor + 16.0, labels);
    let mut says = Vec::new();
    for (at, ceiling) in ceilings.iter().enumerate() {
        let (x, y) = (place(ceiling.rate), 14.0 + 18.0 * at as f64);
        drawing.line([x, y + 6.0, x, floor], "ceiling");
        let text = format!("{} {}", ceiling.label, rate(ceiling.rate));
        drawing.text(x - 4.0, y + 4.0, "end ceiling-text", &text);
        says.push(text);
    }
    for (at, result) in results.iter().enumerate() {
        let y = TOP + ROW * at as f64;
        // The judge knows which rates may really be higher, as for a file read repeatedly from a
        // CPU cache.
        let is_impossible = findings.iter().any(|finding| is_called_impossible(result, finding));
        let class = if is_impossible { "impossible" } else { "t-call" };
        drawing.text(LABELS, y + 14.0, "end", &fit(&result.label, LABELS - 6.0));
        let part = result.rate / highest;
        let times = match part >= 1.0 {
            true => format!("{:.1} × the highest ceiling", part),
            false => format!("{:.1} % of the highest ceiling", part * 100.0),
        };
        let word = if is_impossible { "IMPOSSIBLE: " } else { "" };
        let tip = format!("{word}{} at {}, {times}", result.label, rate(result.rate));
        drawing.rect([BARS, y + 2.0, (place(result.rate) - BARS).max(2.0), 16.0], class, &tip);
        drawing.text(WIDE - 8.0, y + 14.0, "end num", &rate(result.rate));
        if is_impossible {
            drawing.text(BARS + 8.0, y + 14.0, "verdict", "IMPOSSIBLE");
        }
        says.push(tip);
    }
    let mut notes = vec![format!(
        "bytes over the whole time of the run{}",
        if axis.is_log { "; the axis is logarithmic" } else { "" }
    )];
    if results.iter().all(|result| result.rate <= highest * TOLERANCE) {
        notes
            .push("none is above the measured rates of this machine's memory (medians)".to_owned());
    }
    Some(Chart {
        id: "ceilings".into(),
        title: "Compared with the ceiling".into(),
        says: says.join("; "),
        legend: vec![
            Key::new("t-call", "result"),
            Key::new("impossible", "cannot be true"),
            Key::new("ceiling-key", "ceiling of this machine"),
        ],
        notes,
        drawing,
    })
}

/// A value of a limit as people read it.
pub(crate) fn shown(unit: &str, value: f64) -> String {
    Unit::for_unit(unit).shown(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_limits_a_finding_tells_what_memory_was_measured_at() {
        let finding = Finding {
            id: "impossible-rate".into(),
            verdict: Verdict::Impossible,
            text: String::new(),
            evidence: [("ceiling_bytes_per_second".into(), serde_json::json!(32_000_000_000u64))]
                .into(),
            advice: None,
        };
        let result = Outcome { label: "f".into(), path: None, command: None, rate: 70e9 };
        let chart = chart(&[result], &[finding], None).unwrap();
        assert!(chart.says.starts_with("memory was measured at 32 GB/s; "), "{}", chart.says);
    }
}
