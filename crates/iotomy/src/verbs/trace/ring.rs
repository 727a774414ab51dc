//! `--ring`: keeps the counts of the last stretch of a watch, and makes the record of that.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Result, anyhow};
use iotomy_host::rfc3339;
use iotomy_observe::{TakeSnapshot, Viewer, ViewerRequest, WatchStart};
use iotomy_record::{CpuCapacity, LastStretch, ObserverUse, Trace};

use super::watching;

/// How many snapshots there are in the stretch: it is longer than was asked for by one part at most.
const PARTS: u32 = 10;

/// The shortest time between two: they cost CPU time.
const SHORTEST: Duration = Duration::from_millis(100);

/// Takes a snapshot from time to time.
pub(super) struct RingView {
    every: Duration,
    next: Option<Instant>,
    began: SystemTime,
    stretch: LastStretch,
    failed: Option<String>,
}

impl RingView {
    /// Of a stretch of this length, with the common part of the records.
    pub(super) fn new(length: Duration, common: Trace) -> Self {
        Self {
            every: (length / PARTS).max(SHORTEST),
            next: None,
            began: SystemTime::now(),
            stretch: LastStretch::new(nanos(length), common),
            failed: None,
        }
    }

    /// The record of the stretch, with what only that of the whole watch has.
    ///
    /// # Errors
    /// A snapshot failed: what came before the next one is in that.
    pub(super) fn finish(self, whole: Trace) -> (Trace, Result<()>) {
        let began = self.began;
        let record = self.stretch.into_record();
        let start = record.ring.map_or(0, |ring| ring.start_ns);
        let record = Trace {
            started: rfc3339(began + Duration::from_nanos(start)),
            exit: whole.exit,
            // Of the throttling, the stretch is not known.
            cpu_capacity: whole.cpu_capacity.map(|one| CpuCapacity { throttled: None, ..one }),
            ended_by: whole.ended_by,
            observer: ObserverUse {
                missing: whole.observer.missing,
                end_divided_by_zero: whole.observer.end_divided_by_zero,
                divided_by_zero: whole.observer.divided_by_zero,
                startup_ns: whole.observer.startup_ns,
                ..record.observer
            },
            ..record
        };
        let taken = match self.failed {
            Some(reason) => Err(anyhow!("cannot take a snapshot of the counts: {reason}")),
            None => Ok(()),
        };
        (record, taken)
    }

    fn take(&mut self, look: &mut TakeSnapshot<'_>) {
        match look() {
            Ok(Some(snapshot)) => self.stretch.advance(&snapshot),
            Ok(None) => {}
            Err(reason) => self.failed = Some(reason),
        }
    }
}

impl Viewer for RingView {
    fn fall_back(&mut self, reason: &str) {
        self.stretch.common_mut().observer.fallback = Some(reason.to_owned());
    }

    fn begin(&mut self, outset: &WatchStart) {
        watching::note_start(self.stretch.common_mut(), outset);
        self.began = SystemTime::now();
        self.next = Instant::now().checked_add(self.every);
    }

    fn wakers(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    fn deadline(&self) -> Option<Instant> {
        self.next
    }

    fn update(&mut self, look: Option<&mut TakeSnapshot<'_>>) -> ViewerRequest {
        let Some(look) = look else {
            self.next = None;
            return ViewerRequest::GoOn;
        };
        let now = Instant::now();
        if self.next.is_some_and(|next| now >= next) {
            self.take(look);
            // Not at once again, where taking one takes long.
            self.next = Instant::now().checked_add(self.every);
        }
        ViewerRequest::GoOn
    }

    fn end(&mut self, look: &mut TakeSnapshot<'_>) {
        self.take(look);
        self.next = None;
    }

    fn on_signal(&mut self, _: i32) {}
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
