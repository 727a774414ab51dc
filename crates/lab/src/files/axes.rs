//! The axes of `files`, and their values for a quick, a default and a full run.

use super::backends;
use crate::harness::star::UsualValues;
use crate::harness::{Axis, Takes, Value};

/// The axes in the order in which they are shown.
pub(super) const AXES: &[Axis] =
    &[WAY, OP, FS, NAME, FILES, SCHED, CACHE, THREADS, SYNC, LAYOUT, DEPTH];

/// The base, from which the other cases differ in one axis.
pub(super) const BASE: UsualValues = &[
    ("way", Value::S("libc")),
    ("op", Value::S("round")),
    ("fs", Value::S("tmpfs")),
    ("name", Value::N(14)),
    ("files", Value::N(10)),
    ("sched", Value::S("normal")),
    ("cache", Value::S("warm")),
    ("threads", Value::N(1)),
    ("sync", Value::S("none")),
    ("layout", Value::S("default")),
    ("depth", Value::N(1)),
];

const fn names(
    name: &'static str,
    summary: &'static str,
    all: &'static [&'static str],
    [quick, default, full]: [&'static [Value]; 3],
) -> Axis {
    Axis { name, unit: "", summary, takes: Takes::Names(all), quick, default, full }
}

const fn numbers(
    name: &'static str,
    summary: &'static str,
    (least, most): (u64, u64),
    [quick, default, full]: [&'static [Value]; 3],
) -> Axis {
    Axis { name, unit: "", summary, takes: Takes::Numbers(least, most), quick, default, full }
}

const WAY: Axis = Axis {
    name: "way",
    unit: "",
    summary: "the backend that makes the calls",
    takes: Takes::Listed(backends::names),
    quick: &[],
    default: &[],
    full: &[],
};

const ALL_OPS: &[Value] =
    &[Value::S("round"), Value::S("back"), Value::S("list"), Value::S("ls-l"), Value::S("names")];

const OP: Axis = names(
    "op",
    "a round of the loop; a file opened, read and closed; the directory listed; the directory \
     listed with the attributes of each file; an absent name looked up",
    &["round", "back", "list", "ls-l", "names"],
    [&[Value::S("round"), Value::S("back"), Value::S("ls-l"), Value::S("names")], ALL_OPS, ALL_OPS],
);

const FILE_SYSTEMS: &[&str] = &["here", "tmpfs", "ext4", "xfs", "btrfs"];

const ALL_FILE_SYSTEMS: &[Value] =
    &[Value::S("here"), Value::S("tmpfs"), Value::S("ext4"), Value::S("xfs"), Value::S("btrfs")];

const FS: Axis = names(
    "fs",
    "the file system: that of --path, memory, or the run's own image in memory",
    FILE_SYSTEMS,
    [&[Value::S("here"), Value::S("tmpfs"), Value::S("ext4")], ALL_FILE_SYSTEMS, ALL_FILE_SYSTEMS],
);

/// As in the article: short names, the 14 characters of old file systems, the longest.
const NAME: Axis = numbers(
    "name",
    "characters of a name",
    (1, 255),
    [
        &[Value::N(14), Value::N(255)],
        &[Value::N(1), Value::N(14), Value::N(64), Value::N(255)],
        &[Value::N(1), Value::N(14), Value::N(64), Value::N(255)],
    ],
);

const FILES: Axis = numbers(
    "files",
    "other files in the directory",
    (10, 1_000_000),
    [
        &[Value::N(10), Value::N(1_000), Value::N(10_000)],
        &[Value::N(10), Value::N(100), Value::N(1_000), Value::N(10_000), Value::N(100_000)],
        &[
            Value::N(10),
            Value::N(100),
            Value::N(1_000),
            Value::N(10_000),
            Value::N(100_000),
            Value::N(1_000_000),
        ],
    ],
);

const BOTH_SCHEDS: &[Value] = &[Value::S("normal"), Value::S("realtime")];

const SCHED: Axis = names(
    "sched",
    "the scheduling class; realtime is SCHED_FIFO at priority 1",
    &["normal", "realtime"],
    [BOTH_SCHEDS, BOTH_SCHEDS, BOTH_SCHEDS],
);

const BOTH_CACHES: &[Value] = &[Value::S("warm"), Value::S("cold")];

const CACHE: Axis = names(
    "cache",
    "whether the data read back is cached",
    &["warm", "cold"],
    [BOTH_CACHES, BOTH_CACHES, BOTH_CACHES],
);

const THREADS: Axis = numbers(
    "threads",
    "threads that run rounds in one directory",
    (1, 64),
    [
        &[Value::N(1), Value::N(2)],
        &[Value::N(1), Value::N(2), Value::N(4)],
        &[Value::N(1), Value::N(2), Value::N(4), Value::N(16)],
    ],
);

const ALL_SYNCS: &[Value] = &[Value::S("none"), Value::S("fdatasync"), Value::S("fsync")];

const SYNC: Axis = names(
    "sync",
    "the call that follows a write",
    &["none", "fdatasync", "fsync"],
    [&[Value::S("none"), Value::S("fsync")], ALL_SYNCS, ALL_SYNCS],
);

const ALL_LAYOUTS: &[Value] = &[
    Value::S("default"),
    Value::S("small-blocks"),
    Value::S("large-inodes"),
    Value::S("many-inodes"),
];

const LAYOUT: Axis = names(
    "layout",
    "options of mkfs: blocks of 1 KiB, inodes of 1 or 2 KiB, an inode a KiB; nodes of 4 KiB on btrfs",
    &["default", "small-blocks", "large-inodes", "many-inodes"],
    [&[Value::S("default"), Value::S("large-inodes")], ALL_LAYOUTS, ALL_LAYOUTS],
);

const DEPTH: Axis = numbers(
    "depth",
    "files in flight, for strategies that support several",
    (1, 64),
    [
        &[Value::N(1), Value::N(8)],
        &[Value::N(1), Value::N(8), Value::N(32)],
        &[Value::N(1), Value::N(2), Value::N(4), Value::N(8), Value::N(16), Value::N(32)],
    ],
);
