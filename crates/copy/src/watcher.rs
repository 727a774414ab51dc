//! What is told of a copy while it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use iotomy_movers::MOVERS;
use iotomy_record::CopyPart;

use crate::CopyError;

/// Receives what happens during a copy, in the order of its events. `()` ignores them all.
pub trait Watcher {
    /// Movers were chosen for a part, of which nothing has moved yet; with [`crate::Detail::Parts`] and above.
    /// `contract` has the guarantees about later writes, holes and extents.
    fn planned(&mut self, _contract: &str, _part: &CopyPart) {}

    /// A part begins, and `progress` will change from now on: another thread can read it. `is_on_terminal` tells
    /// whether one of its ends is a terminal.
    fn begins(&mut self, _progress: &Arc<Progress>, _is_on_terminal: &dyn Fn() -> bool) {}

    /// The movers are through with a part, or have failed; with [`crate::Detail::Parts`] and above.
    fn carried(&mut self, _part: &CopyPart) {}

    /// A source could not be copied, or a check found a difference. Other sources may follow.
    fn failed(&mut self, _error: &CopyError) {}
}

impl Watcher for () {}

/// How far a copy has come.
#[derive(Debug)]
pub struct Progress {
    pub(crate) moved: AtomicU64,
    /// Bytes that the present target will get; [`UNKNOWN`] where that is not known.
    expected: AtomicU64,
    /// Whether other targets may follow, of which nothing is known.
    has_more: bool,
    /// The place in [`MOVERS`] of the mover at work.
    mover: AtomicUsize,
}

/// No number of bytes is known.
const UNKNOWN: u64 = u64::MAX;

impl Progress {
    pub(crate) fn new(has_more: bool) -> Arc<Self> {
        Arc::new(Self {
            moved: AtomicU64::new(0),
            expected: AtomicU64::new(UNKNOWN),
            has_more,
            mover: AtomicUsize::new(usize::MAX),
        })
    }

    pub(crate) fn expect(&self, bytes: Option<u64>) {
        self.expected.store(bytes.unwrap_or(UNKNOWN), Ordering::Relaxed);
    }

    pub(crate) fn at_work(&self, name: &str) {
        let at = MOVERS.iter().position(|mover| mover.declaration().name == name);
        self.mover.store(at.unwrap_or(usize::MAX), Ordering::Relaxed);
    }

    /// Bytes moved so far, of all parts.
    pub fn moved(&self) -> u64 {
        self.moved.load(Ordering::Relaxed)
    }

    /// Bytes that the present target will get, as far as that is known.
    pub fn expected(&self) -> Option<u64> {
        Some(self.expected.load(Ordering::Relaxed)).filter(|bytes| *bytes != UNKNOWN)
    }

    /// Bytes that will have moved in the end, as far as that is known.
    pub fn total(&self) -> Option<u64> {
        self.expected().filter(|_| !self.has_more)
    }

    /// The name of the mover that began last; empty before.
    pub fn mover(&self) -> &'static str {
        let mover = MOVERS.get(self.mover.load(Ordering::Relaxed));
        mover.map_or("", |mover| mover.declaration().name)
    }
}
