//! `copy`: what moving a file costs, by mapping or by reading, in small requests and large ones.
//!
//! From article 001, where cat (`mmap` and `write` of 8 MiB) was held against dd (`read` and `write` of
//! 8 KiB, then of 8 MiB). The same movers as in `iotomy copy` move the bytes, in this process; the calls
//! are counted in traced runs of `iotomy copy` after the timed ones.

use std::ffi::OsString;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use iotomy_movers::{Job, Sparse, mover};
use iotomy_record::{Case, Trace};
use rustix::time::{ClockId, clock_gettime};

use super::claims::{digits, number, ratio, shown, time};
use super::scratch::{Scratch, carry};
use super::{
    Axis, Bench, Cases, Claim, Declaration, Experiment, Extra, Fold, Go, Judgement, Needs, Params,
    Sample, Sampling, Takes, Value, Watch,
};
use crate::limits::Skip;
use crate::limits::storage::Folder;

/// Bytes a request of cat on Solaris, and the window of the mover `mmap-write`.
const WINDOW: u64 = 8 << 20;

/// The request dd was given first.
const SMALL: u64 = 8 << 10;

/// Traced runs of a case whose times are held against another's; one where only calls are counted.
const TRACED: usize = 5;

/// The two least of the traced runs differ by no more than this, or their times say nothing.
const STEADY: f64 = 1.15;

pub(super) struct Copy;

static DECLARATION: Declaration = Declaration {
    name: "copy",
    summary: "a file copied by mapping or reading it, in requests of several sizes",
    hypothesis: "mmap and write cost less than read and write of the same size, by what mapping costs \
                 less than reading; small requests cost more than large ones",
    refuted_by: "read and write cost no more, or the writes make the difference",
    controls: &[
        "source cached, target emptied before each copy, both files without a name in one folder",
        "CPU time of this process, so that a slow disk does not count",
        "random order in rounds; ratios of samples of the same round",
        "calls from traced runs of iotomy copy, start-up included, not from the timed ones",
    ],
    metric: "CPU time of a copy",
    unit: "ns",
    extras: &[
        Extra { name: "wall_ns", unit: "ns", summary: "wall time", fold: Fold::Median },
        Extra { name: "calls", unit: "", summary: "system calls, traced", fold: Fold::Mean },
        Extra { name: "read_ns", unit: "ns", summary: "in reads, traced", fold: Fold::Least },
        Extra { name: "map_ns", unit: "ns", summary: "in mmap, traced", fold: Fold::Least },
        Extra { name: "write_ns", unit: "ns", summary: "in writes, traced", fold: Fold::Least },
    ],
    axes: &[
        Axis {
            name: "mover",
            unit: "",
            summary: "the way the bytes go",
            takes: Takes::Names(&[
                "read-write",
                "mmap-write",
                "splice",
                "sendfile",
                "copy-file-range",
                "io-uring",
            ]),
            quick: &[Value::S("read-write"), Value::S("mmap-write")],
            default: &[
                Value::S("read-write"),
                Value::S("mmap-write"),
                Value::S("splice"),
                Value::S("sendfile"),
            ],
            full: &[
                Value::S("read-write"),
                Value::S("mmap-write"),
                Value::S("splice"),
                Value::S("sendfile"),
                Value::S("copy-file-range"),
                Value::S("io-uring"),
            ],
        },
        Axis {
            name: "block",
            unit: "bytes",
            summary: "bytes a request, for movers that have a choice; 8 MiB for the others",
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
            // 400 MB, to cut down waiting time while remaining significant, as the article has it.
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
            text: "the difference of the two is that of mmap and read, call by call; the writes cost \
                   the same",
            judge: mmap_explains,
        },
        Claim {
            id: "block-size",
            source: "001, 004",
            text: "small requests cost more system time; the gain flattens past some size",
            judge: block_size,
        },
    ],
    sampling: Sampling { a_visit: 1, least: 12, most: 60, tight: 0.02 },
    man: &["read(2)", "write(2)", "mmap(2)", "splice(2)", "sendfile(2)"],
};

/// Whether a mover asks for as many bytes at a time as it is told to.
fn has_a_choice(mover: &str) -> bool {
    ["read-write", "io-uring"].contains(&mover)
}

