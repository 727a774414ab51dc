//! Where an end has no offsets: the next block is read while the one before it is written.
//!
//! An end that has a position is given offsets all the same, and its position is set at the end of
//! the run: Linux (seen on 6.18) repeats a short write by itself, and when the repetition fails it
//! reports the bytes of the first but leaves the position in front of them.

use rustix::event::PollFlags;
use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use iotomy_sys::copy_ring::{Completion, CopyRing, Half};

use super::{Failure, errno};
use crate::patience::{IN_VAIN, wait_for};
use crate::position::{missed, start};
use crate::{End, Job, Side};

/// The run so far. Slots are used in turns.
struct Stream<'a, 'b, 'fd> {
    ring: &'a mut CopyRing,
    source: &'a End<'fd>,
    target: &'a End<'fd>,
    job: &'a Job<'b>,
    /// Where the source and the target began, when they have positions.
    source_start: Option<u64>,
    target_start: Option<u64>,
    taken: u64,
    moved: u64,
    /// The slot of the read in flight, and the requested number of bytes.
    reading: Option<(usize, usize)>,
    /// The slot of the write in flight, and the part of it that is still to be written.
    writing: Option<(usize, usize, usize)>,
    /// A slot that was read into and waits to be written, with how much it holds.
    ready: Option<(usize, usize)>,
    ended: bool,
    /// Consecutive reads, or writes, that would have blocked.
    reads_in_vain: u32,
    writes_in_vain: u32,
}

/// Moves bytes in order until the source ends or the job's count is reached.
pub(super) fn carry(
    ring: &mut CopyRing,
    source: &End<'_>,
    target: &End<'_>,
    job: &Job<'_>,
) -> Result<u64, Failure> {
    let start = |end, side| start(end).map_err(|e| Failure::new("lseek", side, 0, e));
    let mut stream = Stream {
        ring,
        source,
        target,
        job,
        source_start: start(source, Side::Source)?,
        target_start: start(target, Side::Target)?,
        taken: 0,
        moved: 0,
        reading: None,
        writing: None,
        ready: None,
        ended: false,
        reads_in_vain: 0,
        writes_in_vain: 0,
    };
    let outcome = stream.run();
    if outcome.is_err() {
        stream.abandon();
    }
    let settled = stream.settle();
    match outcome.and(settled) {
        Ok(()) => Ok(stream.moved),
        Err((call, side, e)) => {
            let lost = match stream.source_start {
                Some(_) => 0,
                None => missed(source, stream.taken - stream.moved),
            };
            Err(Failure { lost, ..Failure::new(call, side, stream.moved, e) })
        }
    }
}

type Failed = (&'static str, Side, Errno);

impl Stream<'_, '_, '_> {
    fn run(&mut self) -> Result<(), Failed> {
        let mut failure = None;
        loop {
            self.begin_write();
            if failure.is_none() {
                self.begin_read();
            }
            if self.reading.is_none() && self.writing.is_none() {
                return failure.map_or(Ok(()), Err);
            }
            let completion =
                self.ring.wait().map_err(|e| ("io_uring_enter", Side::Either, errno(e)))?;
            match self.completed(&completion) {
                // Bytes that were read before must still be written.
                Err(failed @ (_, Side::Source, _)) => failure = Some(failed),
                other => other?,
            }
        }
    }

    fn begin_read(&mut self) {
        if self.ended || self.reading.is_some() || self.ready.is_some() {
            return;
        }
        let want = self.job.want(self.taken, self.ring.block_bytes());
        if want == 0 {
            self.ended = true;
            return;
        }
        let slot = self.writing.map_or(0, |(slot, ..)| 1 - slot);
        self.read(slot, want);
    }

    fn read(&mut self, slot: usize, want: usize) {
        self.ring.read(slot, want, self.source_start.map(|start| start + self.taken));
        self.reading = Some((slot, want));
    }

    fn write(&mut self, slot: usize, from: usize, until: usize) {
        self.ring.write(slot, from..until, self.target_start.map(|start| start + self.moved));
        self.writing = Some((slot, from, until));
    }

    /// Sets the positions behind the moved bytes.
    fn settle(&self) -> Result<(), Failed> {
        for (end, start, side) in [
            (self.source, self.source_start, Side::Source),
            (self.target, self.target_start, Side::Target),
        ] {
            if let Some(start) = start {
                seek(end.fd(), SeekFrom::Start(start + self.moved))
                    .map_err(|e| ("lseek", side, e))?;
            }
        }
        Ok(())
    }

    fn begin_write(&mut self) {
        if self.writing.is_none()
            && let Some((slot, holds)) = self.ready.take()
        {
            self.write(slot, 0, holds);
        }
    }

    fn completed(&mut self, completion: &Completion) -> Result<(), Failed> {
        let result = completion
            .result
            .as_ref()
            .map(|n| *n)
            .map_err(|e| Errno::from_io_error(e).unwrap_or(Errno::IO));
        match completion.half {
            Half::Read => self.read_completed(result),
            Half::Write => self.write_completed(result),
        }
    }

    fn read_completed(&mut self, result: Result<usize, Errno>) -> Result<(), Failed> {
        let Some((slot, want)) = self.reading.take() else { return Ok(()) };
        match result {
            Ok(0) => self.ended = true,
            Ok(got) => {
                self.reads_in_vain = 0;
                self.taken += got as u64;
                self.ready = Some((slot, got));
            }
            // Interrupted, to be waited for, or taken back because nothing came for a while.
            Err(Errno::INTR) => self.read(slot, want),
            Err(Errno::CANCELED) if !self.ring.is_refused() => self.read(slot, want),
            // Only an end without a position has a reason to block for ever.
            Err(Errno::AGAIN) if self.reads_in_vain < IN_VAIN || self.source_start.is_none() => {
                self.reads_in_vain = IN_VAIN.min(self.reads_in_vain + 1);
                wait_for(self.source.fd(), PollFlags::IN)
                    .map_err(|e| ("ppoll", Side::Source, e))?;
                self.read(slot, want);
            }
            Err(e) => return Err(("read", Side::Source, e)),
        }
        Ok(())
    }

    fn write_completed(&mut self, result: Result<usize, Errno>) -> Result<(), Failed> {
        let Some((slot, mut from, until)) = self.writing.take() else { return Ok(()) };
        match result {
            Ok(0) => return Err(("write", Side::Target, Errno::IO)),
            Ok(put) => {
                self.writes_in_vain = 0;
                from += put;
                self.moved += put as u64;
                self.job.advance(put as u64);
            }
            Err(Errno::INTR) => {}
            Err(Errno::CANCELED) if !self.ring.is_refused() => {}
            Err(Errno::AGAIN) if self.writes_in_vain < IN_VAIN || self.target_start.is_none() => {
                self.writes_in_vain = IN_VAIN.min(self.writes_in_vain + 1);
                wait_for(self.target.fd(), PollFlags::OUT)
                    .map_err(|e| ("ppoll", Side::Target, e))?;
            }
            Err(e) => return Err(("write", Side::Target, e)),
        }
        if from < until {
            self.write(slot, from, until);
        }
        Ok(())
    }

    /// Cancels the requests in flight, and counts those that could not be cancelled.
    fn abandon(&mut self) {
        if self.ring.is_busy() {
            self.ring.cancel();
        }
        while self.ring.is_busy() {
            match self.ring.wait() {
                Ok(Completion { half, result: Ok(n), .. }) => match half {
                    Half::Read => self.taken += n as u64,
                    Half::Write => self.moved += n as u64,
                },
                Ok(_) => {}
                Err(_) => return,
            }
        }
    }
}
