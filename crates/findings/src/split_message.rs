//! Messages sent in two small writes, and the 40 ms that the second waits for.
//!
//! TCP sends a small segment at once only if nothing before it is unacknowledged (Nagle's algorithm); the receiver, who
//! has half a message and nothing to answer, holds its acknowledgement back for 40 ms (TCP_DELACK_MIN).

use iotomy_record::numbers::{bytes, thousands};
use iotomy_record::{FileKind, FileUse, Process, Verdict};
use serde_json::json;

use crate::facts::Fact;
use crate::finding::{FindingDeclaration, Rule, UnnamedFinding};
use crate::run::Run;

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "split-message",
    verdict: Verdict::Advice,
    summary: "messages in two small writes, each followed by a wait as long as a delayed ACK",
    description: "A program wrote to a TCP connection in small calls (less than 1,448 bytes on \
        average), at least 32 more than it read from it and at least 1.5 for each read, and as many \
        calls as half of the additional writes, at least, that wait for a descriptor or read took \
        39 to 52 ms. That is as long as the second small write waits for the acknowledgement \
        of the first, which the peer delays by 40 ms: without TCP_NODELAY, the kernel holds \
        it back until then.",
    facts: &[Fact::Files, Fact::Calls(&WAITS)],
    rules: &[Rule::Run(judge)],
};

/// Calls in which the next message is waited for.
const WAITS: [&str; 11] = [
    "read",
    "readv",
    "recvfrom",
    "recvmsg",
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
];
const MANY: u64 = 32;
/// The payload of a segment on an Ethernet.
const SMALL: u64 = 1_448;
/// The delay of an acknowledgement, and what a busy machine adds.
const DELAYED_NS: [u64; 2] = [39_000_000, 52_000_000];

/// What one image sent in pieces.
struct Split<'r> {
    image: &'r Process,
    waits: u64,
    writes: u64,
    reads: u64,
    written: u64,
}

fn judge(run: &Run<'_>) -> Option<UnnamedFinding> {
    let images = run.trace.processes.iter().filter_map(|image| of_image(run, image));
    let Split { image, waits, writes, reads, written } = images.max_by_key(|one| one.waits)?;
    let text = format!(
        "{} wrote {} times to TCP connections, {} each, for {} reads from them, and {} of its waits took 39 to 52 ms: as \
         long as the second of two small writes waits for the acknowledgement of the first, which \
         the peer delays by 40 ms",
        image.name(),
        thousands(writes.into()),
        bytes(u128::from(written / writes)),
        thousands(reads.into()),
        thousands(waits.into()),
    );
    let evidence = [
        ("exec", json!(image.exec)),
        ("writes", json!(writes)),
        ("bytes", json!(written)),
        ("reads", json!(reads)),
        ("delayed", json!(waits)),
    ];
    let advice = "send each message by one call (a buffer, or writev), or set TCP_NODELAY (JDK's HTTP server: \
        -Dsun.net.httpserver.nodelay=true)";
    Some(UnnamedFinding::new(text, evidence).advise(advice))
}

fn of_image<'r>(run: &'r Run<'_>, image: &'r Process) -> Option<Split<'r>> {
    let rows = run.of_image(image.pid, &image.exec, image.image);
    let split = rows.files.iter().filter(|file| is_split(file));
    let (mut writes, mut reads, mut written) = (0u64, 0u64, 0u64);
    for file in split {
        writes = writes.saturating_add(file.write_calls);
        reads = reads.saturating_add(file.read_calls);
        written = written.saturating_add(file.write_bytes);
    }
    let calls = rows.calls.iter().filter(|call| WAITS.contains(&&*call.syscall));
    let [low, high] = DELAYED_NS;
    let waits = calls.map(|call| call.wall_times.count_between(low, high));
    let waits = waits.fold(0, u64::saturating_add);
    let more = writes.saturating_sub(reads);
    // More waits than messages are those of a timer.
    let is_it = more >= MANY && waits >= more.div_ceil(2) && waits <= writes;
    is_it.then_some(Split { image, waits, writes, reads, written })
}

/// Whether messages to a TCP connection were written in pieces that are small.
fn is_split(file: &FileUse) -> bool {
    let is_tcp = file.socket.as_ref().is_some_and(|socket| socket.protocol == "tcp");
    file.kind == FileKind::Socket
        && is_tcp
        && file.write_calls > 0
        && file.write_bytes / file.write_calls < SMALL
        && file.write_calls >= file.read_calls.saturating_add(file.read_calls / 2)
}
