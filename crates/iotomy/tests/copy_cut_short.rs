//! Copies that end in the middle: what had reached the target is said, by the error, the record and the
//! explanation, and by all of them the same.

use crate::support;

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Output;

use iotomy_movers::MOVERS;
use iotomy_record::store::parse_copy;
use iotomy_record::{CopyPart, CopyRun};
use support::copying::{Folder, content, refused};
use support::{Need, skip};

/// A run of `iotomy copy` that may make no file larger than so many blocks, of 512 or 1,024 bytes as
/// the shell has it.
fn limited(folder: &Folder, blocks: u32, words: &[&str]) -> Output {
    let mut command = support::bare("sh", &["-c", "ulimit -f $0 && exec \"$@\""]);
    command.arg(blocks.to_string()).args([support::IOTOMY, "copy"]).args(words);
    command.current_dir(folder.path("")).output().unwrap()
}

/// The bytes an error says had been written.
fn stated(said: &str) -> u64 {
    let (before, _) = said.split_once(" bytes").unwrap_or_else(|| panic!("{said}"));
    let number = before.rsplit(' ').next().unwrap().replace(',', "");
    number.parse().unwrap_or_else(|_| panic!("{said}"))
}

#[test]
fn a_limit_on_the_size_of_files_is_an_error_and_no_death() {
    let folder = Folder::new();
    let all = content(3_000_001);
    folder.write("a", &all);
    let mut met = Vec::new();
    for mover in MOVERS.iter().map(|mover| mover.declaration().name) {
        for source in [&["a"][..], &["--count", "3000001", "/dev/zero"]] {
            let words = [&["--json", "record", "--mover", mover][..], source, &["b"]].concat();
            let output = limited(&folder, 1000, &words);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            if output.status.success() || said.contains(&format!(" by {mover}: ")) {
                // It cannot serve this pair, or moves nothing.
                continue;
            }
            let stderr = refused(2, &output);
            if stderr.contains(&format!("to b: {mover}: ")) {
                // All it has is a call that needs the room at once: nothing was written.
                assert!(
                    stderr.contains("File too large") && !folder.path("b").exists(),
                    "{stderr}"
                );
                continue;
            }
            assert!(stderr.contains("cannot write b: File too large after "), "{mover}: {stderr}");
            assert!(stderr.contains("; b is partial; see `ulimit -f`"), "{mover}: {stderr}");
            let written = folder.read("b");
            assert_eq!(stated(&stderr), written.len() as u64, "{mover}: {stderr}");
            assert!(written.len() > 100_000 && written.len() < all.len(), "{mover}: {stderr}");
            assert!(source.len() > 1 || written == all[..written.len()], "{mover}");
            let record = parse_copy(&folder.read("record")).unwrap();
            assert_eq!((record.bytes, record.errors), (written.len() as u64, 1), "{mover}");
            assert_eq!(record.copies[0].mover.as_deref(), Some(mover));
            fs::remove_file(folder.path("b")).unwrap();
            met.push(mover);
        }
    }
    let usual = "read-write splice copy-file-range sendfile mmap-write pipelined parallel";
    assert!(usual.split(' ').all(|mover| met.contains(&mover)), "{met:?}");
}

#[test]
fn a_limit_on_the_size_of_files_leaves_what_an_atomic_copy_would_replace() {
    let folder = Folder::new();
    folder.write("a", content(3_000_001));
    let said = refused(2, &limited(&folder, 1000, &["--atomic", "a", "b"]));
    assert!(said.contains("File too large after ") && said.contains("b was not created"), "{said}");
    assert_eq!(folder.names(), ["a"]);
    folder.write("b", "old");
    let said = refused(2, &limited(&folder, 1000, &["--atomic", "a", "b"]));
    assert!(said.contains("b is unchanged"), "{said}");
    assert_eq!((folder.read("b"), folder.names().len()), (b"old".to_vec(), 2));
    // A record that does not fit is an error too, and the copy is made.
    folder.write("small", "x");
    let stderr = refused(2, &limited(&folder, 0, &["--json", "record", "/dev/null", "c"]));
    assert!(stderr.contains("record: File too large"), "{stderr}");
}

