//! `iotomy trace -- CMD`: the command is left as it is.

use crate::support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use iotomy_record::Exit;
use support::{IOTOMY, Tracing, bare, bpf, each_observer, has, iotomy, program, root, traced};

#[test]
fn the_commands_output_and_status_are_those_it_has_by_itself() {
    let script = "cat; echo out; echo err >&2; printf 'no end'; exit 3";
    let mut alone = bare("sh", &["-c", script]);
    alone.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut alone = alone.spawn().unwrap();
    alone.stdin.take().unwrap().write_all(b"in\0\xff\n").unwrap();
    let alone = alone.wait_with_output().unwrap();
    each_observer(|observer| {
        let mut tracing = Tracing::new(observer, &["-q"], &["sh", "-c", script]);
        tracing.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = tracing.command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"in\0\xff\n").unwrap();
        assert_eq!(child.wait_with_output().unwrap(), alone, "{observer}");
    });
}

#[test]
fn every_exit_status_is_passed_on_and_recorded() {
    each_observer(|observer| {
        for code in [0, 3, 126, 127, 255] {
            let traced = traced(observer, &["-q"], &["sh", "-c", &format!("exit {code}")]);
            assert_eq!(traced.code(), code, "{observer}");
            assert_eq!(traced.whole_record().exit, Some(Exit::Code(code)));
        }
    });
}

#[test]
fn death_by_a_signal_is_a_status_above_128_and_recorded_as_a_signal() {
    each_observer(|observer| {
        for signal in [9, 11, 15, 34] {
            let script = format!("kill -{signal} $$; read never");
            let traced = traced(observer, &[], &["sh", "-c", &script]);
            assert_eq!(traced.code(), 128 + signal, "{observer}");
            assert_eq!(traced.record().exit, Some(Exit::Signal(signal)), "{observer}");
            let json = fs::read_to_string(traced.json()).unwrap();
            let json: serde_json::Value = serde_json::from_str(&json).unwrap();
            assert_eq!(json["exit"], serde_json::json!({ "signal": signal }));
            assert!(traced.stderr().contains("sh ("), "the report is printed");
        }
    });
}

#[test]
fn a_command_whose_reader_leaves_dies_of_sigpipe() {
    each_observer(|observer| {
        let mut tracing = Tracing::new(observer, &["-q"], &["yes"]);
        let mut child = tracing.command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        drop(lines);
        assert_eq!((line.as_str(), child.wait().unwrap().code()), ("y\n", Some(128 + 13)));
    });
}

/// The lines of a command's own `/proc/self/status` that its parent decides.
const INHERITED: &str = "^(Umask|Uid|Gid|Groups|SigBlk|SigIgn|SigCgt|Cap|NoNewPrivs|Seccomp:|\
                         Cpus_allowed|Mems_allowed|CoreDumping|THP)";

#[test]
fn signals_blocked_or_ignored_and_all_else_a_command_inherits_is_untouched() {
    // From a parent with signals ignored, and with signals blocked; perl is in every Debian.
    let parents = [
        ("default", "exec @ARGV"),
        ("ignored", "$SIG{$_} = 'IGNORE' for qw(PIPE INT HUP CHLD USR1); exec @ARGV"),
        (
            "blocked",
            "use POSIX; my $s = POSIX::SigSet->new(SIGTERM, SIGUSR2, SIGCHLD); \
             sigprocmask(SIG_BLOCK, $s) or die; exec @ARGV",
        ),
    ];
    if !has("perl") {
        return;
    }
    let said = |start: &[&str], words: &[&str]| {
        let mut command = bare("perl", start);
        let output = command.args(words).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.lines().map(without_the_librarys_signals).collect::<Vec<_>>().join("\n")
    };
    for (what, start) in parents {
        let status = ["grep", "-E", INHERITED, "/proc/self/status"];
        let alone = said(&["-e", start], &status);
        assert!(alone.contains("SigIgn"), "{alone}");
        each_observer(|observer| {
            let watch = [IOTOMY_TRACE, &[observer]].concat();
            assert_eq!(said(&["-e", start], &[&watch, &status[..]].concat()), alone, "{what}");
        });
    }
}

/// Signals 32 and 33 are the C library's own: a program that has made a thread resets them.
fn without_the_librarys_signals(line: &str) -> String {
    let Some(mask) = line.strip_prefix("SigIgn:\t") else { return line.to_owned() };
    format!("SigIgn {:x}", u64::from_str_radix(mask, 16).unwrap() & !(3 << 31))
}

const IOTOMY_TRACE: &[&str] = &[support::IOTOMY, "trace", "-q", "--observer"];

