//! Watches by the requested observer, or by the best available one: shared by `trace` and `race`.

use std::io::Write;
use std::os::unix::ffi::OsStrExt;

use iotomy_observe::{
    OBSERVERS, ObserveError, Observer, OptionalViewer, Request, Target, WatchStart, observer,
};
use iotomy_record::{Trace, View, lossless};
use iotomy_sys::launch::Command;

use crate::screen::shown;
use crate::verbs::this_machine::machine;

/// Watches a command to its end, all its calls and files.
pub(in crate::verbs) fn command(name: &str, command: &Command) -> Result<Trace, ObserveError> {
    watch(name, &everything(command), None)
}

/// A watch of a command to its end, all its calls and files.
pub(in crate::verbs) fn everything(command: &Command) -> Request {
    Request { files: true, ..Request::new(Target::Command(command.clone())) }
}

/// Watches by the observer called `name`, or by the first that works.
pub(in crate::verbs) fn watch(
    name: &str,
    request: &Request,
    mut viewer: OptionalViewer<'_>,
) -> Result<Trace, ObserveError> {
    if let Some(observer) = observer(name) {
        return observer.watch_before(request, viewer);
    }
    let mut refused: Vec<ObserveError> = Vec::new();
    let can = |observer: &&&dyn Observer| may_watch(**observer, &request.target);
    for observer in OBSERVERS.iter().filter(can) {
        let fallback = refused.last().and_then(Fallback::from_refusal);
        if let Some(fallback) = &fallback {
            fallback.say(*observer);
            if let Some(viewer) = viewer.as_deref_mut() {
                viewer.fall_back(&fallback.reason);
            }
        }
        match observer.watch_before(request, viewer.as_deref_mut()) {
            Err(error @ ObserveError::Unsupported { .. }) => refused.push(error),
            Ok(mut seen) => {
                seen.observer.fallback = fallback.map(|fallback| fallback.reason);
                return Ok(seen);
            }
            failed => return failed,
        }
    }
    Err(with_other_observer(refused.swap_remove(0), &request.target))
}

/// Whether an observer may be chosen unasked: one that stops its target at every call watches no process that ran
/// before, which may be a server at work.
fn may_watch(observer: &dyn Observer, target: &Target) -> bool {
    let declaration = observer.declaration();
    match target {
        Target::Command(_) => true,
        Target::Running(_) => !declaration.times_inflated,
        Target::Machine => declaration.watches_machine,
    }
}

/// A refusal, with the observer to type where another one can watch running processes.
fn with_other_observer(error: ObserveError, target: &Target) -> ObserveError {
    let other = OBSERVERS.iter().find(|observer| !may_watch(**observer, target));
    match (error, target, other) {
        (
            ObserveError::Unsupported { observer, reason, remedy },
            Target::Running(selection),
            Some(other),
        ) if !selection.is_open_ended() => {
            let name = other.declaration().name;
            let remedy = format!(
                "{remedy}; or type --observer {name}, which stops the running processes at every \
                 call and makes them many times slower"
            );
            ObserveError::Unsupported { observer, reason, remedy }
        }
        (error, ..) => error,
    }
}

/// Why a preferred observer does not watch.
struct Fallback {
    reason: String,
}

impl Fallback {
    fn from_refusal(refusal: &ObserveError) -> Option<Self> {
        let ObserveError::Unsupported { observer, reason, remedy } = refusal else { return None };
        Some(Self { reason: format!("{observer}: {reason}; {remedy}; see `iotomy doctor`") })
    }

    /// Prints a line about the fall-back to `observer`.
    fn say(&self, observer: &dyn Observer) {
        let slower = if observer.declaration().times_inflated {
            ", which slows every call and inflates its times"
        } else {
            ""
        };
        let line = format!("watching by {}{slower}: {}", observer.declaration().name, self.reason);
        let _ = writeln!(std::io::stderr(), "iotomy: {}", shown(&line));
    }
}

/// The observation as the record of a command's run.
pub(in crate::verbs) fn record(
    command: &Command,
    started: String,
    seen: Trace,
    view: View,
) -> Trace {
    let command = command.argv.iter().map(|word| lossless(word.as_bytes())).collect();
    assemble(command, started, seen, view)
}

/// Notes in a record that is made before the watch has ended how that began.
pub(super) fn note_start(record: &mut Trace, outset: &WatchStart) {
    let observer = &mut record.observer;
    observer.name = outset.observer.to_owned();
    observer.times_inflated = outset.times_inflated;
    observer.sees_rings = Some(outset.sees_rings);
    observer.missing = outset.missing.clone();
    [observer.cost_ns_low, observer.cost_ns_high] = outset.cost_range_ns;
    [observer.unwatched_ns_low, observer.unwatched_ns_high] = outset.unwatched_range_ns;
    observer.cost_ns_per_call = outset.cost_range_ns.iter().sum::<f64>() / 2.0;
}

/// The observation as a record; `command` is empty where none was started.
pub(in crate::verbs) fn assemble(
    command: Vec<String>,
    started: String,
    seen: Trace,
    view: View,
) -> Trace {
    Trace { schema: Trace::SCHEMA.to_owned(), started, command, machine: machine(), view, ..seen }
}