/// Bytes of each extent of data and of each hole behind it.
const EXTENT: usize = 256 * 1024;

/// Four extents of data, a hole behind each but the last.
fn sparse(path: &Path) -> Vec<u8> {
    let data = content(EXTENT);
    let mut all = vec![0; 7 * EXTENT];
    let file = fs::File::create(path).unwrap();
    file.set_len(all.len() as u64).unwrap();
    for at in [0, 2, 4, 6].map(|extent| extent * EXTENT) {
        file.write_all_at(&data, at as u64).unwrap();
        all[at..at + EXTENT].copy_from_slice(&data);
    }
    all
}

/// How many of the first `bytes` are data.
fn data_in(bytes: u64) -> u64 {
    let (pairs, rest) = (bytes / (2 * EXTENT as u64), bytes % (2 * EXTENT as u64));
    pairs * EXTENT as u64 + rest.min(EXTENT as u64)
}

/// Runs a mover under a fault, with a record and an explanation.
fn disturbed(folder: &Folder, mover: &str, inject: &[String], target: &str) -> (Output, CopyRun) {
    // Over an old file a part is rehearsed first, by the same calls.
    let _ = fs::remove_file(folder.path("b"));
    let mut command = support::bare("strace", &["-f", "-qqq", "-o", "/dev/null"]);
    let calls: Vec<_> = inject.iter().map(|inject| inject.split(':').next().unwrap()).collect();
    command.arg("-e").arg(format!("trace={}", calls.join(",")));
    // A probe makes the same calls of other files, and every program reads and writes.
    match calls[..] {
        ["io_uring_enter" | "vmsplice"] => {}
        ["read"] => {
            command.arg("-P").arg(folder.path("a"));
        }
        _ => {
            command.arg("-P").arg(folder.path("b"));
        }
    }
    for inject in inject {
        command.arg("-e").arg(format!("inject={inject}"));
    }
    command.args([support::IOTOMY, "copy", "--explain", "--json", "record"]);
    command.args(["--block-size", "64K", "--mover", mover, "a", target]);
    let output = command.current_dir(folder.path("")).output().unwrap();
    let record = parse_copy(&folder.read("record")).unwrap();
    (output, record)
}

/// What is due of a mover's three figures when so many bytes of data have moved.
fn due(mover: &str, part: &CopyPart) -> (u64, u64, u64) {
    let data = data_in(part.bytes);
    let touched = part.touched_bytes;
    match mover {
        "read-write" | "pipelined" | "io-uring" => (0, 2 * data, data),
        "mmap-write" => (0, data, data),
        "vmsplice" => (part.bytes, part.bytes, part.bytes),
        "sendfile" => (data, data, 0),
        // What the pipe still held has been read and written.
        "splice" => (data - touched, data + touched, touched),
        // Some file systems share, and a file system in memory copies.
        "copy-file-range" | "parallel" => (part.referenced_bytes, data - part.referenced_bytes, 0),
        "direct" => (0, part.copied_bytes, data),
        other => panic!("{other} has no figures here"),
    }
}

