//! Why a watch could not be made.

use std::io;

use iotomy_host::privilege;
use iotomy_sys::launch::LaunchError;

/// Why a watch could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ObserveError {
    /// The command could not be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// The observer does not work here.
    #[error("cannot watch by {observer}: {reason}; {remedy}; see `iotomy doctor`")]
    Unsupported {
        /// Its name.
        observer: &'static str,
        /// The attempt and the kernel's error.
        reason: String,
        /// The remedy.
        remedy: String,
    },
    /// There is no process to attach to.
    #[error("cannot attach to process {pid}: {source}; {}", attach_remedy(source))]
    Attach {
        /// The requested process.
        pid: u32,
        /// The kernel's error.
        source: io::Error,
    },
    /// The kernel keeps a process from being seen by BPF programs, as some do with their first one.
    #[error(
        "cannot watch process {pid}: the kernel does not show it to BPF programs; try \
         --observer ptrace"
    )]
    Hidden {
        /// The requested process.
        pid: u32,
    },
    /// The observer cannot watch this kind of target.
    #[error("{observer} cannot watch {what}; {remedy}")]
    Target {
        /// Its name.
        observer: &'static str,
        /// The target.
        what: &'static str,
        /// The remedy.
        remedy: &'static str,
    },
    /// A call the watch depends on failed.
    #[error("cannot {operation}: {source}")]
    System {
        /// The operation and its object.
        operation: String,
        /// The kernel's error.
        source: io::Error,
    },
}

impl ObserveError {
    /// For `map_err`: a failed operation.
    pub(crate) fn system<E: Into<io::Error>>(
        operation: impl Into<String>,
    ) -> impl FnOnce(E) -> Self {
        let operation = operation.into();
        move |source| Self::System { operation, source: source.into() }
    }
}

fn attach_remedy(source: &io::Error) -> String {
    const NEEDED: [&str; 1] = ["CAP_SYS_PTRACE"];
    match source.kind() {
        io::ErrorKind::PermissionDenied if privilege::has(&NEEDED) => {
            "a debugger traces it (TracerPid in /proc/PID/status), or a security module forbids it"
                .to_owned()
        }
        io::ErrorKind::PermissionDenied => format!(
            "another user owns it, a debugger traces it, or kernel.yama.ptrace_scope forbids it: {}",
            privilege::privilege(&NEEDED)
        ),
        io::ErrorKind::Unsupported => "watch the whole machine with `iotomy trace -a`".to_owned(),
        _ => "list the processes with `ps -e`".to_owned(),
    }
}
