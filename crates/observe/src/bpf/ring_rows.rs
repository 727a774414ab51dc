//! The structs of `trace.h` and `rings.bpf.h` for operations of io_uring.

use super::file_numbers::FileStats;
use super::layout::{Fields, FileKey, SLOTS, Sparse, TIMES, Wire, sparse};

/// As in `trace.h`.
pub(super) const WAYS: usize = 5;

/// `struct ring_key` of `trace.h`.
pub(super) struct RingKey {
    pub(super) image: u32,
    pub(super) op: u32,
}

impl Wire for RingKey {
    const SIZE: usize = 8;

    fn read(from: &mut Fields<'_>) -> Self {
        Self { image: from.u32(), op: from.u32() }
    }
}

/// `struct ring_row` of `trace.h`.
pub(super) struct RingRow {
    pub(super) submitted: u64,
    pub(super) ways: [u64; WAYS],
    pub(super) results: u64,
    pub(super) overflows: u64,
    pub(super) before: u64,
    pub(super) registered: u64,
    pub(super) forced: u64,
    pub(super) unlinked: u64,
    pub(super) bytes: u64,
    pub(super) wall_ns: u64,
    pub(super) max_ns: u64,
    pub(super) wall: Sparse,
    pub(super) sizes: Sparse,
}

impl Wire for RingRow {
    const SIZE: usize = 8 * (10 + WAYS) + 4 * (TIMES + SLOTS + 1);

    fn read(from: &mut Fields<'_>) -> Self {
        Self {
            submitted: from.u64(),
            ways: std::array::from_fn(|_| from.u64()),
            results: from.u64(),
            overflows: from.u64(),
            before: from.u64(),
            registered: from.u64(),
            forced: from.u64(),
            unlinked: from.u64(),
            bytes: from.u64(),
            wall_ns: from.u64(),
            max_ns: from.u64(),
            wall: sparse(from, TIMES, 4),
            sizes: sparse(from, SLOTS, 4),
        }
    }
}

/// `struct ring_hot_row` of `trace.h`: `None` where no operation has it.
pub(super) struct RingHotRow(pub(super) Option<(RingKey, RingRow)>);

impl Wire for RingHotRow {
    const SIZE: usize = 8 + RingRow::SIZE;

    fn read(from: &mut Fields<'_>) -> Self {
        let owner = from.u64();
        let row = RingRow::read(from);
        let [image, op] = [(owner >> 32) as u32, (owner as u32).wrapping_sub(1)];
        Self((owner != 0).then_some((RingKey { image, op }, row)))
    }
}

/// `struct ring_hot_file` of `trace.h`: `None` where no file has it.
pub(super) struct RingHotFile(pub(super) Option<(FileKey, FileStats)>);

impl Wire for RingHotFile {
    const SIZE: usize = 8 + FileKey::SIZE + FileStats::SIZE;

    fn read(from: &mut Fields<'_>) -> Self {
        /// As in `trace.h`.
        const READY: u64 = 2;
        let state = from.u64();
        let row = (FileKey::read(from), FileStats::read(from));
        Self((state == READY).then_some(row))
    }
}

/// `struct ring_slot` of `rings.bpf.h`.
pub(super) struct RingSlot(pub(super) RingRequest);

impl Wire for RingSlot {
    const SIZE: usize = 8 + RingRequest::SIZE;

    fn read(from: &mut Fields<'_>) -> Self {
        let _address = from.u64();
        Self(RingRequest::read(from))
    }
}

/// `struct ring_error_key` of `trace.h`.
pub(super) struct RingErrorKey {
    pub(super) image: u32,
    pub(super) op: u32,
    pub(super) error: u32,
}

impl Wire for RingErrorKey {
    const SIZE: usize = 16;

    fn read(from: &mut Fields<'_>) -> Self {
        Self { image: from.u32(), op: from.u32(), error: from.u32() }
    }
}

/// `struct ring_name` of `rings.bpf.h`: a ring, and what user space calls a request of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct RingName {
    pub(super) ring: u64,
    pub(super) name: u64,
}

impl Wire for RingName {
    const SIZE: usize = 16;

    fn read(from: &mut Fields<'_>) -> Self {
        Self { ring: from.u64(), name: from.u64() }
    }
}

/// `struct ring_request` of `rings.bpf.h`.
pub(super) struct RingRequest {
    pub(super) name: RingName,
    pub(super) image: u32,
    pub(super) op: u32,
    pub(super) way: u8,
    /// Only its completion would have told whether it counts.
    pub(super) is_in_doubt: bool,
}

impl Wire for RingRequest {
    const SIZE: usize = 32;

    fn read(from: &mut Fields<'_>) -> Self {
        /// As in `rings.bpf.h`.
        const IN_DOUBT: u8 = 2;
        let _began_ns = from.u64();
        let name = RingName::read(from);
        let image = from.u32();
        let small = from.bytes(4);
        let at = |place: usize| small.get(place).copied().unwrap_or(0);
        Self { name, image, op: at(0).into(), way: at(1), is_in_doubt: at(3) & IN_DOUBT != 0 }
    }
}
