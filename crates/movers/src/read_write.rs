//! The `read-write` mover.
//!
//! ```text
//! source ──read(2)──▶ buffer of this process ──write(2)──▶ target
//!          copy 1                                copy 2
//! ```
//!
//! The only mover that serves every pair of descriptors: two crossings and two copies a block. The
//! buffer is aligned to pages, as `O_DIRECT` needs. A block that is not a multiple of the size that an
//! `O_DIRECT` end needs goes through a second description of the same file, without that flag.

use rustix::event::PollFlags;
use rustix::fs::{OFlags, SeekFrom, seek, tell};
use rustix::io::{Errno, read, write};

use iotomy_sys::buffer::Aligned;
use iotomy_sys::close::close;

use crate::memory::buffer;
use crate::patience::patiently;
use crate::position::{apart, give_back};
use crate::reopen::reopen;
use crate::route::Route;
use crate::{
    BLOCK_SIZE, Choice, End, Holes, Job, Kind, MoveError, Moved, Mover, MoverDeclaration, Outcome,
    Side, Traffic,
};

pub(crate) struct ReadWrite;

static DECLARATION: MoverDeclaration = MoverDeclaration {
    name: "read-write",
    summary: "read(2) into a buffer, write(2) from it",
    description: "The kernel copies each block into this process and out again: two crossings and \
        two copies. Serves every pair of descriptors except two of the same bytes.",
    man: &["read(2)", "write(2)"],
    calls: &["read", "write", "ppoll", "lseek"],
    by_reference: false,
    positioned: false,
    holes: Holes::Found,
    chosen: &[
        Choice {
            routes: &[Route::ZerosToHoles],
            rank: 90,
            reason: "it inspects the bytes, and a block of zeros becomes a hole",
        },
        Choice {
            routes: &[Route::FromMadeUp],
            rank: 90,
            reason: "the source is generated when read, and offloads end at once",
        },
        Choice {
            routes: &[
                Route::Appending,
                Route::ZerosToFile,
                Route::SmallFile,
                Route::LargeFile,
                Route::FileToFile,
                Route::LargeFileCopied,
                Route::FileToFileCopied,
                Route::FileToPipe,
                Route::FileToSocket,
                Route::FileToLoopback,
                Route::FileToNull,
                Route::PipeToDevice,
                Route::FromPipe,
                Route::FromSocket,
                Route::DeviceToPipe,
                Route::Other,
            ],
            rank: 90,
            reason: "serves every pair that the others do not: two copies",
        },
    ],
    tunings: &[
        "block-size=32768",
        "block-size=65536",
        "block-size=131072",
        "block-size=262144",
        "block-size=1048576",
    ],
};

