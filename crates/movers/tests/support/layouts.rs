//! Files with holes, made to measure.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use rustix::fs::{SeekFrom, seek};

use super::content;

/// A part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Region {
    Data(usize),
    /// Zeros that are written.
    Zeros(usize),
    Hole(usize),
}

impl Region {
    fn length(self) -> usize {
        match self {
            Data(length) | Zeros(length) | Hole(length) => length,
        }
    }
}

pub(crate) use Region::{Data, Hole, Zeros};

const MIB: usize = 1 << 20;

/// What data parts begin with, and hold no more of.
static DATA: LazyLock<Vec<u8>> = LazyLock::new(|| content(2 * MIB));

/// Every layout there is a reason for.
pub(crate) fn all() -> Vec<(&'static str, Vec<Region>)> {
    vec![
        ("empty", vec![]),
        ("a hole first", vec![Hole(MIB), Data(MIB)]),
        ("a hole last", vec![Data(MIB), Hole(MIB)]),
        ("only a hole", vec![Hole(3 * MIB)]),
        ("less than a block of hole", vec![Hole(1234)]),
        ("alternating blocks", [Data(4096), Hole(4096)].repeat(40)),
        ("extents of a MiB", [Data(MIB), Hole(MIB)].repeat(2)),
        ("an end inside a block", vec![Data(8192), Hole(MIB), Data(5000)]),
        ("an end inside a hole's block", vec![Hole(65_536), Data(4096), Hole(MIB + 1234)]),
        ("no holes", vec![Data(MIB + 77)]),
        ("zeros that are data", vec![Data(4096), Zeros(MIB), Data(100), Zeros(65_536), Hole(4096)]),
    ]
}

/// Makes a file of these parts at `path` and returns its content.
pub(crate) fn make(path: &Path, parts: &[Region]) -> Vec<u8> {
    let file = File::create(path).unwrap();
    let size: usize = parts.iter().map(|part| part.length()).sum();
    // The end first: a file that grows may be given blocks in advance, which stay where holes are
    // to be.
    file.set_len(size as u64).unwrap();
    let mut all = Vec::new();
    for part in parts {
        match *part {
            Data(length) => {
                let data = &DATA[..length];
                file.write_all_at(data, all.len() as u64).unwrap();
                all.extend_from_slice(data);
            }
            Zeros(length) => {
                file.write_all_at(&vec![0; length], all.len() as u64).unwrap();
                all.resize(all.len() + length, 0);
            }
            Hole(length) => all.resize(all.len() + length, 0),
        }
    }
    all
}

/// Bytes a file takes on the disk, or will take: file systems count what they have yet to allocate.
pub(crate) fn room(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().blocks() * 512
}

/// The room of a file once it is no more than `most`, or what it still is after a minute. What a file
/// was given behind its end as it grew is taken back as it is closed by all, and a process that
/// another test is about to run has it open until it executes its program.
pub(crate) fn room_within(path: &Path, most: u64) -> u64 {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        let is = room(path);
        if is <= most || Instant::now() > until {
            return is;
        }
        std::thread::sleep(Duration::from_millis(5));
        drop(OpenOptions::new().write(true).open(path).unwrap());
    }
}

/// The data extents of a file, as its file system tells them.
pub(crate) fn extents(path: &Path) -> Vec<(u64, u64)> {
    let file = OpenOptions::new().read(true).open(path).unwrap();
    let mut extents = Vec::new();
    let mut at = 0;
    while let Ok(data) = seek(&file, SeekFrom::Data(at)) {
        at = seek(&file, SeekFrom::Hole(data)).unwrap();
        extents.push((data, at));
    }
    extents
}
