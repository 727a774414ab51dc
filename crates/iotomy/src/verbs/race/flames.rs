//! The traced runs of a race that are sampled for a flame graph.

use iotomy_observe::ObserveError;
use iotomy_record::{Anatomy, Race, RaceCommand, Sampled, Trace};
use iotomy_sys::launch::Command;

use crate::verbs::anatomy;

/// The samples so far, run by run.
pub(super) struct Flames {
    user_stacks: bool,
    runs: Vec<Anatomy>,
}

impl Flames {
    /// Of the kernel alone, or with the stacks of user space.
    pub(super) fn new(user_stacks: bool) -> Self {
        Self { user_stacks, runs: Vec::new() }
    }

    /// Watches a run.
    pub(super) fn watch(
        &mut self,
        command: &Command,
        started: &str,
    ) -> Result<Trace, ObserveError> {
        let (seen, anatomy) = anatomy::command_dissected(command, started, self.user_stacks)?;
        self.runs.push(anatomy);
        Ok(seen)
    }

    /// Gives each command the samples of the run whose trace it has.
    pub(super) fn enter(mut self, race: &mut Race) {
        for command in &mut race.commands {
            let Some(trace) = &command.trace else { continue };
            let is_its = |run: &Anatomy| run.trace.processes == trace.processes;
            if let Some(at) = self.runs.iter().position(is_its) {
                let Anatomy { sampling, calls, stacks, .. } = self.runs.swap_remove(at);
                command.sampled = Some(Sampled { sampling, calls, stacks });
            }
        }
    }
}

/// The run of a command that was sampled, as `iotomy anatomy` has it.
pub(super) fn anatomy(command: &RaceCommand) -> Option<Anatomy> {
    let (trace, sampled) = (command.trace.clone()?, command.sampled.clone()?);
    Some(Anatomy {
        schema: Anatomy::SCHEMA.to_owned(),
        started: trace.started.clone(),
        trace,
        sampling: sampled.sampling,
        calls: sampled.calls,
        stacks: sampled.stacks,
        block: None,
        timelines: None,
    })
}
