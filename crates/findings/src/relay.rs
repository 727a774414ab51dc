//! Bytes carried through a program's own memory from one descriptor to another.

use iotomy_record::numbers::{bytes, counted};
use iotomy_record::{FileKind, FileUse, Process, Verdict};
use serde_json::json;

use crate::facts::Fact;
use crate::finding::{FindingDeclaration, Rule, UnnamedFinding};
use crate::run::{MIB, NULL, RING_READS, RING_WRITES, Rows, Run, ZERO, is_library};

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "relay",
    verdict: Verdict::Advice,
    summary: "a program relayed bytes through its own memory from one descriptor to another",
    description: "A program read at least 8 MiB from one file, pipe or socket and wrote as \
        many to one other and less than a tenth of that elsewhere, by read and write in \
        about as many calls or requests to io_uring, with too little user time to inspect \
        every byte (at most 2 ms, 0.05 ns a byte, 300 ns a call, and the overhead of a \
        call). Or it read as much from files and wrote as many bytes, within a tenth, to sockets, \
        with as little user time, or, from 128 MiB in calls of 16 KiB on, 40 ms and 1 µs a call more. If they are the same bytes, the kernel can move them without the program. The \
        rule excludes iotomy copy.",
    facts: &[
        Fact::Files,
        Fact::Calls(&READS),
        Fact::Calls(&WRITES),
        Fact::Rings(&[]),
        Fact::Ledger,
    ],
    rules: &[Rule::Run(judge)],
};

const WORTH: u64 = 8 * MIB;
const READS: [&str; 5] = ["read", "readv", "pread64", "recvfrom", "recvmsg"];
const WRITES: [&str; 5] = ["write", "writev", "pwrite64", "sendto", "sendmsg"];

fn judge(run: &Run<'_>) -> Option<UnnamedFinding> {
    to_one(run).or_else(|| to_sockets(run))
}

/// From one file, pipe or socket to another.
fn to_one(run: &Run<'_>) -> Option<UnnamedFinding> {
    let images = run.trace.processes.iter().filter(|image| image.exec != "iotomy");
    let relays = images.filter_map(|image| {
        let rows = run.of_image(image.pid, &image.exec, image.image);
        let files = || rows.files.iter().copied().filter(|file| is_end(file));
        let from = files().max_by_key(|file| file.read_bytes)?;
        let to = files().max_by_key(|file| file.write_bytes)?;
        let (read, written) = (from.read_bytes, to.write_bytes);
        let elsewhere = |target: &str| {
            let others = files().filter(|file| file.path != target);
            others.map(|file| file.write_bytes).fold(0, u64::saturating_add)
        };
        let by_hand = |calls: &[&str], requests: &[&str]| {
            rows.total(calls).bytes.saturating_add(rows.requested(requests).bytes)
        };
        let (reads, writes) = (by_hand(&READS, &RING_READS), by_hand(&WRITES, &RING_WRITES));
        let is_relay = read >= WORTH
            && read == written
            && from.read_calls.abs_diff(to.write_calls) <= from.read_calls / 4
            && from.path != to.path
            // Bytes that are written twice (tee) are carried for more than one target.
            && elsewhere(to.path.as_str()) <= written / 10
            && user_ns(rows, image) <= carrying_ns(run, from.read_calls.saturating_add(to.write_calls), from.read_bytes)
            && reads >= read / 10 * 9
            && writes >= written / 10 * 9;
        is_relay.then_some((image, from, to))
    });
    let (image, from, to) = relays.max_by_key(|(_, from, _)| from.read_bytes)?;
    let text = format!(
        "{} read {} from {} and wrote as many to {} through its own memory: if they are the same \
         bytes, {} moves them without it",
        image.name(),
        bytes(from.read_bytes.into()),
        from.path,
        to.path,
        mover(from, to),
    );
    let evidence = [
        ("exec", json!(image.exec)),
        ("from", json!(from.path)),
        ("to", json!(to.path)),
        ("bytes", json!(from.read_bytes)),
    ];
    let found = UnnamedFinding::new(text, evidence);
    Some(match line(from, to) {
        Some(line) => found.advise_command(line),
        None => found,
    })
}

