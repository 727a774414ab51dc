//! The requests of a sample: their order, mode and duration.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use iotomy_host::Skip;
use iotomy_record::AxisValue;
use iotomy_stats::order::Random;
use iotomy_sys::buffer::Aligned;
use iotomy_sys::copy_ring::CopyRing;
use iotomy_sys::mapping::Window;
use nix::errno::Errno;
use nix::sys::uio;
use rustix::fs::{Mode, OFlags, open, openat};
use rustix::io::{pwrite, retry_on_intr};

use super::file::{CALLED, FILE};
use crate::harness::Params;

/// Maximum duration of a sample.
const SAMPLE: Duration = Duration::from_millis(60);

/// Maximum number of writes per sample: each may wait for the device for several ms.
const WRITES: usize = 64;

/// In the strided pattern, one block of this many is requested.
const STRIDE: usize = 16;

/// In the random pattern, one block of this many is requested: a file that is soon read completely
/// would turn useless read-ahead into useful one.
const SPARSE: usize = 64;

/// The minimum number of blocks to request.
const FEWEST: usize = 16;

/// How long to wait for any completion before concurrent requests are given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// Returns the mean time, in ns, of `reads` reads of `block` bytes of the file called `file` in a
/// directory, made as the experiment `device` makes them; for the bench that compares them with
/// other programs.
///
/// # Errors
/// Fails with the name of the refused call.
pub fn mean_of_reads(
    folder: &Path,
    (way, pattern): (&str, &str),
    (reads, block): (usize, u64),
    seed: u64,
) -> Result<f64, String> {
    let refused = |Skip(reason)| reason;
    let name = |name: &str| AxisValue::Name(name.to_owned());
    let words = [("op", name("read")), ("way", name(way)), ("pattern", name(pattern))];
    let numbers = [("block", block), ("depth", 1)].map(|(n, value)| (n, AxisValue::Number(value)));
    let params = words.into_iter().chain(numbers).map(|(axis, value)| (axis.to_owned(), value));
    let mut order: Vec<u64> = (0..FILE / block).collect();
    if pattern == "random" {
        Random::new(seed).shuffle(&mut order);
    }
    order.truncate(reads);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = open(folder, flags, Mode::empty())
        .map_err(|error| refused(Skip::refused("open", error)))?;
    let asked =
        RequestPlan { case: &Params(params.collect()), order: &order, folder: folder.as_fd() };
    let (count, took) = asked.run(Instant::now()).map_err(refused)?;
    Ok(took.as_nanos() as f64 / count as f64)
}

/// The requests to make.
pub(super) struct RequestPlan<'a> {
    pub(super) case: &'a Params,
    /// Offsets, in blocks.
    pub(super) order: &'a [u64],
    /// The directory of the file.
    pub(super) folder: BorrowedFd<'a>,
}

