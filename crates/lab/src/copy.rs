//! `copy`: the cost of moving a file, by mapping or by reading, in small and large requests.
//!
//! From article 001, which compared cat (`mmap` and `write` of 8 MiB) with dd (`read` and `write`
//! of 8 KiB, then of 8 MiB). The movers of `iotomy copy` move the bytes, in this process; the calls
//! are counted in traced runs of `iotomy copy` after the timed ones.

mod calls;
mod claims;
pub(crate) mod null_sink;

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use iotomy_host::Skip;
use iotomy_host::folder::Folder;
use iotomy_movers::{End, Job, MOVERS, Sparse, mover};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::time::{ClockId, clock_gettime};

use crate::copy::calls::{AccessMode, by_call};
use crate::copy::claims::{block_size, calls_cat_dd, mmap_beats_read, mmap_explains};
use crate::harness::cases::unmet;
use crate::harness::scratch::{Scratch, carry};
use crate::harness::{
    Axis, Claim, Experiment, ExperimentDeclaration, Extra, Fold, Needs, Params, PreparedExperiment,
    Sample, Sampling, Takes, Value, Watch,
};

/// Bytes per request of cat on Solaris, and the window of the mover `mmap-write`.
pub(super) const WINDOW: u64 = 8 << 20;

/// The first request size of dd in the article.
pub(super) const SMALL: u64 = 8 << 10;

pub(super) struct Copy;

static DECLARATION: ExperimentDeclaration = ExperimentDeclaration {
    name: "copy",
    summary: "a file copied by mapping or by reading it, in requests of several sizes",
    hypothesis: "mmap and write cost less than read and write of the same size, by the difference \
        between mapping and reading; small requests cost more than large ones",
    refuted_by: "read and write cost no more, or the writes account for the difference",
    controls: &[
        "source cached, target emptied before each copy, both files unnamed in one directory",
        "CPU time of this process, so that a slow disk does not count",
        "random order in rounds; ratios of samples of the same round",
        "calls from traced runs of iotomy copy, start-up included, not from the timed ones",
        "at 8 MiB, each timed copy is followed by one with the same calls that measures the CPU \
         time of each call",
    ],
    metric: "CPU time of a copy",
    unit: "ns",
    extras: &[
        Extra { name: "wall_ns", unit: "ns", summary: "wall time", fold: Fold::Median },
        Extra { name: "calls", unit: "", summary: "system calls, traced", fold: Fold::Mean },
        Extra {
            name: "read_ns",
            unit: "ns",
            summary: "CPU time in the reads of a separate copy, call by call",
            fold: Fold::Median,
        },
        Extra {
            name: "map_ns",
            unit: "ns",
            summary: "the same in mmap and munmap",
            fold: Fold::Median,
        },
        Extra { name: "write_ns", unit: "ns", summary: "the same in writes", fold: Fold::Median },
    ],
    axes: &[
        Axis {
            name: "mover",
            unit: "",
            summary: "the mover that copies",
            takes: Takes::Listed(movers),
            quick: &[Value::S("read-write"), Value::S("mmap-write")],
            default: &[],
            full: &[],
        },
        Axis {
            name: "block",
            unit: "bytes",
            summary: "bytes per request, for movers with a variable size; 8 MiB for the others",
            takes: Takes::Numbers(512, 1 << 30),
            quick: &[Value::N(SMALL), Value::N(64 << 10), Value::N(1 << 20), Value::N(WINDOW)],
            default: &[
                Value::N(1 << 10),
                Value::N(4 << 10),
                Value::N(SMALL),
                Value::N(32 << 10),
                Value::N(128 << 10),
                Value::N(1 << 20),
                Value::N(WINDOW),
            ],
            full: &[
                Value::N(512),
                Value::N(1 << 10),
                Value::N(4 << 10),
                Value::N(SMALL),
                Value::N(16 << 10),
                Value::N(32 << 10),
                Value::N(64 << 10),
                Value::N(128 << 10),
                Value::N(256 << 10),
                Value::N(1 << 20),
                Value::N(4 << 20),
                Value::N(WINDOW),
            ],
        },
        Axis {
            name: "size",
            unit: "bytes",
            summary: "the file's size",
            takes: Takes::Numbers(1 << 20, 1 << 40),
            quick: &[Value::N(64 << 20)],
            default: &[Value::N(64 << 20)],
            // The article uses 400 MB, "to cut down waiting time while remaining significant".
            full: &[Value::N(400 << 20)],
        },
    ],
    along: "block",
    lines: "mover",
    claims: &[
        Claim {
            id: "calls-cat-dd",
            source: "001",
            text: "for 64 MiB, read and write of 8 KiB make hundreds of times the calls of mmap and \
                   write of 8 MiB",
            judge: calls_cat_dd,
        },
        Claim {
            id: "mmap-beats-read",
            source: "001",
            text: "at the same request size of 8 MiB, mmap and write cost less system time than read \
                   and write",
            judge: mmap_beats_read,
        },
        Claim {
            id: "mmap-explains",
            source: "001",
            text: "the difference between the two is that of mmap and read, call by call; the \
                writes cost the same",
            judge: mmap_explains,
        },
        Claim {
            id: "block-size",
            source: "001, 004",
            text: "small requests cost more system time; the gain levels off above some size",
            judge: block_size,
        },
    ],
    sampling: Sampling { a_visit: 1, least: 12, most: 60, tight: 0.02 },
    man: &["read(2)", "write(2)", "mmap(2)", "splice(2)", "sendfile(2)"],
};

