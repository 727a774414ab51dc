//! The `direct` mover.
//!
//! ```text
//! source ──pread64(2), O_DIRECT──▶ buffer A ──pwrite64(2), O_DIRECT──▶ target
//!          by the device, thread 1  buffer B   by the device, thread 2
//! ```
//!
//! Bypasses the page cache: the devices read and write this process's memory, the CPU copies
//! nothing, and cached pages of others stay cached. There are two buffers, so that one is filled
//! while the other is written. Two crossings a block; each waits for a device.
//!
//! `O_DIRECT` needs offsets and lengths in the device's blocks. Both positions must be aligned; the
//! last partial block, and bytes by which the source has grown meanwhile, go through the
//! descriptors as they were given. The flag is set on new file descriptions, opened through
//! `/proc/self/fd`: the given ones may be shared with other processes.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use rustix::fs::{AtFlags, OFlags, StatxFlags, statx};
use rustix::io::{Errno, pread, pwrite};
use rustix::pipe::{PipeFlags, pipe_with};

use iotomy_host::file_systems;
use iotomy_sys::buffer::Aligned;
use iotomy_sys::close::close;

use crate::join::join;
use crate::memory::buffer;
use crate::patience::IN_VAIN;
use crate::position::{Positions, apart, remaining};
use crate::read_write::pump;
use crate::refusal::{only, plain, refused_or_failed};
use crate::reopen::reopen;
use crate::{
    End, Holes, Job, Kind, MoveError, Moved, Mover, MoverDeclaration, Outcome, Probe, Side, Traffic,
};

pub(crate) struct Direct;

static DECLARATION: MoverDeclaration = MoverDeclaration {
    name: "direct",
    summary: "O_DIRECT: past the page cache, double buffered",
    description: "Devices read into and write from two buffers of this process in turn; nothing \
        is cached and the CPU copies nothing. The last partial block goes through the page cache.",
    man: &["open(2)", "pread(2)", "pwrite(2)", "statx(2)"],
    calls: &[
        "pread64", "pwrite64", "read", "write", "ppoll", "lseek", "fstat", "open", "statx", "close",
    ],
    by_reference: false,
    positioned: true,
    holes: Holes::Filled,
    chosen: &[],
    tunings: &["block-size=1048576"],
};

/// Bytes a request at least: small ones leave a device idle.
const LEAST: usize = 1 << 20;

