//! The counts of the programs in `anatomy.bpf.c`, as `anatomy.h` defines them.

use super::layout::{Fields, FileKey, Wire};

/// `struct sampling` of `anatomy.h`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SampleCounts {
    pub(super) samples: u64,
    pub(super) others: u64,
    pub(super) lost: u64,
    pub(super) lost_sleeps: u64,
    pub(super) lost_names: u64,
}

impl Wire for SampleCounts {
    const SIZE: usize = 40;

    fn read(from: &mut Fields<'_>) -> Self {
        Self {
            samples: from.u64(),
            others: from.u64(),
            lost: from.u64(),
            lost_sleeps: from.u64(),
            lost_names: from.u64(),
        }
    }
}

/// Where a thread was, of the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inside {
    /// In none.
    Nothing,
    /// In one that the trace counts.
    Counted,
    /// In one that `--where` leaves out.
    LeftOut,
    /// It is a worker of io_uring, which makes none.
    Worker,
    /// It is io_uring's submission thread, which makes none.
    SubmissionThread,
}

/// `struct sample_key` of `anatomy.h`.
pub(super) struct SampleKey {
    pub(super) file: FileKey,
    pub(super) offset: u64,
    pub(super) image: u32,
    pub(super) call: u16,
    pub(super) inside: Inside,
    pub(super) blocked: bool,
    pub(super) stack: i32,
    pub(super) place: u32,
    pub(super) user_stack: i32,
    /// Of io_uring, plus 1; see `issues.bpf.h`.
    pub(super) operation: u32,
}

impl Wire for SampleKey {
    const SIZE: usize = FileKey::SIZE + 32;

    fn read(from: &mut Fields<'_>) -> Self {
        Self {
            file: FileKey::read(from),
            offset: from.u64(),
            image: from.u32(),
            call: from.u16(),
            inside: match from.bytes(1) {
                [0] => Inside::Nothing,
                [1] => Inside::Counted,
                [4] => Inside::Worker,
                [5] => Inside::SubmissionThread,
                _ => Inside::LeftOut,
            },
            blocked: from.bytes(1) != [0],
            stack: from.u32().cast_signed(),
            place: from.u32(),
            user_stack: from.u32().cast_signed(),
            operation: from.u32(),
        }
    }
}

/// `struct sample_sum` of `anatomy.h`.
pub(super) struct SampleSum {
    pub(super) times: u64,
    pub(super) ns: u64,
}

impl Wire for SampleSum {
    const SIZE: usize = 16;

    fn read(from: &mut Fields<'_>) -> Self {
        Self { times: from.u64(), ns: from.u64() }
    }
}
