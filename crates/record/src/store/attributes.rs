//! What a new file takes over from the one it replaces besides owner and mode: the access list and the extended
//! attributes.
//!
//! The one invariant: nobody gets a right that the old file did not give. The group bits of a mode are the mask of an
//! access list, where there is one, and the list's own entry for the group may allow less. A directory may give a new file
//! a list that the old one never had.
//!
//! Left out is what belongs to the old content: capabilities, which a write removes too, and signatures (IMA, EVM).

use std::fs::{File, Permissions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::PermissionsExt;

use rustix::fs::{XattrFlags, fgetxattr, fremovexattr, fsetxattr, getxattr, listxattr};
use rustix::io::Errno;

use super::place::proc_name;

/// The access list, as the file system shows it.
const ACCESS_LIST: &str = "system.posix_acl_access";

/// Attributes of the old content, and the list, which goes with the mode.
const LEFT_OUT: [&[u8]; 4] =
    [ACCESS_LIST.as_bytes(), b"security.capability", b"security.ima", b"security.evm"];

/// The access list of a file.
#[derive(Debug)]
pub(super) enum AccessList {
    None,
    Is(Vec<u8>),
    /// It cannot be read.
    Unknown,
}

impl AccessList {
    fn from_answer(answer: Result<Vec<u8>, Errno>) -> Self {
        match answer {
            Ok(list) => Self::Is(list),
            Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS) => Self::None,
            Err(_) => Self::Unknown,
        }
    }

    /// The mode without the mask: the group bits are what the owning group itself may do.
    fn without_mask(&self, mode: u32) -> u32 {
        let group = match self {
            Self::None => return mode,
            Self::Is(list) => mode & group_entry(list),
            // Not more than everybody may.
            Self::Unknown => narrowed(mode),
        };
        mode & !0o070 | group & 0o070
    }
}

/// The bits of the entry for the owning group, at their place in a mode; none where there is no such entry.
fn group_entry(list: &[u8]) -> u32 {
    const GROUP: u16 = 0x04;
    // A version of four bytes, then entries of a tag, bits and a number.
    let entries = list.get(4..).unwrap_or_default().as_chunks::<8>().0;
    let group = entries.iter().find(|entry| u16::from_le_bytes([entry[0], entry[1]]) == GROUP);
    group.map_or(0, |entry| (u32::from(entry[2]) & 7) << 3)
}

/// The mode for a file of another group: neither group gets more than both the old group and everybody had.
fn narrowed(mode: u32) -> u32 {
    let both = mode >> 3 & mode & 7;
    mode & !0o077 | both << 3 | both
}

/// The permissions of a file without the mask of its access list, if it has one: those of a file like it that has none.
pub fn mode_without_mask(fd: BorrowedFd<'_>, mode: u32) -> u32 {
    // What everybody may is no matter of the list.
    if mode >> 3 & 7 & !mode == 0 {
        return mode;
    }
    let list = grown(|buffer| fgetxattr(fd, ACCESS_LIST, buffer));
    AccessList::from_answer(list).without_mask(mode)
}

/// The access list of a file that is open as a place only.
pub(super) fn access_list(node: &File) -> AccessList {
    let name = proc_name(node.as_fd());
    AccessList::from_answer(grown(|buffer| getxattr(name.as_str(), ACCESS_LIST, buffer)))
}

/// Gives a file the rights of another, whose mode and list are known. Where the group is not the same, no list.
pub(super) fn give_rights(
    file: &File,
    mode: u32,
    list: &AccessList,
    is_same_group: bool,
) -> io::Result<()> {
    // One that its directory gave it. Most files have none, which is not an error.
    let _ = fremovexattr(file, ACCESS_LIST);
    let plain = list.without_mask(mode);
    let plain = if is_same_group { plain } else { narrowed(plain) };
    file.set_permissions(Permissions::from_mode(plain))?;
    if let AccessList::Is(list) = list
        && is_same_group
    {
        // Where it is refused, fewer users have rights than before.
        let _ = fsetxattr(file, ACCESS_LIST, list, XattrFlags::empty());
    }
    Ok(())
}

/// Copies the extended attributes of a file that is open as a place only. Those of `user.` must all go over; of the others
/// those that this process may set.
///
/// # Errors
/// As fsetxattr(2), of an attribute of `user.`.
pub(super) fn copy_attributes(node: &File, to: &File) -> io::Result<()> {
    let from = proc_name(node.as_fd());
    // A file system without attributes, or no /proc.
    let Ok(names) = grown(|buffer| listxattr(from.as_str(), buffer)) else { return Ok(()) };
    let is_taken = |name: &&[u8]| !name.is_empty() && !LEFT_OUT.contains(name);
    for name in names.split(|byte| *byte == 0).filter(is_taken) {
        // Gone meanwhile, or not for this process.
        let Ok(value) = grown(|buffer| getxattr(from.as_str(), name, buffer)) else { continue };
        match fsetxattr(to, name, &value, XattrFlags::empty()) {
            Err(errno) if name.starts_with(b"user.") => return Err(errno.into()),
            _ => {}
        }
    }
    Ok(())
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
            // An attribute has 64 KiB at most, and so has the list of names.
            Err(Errno::RANGE) if buffer.len() < 1 << 20 => buffer.resize(buffer.len() * 4, 0),
            Err(errno) => return Err(errno),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An access list of these entries.
    fn list(entries: &[(u16, u16)]) -> Vec<u8> {
        let mut list = 2_u32.to_le_bytes().to_vec();
        for (tag, bits) in entries {
            list.extend(tag.to_le_bytes());
            list.extend(bits.to_le_bytes());
            list.extend(u32::MAX.to_le_bytes());
        }
        list
    }

    #[test]
    fn the_group_bits_are_those_of_the_groups_entry_under_the_mask() {
        let rights = |group, mask| {
            AccessList::Is(list(&[(1, 6), (2, 6), (4, group), (0x10, mask), (0x20, 0)]))
        };
        assert_eq!(rights(4, 6).without_mask(0o660), 0o640);
        assert_eq!(rights(6, 4).without_mask(0o640), 0o640);
        assert_eq!(rights(0, 7).without_mask(0o4770), 0o4700);
        assert_eq!(AccessList::None.without_mask(0o664), 0o664);
        assert_eq!(AccessList::Unknown.without_mask(0o664), 0o644);
        // A list that is none.
        assert_eq!(AccessList::Is(vec![1, 2]).without_mask(0o660), 0o600);
    }

    #[test]
    fn another_group_gets_what_everybody_had() {
        for (mode, narrow) in [(0o644, 0o644), (0o640, 0o600), (0o664, 0o644), (0o604, 0o600)] {
            assert_eq!(narrowed(mode), narrow, "{mode:o}");
        }
    }
}