#[test]
fn the_figures_of_a_copy_that_failed_in_the_middle_are_those_of_what_had_moved() {
    if !support::has("strace") {
        return;
    }
    let folder = Folder::new();
    let all = sparse(&folder.path("a"));
    for (mover, call, target) in [
        ("read-write", "write", "b"),
        ("read-write", "read", "b"),
        ("splice", "splice", "b"),
        ("copy-file-range", "copy_file_range", "b"),
        ("sendfile", "sendfile", "b"),
        ("mmap-write", "write", "b"),
        ("vmsplice", "vmsplice", "-"),
        ("io-uring", "io_uring_enter", "b"),
        ("direct", "pwrite64", "b"),
        ("pipelined", "write", "b"),
        ("pipelined", "read", "b"),
        ("parallel", "copy_file_range", "b"),
    ] {
        let label = format!("{mover} by {call}");
        let inject = [format!("{call}:error=EIO:when=3")];
        let (output, record) = disturbed(&folder, mover, &inject, target);
        let stderr = String::from_utf8(output.stderr).unwrap();
        if stderr.contains("refused   ") || stderr.contains(&format!(" by {mover}: ")) {
            skip(Need::Machine, &format!("{mover} does not work here"));
            continue;
        }
        assert_eq!(output.status.code(), Some(2), "{label}: {stderr}");
        let arrived = if target == "-" { output.stdout } else { folder.read("b") };
        let part = &record.copies[0];
        let bytes = usize::try_from(part.bytes).unwrap();
        assert!(bytes > 0 && bytes < all.len() && arrived.len() >= bytes, "{label}: {stderr}");
        assert!(arrived[..bytes] == all[..bytes], "{label}");
        let line = stderr.lines().find(|line| line.starts_with("iotomy: ")).unwrap();
        assert!(line.contains("Input/output error after "), "{label}: {line}");
        assert_eq!(stated(line), part.bytes, "{label}: {line}");
        let figures = (part.referenced_bytes, part.copied_bytes, part.touched_bytes);
        assert_eq!(figures, due(mover, part), "{label}: {part:?}");
        let whole = (record.referenced_bytes, record.copied_bytes, record.touched_bytes);
        assert_eq!((whole, record.bytes), (figures, part.bytes), "{label}");
        assert_eq!(part.mover.as_deref(), Some(mover), "{label}");
        assert!(part.error.as_ref().unwrap().contains("Input/output error"), "{label}: {part:?}");
        assert_eq!(record.messages, [line.strip_prefix("iotomy: ").unwrap()], "{label}");
        // The explanation has the same, and so has the saved record, with the error behind it.
        assert!(stderr.contains(&format!("failed    {mover:<16} ")), "{label}: {stderr}");
        let shown = support::iotomy(&["show", folder.path("record").to_str().unwrap()]).output();
        let shown = String::from_utf8(shown.unwrap().stdout).unwrap();
        let explained: Vec<_> = stderr.lines().filter(|other| *other != line).collect();
        let (before, error) = shown.split_once("\nerror     ").unwrap();
        assert_eq!(before.lines().collect::<Vec<_>>(), explained, "{label}");
        assert!(error.starts_with("cannot "), "{label}: {shown}");
    }
}

#[test]
fn a_refusal_after_bytes_have_moved_is_an_error_that_says_so() {
    if !support::has("strace") {
        return;
    }
    let folder = Folder::new();
    let all = sparse(&folder.path("a"));
    for (mover, call) in [("copy-file-range", "copy_file_range"), ("sendfile", "sendfile")] {
        for (errno, word) in [("EXDEV", "cross-device link"), ("EINVAL", "Invalid argument")] {
            let inject = [format!("{call}:error={errno}:when=2")];
            let (output, record) = disturbed(&folder, mover, &inject, "b");
            let stderr = String::from_utf8(output.stderr).unwrap();
            let line = stderr.lines().find(|line| line.starts_with("iotomy: ")).unwrap();
            assert_eq!(output.status.code(), Some(2), "{stderr}");
            let again = "; b is partial; copy it again with --mover read-write";
            assert!(line.contains(word) && line.contains(again), "{line}");
            let bytes = usize::try_from(record.bytes).unwrap();
            // The hole in front of the extent that was refused is there too.
            assert_eq!((stated(line), bytes), (record.bytes, 2 * EXTENT), "{line}");
            assert!(folder.read("b")[..bytes] == all[..bytes]);
            // Before that it is no error, and nobody is the worse for it.
            let inject = [format!("{call}:error={errno}:when=1")];
            let (output, record) = disturbed(&folder, mover, &inject, "b");
            assert_eq!((output.status.code(), record.bytes), (Some(2), 0));
            let tried = &record.copies[0].plan.tried[0];
            assert_eq!(tried.refused.as_ref().unwrap().errno.as_deref(), Some(errno));
        }
    }
}
