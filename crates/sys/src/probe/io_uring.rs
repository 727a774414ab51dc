//! `io_uring_setup(2)`: a ring of eight entries, probed for its features and closed.

use std::os::fd::AsRawFd;

use super::Refusal;
use super::bpf::descriptor;
use super::child::{check, in_child};

const IORING_SETUP_SQPOLL: u32 = 1 << 1;
const IORING_REGISTER_PROBE: libc::c_uint = 8;
const IO_URING_OP_SUPPORTED: u16 = 1;
const ENTRIES: libc::c_uint = 8;
const OPERATIONS: usize = 256;

/// `struct io_uring_params`.
#[repr(C)]
#[derive(Default)]
struct Parameters {
    sq_entries: u32,
    cq_entries: u32,
    flags: u32,
    rest: [u32; 7],
    offsets: [u64; 10],
}

/// `struct io_uring_probe_op`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Operation {
    op: u8,
    resv: u8,
    flags: u16,
    resv2: u32,
}

/// `struct io_uring_probe` with room for every operation.
#[repr(C)]
struct Operations {
    header: [u32; 4],
    ops: [Operation; OPERATIONS],
}

/// Makes a ring; the number of operations the kernel's rings know.
///
/// # Errors
/// The kernel's refusal.
pub fn setup() -> Result<usize, Refusal> {
    let mut parameters = Parameters::default();
    let ring = descriptor("io_uring_setup", io_uring_setup(&mut parameters))?;
    let mut known = Operations { header: [0; 4], ops: [Operation::default(); OPERATIONS] };
    // SAFETY: `known` is writable and has room for the number of operations named.
    let got = unsafe {
        libc::syscall(
            libc::SYS_io_uring_register,
            ring.as_raw_fd(),
            IORING_REGISTER_PROBE,
            &raw mut known,
            OPERATIONS,
        )
    };
    if got < 0 {
        return Err(Refusal::last("io_uring_register IORING_REGISTER_PROBE"));
    }
    Ok(known.ops.iter().filter(|op| op.flags & IO_URING_OP_SUPPORTED != 0).count())
}

/// Makes a ring that a thread of the kernel polls. In a child, because that thread belongs to the
/// process and outlives the descriptor for a while.
///
/// # Errors
/// The kernel's refusal.
pub fn setup_polled() -> Result<(), Refusal> {
    let work = || {
        let mut parameters = Parameters { flags: IORING_SETUP_SQPOLL, ..Parameters::default() };
        check(0, i32::try_from(io_uring_setup(&mut parameters)).unwrap_or(-1))
    };
    // SAFETY: the work makes one system call and touches its own stack only.
    unsafe { in_child(&["io_uring_setup IORING_SETUP_SQPOLL"], work) }
}

fn io_uring_setup(parameters: &mut Parameters) -> libc::c_long {
    // SAFETY: `parameters` is readable and writable for the size the kernel knows.
    unsafe { libc::syscall(libc::SYS_io_uring_setup, ENTRIES, std::ptr::from_mut(parameters)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_have_the_sizes_of_the_kernels() {
        assert_eq!(size_of::<Parameters>(), 120);
        assert_eq!(size_of::<Operations>(), 16 + OPERATIONS * 8);
    }
}