impl Mover for ReadWrite {
    fn declaration(&self) -> &'static MoverDeclaration {
        &DECLARATION
    }

    fn serves(&self, source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Result<(), String> {
        apart(source, target, job)
    }

    fn buffers(&self, _: &End<'_>, _: &End<'_>, job: &Job<'_>) -> u64 {
        job.want(0, job.block()) as u64
    }

    fn run(&self, source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Result<Outcome, MoveError> {
        match buffer(job.want(0, job.block())) {
            Ok(buffer) => {
                let nothing = Moved::default();
                pump_by(buffer, &DECLARATION, source, target, job, nothing).map(Outcome::Done)
            }
            Err(errno) => Ok(Outcome::Refused { call: "mmap", errno: Some(errno) }),
        }
    }
}

/// The traffic of `bytes` that are read and written.
pub(crate) fn traffic(target: &End<'_>, bytes: u64) -> Traffic {
    let copies = if target.is_null_device() { 1 } else { 2 };
    Traffic { referenced: 0, copied: copies * bytes, touched: bytes }
}

/// Reads and writes from the descriptors' positions until the source ends or the job's count is
/// reached, of which `of` has `moved` some already; returns the total.
pub(crate) fn pump(
    of: &MoverDeclaration,
    source: &End<'_>,
    target: &End<'_>,
    job: &Job<'_>,
    moved: Moved,
) -> Result<Moved, MoveError> {
    let wanted = job.want(moved.bytes, job.block());
    // The gain of larger blocks is not worth an error in the middle.
    let buffer = buffer(wanted)
        .or_else(|_| buffer(wanted.min(BLOCK_SIZE)))
        .map_err(|e| MoveError::new(of, "mmap", Side::Either, moved, e))?;
    pump_by(buffer, of, source, target, job, moved)
}

/// Moves what read(2) gives behind the place where a source seems to end. Calls inside the kernel, and mappings, end at
/// a regular file's size; a file of FUSE may have more bytes, and one of a network may have grown since.
pub(crate) fn read_on(
    of: &MoverDeclaration,
    source: &End<'_>,
    target: &End<'_>,
    job: &Job<'_>,
    moved: Moved,
) -> Result<Moved, MoveError> {
    // To read a terminal once more would wait, and a block device has a size.
    if source.kind() != Kind::Regular {
        return Ok(moved);
    }
    let mut all = moved;
    if !source.is_direct() {
        // Most often there is nothing, for which no buffer is made.
        let mut few = [0; 4096];
        let want = job.want(all.bytes, few.len());
        if want == 0 {
            return Ok(all);
        }
        let got = take(source, &mut few[..want])
            .map_err(|e| MoveError::new(of, "read", Side::Source, all, e))?;
        if got == 0 {
            return Ok(all);
        }
        put_all(of, source, target, job, &few[..got], &mut all)?;
    }
    pump(of, source, target, job, all)
}

/// As [`pump`], by a buffer that is there.
fn pump_by(
    mut buffer: Aligned,
    of: &MoverDeclaration,
    source: &End<'_>,
    target: &End<'_>,
    job: &Job<'_>,
    moved: Moved,
) -> Result<Moved, MoveError> {
    let mut all = moved;
    loop {
        let want = job.want(all.bytes, buffer.len());
        if want == 0 {
            return Ok(all);
        }
        let got = take(source, &mut buffer[..want])
            .map_err(|e| MoveError::new(of, "read", Side::Source, all, e))?;
        if got == 0 {
            return Ok(all);
        }
        put_all(of, source, target, job, &buffer[..got], &mut all)?;
    }
}

/// Reads the next bytes of the source, at most as many as there is room for.
pub(crate) fn take(source: &End<'_>, into: &mut [u8]) -> Result<usize, Errno> {
    match patiently(source.fd(), PollFlags::IN, || read(source.fd(), &mut *into)) {
        Err(Errno::INVAL) if source.is_direct() => get_plainly(source, into),
        answer => answer,
    }
}

/// Writes the whole `block`, adding the bytes that reached the target to `all`; gives the others
/// back to the source.
pub(crate) fn put_all(
    of: &MoverDeclaration,
    source: &End<'_>,
    target: &End<'_>,
    job: &Job<'_>,
    block: &[u8],
    all: &mut Moved,
) -> Result<(), MoveError> {
    let mut rest = block;
    while !rest.is_empty() {
        let put = match patiently(target.fd(), PollFlags::OUT, || write(target.fd(), rest)) {
            Err(Errno::INVAL) if target.is_direct() => put_plainly(target, rest),
            // No bytes and no error: not to be repeated for ever.
            Ok(0) => Err(Errno::IO),
            answer => answer,
        };
        match put {
            Ok(put) => {
                rest = &rest[put..];
                let bytes = put as u64;
                *all = *all + Moved { bytes, traffic: traffic(target, bytes) };
                job.advance(bytes);
            }
            Err(errno) => {
                let lost = give_back(source, rest.len() as u64);
                return Err(MoveError::new(of, "write", Side::Target, *all, errno).losing(lost));
            }
        }
    }
    Ok(())
}

/// Writes through the page cache to a target that was opened past it, where it is written to next.
fn put_plainly(target: &End<'_>, bytes: &[u8]) -> Result<usize, Errno> {
    let append = if target.is_append() { OFlags::APPEND } else { OFlags::empty() };
    let plain = reopen(target.fd(), OFlags::WRONLY | append)?;
    seek(&plain, SeekFrom::Start(tell(target.fd())?))?;
    let put = patiently(target.fd(), PollFlags::OUT, || write(&plain, bytes))?;
    seek(target.fd(), SeekFrom::Start(tell(&plain)?))?;
    close(plain).map_err(|e| Errno::from_io_error(&e).unwrap_or(Errno::IO))?;
    Ok(put)
}

/// Reads through the page cache from a source that was opened with `O_DIRECT`: for an offset or a
/// count that is not a multiple of what the flag needs.
fn get_plainly(source: &End<'_>, into: &mut [u8]) -> Result<usize, Errno> {
    let plain = reopen(source.fd(), OFlags::RDONLY)?;
    seek(&plain, SeekFrom::Start(tell(source.fd())?))?;
    let got = patiently(source.fd(), PollFlags::IN, || read(&plain, &mut *into))?;
    seek(source.fd(), SeekFrom::Start(tell(&plain)?))?;
    Ok(got)
}
