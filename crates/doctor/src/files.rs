//! Features of the file system of a directory.
//!
//! Every trial has files of its own there without a name, or with one that is taken away before
//! anything is tried.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use iotomy_host::file_systems;
use iotomy_record::path_text;
use iotomy_sys::probe::{Refusal, memory};
use rustix::fs::{self, AtFlags, Mode, OFlags, StatxFlags};
use rustix::io::{self, Errno};

use crate::check::{Check, Context, Outcome, refusal_text};

#[rustfmt::skip]
pub(crate) static CHECKS: &[Check] = &[
    Check { name: "unnamed-files", purpose: "unnamed temporary files", try_it: unnamed },
    Check { name: "copy_file_range", purpose: "copy in the kernel", try_it: copy_file_range },
    Check { name: "reflink", purpose: "copy without copying", try_it: reflink },
    Check { name: "direct-io", purpose: "past the page cache", try_it: direct_io },
    Check { name: "direct-io-alignment", purpose: "direct I/O without guessing", try_it: alignment },
];

const OTHER: &str = "try another directory with --path DIR";
const MODE: Mode = Mode::RUSR.union(Mode::WUSR);
const BYTES: usize = 64 << 10;

/// Memory for direct I/O: no device needs more than a page's alignment.
#[repr(align(4096))]
struct Block([u8; BYTES]);

fn unnamed(context: &Context) -> Outcome {
    let name = file_system(&context.folder);
    match open_unnamed(&context.folder) {
        Ok(_) => Outcome::ready(format!("on {name}")),
        Err(errno) => failed(context, &Refusal::new("open O_TMPFILE", errno), OTHER),
    }
}

fn copy_file_range(context: &Context) -> Outcome {
    let copied = two_files(&context.folder).and_then(|(from, to)| {
        fs::copy_file_range(&from, Some(&mut 0), &to, Some(&mut 0), BYTES)
            .map_err(|e| Refusal::new("copy_file_range", e))
    });
    match copied {
        Ok(BYTES) => Outcome::ready(format!("on {}", file_system(&context.folder))),
        Ok(bytes) => Outcome::missing(
            format!("copy_file_range: copied {bytes} of {BYTES} bytes"),
            format!("copy by read and write on {}", file_system(&context.folder)),
        ),
        Err(refusal) => failed(context, &refusal, &format!("use ext4, xfs or btrfs; {OTHER}")),
    }
}

fn reflink(context: &Context) -> Outcome {
    let shared = two_files(&context.folder).and_then(|(from, to)| {
        fs::ioctl_ficlone(&to, &from).map_err(|e| Refusal::new("ioctl FICLONE", e))
    });
    match shared {
        Ok(()) => Outcome::ready(format!("on {}", file_system(&context.folder))),
        Err(refusal) => {
            let remedy = format!("use xfs (mkfs.xfs -m reflink=1), btrfs or bcachefs; {OTHER}");
            failed(context, &refusal, &remedy)
        }
    }
}

fn direct_io(context: &Context) -> Outcome {
    match write_and_read_directly(&context.folder) {
        Ok(Direct::Past) => Outcome::ready(format!("on {}", file_system(&context.folder))),
        Ok(Direct::Cached) => Outcome::missing(
            format!("{} accepts O_DIRECT, but caches the bytes", file_system(&context.folder)),
            format!("use ext4 or xfs on a disk; {OTHER}"),
        ),
        Ok(Direct::Wrong) => Outcome::missing(
            "O_DIRECT: the bytes read differ from the bytes written",
            format!("do not use direct I/O on this file system; {OTHER}"),
        ),
        Err(refusal) => {
            let remedy = format!("use a file system on a disk (ext4, xfs, btrfs); {OTHER}");
            failed(context, &refusal, &remedy)
        }
    }
}

/// The result of bytes written and read with O_DIRECT.
enum Direct {
    /// They bypassed the page cache, as far as the kernel can tell.
    Past,
    /// They are in the page cache: tmpfs, and btrfs with checksums, take the flag and ignore it.
    Cached,
    /// They differ from those written.
    Wrong,
}