impl Experiment for Copy {
    fn declaration(&self) -> &'static Declaration {
        &DECLARATION
    }

    fn is_case(&self, case: &Params) -> bool {
        has_a_choice(case.name("mover")) || case.number("block") == WINDOW
    }

    fn probe(&self, case: &Params) -> Result<(), Skip> {
        let name = case.name("mover");
        let mover = mover(name).ok_or_else(|| Skip(format!("there is no mover {name}")))?;
        match mover.probe() {
            iotomy_movers::Probe::Ready => Ok(()),
            iotomy_movers::Probe::Unsupported(reason) => Err(Skip(reason)),
        }
    }

    fn needs(&self, case: &Params) -> Needs {
        // Both files are to stay in memory.
        Needs { memory_bytes: 2 * case.number("size"), ..Needs::default() }
    }

    fn prepare(&self, cases: &[Params], folder: &Folder) -> Result<Box<dyn Bench>, Skip> {
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

impl Bench for Files {
    fn visit(&mut self, case: &Params, keep: &mut dyn FnMut(Sample) -> Go) -> Result<(), Skip> {
        loop {
            self.source.rewind()?;
            self.target.clear()?;
            let (began, cpu) = (Instant::now(), cpu_ns());
            carry_case(case, &self.source, &self.target)?;
            let (cpu, wall) = (cpu_ns() - cpu, began.elapsed());
            let extra = vec![("wall_ns", wall.as_nanos() as f64)];
            if keep(Sample { value: cpu as f64, extra }) == Go::Back {
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
        let mut extra = Vec::new();
        for _ in 0..if case.number("block") == WINDOW { TRACED } else { 1 } {
            self.target.clear()?;
            let trace = watch.iotomy(&arguments).map_err(Skip)?;
            let calls: u64 = trace.calls.iter().map(|call| call.calls).sum();
            extra.push(("calls", calls as f64));
            // Times that watching has made several times as long say nothing.
            if !trace.observer.times_inflated {
                extra.push(("read_ns", time_in(&trace, &["read", "pread64"])));
                extra.push(("map_ns", time_in(&trace, &["mmap", "munmap"])));
                extra.push(("write_ns", time_in(&trace, &["write", "pwrite64"])));
            }
        }
        Ok(extra)
    }
}

/// Carries the case's bytes once.
fn carry_case(case: &Params, source: &Scratch, target: &Scratch) -> Result<(), Skip> {
    let progress = AtomicU64::new(0);
    let job = Job {
        block_size: usize::try_from(case.number("block")).unwrap_or(usize::MAX),
        sparse: Sparse::Never,
        ..Job::new(&progress)
    };
    carry(case.name("mover"), (source.fd(), target.fd()), case.number("size"), job)
}

/// What all threads of this process have used of CPUs.
fn cpu_ns() -> i64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// On-CPU time in calls of these names, less what watching them cost.
fn time_in(trace: &Trace, names: &[&str]) -> f64 {
    let calls = trace.calls.iter().filter(|call| names.contains(&call.syscall.as_str()));
    let time = |call: &iotomy_record::Call| {
        let on_cpu = call.on_cpu_ns.unwrap_or(call.wall_ns) as f64;
        (on_cpu - call.calls as f64 * trace.observer.cost_ns_per_call).max(0.0)
    };
    calls.map(time).sum()
}

/// The case of a mover and block, of the largest size.
fn of<'a>(cases: &Cases<'a>, mover: &str, block: u64) -> Option<&'a Case> {
    let cases = cases.named("mover", mover).at("block", block);
    let size = cases.numbers("size").pop()?;
    cases.at("size", size).first()
}

const NEEDS_BOTH: &str = "it takes read-write and mmap-write, both with requests of 8 MiB";

fn calls_cat_dd(cases: &Cases<'_>) -> Judgement {
    let calls = |mover, block| of(cases, mover, block)?.extra.get("calls").copied();
    let (Some(small), Some(large)) = (calls("read-write", SMALL), calls("mmap-write", WINDOW))
    else {
        return Judgement::inconclusive(
            "it takes traced runs of read-write with 8 KiB and of mmap-write",
        );
    };
    let times = small / large;
    let because = format!(
        "{} calls against {}, start-up included: {} times as many",
        digits(small),
        digits(large),
        digits(times)
    );
    Judgement::of(times >= 100.0, because)
        .with("read_write_calls", small)
        .with("mmap_write_calls", large)
        .with("times", times)
}

fn mmap_beats_read(cases: &Cases<'_>) -> Judgement {
    let (Some(read), Some(map)) =
        (of(cases, "read-write", WINDOW), of(cases, "mmap-write", WINDOW))
    else {
        return Judgement::inconclusive(NEEDS_BOTH);
    };
    let Some(times) = ratio(map, read) else {
        return Judgement::inconclusive("too few copies to compare");
    };
    let because = format!(
        "{} by read and write, {} by mmap and write: {} times",
        time(read.median.unwrap_or(0.0)),
        time(map.median.unwrap_or(0.0)),
        shown(times)
    );
    Judgement::above(times, 1.0, because).with_interval("read_over_mmap", times)
}

fn mmap_explains(cases: &Cases<'_>) -> Judgement {
    let (Some(read), Some(map)) =
        (of(cases, "read-write", WINDOW), of(cases, "mmap-write", WINDOW))
    else {
        return Judgement::inconclusive(NEEDS_BOTH);
    };
    let figure = |case: &Case, name: &str| case.extra.get(name).copied();
    if ![read, map].iter().all(|case| is_steady(case)) {
        return Judgement::inconclusive(
            "the times of the traced writes differ too much from run to run; others were at work",
        );
    }
    let parts = (
        figure(read, "read_ns"),
        figure(map, "map_ns"),
        figure(read, "write_ns"),
        figure(map, "write_ns"),
    );
    let (Some(reads), Some(maps), Some(writes_of_read), Some(writes_of_map)) = parts else {
        return Judgement::inconclusive("it takes runs traced by the bpf observer (iotomy doctor)");
    };
    let delta = read.median.unwrap_or(0.0) - map.median.unwrap_or(0.0);
    let (explained, writes) = (reads - maps, writes_of_map / writes_of_read);
    let because = format!(
        "reads took {} and mmap and munmap {}, a difference of {}, where the copies differ by {}; \
         the writes took {} behind reads and {} from the mapping",
        time(reads),
        time(maps),
        time(explained),
        time(delta),
        time(writes_of_read),
        time(writes_of_map)
    );
    // As near as the article's own: 112 of 144 ms, and writes of 33 ms in both.
    let is_same_writes = (0.9..=1.1).contains(&writes);
    let is_explained = (0.7..=1.3).contains(&(explained / delta));
    Judgement::of(is_same_writes && is_explained, because)
        .with("delta_ns", delta)
        .with("read_less_mmap_ns", explained)
        .with("writes_mmap_over_read", writes)
}

/// Whether the writes of two traced runs took nearly the same.
fn is_steady(case: &Case) -> bool {
    let mut writes = case.extra_samples.get("write_ns").cloned().unwrap_or_default();
    writes.sort_by(f64::total_cmp);
    matches!(writes[..], [least, second, ..] if second <= STEADY * least)
}

fn block_size(cases: &Cases<'_>) -> Judgement {
    let of_mover = cases.named("mover", "read-write");
    let blocks = of_mover.numbers("block");
    let points: Vec<&Case> = blocks.iter().filter_map(|at| of(cases, "read-write", *at)).collect();
    let medians: Vec<f64> = points.iter().filter_map(|case| case.median).collect();
    let best = medians.iter().copied().fold(f64::INFINITY, f64::min);
    let flat = medians.iter().position(|median| *median <= 1.1 * best);
    let (Some(flat), Some(smallest), true) = (flat, points.first(), points.len() > 2) else {
        return Judgement::inconclusive("it takes read-write with three sizes of requests or more");
    };
    let knee = points[flat];
    let block = |case: &Case| number(case, "block").unwrap_or(0) >> 10;
    if flat == 0 {
        let because = format!("requests of {} KiB cost no more than larger ones", block(smallest));
        return Judgement::of(false, because);
    }
    let Some(times) = ratio(knee, smallest) else {
        return Judgement::inconclusive("too few copies to compare");
    };
    let because = format!(
        "requests of {} KiB cost {} times as much as those of {} KiB, past which less than 10 % is \
         gained",
        block(smallest),
        shown(times),
        block(knee)
    );
    Judgement::above(times, 1.0, because)
        .with_interval("smallest_over_knee", times)
        .with("knee_bytes", number(knee, "block").unwrap_or(0))
}
