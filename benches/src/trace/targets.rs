//! The performance targets of iotomy's trace, and whether it met them on this machine.

use crate::stats::{Estimate, estimate};
use crate::targets::{Bound, Target};
use crate::trace::costs::Cost;
use crate::trace::memory::Memory;
use crate::trace::observer::Observer;
use crate::trace::paid::PaidOverhead;
use crate::trace::startup::Startup;
use crate::trace::subject::Subject;

/// Judges all measurements.
pub(crate) fn judge(
    costs: &[Cost],
    paid: &[PaidOverhead],
    startup: &Startup,
    memory: &Memory,
) -> Vec<Target> {
    let mut targets: Vec<Target> =
        Subject::ALL.iter().flat_map(|s| of_subject(costs, *s)).collect();
    targets.extend(paid.iter().map(PaidOverhead::target));
    let ms = |samples: &[f64]| {
        let samples: Vec<f64> = samples.iter().map(|ns| ns / 1e6).collect();
        estimate(&samples).ok_or_else(|| "no run".to_owned())
    };
    let target = |id: &str, text: &str, most, unit, found| {
        Target::new(id, text.to_owned(), Bound::at_most(most, unit), found)
    };
    targets.push(target(
        "startup",
        "start-up and report together, `iotomy trace -- true` less `true`",
        80.0,
        "ms",
        ms(&startup.added()),
    ));
    targets.push(target(
        "startup-anatomy",
        "the same, `iotomy anatomy -- true` less `true`",
        250.0,
        "ms",
        ms(&startup.added_by_anatomy()),
    ));
    targets.push(target(
        "calibration",
        "calibration, with loading and attaching",
        70.0,
        "ms",
        ms(&startup.before_command),
    ));
    let mib = memory.peak as f64 / f64::from(1 << 20);
    targets.push(target(
        "memory",
        "memory of iotomy for 1,000 processes, with that of its BPF maps and programs",
        64.0,
        "MiB",
        Ok(Estimate { median: mib, low: mib, high: mib }),
    ));
    targets
}

fn of_subject(costs: &[Cost], subject: Subject) -> Vec<Target> {
    let of = |observer| costs.iter().find(|c| c.subject == subject && c.observer == observer);
    let ratio = |observer, samples: fn(&Cost) -> &Vec<f64>| {
        let cost = of(observer).ok_or_else(|| "iotomy trace was not measured".to_owned())?;
        estimate(samples(cost)).ok_or_else(|| "the peer was not measured".to_owned())
    };
    let name = subject.name();
    let row = |id: &str, text: String, most, found| {
        Target::new(&format!("{name}-{id}"), text, Bound::at_most(most, "×"), found)
    };
    let to_empty = |observer| ratio(observer, |cost| &cost.to_empty);
    let to_bpftrace = |observer| ratio(observer, |cost| &cost.to_bpftrace);
    let empty = |what: &str| format!("{name}: cost of {what} ÷ two empty programs'");
    vec![
        row("empty", empty("iotomy trace"), 2.5, to_empty(Observer::Trace)),
        row("empty-aim", empty("iotomy trace") + ", the aim", 2.0, to_empty(Observer::Trace)),
        row(
            "bpftrace",
            format!("{name}: cost of iotomy trace ÷ bpftrace's"),
            1.0 / 3.0,
            to_bpftrace(Observer::Trace),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use crate::targets::Verdict;

    use super::*;

    #[test]
    fn a_target_without_a_figure_is_not_judged() {
        let targets = judge(&[], &[], &Startup::default(), &Memory::default());
        let of = |id: &str| targets.iter().find(|target| target.id == id).unwrap();
        assert_eq!(of("getppid-empty").verdict, Verdict::NotJudged);
        assert_eq!(of("startup").verdict, Verdict::NotJudged);
        assert_eq!(of("memory").verdict, Verdict::Met);
    }

    #[test]
    fn a_target_is_judged_by_its_figure() {
        let startup = Startup {
            bare: vec![1e6; 7],
            traced: vec![82e6; 7],
            anatomy: vec![240e6; 7],
            before_command: vec![20e6; 7],
        };
        let memory = Memory { peak: 65 << 20, ..Memory::default() };
        let targets = judge(&[], &[], &startup, &memory);
        let of = |id: &str| targets.iter().find(|target| target.id == id).unwrap();
        assert_eq!(of("startup").verdict, Verdict::Missed);
        assert_eq!(of("startup-anatomy").verdict, Verdict::Met);
        assert_eq!(of("calibration").verdict, Verdict::Met);
        assert_eq!(of("memory").verdict, Verdict::Missed);
    }
}
