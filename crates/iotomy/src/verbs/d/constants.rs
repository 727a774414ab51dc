//! Names that programs have for numbers: errors, signals, how a process ended, and flags of block requests and
//! opened files.

use iotomy_sys::errno;
use nix::sys::signal::Signal;
use rustix::fs::OFlags;

/// Bits of `b_flags`, as Solaris has them (`d_io.bpf.h` sets them); and how a process ended.
const PLAIN: [(&str, i64); 10] = [
    ("B_DONE", 0x2),
    ("B_ERROR", 0x4),
    ("B_PAGEIO", 0x10),
    ("B_PHYS", 0x20),
    ("B_READ", 0x40),
    ("B_WRITE", 0x100),
    ("B_ASYNC", 0x400),
    ("CLD_EXITED", 1),
    ("CLD_KILLED", 2),
    ("CLD_DUMPED", 3),
];

/// Flags of open(2).
const OPEN: [(&str, OFlags); 13] = [
    ("O_RDONLY", OFlags::RDONLY),
    ("O_WRONLY", OFlags::WRONLY),
    ("O_RDWR", OFlags::RDWR),
    ("O_APPEND", OFlags::APPEND),
    ("O_CLOEXEC", OFlags::CLOEXEC),
    ("O_CREAT", OFlags::CREATE),
    ("O_DIRECT", OFlags::DIRECT),
    ("O_DIRECTORY", OFlags::DIRECTORY),
    ("O_DSYNC", OFlags::DSYNC),
    ("O_EXCL", OFlags::EXCL),
    ("O_NONBLOCK", OFlags::NONBLOCK),
    ("O_SYNC", OFlags::SYNC),
    ("O_TRUNC", OFlags::TRUNC),
];

/// All of them.
pub(super) fn constants() -> Vec<(&'static str, i64)> {
    let errors = errno::all().iter().map(|(number, name)| (*name, i64::from(*number)));
    let signals = Signal::iterator().map(|signal| (signal.as_str(), signal as i64));
    let flags = OPEN.iter().map(|(name, flag)| (*name, i64::from(flag.bits())));
    PLAIN.into_iter().chain(flags).chain(signals).chain(errors).collect()
}
