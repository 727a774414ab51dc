//! What a process has of a port and does not share with its children: timers, watches of files, and
//! the threads that sleep.
//!
//! The one invariant: a child starts with nothing of it. The lock of the parent's part may have been
//! held by a thread that the child does not have, so the child never waits for it.

use std::sync::atomic::AtomicUsize;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use iotomy_sys::forks;

use crate::file::Files;
use crate::timer::Timers;

/// The part of one process.
#[derive(Debug)]
pub(crate) struct Local {
    depth: u64,
    own: Mutex<Own>,
    /// Threads of this process that sleep in the port.
    pub(crate) sleepers: AtomicUsize,
    of_child: OnceLock<Box<Local>>,
}

/// Timers and watches.
#[derive(Debug, Default)]
pub(crate) struct Own {
    pub(crate) timers: Timers,
    pub(crate) files: Files,
}

impl Local {
    pub(crate) fn new() -> Self {
        Self {
            depth: forks::depth(),
            own: Mutex::default(),
            sleepers: AtomicUsize::new(0),
            of_child: OnceLock::new(),
        }
    }

    /// The part of this process, which may be a child of the one that made the port.
    pub(crate) fn current(&self) -> &Self {
        let depth = forks::depth();
        let mut local = self;
        while local.depth != depth {
            local = local.of_child.get_or_init(|| {
                // Descriptors of the parent's timers and watches are of no use here.
                if let Ok(mut own) = local.own.try_lock() {
                    *own = Own::default();
                }
                Box::new(Self::new())
            });
        }
        local
    }

    pub(crate) fn own(&self) -> MutexGuard<'_, Own> {
        self.current().own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
