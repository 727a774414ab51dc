//! `files`: what it costs to create, write, open, read, close and look up small files.
//!
//! From article 004, whose program creates a file, writes 10 bytes, closes, opens, reads and closes
//! it. Hypothesis, controls and what would refute it are in the declaration. A process of its own
//! makes the rounds ([`worker`]), by each [`ways`]; the file systems are [`super::volumes`]'.

mod bench;
mod claims;
mod names;
mod ways;
mod worker;

pub use ways::{program_of_way, ways};

use iotomy_record::SweepAxis;
use iotomy_sys::probe::privileges;

use super::star::{Base, Ray, star};
use super::{
    Axis, Bench, Claim, Declaration, Experiment, Extra, Fold, Needs, Params, Sampling, Takes, Value,
};
use crate::limits::Skip;
use crate::limits::storage::Folder;

/// Memory an entry of a directory takes at most while its name, inode and slot are cached: measured
/// on Linux 6.18 between 0.9 KiB (tmpfs) and 1.6 KiB (btrfs).
const OF_A_FILE: u64 = 2 << 10;

/// Memory of the process that makes the rounds, and of an image's tables and journal.
const OF_A_CASE: u64 = 16 << 20;
const OF_AN_IMAGE: u64 = 128 << 20;

pub(super) struct Files;

