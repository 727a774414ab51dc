//! The `mmap-write` mover.
//!
//! ```text
//! source ──mmap(2)──▶ page cache, seen through a window of 8 MiB ──write(2)──▶ target
//!                                                                  copy 1
//! ```
//!
//! The one copy is the write's; the price is the mapping: a page fault for each page not populated,
//! and the tables made and torn down for each window. This is how cat worked on Solaris.
//!
//! A hole of a file in memory (tmpfs) does not survive access through a mapping: the page fault
//! gives the source a page there. [`crate::chooser::run`] keeps windows off holes unless these are
//! to be written as zeros.
//!
//! The one invariant: this process never reads a window, it passes it to write(2). So a page that
//! is not available is an `EFAULT` and no SIGBUS. The file may have lost it, or it could not be
//! read (`EIO`), or there was no memory for it: `EFAULT` does not distinguish these. So it is read
//! with pread(2), which does. In the page that holds a new end the lost bytes read as zeroes, so
//! each write goes no further than the file's size just before it; a file that shrinks in between
//! can still return zeroes for the lost bytes. A file system that may claim more bytes than it gives is asked for the last
//! byte of a window first.

use rustix::event::PollFlags;
use rustix::io::{Errno, pread, write};

use iotomy_sys::mapping::Window;

use crate::patience::patiently;
use crate::position::{apart, reaches, remaining};
use crate::refusal::{only, refused_or_failed};
use crate::route::Route;
use crate::{
    Choice, End, Holes, Job, Kind, MoveError, Moved, Mover, MoverDeclaration, Outcome, Side,
    Traffic, read_write,
};

/// Bytes a window, as cat on Solaris had it.
const WINDOW: u64 = 8 << 20;

/// The alignment of windows.
const PAGE: u64 = 4096;

pub(crate) struct MmapWrite;

static DECLARATION: MoverDeclaration = MoverDeclaration {
    name: "mmap-write",
    summary: "mmap(2) the source in windows of 8 MiB, write(2) from them",
    description: "The kernel copies once, from the page cache to the target, and maps and unmaps \
        each window for that. As in cat on Solaris.",
    man: &["mmap(2)", "write(2)"],
    calls: &["mmap", "madvise", "write", "munmap", "fstat", "ppoll", "lseek", "pread64", "read"],
    by_reference: false,
    positioned: true,
    holes: Holes::Filled,
    chosen: &[
        Choice {
            routes: &[Route::Appending],
            rank: 10,
            reason: "the target appends: one copy, from the source's page cache",
        },
        Choice {
            routes: &[Route::FileToNull],
            rank: 10,
            reason: "no copy: the null device reads no page of the mapping",
        },
    ],
    tunings: &[],
};