fn write_and_read_directly(folder: &Path) -> Result<Direct, Refusal> {
    let file = temporary(folder)?;
    // The same file opened again: setting the flag on an open file bypasses the file system.
    let again = format!("/proc/self/fd/{}", file.as_raw_fd());
    let direct = fs::open(again, OFlags::RDWR | OFlags::DIRECT | OFlags::CLOEXEC, Mode::empty())
        .map_err(|e| Refusal::new("open O_DIRECT", e))?;
    let mut block = Box::new(Block([0xa5; BYTES]));
    io::pwrite(&direct, &block.0, 0).map_err(|e| Refusal::new("pwrite O_DIRECT", e))?;
    block.0.fill(0);
    let got = io::pread(&direct, &mut block.0, 0).map_err(|e| Refusal::new("pread O_DIRECT", e))?;
    if got == 0 || block.0[..got].iter().any(|byte| *byte != 0xa5) {
        return Ok(Direct::Wrong);
    }
    // A kernel without cachestat cannot tell; then the flag is trusted.
    let cached = memory::cachestat(file.as_fd()).is_ok_and(|cached| cached.pages > 0);
    Ok(if cached { Direct::Cached } else { Direct::Past })
}

fn alignment(context: &Context) -> Outcome {
    /// `STATX_DIOALIGN`, which rustix has no name for.
    const DIOALIGN: StatxFlags = StatxFlags::from_bits_retain(0x2000);
    let told = temporary(&context.folder).and_then(|file| {
        fs::statx(&file, "", AtFlags::EMPTY_PATH, DIOALIGN).map_err(|e| Refusal::new("statx", e))
    });
    match told {
        Ok(told) if told.stx_mask & DIOALIGN.bits() == 0 => Outcome::missing(
            format!("statx: {} does not report STATX_DIOALIGN", file_system(&context.folder)),
            format!("use ext4, xfs or f2fs on a kernel of 6.1 or later; {OTHER}"),
        ),
        Ok(told) if told.stx_dio_offset_align == 0 => Outcome::missing(
            format!("statx: {} has no direct I/O for this file", file_system(&context.folder)),
            format!("use ext4, xfs or f2fs on a disk; {OTHER}"),
        ),
        Ok(told) => Outcome::ready(format!(
            "memory {}, offset {} bytes on {}",
            told.stx_dio_mem_align,
            told.stx_dio_offset_align,
            file_system(&context.folder)
        )),
        Err(refusal) => failed(context, &refusal, OTHER),
    }
}

/// A failed trial: when no file could be created, the remedy is about that.
fn failed(context: &Context, refusal: &Refusal, remedy: &str) -> Outcome {
    let reason = format!("{} on {}", refusal_text(refusal), file_system(&context.folder));
    let folder = path_text(&context.folder);
    match refusal.source.kind() {
        std::io::ErrorKind::PermissionDenied
        | std::io::ErrorKind::ReadOnlyFilesystem
        | std::io::ErrorKind::NotFound
        | std::io::ErrorKind::StorageFull => Outcome::missing(
            format!("{reason} ({folder})"),
            "name a directory you can write to with --path DIR",
        ),
        _ => Outcome::missing(reason, remedy),
    }
}

/// A file with something in it, and an empty one.
fn two_files(folder: &Path) -> Result<(OwnedFd, OwnedFd), Refusal> {
    let from = temporary(folder)?;
    io::pwrite(&from, &[0xa5; BYTES], 0).map_err(|e| Refusal::new("pwrite", e))?;
    Ok((from, temporary(folder)?))
}

fn open_unnamed(folder: &Path) -> Result<OwnedFd, Errno> {
    fs::open(folder, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, MODE)
}

/// An empty file without a name. Where the file system cannot make one, it has a name until this
/// returns.
fn temporary(folder: &Path) -> Result<OwnedFd, Refusal> {
    match open_unnamed(folder) {
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {}
        other => return other.map_err(|e| Refusal::new("open O_TMPFILE", e)),
    }
    let path = unused_name(folder);
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
    let file = fs::open(&path, flags, MODE).map_err(|e| Refusal::new("open O_CREAT", e))?;
    fs::unlink(&path).map_err(|e| Refusal::new("unlink", e))?;
    Ok(file)
}

fn unused_name(folder: &Path) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    folder.join(format!(".iotomy-trial-{process}-{number}"))
}

fn file_system(folder: &Path) -> String {
    match fs::statfs(folder) {
        Ok(found) => file_systems::in_words(file_systems::magic(found.f_type)),
        Err(_) => "an unknown file system".to_owned(),
    }
}
