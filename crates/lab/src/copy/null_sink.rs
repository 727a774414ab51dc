//! `null-sink`: a file written to the null device, which never reads the data it receives.
//!
//! From articles 000 and 003: cat wrote 5 GB to /dev/null in 7 ms, because cat mapped the file and
//! the null device touches no page of a mapping. With an extra pipe the bytes are read.

use std::ops::ControlFlow;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::Instant;

use iotomy_host::Skip;
use iotomy_host::folder::Folder;
use iotomy_movers::Job;
use iotomy_record::Case;
use rustix::fd::OwnedFd;
use rustix::fs::{
    Mode, OFlags, StatVfsMountFlags, Timespec, Timestamps, fstat, fstatvfs, futimens, open,
};
use rustix::io::{pread, retry_on_intr};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::harness::claims::{digits, ratio, shown, time};
use crate::harness::judgement::{quotient, slope};
use crate::harness::scratch::{Scratch, carry};
use crate::harness::{
    Axis, Cases, Claim, Experiment, ExperimentDeclaration, Extra, Fold, Judgement, Needs, Params,
    PreparedExperiment, Sample, Sampling, Takes, Value, Watch,
};

/// The values of the axis `way`.
const MAPPED: &str = "mmap";
const WITH_A_BYTE: &str = "byte+mmap";
const PIPED: &str = "mmap+pipe";
const READ: &str = "read";

const MIB: u64 = 1 << 20;

/// Two days ago: with `relatime` an access time older than a day is always updated.
const LONG_AGO_S: i64 = 2 * 24 * 3600;

pub(crate) struct NullSink;

static DECLARATION: ExperimentDeclaration = ExperimentDeclaration {
    name: "null-sink",
    summary: "a file written to the null device by mmap and write, by reading, and through a pipe",
    hypothesis: "the null device reads nothing, so the time for a mapped file does not depend on \
        its size and no page of it is loaded; a pipe in between forces the read",
    refuted_by: "time in proportion to the size, page faults, or pages in memory afterwards",
    controls: &[
        "the file is cached for the timed runs, and unnamed",
        "windows of 8 MiB, as in cat on Solaris",
        "page faults of this process counted around each run",
        "for residence and access time, an untimed run with the file dropped from memory and its \
         access time set to two days ago",
    ],
    metric: "wall time of a copy to the null device",
    unit: "ns",
    extras: &[
        Extra { name: "faults", unit: "", summary: "page faults", fold: Fold::Mean },
        Extra {
            name: "resident",
            unit: "",
            summary: "share of the file in memory after a copy that began with none of it",
            fold: Fold::Mean,
        },
        Extra {
            name: "atime_changed",
            unit: "",
            summary: "whether the access time changed (1) or not (0)",
            fold: Fold::Mean,
        },
    ],
    axes: &[
        Axis {
            name: "way",
            unit: "",
            summary: "mmap and write; the same after a read of 1 byte; through a pipe drained \
                into the null device; read and write",
            takes: Takes::Names(&[MAPPED, WITH_A_BYTE, PIPED, READ]),
            quick: ALL,
            default: ALL,
            full: ALL,
        },
        Axis {
            name: "size",
            unit: "bytes",
            summary: "the file's size",
            takes: Takes::Numbers(MIB, 1 << 40),
            quick: &[Value::N(16 * MIB), Value::N(64 * MIB), Value::N(256 * MIB)],
            default: &[
                Value::N(16 * MIB),
                Value::N(64 * MIB),
                Value::N(256 * MIB),
                Value::N(1024 * MIB),
            ],
            // The article's file had 5,083,361,280 bytes.
            full: &[
                Value::N(16 * MIB),
                Value::N(64 * MIB),
                Value::N(256 * MIB),
                Value::N(1024 * MIB),
                Value::N(5_083_361_280),
            ],
        },
    ],
    along: "size",
    lines: "way",
    claims: &[
        Claim {
            id: "null-sink",
            source: "000, 003",
            text: "the time of mmap and write to the null device does not depend on the file's \
                size: the mapping is never read",
            judge: null_sink,
        },
        Claim {
            id: "null-sink-pipe",
            source: "000, 003",
            text: "an extra pipe defeats the shortcut: the bytes are read",
            judge: null_sink_pipe,
        },
        Claim {
            id: "null-sink-atime",
            source: "000, 003",
            text: "the access time changes although the file is not read, because of one read of \
                1 byte",
            judge: null_sink_atime,
        },
        Claim {
            id: "null-sink-residency",
            source: "000, 003",
            text: "such a copy loads nothing into memory; a copy by read does",
            judge: null_sink_residency,
        },
    ],
    sampling: Sampling { a_visit: 1, least: 12, most: 60, tight: 0.02 },
    man: &["mmap(2)", "write(2)", "null(4)", "mincore(2)"],
};

const ALL: &[Value] = &[Value::S(MAPPED), Value::S(WITH_A_BYTE), Value::S(PIPED), Value::S(READ)];