/// From files to sockets: a server of files.
fn to_sockets(run: &Run<'_>) -> Option<UnnamedFinding> {
    let images = run.trace.processes.iter().filter(|image| image.exec != "iotomy");
    let servers = images.filter_map(|image| {
        let rows = run.of_image(image.pid, &image.exec, image.image);
        let sum = |kind: FileKind, part: fn(&FileUse) -> u64| {
            let those =
                rows.files.iter().filter(|file| file.kind == kind && !is_library(&file.path));
            those.map(|file| part(file)).fold(0, u64::saturating_add)
        };
        let (read, reads) =
            (sum(FileKind::File, |f| f.read_bytes), sum(FileKind::File, |f| f.read_calls));
        let (sent, sends) =
            (sum(FileKind::Socket, |f| f.write_bytes), sum(FileKind::Socket, |f| f.write_calls));
        let by_hand =
            rows.total(&READS).bytes >= read && rows.total(&WRITES).bytes >= sent / 10 * 9;
        let is_server = read >= WORTH
            && sent.abs_diff(read) <= read / 10
            && reads.abs_diff(sends) <= reads / 2
            && sum(FileKind::File, |f| f.write_bytes) <= sent / 10
            && user_ns(rows, image)
                <= carrying_ns(run, reads.saturating_add(sends), read)
                    .saturating_add(interpreter_ns(reads.saturating_add(sends), read))
            && by_hand;
        let files = rows.files.iter().filter(|f| f.kind == FileKind::File && f.read_bytes > 0);
        is_server.then(|| (image, read, sent, files.count()))
    });
    let (image, read, sent, files) = servers.max_by_key(|(_, read, ..)| *read)?;
    let text = format!(
        "{} read {} from {} and wrote {} to sockets through its own memory: if they are the same bytes, sendfile \
         moves them without it",
        image.name(),
        bytes(read.into()),
        counted(files as u128, "file", "files"),
        bytes(sent.into()),
    );
    let evidence = [("exec", json!(image.exec)), ("bytes", json!(read)), ("sent", json!(sent))];
    let advice = match image.program() {
        "nginx" => "sendfile on",
        _ => "send files by sendfile, or by splice over a pipe",
    };
    Some(UnnamedFinding::new(text, evidence).advise(advice))
}

/// The time of an image outside calls.
fn user_ns(rows: &Rows<'_>, image: &Process) -> u64 {
    let of_image = rows.ledger.iter().map(|row| row.user_ns);
    // Without a ledger there are ticks of the kernel.
    of_image.reduce(u64::saturating_add).unwrap_or(image.user_ns)
}

/// The user time of a program that starts, makes so many calls, and reads no byte; a program that reads
/// each byte (tr, a cipher) needs more.
fn carrying_ns(run: &Run<'_>, calls: u64, bytes: u64) -> u64 {
    // Part of the observer's overhead is user time.
    let a_call = 300.0 + run.trace.observer.cost_ns_per_call;
    (2e6 + calls as f64 * a_call + bytes as f64 / 20.0) as u64
}

/// The start of an interpreter, and its code around the calls, where that is less time than to read so many bytes.
fn interpreter_ns(calls: u64, bytes: u64) -> u64 {
    match bytes >= 128 * MIB && bytes / calls.max(1) >= 16 << 10 {
        true => calls.saturating_mul(1_000).saturating_add(40_000_000),
        false => 0,
    }
}

/// The line that does the same, where it is known to: of two files, all of one into a new one.
fn line(from: &FileUse, to: &FileUse) -> Option<String> {
    let is_file = |file: &FileUse| file.kind == FileKind::File;
    let is_whole = !is_file(from) || from.size_bytes == Some(from.read_bytes);
    let is_new = !is_file(to) || to.size_bytes == Some(0);
    (is_whole && is_new).then(|| Some(format!("iotomy copy {} {}", word(from)?, word(to)?)))?
}

fn is_end(file: &FileUse) -> bool {
    let kinds = [FileKind::File, FileKind::Pipe, FileKind::Socket, FileKind::Block];
    kinds.contains(&file.kind) && file.path != NULL && file.path != ZERO
}

/// The mover that does without.
fn mover(from: &FileUse, to: &FileUse) -> &'static str {
    let shares = ["btrfs", "xfs", "bcachefs"];
    let on = from.file_system.as_deref().unwrap_or_default();
    match (from.kind, to.kind) {
        (FileKind::File, FileKind::Socket) => "sendfile",
        (FileKind::File, FileKind::File)
            if from.file_system == to.file_system && shares.contains(&on) =>
        {
            "copy-file-range"
        }
        _ => "splice",
    }
}

/// The name as a word for a shell; unnamed files are standard input or output. `None` for a name
/// that is not a plain text.
fn word(file: &FileUse) -> Option<String> {
    if file.kind != FileKind::File && file.kind != FileKind::Block {
        return Some("-".to_owned());
    }
    if file.path.chars().any(|c| c.is_control() || c == char::REPLACEMENT_CHARACTER) {
        return None;
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@%".contains(c);
    if file.path.chars().all(plain) {
        return Some(file.path.clone());
    }
    Some(format!("'{}'", file.path.replace('\'', "'\\''")))
}
