//! The kernel's rows, added up by program image.
//!
//! Rows in the kernel are a thread's; here they are an image's. Rows of threads that ended can be
//! taken and freed while the watch goes on; the invariant is that a row is added exactly once: it
//! is freed when it is taken, or taken at the end, when nothing changes any more.

use std::collections::{BTreeMap, HashMap, HashSet};

use iotomy_record::Histogram;

use super::layout::{
    CARRY_STEP, CallKey, CallStats, ErrorCount, FileKey, FileName, FileStats, Image, Program,
    WaitStats,
};
use super::object::{RowAction, Session};

/// A call of an image, all threads together.
#[derive(Debug, Default)]
pub(super) struct CallBook {
    pub(super) wall_ns: u64,
    pub(super) blocked_ns: u64,
    pub(super) runnable_ns: u64,
    pub(super) max_ns: u64,
    pub(super) bytes: u64,
    pub(super) in_flight: u64,
    pub(super) entered_before: u64,
    pub(super) asked: u64,
    pub(super) errors: BTreeMap<u16, u64>,
    pub(super) returns: Histogram,
    pub(super) wall: Histogram,
    pub(super) on_cpu: Histogram,
    pub(super) blocked: Histogram,
}

/// Reads and writes of one file by one image.
#[derive(Debug, Default)]
pub(super) struct FileBook {
    pub(super) read_calls: u64,
    pub(super) read_bytes: u64,
    pub(super) write_calls: u64,
    pub(super) write_bytes: u64,
    pub(super) map_calls: u64,
    pub(super) mapped_bytes: u64,
}

/// Everything counted so far.
#[derive(Debug, Default)]
pub(super) struct Books {
    pub(super) images: BTreeMap<u32, Image>,
    pub(super) programs: HashMap<u32, Program>,
    /// By image, then by call.
    pub(super) calls: HashMap<u32, BTreeMap<u16, CallBook>>,
    /// By image, then by file.
    pub(super) files: HashMap<u32, HashMap<FileKey, FileBook>>,
    pub(super) file_names: HashMap<FileKey, FileName>,
}

impl Books {
    /// Takes the rows of threads that ended out of the kernel, and of images without any left.
    pub(super) fn take_dead(&mut self, session: &Session, dead: &HashSet<u32>) {
        self.take(session, &|thread| dead.contains(&thread));
        session.visit("images", |id, image: Image| {
            if image.live > 0 {
                return RowAction::Kept;
            }
            self.images.insert(id, image);
            RowAction::Freed
        });
    }

    /// Takes all there is, once nothing counts any more.
    pub(super) fn take_all(&mut self, session: &Session) {
        self.take(session, &|_| true);
        session.visit("images", |id, image| {
            self.images.insert(id, image);
            RowAction::Freed
        });
        session.visit("file_names", |key, name| {
            self.file_names.insert(key, name);
            RowAction::Freed
        });
    }

    fn take(&mut self, session: &Session, taken: &dyn Fn(u32) -> bool) {
        session.visit("calls", |key: CallKey, row: CallStats| {
            fate(taken(key.thread), || self.call(row.image, key).add(&row))
        });
        session.visit("waits", |key: CallKey, row: WaitStats| {
            fate(taken(key.thread), || self.call(row.image, key).add_waits(&row))
        });
        session.visit("carries", |key: CallKey, row: ErrorCount| {
            fate(taken(key.thread), || self.call(row.image, key).carry(key.error, row.count))
        });
        session.visit("asked", |key: CallKey, row: ErrorCount| {
            fate(taken(key.thread), || self.call(row.image, key).asked += row.count)
        });
        session.visit("errors", |key: CallKey, row: ErrorCount| {
            fate(taken(key.thread), || {
                *self.call(row.image, key).errors.entry(key.error).or_default() += row.count;
            })
        });
        session.visit("files", |key: FileKey, row: FileStats| {
            fate(taken(key.thread), || {
                let file = FileKey { thread: 0, ..key };
                self.files.entry(row.image).or_default().entry(file).or_default().add(&row);
            })
        });
        self.take_programs(session);
    }

