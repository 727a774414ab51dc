//! The numbers of a call in the kernel's rows, and what statistics of the record they are. A number that is added
//! to `struct call_numbers` of `trace.h` is added here, in the same place.

use iotomy_record::Call;

use super::layout::{Fields, PLAIN_TIMES, SLOTS, Sparse, TIMES, Wire, sparse};
use super::numbers::{kernel_numbers, most, sum};

kernel_numbers! {
    /// Numbers of a call; the last ones are of `struct wait_stats`.
    CallNumbers of Call {
        wall_ns: u64 sum,
        max_ns: u64 most,
        bytes: u64 sum,
        open_max_ns: u64 most,
        open_ns: u64 sum,
        in_flight: u32 sum,
        entered_before: u32 sum,
        ;
        blocked_ns: sum,
        runnable_ns: sum,
    }
}

impl CallNumbers {
    /// Gives a row of the record those that are its statistics, and what follows from them.
    pub(super) fn put(&self, row: &mut Call) {
        self.put_statistics(row);
        row.max_ns = self.max_ns.max(self.open_max_ns);
        row.on_cpu_ns = Some(self.on_cpu_ns());
    }

    fn on_cpu_ns(&self) -> u64 {
        self.wall_ns.saturating_sub(self.blocked_ns.saturating_add(self.runnable_ns))
    }
}

/// The rows of `calls` and, with counters of two bytes, of `frequent`.
pub(super) struct CallStats<const WIDTH: usize> {
    pub(super) numbers: CallNumbers,
    pub(super) image: u32,
    pub(super) returns: [u32; SLOTS],
    pub(super) plain: Sparse,
}

/// A row of `calls`.
pub(super) type RareStats = CallStats<1>;

/// A row of `frequent`.
pub(super) type FrequentStats = CallStats<2>;

impl<const WIDTH: usize> Wire for CallStats<WIDTH> {
    const SIZE: usize = CallNumbers::SIZE + 4 * (1 + SLOTS) + WIDTH * PLAIN_TIMES;

    fn read(from: &mut Fields<'_>) -> Self {
        Self {
            numbers: CallNumbers::read(from),
            image: from.u32(),
            returns: std::array::from_fn(|_| from.u32()),
            plain: sparse(from, PLAIN_TIMES, WIDTH),
        }
    }
}

pub(super) struct WaitStats {
    /// Time, and its maximum of those that returned.
    pub(super) numbers: CallNumbers,
    pub(super) max_on_cpu_ns: u64,
    pub(super) max_blocked_ns: u64,
    pub(super) image: u32,
    pub(super) wall: Sparse,
    pub(super) on_cpu: Sparse,
    pub(super) blocked: Sparse,
}

impl Wire for WaitStats {
    const SIZE: usize = 48 + 8 + 3 * TIMES;

    fn read(from: &mut Fields<'_>) -> Self {
        let mut sums = || from.u64();
        let (wall_ns, blocked_ns, runnable_ns) = (sums(), sums(), sums());
        let (max_ns, max_on_cpu_ns, max_blocked_ns) = (sums(), sums(), sums());
        let (image, _pad) = (from.u32(), from.u32());
        Self {
            numbers: CallNumbers {
                wall_ns,
                blocked_ns,
                runnable_ns,
                max_ns,
                ..CallNumbers::default()
            },
            max_on_cpu_ns,
            max_blocked_ns,
            image,
            wall: sparse(from, TIMES, 1),
            on_cpu: sparse(from, TIMES, 1),
            blocked: sparse(from, TIMES, 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::numbers::begins_with;

    #[test]
    fn the_numbers_of_a_call_are_those_of_the_programs() {
        assert_eq!(begins_with("call_numbers", CallNumbers::MEMBERS), CallNumbers::SIZE);
    }
}
