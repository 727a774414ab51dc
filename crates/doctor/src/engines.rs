//! Calls on which movers and waiters are built.

use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;

use iotomy_host::privilege::not_allowed;
use iotomy_record::numbers;
use iotomy_sys::probe::{Refusal, io_uring, memory};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

use crate::check::{Check, Context, Outcome, number_in};

#[rustfmt::skip]
pub(crate) static CHECKS: &[Check] = &[
    Check { name: "io_uring", purpose: "movers and waiters by io_uring", try_it: ring },
    Check { name: "io_uring-sqpoll", purpose: "io_uring without entering the kernel", try_it: polled_ring },
    Check { name: "cachestat", purpose: "findings: what was in the page cache", try_it: cachestat },
    Check { name: "pipe-size", purpose: "movers by splice and vmsplice", try_it: pipe_size },
];

fn ring_remedy(refusal: &Refusal) -> String {
    if !not_allowed(refusal) {
        return "boot a kernel with CONFIG_IO_URING=y".to_owned();
    }
    match number_in("/proc/sys/kernel/io_uring_disabled") {
        Some(level @ 1..) => format!("sysctl kernel.io_uring_disabled=0 (it is {level})"),
        _ => "allow io_uring_setup in the container's seccomp profile".to_owned(),
    }
}

fn ring(_: &Context) -> Outcome {
    match io_uring::setup() {
        Ok(operations) => Outcome::ready(format!("{operations} operations")),
        Err(refusal) => Outcome::refused(&refusal, ring_remedy(&refusal)),
    }
}

fn polled_ring(_: &Context) -> Outcome {
    match io_uring::setup_polled() {
        Ok(()) => Outcome::ready("a ring polled by a thread of the kernel was set up"),
        Err(refusal) => Outcome::refused(&refusal, ring_remedy(&refusal)),
    }
}

fn cachestat(_: &Context) -> Outcome {
    let counted = memfd_create("iotomy", MemfdFlags::CLOEXEC)
        .map_err(|e| Refusal::new("memfd_create", e))
        .and_then(|memory| {
            let mut file = File::from(memory);
            file.write_all(&[1]).map_err(|e| Refusal::new("write", e))?;
            memory::cachestat(file.as_fd())
        });
    match counted.map(|cached| cached.pages) {
        Ok(1..) => Outcome::ready("a page in memory was counted"),
        Ok(0) => Outcome::missing(
            "cachestat: counted no page of a file that is in memory",
            "use mincore instead (iotomy does)",
        ),
        Err(refusal) => Outcome::refused(
            &refusal,
            "boot a kernel of 6.5 or later (in a container: allow the call in its seccomp profile)",
        ),
    }
}

fn pipe_size(_: &Context) -> Outcome {
    const LIMIT: &str = "/proc/sys/fs/pipe-max-size";
    /// The default of the kernel, when the file cannot be read.
    const USUAL: u64 = 1 << 20;
    let largest = number_in(LIMIT).unwrap_or(USUAL);
    let got = pipe_with(PipeFlags::CLOEXEC).map_err(|e| Refusal::new("pipe2", e)).and_then(
        |(read, _write)| {
            fcntl_setpipe_size(&read, usize::try_from(largest).unwrap_or(usize::MAX))
                .map_err(|e| Refusal::new("fcntl F_SETPIPE_SZ", e))
        },
    );
    match got {
        Ok(bytes) => Outcome::ready(format!("a pipe of {}", numbers::bytes(bytes as u128))),
        Err(refusal) => Outcome::refused(
            &refusal,
            format!("sysctl fs.pipe-user-pages-soft=0, or use fewer pipes at once ({LIMIT})"),
        ),
    }
}
