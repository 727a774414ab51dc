//! The file systems of `files`: their layouts, their size, and whether files fit.

use std::os::fd::OwnedFd;

use iotomy_host::Skip;
use rustix::fs::fstatvfs;

use crate::harness::Params;
use crate::harness::bounds::Disk;
use crate::harness::volumes::Recipe;

/// Minimum size of an image in bytes: more than the 300 MB that mkfs.xfs requires.
const IMAGE: u64 = 384 << 20;

/// Bytes of an image for each file of its largest directory: by default mke2fs makes one inode per
/// 16 KiB, and twice the needed room must be free, for smaller directories, too.
const OF_A_FILE: u64 = 48 << 10;

/// Bytes that are actually written per file: an inode, an entry and its share of tables.
pub(super) const WRITTEN: u64 = 2 << 10;

/// Bytes of tables and journals that mkfs writes.
pub(super) const TABLES: u64 = 96 << 20;

/// Whether the file system is in an image.
pub(super) fn is_image(fs: &str) -> bool {
    ["ext4", "xfs", "btrfs"].contains(&fs)
}

/// Returns the mkfs options of a layout; `None` if the file system does not support it.
pub(super) fn options(fs: &str, layout: &str) -> Option<&'static [&'static str]> {
    Some(match (fs, layout) {
        (_, "default") => &[],
        ("ext4", "small-blocks") => &["-b", "1024"],
        ("ext4", "large-inodes") => &["-I", "1024"],
        ("ext4", "many-inodes") => &["-i", "1024"],
        ("xfs", "small-blocks") => &["-b", "size=1024"],
        ("xfs", "large-inodes") => &["-i", "size=2048"],
        ("btrfs", "small-blocks") => &["-n", "4096"],
        _ => return None,
    })
}

/// Returns the image of a file system for `files` files; layouts other than the default are varied
/// with few files.
pub(super) fn recipe(kind: &'static str, layout: &str, files: u64) -> Recipe<'static> {
    let files = if layout == "default" { files } else { 0 };
    Recipe {
        kind,
        options: options(kind, layout).unwrap_or_default(),
        bytes: IMAGE.max(files * OF_A_FILE),
        devices: 1,
        takes: TABLES + files * WRITTEN,
        past_the_cache: false,
    }
}

/// Refuses to fill the directory unless twice the room is free.
pub(super) fn check_room(directory: &OwnedFd, files: u64, case: &Params) -> Result<(), Skip> {
    let stderr = fstatvfs(directory).map_err(|e| Skip::refused("fstatvfs", e))?;
    let fs = case.name("fs");
    let advice = if fs == "here" { "; name another directory with --path" } else { "" };
    Disk::from_statvfs(&stderr)
        .check(files * WRITTEN, files)
        .map_err(|Skip(reason)| Skip(format!("{fs}: {reason}{advice}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_has_inodes_for_twice_its_largest_directory_and_for_the_others() {
        // One inode per 16 KiB, some of which the file system uses itself.
        let inodes = recipe("ext4", "default", 100_000).bytes / (16 << 10);
        assert!(inodes / 2 > 100_000 + 11_110, "{inodes}");
        assert_eq!(recipe("ext4", "many-inodes", 100_000).bytes, IMAGE, "varied with few files");
    }

    #[test]
    fn a_layout_is_of_the_file_systems_that_have_the_choice() {
        assert_eq!(options("ext4", "default"), Some(&[][..]));
        assert!(options("ext4", "many-inodes").is_some());
        assert!(
            options("tmpfs", "small-blocks").is_none() && options("here", "many-inodes").is_none()
        );
        assert!(options("xfs", "many-inodes").is_none(), "it makes inodes as it goes");
    }
}
