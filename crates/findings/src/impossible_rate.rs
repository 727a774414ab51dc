//! Bytes that would have had to go through memory faster than memory goes.
//!
//! Rates are computed per file: a byte that passes through two pipes is one byte, not two. A file
//! read repeatedly from a CPU cache may really be faster than memory, so it is left out.

use iotomy_record::FileKind;
use iotomy_record::Verdict;
use iotomy_record::numbers::{bytes, duration};
use serde_json::json;

use crate::facts::Fact;
use crate::finding::{Copied, FindingDeclaration, Rule, UnnamedFinding};
use crate::known_limits::KnownLimits;
use crate::run::{Flow, NULL, Run, ZERO, rate};
use crate::{by_reference, holes, mapped_untouched};

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "impossible-rate",
    verdict: Verdict::Impossible,
    summary: "the rate is higher than this machine's memory allows",
    description: "The bytes read from or written to one file, divided by the time of the run, \
        exceed the highest of this machine's measured rates (medians) of reading and copying \
        memory by more than a tenth, and by more than three times the interquartile range. The \
        finding names the cause where the record shows it: a null device, a mapping that was not \
        touched, bytes passed on by reference, holes, /dev/zero.",
    facts: &[
        Fact::Files,
        Fact::Calls(&by_reference::CALLS),
        Fact::Calls(&["copy_file_range", "mmap"]),
        Fact::Rings(&by_reference::CALLS),
    ],
    rules: &[Rule::Run(judge), Rule::Copy(judge_copy)],
};

/// No present memory is slower than this: below it, no limit is needed.
const ALWAYS_POSSIBLE: f64 = 1e9;
/// Limits are medians, and an hour ago the machine may have been busier.
const TOLERANCE: f64 = 1.1;
/// CPU caches are smaller: a larger file comes from memory however often it is read.
const BEYOND_CACHES: u64 = 1 << 30;

fn judge(run: &Run<'_>) -> Option<UnnamedFinding> {
    let moved = |flow: &Flow<'_>| flow.read_bytes.max(flow.write_bytes);
    let flow = run.flows.iter().filter(|flow| counts(flow)).max_by_key(|flow| moved(flow))?;
    let moment = TimedBytes { bytes: moved(flow), wall_ns: run.wall_ns, through: &flow.file.path };
    let beyond = moment.is_beyond(run.known_limits())?;
    let mut causes: Vec<String> = [
        mapped_untouched::cause(run),
        null_cause(run, flow),
        by_reference::cause(run),
        holes::cause(run),
        zero_cause(run, moved(flow)),
    ]
    .into_iter()
    .flatten()
    .collect();
    if causes.is_empty() {
        causes.push("the record does not show the cause".to_owned());
    }
    let found = moment.finding(&beyond, &causes);
    let advice = match run.label {
        Some(_) => "make the bytes be read: pipe them to `wc -c`, or use --output pipe",
        None => "make the bytes be read: pipe them to `wc -c`",
    };
    Some(found.advise_command(advice))
}

/// For each source separately: the bytes written after it are counted with their own time.
fn judge_copy(copied: &Copied<'_>) -> Option<UnnamedFinding> {
    copied.record.copies.iter().find_map(|part| {
        let moment =
            TimedBytes { bytes: part.bytes, wall_ns: part.wall_ns as f64, through: &part.source };
        let beyond = moment.is_beyond(copied.limits)?;
        let cause = if part.target == NULL {
            format!("{NULL} discards bytes without reading them")
        } else if part.copied_bytes == 0 && part.referenced_bytes > 0 {
            "nothing was copied: the target got references to the source".to_owned()
        } else if part.copied_bytes < part.bytes {
            format!(
                "only {} were copied: the rest is holes or shared",
                bytes(part.copied_bytes.into())
            )
        } else {
            "the record does not show the cause".to_owned()
        };
        Some(moment.finding(&beyond, &[cause]))
    })
}

/// Bytes, and the time they took.
struct TimedBytes<'a> {
    bytes: u64,
    wall_ns: f64,
    through: &'a str,
}

/// A rate above that of memory.
struct ExcessRate {
    seen: f64,
    read: f64,
    copied: f64,
}

impl TimedBytes<'_> {
    fn is_beyond(&self, limits: &KnownLimits<'_>) -> Option<ExcessRate> {
        let seen = self.bytes as f64 / self.wall_ns.max(1.0) * 1e9;
        if seen < ALWAYS_POSSIBLE {
            return None;
        }
        // Both are looked up, so that both are measured if they are missing.
        let (copied, read) = (limits.spread("memory-copy-all"), limits.spread("memory-read-all"));
        let ((copied, copied_spread), (read, read_spread)) = (copied?, read?);
        let above = |median: f64, spread: f64| (median * TOLERANCE).max(median + 3.0 * spread);
        let ceiling = above(read, read_spread).max(above(copied, copied_spread));
        (seen > ceiling).then_some(ExcessRate { seen, read, copied })
    }

    fn finding(&self, beyond: &ExcessRate, causes: &[String]) -> UnnamedFinding {
        let text = format!(
            "{} went through {} in {} = {}; this machine's memory was measured to be read at {} and copied at {} \
             (medians). {}",
            bytes(self.bytes.into()),
            self.through,
            duration(self.wall_ns),
            rate(beyond.seen),
            rate(beyond.read),
            rate(beyond.copied),
            sentence(&causes.join("; ")),
        );
        let evidence = [
            ("file", json!(self.through)),
            ("bytes", json!(self.bytes)),
            ("wall_ns", json!(self.wall_ns as u64)),
            ("bytes_per_second", json!(beyond.seen as u64)),
            ("ceiling_bytes_per_second", json!(beyond.read.max(beyond.copied) as u64)),
            ("causes", json!(causes)),
        ];
        UnnamedFinding::new(text, evidence)
    }
}

/// Whether the bytes of a file must have come through memory.
fn counts(flow: &Flow<'_>) -> bool {
    match flow.file.kind {
        FileKind::File => {
            let is_reread = |size: u64| flow.read_bytes > size.saturating_add(size / 2);
            let is_rewritten = flow.write_bytes > BEYOND_CACHES;
            match flow.file.size_bytes {
                Some(size) if flow.read_bytes >= flow.write_bytes => {
                    size >= BEYOND_CACHES || !is_reread(size)
                }
                _ => is_rewritten || flow.write_bytes > flow.read_bytes,
            }
        }
        FileKind::Char => flow.file.path == NULL || flow.file.path == ZERO,
        // Bytes through pipes and sockets stay in the CPU's caches.
        _ => false,
    }
}

fn null_cause(run: &Run<'_>, flow: &Flow<'_>) -> Option<String> {
    let discarded = run.discarded_bytes();
    let most = discarded >= flow.read_bytes.max(flow.write_bytes) / 2;
    (most && discarded > 0).then(|| {
        format!(
            "{} went to {NULL}, which discards bytes without reading them",
            bytes(discarded.into())
        )
    })
}

fn zero_cause(run: &Run<'_>, moved: u64) -> Option<String> {
    let zeroes = run.flows.iter().find(|flow| flow.file.path == ZERO)?.read_bytes;
    (zeroes >= moved / 2).then(|| format!("{ZERO} generates its bytes in the CPU's caches"))
}

/// With a capital letter and a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => format!("{}{}", first.to_uppercase(), letters.as_str()),
        None => String::new(),
    }
}
