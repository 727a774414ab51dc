//! A copy with only the necessary calls, and the CPU time of each call, to explain the difference
//! between reading and mapping. The movers make the same calls with more work around them, and do
//! not report single calls.

use std::os::fd::AsFd;

use iotomy_host::Skip;
use iotomy_sys::buffer::Aligned;
use iotomy_sys::mapping::Window;
use rustix::io::{pread, retry_on_intr, write};

use crate::copy::WINDOW;
use crate::harness::cpu_time::thread_ns;
use crate::harness::scratch::Scratch;

/// How the source bytes are accessed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AccessMode {
    Read,
    Map,
}

impl AccessMode {
    /// Returns the mode of a mover; `None` for movers that neither read nor map.
    pub(super) fn for_mover(mover: &str) -> Option<Self> {
        match mover {
            "read-write" => Some(Self::Read),
            "mmap-write" => Some(Self::Map),
            _ => None,
        }
    }
}

/// Copies in requests of 8 MiB; returns the CPU time in ns of reading or mapping the bytes, and of
/// writing them.
pub(super) fn by_call(
    way: AccessMode,
    source: &Scratch,
    target: &Scratch,
    bytes: u64,
) -> Result<[(&'static str, f64); 2], Skip> {
    let (mut get, mut put, mut at) = (0.0, 0.0, 0);
    let mut buffer = Aligned::new(if way == AccessMode::Read { WINDOW as usize } else { 1 });
    // The pages of a new buffer are allocated at its first use, which is not part of a read.
    buffer.fill(0);
    while at < bytes {
        let length = usize::try_from(WINDOW.min(bytes - at)).unwrap_or(usize::MAX);
        let begun = thread_ns();
        let done = match way {
            AccessMode::Read => {
                let got = retry_on_intr(|| pread(source.fd(), &mut buffer[..length], at));
                let got = got.map_err(|e| Skip::refused("pread64", e))?;
                let read = thread_ns();
                let done = retry_on_intr(|| write(target.fd(), &buffer[..got]));
                put += thread_ns() - read;
                get += read - begun;
                done.map_err(|e| Skip::refused("write", e))?
            }
            AccessMode::Map => {
                let window = Window::map(source.fd().as_fd(), at, length, false);
                let window = window.map_err(|e| Skip::refused("mmap", e))?;
                let mapped = thread_ns();
                let done = window.write_to(target.fd().as_fd(), 0..length);
                let written = thread_ns();
                drop(window);
                put += written - mapped;
                get += mapped - begun + (thread_ns() - written);
                done.map_err(|e| Skip::refused("write", e))?
            }
        };
        if done != length {
            return Err(Skip(format!("write: moved {done} of {length} bytes")));
        }
        at += done as u64;
    }
    Ok([(if way == AccessMode::Read { "read_ns" } else { "map_ns" }, get), ("write_ns", put)])
}