const BASE: Base = &[
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

const RAYS: &[Ray] = &[
    Ray { axes: &["way", "depth"], only: |_| true },
    Ray { axes: &["sched"], only: |_| true },
    Ray { axes: &["threads"], only: |_| true },
    Ray { axes: &["fs", "name"], only: |case| case.name("op") == "round" },
    Ray {
        axes: &["fs", "op", "files"],
        only: |case| !["names", "back"].contains(&case.name("op")),
    },
    Ray { axes: &["fs", "op", "name"], only: |case| case.name("op") == "names" },
    Ray { axes: &["fs", "op", "cache"], only: |case| case.name("op") == "back" },
    Ray { axes: &["fs", "sync"], only: |_| true },
    Ray { axes: &["fs", "layout"], only: |_| true },
];

static DECLARATION: Declaration = Declaration {
    name: "files",
    summary: "small files created, written, opened, read and closed, one thing changed at a time",
    hypothesis: "the time of a round is the kernel's, in its file system; the library between adds \
                 little, names, directories and layouts little each, a disk that is waited for most",
    refuted_by: "system calls without the library are faster by more than some hundredths, or a round \
                 on tmpfs takes no less than on a disk file system",
    controls: &[
        "a round is create, write of 10 bytes, close, open, read, close, unlink; the clock is read \
         around many, and around each call only for the steps, which also stat and rename",
        "one C program for all ways, a fresh process a sample; calls differ by the way alone",
        "all axes but the ones named have their usual value: libc, tmpfs, names of 14, 10 other files",
        "images of file systems lie in memory, mounted where nobody else sees them; the disk is that \
         of --path",
        "cold: the image is taken down and mounted again, so that nothing of it is cached",
        "the time ledger is of runs that are watched, less what watching them costs",
    ],
    metric: "time of a round",
    unit: "ns",
    extras: EXTRAS,
    axes: &[WAY, OP, FS, NAME, FILES, SCHED, CACHE, THREADS, SYNC, LAYOUT, DEPTH],
    along: "files",
    lines: "fs",
    claims: CLAIMS,
    sampling: Sampling { a_visit: 1, least: 8, most: 60, tight: 0.02 },
    man: &["open(2)", "getdents64(2)", "io_uring_enter(2)", "fsopen(2)", "slabinfo(5)"],
};

const EXTRAS: &[Extra] = &[
    ns("start_ns", "the process started, until it is ready"),
    ns("first_ns", "its first round"),
    ns("third_ns", "its third round"),
    Extra {
        name: "rate",
        unit: "1/s",
        summary: "rounds a second, all threads together",
        fold: Fold::Median,
    },
    ns("cpu_ns", "of a round on a CPU, a thread; of a ring it is not known"),
    ns("create_ns", "open with O_CREAT"),
    ns("write_ns", "write of 10 bytes"),
    ns("sync_ns", "fsync or fdatasync"),
    ns("close_ns", "close after the write"),
    ns("open_ns", "open to read"),
    ns("read_ns", "read of 10 bytes"),
    ns("reclose_ns", "close after the read"),
    ns("stat_ns", "stat"),
    ns("rename_ns", "rename within the folder"),
    ns("unlink_ns", "unlink"),
    ns("entry_ns", "an entry of the directory that is listed"),
    Extra {
        name: "name_bytes",
        unit: "bytes",
        summary: "bytes a name looked up that is not there adds to the kernel's reclaimable memory",
        fold: Fold::Median,
    },
    Extra {
        name: "dentry_bytes",
        unit: "bytes",
        summary: "of that in the cache of names itself, by /proc/slabinfo",
        fold: Fold::Median,
    },
    Extra {
        name: "left_bytes",
        unit: "bytes",
        summary: "of dentry_bytes (name_bytes without it) what pressure leaves",
        fold: Fold::Median,
    },
    Extra { name: "calls", unit: "", summary: "system calls a round, watched", fold: Fold::Mean },
    ns("user_ns", "of a round outside calls, watched"),
    ns("in_calls_ns", "on a CPU inside calls, watched"),
    ns("blocked_ns", "blocked, watched"),
    ns("waiting_ns", "runnable without a CPU, watched"),
];

const fn ns(name: &'static str, summary: &'static str) -> Extra {
    Extra { name, unit: "ns", summary, fold: Fold::Median }
}

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

const ALL_WAYS: &[Value] = &[
    Value::S("libc"),
    Value::S("static"),
    Value::S("musl"),
    Value::S("raw"),
    Value::S("io-uring"),
];

const WAY: Axis =
    names("way", "how the calls are made", ways::NAMES, [ALL_WAYS, ALL_WAYS, ALL_WAYS]);

const ALL_OPS: &[Value] =
    &[Value::S("round"), Value::S("back"), Value::S("list"), Value::S("ls-l"), Value::S("names")];

const OP: Axis = names(
    "op",
    "a round of the loop; a file opened, read and closed; the directory listed; the same with each \
     file's attributes; a name looked up that is not there",
    &["round", "back", "list", "ls-l", "names"],
    [&[Value::S("round"), Value::S("back"), Value::S("ls-l"), Value::S("names")], ALL_OPS, ALL_OPS],
);

const FILE_SYSTEMS: &[&str] = &["here", "tmpfs", "ext4", "xfs", "btrfs"];

const ALL_FILE_SYSTEMS: &[Value] =
    &[Value::S("here"), Value::S("tmpfs"), Value::S("ext4"), Value::S("xfs"), Value::S("btrfs")];

const FS: Axis = names(
    "fs",
    "the file system: that of --path, memory, or an image of one's own in memory",
    FILE_SYSTEMS,
    [&[Value::S("here"), Value::S("tmpfs"), Value::S("ext4")], ALL_FILE_SYSTEMS, ALL_FILE_SYSTEMS],
);

/// As the article has them: short names, the 14 of old file systems, the longest.
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
    "whether what is read back is cached",
    &["warm", "cold"],
    [BOTH_CACHES, BOTH_CACHES, BOTH_CACHES],
);

const THREADS: Axis = numbers(
    "threads",
    "threads that make rounds, in one directory",
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
    "what a write is followed by",
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
    "files under way at once, for ways that can",
    (1, 64),
    [
        &[Value::N(1), Value::N(8)],
        &[Value::N(1), Value::N(8), Value::N(32)],
        &[Value::N(1), Value::N(2), Value::N(4), Value::N(8), Value::N(16), Value::N(32)],
    ],
);

