//! What becomes of the command where the limits of a process (`ulimit`) are low: it does its work or says
//! what it could not get, and is never ended by a signal, a panic or without a word.

use crate::support;

use std::fs::File;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};

use support::{IOTOMY, Need, bare, bpf, has, iotomy, root, skip};

/// A command line of each verb; those of a record find `trace.json` and `race.json`.
const VERBS: [&str; 20] = [
    "trace -- /bin/true",
    "trace --observer ptrace -- /bin/true",
    "anatomy --user-stacks -- /bin/true",
    "race --no-trace -r 2 -w 0 /bin/true /bin/true",
    "race -r 2 -w 0 /bin/true /bin/true",
    "copy --explain --verify source target",
    "copy --mover parallel source target",
    "copy --mover io-uring source target",
    "copy --mover io-uring /dev/zero --count 100000 target",
    "copy --atomic --progress=always source target",
    "show trace.json",
    "report -o page.html trace.json race.json",
    "limits --refresh --only syscall,mmap-munmap",
    "lab run models -L descriptors=10 -L rate=1000 --max-time 0.5",
    "lab run wait -L descriptors=20 -L active=1 --max-time 0.5",
    "lab list",
    "history import trace.json",
    "history list",
    "doctor",
    "--help",
];

/// A folder with what the verbs need, which everybody may write to.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("source"), vec![7; 100_000]).unwrap();
    for words in [
        "trace -q --json trace.json -- /bin/true",
        "race -q -r 2 -w 0 --no-trace --json race.json /bin/true /bin/true",
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        assert!(iotomy(&words).current_dir(folder.path()).status().unwrap().success());
    }
    let open = ["-R", "a+rwX", folder.path().to_str().unwrap()];
    assert!(bare("chmod", &open).status().unwrap().success());
    // In which nobody else may rename what is somebody's.
    let sticky = ["+t", folder.path().to_str().unwrap()];
    assert!(bare("chmod", &sticky).status().unwrap().success());
    std::fs::create_dir(folder.path().join("home")).unwrap();
    folder
}

/// A verb to be run under `limit`, as the shell's `ulimit` takes it, by `way` in front of it. One that hangs fails.
fn command_under(folder: &Path, limit: &str, way: &[&str], verb: &str) -> Command {
    let script = format!("ulimit -c 0; ulimit {limit} || exit 99; exec \"$@\"");
    let mut command: Command = bare("timeout", &["-k", "10", "50"]);
    command.args(way).args(["sh", "-c", &script, "sh", IOTOMY]).args(verb.split(' '));
    // Not where everybody may write: what is kept there would not be trusted.
    let home = folder.join("home");
    for kind in ["STATE", "CACHE", "DATA"] {
        command.env(format!("XDG_{kind}_HOME"), &home);
    }
    command.env("IOTOMY_HISTORY", "never").env_remove("RUST_BACKTRACE").current_dir(folder);
    command
}

fn under(folder: &Path, limit: &str, way: &[&str], verb: &str) -> Output {
    command_under(folder, limit, way, verb).output().unwrap()
}

/// Holds a run to what the file's head promises; whether iotomy was begun at all.
fn is_orderly(output: &Output, what: &str) -> bool {
    let stderr = String::from_utf8_lossy(&output.stderr);
    // The loader of libraries may be out of memory before there is an iotomy.
    let loader = format!("{IOTOMY}: error while loading shared libraries");
    if stderr.contains(&loader) || output.status.code() == Some(99) {
        return false;
    }
    assert_eq!(output.status.signal(), None, "{what}: {stderr}");
    assert!(!stderr.contains("panicked") && !stderr.contains("backtrace"), "{what}: {stderr}");
    assert!(!stderr.contains("memory allocation of"), "{what}: {stderr}");
    let code = output.status.code().unwrap();
    assert!(matches!(code, 0..=2 | 126 | 127), "{what}: {code}: {stderr}");
    assert!(code == 0 || stderr.contains("iotomy: "), "{what}: {code}: {stderr}");
    true
}

/// Under how many KiB the command begins: how much memory its image takes depends on how it was built. Below,
/// the kernel ends it by a signal, or the loader of libraries has a message, before there is an iotomy.
fn least_memory() -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let begins = |kib: &u64| {
        let output = under(folder.path(), &format!("-v {kib}"), &[], "--version");
        output.status.success()
    };
    (16_000..400_000).step_by(1000).find(begins).unwrap()
}

/// Runs every verb under each of these limits; gives those under which no verb began. Under the others all did.
fn each_verb<'a>(limits: &[&'a str], way: &[&str]) -> Vec<&'a str> {
    let folder = folder();
    let mut not_begun = Vec::new();
    for limit in limits {
        let begins = |verb: &&&str| {
            let output = under(folder.path(), limit, way, verb);
            is_orderly(&output, &format!("ulimit {limit}: {verb}"))
        };
        match VERBS.iter().filter(begins).count() {
            0 => not_begun.push(*limit),
            begun => assert_eq!(begun, VERBS.len(), "ulimit {limit}: verbs that began"),
        }
    }
    not_begun
}

#[test]
fn a_small_stack_is_enough_for_every_verb() {
    let folder = folder();
    for verb in VERBS.iter().filter(|verb| !verb.starts_with("anatomy")) {
        for limit in ["-s 64", "-s 256"] {
            let output = under(folder.path(), limit, &[], verb);
            assert!(is_orderly(&output, &format!("ulimit {limit}: {verb}")), "{output:?}");
            let is_ok = output.status.success();
            assert!(is_ok || verb.contains("models"), "{limit} {verb}: {output:?}");
        }
    }
}

