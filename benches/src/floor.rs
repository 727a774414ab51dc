//! BPF programs on the tracepoints of system calls, or of requests of io_uring, that do nothing, and
//! others that only read the clock: the minimal overhead of every observer on these tracepoints, and
//! of every observer that measures time.

use anyhow::{Context, Result};
use libbpf_rs::{Link, Object, PrintLevel};

use crate::programs::{self, Aligned};

static EMPTY: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/empty.bpf.o")));
static CLOCK: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/clock.bpf.o")));
static EMPTY_RINGS: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/empty_rings.bpf.o")));
static CLOCK_RINGS: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/clock_rings.bpf.o")));

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
        Self::load(EMPTY)
    }

    /// Loads the programs that read the clock.
    ///
    /// # Errors
    /// When the kernel rejects them.
    pub(crate) fn clock() -> Result<Self> {
        Self::load(CLOCK)
    }

    /// Loads those on requests of io_uring that do nothing.
    ///
    /// # Errors
    /// When the kernel rejects them.
    pub(crate) fn empty_of_rings() -> Result<Self> {
        Self::load(EMPTY_RINGS)
    }

    /// Loads those on requests of io_uring that read the clock.
    ///
    /// # Errors
    /// When the kernel rejects them.
    pub(crate) fn clock_of_rings() -> Result<Self> {
        Self::load(CLOCK_RINGS)
    }

    fn load(object: &Aligned<[u8]>) -> Result<Self> {
        libbpf_rs::set_print(None::<(PrintLevel, fn(PrintLevel, String))>);
        programs::load("floor", object).map(Self)
    }

    /// Attaches the programs.
    ///
    /// # Errors
    /// When the kernel refuses to attach them.
    pub(crate) fn attach(&mut self) -> Result<Attached> {
        self.attach_first(usize::MAX)
    }

    /// Attaches so many of the programs: the one at the entry of a call is the first.
    ///
    /// # Errors
    /// When the kernel refuses to attach them.
    pub(crate) fn attach_first(&mut self, count: usize) -> Result<Attached> {
        let links: Result<Vec<Link>, _> =
            self.0.progs_mut().take(count).map(|program| program.attach()).collect();
        Ok(Attached { _links: links.context("cannot attach BPF programs")? })
    }
}
