//! One run over extents: the bytes that have reached the target, and the gap in front of the next
//! ones.

use rustix::fs::{FallocateFlags, SeekFrom, fallocate, fstatvfs, ftruncate, seek, tell};
use rustix::io::Errno;

use iotomy_sys::buffer::Aligned;

use super::zeros::run_of;
use super::{Place, place, size};
use crate::memory::buffer;
use crate::patience::uninterrupted;
use crate::position::{missed, reaches, start};
use crate::read_write::{pump, put_all, take};
use crate::{
    End, Job, MoveError, Moved, Mover, MoverDeclaration, MoverSession, Outcome, Side, Traffic,
};

/// The assumed length, in bytes, of a data extent that is gone by the time its end is looked up: a
/// block, so that the walk goes on. Also the block size where the file system reports none.
const LEAST: u64 = 4096;

/// The magic number of xfs, which allocates ahead of a file that grows, for bytes that do not come
/// where the next is a hole, and keeps that once the file has grown past it.
const XFS: u64 = 0x5846_5342;

/// A run in progress.
pub(super) struct Walk<'a, 'fd> {
    session: Box<dyn MoverSession + 'a>,
    of: &'static MoverDeclaration,
    source: &'a End<'fd>,
    target: &'a End<'fd>,
    job: &'a Job<'a>,
    /// Where it began; a stream has no such place.
    source_start: Option<u64>,
    target_start: u64,
    /// Bytes that have reached the target.
    moved: u64,
    /// Zeros behind them that are due to the target.
    gap: u64,
    /// How many of these were read, and are not known from a hole.
    seen: u64,
    /// Bytes taken from the source.
    taken: u64,
    /// The target's length, past which there is nothing to punch.
    length: u64,
    /// The size of the examined blocks.
    block: usize,
    looks: bool,
    /// Whether holes can be punched, as far as is known.
    punches: bool,
    buffer: Option<Aligned>,
    traffic: Traffic,
}

/// How an extent ended.
enum Extent {
    /// So much of it was moved: less than it held when the source has ended in it.
    Moved(u64),
    /// The mover refused it, and nothing has moved before.
    Refused(Outcome),
}

impl<'a, 'fd> Walk<'a, 'fd> {
    pub(super) fn new(
        mover: &'a dyn Mover,
        source: &'a End<'fd>,
        target: &'a End<'fd>,
        job: &'a Job<'a>,
        looks: bool,
    ) -> Result<Self, (&'static str, Errno)> {
        let block = fstatvfs(target.fd()).map_or(LEAST, |fs| fs.f_frsize);
        Ok(Self {
            session: mover.session(source, target),
            of: mover.declaration(),
            source,
            target,
            job,
            source_start: start(source).map_err(|errno| ("lseek", errno))?,
            target_start: tell(target.fd()).map_err(|errno| ("lseek", errno))?,
            moved: 0,
            gap: 0,
            seen: 0,
            taken: 0,
            length: size(target).map_err(|errno| ("fstat", errno))?,
            block: usize::try_from(block.clamp(512, 1 << 20)).expect("a MiB at most"),
            looks,
            punches: true,
            buffer: None,
            traffic: Traffic::default(),
        })
    }

    /// Walks along the first `length` bytes of the source, and reads on behind them.
    pub(super) fn along(mut self, length: u64) -> Result<Outcome, MoveError> {
        let outcome = self.extents(length);
        let outcome = match outcome {
            Ok(None) => self.tail().map(|()| None),
            outcome => outcome,
        };
        self.end(outcome)
    }

    /// Examines all bytes of a source without extents.
    pub(super) fn look_at_all(mut self) -> Result<Outcome, MoveError> {
        let outcome = self.find_extent(self.job.count).and_then(|_| self.close());
        self.end(outcome.map(|()| None))
    }

    /// Sets the positions, and returns the result.
    fn end(mut self, outcome: Result<Option<Outcome>, MoveError>) -> Result<Outcome, MoveError> {
        if outcome.is_err() {
            // The failure being passed on is the one to report: bytes that cannot be saved are not
            // counted.
            let _ = self.close();
        }
        let settled = self.settle();
        match outcome.and_then(|refused| settled.map(|()| refused)) {
            Ok(Some(refused)) => Ok(refused),
            Ok(None) => Ok(Outcome::Done(self.moved())),
            Err(error) => {
                let missed = || missed(self.source, self.taken - self.moved);
                let lost = self.source_start.map_or_else(missed, |_| 0);
                Err(MoveError { moved: self.moved(), lost, ..error })
            }
        }
    }

    fn settle(&self) -> Result<(), MoveError> {
        if let Some(start) = self.source_start {
            seek(self.source.fd(), SeekFrom::Start(start + self.moved))
                .map_err(|e| self.failed("lseek", Side::Source, e))?;
        }
        seek(self.target.fd(), SeekFrom::Start(self.target_start + self.moved))
            .map_err(|e| self.failed("lseek", Side::Target, e))?;
        Ok(())
    }

