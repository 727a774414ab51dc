//! `device`: the cost of a file request that has to reach the device.
//!
//! From article 004: prefetching, a disk behind a memory cache, and striping. The file systems come
//! from [`super::volumes`], so that this run alone uses their devices and no other program's
//! read-ahead changes. The declaration has the hypothesis, the controls and what would refute it.

mod bench;
mod claims;
mod file;
mod requests;

pub use requests::mean_of_reads;

use iotomy_host::Skip;
use iotomy_host::folder::Folder;
use iotomy_record::SweepAxis;

use crate::harness::cases::unmet;
use crate::harness::star::{UsualValues, VariedAxes, star};
use crate::harness::{
    Axis, Claim, Experiment, ExperimentDeclaration, Extra, Fold, Needs, Params, PreparedExperiment,
    Sampling, Takes, Value,
};

/// The small block, as in the article: the least that a page cache reads.
const PAGE: u64 = 4 << 10;

/// The large block, which spans both halves of a stripe: btrfs has stripes of 64 KiB.
const LARGE: u64 = 1 << 20;

pub(super) struct Device;

const BASE: UsualValues = &[
    ("device", Value::S("disk")),
    ("fs", Value::S("ext4")),
    ("op", Value::S("read")),
    ("way", Value::S("buffered")),
    ("pattern", Value::S("sequential")),
    // The kernel's default, in KiB.
    ("window", Value::N(128)),
    ("block", Value::N(PAGE)),
    ("depth", Value::N(1)),
];

const RAYS: &[VariedAxes] = &[
    VariedAxes {
        axes: &["fs", "pattern", "window"],
        only: |case, _| !is_pool(case.name("device")),
    },
    VariedAxes { axes: &["way", "pattern"], only: |case, _| case.name("way") != "io-uring" },
    VariedAxes {
        axes: &["way", "pattern", "depth"],
        only: |case, _| case.name("way") == "io-uring",
    },
    VariedAxes { axes: &["device", "op"], only: |case, _| !is_pool(case.name("device")) },
    VariedAxes {
        axes: &["device", "fs", "op", "way", "block"],
        only: |case, _| {
            is_pool(case.name("device"))
                && case.name("way") == "direct"
                && case.number("block") > PAGE
        },
    },
];

/// Whether the device is btrfs, on one device or striped over two.
fn is_pool(device: &str) -> bool {
    ["single", "striped"].contains(&device)
}

static DECLARATION: ExperimentDeclaration = ExperimentDeclaration {
    name: "device",
    summary: "requests that reach the device: read-ahead, caches, memory-backed devices, stripes, \
        depth",
    hypothesis: "read-ahead helps sequential reads and wastes memory on others; small synchronous \
        writes wait for the device, and a memory device removes the wait",
    refuted_by: "sequential reads that are no faster with a larger window, or synchronous writes that \
                 are no faster where the device is memory",
    controls: &[
        "a file of random bytes, dropped from the page cache before each sample",
        "disk is a loop device in the directory of --path that bypasses the page cache of its \
         file; ram is a zram device, or without zram a loop device in memory; here is that \
         directory itself",
        "the read-ahead window, in KiB, is set on the run's own device, or for btrfs on its own \
         file system",
        "a write is of one block of random bytes, in place, with O_DSYNC",
        "striped is btrfs raid0 over two devices, single the same over one; both are on one disk, \
         so stripes add work and save no waiting",
        "strided reads one block of every sixteen",
    ],
    metric: "time of a request",
    unit: "ns",
    extras: &[
        Extra {
            name: "rate",
            unit: "bytes/s",
            summary: "bytes requested a second",
            fold: Fold::Median,
        },
        Extra {
            name: "cached",
            unit: "",
            summary: "pages in the page cache afterwards, per page requested",
            fold: Fold::Median,
        },
        Extra {
            name: "cpu_ns",
            unit: "ns",
            summary: "on-CPU time of this thread per request",
            fold: Fold::Median,
        },
        Extra {
            name: "zram",
            unit: "",
            summary: "1 if ram is a zram device, 0 if it is a loop device in memory",
            fold: Fold::Mean,
        },
    ],
    axes: &[DEVICE, FS, OP, WAY, PATTERN, WINDOW, BLOCK, DEPTH],
    along: "window",
    lines: "pattern",
    claims: &[
        Claim {
            id: "readahead",
            source: "004",
            text: "prefetching several blocks improves sequential reads and wastes memory on random \
                   ones",
            judge: claims::readahead,
        },
        Claim {
            id: "shadow-ram",
            source: "004",
            text: "a memory cache in front of a disk makes small synchronous operations many \
                times faster",
            judge: claims::shadow_ram,
        },
        Claim {
            id: "striping",
            source: "004",
            text: "striping disks may help or hurt; measure it",
            judge: claims::striping,
        },
    ],
    sampling: Sampling { a_visit: 1, least: 8, most: 40, tight: 0.03 },
    man: &["readahead(2)", "open(2)", "io_uring_enter(2)", "loop(4)", "fsopen(2)"],
};

const ALL_DEVICES: &[Value] =
    &[Value::S("here"), Value::S("disk"), Value::S("ram"), Value::S("single"), Value::S("striped")];

const DEVICE: Axis = Axis {
    name: "device",
    unit: "",
    summary: "the storage of the file",
    takes: Takes::Names(&["here", "disk", "ram", "single", "striped"]),
    quick: ALL_DEVICES,
    default: ALL_DEVICES,
    full: ALL_DEVICES,
};

