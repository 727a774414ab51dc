//! One end of a copy: a descriptor, and the facts about it.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};

use iotomy_host::file_systems;
use rustix::fs::{FileType, OFlags, SeekFrom, Stat, fcntl_getfl, fstat, fstatfs, seek, tell};
use rustix::net::{SocketAddrAny, getpeername, getsockname};

/// The kind of file behind a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// A pipe or FIFO.
    Pipe,
    /// A socket.
    Socket,
    /// A character device, such as a terminal or the null device.
    Char,
    /// A block device.
    Block,
    /// Anything else.
    Other,
}

impl Kind {
    /// The word messages use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Regular => "regular file",
            Self::Directory => "directory",
            Self::Pipe => "pipe",
            Self::Socket => "socket",
            Self::Char => "character device",
            Self::Block => "block device",
            Self::Other => "file of another type",
        }
    }
}

/// One end of a copy.
#[derive(Debug, Clone, Copy)]
pub struct End<'fd> {
    fd: BorrowedFd<'fd>,
    kind: Kind,
    size: u64,
    blocks: u64,
    identity: (u64, u64),
    device_number: u64,
    append: bool,
    direct: bool,
    non_blocking: bool,
    magic: u64,
}

/// File systems whose files claim to be regular and are generated when read: their sizes mean
/// nothing, and an in-kernel copy of them ends at once.
const MADE_UP: [u64; 8] = [
    file_systems::PROC,
    0x6265_6572, // sysfs
    0x6462_6720, // debugfs
    0x7472_6163, // tracefs
    0x0027_e0eb, // cgroup
    0x6367_7270, // cgroup2
    0x7363_6673, // securityfs
    0xcafe_4a11, // bpf
];

/// File systems on disks and in memory that hold files of just the size they report, and find all holes.
const LOCAL: [u64; 15] = [
    file_systems::EXT4,
    file_systems::TMPFS,
    file_systems::OVERLAY,
    0x5846_5342, // xfs
    0x9123_683e, // btrfs
    0xf2f5_2010, // f2fs
    0xca45_1a4e, // bcachefs
    0x2fc1_2fc1, // zfs
    0x8584_58f6, // ramfs
    0x4d44,      // vfat
    0x2011_bab0, // exfat
    0x7366_746e, // ntfs3
    0x7371_7368, // squashfs
    0xe0f5_e1e2, // erofs
    0x9660,      // iso9660
];

/// File systems of networks whose files are never shorter than they report, but may have grown on their server, and
/// whose protocol may not know holes.
const REMOTE: [u64; 5] = [
    0x6969,      // nfs
    0xff53_4d42, // cifs
    0xfe53_4d42, // smb
    0x00c3_6400, // ceph
    0x0bd0_0bd0, // lustre
];

impl<'fd> End<'fd> {
    /// Examines a descriptor.
    ///
    /// # Errors
    /// When it is not one.
    pub fn new(fd: &'fd impl AsFd) -> io::Result<Self> {
        let fd = fd.as_fd();
        let stat = fstat(fd)?;
        let flags = fcntl_getfl(fd)?;
        let magic = fstatfs(fd).map_or(0, |found| file_systems::magic(found.f_type));
        Ok(Self::known(fd, &stat, flags, magic))
    }

