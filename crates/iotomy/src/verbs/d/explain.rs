//! `--explain`: what a program became, before it runs, and what its runs took, behind it.

use std::fmt::Write as _;

use iotomy_dtrace::form::Form;
use iotomy_observe::d::Explanation;
use iotomy_report::{bytes, thousands};

/// Clauses, probes, programs and maps.
pub(super) fn before(of: &Explanation, form: &Form, source: &str) -> String {
    let mut text = String::from("clauses\n");
    let lines = |at: usize| source[..at.min(source.len())].matches('\n').count() + 1;
    for (number, (instructions, clause)) in (1..).zip(of.clauses.iter().zip(&form.clauses)) {
        let probes: Vec<String> = clause.probes.iter().map(ToString::to_string).collect();
        let line = clause.probes.first().map_or(1, |probe| lines(probe.place().start));
        let probes = probes.join(", ");
        let _ = writeln!(
            text,
            "  {number:>3}  line {line:<4} {instructions:>6} instructions  {probes}"
        );
    }
    let _ = writeln!(text, "probes");
    for one in &of.probes {
        let clauses: Vec<String> = one.clauses.iter().map(usize::to_string).collect();
        let (id, name) = (one.probe.id, one.probe.to_string());
        let _ = writeln!(
            text,
            "  {id:>5}  {name:<36} {:<28} clauses {}",
            one.attached,
            clauses.join(", ")
        );
    }
    let _ = writeln!(text, "programs");
    for one in &of.programs {
        let _ = write!(
            text,
            "  {:<14} {:<28} {:>6} instructions",
            one.name, one.section, one.instructions
        );
        if one.stats.verified_instructions > 0 {
            let verified = thousands(one.stats.verified_instructions.into());
            let _ = write!(text, ", {verified} looked at by the verifier");
        }
        text.push('\n');
    }
    let _ = writeln!(text, "maps");
    for one in &of.maps {
        let most = bytes(one.most_bytes.into());
        let _ = writeln!(
            text,
            "  {:<18} {:<12} {:>9} entries of {:>4} + {:>5} bytes, at most {most}",
            one.name,
            one.kind,
            thousands(one.entries.into()),
            one.key_bytes,
            one.value_bytes,
        );
    }
    text
}

/// What the runs took.
pub(super) fn after(of: &Explanation) -> String {
    let mut text = String::from("overhead\n");
    for one in of.programs.iter().filter(|one| one.stats.runs > 0) {
        let mean = one.stats.run_ns / one.stats.runs;
        let _ = writeln!(
            text,
            "  {:<14} {:>12} runs of {:>7} ns on average",
            one.name,
            thousands(one.stats.runs.into()),
            thousands(mean.into())
        );
    }
    text
}
