//! Every ability, and the trial of all.

use iotomy_observe::OBSERVERS;
use iotomy_record::{DoctorRun, TriedAbility};

use crate::ability::{Ability, Context, Group, Outcome};
use crate::{engines, experiments, files, limits, memory, processor, watching};

/// Every ability but the observers, which declare themselves in [`OBSERVERS`].
pub static GROUPS: &[Group] = &[
    Group { name: "watching", abilities: watching::ABILITIES },
    Group { name: "engines", abilities: engines::ABILITIES },
    Group { name: "files", abilities: files::ABILITIES },
    Group { name: "memory", abilities: memory::ABILITIES },
    Group { name: "limits", abilities: limits::ABILITIES },
    Group { name: "experiments", abilities: experiments::ABILITIES },
    Group { name: "processor", abilities: processor::ABILITIES },
];

/// Tries everything: the observers first, then the groups in their order.
pub fn try_all(context: &Context) -> Vec<TriedAbility> {
    let observers = OBSERVERS.iter().map(|observer| {
        let outcome = with_detail(observer.probe().into(), observer.declaration().summary);
        tried(observer.declaration().name, DoctorRun::OBSERVERS, "trace", outcome)
    });
    let others = GROUPS.iter().flat_map(|group| {
        let one = |ability: &Ability| {
            tried(ability.name, group.name, ability.purpose, (ability.try_it)(context))
        };
        group.abilities.iter().map(one)
    });
    observers.chain(others).collect()
}

fn tried(
    name: &'static str,
    group: &'static str,
    purpose: &'static str,
    outcome: Outcome,
) -> TriedAbility {
    let ready = outcome.is_ready();
    let (detail, reason, remedy) = match outcome {
        Outcome::Ready(detail) => (Some(detail), None, None),
        Outcome::Missing { reason, remedy } => (None, Some(reason), Some(remedy)),
    };
    TriedAbility { name, group, purpose, ready, detail, reason, remedy }
}

/// A ready outcome without a detail gets this one.
fn with_detail(outcome: Outcome, detail: &str) -> Outcome {
    match outcome {
        Outcome::Ready(none) if none.is_empty() => Outcome::ready(detail),
        other => other,
    }
}
