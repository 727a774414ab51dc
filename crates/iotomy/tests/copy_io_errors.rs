//! Errors of read(2), write(2), fsync(2) and close(2), which a file system for tests gives where it is told to, as the
//! command tells them. What they do by each mover is tested in `crates/copy`.

use crate::support;

use iotomy_fault_fs::{Fault, FaultFs, Operation};
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

#[test]
fn an_error_of_each_call_is_told_with_what_had_been_written() {
    let all = content(SIZE);
    let folder = Folder::new();
    for (operation, errno, error) in [
        (Operation::Read(AT), Errno::IO, "cannot read a: Input/output error after "),
        (Operation::Write(AT), Errno::NOSPC, "cannot write b: No space left on device after "),
        (Operation::Fsync, Errno::IO, "cannot sync b: Input/output error; "),
        (
            Operation::Close,
            Errno::DQUOT,
            "cannot close b: Disk quota exceeded after 2,500,000 bytes; ",
        ),
    ] {
        let name = if operation == Operation::Read(AT) { "a" } else { "b" };
        let fault = Fault::on(name, operation, errno);
        let Some(mounted) = mount(&[("a", &all), ("b", OLD)], &[fault]) else { return };
        let record = folder.path("record");
        let words = ["--fsync", "--json", record.to_str().unwrap(), "a", "b"];
        let output = folder.command(&words).current_dir(mounted.folder()).output().unwrap();
        let stderr = refused(2, &output);
        assert!(stderr.contains(error), "{stderr}");
        let record = iotomy_record::store::parse_copy(&folder.read("record")).unwrap();
        assert_eq!(format!("iotomy: {}\n", record.messages[0]), stderr);
    }
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
    let stderr = refused(2, &output);
    assert!(stderr.contains(": Input/output error after 999,424 bytes"), "{stderr}");
    assert_eq!(folder.read("log"), [OLD, &all[..999_424]].concat());
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
        let stderr = refused(2, &output);
        let error = "cannot close standard output: No space left on device after 2,500,000 bytes";
        assert!(stderr.contains(error), "{to}: {stderr}");
    }
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
    let stderr = refused(2, &run(&["-e", &inject]));
    assert!(
        stderr.contains("cannot seek in ") && stderr.contains("Input/output error"),
        "{stderr}"
    );
    assert_eq!(folder.read("b"), OLD, "{stderr}");
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
