//! Many small requests in sequence, where few large ones would do.

use iotomy_record::numbers::{bytes, duration, share, thousands};
use iotomy_record::{FileKind, FileUse, Verdict};
use serde_json::json;

use crate::facts::Fact;
use crate::finding::{FindingDeclaration, Rule, UnnamedFinding};
use crate::run::{MIB, NULL, RING_READS, RING_WRITES, Rows, Run, ZERO, is_made_up};

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "small-requests",
    verdict: Verdict::Advice,
    summary: "many small reads or writes in sequence: larger ones would save time",
    description: "A program read or wrote a file, pipe or device in at least 1,000 requests \
        of less than 64 KiB on average, with few seeks. Kernel entry and exit cost at least \
        1 % of the run's time (without the run queue delay of the program) more than with \
        requests of 1 MiB, and at least 1 ms, or 5 ms if the observer inflates times. Reads \
        count only where the bytes returned show the bytes requested: files of at least 1 \
        MiB, block devices and /dev/zero, but not pipes, terminals, procfs and sysfs. Writes \
        count unless the program reads about as often from one of the latter. The rule \
        excludes requests to io_uring, which need no kernel entry each.",
    facts: &[
        Fact::Files,
        Fact::Calls(&READS),
        Fact::Calls(&WRITES),
        Fact::Calls(&JUMPS),
        Fact::Rings(&[]),
        Fact::Ledger,
    ],
    rules: &[Rule::Run(judge)],
};

/// Calls on a file in sequence, and those that move about in it.
pub(crate) const READS: [&str; 2] = ["read", "readv"];
pub(crate) const WRITES: [&str; 2] = ["write", "writev"];
pub(crate) const JUMPS: [&str; 6] =
    ["lseek", "_llseek", "pread64", "preadv", "pwrite64", "pwritev"];
const MANY: u64 = 1_000;
const SMALL: u64 = 64 << 10;
/// Of the run's time: less is not worth a word.
const WORTH: f64 = 0.01;
const WORTH_NS: f64 = 1e6;
const WORTH_OF_INFLATED_NS: f64 = 5e6;

/// One direction of the traffic of one file.
struct FileTraffic<'a> {
    file: &'a FileUse,
    verb: &'static str,
    calls: u64,
    bytes: u64,
}

impl FileTraffic<'_> {
    /// As in `20,000 reads of 512 B`.
    fn what(&self) -> String {
        let each = self.bytes.saturating_add(self.calls / 2) / self.calls.max(1);
        format!("{} {} of {}", thousands(self.calls.into()), self.verb, bytes(each.into()))
    }

    fn preposition(&self) -> &'static str {
        if self.verb == "reads" { "from" } else { "to" }
    }
}

/// Whether a program makes about as many requests the other way, as one does that copies.
fn is_alike(one: &FileTraffic<'_>, other: &FileTraffic<'_>) -> bool {
    let image = |way: &FileTraffic<'_>| (way.file.pid, way.file.image);
    one.verb != other.verb
        && image(one) == image(other)
        && other.calls.abs_diff(one.calls) <= one.calls / 10
}