    fn moved(&self) -> Moved {
        Moved { bytes: self.moved, traffic: self.traffic }
    }

    fn failed(&self, call: &'static str, side: Side, errno: Errno) -> MoveError {
        MoveError::new(self.of, call, side, self.moved(), errno)
    }

    /// Moves the data among the first `length` bytes; holes become the gap in front of the next
    /// data.
    fn extents(&mut self, length: u64) -> Result<Option<Outcome>, MoveError> {
        let from = self.source_start.unwrap_or(0);
        let end = from + length;
        loop {
            let here = from + self.moved + self.gap;
            if here >= end {
                return Ok(None);
            }
            let data = self.seek(SeekFrom::Data(here))?;
            let data = match data {
                Place::At(data) => data.clamp(here, end),
                Place::Unknown => here,
                // Or the file is shorter than it claims.
                Place::None if !self.source.gives_its_size() && !reaches(self.source, end) => {
                    return Ok(None);
                }
                // Nothing but a hole, up to where the file ends by now.
                Place::None => size(self.source)
                    .map_err(|e| self.failed("fstat", Side::Source, e))?
                    .clamp(here, end),
            };
            self.gap += data - here;
            let hole = match self.seek_hole(data, end)? {
                Some(hole) => hole,
                None => return Ok(None),
            };
            match self.extent(hole - data)? {
                Extent::Moved(moved) if moved < hole - data => return Ok(None),
                Extent::Moved(_) => {}
                Extent::Refused(outcome) => return Ok(Some(outcome)),
            }
        }
    }

    fn seek_hole(&self, data: u64, end: u64) -> Result<Option<u64>, MoveError> {
        if data >= end {
            return Ok(None);
        }
        Ok(match self.seek(SeekFrom::Hole(data))? {
            Place::At(hole) if hole > data => Some(hole.min(end)),
            Place::At(_) => Some(end.min(data + LEAST)),
            // The file has shrunk, or it is unknown: moving finds out.
            Place::None | Place::Unknown => Some(end),
        })
    }

    fn seek(&self, to: SeekFrom) -> Result<Place, MoveError> {
        place(self.source, to).map_err(|e| self.failed("lseek", Side::Source, e))
    }

    /// Moves one extent of data of `length` bytes, which begins behind the gap.
    fn extent(&mut self, length: u64) -> Result<Extent, MoveError> {
        // Until the mover is known not to refuse, the target stays as it is.
        let first = self.moved == 0 && !self.looks;
        if !first {
            self.fill()?;
        }
        self.step_over_gap()?;
        if self.looks {
            return self.find_extent(Some(length)).map(Extent::Moved);
        }
        let job = Job { count: Some(length), ..*self.job };
        let (moved, failure) = match self.session.run(&job) {
            Ok(Outcome::Done(moved)) => (moved, None),
            Ok(refused) if self.moved == 0 => {
                self.gap = 0;
                return Ok(Extent::Refused(refused));
            }
            Ok(Outcome::Refused { call, errno: Some(errno) }) => {
                return Err(self.failed(call, Side::from_errno(errno), errno));
            }
            // Nothing, and no error: the source has ended, and may have grown again since.
            Ok(Outcome::Refused { errno: None, .. }) => (Moved::default(), None),
            Err(error) => (error.moved, Some(error)),
        };
        if first && moved.bytes > 0 {
            self.fill()?;
        }
        self.arrived(moved);
        failure.map_or(Ok(Extent::Moved(moved.bytes)), Err)
    }

    /// Moves the bytes by which the source has grown meanwhile; most often none.
    fn tail(&mut self) -> Result<(), MoveError> {
        self.close()?;
        let left = self.job.count.map(|count| count - self.moved);
        if left == Some(0) {
            return Ok(());
        }
        self.settle()?;
        if self.looks {
            self.find_extent(left)?;
            return self.close();
        }
        // From the positions, which are right.
        let job = Job { count: left, ..*self.job };
        let answer = pump(self.of, self.source, self.target, &job, Moved::default());
        self.arrived(answer.as_ref().map_or_else(|error| error.moved, |moved| *moved));
        answer.map(drop)
    }

    /// Reads `count` bytes and writes those that are in blocks of something else than zeros; returns
    /// how many there were.
    fn find_extent(&mut self, count: Option<u64>) -> Result<u64, MoveError> {
        let mut buffer = match self.buffer.take() {
            Some(buffer) => buffer,
            None => self.new_buffer()?,
        };
        let job = Job { count, ..*self.job };
        let mut seen = 0;
        loop {
            let want = job.want(seen, buffer.len());
            if want == 0 {
                break;
            }
            let got = take(self.source, &mut buffer[..want])
                .map_err(|e| self.failed("read", Side::Source, e))?;
            if got == 0 {
                break;
            }
            seen += got as u64;
            self.taken += got as u64;
            let mut rest = &buffer[..got];
            while !rest.is_empty() {
                let at = self.target_start + self.moved + self.gap;
                let (length, zeros) = run_of(rest, at, self.block);
                let (run, behind) = rest.split_at(length);
                if zeros {
                    self.gap += length as u64;
                    self.seen += length as u64;
                } else {
                    self.put(run)?;
                }
                rest = behind;
            }
        }
        self.buffer = Some(buffer);
        Ok(seen)
    }

