//! The side band of `perf_event_open(2)`: the code mappings, execs and forks of processes, as the
//! kernel reports them to profilers.
//!
//! The kernel writes into a shared ring. The one invariant: the bytes between the two ends belong
//! to this side until the rear end is moved, so they are copied out first.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::mapping::map;
use crate::perf_event::{
    Attributes, PERF_COUNT_SW_DUMMY, PERF_TYPE_SOFTWARE, Scope, perf_event_open,
};

/// Pages of a ring, a power of two. With the one in front, and with pages of 4 KiB, it stays below
/// the memory that the kernel lets any user lock for each CPU (`kernel.perf_event_mlock_kb`, 516 by
/// default).
const PAGES: usize = 64;

/// `PERF_SAMPLE_TIME`: a record ends with its time.
const SAMPLE_TIME: u64 = 1 << 2;

/// Bit fields of `struct perf_event_attr`.
const MMAP: u64 = 1 << 8;
const COMM: u64 = 1 << 9;
const TASK: u64 = 1 << 13;
const WATERMARK: u64 = 1 << 14;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const MMAP2: u64 = 1 << 23;
const COMM_EXEC: u64 = 1 << 24;
const USE_CLOCKID: u64 = 1 << 25;

/// Places in the page in front of a ring, `struct perf_event_mmap_page`.
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;

/// The events of one CPU.
#[derive(Debug)]
pub struct SideBand {
    event: OwnedFd,
    start: NonNull<libc::c_void>,
    page: usize,
}

// SAFETY: the mapping is owned alone, and its words are read and written as atomics.
unsafe impl Send for SideBand {}

impl SideBand {
    /// Receives the events of all processes of a CPU from now on, with times of `CLOCK_MONOTONIC`.
    ///
    /// # Errors
    /// As perf_event_open(2) and mmap(2): `EACCES`, `EPERM` without the right to watch all processes.
    pub fn open(cpu: u32) -> io::Result<Self> {
        // SAFETY: takes a plain integer.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        let attributes = Attributes {
            kind: PERF_TYPE_SOFTWARE,
            config: PERF_COUNT_SW_DUMMY,
            sample_type: SAMPLE_TIME,
            flags: MMAP | MMAP2 | COMM | COMM_EXEC | TASK | WATERMARK | SAMPLE_ID_ALL | USE_CLOCKID,
            // With WATERMARK these are bytes: a ring is to be emptied when it is half full.
            wakeup_events: u32::try_from(PAGES * page / 2).unwrap_or(u32::MAX),
            clockid: libc::CLOCK_MONOTONIC,
            ..Attributes::default()
        };
        let event = perf_event_open(attributes, Scope::Cpu(cpu))?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let length = (PAGES + 1) * page;
        let start = map(length, protection, libc::MAP_SHARED, event.as_raw_fd(), 0)?;
        Ok(Self { event, start, page })
    }

    /// Reads everything in the ring, appending the bytes to `into`; [`records`] parses them.
    pub fn take(&mut self, into: &mut Vec<u8>) {
        let size = PAGES * self.page;
        let head = self.word(DATA_HEAD).load(Ordering::Acquire);
        let mut at = self.word(DATA_TAIL).load(Ordering::Relaxed);
        while at < head {
            let from = usize::try_from(at).unwrap_or(0) % size;
            let left = usize::try_from(head - at).unwrap_or(usize::MAX);
            let run = left.min(size - from);
            // SAFETY: `from + run` is at most `size`, which lies behind the first page.
            let part = unsafe { self.start.as_ptr().cast::<u8>().add(self.page + from) };
            // SAFETY: the kernel has written these bytes, by the acquired end, and leaves them alone
            // until the other end is moved below.
            into.extend_from_slice(unsafe { std::slice::from_raw_parts(part, run) });
            at += run as u64;
        }
        self.word(DATA_TAIL).store(head, Ordering::Release);
    }

    fn word(&self, at: usize) -> &AtomicU64 {
        // SAFETY: both places are in the first page, which is mapped as long as `self` lives.
        let word = unsafe { self.start.as_ptr().byte_add(at) };
        // SAFETY: aligned by eight, and touched by both sides as a whole word only.
        unsafe { AtomicU64::from_ptr(word.cast()) }
    }
}

impl AsFd for SideBand {
    /// Readable when the ring is half full.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

impl Drop for SideBand {
    fn drop(&mut self) {
        // SAFETY: mapped by `open` with this length, and not used afterwards.
        unsafe { libc::munmap(self.start.as_ptr(), (PAGES + 1) * self.page) };
    }
}

/// An event with its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// By `CLOCK_MONOTONIC`, in ns.
    pub at_ns: u64,
    /// The event.
    pub event: Event,
}

