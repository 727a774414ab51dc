//! Kinds of file systems by their magic numbers, as statfs(2) and linux/magic.h list them.

/// An overlay of others: its files have no pages of their own.
pub const OVERLAY: u64 = 0x794c_7630;

#[rustfmt::skip]
const NAMES: &[(u64, &str)] = &[
    // ext2 and ext3 share the number, and on today's kernels the driver.
    (0xef53, "ext4"), (0x5846_5342, "xfs"), (0x9123_683e, "btrfs"), (0x0102_1994, "tmpfs"),
    (OVERLAY, "overlay"), (0xf2f5_2010, "f2fs"), (0xca45_1a4e, "bcachefs"),
    (0x2fc1_2fc1, "zfs"), (0x6969, "nfs"), (0x6573_5546, "fuse"), (0xff53_4d42, "cifs"),
    (0xfe53_4d42, "smb"), (0x0102_1997, "9p"), (0x8584_58f6, "ramfs"), (0x4d44, "vfat"),
    (0x2011_bab0, "exfat"), (0x7366_746e, "ntfs3"), (0x00c3_6400, "ceph"),
    (0x7371_7368, "squashfs"), (0xe0f5_e1e2, "erofs"), (0x9660, "iso9660"), (0x9fa0, "proc"),
    (0x6265_6572, "sysfs"), (0x6367_7270, "cgroup2"), (0x958f_45f6, "hugetlbfs"),
];

/// The name of a kind, or its number where it has none here.
pub fn name(magic: u64) -> String {
    match NAMES.iter().find(|(known, _)| *known == magic) {
        Some((_, name)) => (*name).to_owned(),
        None => format!("0x{magic:x}"),
    }
}
