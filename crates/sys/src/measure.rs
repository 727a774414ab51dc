//! What an open file of any kind has to read, and what room it has to write: for callers that know
//! descriptors by number only.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;

use crate::poll::{PollFd, poll};

/// What a descriptor is, as far as it matters to those who wait for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file or a directory: it has an end.
    Seekable,
    /// A pipe or FIFO.
    Pipe,
    /// A socket.
    Socket,
    /// A terminal, another device, or what the kernel makes.
    Other,
}

/// What a file has now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStatus {
    /// What it is.
    pub kind: FileKind,
    /// Its length.
    pub size: i64,
    /// How many names it has.
    pub links: u64,
    /// Device and number of its inode.
    pub identity: (u64, u64),
    /// Its mode, user and group.
    pub access: (u32, u32, u32),
}

/// `int fstat(int fd, struct stat *statbuf)`, as far as it is needed.
///
/// # Errors
/// As fstat(2).
pub fn status(fd: RawFd) -> io::Result<FileStatus> {
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the kernel writes one `stat`. By its name: some versions of libraries issue `newfstatat`.
    if unsafe { libc::syscall(libc::SYS_fstat, fd, stat.as_mut_ptr()) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has succeeded.
    let stat = unsafe { stat.assume_init() };
    let kind = match stat.st_mode & libc::S_IFMT {
        libc::S_IFREG | libc::S_IFDIR => FileKind::Seekable,
        libc::S_IFIFO => FileKind::Pipe,
        libc::S_IFSOCK => FileKind::Socket,
        _ => FileKind::Other,
    };
    #[expect(clippy::unnecessary_cast, reason = "the types differ between machines")]
    let links = stat.st_nlink as u64;
    Ok(FileStatus {
        kind,
        size: stat.st_size,
        links,
        identity: (stat.st_dev, stat.st_ino),
        access: (stat.st_mode, stat.st_uid, stat.st_gid),
    })
}

/// The events that a descriptor has now, of those of `poll(2)` that are asked for; errors and hang-ups
/// always.
#[must_use]
pub fn events(fd: RawFd, wanted: i16) -> i16 {
    let mut entry = [PollFd { fd, events: wanted, revents: 0 }];
    match poll(&mut entry, 0) {
        Ok(_) => entry[0].revents,
        Err(_) => 0,
    }
}

fn ask(fd: RawFd, request: libc::c_ulong) -> Option<i64> {
    let mut answer: libc::c_int = 0;
    // SAFETY: both requests write one `int`. Libraries may have an `ioctl` of their own.
    let done = unsafe { libc::syscall(libc::SYS_ioctl, fd, request, &raw mut answer) };
    (done == 0).then_some(answer.into())
}

fn option(fd: RawFd, name: libc::c_int) -> Option<i64> {
    let mut value: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    let (place, level) = ((&raw mut value).cast(), libc::SOL_SOCKET);
    // SAFETY: the kernel writes at most `length` bytes.
    let done = unsafe { libc::getsockopt(fd, level, name, place, &raw mut length) };
    (done == 0).then_some(value.into())
}

/// The bytes that can be read now (`FIONREAD`), where the file tells.
#[must_use]
pub fn bytes_to_read(fd: RawFd) -> Option<i64> {
    ask(fd, libc::FIONREAD)
}

/// The bytes from the file's offset to its end, below 0 if the offset is beyond it.
#[must_use]
pub fn bytes_to_end(fd: RawFd, size: i64) -> Option<i64> {
    // SAFETY: plain integers.
    let offset = unsafe { libc::lseek(fd, 0, libc::SEEK_CUR) };
    (offset >= 0).then(|| size - offset)
}

/// The bytes that fit into a pipe.
#[must_use]
pub fn pipe_room(fd: RawFd) -> Option<i64> {
    // SAFETY: plain integers.
    let size = unsafe { libc::fcntl(fd, libc::F_GETPIPE_SZ) };
    (size >= 0).then(|| i64::from(size) - bytes_to_read(fd).unwrap_or(0))
}

/// The bytes that fit into a socket's buffer for sending. The kernel's figure for the buffer is twice
/// what it has for data.
#[must_use]
pub fn socket_room(fd: RawFd) -> Option<i64> {
    let buffer = option(fd, libc::SO_SNDBUF)?;
    Some(buffer / 2 - ask(fd, libc::TIOCOUTQ)?)
}

/// Whether connections are accepted at a socket.
#[must_use]
pub fn is_listener(fd: RawFd) -> bool {
    option(fd, libc::SO_ACCEPTCONN) == Some(1)
}

/// The connections that wait to be accepted, where the protocol tells (TCP).
#[must_use]
pub fn backlog(fd: RawFd) -> Option<i64> {
    let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    let (place, level) = (info.as_mut_ptr().cast(), libc::IPPROTO_TCP);
    // SAFETY: the kernel writes at most `length` bytes.
    let done = unsafe { libc::getsockopt(fd, level, libc::TCP_INFO, place, &raw mut length) };
    // SAFETY: zeros are valid, and so is what the kernel wrote over them.
    let info = unsafe { info.assume_init() };
    // Of a listener it is the length of the queue.
    (done == 0).then_some(info.tcpi_unacked.into())
}
