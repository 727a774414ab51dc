//! The `copy-file-range` mover.
//!
//! ```text
//! source ──copy_file_range(2)──▶ target
//!          copy 1, or extents shared, or none on a server that copies itself
//! ```
//!
//! The file system does what it can do best: share extents (btrfs, xfs), ask the server (NFS, CIFS),
//! or copy from one page cache to the other. One crossing a GiB and at most one copy. Shared extents
//! part at the next write, so later writes to the source never show through.
//!
//! Which of the three it was the kernel does not say. Figures count a copy where the file system is
//! known to share nothing (ext4, tmpfs), and a reference elsewhere.

use rustix::fs::copy_file_range;
use rustix::io::Errno;

use crate::in_kernel::{MOST, probed};
use crate::patience::patiently_both;
use crate::position::apart;
use crate::refusal::{is_suspicious_end, only, plain, refused_or_failed};
use crate::{
    Declaration, End, Job, Kind, MoveError, Moved, Mover, Outcome, Probe, Reflink, Side, Traffic,
};

pub(crate) struct CopyFileRange;

static DECLARATION: Declaration = Declaration {
    name: "copy-file-range",
    summary: "copy_file_range(2): the file system copies, or shares",
    description: "Between regular files: extents are shared where the file system can, else the \
                  kernel copies once from page cache to page cache. One crossing a GiB.",
    man: &["copy_file_range(2)"],
    calls: &["copy_file_range", "ppoll", "fstat", "lseek"],
    by_reference: false,
    positioned: false,
};

/// File systems that never share extents: ext2 to ext4, tmpfs.
const SHARES_NOTHING: [u64; 2] = [0xef53, 0x0102_1994];

/// Whether the copy of a file of this file system may share its extents.
pub(crate) fn may_share(end: &End<'_>) -> bool {
    !SHARES_NOTHING.contains(&end.magic())
}

impl Mover for CopyFileRange {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn probe(&self) -> Probe {
        let Ok((out, into)) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC) else {
            return Probe::Unsupported("pipe2: no pipe to be had".to_owned());
        };
        // Pipes are refused with EINVAL by a kernel that has the call and lets it be made.
        let answer = copy_file_range(&out, None, &into, None, 1);
        probed("copy_file_range", answer, &[Errno::INVAL])
    }

    fn serves(&self, source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Result<(), String> {
        only(source, "source", &[Kind::Regular])?;
        only(target, "target", &[Kind::Regular])?;
        plain(source, target)?;
        match job.reflink {
            Reflink::Auto => {}
            Reflink::Never if may_share(target) => {
                return Err("extents could be shared, which was forbidden".to_owned());
            }
            Reflink::Never => {}
            Reflink::Always => return Err("extents might not be shared".to_owned()),
        }
        apart(source, target, job)
    }

    fn run(&self, source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Result<Outcome, MoveError> {
        let mut bytes = 0;
        loop {
            let want = job.want(bytes, MOST);
            if want == 0 {
                break;
            }
            let answer = patiently_both(source.fd(), target.fd(), || {
                copy_file_range(source.fd(), None, target.fd(), None, want)
            });
            match answer {
                Ok(0) if bytes == 0 && is_suspicious_end(source) => {
                    return Ok(Outcome::Refused { call: "copy_file_range", errno: None });
                }
                Ok(0) => break,
                Ok(moved) => {
                    bytes += moved as u64;
                    job.advance(moved as u64);
                }
                Err(e) => {
                    return refused_or_failed(
                        &DECLARATION,
                        "copy_file_range",
                        Side::of(e),
                        bytes,
                        e,
                    );
                }
            }
        }
        let traffic = if may_share(target) {
            Traffic { referenced: bytes, ..Traffic::default() }
        } else {
            Traffic { copied: bytes, ..Traffic::default() }
        };
        Ok(Outcome::Done(Moved { bytes, traffic }))
    }
}