/// An event of a process. Ids are those of this process's namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// It was made by another.
    Fork {
        /// Its id.
        pid: u32,
        /// Its parent.
        parent: u32,
    },
    /// It executed another program: its mappings are gone.
    Exec {
        /// Its id.
        pid: u32,
    },
    /// It mapped code.
    Map {
        /// Its id.
        pid: u32,
        /// Where to.
        start: u64,
        /// How much, in bytes.
        length: u64,
        /// From where in the file, in bytes.
        offset: u64,
        /// The file's; 0 of memory of no file.
        inode: u64,
        /// The file's, or the kernel's name for it.
        path: Vec<u8>,
    },
    /// This many records found no room in the ring.
    Lost(u64),
}

/// The records of a ring's bytes. Unknown kinds are skipped, and so is the rest behind a record of
/// impossible size.
pub fn records(mut bytes: &[u8]) -> Vec<Record> {
    let mut found = Vec::new();
    // `struct perf_event_header`: a kind, two bytes of flags, and the size.
    while let Some(header) = bytes.first_chunk::<8>() {
        let [k0, k1, k2, k3, f0, f1, s0, s1] = *header;
        let size = usize::from(u16::from_ne_bytes([s0, s1]));
        let Some(body) = bytes.get(8..size) else { break };
        let kind = u32::from_ne_bytes([k0, k1, k2, k3]);
        found.extend(record(kind, u16::from_ne_bytes([f0, f1]), body));
        bytes = &bytes[size..];
    }
    found
}

fn record(kind: u32, flags: u16, body: &[u8]) -> Option<Record> {
    const LOST: u32 = 2;
    const COMM: u32 = 3;
    const FORK: u32 = 7;
    const MMAP2: u32 = 10;
    const IS_EXEC: u16 = 1 << 13;
    let (body, time) = body.split_at_checked(body.len().checked_sub(8)?)?;
    let at_ns = word(time, 0)?;
    let event = match kind {
        LOST => Event::Lost(word(body, 8)?),
        COMM if flags & IS_EXEC != 0 => Event::Exec { pid: half(body, 0)? },
        // Of a thread, both are the same.
        FORK if half(body, 0) != half(body, 4) => {
            Event::Fork { pid: half(body, 0)?, parent: half(body, 4)? }
        }
        MMAP2 => Event::Map {
            pid: half(body, 0)?,
            start: word(body, 8)?,
            length: word(body, 16)?,
            offset: word(body, 24)?,
            inode: word(body, 40)?,
            path: text(body.get(64..)?),
        },
        _ => return None,
    };
    Some(Record { at_ns, event })
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|bytes| u64::from_ne_bytes(*bytes))
}

fn half(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))
}

fn text(bytes: &[u8]) -> Vec<u8> {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    bytes[..end].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(kind: u32, flags: u16, body: &[u8], at_ns: u64) -> Vec<u8> {
        let size = u16::try_from(body.len() + 16).unwrap();
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend(flags.to_ne_bytes());
        bytes.extend(size.to_ne_bytes());
        bytes.extend(body);
        bytes.extend(at_ns.to_ne_bytes());
        bytes
    }

    fn mapped() -> Vec<u8> {
        let mut body = [7u32, 8].map(u32::to_ne_bytes).concat();
        body.extend([0x1000u64, 0x2000, 0x3000, 0, 42, 0, 0].map(u64::to_ne_bytes).concat());
        body.extend(b"/bin/dd\0");
        raw(10, 2, &body, 99)
    }

    #[test]
    fn records_are_read_one_after_another() {
        let mut bytes = raw(7, 0, &[9u32, 7, 9, 7, 0, 0].map(u32::to_ne_bytes).concat(), 50);
        bytes.extend(raw(7, 0, &[7u32, 7, 9, 7, 0, 0].map(u32::to_ne_bytes).concat(), 51));
        bytes.extend(raw(3, 1 << 13, b"\x07\0\0\0\x08\0\0\0dd\0\0\0\0\0\0", 60));
        bytes.extend(raw(3, 0, b"\x07\0\0\0\x08\0\0\0dd\0\0\0\0\0\0", 61));
        bytes.extend(mapped());
        bytes.extend(raw(2, 0, &[1u64, 5].map(u64::to_ne_bytes).concat(), 70));
        let events: Vec<_> = records(&bytes).into_iter().map(|r| (r.at_ns, r.event)).collect();
        let path = b"/bin/dd".to_vec();
        assert_eq!(
            events,
            [
                (50, Event::Fork { pid: 9, parent: 7 }),
                (60, Event::Exec { pid: 7 }),
                (
                    99,
                    Event::Map {
                        pid: 7,
                        start: 0x1000,
                        length: 0x2000,
                        offset: 0x3000,
                        inode: 42,
                        path
                    }
                ),
                (70, Event::Lost(5)),
            ]
        );
    }

    #[test]
    fn what_is_cut_short_is_left_out() {
        let whole = mapped();
        for length in 0..whole.len() {
            assert!(records(&whole[..length]).is_empty());
        }
        assert!(records(&[0; 64]).is_empty());
    }
}
