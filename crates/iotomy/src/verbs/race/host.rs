//! The services for a race: watched runs, interrupts, a progress line.

use std::time::SystemTime;

use iotomy_host::rfc3339;
use iotomy_observe::{is_interrupted, take_interrupt};
use iotomy_race::{RaceHost, Untraced};
use iotomy_record::{Trace, View};
use iotomy_sys::launch::Command;

use super::flames::Flames;
use crate::screen::StatusLine;
use crate::verbs::trace::watching;

/// The observers, and the terminal.
pub(super) struct CommandHost {
    /// The requested observer; after the first watch, the one that was used.
    pub(super) observer: String,
    /// The samples of the traced runs, where flame graphs are wanted.
    pub(super) flames: Option<Flames>,
    pub(super) progress: StatusLine,
}

impl RaceHost for CommandHost {
    fn trace(&mut self, command: &Command) -> Result<Trace, Untraced> {
        self.progress.clear();
        let started = rfc3339(SystemTime::now());
        let seen = match &mut self.flames {
            None => watching::command(&self.observer, command),
            Some(flames) => flames.watch(command, &started),
        };
        if let Some(signal) = take_interrupt() {
            return Err(Untraced::Interrupted(signal));
        }
        let seen = seen.map_err(|error| Untraced::Cannot(error.to_string()))?;
        self.observer.clone_from(&seen.observer.name);
        Ok(watching::record(command, started, seen, View::default()))
    }

    fn is_interrupted(&self) -> fn() -> bool {
        is_interrupted
    }

    fn progress(&mut self, text: &str) {
        self.progress.show(text);
    }
}
