//! Between regular files: a linked read and write for each block, several blocks at once.

use iotomy_sys::copy_ring::{Completion, CopyRing, Half};
use rustix::io::Errno;

use super::{Failure, errno};
use crate::patience::IN_VAIN;
use crate::position::Positions;
use crate::refusal::is_refusal;
use crate::{Job, Side};

/// A block in transfer. Its first byte that has not reached the target is at `at`.
#[derive(Debug, Clone, Copy, Default)]
struct Block {
    at: u64,
    /// Bytes still to be moved.
    left: usize,
    /// The range of the bytes that the buffer holds: its start, and its end.
    from: usize,
    until: usize,
    /// Whether it needs no more requests: it is at the source's end, or has failed.
    over: bool,
}

/// The run so far.
struct Files<'a, 'b> {
    ring: &'a mut CopyRing,
    start: Positions,
    length: u64,
    job: &'a Job<'b>,
    blocks: Vec<Block>,
    /// Where the next block begins.
    next: u64,
    /// The first byte known not to reach the target.
    stop: u64,
    failure: Option<(u64, &'static str, Side, Errno)>,
    /// Everything before it has reached the target.
    told: u64,
    /// Nothing behind it has.
    reached: u64,
    /// Consecutive requests that would have blocked, for which files have no cause.
    in_vain: u32,
}

/// The bytes moved when the source ended.
pub(super) struct Carried {
    pub(super) bytes: u64,
    /// How far the target was written to: blocks behind the source's end may have been read before that
    /// was there.
    pub(super) reached: u64,
}

/// Moves `length` bytes between offsets.
pub(super) fn carry(
    ring: &mut CopyRing,
    start: Positions,
    length: u64,
    job: &Job<'_>,
) -> Result<Carried, Failure> {
    let blocks = vec![Block::default(); ring.slots()];
    let mut files = Files {
        ring,
        start,
        length,
        job,
        blocks,
        next: 0,
        stop: length,
        failure: None,
        told: 0,
        reached: 0,
        in_vain: 0,
    };
    for slot in 0..files.blocks.len() {
        files.begin(slot);
    }
    let mut broken = None;
    while files.ring.is_busy() {
        match files.ring.wait() {
            Ok(completion) => files.completed(&completion, broken.is_none()),
            Err(e) => {
                files.ring.cancel();
                broken.get_or_insert(errno(e));
            }
        }
    }
    if let Some(e) = broken {
        let open = files.blocks.iter().filter(|block| block.left > 0).map(|block| block.at);
        let at = open.min().unwrap_or(files.next);
        files.fail(at, "io_uring_enter", Side::Either, e);
    }
    match files.failure {
        // A refused request must have moved nothing at all, also behind the failure.
        Some((0, call, side, e)) if files.reached > 0 && is_refusal(e) => {
            Err(Failure::new(call, side, 0, Errno::IO))
        }
        Some((at, call, side, e)) if at <= files.stop => Err(Failure::new(call, side, at, e)),
        _ => Ok(Carried { bytes: files.stop, reached: files.reached }),
    }
}

impl Files<'_, '_> {
    /// Begins the next block, if there is one.
    fn begin(&mut self, slot: usize) {
        self.blocks[slot] = Block::default();
        if self.next >= self.stop {
            return;
        }
        let most = self.ring.block_bytes();
        let left = usize::try_from(self.length - self.next).map_or(most, |left| left.min(most));
        self.blocks[slot] = Block { at: self.next, left, ..Block::default() };
        self.next += left as u64;
        self.request(slot);
    }

    /// Submits the next request of a block.
    fn request(&mut self, slot: usize) {
        let block = self.blocks[slot];
        let (from, to) = (self.start.source + block.at, self.start.target + block.at);
        if block.from < block.until {
            self.ring.write(slot, block.from..block.until, Some(to));
        } else {
            self.blocks[slot].from = 0;
            self.blocks[slot].until = 0;
            self.ring.read_then_write(slot, block.left, from, to);
        }
    }

    fn completed(&mut self, completion: &Completion, going_on: bool) {
        let Completion { slot, half, ref result } = *completion;
        match result {
            Err(e) if errno_of(e) == Errno::AGAIN => self.in_vain += 1,
            Ok(_) => self.in_vain = 0,
            Err(_) => {}
        }
        let block = &mut self.blocks[slot];
        match (half, result) {
            (Half::Read, Ok(0)) => {
                let at = block.at;
                block.over = true;
                self.stop = self.stop.min(at);
            }
            (Half::Read, Ok(got)) => block.until = *got,
            (Half::Write, Ok(0)) => self.failed(slot, "write", Side::Target, Errno::IO),
            (Half::Write, Ok(put)) => {
                block.from += put;
                block.at += *put as u64;
                block.left -= put;
                self.reached = self.reached.max(block.at);
                self.tell();
            }
            (half, Err(e)) => match (half, errno_of(e)) {
                // Interrupted, cancelled, or the write behind a short read: submitted again.
                (_, Errno::INTR) => {}
                (_, Errno::CANCELED) if !self.ring.is_refused() => {}
                (_, Errno::AGAIN) if self.in_vain < IN_VAIN => {}
                (Half::Read, e) => self.failed(slot, "read", Side::Source, e),
                (Half::Write, e) => self.failed(slot, "write", Side::Target, e),
            },
        }
        if going_on && !self.ring.is_slot_busy(slot) {
            self.go_on(slot);
        }
    }

    /// Reports the progress up to the first block that is still in transfer.
    fn tell(&mut self) {
        let open = self.blocks.iter().filter(|block| block.left > 0).map(|block| block.at);
        let whole = open.min().unwrap_or(self.next);
        self.job.advance(whole - self.told);
        self.told = whole;
    }

    fn failed(&mut self, slot: usize, call: &'static str, side: Side, errno: Errno) {
        self.blocks[slot].over = true;
        self.fail(self.blocks[slot].at, call, side, errno);
    }

    fn fail(&mut self, at: u64, call: &'static str, side: Side, errno: Errno) {
        self.stop = self.stop.min(at);
        if self.failure.is_none_or(|(known, ..)| at < known) {
            self.failure = Some((at, call, side, errno));
        }
    }

    /// Continues a block whose last request has completed.
    fn go_on(&mut self, slot: usize) {
        let block = self.blocks[slot];
        if block.over {
            return;
        }
        if block.left > 0 {
            self.request(slot);
        } else {
            self.begin(slot);
        }
    }
}

fn errno_of(error: &std::io::Error) -> Errno {
    Errno::from_io_error(error).unwrap_or(Errno::IO)
}