impl Experiment for NullSink {
    fn declaration(&self) -> &'static ExperimentDeclaration {
        &DECLARATION
    }

    fn probe(&self, _: &Params) -> Result<(), Skip> {
        Ok(())
    }

    fn needs(&self, case: &Params) -> Needs {
        Needs { memory_bytes: case.number("size"), ..Needs::default() }
    }

    fn prepare(
        &self,
        cases: &[Params],
        folder: &Folder,
    ) -> Result<Box<dyn PreparedExperiment>, Skip> {
        let sizes = || cases.iter().map(|case| case.number("size"));
        let file = Scratch::filled(folder, sizes().max().unwrap_or(0))?;
        let null = open("/dev/null", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(|e| Skip::refused("open /dev/null", e))?;
        Ok(Box::new(Sink { file, null, smallest: sizes().min().unwrap_or(0) }))
    }
}

struct Sink {
    file: Scratch,
    null: OwnedFd,
    /// The size at which residency and access time are checked.
    smallest: u64,
}

impl PreparedExperiment for Sink {
    fn visit(
        &mut self,
        case: &Params,
        keep: &mut dyn FnMut(Sample) -> ControlFlow<()>,
    ) -> Result<(), Skip> {
        // Reads back pages that the watch of another case, or another program, has dropped.
        if self.file.resident(case.number("size"))? < 1.0 {
            self.copy_by(READ, case.number("size"))?;
        }
        loop {
            let (faults, began) = (count_faults(), Instant::now());
            self.copy_by(case.name("way"), case.number("size"))?;
            let took = began.elapsed().as_nanos() as f64;
            let extra = vec![("faults", (count_faults() - faults) as f64)];
            if keep(Sample { value: took, extra }).is_break() {
                return Ok(());
            }
        }
    }

    fn watch(
        &mut self,
        case: &Params,
        _: &mut dyn Watch,
    ) -> Result<Vec<(&'static str, f64)>, Skip> {
        let size = case.number("size");
        if size != self.smallest {
            return Ok(Vec::new());
        }
        let mut extra = Vec::new();
        self.file.drop_from_cache()?;
        let is_cold = self.file.resident(size)? == 0.0;
        let seconds_now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime).tv_sec;
        let long_ago = Timespec { tv_sec: seconds_now - LONG_AGO_S, tv_nsec: 0 };
        let times = Timestamps { last_access: long_ago, last_modification: long_ago };
        futimens(self.file.fd(), &times).map_err(|e| Skip::refused("utimensat", e))?;
        self.copy_by(case.name("way"), size)?;
        if is_cold {
            extra.push(("resident", self.file.resident(size)?));
        }
        let flags = fstatvfs(self.file.fd()).map_err(|e| Skip::refused("fstatvfs", e))?.f_flag;
        if !flags.contains(StatVfsMountFlags::NOATIME) {
            let now = fstat(self.file.fd()).map_err(|e| Skip::refused("fstat", e))?.st_atime;
            let is_changed = i128::from(now) != i128::from(long_ago.tv_sec);
            extra.push(("atime_changed", f64::from(u8::from(is_changed))));
        }
        Ok(extra)
    }
}

impl Sink {
    /// Writes the first `bytes` of the file to the null device.
    fn copy_by(&self, way: &str, bytes: u64) -> Result<(), Skip> {
        self.file.rewind()?;
        match way {
            MAPPED => pour("mmap-write", self.file.fd(), &self.null, bytes),
            WITH_A_BYTE => {
                retry_on_intr(|| pread(self.file.fd(), &mut [0u8], 0))
                    .map_err(|e| Skip::refused("read", e))?;
                pour("mmap-write", self.file.fd(), &self.null, bytes)
            }
            PIPED => self.pour_through_a_pipe(bytes),
            _ => pour("read-write", self.file.fd(), &self.null, bytes),
        }
    }

    /// A second thread empties the pipe into the null device, as in `cat file | cat > /dev/null`.
    fn pour_through_a_pipe(&self, bytes: u64) -> Result<(), Skip> {
        let (out, into) = pipe_with(PipeFlags::CLOEXEC).map_err(|e| Skip::refused("pipe2", e))?;
        thread::scope(|scope| {
            let second = thread::Builder::new()
                .spawn_scoped(scope, || pour("read-write", &out, &self.null, bytes))
                .map_err(|e| Skip::refused("clone", e))?;
            let first = pour("mmap-write", self.file.fd(), &into, bytes);
            drop(into);
            let second = second.join().unwrap_or_else(|_| Err(Skip("a thread failed".to_owned())));
            first.and(second)
        })
    }
}

/// Moves the bytes with the movers' preferred request size.
fn pour(name: &str, source: &OwnedFd, target: &OwnedFd, bytes: u64) -> Result<(), Skip> {
    carry(name, (source, target), bytes, Job::new(&AtomicU64::new(0)))
}

/// Returns the page faults of this process so far.
fn count_faults() -> i64 {
    let used = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_SELF);
    used.map_or(0, |used| used.minor_page_faults() + used.major_page_faults())
}

