//! Which file systems may share extents between files.

use iotomy_host::file_systems;

use crate::End;

/// File systems that never share extents: ext2 to ext4, tmpfs.
const SHARES_NOTHING: [u64; 2] = [file_systems::EXT4, file_systems::TMPFS];

/// Whether the copy of a file of this file system may share its extents.
pub(crate) fn may_share(end: &End<'_>) -> bool {
    !SHARES_NOTHING.contains(&end.magic())
}
