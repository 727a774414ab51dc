//! Standard input and output, pipes, FIFOs and devices.

use crate::support;

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::process::{Output, Stdio};
use std::thread;

use support::copying::{Folder, content, refused};

const LARGE: usize = 3_000_001;

/// Runs with a pipe as standard input, in which `input` is written.
fn fed(folder: &Folder, words: &[&str], input: &[u8]) -> Output {
    let mut command = folder.command(words);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut into = child.stdin.take().unwrap();
    let input = input.to_vec();
    // Not all of it need be read.
    let feeding = thread::spawn(move || drop(into.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    feeding.join().unwrap();
    output
}

#[test]
fn pipes_are_read_and_written_whole() {
    let folder = Folder::new();
    let all = content(LARGE);
    folder.write("a", &all);
    assert!(folder.run(&["a", "-"]).stdout == all);
    assert!(folder.run(&["a", "/dev/stdout"]).stdout == all);
    for input in ["-", "/dev/stdin"] {
        assert!(fed(&folder, &[input, "b"], &all).status.success());
        assert!(folder.read("b") == all);
    }
    let through = fed(&folder, &["-", "-"], &all);
    assert!(through.status.success() && through.stdout == all);
    let between = fed(&folder, &["a", "-", "a", "-"], b"between");
    assert!(between.stdout == [&all[..], b"between", &all].concat());
    assert!(folder.run(&["a", "a", "/dev/stdout"]).stdout == [&all[..], &all].concat());
    let by_value = folder.run(&["--by-value", "a", "-"]);
    assert!(by_value.stdout == all);
}

#[test]
fn what_is_skipped_of_a_pipe_is_read_and_dropped() {
    let folder = Folder::new();
    let all = content(LARGE);
    let output = fed(&folder, &["--skip", "1M", "--count", "1M", "-", "-"], &all);
    assert!(output.status.success() && output.stdout == all[1 << 20..2 << 20]);
    let past = fed(&folder, &["--skip", "1G", "-", "b"], &all);
    assert!(past.status.success() && folder.read("b").is_empty());
    folder.write("b", "0123456789");
    assert!(fed(&folder, &["--skip", "2", "--seek", "4", "-", "b"], b"abcd").status.success());
    assert_eq!(folder.read("b"), b"0123cd6789");
}

#[test]
fn a_count_takes_no_more_from_a_pipe_than_it_moves() {
    let folder = Folder::new();
    let (mut out, mut into) = std::io::pipe().unwrap();
    into.write_all(b"first,second").unwrap();
    drop(into);
    let stdin = out.try_clone().unwrap();
    let run = folder.command(&["--count", "6", "-", "-"]).stdin(stdin).output().unwrap();
    assert_eq!(run.stdout, b"first,");
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "second");
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let folder = Folder::new();
    folder.write("a", content(LARGE));
    for words in [&["a", "-"][..], &["a", "a", "-"], &["--mover", "read-write", "a", "-"]] {
        let mut child =
            folder.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = [0; 10];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{words:?}: {output:?}");
        assert!(output.stderr.is_empty() && first[..] == content(10), "{words:?}: {output:?}");
    }
}

#[test]
fn positions_of_standard_input_and_output_count() {
    let folder = Folder::new();
    let path = folder.write("a", "0123456789");
    let mut input = File::open(&path).unwrap();
    input.read_exact(&mut [0; 2]).unwrap();
    let mut output = OpenOptions::new().write(true).open(folder.write("b", "abcdefghij")).unwrap();
    output.write_all(b"AB").unwrap();
    let mut command = folder.command(&["--skip", "1", "--count", "3", "--seek", "2", "-", "-"]);
    assert!(command.stdin(input).stdout(output).status().unwrap().success());
    assert_eq!(folder.read("b"), b"ABcd345hij");
}

#[test]
fn a_fifo_is_read_and_written_through() {
    let folder = Folder::new();
    let all = content(LARGE);
    folder.write("a", &all);
    let fifo = folder.path("fifo");
    assert!(support::bare("mkfifo", &[fifo.to_str().unwrap()]).status().unwrap().success());
    let mut reading = folder.command(&["fifo", "b"]).spawn().unwrap();
    folder.copy(&["a", "fifo"]);
    assert!(reading.wait().unwrap().success());
    assert!(folder.read("b") == all);
    assert!(fs::symlink_metadata(&fifo).unwrap().file_type().is_fifo());
}

#[test]
fn a_fifo_is_not_copied_to_itself_and_nobody_waits_for_it() {
    let folder = Folder::new();
    let mkfifo = support::bare("mkfifo", &[folder.path("f").to_str().unwrap()]).status();
    assert!(mkfifo.unwrap().success());
    let (all, absolute) = (folder.path(""), folder.path("f"));
    let (all, absolute) = (all.to_str().unwrap(), absolute.to_str().unwrap());
    for words in [["f", "f"], ["f", absolute], ["f", "."], ["./f", "./"], [absolute, all]] {
        let said = folder.refuse(2, &words);
        assert!(said.contains("they are the same pipe, whose output would"), "{words:?}: {said}");
    }
}

#[test]
fn a_file_added_to_itself_is_refused_and_stays() {
    let folder = Folder::new();
    let path = folder.write("a", "some text");
    let appending = || OpenOptions::new().append(true).open(&path).unwrap();
    for words in [&["a", "-"][..], &["/etc/hostname", "a", "-"]] {
        let output = folder.command(words).stdout(appending()).output().unwrap();
        let stderr = refused(2, &output);
        assert!(stderr.contains("to standard output: they are the same file"), "{stderr}");
        assert_eq!(folder.read("a"), b"some text");
    }
    // The other way round, by standard input.
    let output = folder.command(&["-", "a"]).stdin(File::open(&path).unwrap()).output().unwrap();
    assert!(refused(2, &output).contains("the same file"));
    assert_eq!(folder.read("a"), b"some text");
    let mut command = folder.command(&["--concat", "/etc/hostname", "-", "a"]);
    let output = command.stdin(File::open(&path).unwrap()).output().unwrap();
    assert!(refused(2, &output).contains("cannot copy standard input to a: they are the same"));
    assert_eq!(folder.read("a"), b"some text");
    // With nothing left to be read, nothing is added.
    fs::write(&path, "").unwrap();
    for words in [&["a", "-"][..], &["a", "a", "-"]] {
        assert!(folder.command(words).stdout(appending()).status().unwrap().success(), "{words:?}");
        assert!(folder.read("a").is_empty());
    }
}
