//! What the suites share: content to move, ends of every kind made for one run, and folders on the
//! file systems there are.

#![allow(dead_code, reason = "each suite uses a part")]

pub(crate) mod carry_report;
pub(crate) mod content;
pub(crate) mod ends;
pub(crate) mod folders;
pub(crate) mod layouts;

use std::os::fd::AsFd;
use std::sync::atomic::AtomicU64;

use iotomy_movers::{Job, Mover};

pub(crate) use content::content;

/// A job with small blocks, so that a few MiB are many of them.
pub(crate) fn job(progress: &AtomicU64) -> Job<'_> {
    Job { block_size: Some(BLOCK), depth: 4, threads: 2, ..Job::new(progress) }
}

/// The block size of [`job`], in bytes.
pub(crate) const BLOCK: usize = 64 * 1024;

/// A mover's name.
pub(crate) fn name(mover: &dyn Mover) -> &'static str {
    mover.declaration().name
}

/// Whether a mover moves anything at all.
pub(crate) fn moves(mover: &dyn Mover) -> bool {
    !mover.declaration().calls.is_empty()
}

/// A descriptor's position, where it has one.
pub(crate) fn position(fd: impl AsFd) -> Option<u64> {
    rustix::fs::tell(fd).ok()
}

/// The first place where two contents differ, for messages shorter than the contents.
pub(crate) fn difference(left: &[u8], right: &[u8]) -> Option<String> {
    if left == right {
        return None;
    }
    let at = left.iter().zip(right).position(|(a, b)| a != b);
    Some(format!("lengths {} and {}, first difference at {at:?}", left.len(), right.len()))
}

/// The example that runs one mover, for tests that watch or disturb it from outside.
pub(crate) fn carry() -> std::path::PathBuf {
    let tests = std::env::current_exe().expect("a path");
    let folder = tests.ancestors().nth(2).expect("the profile's directory");
    folder.join("examples/carry")
}
