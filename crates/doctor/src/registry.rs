//! Every ability, and the trial of all.

use iotomy_observe::OBSERVERS;

use crate::ability::{Context, Group, Outcome};
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

/// The name of the group that [`OBSERVERS`] make.
pub const OBSERVER_GROUP: &str = "observers";

/// An ability that was tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriedAbility {
    /// Its name.
    pub name: &'static str,
    /// Its group's.
    pub group: &'static str,
    /// The parts of iotomy that need it.
    pub purpose: &'static str,
    /// The outcome.
    pub outcome: Outcome,
}

/// Tries everything: the observers first, then the groups in their order.
pub fn try_all(context: &Context) -> Vec<TriedAbility> {
    let observers = OBSERVERS.iter().map(|observer| TriedAbility {
        name: observer.declaration().name,
        group: OBSERVER_GROUP,
        purpose: "trace",
        outcome: with_detail(observer.probe().into(), observer.declaration().summary),
    });
    let others = GROUPS.iter().flat_map(|group| {
        group.abilities.iter().map(|ability| TriedAbility {
            name: ability.name,
            group: group.name,
            purpose: ability.purpose,
            outcome: (ability.try_it)(context),
        })
    });
    observers.chain(others).collect()
}

/// A ready outcome without a detail gets this one.
fn with_detail(outcome: Outcome, detail: &str) -> Outcome {
    match outcome {
        Outcome::Ready(none) if none.is_empty() => Outcome::ready(detail),
        other => other,
    }
}