#[test]
fn a_command_under_study_has_the_limits_and_signals_that_iotomy_was_given() {
    let folder = folder();
    let limits = "trace -q -- sh -c ulimit${IFS}-s;ulimit${IFS}-f";
    let output = under(folder.path(), "-s 256", &[], limits);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "256\nunlimited\n", "{output:?}");
    // SIGXFSZ is bit 24 of those ignored: iotomy ignores it, and a shell can pass it on ignored.
    let ignored = "trace -q -- grep SigIgn /proc/self/status";
    for (limit, is_ignored) in [("-s 256", false), ("-s 256; trap '' XFSZ", true)] {
        let output = under(folder.path(), limit, &[], ignored);
        let text = String::from_utf8(output.stdout).unwrap();
        let mask = u64::from_str_radix(text.split_whitespace().nth(1).unwrap(), 16).unwrap();
        assert_eq!(mask >> 24 & 1 == 1, is_ignored, "{limit}: {text}");
    }
}

#[test]
fn memory_that_is_refused_is_an_error() {
    let least = least_memory();
    let limits = [0, 2000, 7000, 47_000].map(|more| format!("-v {}", least + more));
    assert_eq!(each_verb(&limits.each_ref().map(String::as_str), &[]), [""; 0]);
}

#[test]
fn a_stack_that_is_refused_is_an_error_also_when_it_cannot_be_said() {
    let folder = folder();
    let full = || File::options().write(true).open("/dev/full").unwrap();
    let mut met = 0;
    let least = least_memory();
    for kib in (least - 8000..least + 12_000).step_by(1000) {
        let limit = format!("-s 64; ulimit -v {kib}");
        let stderr = under(folder.path(), &limit, &[], "--version").stderr;
        if String::from_utf8_lossy(&stderr).contains("iotomy: cannot allocate a stack: ") {
            met += 1;
            let mut command = command_under(folder.path(), &limit, &[], "--version");
            let output = command.stderr(full()).output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{limit}: {output:?}");
        }
    }
    if met == 0 {
        skip(Need::Machine, "no limit here lets the command begin and refuses it a stack");
    }
}

#[test]
fn a_file_that_may_not_grow_is_an_error() {
    assert_eq!(each_verb(&["-f 0", "-f 1"], &[]), [""; 0]);
}

/// The types that libbpf needs are no reason to be refused: it has them from the kernel, too.
#[test]
fn files_that_may_not_grow_keep_nobody_from_watching_by_bpf() {
    if !bpf() {
        return;
    }
    let folder = folder();
    for limit in ["-f 0", "-f 1"] {
        for verb in [
            "trace -q --observer bpf -- /bin/true",
            "anatomy -q -- /bin/true",
            "d -q -c true -n END{}",
        ] {
            let output = under(folder.path(), limit, &[], verb);
            assert!(output.status.success(), "{limit}: {verb}: {output:?}");
        }
    }
}

#[test]
fn what_was_taken_from_a_pipe_and_cannot_be_written_is_told_and_left_to_no_other_mover() {
    let folder = folder();
    for mover in ["io-uring", "read-write"] {
        let verb = format!("copy --mover {mover} - target");
        let mut command = command_under(folder.path(), "-f 0", &[], &verb);
        let (read, mut write) = std::io::pipe().unwrap();
        write.write_all(&[7; 1000]).unwrap();
        drop(write);
        let output = command.stdin(read).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        if stderr.contains("io_uring_setup") {
            skip(Need::IoUring, &stderr);
            continue;
        }
        let lost = "after 0 bytes, 1,000 more were taken from standard input and are lost";
        assert!(is_orderly(&output, &verb) && stderr.contains(lost), "{verb}: {stderr}");
    }
}

#[test]
fn what_is_printed_into_a_file_that_may_not_grow_is_an_error() {
    let folder = folder();
    for verb in VERBS.iter().copied().chain(["copy --list", "copy source -", "no-verb"]) {
        let mut command = command_under(folder.path(), "-f 0", &[], verb);
        let printed = File::create(folder.path().join("printed")).unwrap();
        let output = command.stdout(printed).output().unwrap();
        assert!(is_orderly(&output, verb), "{verb}");
        if ["copy --list", "copy source -", "--help", "lab list", "doctor"].contains(&verb) {
            assert_eq!(output.status.code(), Some(2), "{verb}: {output:?}");
        }
    }
}

#[test]
fn few_descriptors_are_an_error() {
    assert_eq!(each_verb(&["-n 5", "-n 12"], &[]), [""; 0]);
}

#[test]
fn a_copy_that_has_no_descriptor_left_to_ask_by_is_whole() {
    let folder = folder();
    for descriptors in 4..12 {
        for verb in ["copy --atomic --fsync source target", "copy --json record source target"] {
            let output = under(folder.path(), &format!("-n {descriptors}"), &[], verb);
            assert!(is_orderly(&output, verb), "{output:?}");
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(!stderr.contains("cannot close"), "{descriptors}: {verb}: {stderr}");
        }
    }
}

#[test]
fn a_thread_or_process_that_is_refused_is_an_error() {
    // Root may have as many as it likes.
    if !root() || !has("setpriv") {
        return;
    }
    let nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let probe = Command::new(nobody[0]).args(&nobody[1..]).args([IOTOMY, "--version"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        skip(Need::Machine, "another user cannot run the command where it was built");
        return;
    }
    // The shell may call it another way.
    assert_eq!(each_verb(&["-u 0 2> /dev/null || ulimit -p 0"], &nobody), [""; 0]);
}