pub(crate) fn judge(run: &Run<'_>) -> Option<UnnamedFinding> {
    let ways = run.trace.files.iter().flat_map(|file| {
        let reads =
            FileTraffic { file, verb: "reads", calls: file.read_calls, bytes: file.read_bytes };
        let writes =
            FileTraffic { file, verb: "writes", calls: file.write_calls, bytes: file.write_bytes };
        let reads = tells_reads(file).then_some(reads);
        reads.into_iter().chain(takes_writes(file).then_some(writes))
    });
    let small = ways
        .filter(|way| way.calls >= MANY && way.bytes / way.calls < SMALL && way.bytes >= way.calls);
    let mut small: Vec<FileTraffic<'_>> = small
        .filter(|way| is_in_sequence(run, way) && !is_passed_on(run, way) && !is_by_ring(run, way))
        .collect();
    // Of equals the last one, as the writes of a copy: `small-appends` is not made of these, too.
    small.reverse();
    small.sort_by_key(|way| std::cmp::Reverse(way.calls));
    let worst = small.first()?;
    // Limits may have been measured on a busy machine: these calls cost no more than they took on a CPU.
    let each = run.limit("syscall")?.min(on_cpu_each_ns(run, worst).unwrap_or(f64::INFINITY));
    let large = worst.bytes.div_ceil(MIB);
    let (now, then) = (worst.calls as f64 * each, large as f64 * each);
    let saved = now - then;
    let own_ns = run.wall_ns * (1.0 - rows_of(run, worst.file).waiting_share());
    // Times that an observer inflated measure little: then it takes more for a finding.
    let least = match run.trace.observer.times_inflated && run.label.is_none() {
        true => WORTH_OF_INFLATED_NS,
        false => (own_ns * WORTH).max(WORTH_NS),
    };
    if saved < least {
        return None;
    }
    let of_time = match run.trace.observer.times_inflated && run.label.is_none() {
        true => String::new(),
        false => {
            format!(" ({} of the time without run queue delay)", share(now as i128, own_ns as u128))
        }
    };
    let name = run.name_of(worst.file.pid, &worst.file.exec, worst.file.image);
    let text = format!(
        "{} in sequence, {} {} by {}: kernel entry and exit for them cost about {}{}, at \
         {} a call on this machine; with requests of 1 MiB they cost {}",
        worst.what(),
        worst.preposition(),
        worst.file.path,
        name,
        duration(now),
        of_time,
        duration(each),
        duration(then),
    );
    let text = match small[1..].iter().find(|way| is_alike(worst, way)) {
        Some(other) => format!(
            "{text}; {} {} {} cost about as much",
            other.what(),
            other.preposition(),
            other.file.path
        ),
        None => text,
    };
    let evidence = [
        ("file", json!(worst.file.path)),
        ("calls", json!(worst.calls)),
        ("bytes", json!(worst.bytes)),
        ("syscall_ns", json!(each)),
        ("saved_ns", json!(saved as u64)),
    ];
    let found = UnnamedFinding::new(text, evidence);
    Some(match name {
        "dd" => found.advise_command("dd bs=1M, or iotomy copy"),
        other => found
            .advise(format!("use a larger buffer or block size, if {other} has such an option")),
    })
}

/// The rows of the image that used a file.
fn rows_of<'r, 'a>(run: &'r Run<'a>, file: &'a FileUse) -> &'r Rows<'a> {
    run.of_image(file.pid, &file.exec, file.image)
}

/// The mean on-CPU time of an image's calls of these kinds; `None` where it is unknown.
fn on_cpu_each_ns(run: &Run<'_>, way: &FileTraffic<'_>) -> Option<f64> {
    let names = match way.verb {
        "reads" => READS,
        _ => WRITES,
    };
    let of_image = rows_of(run, way.file).calls.iter();
    let of_image = of_image.filter(|call| names.contains(&call.syscall.as_str()));
    let (mut calls, mut on_cpu_ns) = (0u64, 0u64);
    for call in of_image {
        calls = calls.saturating_add(call.calls);
        on_cpu_ns = on_cpu_ns.saturating_add(call.on_cpu_ns?);
    }
    (calls > 0).then(|| on_cpu_ns as f64 / calls as f64)
}

/// Whether the return values of reads are the requested sizes, and not the available bytes.
fn tells_reads(file: &FileUse) -> bool {
    match file.kind {
        FileKind::File => !is_made_up(file) && file.size_bytes.is_some_and(|size| size >= MIB),
        FileKind::Block => true,
        FileKind::Char => file.path == ZERO,
        _ => false,
    }
}

/// Whether writes could be larger: a write to a device, or to a file of procfs or sysfs, may be a
/// message.
fn takes_writes(file: &FileUse) -> bool {
    match file.kind {
        FileKind::File => !is_made_up(file),
        FileKind::Block | FileKind::Pipe => true,
        FileKind::Char => file.path == NULL,
        _ => false,
    }
}

/// Whether the writes are as small as the reads that they pass on (about as many reads from files
/// that do not reveal the request), or go into a pipe of the program's own, as signals do.
fn is_passed_on(run: &Run<'_>, way: &FileTraffic<'_>) -> bool {
    let mut sources = rows_of(run, way.file).files.iter().filter(|file| !tells_reads(file));
    way.verb == "writes"
        && (way.file.kind == FileKind::Pipe && way.file.read_calls > 0
            || sources.any(|file| file.read_calls >= way.calls - way.calls / 4))
}

/// Whether more than a tenth of the requests may be a ring's: to these, entry and exit are not each's.
fn is_by_ring(run: &Run<'_>, way: &FileTraffic<'_>) -> bool {
    let operations = if way.verb == "reads" { &RING_READS[..] } else { &RING_WRITES };
    rows_of(run, way.file).requested(operations).calls > way.calls / 10
}

/// Programs that seek, or use calls with offsets, may jump about.
fn is_in_sequence(run: &Run<'_>, way: &FileTraffic<'_>) -> bool {
    rows_of(run, way.file).total(&JUMPS).calls <= way.calls / 10
}
