//! Errors of read(2), write(2), fsync(2) and close(2), which a file system for tests gives where it is told to: each
//! of them ends `iotomy copy` with a status and an error that name it, by every mover, and `--atomic` leaves the
//! old file whole.

use crate::support;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Output;

use iotomy_fault_fs::{Fault, FaultFs, Operation};
use iotomy_movers::MOVERS;
use rustix::io::Errno;
use support::copying::{Folder, content, refused};
use support::{Need, skip};

/// Bytes of a source, and the byte where it or its copy fails.
const SIZE: usize = 2_500_000;
const AT: u64 = 1_000_000;

/// What a target holds before the copy.
const OLD: &[u8] = b"what was there before";

/// The file system; `None`, said and counted: not to be had here.
fn mount(files: &[(&str, &[u8])], faults: &[Fault]) -> Option<FaultFs> {
    FaultFs::mount(files, faults).map_err(|reason| skip(Need::Fuse, &reason)).ok()
}

/// Every mover that moves something, and the chooser.
fn movers() -> impl Iterator<Item = Option<&'static str>> {
    let declarations = MOVERS.iter().map(|mover| mover.declaration());
    let moving = declarations.filter(|of| !of.calls.is_empty()).map(|of| Some(of.name));
    [None].into_iter().chain(moving)
}

/// `iotomy copy` by a mover.
fn copy(folder: &Folder, mover: Option<&str>, words: &[&str]) -> Output {
    let mover: Vec<_> = mover.into_iter().flat_map(|name| ["--mover", name]).collect();
    folder.run(&[&mover[..], words].concat())
}

/// Whether a mover was refused for this pair before anything was tried.
fn cannot_serve(mover: Option<&str>, output: &Output) -> bool {
    let said = String::from_utf8_lossy(&output.stderr);
    mover.is_some_and(|name| said.contains(&format!(" by {name}: ")))
}

/// Whether all that a mover has is a call that the kernel refused as a whole.
fn is_refused_whole(mover: Option<&str>, said: &str) -> bool {
    let calls = ["ioctl", "fallocate", "copy_file_range"];
    calls.iter().any(|call| said.contains(&format!(": {}: {call}: ", mover.unwrap_or_default())))
}

/// What the kernel says of an error.
fn text(errno: Errno) -> String {
    let said = std::io::Error::from(errno).to_string();
    said[..said.find(" (os error").unwrap()].to_owned()
}

/// The bytes an error says had been written.
fn stated(said: &str) -> usize {
    let (before, _) = said.split_once(" bytes").unwrap_or_else(|| panic!("{said}"));
    let number = before.rsplit(' ').next().unwrap().replace(',', "");
    number.parse().unwrap_or_else(|_| panic!("{said}"))
}

