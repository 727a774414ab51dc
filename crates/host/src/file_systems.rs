//! Kinds of file systems by their magic numbers, as statfs(2) and linux/magic.h list them.

/// ext2 and ext3 share the number, and on today's kernels the driver.
pub const EXT4: u64 = 0xef53;
/// An overlay of others: its files have no pages of their own.
pub const OVERLAY: u64 = 0x794c_7630;
/// Files that are made up when they are read, and links that lead where no path does.
pub const PROC: u64 = 0x9fa0;
/// Files in memory.
pub const TMPFS: u64 = 0x0102_1994;

#[rustfmt::skip]
const NAMES: &[(u64, &str)] = &[
    (EXT4, "ext4"), (0x5846_5342, "xfs"), (0x9123_683e, "btrfs"), (TMPFS, "tmpfs"),
    (OVERLAY, "overlay"), (0xf2f5_2010, "f2fs"), (0xca45_1a4e, "bcachefs"),
    (0x2fc1_2fc1, "zfs"), (0x6969, "nfs"), (0x6573_5546, "fuse"), (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb"), (0x0102_1997, "9p"), (0x8584_58f6, "ramfs"), (0x4d44, "vfat"),
    (0x2011_bab0, "exfat"), (0x7366_746e, "ntfs3"), (0x5346_544e, "ntfs"), (0x00c3_6400, "ceph"),
    (0x7371_7368, "squashfs"), (0xe0f5_e1e2, "erofs"), (0x7461_636f, "ocfs2"),
    (0x0116_1970, "gfs2"), (0x3434, "nilfs2"), (0x0bd0_0bd0, "lustre"), (0x5346_414f, "afs"),
    (0x3153_464a, "jfs"), (0x9660, "iso9660"), (PROC, "proc"), (0x6265_6572, "sysfs"),
    (0x6367_7270, "cgroup2"), (0x958f_45f6, "hugetlbfs"),
];

/// The magic number in the `f_type` of statfs(2), which is signed, and of 32 bits.
pub fn magic(f_type: i64) -> u64 {
    u64::from(f_type as u32)
}

/// The name of a kind, or its number where it has none here.
pub fn name(magic: u64) -> String {
    known(magic).map_or_else(|| format!("0x{magic:x}"), str::to_owned)
}

/// The name of a kind as a sentence has it.
pub fn in_words(magic: u64) -> String {
    known(magic).map_or_else(|| format!("file system 0x{magic:x}"), str::to_owned)
}

fn known(magic: u64) -> Option<&'static str> {
    NAMES.iter().find(|(known, _)| *known == magic).map(|(_, name)| *name)
}
