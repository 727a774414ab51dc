//! `files`: the cost of creating, writing, opening, reading, closing and looking up small files.
//!
//! From article 004, whose program creates a file, writes 10 bytes, closes, opens, reads and closes
//! it. The declaration has the hypothesis, the controls and what would refute it. A separate
//! process makes the rounds ([`worker`]), with each of the [`mod@backends`]; the file systems come
//! from [`super::volumes`].

mod axes;
mod backends;
mod bench;
mod claims;
mod layouts;
mod ledger;
mod names;
mod worker;

pub use backends::{backend_program, backends};

use iotomy_host::Skip;
use iotomy_host::folder::Folder;
use iotomy_host::privilege::privilege;
use iotomy_record::SweepAxis;
use iotomy_sys::probe::privileges;

use crate::harness::cases::unmet;
use crate::harness::star::{VariedAxes, star};
use crate::harness::{
    Claim, Experiment, ExperimentDeclaration, Extra, Fold, Needs, Params, PreparedExperiment,
    Sampling,
};

/// Upper bound of the memory per directory entry while its name, inode and slot are cached:
/// measured on Linux 6.18 between 0.9 KiB (tmpfs) and 1.6 KiB (btrfs).
const OF_A_FILE: u64 = 2 << 10;

/// Memory of the process that makes the rounds, and of an image's tables and journal.
const OF_A_CASE: u64 = 16 << 20;
const OF_AN_IMAGE: u64 = 128 << 20;

pub(super) struct Files;

const RAYS: &[VariedAxes] = &[
    VariedAxes { axes: &["way", "depth"], only: |_, _| true },
    VariedAxes { axes: &["sched"], only: |_, _| true },
    VariedAxes { axes: &["threads"], only: |_, _| true },
    VariedAxes { axes: &["fs", "name"], only: |case, _| case.name("op") == "round" },
    // The user's directory is not filled with many files where another file system serves as well.
    VariedAxes {
        axes: &["fs", "op", "files"],
        only: |case, usual| is_sized(case) && (case.name("fs") != "here" || is_as(case, usual)),
    },
    // The cache of names is the same for all file systems.
    VariedAxes {
        axes: &["fs", "op", "name"],
        only: |case, usual| {
            case.name("op") == "names" && (case.name("fs") == "here" || is_as(case, usual))
        },
    },
    VariedAxes { axes: &["fs", "op", "cache"], only: |case, _| case.name("op") == "back" },
    VariedAxes { axes: &["fs", "sync"], only: |case, _| case.name("fs") != "tmpfs" },
    VariedAxes { axes: &["fs", "layout"], only: |_, _| true },
];

/// Whether the result depends on the number of files.
fn is_sized(case: &Params) -> bool {
    ["round", "list", "ls-l"].contains(&case.name("op"))
}

/// Whether the case is on the usual file system.
fn is_as(case: &Params, usual: &Params) -> bool {
    case.name("fs") == usual.name("fs")
}

static DECLARATION: ExperimentDeclaration = ExperimentDeclaration {
    name: "files",
    summary: "small files created, written, opened, read and closed, one parameter changed at a \
        time",
    hypothesis: "a round spends its time in the kernel's file system; the library adds little, \
        names, directories and layouts little each, waiting for a disk the most",
    refuted_by: "system calls without the library are faster by more than a few per cent, or a \
        round on tmpfs takes no less time than on a disk file system",
    controls: &[
        "a round is create, write of 10 bytes, close, open, read, close, unlink; the clock is \
         read around many rounds, and around each call only in op=steps, which also has stat and \
         rename",
        "one C program for all strategies, a fresh process per sample; only the calls differ",
        "all axes that a case does not name have their default value (libc, tmpfs, names of 14, \
         10 other files), or the first value of -L if that excludes it",
        "images of file systems are in memory and mounted privately; the disk is that of --path",
        "cold: the image is unmounted and mounted again, so that nothing of it is cached",
        "the time ledger is of watched runs, minus the overhead of watching",
    ],
    metric: "time of a round",
    unit: "ns",
    extras: EXTRAS,
    axes: axes::AXES,
    along: "files",
    lines: "fs",
    claims: CLAIMS,
    sampling: Sampling { a_visit: 1, least: 8, most: 60, tight: 0.02 },
    man: &["open(2)", "getdents64(2)", "io_uring_enter(2)", "fsopen(2)", "slabinfo(5)"],
};