impl RequestPlan<'_> {
    /// Makes the requests until the time is up; returns their number and duration.
    pub(super) fn run(&self, began: Instant) -> Result<(usize, Duration), Skip> {
        match (self.case.name("op"), self.case.name("way")) {
            ("write", way) => self.write(way == "direct"),
            (_, "direct") => self.read(&self.opened(OFlags::RDONLY | OFlags::DIRECT)?),
            (_, "mmap") => self.fault(),
            (_, "io-uring") => self.at_once(),
            _ => self.read(&self.opened(OFlags::RDONLY)?),
        }
        .map(|(count, took)| (count.max(1), took.min(began.elapsed())))
    }

    fn block(&self) -> usize {
        usize::try_from(self.case.number("block")).unwrap_or(usize::MAX)
    }

    fn offset(&self, at: u64) -> u64 {
        at * self.case.number("block")
    }

    /// Opens the file again, so that its read-ahead state is new.
    fn opened(&self, flags: OFlags) -> Result<OwnedFd, Skip> {
        openat(self.folder, CALLED, flags | OFlags::CLOEXEC, Mode::empty()).map_err(|e| {
            Skip::refused(if flags.contains(OFlags::DIRECT) { "open O_DIRECT" } else { "open" }, e)
        })
    }

    fn read(&self, file: &OwnedFd) -> Result<(usize, Duration), Skip> {
        let mut buffer = Aligned::new(self.block());
        let length = buffer.len();
        self.each(|at| {
            let got = pread(file, &mut buffer, self.offset(at))?;
            if got == length { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
        })
        .map_err(|e| Skip::refused("pread", e))
    }

    fn write(&self, is_direct: bool) -> Result<(usize, Duration), Skip> {
        let direct = if is_direct { OFlags::DIRECT } else { OFlags::empty() };
        let file = self.opened(OFlags::WRONLY | OFlags::DSYNC | direct)?;
        let mut buffer = Aligned::new(self.block());
        // The same data as the file: data that a device could compress would be another, smaller
        // request.
        let mut random = Random::new(FILE);
        buffer.chunks_mut(8).for_each(|part| {
            part.copy_from_slice(&random.bits().to_ne_bytes()[..part.len()]);
        });
        let length = buffer.len();
        let few = &self.order[..self.order.len().min(WRITES)];
        Self { order: few, ..*self }
            .each(|at| {
                let put = retry_on_intr(|| pwrite(&file, &buffer, self.offset(at)))?;
                if put == length { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
            })
            .map_err(|e| Skip::refused("pwrite O_DSYNC", e))
    }

    fn fault(&self) -> Result<(usize, Duration), Skip> {
        let length = usize::try_from(FILE).unwrap_or(usize::MAX);
        let file = self.opened(OFlags::RDONLY)?;
        let window = Window::map(file.as_fd(), 0, length, false);
        let window = window.map_err(|e| Skip::refused("mmap", e))?;
        let block = self.block();
        self.each(|at| {
            let from = usize::try_from(self.offset(at)).unwrap_or(usize::MAX);
            window.fault_in(from..from + block)
        })
        .map_err(|e| Skip::refused("madvise MADV_POPULATE_READ", e))
    }

    /// Makes the requests one after the other.
    fn each(&self, mut one: impl FnMut(u64) -> io::Result<()>) -> io::Result<(usize, Duration)> {
        let began = Instant::now();
        let mut count = 0;
        for at in self.order {
            one(*at)?;
            count += 1;
            if began.elapsed() > SAMPLE {
                break;
            }
        }
        Ok((count, began.elapsed()))
    }

    /// Makes as many requests at once as the case's depth, bypassing the page cache.
    fn at_once(&self) -> Result<(usize, Duration), Skip> {
        let file = self.opened(OFlags::RDONLY | OFlags::DIRECT)?;
        let depth = u32::try_from(self.case.number("depth")).unwrap_or(1);
        let mut ring = CopyRing::new(file.as_fd(), file.as_fd(), depth, self.block(), PATIENCE)
            .map_err(|(call, error)| Skip::refused(call, error))?;
        let refused = |e| Skip::refused("io_uring_enter", e);
        let began = Instant::now();
        let mut next = self.order.iter();
        let mut count = 0;
        for slot in 0..ring.slots() {
            if let Some(at) = next.next() {
                ring.read(slot, self.block(), Some(self.offset(*at)));
            }
        }
        while ring.is_busy() {
            let done = ring.wait().map_err(refused)?;
            let got = done.result.map_err(refused)?;
            if got != self.block() {
                return Err(Skip(format!("io_uring read {got} bytes of {}", self.block())));
            }
            count += 1;
            if began.elapsed() <= SAMPLE
                && let Some(at) = next.next()
            {
                ring.read(done.slot, self.block(), Some(self.offset(*at)));
            }
        }
        Ok((count, began.elapsed()))
    }
}

/// Returns the blocks to request, each once.
pub(super) fn order(case: &Params, random: &mut Random) -> Vec<u64> {
    let mut blocks: Vec<u64> = (0..FILE / case.number("block")).collect();
    match case.name("pattern") {
        "random" => {
            random.shuffle(&mut blocks);
            blocks.truncate((blocks.len() / SPARSE).max(FEWEST));
        }
        "strided" => blocks = blocks.into_iter().step_by(STRIDE).collect(),
        _ => {}
    }
    blocks
}

/// Calls pread(2) through the C library, as programs do: its return is part of a call's cost, and
/// expensive on CPUs where returns are guarded.
fn pread(file: &OwnedFd, into: &mut [u8], offset: u64) -> io::Result<usize> {
    let offset = offset.try_into().map_err(|_| io::ErrorKind::InvalidInput)?;
    loop {
        match uio::pread(file, into, offset) {
            Err(Errno::EINTR) => {}
            other => return Ok(other?),
        }
    }
}