fn null_sink(cases: &Cases<'_>) -> Judgement {
    let (mapped, read) = (cases.named("way", MAPPED), cases.named("way", READ));
    let (Some(line), Some(reading)) = (mapped.line("size"), read.line("size")) else {
        return Judgement::inconclusive("needs the strategies mmap and read, each with two sizes");
    };
    let Some((size, median)) = mapped.medians("size").into_iter().next_back() else {
        return Judgement::inconclusive("no copy was made");
    };
    let faults = mapped.at("size", size as u64).first().and_then(|case| case.extra.get("faults"));
    let Some(share) = slope(&line).zip(slope(&reading)).and_then(|(of, by)| quotient(of, by))
    else {
        return Judgement::inconclusive("too few copies to compare");
    };
    let because = format!(
        "{} MiB in {} = {} GB/s; each additional MiB takes {}, {} % of the time of reading it; {} \
         page faults for {} pages",
        digits(size / MIB as f64),
        time(median),
        digits(size / median),
        time(line.slope * MIB as f64),
        shown(share.map(|share| share * 100.0)),
        digits(faults.copied().unwrap_or(0.0)),
        digits(size / 4096.0)
    );
    // Only the calls remain, one per window; touching the pages would cost fifty times as much.
    Judgement::below(share, 0.02, because)
        .with_line("mmap_ns_per_byte", line)
        .with_line("read_ns_per_byte", reading)
        .with("share_of_reading", share.point)
        .with_interval("share_interval", share)
}

/// Returns the cases of two modes at the largest size that both have.
fn at_largest<'a>(cases: &Cases<'a>, a: &str, b: &str) -> Option<(&'a Case, &'a Case, u64)> {
    let (a, b) = (cases.named("way", a), cases.named("way", b));
    let both = b.numbers("size");
    let size = a.numbers("size").into_iter().rfind(|size| both.contains(size))?;
    Some((a.at("size", size).first()?, b.at("size", size).first()?, size))
}

fn null_sink_pipe(cases: &Cases<'_>) -> Judgement {
    let Some((mapped, piped, size)) = at_largest(cases, MAPPED, PIPED) else {
        return Judgement::inconclusive("needs the strategies mmap and mmap+pipe");
    };
    let (Some(times), Some(median)) = (ratio(mapped, piped), piped.median) else {
        return Judgement::inconclusive("too few copies to compare");
    };
    let resident = cases.named("way", PIPED).iter().find_map(|case| case.extra.get("resident"));
    let in_memory = match resident {
        Some(share) => {
            format!("; afterwards, {} % of an uncached file is in memory", digits(100.0 * share))
        }
        None => String::new(),
    };
    let because = format!(
        "{} MiB in {} = {} GB/s, {} times as long as without the pipe{in_memory}",
        size / MIB,
        time(median),
        digits(size as f64 / median),
        shown(times)
    );
    let judgement = Judgement::above(times, 10.0, because).with_interval("pipe_over_mmap", times);
    match resident {
        Some(share) => judgement.with("resident", *share),
        None => judgement,
    }
}

fn null_sink_atime(cases: &Cases<'_>) -> Judgement {
    let changed = |way| {
        let cases = cases.named("way", way);
        cases.iter().find_map(|case| case.extra.get("atime_changed").map(|changed| *changed > 0.0))
    };
    let (Some(mapped), Some(with_a_byte)) = (changed(MAPPED), changed(WITH_A_BYTE)) else {
        return Judgement::inconclusive(
            "needs the strategies mmap and byte+mmap, on a file system that keeps access times \
             (not noatime)",
        );
    };
    let judgement = match (mapped, with_a_byte) {
        (false, true) => {
            Judgement::from_bool(true, "it changed after a read of 1 byte, and not without it")
        }
        (true, _) => Judgement::from_bool(
            false,
            "it changes, but without any read: on Linux mapping a file counts as an access",
        ),
        (false, false) => Judgement::inconclusive("it did not change even after a read of 1 byte"),
    };
    judgement.with("changed_by_mmap", mapped).with("changed_by_read_and_mmap", with_a_byte)
}

fn null_sink_residency(cases: &Cases<'_>) -> Judgement {
    let resident = |way| {
        let cases = cases.named("way", way);
        cases.iter().find_map(|case| case.extra.get("resident").copied())
    };
    let (Some(mapped), Some(read)) = (resident(MAPPED), resident(READ)) else {
        return Judgement::inconclusive(
            "needs the strategies mmap and read, on a file system whose files can leave memory \
             (not tmpfs; name another directory with --path)",
        );
    };
    let because = format!(
        "{} % of the file were in memory after mmap and write, {} % after read and write",
        digits(100.0 * mapped),
        digits(100.0 * read)
    );
    Judgement::from_bool(mapped == 0.0 && read > 0.99, because)
        .with("resident_after_mmap", mapped)
        .with("resident_after_read", read)
}