#[test]
fn limits_descriptors_environment_and_folder_are_untouched() {
    for script in [
        "cat /proc/self/limits",
        "ls /proc/self/fd",
        "env -u _ | sort",
        "cat /proc/self/oom_score_adj /proc/self/timerslack_ns /proc/self/coredump_filter",
        "pwd; nice; umask; cut -d' ' -f5,6 /proc/self/stat; id",
    ] {
        // Nothing in between leaves a process group behind, so these are the test's own.
        let alone = bare("sh", &["-c", script]).output().unwrap();
        assert!(alone.status.success(), "{alone:?}");
        each_observer(|observer| {
            let traced = iotomy(&[&IOTOMY_TRACE[1..], &[observer, "sh", "-c", script]].concat());
            let mut traced = traced;
            assert_eq!(traced.output().unwrap(), alone, "{observer}: {script}");
        });
    }
}

#[test]
fn a_parent_that_ignores_its_children_costs_no_status() {
    if !has("perl") {
        return;
    }
    each_observer(|observer| {
        let start = "$SIG{CHLD} = 'IGNORE'; exec @ARGV";
        let mut command = bare("perl", &["-e", start, support::IOTOMY, "trace", "-q"]);
        command.args(["--observer", observer, "sh", "-c", "exit 3"]);
        assert_eq!(command.status().unwrap().code(), Some(3), "{observer}");
    });
}

#[test]
fn a_parents_other_children_are_not_waited_for_nor_taken() {
    // `exec` gives iotomy a child that is not its own.
    each_observer(|observer| {
        let watch = format!("{} trace -q --observer {observer} sh -c 'exit 5'", support::IOTOMY);
        let script = format!("cat & exec {watch}");
        let mut command = bare("sh", &["-c", &script]);
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let stdin = child.stdin.take();
        assert_eq!(child.wait().unwrap().code(), Some(5), "{observer}");
        drop(stdin);
    });
}

#[test]
fn what_cannot_be_run_has_the_shells_status_and_an_error_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    program(folder.path(), "lost", b"#!/nonexistent/interpreter\n");
    program(folder.path(), "folder-interpreter", b"#!/etc\n");
    program(folder.path(), "garbage", b"\x7fELF\x02\x01\x01\0garbage");
    fs::write(at("plain"), "echo no").unwrap();
    let cases = [
        ("no-such-program".to_owned(), 127, "No such file"),
        ("no\x1b[31m-such\nprogram".to_owned(), 127, r"\x1b[31m-such\n"),
        (at("absent"), 127, "No such file"),
        (at("plain"), 126, "Permission denied"),
        (String::from("/"), 126, "director"),
        (at("plain/x"), 126, "Not a directory"),
        (at("lost"), 127, "interpreter"),
        (at("folder-interpreter"), 126, "Permission denied"),
        (at("garbage"), 126, "Exec format error"),
        (String::new(), 127, "No such file"),
        (format!("/{}", "x".repeat(5000)), 126, "too long"),
    ];
    each_observer(|observer| {
        for (name, code, said) in &cases {
            let traced = traced(observer, &[], &[name, "argument"]);
            let error = traced.stderr();
            assert_eq!(traced.code(), *code, "{observer} {name}: {error}");
            assert!(error.starts_with("iotomy: cannot "), "{error}");
            assert!(error.contains(said), "{name}: {error}");
            assert_eq!(error.lines().count(), 1, "{error}");
            assert_eq!(error.matches(said).count(), 1, "said twice: {error}");
            assert!(traced.stdout().is_empty() && !traced.json().exists());
        }
    });
}

#[test]
fn a_script_without_an_interpreter_line_is_run_by_the_shell() {
    let folder = tempfile::tempdir().unwrap();
    let script = program(folder.path(), "script", b"echo \"$1 $2\"; exit 4\n");
    each_observer(|observer| {
        let traced = traced(observer, &[], &[script.to_str().unwrap(), "a b", "c"]);
        assert_eq!((traced.stdout(), traced.code()), ("a b c\n", 4));
        let record = traced.whole_record();
        assert_eq!(record.command[1..], ["a b", "c"]);
        assert_eq!(record.processes.len(), 1);
    });
}

#[test]
fn options_behind_the_command_are_the_commands() {
    for words in [
        &["echo", "-q", "--wait", "--json", "x", "--help"][..],
        &["--", "echo", "-q", "--wait", "--json", "x", "--help"],
    ] {
        let mut command = iotomy(&["trace", "-q"]);
        let output = command.args(words).output().unwrap();
        assert_eq!(output.stdout, b"-q --wait --json x --help\n", "{words:?}: {output:?}");
    }
    let output = iotomy(&["trace", "-q", "--", "echo", "--", "-p"]).output().unwrap();
    assert_eq!(output.stdout, b"-- -p\n");
}