/// How often each mover met the fault that a test is about.
#[derive(Default)]
struct FaultCounts(BTreeMap<Option<&'static str>, usize>);

impl FaultCounts {
    fn add(&mut self, mover: Option<&'static str>) {
        *self.0.entry(mover).or_default() += 1;
    }

    /// Says which movers serve no pair of this test; the usual ones do.
    fn check(&self, without: &[&str]) {
        let usual = ["read-write", "splice", "copy-file-range", "sendfile", "mmap-write"];
        let usual = usual.into_iter().chain(["vmsplice", "pipelined", "parallel"]).map(Some);
        for mover in [None].into_iter().chain(usual) {
            let is_meant = !mover.is_some_and(|name| without.contains(&name));
            assert!(!is_meant || self.0.contains_key(&mover), "{mover:?} never met the fault");
        }
        for mover in movers().filter(|mover| !self.0.contains_key(mover)) {
            let reason = format!("{} does not serve these pairs", mover.unwrap_or("the chooser"));
            skip(Need::Machine, &reason);
        }
    }
}

#[test]
fn a_read_error_is_not_the_end_by_any_mover() {
    let all = content(SIZE);
    let mut met = FaultCounts::default();
    for errno in [Errno::IO, Errno::STALE, Errno::NOMEM] {
        let faults = [Fault::on("a", Operation::Read(AT), errno)];
        let Some(mounted) = mount(&[("a", &all)], &faults) else { return };
        let (folder, a, beside) = (Folder::new(), mounted.path("a"), mounted.path("b"));
        let (a, beside) = (a.to_str().unwrap(), beside.to_str().unwrap());
        for mover in movers() {
            for (words, b) in [
                (&[a, "b"][..], "b"),
                (&["--append", a, "b"], "b"),
                (&["--atomic", a, "b"], "b"),
                // Of the same file system, which copy_file_range(2) may want.
                (&[a, beside], beside),
                (&["--atomic", a, beside], beside),
                (&[a, "-"], "-"),
            ] {
                if b != "-" {
                    fs::write(folder.path(b), OLD).unwrap();
                }
                let times = mounted.times(0);
                let output = copy(&folder, mover, words);
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                if cannot_serve(mover, &output) || is_refused_whole(mover, &said) {
                    continue;
                }
                let label = format!("{mover:?} {words:?}");
                let said = refused(2, &output);
                let error = format!("cannot read {a}: {} after ", text(errno));
                assert!(said.contains(&error), "{label}: {said}");
                assert!(mounted.times(0) > times, "{label}");
                met.add(mover);
                let moved = &all[..stated(&said)];
                let expected = match words {
                    ["--append", ..] => [OLD, moved].concat(),
                    ["--atomic", ..] => OLD.to_vec(),
                    _ => moved.to_vec(),
                };
                let arrived = if b == "-" { output.stdout } else { folder.read(b) };
                // Movers that work at several places may have written behind the failure.
                assert!(arrived.starts_with(&expected), "{label}: {} bytes: {said}", arrived.len());
                assert_eq!(folder.names(), ["b"], "{label}");
                assert!(names(mounted.folder()).len() <= 2, "{label}");
            }
        }
    }
    met.check(&[]);
}

#[test]
fn a_read_error_is_not_the_end_of_what_the_shell_appends() {
    let all = content(SIZE);
    let faults = [Fault::on("a", Operation::Read(AT), Errno::IO)];
    let Some(mounted) = mount(&[("a", &all)], &faults) else { return };
    let folder = Folder::new();
    folder.write("log", OLD);
    let script = "exec \"$0\" copy \"$1\" - >> log";
    let mut shell = support::bare("sh", &["-c", script, support::IOTOMY]);
    let output = shell.arg(mounted.path("a")).current_dir(folder.path("")).output().unwrap();
    let said = refused(2, &output);
    assert!(said.contains(": Input/output error after 999,424 bytes"), "{said}");
    assert_eq!(folder.read("log"), [OLD, &all[..999_424]].concat());
}

/// Copies by every mover and from every kind of source, over an old file `b` of a file system with this fault;
/// gives each error to `check`, with the path of `b`. Returns who met the fault.
fn over_old_files(
    options: &[&str],
    fault: &Fault,
    mut check: impl FnMut(&str, &FaultFs, &str),
) -> Option<FaultCounts> {
    let folder = Folder::new();
    let all = content(SIZE);
    folder.write("a", &all);
    let mut met = FaultCounts::default();
    for mover in movers() {
        // A file, one of the same file system, and where a mover takes no file, zeros.
        for source in ["a", "beside", "/dev/zero"] {
            let mounted = mount(&[("b", OLD), ("beside", &all)], std::slice::from_ref(fault))?;
            let (a, b) = (mounted.path("beside"), mounted.path("b"));
            let a = if source == "beside" { a.to_str().unwrap() } else { source };
            let words = [options, &["--count", "2500000", a, b.to_str().unwrap()]].concat();
            let output = copy(&folder, mover, &words);
            let label = format!("{mover:?} {options:?} {source:?}");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            if cannot_serve(mover, &output) || is_refused_whole(mover, &said) {
                // Nothing was written.
                assert_eq!(fs::read(&b).unwrap(), OLD, "{label}: {said}");
                continue;
            }
            let said = refused(2, &output);
            assert!(mounted.times(0) > 0, "{label}: {said}");
            met.add(mover);
            check(&said, &mounted, &label);
        }
    }
    Some(met)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

/// What vmsplice writes to is a pipe, and zeros have no extents to share.
const NO_FILES: [&str; 1] = ["vmsplice"];

#[test]
fn a_write_error_is_told_with_what_had_been_written_by_every_mover() {
    for errno in [Errno::NOSPC, Errno::DQUOT, Errno::IO] {
        let fault = Fault::elsewhere("beside", Operation::Write(AT), errno);
        let met = over_old_files(&[], &fault, |said, mounted, label| {
            let b = mounted.path("b").display().to_string();
            let is_named = said.contains(&format!("cannot write {b}: "))
                || (errno == Errno::IO && said.contains(&format!("to {b}: ")));
            assert!(is_named && said.contains(&text(errno)), "{label}: {said}");
            let size = usize::try_from(fs::metadata(&b).unwrap().len()).unwrap();
            assert!(size >= stated(said) && size < SIZE, "{label}: {size}: {said}");
            assert!(said.contains("is partial"), "{label}: {said}");
        });
        let Some(met) = met else { return };
        met.check(&NO_FILES);
        if errno == Errno::DQUOT {
            continue;
        }
        let met = over_old_files(&["--atomic"], &fault, |said, mounted, label| {
            assert!(said.contains(&text(errno)), "{label}: {said}");
            assert!(said.contains("is unchanged"), "{label}: {said}");
            assert_eq!(fs::read(mounted.path("b")).unwrap(), OLD, "{label}");
            assert_eq!(names(mounted.folder()), ["b", "beside"], "{label}");
        });
        met.unwrap().check(&NO_FILES);
    }
}

#[test]
fn an_error_of_fsync_is_told_and_keeps_the_old_file() {
    let fault = Fault::elsewhere("beside", Operation::Fsync, Errno::IO);
    for options in [&["--fsync"][..], &["--fsync", "--atomic"]] {
        let met = over_old_files(options, &fault, |said, mounted, label| {
            let b = mounted.path("b");
            let error = format!("cannot sync {}: Input/output error", b.display());
            assert!(said.contains(&error), "{label}: {said}");
            let is_old = fs::read(b).unwrap() == OLD;
            assert_eq!(is_old, options.contains(&"--atomic"), "{label}: {said}");
            assert_eq!(names(mounted.folder()), ["b", "beside"], "{label}");
        });
        let Some(met) = met else { return };
        met.check(&NO_FILES);
    }
}

#[test]
fn an_error_of_close_is_told_by_every_mover_and_keeps_the_old_file() {
    for (options, errno) in [
        (&[][..], Errno::NOSPC),
        (&["--fsync"], Errno::IO),
        (&["--atomic"], Errno::DQUOT),
        (&["--atomic", "--fsync"], Errno::NOSPC),
    ] {
        let fault = Fault::elsewhere("beside", Operation::Close, errno);
        let met = over_old_files(options, &fault, |said, mounted, label| {
            let b = mounted.path("b");
            let is_atomic = options.contains(&"--atomic");
            // What is written past the page cache goes through a descriptor of its own, and the rest after it.
            let (state, least) = match label.starts_with("Some(\"direct\")") {
                _ if is_atomic => ("is unchanged", SIZE - 4096),
                true => ("is partial", SIZE - 4096),
                false => ("may be incomplete", SIZE),
            };
            let error = format!("cannot close {}: {} after ", b.display(), text(errno));
            assert!(said.contains(&error) && said.contains(state), "{label}: {said}");
            assert!((least..=SIZE).contains(&stated(said)), "{label}: {said}");
            assert_eq!(fs::read(b).unwrap() == OLD, is_atomic, "{label}");
            assert_eq!(names(mounted.folder()), ["b", "beside"], "{label}");
        });
        let Some(met) = met else { return };
        met.check(&NO_FILES);
    }
}

#[test]
fn an_error_of_closing_is_told_of_new_files_parts_and_files_in_a_folder() {
    let faults = [Fault::everywhere(Operation::Close, Errno::DQUOT)];
    let folder = Folder::new();
    folder.write("a", "content");
    for (options, name) in [
        (&[][..], "new"),
        (&["--preserve"], "new"),
        (&["--append"], "b"),
        (&["--seek", "3"], "b"),
        (&["--verify"], "b"),
        (&["--sparse", "always"], "b"),
        (&[], ""),
    ] {
        let Some(mounted) = mount(&[("b", OLD)], &faults) else { return };
        let (target, name) = (mounted.path(name), if name.is_empty() { "a" } else { name });
        let words = [options, &["--json", "record", "a", target.to_str().unwrap()]].concat();
        let said = folder.refuse(2, &words);
        let error = format!("cannot close {}: Disk quota exceeded", mounted.path(name).display());
        assert!(said.contains(&error), "{options:?}: {said}");
        let record = iotomy_record::store::parse_copy(&folder.read("record")).unwrap();
        assert_eq!((record.bytes, record.errors), (7, 1), "{options:?}");
        assert!(record.messages[0].starts_with("cannot close "), "{:?}", record.messages);
    }
}

#[test]
fn an_error_of_closing_standard_output_is_told() {
    let faults = [Fault::on("b", Operation::Close, Errno::NOSPC)];
    let folder = Folder::new();
    folder.write("a", content(SIZE));
    for to in [">", ">>", "1<>"] {
        let Some(mounted) = mount(&[("b", OLD)], &faults) else { return };
        let script = format!("exec \"$0\" copy a - {to} \"$1\"");
        let mut shell = support::bare("sh", &["-c", &script, support::IOTOMY]);
        let output = shell.arg(mounted.path("b")).current_dir(folder.path("")).output().unwrap();
        let said = refused(2, &output);
        let error = "cannot close standard output: No space left on device after 2,500,000 bytes";
        assert!(said.contains(error), "{to}: {said}");
    }
}

#[test]
fn an_error_of_closing_the_source_is_told_and_keeps_the_old_file() {
    let all = content(SIZE);
    let faults = [Fault::on("a", Operation::Close, Errno::STALE)];
    let Some(mounted) = mount(&[("a", &all)], &faults) else { return };
    let (folder, a, beside) = (Folder::new(), mounted.path("a"), mounted.path("b"));
    let (a, beside) = (a.to_str().unwrap(), beside.to_str().unwrap());
    folder.write("small", "small");
    let mut met = FaultCounts::default();
    for mover in movers() {
        for (words, b) in [
            (&[a, "b"][..], "b"),
            (&["--atomic", a, "b"], "b"),
            (&["--concat", a, "small", "b"], "b"),
            (&[a, beside], beside),
            (&[a, "-"], "-"),
        ] {
            if b != "-" {
                fs::write(folder.path(b), OLD).unwrap();
            }
            let output = copy(&folder, mover, words);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            // Of several sources only those can be tried with that cannot be refused.
            let is_untried = said.contains("only a single source can be");
            if cannot_serve(mover, &output) || is_refused_whole(mover, &said) || is_untried {
                continue;
            }
            let label = format!("{mover:?} {words:?}");
            let said = refused(2, &output);
            let error = format!("cannot close {a}: Stale file handle after 2,500,000 bytes; ");
            assert!(said.contains(&error), "{label}: {said}");
            met.add(mover);
            let state = match words[0] {
                "--atomic" => "b is unchanged",
                "--concat" => "b is partial",
                _ => "holds everything that was read",
            };
            assert!(said.contains(state), "{label}: {said}");
            let arrived = if b == "-" { output.stdout } else { folder.read(b) };
            let expected = if words[0] == "--atomic" { OLD } else { &all };
            assert!(arrived == expected, "{label}");
        }
    }
    met.check(&[]);
}

#[test]
fn a_copy_inside_the_kernel_that_moves_nothing_in_the_middle_is_not_the_end() {
    let all = content(SIZE);
    let faults = [Fault::silent("a", Operation::CopyRange(AT))];
    let Some(mounted) = mount(&[("a", &all)], &faults) else { return };
    let (folder, a, b) = (Folder::new(), mounted.path("a"), mounted.path("b"));
    let words = [a.to_str().unwrap(), b.to_str().unwrap()];
    for mover in ["copy-file-range", "parallel"] {
        let output = copy(&folder, Some(mover), &words);
        assert!(output.status.success() && output.stderr.is_empty(), "{mover}: {output:?}");
        assert!(fs::read(&b).unwrap() == all, "{mover}");
    }
    assert!(mounted.times(0) >= 2);
}

#[test]
fn an_error_of_going_back_after_the_trial_is_told_before_the_target_is_emptied() {
    if !support::has("strace") {
        return;
    }
    let folder = Folder::new();
    folder.write("a", content(SIZE));
    let run = |inject: &[&str]| {
        folder.write("b", OLD);
        let mut command =
            support::bare("strace", &["-f", "-qqq", "-o", "log", "-e", "trace=lseek"]);
        command.arg("-P").arg(folder.path("a"));
        command.args(inject).args([support::IOTOMY, "copy", "--sparse", "never"]);
        command.args(["--mover", "splice"]).arg(folder.path("a")).arg("b");
        command.current_dir(folder.path("")).output().unwrap()
    };
    assert!(run(&[]).status.success());
    let log = String::from_utf8(folder.read("log")).unwrap();
    let back = log.lines().position(|line| line.contains(", 0, SEEK_SET)")).expect("it goes back");
    let inject = format!("inject=lseek:error=EIO:when={}", back + 1);
    let said = refused(2, &run(&["-e", &inject]));
    assert!(said.contains("cannot seek in ") && said.contains("Input/output error"), "{said}");
    assert_eq!(folder.read("b"), OLD, "{said}");
}

#[test]
fn a_page_that_cannot_be_mapped_is_read_plainly() {
    if !support::has("strace") {
        return;
    }
    let folder = Folder::new();
    let all = content(SIZE);
    folder.write("a", &all);
    let mut command = support::bare("strace", &["-f", "-qqq", "-o", "log", "-e", "trace=write"]);
    command.arg("-P").arg(folder.path("b"));
    command.args(["-e", "inject=write:error=EFAULT:when=1", support::IOTOMY, "copy"]);
    command.args(["--mover", "mmap-write", "--json", "record", "a", "b"]);
    let output = command.current_dir(folder.path("")).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    assert!(folder.read("b") == all);
    // The first page was copied twice, the others once.
    let record = iotomy_record::store::parse_copy(&folder.read("record")).unwrap();
    let size = SIZE as u64;
    assert_eq!((record.copied_bytes, record.touched_bytes), (size + 4096, size));
}

#[test]
fn an_error_of_looking_for_holes_is_told_and_a_file_system_that_cannot_look_is_none() {
    let all = content(SIZE);
    let folder = Folder::new();
    for (errno, is_error) in [(Errno::IO, true), (Errno::OPNOTSUPP, false)] {
        let faults = [Fault::on("a", Operation::Seek, errno)];
        let Some(mounted) = mount(&[("a", &all)], &faults) else { return };
        let (a, beside) = (mounted.path("a"), mounted.path("b"));
        let (a, beside) = (a.to_str().unwrap(), beside.to_str().unwrap());
        let mut met = FaultCounts::default();
        for mover in movers() {
            for b in ["b", beside] {
                fs::write(folder.path(b), OLD).unwrap();
                let output = copy(&folder, mover, &["--atomic", a, b]);
                let said = String::from_utf8_lossy(&output.stderr).into_owned();
                if cannot_serve(mover, &output) || is_refused_whole(mover, &said) {
                    continue;
                }
                let label = format!("{mover:?} to {b}: {output:?}");
                met.add(mover);
                if is_error {
                    let said = refused(2, &output);
                    let error = format!("cannot read {a}: Input/output error after 0 bytes");
                    assert!(said.contains(&error), "{label}");
                    assert_eq!(folder.read(b), OLD, "{label}");
                } else {
                    assert!(output.status.success() && folder.read(b) == all, "{label}");
                }
            }
        }
        assert!(mounted.times(0) > 0);
        met.check(&NO_FILES);
    }
}

#[test]
fn a_file_that_would_block_for_ever_is_an_error() {
    if !support::has("timeout") {
        return;
    }
    let all = content(SIZE);
    let faults = [
        Fault::on("a", Operation::Read(AT), Errno::AGAIN),
        Fault::on("b", Operation::Write(AT), Errno::AGAIN),
    ];
    let Some(mounted) = mount(&[("a", &all), ("good", &all), ("b", OLD)], &faults) else { return };
    let mut met = FaultCounts::default();
    for mover in movers() {
        for words in [["a", "new"], ["good", "b"], ["a", "-"], ["-", "b"]] {
            let script = "cat good | timeout 50 \"$@\"";
            let mut command = support::bare("sh", &["-c", script, "sh", support::IOTOMY, "copy"]);
            command.args(mover.into_iter().flat_map(|name| ["--mover", name])).args(words);
            let output = command.current_dir(mounted.folder()).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            if cannot_serve(mover, &output) || is_refused_whole(mover, &said) {
                continue;
            }
            let said = refused(2, &output);
            let label = format!("{mover:?} {words:?}");
            assert!(said.contains(&format!("{} after ", text(Errno::AGAIN))), "{label}: {said}");
            met.add(mover);
        }
    }
    met.check(&[]);
}