const EXTRAS: &[Extra] = &[
    ns("start_ns", "from the start of the process until it is ready"),
    ns("first_ns", "its first round"),
    ns("third_ns", "its third round"),
    Extra {
        name: "rate",
        unit: "1/s",
        summary: "rounds a second of all threads",
        fold: Fold::Median,
    },
    ns(
        "cpu_ns",
        "on-CPU time of a round per thread; for a ring, including the kernel threads that serve it",
    ),
    ns("create_ns", "open with O_CREAT"),
    ns("write_ns", "write of 10 bytes"),
    ns("sync_ns", "fsync or fdatasync"),
    ns("close_ns", "close after the write"),
    ns("open_ns", "open to read"),
    ns("read_ns", "read of 10 bytes"),
    ns("reclose_ns", "close after the read"),
    ns("stat_ns", "stat"),
    ns("rename_ns", "rename within the directory"),
    ns("unlink_ns", "unlink"),
    ns("entry_ns", "per entry of the listed directory"),
    Extra {
        name: "name_bytes",
        unit: "bytes",
        summary: "bytes that looking up an absent name adds to the kernel's reclaimable memory",
        fold: Fold::Median,
    },
    Extra {
        name: "dentry_bytes",
        unit: "bytes",
        summary: "the part of it in the dentry cache, from /proc/slabinfo",
        fold: Fold::Median,
    },
    Extra {
        name: "left_bytes",
        unit: "bytes",
        summary: "the part of dentry_bytes (or name_bytes) that remains under memory pressure",
        fold: Fold::Median,
    },
    Extra {
        name: "freed_bytes",
        unit: "bytes",
        summary: "shrinkage of the whole cache under memory pressure, names of other processes \
            included",
        fold: Fold::Median,
    },
    Extra { name: "calls", unit: "", summary: "system calls per round, watched", fold: Fold::Mean },
    ns("user_ns", "time of a round outside calls, watched"),
    ns("in_calls_ns", "on-CPU time inside calls, watched"),
    ns("blocked_ns", "blocked time, watched"),
    ns("waiting_ns", "run queue delay, watched"),
];

const fn ns(name: &'static str, summary: &'static str) -> Extra {
    Extra { name, unit: "ns", summary, fold: Fold::Median }
}

const CLAIMS: &[Claim] = &[
    Claim {
        id: "libc-tax",
        source: "004",
        text: "the library between the program and the kernel takes a measurable share of a small \
            call; calling the kernel directly is faster",
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
        text: "the first run has cold caches; the third does not",
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
        text: "the kernel's name cache grows with every name looked up and shrinks only under \
            memory pressure",
        judge: claims::name_cache,
    },
    Claim {
        id: "inode-layout",
        source: "004",
        text: "for small files, the inode and block layout set by mkfs has little effect",
        judge: claims::inode_layout,
    },
];

impl Experiment for Files {
    fn declaration(&self) -> &'static ExperimentDeclaration {
        &DECLARATION
    }

    fn combinations(&self, axes: &[SweepAxis]) -> Vec<Params> {
        star(axes, axes::BASE, RAYS)
    }

    fn no_case(&self, case: &Params) -> Vec<&'static str> {
        let (op, fs) = (case.name("op"), case.name("fs"));
        let is_ring = backends::backend(case.name("way")).is_some_and(|way| way.has_depth);
        let (threads, depth) = (case.number("threads"), case.number("depth"));
        let is_image = layouts::is_image(fs);
        let ring = !is_ring || (threads == 1 && ["round", "back"].contains(&op));
        let cold = case.name("cache") == "warm" || (is_image && op == "back");
        let is_usual = case.name("layout") == "default";
        let has_layout = layouts::options(fs, case.name("layout")).is_some();
        // Memory file systems cache no negative entries; short names allow too few different names.
        let names = op != "names" || (fs != "tmpfs" && case.number("name") >= 14);
        unmet(&[
            (ring, "io-uring has one thread, and the operations round and back"),
            (is_ring || depth == 1, "only io-uring has a depth above 1"),
            // Each thread has its own files, told apart by their first character.
            (threads == 1 || op == "round", "several threads are for the operation round"),
            (case.name("sync") == "none" || op == "round", "syncs are for the operation round"),
            (cold, "a cold cache is for the operation back on ext4, xfs and btrfs"),
            (is_usual || op == "round", "layouts are for the operation round"),
            (is_usual || has_layout, "the file system has no such layout"),
            (names, "the operation names is not for tmpfs, nor for names below 14"),
        ])
    }

    fn probe(&self, case: &Params) -> Result<(), Skip> {
        let way = backends::backend(case.name("way"))
            .ok_or_else(|| Skip("no such strategy".to_owned()))?;
        way.program().map_err(Skip)?;
        if case.name("sched") == "realtime" {
            privileges::real_time().map_err(|refusal| {
                let Skip(said) = Skip::refused(refusal.call, refusal.source);
                Skip(format!("{said}; try ulimit -r 1, or {}", privilege(&["CAP_SYS_NICE"])))
            })?;
        }
        if layouts::is_image(case.name("fs")) && !rustix::process::geteuid().is_root() {
            return Err(Skip("only root can mount images of file systems".to_owned()));
        }
        Ok(())
    }

    fn needs(&self, case: &Params) -> Needs {
        let files = case.number("files");
        let written = files * layouts::WRITTEN;
        // Images are stored in memory.
        let (memory, disk) = match case.name("fs") {
            "here" => (0, (written, files)),
            "tmpfs" => (0, (0, 0)),
            _ => (OF_AN_IMAGE + written, (0, 0)),
        };
        Needs {
            processes: 1 + case.number("threads"),
            descriptors: 64,
            memory_bytes: files * OF_A_FILE + OF_A_CASE + memory,
            disk_bytes: disk.0,
            disk_inodes: disk.1,
        }
    }

    fn prepare(
        &self,
        cases: &[Params],
        folder: &Folder,
    ) -> Result<Box<dyn PreparedExperiment>, Skip> {
        Ok(Box::new(bench::Rounds::new(cases, folder)?))
    }
}
