//! Mode, owner, times and extended attributes of a source, given to its target.
//!
//! The order matters: a new owner clears set-id bits and capabilities, and so comes first; times
//! come last, as every other change is one of the file. A user who may not give files away keeps
//! the rest, less the set-id bits, which would give away rights of the wrong user. Attributes that
//! only root may set are left out for others.

use iotomy_record::lossless;
use rustix::fs::{
    Gid, Mode, Timespec, Timestamps, Uid, XattrFlags, fchmod, fchown, fgetxattr, flistxattr,
    fremovexattr, fsetxattr, futimens,
};
use rustix::io::Errno;

use crate::CopyError;
use crate::source::Source;
use crate::target::Target;

/// Set-user-id, set-group-id, sticky.
const SPECIAL: u32 = 0o7000;

/// The access control list, which the file system shows as an attribute.
const ACCESS_LIST: &str = "system.posix_acl_access";

/// Makes the target like the source.
///
/// # Errors
/// The attributes that could not be kept; the bytes are all there.
pub(crate) fn keep(source: &Source, target: &Target<'_>) -> Result<(), CopyError> {
    let stat = &source.stat;
    let lost = |what: &str, e: Errno| {
        let attempt = format!("preserve {what} of {} on {}", source.name, target.name);
        CopyError::failed(attempt, e).with("; all bytes were copied")
    };
    let owned = own(target, stat.st_uid, stat.st_gid).map_err(|e| lost("the owner", e))?;
    attributes(source, target).map_err(|(name, e)| lost(&name, e))?;
    let mode = if owned { stat.st_mode & 0o7777 } else { stat.st_mode & 0o7777 & !SPECIAL };
    fchmod(target.fd(), Mode::from_raw_mode(mode)).map_err(|e| lost("the mode", e))?;
    let time = |tv_sec, ns: u64| Timespec { tv_sec, tv_nsec: i64::try_from(ns).unwrap_or(0) };
    let times = Timestamps {
        last_access: time(stat.st_atime, stat.st_atime_nsec),
        last_modification: time(stat.st_mtime, stat.st_mtime_nsec),
    };
    futimens(target.fd(), &times).map_err(|e| lost("the times", e))
}

/// Gives it to its owner and group, or at least to its group; `false` when not both could be done.
fn own(target: &Target<'_>, user: u32, group: u32) -> Result<bool, Errno> {
    let (user, group) = (Some(Uid::from_raw(user)), Some(Gid::from_raw(group)));
    match fchown(target.fd(), user, group) {
        Ok(()) => Ok(true),
        Err(Errno::PERM | Errno::INVAL) => {
            // As far as it goes: a user may still be in the group.
            let _ = fchown(target.fd(), None, group);
            Ok(false)
        }
        Err(errno) => Err(errno),
    }
}

/// Copies the attributes; the error comes with the name of the attribute.
fn attributes(source: &Source, target: &Target<'_>) -> Result<(), (String, Errno)> {
    let list = match grown(|buffer| flistxattr(source.fd(), buffer)) {
        Ok(list) => list,
        Err(Errno::OPNOTSUPP) => return Ok(()),
        Err(errno) => return Err(("the attributes".to_owned(), errno)),
    };
    let names = list.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let mut has_list = false;
    for name in names {
        has_list |= name == ACCESS_LIST.as_bytes();
        let kept = match grown(|buffer| fgetxattr(source.fd(), name, buffer)) {
            Ok(value) => fsetxattr(target.fd(), name, &value, XattrFlags::empty()),
            // Gone meanwhile.
            Err(Errno::NODATA) => Ok(()),
            Err(errno) => Err(errno),
        };
        match kept {
            Err(errno) if !(errno == Errno::PERM && is_roots(name)) => {
                return Err((format!("attribute {}", lossless(name)), errno));
            }
            _ => {}
        }
    }
    if !has_list {
        // An ACL inherited from its directory. Most files have none, which is not an error.
        let _ = fremovexattr(target.fd(), ACCESS_LIST);
    }
    Ok(())
}

/// Whether others than root may be refused this attribute on a file of their own.
fn is_roots(name: &[u8]) -> bool {
    name.starts_with(b"security.") || name.starts_with(b"trusted.")
}

/// The result of `get`, with a buffer that grows until it fits.
fn grown(mut get: impl FnMut(&mut [u8]) -> Result<usize, Errno>) -> Result<Vec<u8>, Errno> {
    let mut buffer = vec![0; 512];
    loop {
        match get(&mut buffer) {
            Ok(length) => {
                buffer.truncate(length);
                return Ok(buffer);
            }
            Err(Errno::RANGE) if buffer.len() < 1 << 20 => buffer.resize(buffer.len() * 4, 0),
            Err(errno) => return Err(errno),
        }
    }
}