impl Mover for MmapWrite {
    fn declaration(&self) -> &'static MoverDeclaration {
        &DECLARATION
    }

    fn serves(&self, source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Result<(), String> {
        only(source, "source", &[Kind::Regular])?;
        if !source.has_true_size() {
            return Err("the source is generated when read".to_owned());
        }
        if target.is_direct() {
            return Err("the target is open with O_DIRECT".to_owned());
        }
        apart(source, target, job)
    }

    fn run(&self, source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Result<Outcome, MoveError> {
        let start = match rustix::fs::tell(source.fd()) {
            Ok(start) => start,
            Err(errno) => return Ok(Outcome::Refused { call: "lseek", errno: Some(errno) }),
        };
        let mut count = Count::default();
        let outcome = windows(source, target, job, start, &mut count);
        let plain = read_write::traffic(target, count.plain);
        let mapped = traffic(target, job, count.bytes - count.plain);
        let moved = Moved { bytes: count.bytes, traffic: mapped + plain };
        // The target's position moved with each write; the source's is ours to put behind them.
        let at = rustix::fs::SeekFrom::Start(start + count.bytes);
        let settled = rustix::fs::seek(source.fd(), at).map_err(|e| ("lseek", Side::Source, e));
        match outcome.and(settled) {
            Ok(_) => {
                let on = read_write::read_on(&DECLARATION, source, target, job, moved);
                on.map(Outcome::Done)
            }
            Err(("mmap", side, e)) => refused_or_failed(&DECLARATION, "mmap", side, moved, e),
            Err((call, side, e)) => Err(MoveError::new(&DECLARATION, call, side, moved, e)),
        }
    }
}

/// The traffic of `bytes` that are written from windows.
fn traffic(target: &End<'_>, job: &Job<'_>, bytes: u64) -> Traffic {
    // The null device reads no page, so none is even mapped.
    let seen = if target.is_null_device() && !job.populate { 0 } else { bytes };
    let copied = if target.is_null_device() { 0 } else { bytes };
    Traffic { referenced: 0, copied, touched: seen }
}

/// The bytes that have reached the target.
#[derive(Debug, Clone, Copy, Default)]
struct Count {
    bytes: u64,
    /// How many of these were read plainly, as their pages could not be mapped.
    plain: u64,
}

/// A call that failed, and the end it failed on.
type Failed = (&'static str, Side, Errno);

fn windows(
    source: &End<'_>,
    target: &End<'_>,
    job: &Job<'_>,
    start: u64,
    count: &mut Count,
) -> Result<(), Failed> {
    loop {
        let at = start + count.bytes;
        let left = left(source, job, at, count.bytes)?;
        if left == 0 {
            return Ok(());
        }
        let base = at - at % PAGE;
        let length = usize::try_from((at - base + left).min(WINDOW)).expect("8 MiB at most");
        // Pages behind the bytes that the source really has would be zeros. Reading goes on from here.
        if !source.gives_its_size() && !reaches(source, base + length as u64) {
            return Ok(());
        }
        // Pages that are populated by mmap cannot be advised before.
        let populate = job.populate && !job.huge_pages;
        let window = Window::map(source.fd(), base, length, populate)
            .map_err(|e| ("mmap", Side::Source, errno(&e)))?;
        if job.huge_pages {
            window.advise_huge_pages();
        }
        if job.populate && job.huge_pages {
            // A page that cannot be faulted in now fails again in the write, which reports the
            // reason.
            let _ = window.fault_in(0..length);
        }
        let skip = usize::try_from(at - base).expect("less than a page");
        if !empty(source, target, job, &window, (base, skip..length), count)? {
            return Ok(());
        }
    }
}

/// Writes a part of the window that begins at `base`; `false` when the source has ended in it.
fn empty(
    source: &End<'_>,
    target: &End<'_>,
    job: &Job<'_>,
    window: &Window,
    (base, part): (u64, std::ops::Range<usize>),
    count: &mut Count,
) -> Result<bool, Failed> {
    let mut at = part.start;
    while at < part.end {
        let place = base + at as u64;
        let left = left(source, job, place, count.bytes)?;
        let until = part.end.min(at.saturating_add(usize::try_from(left).unwrap_or(usize::MAX)));
        if at == until {
            return Ok(false);
        }
        let put = patiently(target.fd(), PollFlags::OUT, || {
            window.write_to(target.fd(), at..until).map_err(|e| errno(&e))
        });
        let put = match put {
            Ok(0) => return Err(("write", Side::Target, Errno::IO)),
            Ok(put) => put,
            Err(Errno::FAULT) => match plainly(source, target, place, until - at)? {
                0 => return Ok(false),
                put => {
                    count.plain += put as u64;
                    put
                }
            },
            Err(errno) => return Err(("write", Side::Target, errno)),
        };
        at += put;
        count.bytes += put as u64;
        job.advance(put as u64);
    }
    Ok(true)
}

/// Moves a page's worth of bytes that could not be mapped, `most` of them at most; 0 when the source has ended.
fn plainly(source: &End<'_>, target: &End<'_>, at: u64, most: usize) -> Result<usize, Failed> {
    let mut page = [0; PAGE as usize];
    let want = most.min(page.len());
    let got = patiently(source.fd(), PollFlags::IN, || pread(source.fd(), &mut page[..want], at))
        .map_err(|e| ("pread64", Side::Source, e))?;
    if got == 0 {
        return Ok(0);
    }
    match patiently(target.fd(), PollFlags::OUT, || write(target.fd(), &page[..got])) {
        Ok(0) => Err(("write", Side::Target, Errno::IO)),
        answer => answer.map_err(|e| ("write", Side::Target, e)),
    }
}

fn errno(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}

/// The bytes still to be moved from offset `at`, after `bytes`.
fn left(source: &End<'_>, job: &Job<'_>, at: u64, bytes: u64) -> Result<u64, Failed> {
    let rest = Job { count: job.count.map(|count| count - bytes), ..*job };
    remaining(source, at, &rest).map_err(|e| ("fstat", Side::Source, e))
}
