//! Memory and threads that are refused to a copy, and how windows are mapped.

use crate::support;

use std::fs::{self, File};
use std::process::{Command, Output};

use support::copying::{Folder, content, refused};
use support::{IOTOMY, Need, bare, has, skip};

/// KiB of addresses that are enough for everything but a block of a GiB.
const LITTLE: u32 = 400_000;

/// Copies with so many KiB of addresses.
fn within(kib: u32, folder: &Folder, words: &[&str]) -> Output {
    let script = format!("ulimit -v {kib}; exec \"$0\" copy \"$@\"");
    let mut shell = Command::new("sh");
    shell.args(["-c", &script, IOTOMY]).args(words).current_dir(folder.path(""));
    shell.output().unwrap()
}

#[test]
fn memory_that_is_refused_is_an_error_before_the_target_is_touched() {
    let folder = Folder::new();
    File::create(folder.path("large")).unwrap().set_len(3 << 30).unwrap();
    for mover in ["io-uring", "direct", "read-write", "pipelined", "parallel"] {
        folder.write("y", "old");
        let output =
            within(LITTLE, &folder, &["--mover", mover, "--block-size", "1G", "large", "y"]);
        let stderr = refused(2, &output);
        assert!(stderr.contains("memory") && stderr.contains("--block-size"), "{mover}: {stderr}");
        assert!(!stderr.contains("memory allocation"), "{mover}: {stderr}");
        assert_eq!(folder.read("y"), b"old", "{mover}");
        // A new file is not left behind.
        let zeros = ["--mover", mover, "--block-size", "1G", "--count", "3G", "/dev/zero", "new"];
        refused(2, &within(LITTLE, &folder, &zeros));
        assert!(!folder.path("new").exists(), "{mover}");
    }
}

#[test]
fn what_is_left_to_the_end_takes_no_more_than_there_is() {
    let folder = Folder::new();
    File::create(folder.path("a")).unwrap().set_len(128 << 20).unwrap();
    // Two blocks of the ring fit, and no third for what the source may have grown by.
    let words = ["--mover", "io-uring", "--sparse", "never", "--block-size", "64M", "a", "b"];
    // The program itself takes 15 to 75 MiB of these.
    let output = within(210_000, &folder, &words);
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("io_uring_setup") {
        skip(Need::IoUring, &stderr);
        return;
    }
    assert!(output.status.success(), "{stderr}");
    assert_eq!(fs::metadata(folder.path("b")).unwrap().len(), 128 << 20);
}

#[test]
fn a_large_file_is_copied_by_one_thread_where_a_second_is_refused() {
    if std::thread::available_parallelism().unwrap().get() < 2 {
        return skip(Need::Machine, "two threads are not tried on one CPU");
    }
    if !has("strace") {
        return;
    }
    let folder = Folder::new();
    let all = vec![b'a'; 64 << 20];
    folder.write("a", &all);
    let words = ["copy", "--explain", "--reflink", "never", "a", "b"];
    for (errno, tried) in
        [("EAGAIN", "refused   pipelined"), ("EAGAIN:when=100", "chosen    pipelined")]
    {
        let mut refusing = bare("strace", &["-f", "-qqq", "-o", "/dev/null", "-e"]);
        refusing
            .arg("trace=clone,clone3")
            .args(["-e", &format!("inject=clone,clone3:error={errno}")]);
        refusing.arg(IOTOMY).args(words).current_dir(folder.path(""));
        let output = refusing.output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success() && stderr.contains(tried), "{errno}: {stderr}");
        assert!(folder.read("b") == all, "{errno}");
        fs::remove_file(folder.path("b")).unwrap();
    }
}

#[test]
fn windows_are_mapped_as_the_options_say() {
    let folder = Folder::new();
    let all = content(9_000_000);
    folder.write("a", &all);
    if !has("strace") {
        return;
    }
    let calls = |options: &[&str]| {
        let log = folder.path("log");
        let mut traced = bare("strace", &["-f", "-e", "trace=mmap,madvise", "-o"]);
        traced.arg(&log).args([IOTOMY, "copy", "--mover", "mmap-write"]).args(options);
        assert!(traced.args(["a", "b"]).current_dir(folder.path("")).status().unwrap().success());
        assert!(folder.read("b") == all, "{options:?}");
        // A target that holds something has a trial of its own.
        fs::remove_file(folder.path("b")).unwrap();
        let log = fs::read_to_string(&log).unwrap();
        let count = |word: &str| log.lines().filter(|line| line.contains(word)).count();
        ["MAP_SHARED|MAP_POPULATE", "MADV_HUGEPAGE", "MADV_POPULATE_READ"].map(count)
    };
    // Two windows, of 8 MiB and the rest.
    assert_eq!(calls(&[]), [0, 0, 0]);
    assert_eq!(calls(&["--populate"]), [2, 0, 0]);
    assert_eq!(calls(&["--huge-pages"]), [0, 2, 0]);
    assert_eq!(calls(&["--populate", "--huge-pages"]), [0, 2, 2]);
}
