//! `--ring`: keeps the counts of the last stretch of a watch, and makes the record of that: at the end, and while the
//! watch goes on, when a call has fulfilled `--until` (with `--keep`) and upon SIGUSR1.

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Result, anyhow};
use iotomy_host::rfc3339;
use iotomy_observe::{TakeSnapshot, Viewer, ViewerRequest, WatchStart};
use iotomy_record::store::OutputFile;
use iotomy_record::{CpuCapacity, EndedBy, LastStretch, ObserverUse, OwnUse, Snapshot, Trace};
use nix::sys::signal::Signal;

use super::own_use::OwnMeter;
use super::recorder::Recorder;
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
    recorder: Recorder,
    /// How many records are kept, where the watch goes on after a call that fulfilled the condition.
    keeps: Option<u32>,
    /// How many of such calls there were.
    fired: u64,
    meter: OwnMeter,
    /// What it read at the end of the watch, while its tables were there.
    own_at_end: Option<OwnUse>,
    /// A SIGUSR1 came that has no record yet.
    is_asked: bool,
}

/// What is left when the watch has ended.
pub(super) struct Finished {
    /// The record of the stretch.
    pub(super) record: Trace,
    /// The outputs that records were written to or beside.
    pub(super) outputs: Vec<(&'static str, OutputFile)>,
    /// A snapshot failed, or a record was not written.
    pub(super) failed: Result<()>,
}

impl RingView {
    /// Of a stretch of this length, with the common part of the records. With `keeps`, the watch goes on after a call
    /// that fulfilled the condition.
    pub(super) fn new(
        length: Duration,
        common: Trace,
        recorder: Recorder,
        keeps: Option<u32>,
    ) -> Self {
        Self {
            every: (length / PARTS).max(SHORTEST),
            next: None,
            began: SystemTime::now(),
            stretch: LastStretch::new(nanos(length), common),
            failed: None,
            recorder,
            keeps,
            fired: 0,
            meter: OwnMeter::start(),
            own_at_end: None,
            is_asked: false,
        }
    }

    /// The record of the stretch, with what only that of the whole watch has.
    pub(super) fn finish(mut self, mut whole: Trace) -> Finished {
        // At the very end: there was no other moment to tell of it.
        if let Some(call) = whole.ended_by.take_if(|_| self.keeps.is_some()) {
            self.write_firing(call);
        }
        let record = self.record(false);
        let record = Trace {
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
        let failed = match self.failed {
            Some(reason) => Err(anyhow!("cannot take a snapshot of the counts: {reason}")),
            None => Ok(()),
        };
        let (outputs, written) = self.recorder.end();
        Finished { record, outputs, failed: failed.and(written) }
    }

    /// Adds what was counted since the last snapshot.
    ///
    /// # Errors
    /// Why no snapshot could be taken; the stretch has not changed.
    fn take(&mut self, look: &mut TakeSnapshot<'_>) -> Result<(), String> {
        if let Some(snapshot) = look()? {
            self.stretch.advance(&snapshot);
        }
        Ok(())
    }

    /// The stretch as it is now.
    fn record(&self, goes_on: bool) -> Trace {
        let mut record = self.stretch.record();
        if let Some(ring) = &mut record.ring {
            (ring.goes_on, ring.keeps, ring.fired) = (goes_on, self.keeps, self.fired);
            ring.own = Some(self.own_at_end.unwrap_or_else(|| self.meter.read()));
            record.started = rfc3339(self.began + Duration::from_nanos(ring.start_ns));
        }
        record
    }

    fn write_firing(&mut self, end: EndedBy) {
        self.fired += 1;
        let EndedBy { call, .. } = &end;
        let took = Duration::from_nanos(call.wall_ns);
        let cause = format!(
            "{} in {} ({}), {:.3} ms, fulfilled --until",
            call.syscall,
            call.exec,
            call.pid,
            took.as_secs_f64() * 1e3
        );
        let record = Trace { ended_by: Some(end), ..self.record(true) };
        self.recorder.write(record, cause);
    }
}

impl Viewer for RingView {
    fn fall_back(&mut self, reason: &str) {
        self.stretch.common_mut().observer.fallback = Some(reason.to_owned());
    }

