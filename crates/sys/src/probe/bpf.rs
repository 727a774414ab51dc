//! `bpf(2)`: programs of two instructions, loaded and attached for a moment.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::Refusal;

const BPF_MAP_CREATE: libc::c_int = 0;
const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_RAW_TRACEPOINT_OPEN: libc::c_int = 17;

const BPF_MAP_TYPE_HASH: u32 = 1;
const BPF_PROG_TYPE_RAW_TRACEPOINT: u32 = 17;
const BPF_PROG_TYPE_TRACING: u32 = 26;
const BPF_TRACE_FENTRY: u32 = 24;

/// `r0 = 0; exit`, as `struct bpf_insn` lays it out.
static RETURN_ZERO: [u64; 2] = [0x0000_0000_0000_00b7, 0x0000_0000_0000_0095];

/// The part of `union bpf_attr` that `BPF_MAP_CREATE` needs.
#[repr(C)]
struct MapAttributes {
    map_type: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    map_flags: u32,
}

/// The part of `union bpf_attr` that `BPF_PROG_LOAD` needs.
#[repr(C)]
#[derive(Default)]
struct ProgramAttributes {
    prog_type: u32,
    insn_cnt: u32,
    insns: u64,
    license: u64,
    log: [u64; 2],
    kern_version: u32,
    prog_flags: u32,
    prog_name: [u64; 2],
    prog_ifindex: u32,
    expected_attach_type: u32,
    btf_and_lines: [u64; 4],
    line_info_cnt: u32,
    attach_btf_id: u32,
    attach_prog_fd: u32,
    padding: u32,
}

/// The part of `union bpf_attr` that `BPF_RAW_TRACEPOINT_OPEN` needs.
#[repr(C)]
struct AttachAttributes {
    name: u64,
    prog_fd: u32,
    padding: u32,
}

/// Makes a hash map of one entry.
///
/// # Errors
/// The kernel's refusal.
pub fn map_create() -> Result<(), Refusal> {
    let attributes = MapAttributes {
        map_type: BPF_MAP_TYPE_HASH,
        key_size: 4,
        value_size: 8,
        max_entries: 1,
        map_flags: 0,
    };
    bpf("bpf BPF_MAP_CREATE", BPF_MAP_CREATE, &attributes).map(drop)
}

/// Loads a program of the kind that watches tracepoints.
///
/// # Errors
/// The kernel's refusal.
pub fn prog_load() -> Result<(), Refusal> {
    load(BPF_PROG_TYPE_RAW_TRACEPOINT, 0, 0).map(drop)
}

/// Loads a program and attaches it, for a moment, to the entry of the kernel function whose type is
/// `btf_id`.
///
/// # Errors
/// The kernel's refusal.
pub fn fentry(btf_id: u32) -> Result<(), Refusal> {
    let program = load(BPF_PROG_TYPE_TRACING, BPF_TRACE_FENTRY, btf_id)?;
    let attributes =
        AttachAttributes { name: 0, prog_fd: program.as_raw_fd().cast_unsigned(), padding: 0 };
    bpf("bpf BPF_RAW_TRACEPOINT_OPEN", BPF_RAW_TRACEPOINT_OPEN, &attributes).map(drop)
}

fn load(kind: u32, attach: u32, attach_btf_id: u32) -> Result<OwnedFd, Refusal> {
    const LICENSE: &CStr = c"GPL";
    let attributes = ProgramAttributes {
        prog_type: kind,
        insn_cnt: 2,
        insns: RETURN_ZERO.as_ptr().expose_provenance() as u64,
        license: LICENSE.as_ptr().expose_provenance() as u64,
        expected_attach_type: attach,
        attach_btf_id,
        ..ProgramAttributes::default()
    };
    bpf("bpf BPF_PROG_LOAD", BPF_PROG_LOAD, &attributes)
}

fn bpf<T>(call: &'static str, command: libc::c_int, attributes: &T) -> Result<OwnedFd, Refusal> {
    // SAFETY: `attributes` is readable for its size; the kernel reads, but does not write, it and
    // what it points to, and checks both.
    let got = unsafe {
        libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), size_of::<T>())
    };
    descriptor(call, got)
}

/// The descriptor a raw call returned, owned.
pub(super) fn descriptor(call: &'static str, got: libc::c_long) -> Result<OwnedFd, Refusal> {
    match RawFd::try_from(got) {
        // SAFETY: the kernel just made the descriptor and nobody else owns it.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(Refusal::last(call)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_have_the_size_and_places_of_the_kernels() {
        assert_eq!(size_of::<ProgramAttributes>(), 120);
        assert_eq!(std::mem::offset_of!(ProgramAttributes, expected_attach_type), 68);
        assert_eq!(std::mem::offset_of!(ProgramAttributes, attach_btf_id), 108);
        assert_eq!(size_of::<AttachAttributes>(), 16);
    }
}