#[test]
fn arguments_of_any_length_and_of_any_bytes_reach_the_command() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    each_observer(|observer| {
        let mut tracing = Tracing::new(observer, &[], &["printf", "%s\n"]);
        tracing.command.arg(OsStr::from_bytes(b"caf\xe9\xff"));
        tracing.command.args(vec!["x".repeat(100_000); 15]);
        let traced = tracing.run();
        assert!(traced.output.stdout.starts_with(b"caf\xe9\xff\nxxx"), "{observer}");
        assert_eq!(traced.output.stdout.len(), 6 + 15 * 100_001);
        let record = traced.whole_record();
        assert_eq!(record.command.len(), 2 + 1 + 15);
        assert_eq!(record.command[2], "caf\\xe9\\xff");
        assert_eq!(record.processes[0].argv[..2], ["printf", "%s\n"]);
        assert!(traced.stderr().lines().all(|line| line.chars().count() <= 100));
    });
}

#[test]
fn sigpipe_ignored_by_the_parent_stays_ignored() {
    if !has("perl") {
        return;
    }
    each_observer(|observer| {
        // `yes` then hears of the broken pipe by an error, says so, and exits with 1.
        let mut command = bare("perl", &["-e", "$SIG{PIPE} = 'IGNORE'; exec @ARGV"]);
        command.args(IOTOMY_TRACE).args([observer, "yes"]);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = command.stdout(writer).stderr(Stdio::piped()).output().unwrap();
        assert_eq!((output.status.code(), output.status.signal()), (Some(1), None));
        assert!(String::from_utf8_lossy(&output.stderr).starts_with("yes: "), "{output:?}");
    });
}

#[test]
fn standard_descriptors_that_are_closed_stay_closed_to_the_command() {
    each_observer(|observer| {
        for (closed, number) in [("0<&-", 0), ("1>&-", 1), ("0<&- 1>&- 2>&-", 2)] {
            let folder = tempfile::tempdir().unwrap();
            let script = folder.path().join("said");
            let inner = format!("[ -e /proc/$$/fd/{number} ]; echo $? > {}", script.display());
            let watch = [support::IOTOMY, "trace", "-q", "--observer", observer].join(" ");
            let outer = format!("{watch} -- sh -c '{inner}' {closed}");
            bare("sh", &["-c", &outer]).status().unwrap();
            let bare_said = {
                bare("sh", &["-c", &format!("sh -c '{}' {closed}", inner.replace("said", "bare"))])
                    .status()
                    .unwrap();
                fs::read_to_string(folder.path().join("bare")).unwrap()
            };
            let said = fs::read_to_string(&script).unwrap();
            // Rust's runtime opens the null device in place of what is closed, as many do.
            assert!(said == bare_said || said.trim() == "0", "{observer} {closed}: {said}");
        }
    });
}

#[test]
fn a_command_that_becomes_another_user_keeps_its_privilege_under_bpf() {
    if !root() || !support::bpf() || !has("setpriv") {
        return;
    }
    let words = ["setpriv", "--reuid=65534", "--clear-groups", "id", "-u"];
    let traced = traced("bpf", &[], &words);
    assert_eq!((traced.stdout(), traced.code()), ("65534\n", 0));
    let execs: Vec<String> =
        traced.whole_record().processes.into_iter().map(|process| process.exec).collect();
    assert_eq!(execs, ["setpriv", "id"]);
}

#[test]
fn a_stream_that_was_closed_is_closed_for_the_command() {
    // A shell says what it finds by a descriptor of its own.
    let look = "o=; for fd in 0 1 2; do [ -e /proc/$$/fd/$fd ] && o=\"$o $fd\"; done; echo $o >&9";
    let run = |words: &str, closing: &str| {
        let script = format!("exec 9>&1; exec \"$0\" {words} {closing}");
        let output = bare("sh", &["-c", &script, IOTOMY]).env("LOOK", look).output().unwrap();
        let open = String::from_utf8(output.stdout).unwrap();
        open.split_whitespace().map(|fd| fd.parse().unwrap()).collect::<Vec<i32>>()
    };
    for (closing, open) in
        [("", &[0, 1, 2][..]), ("<&-", &[1, 2]), (">&-", &[0, 2]), ("2>&-", &[0, 1])]
    {
        each_observer(|observer| {
            let words = format!("trace -q --observer {observer} sh -c \"$LOOK\"");
            assert_eq!(run(&words, closing), open, "{observer} {closing}");
        });
        if bpf() {
            assert_eq!(run("anatomy -q sh -c \"$LOOK\"", closing), open, "anatomy {closing}");
        }
        // Standard input of a race is the null device.
        let open = { open }.iter().copied().filter(|fd| *fd != 0).chain([0]).collect::<Vec<_>>();
        let mut found = run("race -q --no-trace -r 1 -w 0 --output inherit \"$LOOK\"", closing);
        found.sort_by_key(|fd| (*fd == 0, *fd));
        found.dedup();
        assert_eq!(found, open, "race {closing}");
    }
}
