//! BPF programs on the tracepoints of system calls that do nothing, and others that only read the
//! clock: the minimal overhead of every observer on these tracepoints, and of every observer that
//! measures time.

use anyhow::{Context, Result};
use libbpf_rs::{Link, Object, ObjectBuilder, PrintLevel};

/// Aligned to eight bytes, as an ELF reader requires.
#[repr(C, align(8))]
struct Aligned<Bytes: ?Sized>(Bytes);

static EMPTY: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/empty.bpf.o")));
static CLOCK: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/clock.bpf.o")));

/// The loaded programs.
pub(crate) struct Floor(Object);

/// The attached programs; they are detached when this value is dropped.
pub(crate) struct Attached {
    _links: Vec<Link>,
}

impl Floor {
    /// Loads the programs that do nothing.
    ///
    /// # Errors
    /// When the kernel rejects them.
    pub(crate) fn empty() -> Result<Self> {
        Self::load(&EMPTY.0)
    }

    /// Loads the programs that read the clock.
    ///
    /// # Errors
    /// When the kernel rejects them.
    pub(crate) fn clock() -> Result<Self> {
        Self::load(&CLOCK.0)
    }

    fn load(object: &[u8]) -> Result<Self> {
        libbpf_rs::set_print(None::<(PrintLevel, fn(PrintLevel, String))>);
        ObjectBuilder::default()
            .name("floor")
            .and_then(|builder| builder.open_memory(object))
            .and_then(libbpf_rs::OpenObject::load)
            .map(Self)
            .context("cannot load two BPF programs")
    }

    /// Attaches the programs.
    ///
    /// # Errors
    /// When the kernel refuses to attach them.
    pub(crate) fn attach(&mut self) -> Result<Attached> {
        let links: Result<Vec<Link>, _> =
            self.0.progs_mut().map(|program| program.attach()).collect();
        Ok(Attached { _links: links.context("cannot attach two BPF programs")? })
    }
}