const FS: Axis = Axis {
    name: "fs",
    unit: "",
    summary: "the file system of the run's own device",
    takes: Takes::Names(&["ext4", "xfs", "btrfs"]),
    quick: &[Value::S("ext4"), Value::S("btrfs")],
    default: &[Value::S("ext4"), Value::S("xfs"), Value::S("btrfs")],
    full: &[Value::S("ext4"), Value::S("xfs"), Value::S("btrfs")],
};

const BOTH_OPS: &[Value] = &[Value::S("read"), Value::S("write")];

const OP: Axis = Axis {
    name: "op",
    unit: "",
    summary: "the operation",
    takes: Takes::Names(&["read", "write"]),
    quick: BOTH_OPS,
    default: BOTH_OPS,
    full: BOTH_OPS,
};

const ALL_WAYS: &[Value] =
    &[Value::S("buffered"), Value::S("direct"), Value::S("mmap"), Value::S("io-uring")];

const WAY: Axis = Axis {
    name: "way",
    unit: "",
    summary: "through the page cache, past it, by page faults of a mapping, past it with many in \
        flight",
    takes: Takes::Names(&["buffered", "direct", "mmap", "io-uring"]),
    quick: ALL_WAYS,
    default: ALL_WAYS,
    full: ALL_WAYS,
};

const ALL_PATTERNS: &[Value] = &[Value::S("sequential"), Value::S("random"), Value::S("strided")];

const PATTERN: Axis = Axis {
    name: "pattern",
    unit: "",
    summary: "the order of the requests",
    takes: Takes::Names(&["sequential", "random", "strided"]),
    quick: ALL_PATTERNS,
    default: ALL_PATTERNS,
    full: ALL_PATTERNS,
};

const WINDOW: Axis = Axis {
    name: "window",
    unit: "",
    summary: "maximum read-ahead in KiB, on the run's own devices",
    // The kernel counts the window in pages and rounds other values down.
    takes: Takes::Multiples(PAGE >> 10, 0, 16_384),
    quick: &[Value::N(0), Value::N(128)],
    default: &[Value::N(0), Value::N(16), Value::N(128), Value::N(1_024)],
    full: &[
        Value::N(0),
        Value::N(4),
        Value::N(16),
        Value::N(64),
        Value::N(128),
        Value::N(512),
        Value::N(1_024),
        Value::N(4_096),
    ],
};

const BOTH_BLOCKS: &[Value] = &[Value::N(PAGE), Value::N(LARGE)];

const BLOCK: Axis = Axis {
    name: "block",
    unit: "bytes",
    summary: "bytes per request, a multiple of 4 KiB",
    takes: Takes::Multiples(PAGE, PAGE, 4 << 20),
    quick: BOTH_BLOCKS,
    default: BOTH_BLOCKS,
    full: BOTH_BLOCKS,
};

const DEPTH: Axis = Axis {
    name: "depth",
    unit: "",
    summary: "requests in flight, for io-uring",
    takes: Takes::Numbers(1, 256),
    quick: &[Value::N(1), Value::N(16)],
    default: &[Value::N(1), Value::N(4), Value::N(16), Value::N(64)],
    full: &[Value::N(1), Value::N(2), Value::N(4), Value::N(8), Value::N(16), Value::N(64)],
};

impl Experiment for Device {
    fn declaration(&self) -> &'static ExperimentDeclaration {
        &DECLARATION
    }

    fn combinations(&self, axes: &[SweepAxis]) -> Vec<Params> {
        star(axes, BASE, RAYS)
    }

    fn no_case(&self, case: &Params) -> Vec<&'static str> {
        let (device, way) = (case.name("device"), case.name("way"));
        let is_btrfs = case.name("fs") == "btrfs";
        let is_read = case.name("op") == "read";
        unmet(&[
            (is_read || ["buffered", "direct"].contains(&way), "writes are buffered or direct"),
            (way == "io-uring" || case.number("depth") == 1, "only io-uring has a depth above 1"),
            (is_btrfs || !is_pool(device), "single and striped are btrfs"),
            // The run cannot choose the file system of --path.
            (
                device != "here" || case.name("fs") == "ext4",
                "here has the file system of --path, which is called ext4 whatever it is",
            ),
            // The run does not change the window of a disk that others use.
            (device != "here" || case.number("window") == 128, "here has one window, 128"),
        ])
    }

    fn probe(&self, case: &Params) -> Result<(), Skip> {
        if case.name("device") != "here" && !rustix::process::geteuid().is_root() {
            return Err(Skip("only root can create devices".to_owned()));
        }
        Ok(())
    }

    fn needs(&self, case: &Params) -> Needs {
        let (memory, disk) = match case.name("device") {
            "here" => (file::FILE, file::FILE),
            "ram" => (bench::TAKES, 0),
            _ => (file::FILE, bench::TAKES),
        };
        Needs {
            processes: 1,
            descriptors: 32,
            memory_bytes: memory + case.number("depth") * case.number("block"),
            disk_bytes: disk,
            disk_inodes: 2,
        }
    }

    fn prepare(&self, _: &[Params], folder: &Folder) -> Result<Box<dyn PreparedExperiment>, Skip> {
        Ok(Box::new(bench::Requests::new(folder)?))
    }
}
