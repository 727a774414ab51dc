//! Every check, and the trial of all.

use iotomy_observe::OBSERVERS;
use iotomy_record::{DoctorRun, TriedCheck};

use crate::check::{Check, Context, Group, Outcome};
use crate::{engines, experiments, files, limits, memory, processor, watching};

/// Every check but the observers, which declare themselves in [`OBSERVERS`].
pub static GROUPS: &[Group] = &[
    Group { name: "watching", checks: watching::CHECKS },
    Group { name: "engines", checks: engines::CHECKS },
    Group { name: "files", checks: files::CHECKS },
    Group { name: "memory", checks: memory::CHECKS },
    Group { name: "limits", checks: limits::CHECKS },
    Group { name: "experiments", checks: experiments::CHECKS },
    Group { name: "processor", checks: processor::CHECKS },
];

/// Tries everything: the observers first, then the groups in their order.
pub fn try_all(context: &Context) -> Vec<TriedCheck> {
    let observers = OBSERVERS.iter().map(|observer| {
        let outcome = with_detail(observer.probe().into(), observer.declaration().summary);
        tried(observer.declaration().name, DoctorRun::OBSERVERS, "trace", outcome)
    });
    let others = GROUPS.iter().flat_map(|group| {
        let one =
            |check: &Check| tried(check.name, group.name, check.purpose, (check.try_it)(context));
        group.checks.iter().map(one)
    });
    observers.chain(others).collect()
}

fn tried(
    name: &'static str,
    group: &'static str,
    purpose: &'static str,
    outcome: Outcome,
) -> TriedCheck {
    let ready = outcome.is_ready();
    let (detail, reason, remedy) = match outcome {
        Outcome::Ready(detail) => (Some(detail), None, None),
        Outcome::Missing { reason, remedy } => (None, Some(reason), Some(remedy)),
    };
    TriedCheck { name, group, purpose, ready, detail, reason, remedy }
}

/// A ready outcome without a detail gets this one.
fn with_detail(outcome: Outcome, detail: &str) -> Outcome {
    match outcome {
        Outcome::Ready(none) if none.is_empty() => Outcome::ready(detail),
        other => other,
    }
}
