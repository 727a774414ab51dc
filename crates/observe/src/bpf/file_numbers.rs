//! The numbers of a file in the kernel's rows. A number that is added to `struct file_stats` of `trace.h`, before `image`,
//! is added here, in the same place.

use iotomy_record::FileUse;

use super::layout::{Fields, Wire};
use super::numbers::{kernel_numbers, sum};

kernel_numbers! {
    /// Reads and writes of one file by one image.
    FileNumbers of FileUse {
        read_calls: u64 sum,
        read_bytes: u64 sum,
        write_calls: u64 sum,
        write_bytes: u64 sum,
        map_calls: u64 sum,
        mapped_bytes: u64 sum,
    }
}

impl FileNumbers {
    /// As a row without a name.
    pub(super) fn row(&self) -> FileUse {
        let mut row = FileUse::default();
        self.put_statistics(&mut row);
        row
    }
}

/// A row of `files`.
pub(super) struct FileStats {
    pub(super) numbers: FileNumbers,
    pub(super) image: u32,
}

impl Wire for FileStats {
    const SIZE: usize = FileNumbers::SIZE + 8;

    fn read(from: &mut Fields<'_>) -> Self {
        let row = Self { numbers: FileNumbers::read(from), image: from.u32() };
        let _pad = from.u32();
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::numbers::begins_with;

    #[test]
    fn the_numbers_of_a_file_are_those_of_the_programs() {
        assert_eq!(begins_with("file_stats", FileNumbers::MEMBERS), FileStats::SIZE);
    }
}
