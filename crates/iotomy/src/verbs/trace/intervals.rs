//! `--interval`: a report, or a record in a line, of each interval of a watch.
//!
//! A thread makes the outputs, with the names of the functions that slow calls were made in, and each is written by
//! another one: neither large programs nor a reader of a pipe that is slow delay a snapshot. A file gets its name when it
//! is whole, at the end, as every output does.

use std::cmp::Reverse;
use std::os::fd::BorrowedFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, anyhow};
use iotomy_host::rfc3339;
use iotomy_observe::{CallerNames, TakeSnapshot, Viewer, ViewerRequest, WatchStart};
use iotomy_record::store::{OutputFile, RecordRef, StoreError};
use iotomy_record::{IntervalCounts, Intervals, Trace, WholeCall};
use iotomy_report::Style;

use super::watching;

/// Takes a snapshot at the end of each interval and prints what came in it.
pub(super) struct IntervalView {
    every: Duration,
    next: Option<Instant>,
    intervals: Intervals,
    began: SystemTime,
    /// What the records of all intervals have in common.
    common: Trace,
    /// The slowest calls of the intervals so far: of the whole watch.
    slowest: Vec<WholeCall>,
    /// Of the last interval, as far as they were taken before the watch ended.
    last_slowest: Vec<WholeCall>,
    writer: Option<Writer>,
    records: Option<Sender<Trace>>,
    thread: Option<JoinHandle<Result<()>>>,
    failed: Option<String>,
}

/// Makes the outputs.
struct Writer {
    /// The text's look, and where it goes.
    text: Option<(Style, Stream)>,
    lines: Option<Stream>,
    names: CallerNames,
}

/// An output that is written while the watch goes on.
struct Stream {
    to: Option<OutputFile>,
    chunks: Option<Sender<Vec<u8>>>,
    writer: Option<JoinHandle<Result<(), StoreError>>>,
}

impl IntervalView {
    /// One of this length, with the common parts of the records.
    pub(super) fn new(
        every: Duration,
        common: Trace,
        text: Option<(Style, OutputFile)>,
        lines: Option<OutputFile>,
    ) -> Self {
        let text = text.map(|(style, to)| (style, Stream::new(to)));
        let lines = lines.map(Stream::new);
        Self {
            every,
            next: None,
            intervals: Intervals::default(),
            began: SystemTime::now(),
            common,
            slowest: Vec::new(),
            last_slowest: Vec::new(),
            writer: Some(Writer { text, lines, names: CallerNames::default() }),
            records: None,
            thread: None,
            failed: None,
        }
    }

    /// Prints the rest that the whole record has, and ends the outputs. The record then has the slowest calls of all
    /// intervals.
    ///
    /// # Errors
    /// A snapshot or an output failed.
    pub(super) fn finish(mut self, whole: &mut Trace) -> Result<()> {
        let counts = std::mem::take(&mut self.intervals).finish(whole);
        self.common.exit = whole.exit;
        self.common.ended_by = whole.ended_by.clone();
        let mut slowest = std::mem::take(&mut self.last_slowest);
        self.keep_slowest(&mut slowest, &whole.slowest);
        self.give(counts, slowest);
        whole.slowest = std::mem::take(&mut self.slowest);
        // Without a sender, the thread comes to the end.
        self.records = None;
        if let Some(thread) = self.thread.take() {
            thread
                .join()
                .map_err(|_| anyhow!("the thread that writes the intervals ended early"))??;
        }
        match self.failed {
            Some(reason) => Err(anyhow!("cannot take a snapshot of the counts: {reason}")),
            None => Ok(()),
        }
    }

    /// Adds calls to the slowest, of which as many are kept as were asked for.
    fn keep_slowest(&self, slowest: &mut Vec<WholeCall>, more: &[WholeCall]) {
        slowest.extend_from_slice(more);
        slowest.sort_by_key(|call| Reverse(call.wall_ns));
        slowest.truncate(self.common.view.slowest as usize);
    }

    fn give(&mut self, counts: IntervalCounts, slowest: Vec<WholeCall>) {
        let mut of_all = std::mem::take(&mut self.slowest);
        self.keep_slowest(&mut of_all, &slowest);
        self.slowest = of_all;
        let start = self.began + Duration::from_nanos(counts.interval.start_ns);
        let mut record = Trace {
            started: rfc3339(start),
            wall_ns: counts.wall_ns,
            interval: Some(counts.interval),
            processes: counts.processes,
            calls: counts.calls,
            files: counts.files,
            connections: counts.connections,
            ring_operations: counts.ring_operations,
            requests: counts.requests,
            ledger: counts.ledger,
            slowest,
            ..self.common.clone()
        };
        record.observer.lost_events = counts.lost;
        record.observer.lost_connections = counts.lost_connections;
        record.observer.lost_requests = counts.lost_requests;
        record.observer.lost_exchanges = counts.lost_exchanges;
        if let Some(records) = &self.records {
            // The thread goes on until there is no sender.
            let _ = records.send(record);
        }
    }
}

