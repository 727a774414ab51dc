//! Files that the agent is told to follow: no other user can have written them, and they are of a bounded size.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use iotomy_record::store::{Distrust, open_trusted};

/// The largest file that is read.
const MOST_BYTES: u64 = 1 << 20;

/// In a mode: everyone may read it.
const OTHERS_READ: u32 = 0o004;

/// What a file has.
///
/// # Errors
/// The kernel's error; one with a [`distrust`] inside if another user could have written it; or it is too large.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    content(open_trusted(path)?)
}

/// The same of a secret, which is none if everyone may read it.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_secret(path: &Path) -> io::Result<Vec<u8>> {
    let file = open_trusted(path)?;
    if file.metadata()?.mode() & OTHERS_READ != 0 {
        return Err(io::Error::other("everyone may read it; try chmod o-r"));
    }
    content(file)
}

fn content(file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > MOST_BYTES {
        true => Err(io::Error::other("it is larger than 1 MiB")),
        false => Ok(bytes),
    }
}

/// Why a file is not followed: another user could have written it.
pub(crate) fn distrust(error: &io::Error) -> Option<String> {
    error.get_ref()?.downcast_ref::<Distrust>().map(ToString::to_string)
}
