//! The windows of time in which calls count (`--sample`), as the programs have them: when the present one opens and
//! closes, and what all of them saw by call.

use libbpf_rs::{MapCore, MapFlags, MapHandle};

use super::{Fields, Session, map, refusal};
use crate::bpf::layout::Wire;

/// What windows saw of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::bpf) struct Seen {
    pub(in crate::bpf) calls: u64,
    pub(in crate::bpf) errors: u64,
    pub(in crate::bpf) bytes: u64,
    pub(in crate::bpf) wall_ns: u64,
    /// Calls that have left their CPU.
    pub(in crate::bpf) waits: u64,
}

impl Wire for Seen {
    const SIZE: usize = 5 * 8;

    fn read(from: &mut Fields<'_>) -> Self {
        Self {
            calls: from.u64(),
            errors: from.u64(),
            bytes: from.u64(),
            wall_ns: from.u64(),
            waits: from.u64(),
        }
    }
}

impl Seen {
    pub(in crate::bpf) fn add(&mut self, more: Self) {
        let Self { calls, errors, bytes, wall_ns, waits } = self;
        for (sum, more) in [
            (calls, more.calls),
            (errors, more.errors),
            (bytes, more.bytes),
            (wall_ns, more.wall_ns),
            (waits, more.waits),
        ] {
            *sum = sum.wrapping_add(more);
        }
    }

    pub(in crate::bpf) fn since(self, earlier: Self) -> Self {
        Self {
            calls: self.calls.wrapping_sub(earlier.calls),
            errors: self.errors.wrapping_sub(earlier.errors),
            bytes: self.bytes.wrapping_sub(earlier.bytes),
            wall_ns: self.wall_ns.wrapping_sub(earlier.wall_ns),
            waits: self.waits.wrapping_sub(earlier.waits),
        }
    }
}

/// Calls told apart: `SERIES` of `trace.h`. The last of the 64-bit and of the 32-bit kind are several.
pub(in crate::bpf) const SERIES: usize = 1_024;

/// Parts of each sum: `STRIPES` of `trace.h`.
pub(super) const STRIPES: usize = 16;

/// The programs' windows, for a thread of its own.
pub(in crate::bpf) struct Shutter {
    window: MapHandle,
    series: MapHandle,
    /// Calls that were entered before do not count.
    since_ns: u64,
}

impl Shutter {
    /// Has the calls count that are entered from one time until another.
    ///
    /// # Errors
    /// The kernel's error.
    pub(in crate::bpf) fn open(&self, opens_ns: u64, closes_ns: u64) -> Result<(), String> {
        self.window
            .update(&0u32.to_ne_bytes(), &self.wire(opens_ns, closes_ns), MapFlags::ANY)
            .map_err(|error| refusal("open a window of --sample", &error))
    }

    /// Has no call count that is entered from now on.
    ///
    /// # Errors
    /// The kernel's error.
    pub(in crate::bpf) fn close(&self) -> Result<(), String> {
        self.open(0, 0)
    }

    /// The same, and of those that were entered before now, none counts that returns from now on.
    ///
    /// # Errors
    /// The kernel's error.
    pub(in crate::bpf) fn let_go(&mut self, now_ns: u64) -> Result<(), String> {
        self.since_ns = now_ns;
        self.close()
    }

    /// What all windows saw, by call.
    ///
    /// # Errors
    /// The kernel's error.
    pub(in crate::bpf) fn seen(&self) -> Result<Vec<Seen>, String> {
        let bytes = self.series.lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
        let bytes = bytes.map_err(|error| refusal("read what a window of --sample saw", &error))?;
        let mut sums = vec![Seen::default(); SERIES];
        for (at, of_stripe) in bytes.unwrap_or_default().chunks_exact(Seen::SIZE).enumerate() {
            // Most are zeros.
            if of_stripe.iter().any(|byte| *byte != 0) {
                sums[at % SERIES].add(Seen::read(&mut Fields(of_stripe)));
            }
        }
        Ok(sums)
    }

    fn wire(&self, opens_ns: u64, closes_ns: u64) -> Vec<u8> {
        [opens_ns, closes_ns, self.since_ns].map(u64::to_ne_bytes).concat()
    }
}

impl Session {
    /// The windows, of a watch that has some.
    ///
    /// # Errors
    /// There is no descriptor for them.
    pub(in crate::bpf) fn shutter(&self) -> Result<Shutter, String> {
        let handle = |name: &str| {
            MapHandle::try_from(&map(&self.object, name))
                .map_err(|error| refusal(&format!("share the BPF map {name}"), &error))
        };
        let (window, series) = (handle(".data.window")?, handle(".bss.series")?);
        Ok(Shutter { window, series, since_ns: 0 })
    }
}
