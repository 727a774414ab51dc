//! BPF programs that are part of the benches, and how they are attached to perf events.

use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, OwnedFd};

use anyhow::{Context, Result};
use libbpf_rs::{Link, Object, ObjectBuilder, OpenObject, ProgramMut};

/// Aligned to eight bytes, as an ELF reader requires.
#[repr(C, align(8))]
#[derive(Debug)]
pub struct Aligned<Bytes: ?Sized>(pub Bytes);

/// Loads the programs of an object.
///
/// # Errors
/// When the kernel rejects them.
pub fn load(name: &str, object: &Aligned<[u8]>) -> Result<Object> {
    ObjectBuilder::default()
        .name(name)
        .and_then(|builder| builder.open_memory(&object.0))
        .and_then(OpenObject::load)
        .context("cannot load the bench's BPF programs")
}

/// Attaches a program to an event, which its owner keeps.
///
/// # Errors
/// When the kernel refuses to attach it.
pub fn attach_to(program: &ProgramMut<'_>, event: &OwnedFd) -> Result<Link> {
    // The link closes the descriptor that it receives, so it gets a copy.
    let copy = ManuallyDrop::new(event.try_clone().context("cannot copy an event")?);
    program.attach_perf_event(copy.as_raw_fd()).context("cannot attach a program to an event")
}
