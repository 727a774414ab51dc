//! The file that `device` requests.

/// Bytes of the file: many windows, and fast to read once.
pub(super) const FILE: u64 = 32 << 20;

/// The name of the file.
pub(super) const CALLED: &str = "file";