    fn begin(&mut self, outset: &WatchStart) {
        watching::note_start(self.stretch.common_mut(), outset);
        self.recorder.begin();
        self.began = SystemTime::now();
        self.meter = OwnMeter::start();
        self.next = Instant::now().checked_add(self.every);
    }

    fn wakers(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    fn deadline(&self) -> Option<Instant> {
        self.next
    }

    fn update(&mut self, look: Option<&mut TakeSnapshot<'_>>) -> ViewerRequest {
        let is_asked = std::mem::take(&mut self.is_asked);
        let Some(look) = look else {
            // The stretch is over: its record is written at the end.
            self.next = None;
            return ViewerRequest::GoOn;
        };
        let now = Instant::now();
        if !is_asked && self.next.is_none_or(|next| now < next) {
            return ViewerRequest::GoOn;
        }
        let taken = self.take(look);
        // Not at once again, where taking one takes long.
        self.next = Instant::now().checked_add(self.every);
        match taken {
            Ok(()) if is_asked => {
                let record = self.record(true);
                self.recorder.write(record, String::from("SIGUSR1"));
            }
            Ok(()) => {}
            // A record would be of an older stretch than was asked for.
            Err(reason) if is_asked => self.recorder.fail(anyhow!(
                "SIGUSR1 asked for a record; cannot take a snapshot of the counts: {reason}"
            )),
            Err(reason) => self.failed = Some(reason),
        }
        ViewerRequest::GoOn
    }

    fn end(&mut self, look: &mut TakeSnapshot<'_>) {
        if let Err(reason) = self.take(look) {
            self.failed = Some(reason);
        }
        self.own_at_end = Some(self.meter.read());
        self.next = None;
    }

    fn on_firing(&mut self, call: EndedBy, now: Result<Snapshot, String>) {
        match now {
            Ok(snapshot) => {
                self.stretch.advance(&snapshot);
                self.write_firing(call);
            }
            Err(reason) => {
                let name = call.call.syscall;
                self.recorder.fail(anyhow!(
                    "{name} fulfilled --until; cannot take a snapshot of the counts: {reason}"
                ));
            }
        }
    }

    /// With a command, too: who wants to send it one sends it there.
    fn takes_signal(&mut self, signal: i32) -> bool {
        let is_asked = signal == Signal::SIGUSR1 as i32;
        self.is_asked |= is_asked;
        is_asked
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::recorder::Form;
    use super::*;

    #[test]
    fn without_a_snapshot_nothing_is_written_and_the_watch_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let to = OutputFile::open(Path::new("record.json"), folder.path()).unwrap();
        let form = Form { quiet: true, ..Form::default() };
        let recorder = Recorder::new(form, vec![("--json", to)]);
        let common = Trace { schema: Trace::SCHEMA.to_owned(), ..Trace::default() };
        let mut view = RingView::new(Duration::MAX, common, recorder, None);
        view.recorder.begin();
        let written = || std::fs::read_dir(folder.path()).unwrap().count();
        let mut refused = || Err(String::from("no memory"));
        assert!(view.takes_signal(Signal::SIGUSR1 as i32));
        assert_eq!(view.update(Some(&mut refused)), ViewerRequest::GoOn);
        assert!(view.takes_signal(Signal::SIGUSR1 as i32));
        let mut taken = || Ok(Some(Snapshot::default()));
        assert_eq!(view.update(Some(&mut taken)), ViewerRequest::GoOn);
        let finished = view.finish(Trace::default());
        // Of the second signal alone.
        assert_eq!(written(), 1);
        let failed = finished.failed.unwrap_err().to_string();
        assert_eq!(failed, "not every record was written");
    }
}