/// The movers that support a source and a target in memory.
fn movers() -> Vec<&'static str> {
    let file = || memfd_create("iotomy-copy", MemfdFlags::CLOEXEC);
    let (Ok(source), Ok(target)) = (file(), file()) else { return Vec::new() };
    let (Ok(source), Ok(target)) = (End::new(&source), End::new(&target)) else {
        return Vec::new();
    };
    let progress = AtomicU64::new(0);
    let job = Job { sparse: Sparse::Never, ..Job::new(&progress) };
    MOVERS
        .iter()
        .filter(|mover| !mover.declaration().calls.is_empty())
        .filter(|mover| mover.serves(&source, &target, &job).is_ok())
        .map(|mover| mover.declaration().name)
        .collect()
}

/// Whether the block size of a mover is worth varying, according to its declaration.
fn has_a_block_size(name: &str) -> bool {
    let tunings = mover(name).map_or(&[][..], |mover| mover.declaration().tunings);
    let is_block_size = |tuning: &&&str| tuning.starts_with("block-size=") && !tuning.contains(' ');
    tunings.iter().filter(is_block_size).count() > 1
}

impl Experiment for Copy {
    fn declaration(&self) -> &'static ExperimentDeclaration {
        &DECLARATION
    }

    fn no_case(&self, case: &Params) -> Vec<&'static str> {
        let is_case = has_a_block_size(case.name("mover")) || case.number("block") == WINDOW;
        unmet(&[(is_case, "movers without a choice of request size are measured once, at 8 MiB")])
    }

    fn probe(&self, case: &Params) -> Result<(), Skip> {
        let name = case.name("mover");
        let mover = mover(name).ok_or_else(|| Skip(format!("unknown mover {name}")))?;
        match mover.probe() {
            iotomy_movers::Probe::Ready => Ok(()),
            iotomy_movers::Probe::Unsupported(reason) => Err(Skip(reason)),
        }
    }

    fn needs(&self, case: &Params) -> Needs {
        // Both files must stay in memory.
        Needs { memory_bytes: 2 * case.number("size"), ..Needs::default() }
    }

    fn prepare(
        &self,
        cases: &[Params],
        folder: &Folder,
    ) -> Result<Box<dyn PreparedExperiment>, Skip> {
        let largest = cases.iter().map(|case| case.number("size")).max().unwrap_or(0);
        let source = Scratch::filled(folder, largest)?;
        let target = Scratch::empty(folder, largest)?;
        Ok(Box::new(Files { source, target }))
    }
}

struct Files {
    source: Scratch,
    target: Scratch,
}

impl PreparedExperiment for Files {
    fn visit(
        &mut self,
        case: &Params,
        keep: &mut dyn FnMut(Sample) -> ControlFlow<()>,
    ) -> Result<(), Skip> {
        loop {
            self.source.rewind()?;
            self.target.clear()?;
            let (began, cpu) = (Instant::now(), cpu_ns());
            carry_case(case, &self.source, &self.target)?;
            let (cpu, wall) = (cpu_ns() - cpu, began.elapsed());
            let mut extra = vec![("wall_ns", wall.as_nanos() as f64)];
            if let Some(way) =
                AccessMode::for_mover(case.name("mover")).filter(|_| case.number("block") == WINDOW)
            {
                self.target.clear()?;
                let parts = by_call(way, &self.source, &self.target, case.number("size"))?;
                extra.extend(parts);
            }
            if keep(Sample { value: cpu as f64, extra }).is_break() {
                return Ok(());
            }
        }
    }

    fn watch(
        &mut self,
        case: &Params,
        watch: &mut dyn Watch,
    ) -> Result<Vec<(&'static str, f64)>, Skip> {
        let mut arguments: Vec<OsString> =
            ["copy", "--sparse", "never", "--mover"].map(Into::into).into();
        arguments.push(case.name("mover").into());
        for (option, axis) in [("--block-size", "block"), ("--count", "size")] {
            arguments.extend([option.into(), case.number(axis).to_string().into()]);
        }
        arguments.extend([self.source.path().into(), self.target.path().into()]);
        self.target.clear()?;
        let trace = watch.iotomy(&arguments).map_err(Skip)?;
        let calls: u64 = trace.calls.iter().map(|call| call.calls).sum();
        Ok(vec![("calls", calls as f64)])
    }
}

/// Moves the case's bytes once.
fn carry_case(case: &Params, source: &Scratch, target: &Scratch) -> Result<(), Skip> {
    let progress = AtomicU64::new(0);
    let job = Job {
        block_size: Some(usize::try_from(case.number("block")).unwrap_or(usize::MAX)),
        sparse: Sparse::Never,
        ..Job::new(&progress)
    };
    carry(case.name("mover"), (source.fd(), target.fd()), case.number("size"), job)
}

/// CPU time used by all threads of this process, in ns.
fn cpu_ns() -> i64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}
