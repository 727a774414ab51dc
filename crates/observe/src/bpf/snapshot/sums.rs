//! The sums of a snapshot, by call and by file.

use std::collections::BTreeMap;

use iotomy_record::{Call, FileUse, Times};

use super::super::call_numbers::CallNumbers;
use super::super::file_numbers::FileNumbers;
use super::super::live::{LiveCall, LiveSide};
use super::CallName;

/// The sums of a call.
#[derive(Default)]
pub(super) struct CallSum {
    pub(super) calls: u64,
    pub(super) errors: u64,
    pub(super) error_kinds: BTreeMap<String, u64>,
    pub(super) in_flight: u64,
    pub(super) numbers: CallNumbers,
    pub(super) times: Times,
}

impl CallSum {
    pub(super) fn add(&mut self, row: &LiveCall) {
        self.calls += row.calls;
        self.errors += row.errors;
        self.numbers.add(&row.numbers);
        row.times.iter().for_each(|(bucket, count)| self.times.add_bucket(*bucket, *count));
        self.times.max_ns = self.times.max_ns.max(row.numbers.max_ns);
    }

    pub(super) fn into_row(self, name: &CallName) -> Call {
        let mut row = Call {
            syscall: name.name.clone(),
            calls: self.calls,
            errors: self.errors,
            error_kinds: self.error_kinds,
            wall_times: self.times,
            ..Call::default()
        };
        self.numbers.put(&mut row);
        // The threads tell which are in progress.
        (row.in_flight, row.entered_before) = (self.in_flight, 0);
        if !name.returns_bytes {
            row.bytes = 0;
        }
        row
    }
}

/// The use of a file, and the only image that used it.
#[derive(Default)]
pub(super) struct FileSum {
    pub(super) numbers: FileNumbers,
    pub(super) user: Option<u32>,
    pub(super) is_shared: bool,
}

impl FileSum {
    pub(super) fn used_by(&mut self, image: Option<u32>) {
        self.is_shared |= self.user.is_some() && self.user != image || image.is_none();
        self.user = if self.is_shared { None } else { image };
    }

    /// Its counts as a row without a name.
    pub(super) fn row(&self) -> FileUse {
        self.numbers.row()
    }

    pub(super) fn join(&mut self, other: &Self) {
        self.used_by(other.user);
        self.numbers.add(&other.numbers);
    }

    pub(super) fn add_side(&mut self, side: &LiveSide, reads: bool) {
        let (calls, bytes) = if reads {
            (&mut self.numbers.read_calls, &mut self.numbers.read_bytes)
        } else {
            (&mut self.numbers.write_calls, &mut self.numbers.write_bytes)
        };
        *calls += side.calls;
        *bytes += side.bytes;
    }
}
