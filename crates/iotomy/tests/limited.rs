//! What becomes of the command where the limits of a process (`ulimit`) are low: it does its work or says
//! what it could not get, and is never ended by a signal, a panic or without a word.

#![expect(clippy::unwrap_used, reason = "a failed step of a test is a failed test")]

mod support;

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use support::{IOTOMY, Need, bare, has, iotomy, root, skip};

/// A command line of each verb; those of a record find `trace.json` and `race.json`.
const VERBS: [&str; 18] = [
    "trace -- /bin/true",
    "trace --observer ptrace -- /bin/true",
    "anatomy --user-stacks -- /bin/true",
    "race --no-trace -r 2 -w 0 /bin/true /bin/true",
    "race -r 2 -w 0 /bin/true /bin/true",
    "copy --explain --verify source target",
    "copy --mover parallel source target",
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
    folder
}

/// Runs a verb under `limit`, as the shell's `ulimit` takes it, by `way` in front of it.
fn under(folder: &Path, limit: &str, way: &[&str], verb: &str) -> Output {
    let script = format!("ulimit -c 0; ulimit {limit} || exit 99; exec \"$@\"");
    let mut command: Command = bare(way.first().copied().unwrap_or("sh"), &[]);
    if let Some((_, options)) = way.split_first() {
        command.args(options).arg("sh");
    }
    command.args(["-c", &script, "sh", IOTOMY]).args(verb.split(' '));
    for kind in ["STATE", "CACHE", "DATA"] {
        command.env(format!("XDG_{kind}_HOME"), folder);
    }
    command.env("IOTOMY_HISTORY", "never").env_remove("RUST_BACKTRACE").current_dir(folder);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap()
}

/// Holds a run to what the file's head promises; whether iotomy was begun at all.
fn is_orderly(output: &Output, what: &str) -> bool {
    let said = String::from_utf8_lossy(&output.stderr);
    // The loader of libraries may be out of memory or descriptors before there is an iotomy.
    if said.contains("error while loading shared libraries") || output.status.code() == Some(99) {
        return false;
    }
    assert_eq!(output.status.signal(), None, "{what}: {said}");
    assert!(!said.contains("panicked") && !said.contains("backtrace"), "{what}: {said}");
    assert!(!said.contains("memory allocation of"), "{what}: {said}");
    let code = output.status.code().unwrap();
    assert!(matches!(code, 0..=2 | 126 | 127), "{what}: {code}: {said}");
    assert!(code == 0 || said.contains("iotomy: "), "{what}: {code}: {said}");
    true
}

fn each_verb(limits: &[&str], way: &[&str]) {
    let folder = folder();
    let mut begun = 0;
    for limit in limits {
        for verb in VERBS {
            let output = under(folder.path(), limit, way, verb);
            begun += u32::from(is_orderly(&output, &format!("ulimit {limit}: {verb}")));
        }
    }
    if begun == 0 {
        skip(Need::Machine, "under these limits no program begins here");
    }
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
    each_verb(&["-v 30000", "-v 40000", "-v 80000"], &[]);
}

#[test]
fn a_file_that_may_not_grow_is_an_error() {
    each_verb(&["-f 0", "-f 1"], &[]);
}

#[test]
fn few_descriptors_are_an_error() {
    each_verb(&["-n 5", "-n 12"], &[]);
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
    each_verb(&["-u 0 2> /dev/null || ulimit -p 0"], &nobody);
}
