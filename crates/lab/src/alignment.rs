//! `alignment`: reads and writes of cached bytes, by the alignment of the caller's buffer.
//!
//! The kernel copies with `rep movsb` on processors that report it as fast. Some of these
//! processors are slow when the destination begins less than 32 bytes after a page boundary, and
//! only then: a read into large memory of malloc, which begins 16 bytes after a page boundary,
//! takes three times as long as a read into page-aligned memory. No count of calls shows this, so
//! two programs that make the same calls may differ by it.

use std::fs::File;
use std::hint::black_box;
use std::io::Write;
use std::ops::ControlFlow;
use std::time::Instant;

use iotomy_host::Skip;
use iotomy_host::folder::Folder;
use iotomy_host::room::{check_file_size, check_memory};
use iotomy_record::Case;
use iotomy_record::numbers::bytes;
use iotomy_stats::Interval;
use iotomy_sys::buffer::Aligned;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{pread, pwrite, retry_on_intr};

use crate::harness::claims::{digits, ratio, shown, time};
use crate::harness::{
    Axis, Cases, Claim, Experiment, ExperimentDeclaration, Extra, Fold, Judgement, Needs, Params,
    PreparedExperiment, Sample, Sampling, Takes, Value,
};

/// Bytes of the file that is read and written: more than the private caches of a core hold.
const FILE: usize = 32 << 20;

/// Bytes that a sample reads or writes, or one call's bytes if that is more.
const OF_A_SAMPLE: usize = 4 << 20;

const PAGE: u64 = 4096;

/// The offset at which large memory of the C library's malloc begins, and the next offset one such
/// step further.
const AS_MALLOC: u64 = 16;
const NEXT: u64 = 32;

/// The ratio from which on a difference matters to a program.
const MATTERS: f64 = 1.1;

pub(super) struct Alignment;

static DECLARATION: ExperimentDeclaration = ExperimentDeclaration {
    name: "alignment",
    summary: "reads and writes of cached bytes, by the alignment of the caller's buffer",
    hypothesis: "the time of a copy in the kernel depends on the alignment of the buffer",
    refuted_by: "calls that take the same time at every alignment",
    controls: &[
        "a file in memory (memfd) of 32 MiB, read and written in order from multiples of the block",
        "one buffer, touched beforehand; only the start of the call's part of it differs",
        "the same calls with the same bytes: no count of calls, bytes or faults separates these \
         cases",
    ],
    metric: "time of a call",
    unit: "ns",
    extras: &[Extra {
        name: "rate",
        unit: "bytes/s",
        summary: "bytes read or written a second",
        fold: Fold::Median,
    }],
    axes: &[
        Axis {
            name: "call",
            unit: "",
            summary: "the request: a read into the buffer, or a write from it",
            takes: Takes::Names(&[READ, WRITE]),
            quick: BOTH,
            default: BOTH,
            full: BOTH,
        },
        Axis {
            name: "block",
            unit: "bytes",
            summary: "bytes of a call",
            takes: Takes::Numbers(1, FILE as u64),
            quick: &[Value::N(PAGE), Value::N(64 << 10)],
            default: &[Value::N(PAGE), Value::N(64 << 10), Value::N(1 << 20)],
            full: &[
                Value::N(512),
                Value::N(PAGE),
                Value::N(16 << 10),
                Value::N(64 << 10),
                Value::N(256 << 10),
                Value::N(1 << 20),
            ],
        },
        Axis {
            name: "offset",
            unit: "bytes",
            summary: "offset of the buffer from the start of a page",
            takes: Takes::Numbers(0, PAGE - 1),
            quick: &[Value::N(0), Value::N(AS_MALLOC), Value::N(NEXT)],
            default: &[
                Value::N(0),
                Value::N(8),
                Value::N(AS_MALLOC),
                Value::N(NEXT),
                Value::N(48),
                Value::N(64),
                Value::N(2048),
                Value::N(2064),
            ],
            full: &[
                Value::N(0),
                Value::N(1),
                Value::N(8),
                Value::N(AS_MALLOC),
                Value::N(24),
                Value::N(NEXT),
                Value::N(48),
                Value::N(64),
                Value::N(128),
                Value::N(512),
                Value::N(1024),
                Value::N(2048),
                Value::N(2064),
                Value::N(4080),
            ],
        },
    ],
    along: "offset",
    lines: "block",
    claims: &[
        Claim {
            id: "alignment-malloc",
            source: "iotomy",
            text: "a read into memory 16 bytes after the start of a page, as malloc returns for \
                large sizes, takes longer than one into a page",
            judge: as_malloc,
        },
        Claim {
            id: "alignment-next",
            source: "iotomy",
            text: "a read into memory 32 bytes after the start of a page takes as long as one \
                into a page",
            judge: next,
        },
    ],
    sampling: Sampling { a_visit: 4, least: 24, most: 120, tight: 0.02 },
    man: &["pread(2)", "pwrite(2)", "memfd_create(2)", "posix_memalign(3)", "malloc(3)"],
};

const READ: &str = "read";
const WRITE: &str = "write";
const BOTH: &[Value] = &[Value::S(READ), Value::S(WRITE)];

