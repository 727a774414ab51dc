//! Operations of io_uring, from the kernel's rows to the record.

use std::collections::{BTreeMap, HashMap, HashSet};

use iotomy_record::{Histogram, RingOperation, Times};

use super::file_numbers::FileStats;
use super::layout::{Count, Fields, FileKey, Wire};
use super::object::{RowAction, Session};
use super::ring_rows::{
    RingErrorKey, RingHotFile, RingHotRow, RingKey, RingName, RingRequest, RingRow, RingSlot, WAYS,
};
use crate::naming::error_name;
use crate::ring_names;

/// The result of a request whose completion found the queue full.
struct Overflow(i64);

impl Wire for Overflow {
    const SIZE: usize = 8;

    fn read(from: &mut Fields<'_>) -> Self {
        Self(from.u64().cast_signed())
    }
}

/// Takes what an image moved through a file.
type FilesOf<'f> = &'f mut dyn FnMut(u32, FileKey, &FileStats);

/// One operation of an image.
#[derive(Debug, Default)]
struct RingCount {
    submitted: u64,
    /// By the `BY_…` of `trace.h`.
    ways: [u64; WAYS],
    results: u64,
    overflows: u64,
    before: u64,
    registered: u64,
    forced: u64,
    unlinked: u64,
    bytes: u64,
    sizes: Histogram,
    wall_ns: u64,
    wall: Times,
    errors: BTreeMap<u32, u64>,
}

/// What io_uring did for all images.
#[derive(Debug, Default)]
pub(super) struct RingBook {
    /// By image, then by number of the operation.
    operations: HashMap<u32, BTreeMap<u32, RingCount>>,
    /// CPU time of the threads that io_uring made, by image.
    threads_ns: HashMap<u32, u64>,
    /// Requests of which it is not known whether they count: their completions found the queue full.
    pub(super) undecided: u64,
}

/// `ECANCELED`.
const CANCELLED: u32 = rustix::io::Errno::CANCELED.raw_os_error().cast_unsigned();

impl RingBook {
    /// Takes the rows of images that have ended, for which `ended` holds, out of the kernel, and what they
    /// moved through files. A row to which a completion may still be added stays, and so do those that are found
    /// without a look-up, which have their places to the end.
    pub(super) fn take_ended(
        &mut self,
        session: &Session,
        ended: &dyn Fn(u32) -> bool,
        files: FilesOf<'_>,
    ) {
        let mut unfinished = HashSet::new();
        let mut any = false;
        session.visit("ring_operations", |key: RingKey, row: RingRow| {
            any = true;
            if row.submitted != row.ways.iter().sum::<u64>() {
                unfinished.insert(key.image);
            }
            RowAction::Kept
        });
        if any {
            let taken = |image| ended(image) && !unfinished.contains(&image);
            self.take(session, &taken, RowAction::Freed, files);
        }
    }

    /// Drops what images that are not asked for any more have.
    pub(super) fn forget(&mut self, image: u32) {
        self.operations.remove(&image);
        self.threads_ns.remove(&image);
    }

    /// What the kernel's tables have, from which nothing is taken.
    pub(super) fn look(session: &Session, files: FilesOf<'_>) -> Self {
        let mut seen = Self::default();
        seen.take(session, &|_| true, RowAction::Kept, files);
        seen.add_hot(session, files);
        seen
    }

    /// The images that have rows.
    pub(super) fn images(&self) -> impl Iterator<Item = u32> {
        self.operations.keys().copied()
    }

    /// Takes all there is, once nothing counts any more.
    pub(super) fn take_all(&mut self, session: &Session, files: FilesOf<'_>) {
        self.take(session, &|_| true, RowAction::Freed, files);
        self.add_hot(session, files);
        let mut overflows = HashMap::new();
        session.visit("ring_overflows", |name: RingName, Overflow(result)| {
            overflows.insert(name, result);
            RowAction::Kept
        });
        let mut end = |request: RingRequest| {
            if request.image == 0 {
                // It has ended.
            } else if let Some(result) = overflows.remove(&request.name) {
                if request.is_in_doubt {
                    self.undecided += 1;
                } else {
                    self.count(request.image, request.op).end_by_overflow(&request, result);
                }
            }
        };
        session.visit("ring_requests", |_: Address, request: RingRequest| {
            end(request);
            RowAction::Kept
        });
        session.entries(".bss.ring_slots").into_iter().for_each(|RingSlot(request)| end(request));
    }

    /// Adds the rows of images for which `taken` holds; the action is for these.
    fn take(
        &mut self,
        session: &Session,
        taken: &dyn Fn(u32) -> bool,
        action: RowAction,
        files: FilesOf<'_>,
    ) {
        let fate = |image: u32| if taken(image) { action } else { RowAction::Kept };
        session.visit("ring_operations", |key: RingKey, row: RingRow| {
            if taken(key.image) {
                self.count(key.image, key.op).add(&row);
            }
            fate(key.image)
        });
        session.visit("ring_times", |image: u32, Count(ns)| {
            if taken(image) {
                *self.threads_ns.entry(image).or_default() += ns;
            }
            fate(image)
        });
        session.visit("ring_errors", |key: RingErrorKey, Count(count)| {
            if taken(key.image) {
                let errors = &mut self.count(key.image, key.op).errors;
                *errors.entry(key.error).or_default() += count;
            }
            fate(key.image)
        });
        session.visit("ring_files", |key: FileKey, row: FileStats| {
            let image = key.thread;
            // Of a file that was met only, no request has ended.
            let is_used = row.numbers.read_calls + row.numbers.write_calls > 0;
            if is_used && taken(image) {
                files(image, FileKey { thread: 0, ..key }, &row);
            }
            fate(image)
        });
    }