    /// Writes bytes other than zeros, behind the gap.
    fn put(&mut self, run: &[u8]) -> Result<(), MoveError> {
        if self.gap > 0 {
            self.fill()?;
            self.seek_target(self.moved + self.gap)?;
        }
        let mut moved = Moved::default();
        let answer = put_all(self.of, self.source, self.target, self.job, run, &mut moved);
        self.arrived(moved);
        answer
    }

    /// Counts bytes that have arrived behind the gap, which is thereby complete. Their mover has
    /// reported its own progress, but not the gap's.
    fn arrived(&mut self, moved: Moved) {
        if moved.bytes > 0 {
            self.gap_reached(self.gap);
            self.moved += moved.bytes;
            self.traffic += moved.traffic;
            self.length = self.length.max(self.target_start + self.moved);
        }
    }

    fn step_over_gap(&self) -> Result<(), MoveError> {
        if let Some(start) = self.source_start {
            seek(self.source.fd(), SeekFrom::Start(start + self.moved + self.gap))
                .map_err(|e| self.failed("lseek", Side::Source, e))?;
        }
        self.seek_target(self.moved + self.gap)
    }

    fn seek_target(&self, behind: u64) -> Result<(), MoveError> {
        seek(self.target.fd(), SeekFrom::Start(self.target_start + behind))
            .map(drop)
            .map_err(|e| self.failed("lseek", Side::Target, e))
    }

    /// Writes the gap as far as it lies over old content of the target, and frees space that was
    /// preallocated for the rest.
    fn fill(&mut self) -> Result<(), MoveError> {
        let at = self.target_start + self.moved;
        let over = self.length.saturating_sub(at).min(self.gap);
        if over > 0 && self.punch(at, over) {
            self.gap_reached(over);
        } else if over > 0 {
            self.write_zeros(over)?;
        }
        if self.gap > 0 && self.target.magic() == XFS {
            // Only a matter of room: where it is refused, the file takes more.
            self.punch(self.target_start + self.moved, self.gap);
        }
        Ok(())
    }

    /// Gives the target the whole gap.
    fn close(&mut self) -> Result<(), MoveError> {
        self.fill()?;
        if self.gap == 0 {
            return Ok(());
        }
        let end = self.target_start + self.moved + self.gap;
        // Another process may have made it longer: nothing is cut off.
        let extended = size(self.target).and_then(|now| {
            if now < end { uninterrupted(|| ftruncate(self.target.fd(), end)) } else { Ok(()) }
        });
        if extended.is_err() {
            // Writing may succeed, or reports the reason better.
            return self.write_zeros(self.gap);
        }
        self.length = self.length.max(end);
        self.gap_reached(self.gap);
        Ok(())
    }

    fn gap_reached(&mut self, bytes: u64) {
        self.job.advance(bytes);
        self.shrink_gap(bytes);
    }

    /// Counts bytes of the gap as moved, and returns how many of them had been read, and so copied.
    fn shrink_gap(&mut self, bytes: u64) -> u64 {
        let seen = self.seen.min(bytes);
        self.seen -= seen;
        self.traffic += Traffic { referenced: 0, copied: seen, touched: seen };
        self.moved += bytes;
        self.gap -= bytes;
        seen
    }

    fn new_buffer(&self) -> Result<Aligned, MoveError> {
        buffer(self.job.block()).map_err(|e| self.failed("mmap", Side::Either, e))
    }

    /// Whether a hole could be punched: a matter of the file system, of seals, and of its room.
    fn punch(&mut self, at: u64, bytes: u64) -> bool {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let answer = match self.punches {
            true => uninterrupted(|| fallocate(self.target.fd(), flags, at, bytes)),
            false => return false,
        };
        self.punches = answer.is_ok();
        self.punches
    }

    /// Writes zeros for so much of the gap.
    fn write_zeros(&mut self, bytes: u64) -> Result<(), MoveError> {
        self.seek_target(self.moved)?;
        let zeros = self.new_buffer()?;
        let job = Job { count: Some(bytes), ..*self.job };
        let mut written = 0;
        while let want @ 1.. = job.want(written, zeros.len()) {
            let mut put = Moved::default();
            let answer =
                put_all(self.of, self.source, self.target, self.job, &zeros[..want], &mut put);
            let put = put.bytes;
            written += put;
            let seen = self.shrink_gap(put);
            self.traffic += Traffic { referenced: 0, copied: put, touched: put - seen };
            self.length = self.length.max(self.target_start + self.moved);
            answer?;
        }
        Ok(())
    }
}