impl Experiment for Alignment {
    fn declaration(&self) -> &'static ExperimentDeclaration {
        &DECLARATION
    }

    fn probe(&self, _: &Params) -> Result<(), Skip> {
        Ok(())
    }

    fn needs(&self, case: &Params) -> Needs {
        let memory_bytes = FILE as u64 + PAGE + case.number("block");
        Needs { descriptors: 1, memory_bytes, ..Needs::default() }
    }

    fn prepare(&self, cases: &[Params], _: &Folder) -> Result<Box<dyn PreparedExperiment>, Skip> {
        let block = cases.iter().map(|case| length(case, "block")).max().unwrap_or(1);
        check_memory(FILE + block)?;
        check_file_size(FILE as u64)?;
        let file = memfd_create("iotomy-alignment", MemfdFlags::CLOEXEC);
        let mut file = File::from(file.map_err(|e| Skip::refused("memfd_create", e))?);
        let mut buffer = Aligned::new(PAGE as usize + block);
        buffer.fill(1);
        let chunk = vec![1; OF_A_SAMPLE];
        for _ in 0..FILE / OF_A_SAMPLE {
            file.write_all(&chunk).map_err(|e| Skip::refused("write", e))?;
        }
        Ok(Box::new(Copies { file, buffer, at: 0 }))
    }
}

fn length(case: &Params, axis: &str) -> usize {
    usize::try_from(case.number(axis)).unwrap_or(usize::MAX)
}

struct Copies {
    file: File,
    buffer: Aligned,
    /// Position of the next byte in the file.
    at: usize,
}

impl PreparedExperiment for Copies {
    fn visit(
        &mut self,
        case: &Params,
        keep: &mut dyn FnMut(Sample) -> ControlFlow<()>,
    ) -> Result<(), Skip> {
        let (block, offset) = (length(case, "block"), length(case, "offset"));
        let (is_read, calls) = (case.name("call") == READ, (OF_A_SAMPLE / block).max(1));
        // An untimed run first, so that the caches are as this case leaves them.
        self.run(is_read, offset..offset + block, calls)?;
        loop {
            let begun = Instant::now();
            self.run(is_read, offset..offset + block, calls)?;
            let value = begun.elapsed().as_nanos() as f64 / calls as f64;
            let extra = vec![("rate", block as f64 * 1e9 / value.max(1.0))];
            if keep(Sample { value, extra }).is_break() {
                return Ok(());
            }
        }
    }
}

impl Copies {
    fn run(
        &mut self,
        is_read: bool,
        part: std::ops::Range<usize>,
        calls: usize,
    ) -> Result<(), Skip> {
        let part = &mut self.buffer[part];
        for _ in 0..calls {
            if self.at + part.len() > FILE {
                self.at = 0;
            }
            let at = self.at as u64;
            let (call, moved) = match is_read {
                true => ("pread", retry_on_intr(|| pread(&self.file, &mut *part, at))),
                false => ("pwrite", retry_on_intr(|| pwrite(&self.file, &*part, at))),
            };
            let moved = moved.map_err(|e| Skip::refused(call, e))?;
            if moved != part.len() {
                return Err(Skip(format!("{call}: {moved} of {} bytes", part.len())));
            }
            self.at += moved;
        }
        black_box(&*part);
        Ok(())
    }
}

fn as_malloc(cases: &Cases<'_>) -> Judgement {
    judge(cases, AS_MALLOC, Judgement::above)
}

fn next(cases: &Cases<'_>) -> Judgement {
    judge(cases, NEXT, Judgement::below)
}

/// Judges by reads of the largest block; the results for smaller blocks and for writes are added to
/// the text.
fn judge(
    cases: &Cases<'_>,
    offset: u64,
    decide: impl Fn(Interval, f64, String) -> Judgement,
) -> Judgement {
    let beside = |call: &str, block: u64| -> Option<(&Case, &Case, Interval)> {
        let of = cases.named("call", call).at("block", block);
        let (page, other) = (of.at("offset", 0).first()?, of.at("offset", offset).first()?);
        Some((page, other, ratio(page, other)?))
    };
    let blocks = cases.numbers("block");
    let read = blocks.iter().rev().find_map(|block| Some((*block, beside(READ, *block)?)));
    let Some((largest, (page, other, times))) = read else {
        return Judgement::inconclusive(format!(
            "needs reads with the offsets 0 and {offset}, three visits each"
        ));
    };
    let median = |case: &Case| time(case.median.unwrap_or_default());
    let mut because = format!(
        "a read of {} takes {} at the start of a page and {} at {offset} bytes after it, {} times \
         as long",
        bytes(largest.into()),
        median(page),
        median(other),
        shown(times)
    );
    let others = [READ, WRITE].into_iter().flat_map(|call| blocks.iter().map(move |b| (call, *b)));
    for (call, block) in others.filter(|of| *of != (READ, largest)) {
        if let Some((_, _, times)) = beside(call, block) {
            because += &format!("; a {call} of {} {}", bytes(block.into()), digits(times.point));
        }
    }
    decide(times, MATTERS, because).with("block", largest).with_interval("times", times)
}