impl Writer {
    fn write_all(mut self, records: &Receiver<Trace>) -> Result<()> {
        let mut made = Ok(());
        for record in records {
            made = made.and(self.write(record));
        }
        let text = self.text.take().map(|(_, to)| to);
        let ended = [text, self.lines.take()].into_iter().flatten().map(Stream::end);
        let ended = ended.collect::<Vec<_>>().into_iter().collect::<Result<Vec<()>, _>>();
        ended?;
        made
    }

    fn write(&mut self, mut record: Trace) -> Result<()> {
        self.names.name_all(&mut record);
        if let Some((style, to)) = &mut self.text {
            to.write(iotomy_report::interval(&record, style).into_bytes());
        }
        if let Some(lines) = &mut self.lines {
            let line = RecordRef::Trace(&record).line();
            lines.write(line.context("cannot write the record of an interval")?);
        }
        Ok(())
    }
}

impl Viewer for IntervalView {
    fn fall_back(&mut self, reason: &str) {
        self.common.observer.fallback = Some(reason.to_owned());
    }

    fn begin(&mut self, outset: &WatchStart) {
        watching::note_start(&mut self.common, outset);
        self.began = SystemTime::now();
        self.next = Instant::now().checked_add(self.every);
        // The signals are held by now: no thread of these gets one.
        let Some(mut writer) = self.writer.take() else { return };
        let text = writer.text.as_mut().map(|(_, to)| to);
        text.into_iter().chain(&mut writer.lines).for_each(Stream::begin);
        let (records, received) = channel();
        self.records = Some(records);
        self.thread = Some(std::thread::spawn(move || writer.write_all(&received)));
    }

    fn wakers(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    fn deadline(&self) -> Option<Instant> {
        self.next
    }

    fn update(&mut self, look: Option<&mut TakeSnapshot<'_>>) -> ViewerRequest {
        let Some(look) = look else {
            // The watch is over: what is left is for the end.
            self.next = None;
            return ViewerRequest::GoOn;
        };
        let now = Instant::now();
        if self.next.is_some_and(|next| now >= next) {
            match look() {
                Ok(Some(mut snapshot)) => {
                    let counts = self.intervals.advance(&snapshot);
                    self.give(counts, std::mem::take(&mut snapshot.slowest));
                }
                // It has just ended: what is left is for the end.
                Ok(None) => {}
                Err(reason) => self.failed = Some(reason),
            }
            // At whole intervals from the start; those that were missed are in the next.
            while self.next.is_some_and(|next| next <= now) {
                self.next = self.next.and_then(|next| next.checked_add(self.every));
            }
        }
        ViewerRequest::GoOn
    }

    /// What is counted is in the record of the watch; of the slowest calls, only those that this leaves.
    fn end(&mut self, look: &mut TakeSnapshot<'_>) {
        if self.common.view.slowest == 0 {
            return;
        }
        match look() {
            Ok(last) => self.last_slowest = last.map_or_else(Vec::new, |last| last.slowest),
            Err(reason) => self.failed = Some(reason),
        }
    }

    fn takes_signal(&mut self, _: i32) -> bool {
        false
    }
}

impl Stream {
    fn new(to: OutputFile) -> Self {
        Self { to: Some(to), chunks: None, writer: None }
    }

    fn begin(&mut self) {
        let Some(to) = self.to.take() else { return };
        let (chunks, received) = channel::<Vec<u8>>();
        self.chunks = Some(chunks);
        self.writer = Some(std::thread::spawn(move || {
            to.put_with(|to| {
                received.iter().try_for_each(|chunk| to.write_all(&chunk).and_then(|()| to.flush()))
            })
        }));
    }

    /// After an error there is no receiver: it is returned in the end.
    fn write(&mut self, chunk: Vec<u8>) {
        if let Some(chunks) = &self.chunks {
            let _ = chunks.send(chunk);
        }
    }

    fn end(mut self) -> Result<(), StoreError> {
        // Without a sender, the writer comes to the end.
        self.chunks = None;
        match self.writer.take().map(JoinHandle::join) {
            Some(Ok(ended)) => ended,
            // It does not panic.
            Some(Err(_)) | None => Ok(()),
        }
    }
}
