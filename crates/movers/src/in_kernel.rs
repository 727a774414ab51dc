//! The common rules of the calls that move bytes inside the kernel: how much one call moves, what
//! becomes of the pages, and which guarantees that keeps.

use rustix::fs::tell;
use rustix::io::{Errno, pread};

use crate::patience::patiently_both;
use crate::read_write::read_on;
use crate::refusal::{is_suspicious_end, refused_or_failed};
use crate::{End, Job, Kind, MoveError, Moved, MoverDeclaration, Outcome, Probe, Side, Traffic};

/// The most bytes of one call: a GiB, below the 0x7fff_f000 that the kernel moves at once, so that
/// a short result means something, and progress is visible from time to time.
pub(crate) const MOST: usize = 1 << 30;

/// Whether `end` may hand over pages of a page cache, which later writes change: its own, or pages
/// that were passed to it. The writers of a pipe or a socket, and their calls, cannot be known.
fn hands_on_pages(end: &End<'_>) -> bool {
    matches!(end.kind(), Kind::Regular | Kind::Block | Kind::Pipe | Kind::Socket)
}

/// Whether a target keeps the pages it is given, and does not copy from them at once.
fn keeps_pages(target: &End<'_>) -> bool {
    matches!(target.kind(), Kind::Pipe | Kind::Socket)
}

/// The reason for a refusal when pages that others can still write to would be passed on although
/// later writes must not show through.
pub(crate) fn by_value_kept(
    source: &End<'_>,
    target: &End<'_>,
    job: &Job<'_>,
) -> Result<(), String> {
    if job.by_value && hands_on_pages(source) && keeps_pages(target) {
        return Err("later writes to the source could show through".to_owned());
    }
    Ok(())
}

/// The traffic of `bytes` that the kernel moves through a pipe.
///
/// Into the pipe, files, sockets and pipes hand over references to their pages; devices and files
/// made up when read copy. Out of it, pipes and sockets keep the references, the null device drops
/// them, and all else copies.
pub(crate) fn traffic(source: &End<'_>, target: &End<'_>, bytes: u64) -> Traffic {
    let hands_over = match source.kind() {
        Kind::Regular => source.has_true_size(),
        Kind::Block | Kind::Pipe | Kind::Socket => true,
        _ => false,
    };
    let copies_out = !keeps_pages(target) && !target.is_null_device();
    Traffic {
        referenced: if hands_over { bytes } else { 0 },
        copied: bytes * (u64::from(!hands_over) + u64::from(copies_out)),
        touched: 0,
    }
}

/// Moves bytes by the first of the calls a mover declares, one call after the other, until the
/// source ends or the job's count is reached. `figures` returns the traffic of the bytes of a call,
/// given the bytes before it.
pub(crate) fn repeat(
    of: &MoverDeclaration,
    source: &End<'_>,
    target: &End<'_>,
    job: &Job<'_>,
    call: impl Fn(usize) -> Result<usize, Errno>,
    figures: impl Fn(u64, u64) -> Traffic,
) -> Result<Outcome, MoveError> {
    let name = of.calls[0];
    let mut moved = Moved::default();
    loop {
        let want = job.want(moved.bytes, MOST);
        if want == 0 {
            return Ok(Outcome::Done(moved));
        }
        // One call less: reading answers for the end.
        if moved.bytes > 0 && source.has_true_size() && moved.bytes == source.size() {
            return read_on(of, source, target, job, moved).map(Outcome::Done);
        }
        match patiently_both(source.fd(), target.fd(), || call(want)) {
            Ok(0) if moved.bytes == 0 && is_suspicious_end(source) => {
                return Ok(Outcome::Refused { call: name, errno: None });
            }
            Ok(0) => return read_on(of, source, target, job, moved).map(Outcome::Done),
            Ok(more) => {
                moved.traffic += figures(moved.bytes, more as u64);
                moved.bytes += more as u64;
                job.advance(more as u64);
            }
            Err(e) => {
                let at = tell(source.fd()).unwrap_or(0);
                return refused_or_failed(of, name, side_of(e, source, at), moved, e);
            }
        }
    }
}

/// The end that an error of a call with two ends belongs to. Where the error itself is ambiguous,
/// the source's byte at `at`, which the call was to move next, is read.
pub(crate) fn side_of(errno: Errno, source: &End<'_>, at: u64) -> Side {
    let side = Side::from_errno(errno);
    if side != Side::Either || !matches!(source.kind(), Kind::Regular | Kind::Block) {
        return side;
    }
    match pread(source.fd(), &mut [0], at) {
        Err(_) => Side::Source,
        Ok(_) => Side::Either,
    }
}

/// A probe's result from a call that can only fail: with `expected` when it is there.
pub(crate) fn probed(call: &str, answer: Result<usize, Errno>, expected: &[Errno]) -> Probe {
    match answer {
        Ok(_) => Probe::Ready,
        Err(errno) if expected.contains(&errno) => Probe::Ready,
        Err(errno) => Probe::Unsupported(format!("{call}: {}", std::io::Error::from(errno))),
    }
}