const CLAIMS: &[Claim] = &[
    Claim {
        id: "libc-tax",
        source: "004",
        text: "the library between the program and the kernel costs a measurable share of a small \
               call; going straight to the system call is faster",
        judge: claims::libc_tax,
    },
    Claim {
        id: "static-link",
        source: "004",
        text: "static linking helps marginally",
        judge: claims::static_link,
    },
    Claim {
        id: "realtime",
        source: "004",
        text: "a real-time thread finishes the same work faster",
        judge: claims::realtime,
    },
    Claim {
        id: "three-runs",
        source: "004",
        text: "the first run pays for cold caches; the third does not",
        judge: claims::three_runs,
    },
    Claim {
        id: "tmpfs",
        source: "004",
        text: "a memory file system beats a disk one for small files",
        judge: claims::tmpfs,
    },
    Claim {
        id: "name-length",
        source: "004",
        text: "long file names cost more than short ones",
        judge: claims::name_length,
    },
    Claim {
        id: "directory-size",
        source: "004",
        text: "creating, opening and listing slow down as a directory grows; `ls -l` grows faster than \
               linearly",
        judge: claims::directory_size,
    },
    Claim {
        id: "name-cache",
        source: "004",
        text: "the kernel's name cache takes memory with every name seen and gives it back only under \
               pressure",
        judge: claims::name_cache,
    },
    Claim {
        id: "inode-layout",
        source: "004",
        text: "for small files the inode and block layout given at mkfs has little effect",
        judge: claims::inode_layout,
    },
];

impl Experiment for Files {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn cases(&self, axes: &[SweepAxis]) -> Vec<Params> {
        star(axes, BASE, RAYS).into_iter().filter(|case| self.is_case(case)).collect()
    }

    fn is_case(&self, case: &Params) -> bool {
        let (op, fs) = (case.name("op"), case.name("fs"));
        let is_ring = ways::way(case.name("way")).is_some_and(|way| way.has_depth);
        let (threads, depth) = (case.number("threads"), case.number("depth"));
        let is_image = bench::is_image(fs);
        let ring = match is_ring {
            true => threads == 1 && ["round", "back"].contains(&op),
            false => depth == 1,
        };
        // A thread a file of its own, by a first character of its own.
        let threads = threads == 1 || op == "round";
        let sync = case.name("sync") == "none" || op == "round";
        let cold = case.name("cache") == "warm" || (is_image && op == "back");
        let layout = case.name("layout") == "default"
            || (op == "round" && bench::options(fs, case.name("layout")).is_some());
        // Memory file systems keep no names that are not there; short names are too few.
        let names = op != "names" || (fs != "tmpfs" && case.number("name") >= 14);
        ring && threads && sync && cold && layout && names
    }

    fn probe(&self, case: &Params) -> Result<(), Skip> {
        let way = ways::way(case.name("way")).ok_or_else(|| Skip("no such way".to_owned()))?;
        way.program().map_err(Skip)?;
        if case.name("sched") == "realtime" {
            privileges::real_time().map_err(|refusal| {
                let Skip(said) = Skip::refused(refusal.call, refusal.source);
                Skip(format!("{said}; ulimit -r 1, or run as root"))
            })?;
        }
        if bench::is_image(case.name("fs")) && !rustix::process::geteuid().is_root() {
            return Err(Skip("images of file systems are mounted by root only".to_owned()));
        }
        Ok(())
    }

    fn needs(&self, case: &Params) -> Needs {
        let image = if bench::is_image(case.name("fs")) { OF_AN_IMAGE } else { 0 };
        Needs {
            processes: 1 + case.number("threads"),
            descriptors: 64,
            memory_bytes: case.number("files") * OF_A_FILE + OF_A_CASE + image,
        }
    }

    fn prepare(&self, cases: &[Params], folder: &Folder) -> Result<Box<dyn Bench>, Skip> {
        Ok(Box::new(bench::Rounds::new(cases, folder)?))
    }
}
