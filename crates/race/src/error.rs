//! Why a race was not run to its end.

use std::io;

use iotomy_record::Exit;
use iotomy_sys::launch::LaunchError;

/// Why a race was not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum RaceError {
    /// The options contradict each other or the commands.
    #[error("{0}")]
    Options(String),
    /// A command string that cannot be run.
    #[error("cannot run {label} ({command}): {reason}")]
    Command {
        /// Its label.
        label: String,
        /// As given.
        command: String,
        /// The mistake.
        reason: String,
    },
    /// A command that could not be started.
    #[error("cannot start {label} ({command}): {source}")]
    Launch {
        /// Its label.
        label: String,
        /// As given.
        command: String,
        /// The kernel's error.
        source: LaunchError,
    },
    /// A command of the race, or one that runs beside them, that failed.
    #[error("{who} ({command}) {}{hint}", ended(*exit))]
    Failed {
        /// Its label, or the option it was given by.
        who: String,
        /// As given.
        command: String,
        /// How it ended.
        exit: Exit,
        /// The end of its standard error.
        stderr: Vec<u8>,
        /// The advice, with its separator; may be empty.
        hint: &'static str,
    },
    /// The time was over before there was anything to tell.
    #[error(
        "{who} ({command}) was still running at the end of --max-time, and was killed with all \
         its processes; raise --max-time"
    )]
    TooLong {
        /// Its label, or the option it was given by.
        who: String,
        /// As given.
        command: String,
    },
    /// A signal requested the end.
    #[error("interrupted")]
    Interrupted(i32),
    /// A call the race depends on failed.
    #[error("cannot {operation}: {source}{}", remedy(source))]
    System {
        /// The operation and its object.
        operation: String,
        /// The kernel's error.
        source: io::Error,
    },
}

/// The advice for an error, with its separator.
fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied if !iotomy_host::privilege::is_root() => "; try as root",
        io::ErrorKind::StorageFull => "; free some space",
        _ => "",
    }
}

fn ended(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("failed with exit status {code}"),
        Exit::Signal(signal) => format!("was killed by signal {signal}"),
    }
}

/// For `map_err`: a failed operation.
pub(super) fn system<E: Into<io::Error>>(
    operation: impl Into<String>,
) -> impl FnOnce(E) -> RaceError {
    let operation = operation.into();
    move |source| RaceError::System { operation, source: source.into() }
}