    /// A descriptor whose facts the caller already knows: the result of fstat(2), the flags it was
    /// opened with, and the magic number of its file system, 0 when unknown.
    pub fn known(fd: BorrowedFd<'fd>, stat: &Stat, flags: OFlags, magic: u64) -> Self {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Kind::Regular,
            FileType::Directory => Kind::Directory,
            FileType::Fifo => Kind::Pipe,
            FileType::Socket => Kind::Socket,
            FileType::CharacterDevice => Kind::Char,
            FileType::BlockDevice => Kind::Block,
            _ => Kind::Other,
        };
        Self {
            fd,
            kind,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            blocks: u64::try_from(stat.st_blocks).unwrap_or(0),
            identity: (stat.st_dev, stat.st_ino),
            device_number: stat.st_rdev,
            append: flags.contains(OFlags::APPEND),
            direct: flags.contains(OFlags::DIRECT),
            non_blocking: flags.contains(OFlags::NONBLOCK),
            magic,
        }
    }

    /// The descriptor.
    pub fn fd(&self) -> BorrowedFd<'fd> {
        self.fd
    }

    /// Its kind.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The size of a regular file when it was examined, in bytes. For a generated file it means
    /// nothing; see [`End::has_true_size`].
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether [`End::size`] is the number of bytes there are to read, as far as the file system is to be believed: to
    /// read(2) alone the end is known.
    pub fn has_true_size(&self) -> bool {
        self.kind == Kind::Regular && !MADE_UP.contains(&self.magic)
    }

    /// Whether as many bytes as [`End::size`] can be read, if not more. A server of FUSE or 9p gives what it likes; a
    /// mapping, and a read that does not wait, are then filled with zeros up to the claimed size, and read(2) is not.
    pub fn gives_its_size(&self) -> bool {
        self.has_true_size() && (LOCAL.contains(&self.magic) || REMOTE.contains(&self.magic))
    }

    /// Whether `SEEK_HOLE` finds its holes. Elsewhere "none" may mean that the file system does not look.
    pub fn finds_holes(&self) -> bool {
        LOCAL.contains(&self.magic)
    }

    /// Whether a regular file takes less room than its size: it probably has holes.
    pub fn may_have_holes(&self) -> bool {
        self.kind == Kind::Regular && self.blocks.saturating_mul(512) < self.size
    }

    /// Whether it takes less room than its bytes, on a file system that may have no `SEEK_HOLE`: the kernel then says that
    /// there is no hole before the end.
    pub(crate) fn may_hide_holes(&self) -> bool {
        self.may_have_holes() && self.has_true_size() && !self.finds_holes()
    }

    /// Whether it has holes that only its zeros show.
    pub(crate) fn hides_holes(&self) -> bool {
        let Some(at) = tell(self.fd).ok().filter(|_| self.may_hide_holes()) else { return false };
        let hole = seek(self.fd, SeekFrom::Hole(at));
        let is_back = seek(self.fd, SeekFrom::Start(at)).is_ok();
        is_back && !hole.is_ok_and(|hole| hole < self.size)
    }

    /// Device and inode.
    pub fn identity(&self) -> (u64, u64) {
        self.identity
    }

    /// Whether writes go to the file's end (`O_APPEND`).
    pub fn is_append(&self) -> bool {
        self.append
    }

    /// Whether reads and writes go past the page cache (`O_DIRECT`) and must be aligned.
    pub fn is_direct(&self) -> bool {
        self.direct
    }

    /// Whether calls on it do not wait (`O_NONBLOCK`).
    pub fn is_non_blocking(&self) -> bool {
        self.non_blocking
    }

    /// The magic number of its file system, 0 when unknown.
    pub fn magic(&self) -> u64 {
        self.magic
    }

    /// Whether it is an IP connection whose other end is on this machine.
    pub fn is_loopback(&self) -> bool {
        let ip = |address: SocketAddrAny| SocketAddr::try_from(address).ok().map(|a| a.ip());
        self.kind == Kind::Socket
            && getpeername(self.fd).ok().flatten().and_then(ip).is_some_and(|peer| {
                peer.is_loopback() || Some(peer) == getsockname(self.fd).ok().and_then(ip)
            })
    }

    /// Whether it is the null device, which accepts all bytes and reads none.
    pub fn is_null_device(&self) -> bool {
        self.kind == Kind::Char && self.device_number == rustix::fs::makedev(1, 3)
    }

    /// Whether it is the zero device, which gives zeros for ever.
    pub fn is_zero_device(&self) -> bool {
        self.kind == Kind::Char && self.device_number == rustix::fs::makedev(1, 5)
    }

    /// Whether it is a device that returns bytes for ever and of which no byte belongs to anybody:
    /// zeros, or random ones. Bytes that are read from it and go nowhere are not a loss.
    pub fn gives_for_ever(&self) -> bool {
        // /dev/zero, full, random and urandom, as Linux numbers them (Documentation/admin-guide/devices.txt).
        let minors = [5, 7, 8, 9];
        self.kind == Kind::Char
            && minors.iter().any(|minor| self.device_number == rustix::fs::makedev(1, *minor))
    }
}