    /// Adds the rows that the programs find without a look-up; these stay with their images.
    fn add_hot(&mut self, session: &Session, files: FilesOf<'_>) {
        for RingHotRow(entry) in session.entries(".bss.ring_rows") {
            if let Some((key, row)) = entry {
                self.count(key.image, key.op).add(&row);
            }
        }
        for RingHotFile(entry) in session.entries(".bss.ring_files") {
            if let Some((key, row)) = entry {
                files(key.thread, FileKey { thread: 0, ..key }, &row);
            }
        }
    }

    fn count(&mut self, image: u32, op: u32) -> &mut RingCount {
        self.operations.entry(image).or_default().entry(op).or_default()
    }

    /// The CPU time of the threads that io_uring made in an image's process.
    pub(super) fn threads_ns(&self, image: u32) -> u64 {
        self.threads_ns.get(&image).copied().unwrap_or(0)
    }

    /// The rows of an image that are wanted by their names, most requests first.
    pub(super) fn rows(
        &self,
        image: u32,
        (pid, exec): (u32, &str),
        is_wanted: impl Fn(&str) -> bool,
    ) -> Vec<RingOperation> {
        let of_image = self.operations.get(&image).into_iter().flatten();
        let mut rows: Vec<RingOperation> = of_image
            .map(|(op, count)| (ring_names::name(*op), count))
            .filter(|(op, count)| is_wanted(op) && !count.is_empty())
            .map(|(op, count)| RingOperation { pid, exec: exec.to_owned(), op, ..count.row() })
            .collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.submitted));
        rows
    }
}

impl RingCount {
    fn is_empty(&self) -> bool {
        self.submitted + self.before + self.results == 0
    }

    fn add(&mut self, row: &RingRow) {
        self.submitted += row.submitted;
        self.ways.iter_mut().zip(row.ways).for_each(|(sum, more)| *sum += more);
        self.results += row.results;
        self.overflows += row.overflows;
        self.before += row.before;
        self.registered += row.registered;
        self.forced += row.forced;
        self.unlinked += row.unlinked;
        self.bytes = self.bytes.wrapping_add(row.bytes);
        self.wall_ns += row.wall_ns;
        self.wall.max_ns = self.wall.max_ns.max(row.max_ns);
        row.wall.iter().for_each(|(bucket, count)| self.wall.add_bucket(*bucket, *count));
        row.sizes.iter().for_each(|(slot, count)| self.sizes.add_slot((*slot).into(), *count));
    }

    fn end_by_overflow(&mut self, request: &RingRequest, result: i64) {
        self.ways[usize::from(request.way) % WAYS] += 1;
        self.overflows += 1;
        match u32::try_from(-result).ok().filter(|error| *error > 0) {
            Some(error) => *self.errors.entry(error).or_default() += 1,
            None if ring_names::returns_bytes(request.op) => {
                self.bytes = self.bytes.wrapping_add(result.unsigned_abs());
                self.sizes.add(result.unsigned_abs());
            }
            None => {}
        }
    }

    fn row(&self) -> RingOperation {
        let [inline, sqpoll, polled, bounded, unbounded] = self.ways;
        let completed = self.ways.iter().sum();
        let errors = self.errors.iter();
        RingOperation {
            submitted: self.submitted,
            completed,
            errors: self.errors.values().sum(),
            cancelled: self.errors.get(&CANCELLED).copied().unwrap_or(0),
            error_kinds: errors.map(|(number, count)| (error_name(*number), *count)).collect(),
            in_flight: self.submitted.saturating_sub(completed),
            bytes: self.bytes,
            result_log2: self.sizes.clone(),
            wall_ns: self.wall_ns,
            max_ns: self.wall.max_ns,
            wall_log2: self.wall.log2(),
            wall_times: self.wall.clone(),
            inline,
            polled,
            worker: bounded + unbounded,
            worker_unbounded: unbounded,
            sqpoll,
            multishot_completions: self.results,
            overflows: self.overflows,
            before: self.before,
            registered_files: self.registered,
            forced_async: self.forced,
            unlinked: self.unlinked,
            ..RingOperation::default()
        }
    }
}

/// Where the kernel has a request.
struct Address;

impl Wire for Address {
    const SIZE: usize = 8;

    fn read(from: &mut Fields<'_>) -> Self {
        let _ = from.u64();
        Self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_whose_completion_found_the_queue_full_has_ended() {
        let mut book = RingBook::default();
        let name = RingName { ring: 1, name: 2 };
        let request = RingRequest { name, image: 7, op: 22, way: 3, is_in_doubt: false };
        book.count(7, 22).submitted = 3;
        book.count(7, 22).end_by_overflow(&request, 4096);
        book.count(7, 22).end_by_overflow(&request, -125);
        book.count(7, 23).end_by_overflow(&RingRequest { op: 23, ..request }, 4096);
        let rows = book.rows(7, (1, "a"), |op| op == "read");
        let [row] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!((row.completed, row.worker, row.in_flight, row.overflows), (2, 2, 1, 2));
        assert_eq!((row.bytes, row.errors, row.cancelled), (4096, 1, 1));
        assert_eq!((row.result_log2.buckets[12], row.result_log2.total()), (1, 1));
    }
}