impl Mover for Direct {
    fn declaration(&self) -> &'static MoverDeclaration {
        &DECLARATION
    }

    fn probe(&self) -> Probe {
        let again = pipe_with(PipeFlags::CLOEXEC)
            .and_then(|(out, _into)| reopen(out.as_fd(), OFlags::RDONLY | OFlags::NONBLOCK));
        match again {
            Ok(_) => Probe::Ready,
            Err(e) => Probe::Unsupported(format!("open of /proc/self/fd: {}", io::Error::from(e))),
        }
    }

    fn serves(&self, source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Result<(), String> {
        only(source, "source", &[Kind::Regular, Kind::Block])?;
        only(target, "target", &[Kind::Regular, Kind::Block])?;
        if source.kind() == Kind::Regular && !source.has_true_size() {
            return Err("the source is generated when read".to_owned());
        }
        plain(source, target)?;
        apart(source, target, job)
    }

    fn buffers(&self, _: &End<'_>, _: &End<'_>, job: &Job<'_>) -> u64 {
        2 * job.block().max(LEAST) as u64
    }

    fn run(&self, source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Result<Outcome, MoveError> {
        let prepared = match WholeBlocks::prepare(source, target, job) {
            Ok(prepared) => prepared,
            Err((call, errno)) => {
                let nothing = Moved::default();
                return refused_or_failed(&DECLARATION, call, Side::Either, nothing, errno);
            }
        };
        let start = prepared.start;
        let bulk = match prepared.carry(job) {
            Ok(bulk) => past_the_cache(source, target, bulk),
            Err(Failure { call, side, moved, errno }) => {
                let moved = past_the_cache(source, target, moved);
                let outcome = refused_or_failed(&DECLARATION, call, side, moved, errno);
                return outcome.map_err(|error| start.settle_after(source, target, error));
            }
        };
        start.settle(&DECLARATION, source, target, bulk)?;
        pump(&DECLARATION, source, target, job, bulk).map(Outcome::Done)
    }
}

/// The traffic of `bytes` that bypass the page cache.
fn past_the_cache(source: &End<'_>, target: &End<'_>, bytes: u64) -> Moved {
    // A file system in memory has no device that could copy: it accepts the flag, and copies all
    // the same.
    let is_in_memory = |end: &&&End<'_>| end.magic() == file_systems::TMPFS;
    let copies = [source, target].iter().filter(is_in_memory).count() as u64;
    Moved { bytes, traffic: Traffic { referenced: 0, copied: copies * bytes, touched: bytes } }
}

/// The whole blocks of a run.
struct WholeBlocks {
    source: OwnedFd,
    target: OwnedFd,
    start: Positions,
    length: u64,
    block: usize,
    align: usize,
}

struct Failure {
    call: &'static str,
    side: Side,
    moved: u64,
    errno: Errno,
}

/// A buffer on its way from the reading to the writing thread, with the number of bytes read into
/// it.
type Filled = (Aligned, Result<usize, Errno>);

impl WholeBlocks {
    fn prepare(
        source: &End<'_>,
        target: &End<'_>,
        job: &Job<'_>,
    ) -> Result<Self, (&'static str, Errno)> {
        let start = Positions::read(source, target).map_err(|e| ("lseek", e))?;
        let align = alignment(source)?.max(alignment(target)?);
        if start.source % align != 0 || start.target % align != 0 {
            return Err(("pread64", Errno::INVAL));
        }
        let again = |end: &End<'_>, flags| {
            reopen(end.fd(), flags | OFlags::DIRECT).map_err(|e| ("open", e))
        };
        let left = match source.kind() {
            // A device's size is not in its stat: reading finds the end.
            Kind::Block => job.count.unwrap_or(u64::MAX),
            _ => remaining(source, start.source, job).map_err(|e| ("fstat", e))?,
        };
        let unit = usize::try_from(align).map_err(|_| ("statx", Errno::INVAL))?;
        Ok(Self {
            source: again(source, OFlags::RDONLY)?,
            target: again(target, OFlags::WRONLY)?,
            start,
            length: left - left % align,
            block: job.block().max(LEAST).next_multiple_of(unit),
            align: unit,
        })
    }

    /// Reads in a thread of its own and writes in this one; returns how much has reached the target.
    fn carry(self, job: &Job<'_>) -> Result<u64, Failure> {
        if self.length == 0 {
            return Ok(0);
        }
        let (to_write, filled) = sync_channel::<Filled>(2);
        let (to_read, emptied) = sync_channel::<Aligned>(2);
        for _ in 0..2 {
            let buffer =
                buffer(self.block).map_err(|e| Failure::new("mmap", Side::Either, 0, e))?;
            // Room for both, so it neither waits nor fails.
            let _ = to_read.send(buffer);
        }
        let moved = thread::scope(|scope| {
            let whole = &self;
            let reader =
                thread::Builder::new().spawn_scoped(scope, move || whole.read(&emptied, &to_write));
            let Ok(reader) = reader else {
                return Err(Failure::new("clone3", Side::Either, 0, Errno::NOMEM));
            };
            // Returning drops both channels' ends, which ends the reader.
            let moved = whole.write(filled, to_read, job);
            join(reader);
            moved
        })?;
        close(self.target).map_err(|e| {
            let errno = Errno::from_io_error(&e).unwrap_or(Errno::IO);
            Failure::new("close", Side::Target, moved, errno)
        })?;
        Ok(moved)
    }

    fn read(&self, emptied: &Receiver<Aligned>, to_write: &SyncSender<Filled>) {
        let mut at = 0;
        while at < self.length {
            let Ok(mut buffer) = emptied.recv() else { return };
            let want = usize::try_from(self.length - at).map_or(self.block, |n| n.min(self.block));
            let got = again_if_interrupted(|| {
                pread(&self.source, &mut buffer[..want], self.start.source + at)
            });
            let ended = !matches!(got, Ok(got) if got == want);
            at += want as u64;
            if to_write.send((buffer, got)).is_err() || ended {
                return;
            }
        }
    }

    fn write(
        &self,
        filled: Receiver<Filled>,
        to_read: SyncSender<Aligned>,
        job: &Job<'_>,
    ) -> Result<u64, Failure> {
        let mut moved = 0;
        for (buffer, got) in &filled {
            let got = got.map_err(|e| Failure::new("pread64", Side::Source, moved, e))?;
            // A short read of a source that has shrunk: the last partial block is left to the tail.
            let whole = got - got % self.align;
            let mut put = 0;
            while put < whole {
                let at = self.start.target + moved;
                let answer = again_if_interrupted(|| pwrite(&self.target, &buffer[put..whole], at));
                match answer {
                    Ok(n @ 1..) => {
                        put += n;
                        moved += n as u64;
                        job.advance(n as u64);
                    }
                    // After a short write the rest need not be whole blocks: it is written without
                    // O_DIRECT, which also reports the reason.
                    Err(Errno::INVAL) if moved > 0 => return Ok(moved),
                    answer => {
                        let errno = answer.err().unwrap_or(Errno::IO);
                        return Err(Failure::new("pwrite64", Side::Target, moved, errno));
                    }
                }
            }
            // The reader may have left, having read all.
            let _ = to_read.send(buffer);
        }
        Ok(moved)
    }
}

impl Failure {
    fn new(call: &'static str, side: Side, moved: u64, errno: Errno) -> Self {
        Self { call, side, moved, errno }
    }
}

/// The alignment of offsets and lengths, in bytes.
fn alignment(end: &End<'_>) -> Result<u64, (&'static str, Errno)> {
    match statx(end.fd(), "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN) {
        Ok(stat) if stat.stx_mask & StatxFlags::DIOALIGN.bits() != 0 => {
            match stat.stx_dio_offset_align.max(stat.stx_dio_mem_align) {
                0 => Err(("statx", Errno::OPNOTSUPP)),
                align => Ok(align.into()),
            }
        }
        // Before Linux 6.1, or if the file system reports none: a page suffices everywhere.
        _ => Ok(4096),
    }
}

fn again_if_interrupted<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    let mut in_vain = 0;
    loop {
        match call() {
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if in_vain < IN_VAIN => in_vain += 1,
            answer => return answer,
        }
    }
}