    /// Reads the programs of images, which do not change.
    pub(super) fn take_programs(&mut self, session: &Session) {
        session.visit("programs", |image, program| {
            self.programs.entry(image).or_insert(program);
            RowAction::Freed
        });
    }

    fn call(&mut self, image: u32, key: CallKey) -> &mut CallBook {
        self.calls.entry(image).or_default().entry(key.call).or_default()
    }

    /// The program of an image: its own, or that of the image it was forked from.
    pub(super) fn program(&self, image: u32) -> Option<&Program> {
        let mut at = image;
        // An origin is always older, so the walk ends.
        loop {
            if let Some(program) = self.programs.get(&at) {
                return Some(program);
            }
            let origin = self.images.get(&at)?.origin;
            if origin == 0 || origin >= at {
                return None;
            }
            at = origin;
        }
    }
}

impl CallBook {
    fn add(&mut self, row: &CallStats) {
        self.wall_ns += row.wall_ns;
        self.max_ns = self.max_ns.max(row.max_ns);
        self.bytes = self.bytes.wrapping_add(row.bytes);
        self.in_flight += u64::from(row.in_flight);
        self.entered_before += u64::from(row.entered_before);
        add(&mut self.returns, &row.returns);
        add(&mut self.wall, &row.plain);
        add(&mut self.on_cpu, &row.plain);
    }

    fn add_waits(&mut self, row: &WaitStats) {
        self.wall_ns += row.wall_ns;
        self.blocked_ns += row.blocked_ns;
        self.runnable_ns += row.runnable_ns;
        add(&mut self.wall, &row.wall);
        add(&mut self.on_cpu, &row.on_cpu);
        // A preempted call was off its CPU without having slept: not a blocked one.
        add(&mut self.blocked, &row.blocked);
        self.blocked.zero = 0;
    }

    /// Adds the overflow of a short counter of the kernel's rows.
    fn carry(&mut self, counter: u16, count: u64) {
        let slot = usize::from(counter % CARRY_STEP);
        match counter / CARRY_STEP {
            0 => self.returns.add_slot(slot, count),
            1 => {
                self.wall.add_slot(slot, count);
                self.on_cpu.add_slot(slot, count);
            }
            2 => self.wall.add_slot(slot, count),
            3 => self.on_cpu.add_slot(slot, count),
            _ if slot > 0 => self.blocked.add_slot(slot, count),
            _ => {}
        }
    }

    pub(super) fn on_cpu_ns(&self) -> u64 {
        self.wall_ns.saturating_sub(self.blocked_ns + self.runnable_ns)
    }
}

/// Takes a row over, if it is to be taken.
fn fate(taken: bool, take: impl FnOnce()) -> RowAction {
    if !taken {
        return RowAction::Kept;
    }
    take();
    RowAction::Freed
}

fn add(to: &mut Histogram, from: &[u32]) {
    for (slot, count) in from.iter().enumerate() {
        to.add_slot(slot, u64::from(*count));
    }
}

impl FileBook {
    pub(super) fn add(&mut self, row: &FileStats) {
        self.read_calls += row.read_calls;
        self.read_bytes += row.read_bytes;
        self.write_calls += row.write_calls;
        self.write_bytes += row.write_bytes;
        self.map_calls += row.map_calls;
        self.mapped_bytes += row.mapped_bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_that_overflowed_is_made_whole() {
        let mut call = CallBook::default();
        call.wall.add_slot(8, 5);
        let plain_8 = CARRY_STEP + 8;
        call.carry(plain_8, 1 << 32);
        assert_eq!((call.wall.buckets[7], call.on_cpu.buckets[7]), ((1 << 32) + 5, 1 << 32));
        call.carry(0, 1 << 32);
        assert_eq!(call.returns.zero, 1 << 32);
        call.carry(2 * CARRY_STEP + 30, 7);
        call.carry(3 * CARRY_STEP + 30, 8);
        call.carry(4 * CARRY_STEP + 30, 9);
        call.carry(4 * CARRY_STEP, 9);
        let at_30 = [&call.wall, &call.on_cpu, &call.blocked].map(|h| h.buckets[29]);
        assert_eq!((at_30, call.blocked.zero), ([7, 8, 9], 0));
    }
}
