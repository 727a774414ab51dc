//! D programs on the built command: what they count, print and are refused for, and how they end.

use crate::support;

use std::fs;
use std::io::Write;
use std::process::{Output, Stdio};

use nix::sys::signal::Signal;
use support::{bpf, doubled_until, has, iotomy, send, until};

/// A run of `iotomy d`; `None` where BPF does not work.
fn d(words: &[&str]) -> Option<Output> {
    bpf().then(|| iotomy(&["d"]).args(words).output().unwrap())
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// What a run says besides that timers were late, which they are on a busy machine.
fn complaints(output: &Output) -> String {
    stderr(output).lines().filter(|line| !line.contains(" firings of timers lost: ")).collect()
}

const WRITES: &str = "dd if=/dev/zero of=/dev/null bs=8k count=23 status=none";

#[test]
fn calls_of_a_command_are_counted_from_its_first_to_its_last() {
    let program = "syscall::write:return /pid == $target/ { @[arg1] = count(); }
                   syscall::execve:return /pid == $target/ { @calls[probefunc] = count(); }
                   syscall::exit_group:entry /pid == $target/ { @calls[probefunc] = count(); }
                   END { printa(\"%d %@d\\n\", @); printa(\"%s %@d\\n\", @calls); }";
    let Some(run) = d(&["-q", "-n", program, "-c", WRITES]) else { return };
    assert_eq!(stdout(&run), "8192 23\nexecve 1\nexit_group 1\n", "{run:?}");
    assert!(run.status.success() && run.stderr.is_empty(), "{run:?}");
}

#[test]
fn calls_without_a_name_fire_probes_that_say_so() {
    if !has("perl") {
        return;
    }
    let program = "syscall:::entry /pid == $target && probefunc == \"syscall_other\"/ { @[\"entry\"] = count(); }
                   syscall:::return /pid == $target && errno == ENOSYS/ { @[probefunc] = count(); }
                   END { printa(\"%s %@d\\n\", @); }";
    let calls = "perl -e 'syscall(500), syscall(999), syscall(16385), syscall(-5) for 1..23'";
    let Some(run) = d(&["-q", "-n", program, "-c", calls]) else { return };
    let text = stdout(&run);
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["entry 69", "syscall_500 23", "syscall_other 69"], "{run:?}");
}

/// Of processes that end long before the kernel's first tick in them. To ask it for their time has it book that, so they
/// do so afterwards.
#[test]
fn vtimestamp_is_all_of_a_threads_time_on_a_cpu() {
    if !has("python3") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("short.py");
    let text = "import os, time
null = os.open('/dev/null', os.O_WRONLY)
for n in range(40):
    if os.fork() == 0:
        end = time.monotonic_ns() + 500_000
        while time.monotonic_ns() < end: pass
        os.write(null, b'now')
        os.write(null, b'cpu %d' % time.thread_time_ns())
        os._exit(0)
    os.wait()
";
    fs::write(&script, text).unwrap();
    let program = "proc:::start /progenyof($target)/ { began[pid] = timestamp; }
                   syscall::write:entry /began[pid] && arg2 == 3/ { self->read = vtimestamp; }
                   syscall::write:entry /began[pid] && arg2 > 3/
                   { printf(\"%s %d %d\\n\", copyinstr(arg1, arg2), self->read, timestamp - began[pid]); }";
    let command = format!("python3 {}", script.display());
    let Some(run) = d(&["-q", "-n", program, "-c", &command]) else { return };
    let text = stdout(&run);
    // What finds the interpreter may be a script that writes, too.
    let lines: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("cpu ")).collect();
    assert_eq!(lines.len(), 40, "{run:?}");
    for line in lines {
        let numbers = line.split(' ').map(|number| number.parse::<u64>().unwrap());
        let [own, read, lived] = *numbers.collect::<Vec<_>>() else { panic!("{text}") };
        // It has run a little before its start is told.
        assert!(read * 2 > own && read < lived + 1_000_000_000, "{text}");
    }
}

#[test]
fn each_firing_has_a_line_or_is_counted_as_lost() {
    let dd = "dd if=/dev/zero of=/dev/null bs=1 count=50000 status=none";
    let program = "syscall::write:entry /pid == $target/ { printf(\"x\\n\"); }";
    for room in ["4k", "64m"] {
        let room = format!("bufsize={room}");
        let Some(run) = d(&["-q", "-x", &room, "-n", program, "-c", dd]) else { return };
        let printed = stdout(&run).lines().count() as u64;
        let text = stderr(&run);
        let lost = text.strip_prefix("iotomy: ").and_then(|text| text.split_once(' '));
        let lost = lost.map_or(0, |(count, rest)| {
            assert!(rest.starts_with("clauses ended early: no room for their records"), "{text}");
            count.parse::<u64>().unwrap()
        });
        assert_eq!(printed + lost, 50_000, "{room}: {text}");
        if room.ends_with("64m") {
            assert_eq!(lost, 0);
        }
    }
}

#[test]
fn a_script_has_its_arguments_from_the_command_line_and_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.d");
    fs::write(&path, "BEGIN { printf(\"%d %s %d\\n\", $1, $$2, $target); exit(3); }").unwrap();
    let path = path.to_str().unwrap();
    let own = std::process::id().to_string();
    // Options may follow arguments.
    let Some(run) = d(&["-s", path, "-5", "b c", "-q", "-p", &own]) else { return };
    assert_eq!((stdout(&run), run.status.code()), (format!("-5 b c {own}\n"), Some(3)), "{run:?}");

    let mut command = iotomy(&["d", "-q", "-s", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(b"BEGIN { trace($$0); exit(0); }").unwrap();
    drop(input);
    assert_eq!(child.wait_with_output().unwrap().stdout, b"standard input");
}

#[test]
fn the_status_is_the_programs_or_the_commands() {
    for (program, command, status) in [
        ("BEGIN { exit(7); }", "true", 7),
        ("BEGIN { exit(-3); }", "false", 253),
        ("BEGIN {}", "false", 1),
        ("BEGIN {}", "kill -9 $$", 137),
        ("BEGIN {}", "/nonexistent", 127),
        ("BEGIN {}", "/etc/passwd", 126),
    ] {
        let Some(run) = d(&["-q", "-n", program, "-c", command]) else { return };
        assert_eq!(run.status.code(), Some(status), "{program} {command}: {run:?}");
    }
}

#[test]
fn a_command_outlives_a_program_that_exits() {
    let program = "syscall::write:entry /pid == $target/ { exit(3); }";
    let Some(run) = d(&["-q", "-n", program, "-c", "sh -c 'echo a; sleep 0.1; echo b'"]) else {
        return;
    };
    assert_eq!((stdout(&run), run.status.code()), ("a\nb\n".to_owned(), Some(3)), "{run:?}");
}

#[test]
fn what_system_runs_comes_between_the_lines_around_it() {
    let program = "BEGIN { printf(\"a\\n\"); system(\"echo %d\", 7); printf(\"c\\n\"); exit(0); }";
    let Some(run) = d(&["-q", "-w", "-n", program]) else { return };
    assert_eq!(stdout(&run), "a\n7\nc\n", "{run:?}");
    let run = iotomy(&["d", "-q", "-n", program]).output().unwrap();
    assert_eq!(run.status.code(), Some(2));
    assert!(stderr(&run).contains("`system` changes the machine"), "{run:?}");
}

#[test]
fn what_system_runs_has_the_bytes_of_the_program() {
    let program = "BEGIN { system(\"printf %%s a\\xffb\"); exit(0); }";
    let Some(run) = d(&["-q", "-w", "-n", program]) else { return };
    assert_eq!(run.stdout, b"a\xffb", "{run:?}");
}

#[test]
fn the_end_comes_by_a_signal_or_a_time_and_prints_what_was_not_printed() {
    if !bpf() {
        return;
    }
    let program = "BEGIN { printf(\"begun\\n\"); @[\"x\"] = count(); } END { printf(\"end\\n\"); }";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let output = ["-o", path.to_str().unwrap()];
    let mut child = iotomy(&["d", "-q", "-n", program]).args(output).spawn().unwrap();
    let text = || fs::read_to_string(&path).unwrap_or_default();
    until("its beginning", || (text() == "begun\n").then_some(()));
    send(child.id(), Signal::SIGINT);
    assert!(child.wait().unwrap().success());
    let one = text();
    assert!(one.starts_with("begun\nend\n") && one.ends_with(" 1\n"), "{one:?}");
    // The next is behind it.
    let run = d(&["-q", "-n", program, "-d", "0.1", output[0], output[1]]).unwrap();
    assert!(run.status.success(), "{run:?}");
    assert_eq!(text(), one.repeat(2));
}

#[test]
fn an_end_is_not_put_off_by_probes_that_fire_without_end() {
    // The command goes on until the program has ended, which ends it.
    let program = "syscall:::entry { printf(\"%s %d\\n\", probefunc, timestamp); }
                   END { printf(\"the end\\n\"); system(\"kill %d\", $target); }";
    let endless = "dd if=/dev/zero of=/dev/null bs=1 status=none";
    let Some(run) = d(&["-qw", "-n", program, "-d", "0.2", "-c", endless]) else { return };
    assert_eq!(run.status.code(), Some(128 + 15), "{:?}", stderr(&run));
    assert_eq!(stdout(&run).lines().last(), Some("the end"), "{:?}", stderr(&run));
}

#[test]
fn errors_of_clauses_are_told_at_their_place_with_their_number() {
    let program = "syscall::write:entry /pid == $target/ { @ = sum(1 / (arg0 - arg0)); }";
    let Some(run) = d(&["-q", "-n", program, "-c", WRITES]) else { return };
    let line = "iotomy: -n:1:49: division by zero in syscall::write:entry";
    assert_eq!(stderr(&run), format!("{line}\n{line}: 23 times\n"));
}

#[test]
fn what_is_wrong_is_told_at_its_place_before_anything_runs() {
    for (words, said) in [
        (&["-n", "syscall::read:entry { @ = quantise(arg0); }"][..], "did you mean `quantize`?"),
        (&["-n", "syscall::raed:entry {}"], "^^^^^^^^^^^^^^^^^^^ did you mean `read`?"),
        (
            &["-n", "vminfo:::maj_fault {}"],
            "iotomy trace counts page faults that read from a device",
        ),
        (&["-n", "syscall::read:entry { trace(caller); }"], "caller cannot be traced"),
        (&["-n", "fbt::read:entry {}"], "the provider `fbt` is not supported"),
        (&["-n", "BEGIN { trace($1); }"], "give the script more arguments"),
        (&["-n", "BEGIN {}", "x"], "the program does not use its argument \"x\": it has no $1"),
        (&["-n", "BEGIN {}", "-x", "strsiez=5"], "did you mean `strsize`?"),
        (&["-n", "BEGIN {}", "-x", "strsize"], "-x strsize: `strsize` needs a number"),
        (&["-n", "BEGIN {}", "-c", "echo 'a"], "-c \"echo 'a\": unterminated '"),
        (&["-n", "BEGIN {}", "-p", "999999999"], "cannot attach to process 999999999"),
        (&["-n", "BEGIN {}", "-o", "/nonexistent/x"], "cannot write --output /nonexistent/x: "),
        (&["-s", "/nonexistent/x.d"], "cannot read the program /nonexistent/x.d: No such file"),
        (&["-s", "/"], "cannot read the program /: "),
        (&["-s", "/dev/zero"], "it is larger than 4 MiB"),
        (&["-l", "-n", "syscall::raed:entry"], "no probe matches"),
        (&[], "Usage: iotomy d"),
    ] {
        let run = iotomy(&["d"]).args(words).output().unwrap();
        let text = stderr(&run);
        assert_eq!(run.status.code(), Some(2), "{words:?}: {text}");
        assert!(text.contains(said) && text.starts_with("iotomy: "), "{words:?}: {text}");
        assert!(run.stdout.is_empty(), "{words:?}");
    }
    // What follows from a mistake is not told beside it.
    let run = iotomy(&["d", "-n", "BEGIN { @ = sun(1); } END { printa(@); }"]).output().unwrap();
    assert_eq!(stderr(&run).lines().count(), 3, "{run:?}");
}

#[test]
fn a_program_can_be_checked_and_its_probes_listed_without_privilege() {
    let run =
        iotomy(&["d", "-e", "-n", "syscall::read:entry /pid == $target/ {}"]).output().unwrap();
    assert!(run.status.success() && run.stdout.is_empty() && run.stderr.is_empty(), "{run:?}");
    let run = iotomy(&["d", "-l", "-n", "syscall::rea[dv]:entry,BEGIN,tick-5s"]).output().unwrap();
    let probes: Vec<String> = stdout(&run)
        .lines()
        .skip(1)
        .map(|line| line.split_whitespace().skip(1).collect::<Vec<_>>().join(":"))
        .collect();
    assert_eq!(probes, ["dtrace:BEGIN", "syscall:read:entry", "profile:tick-5s"], "{run:?}");
    let all = iotomy(&["d", "-l"]).output().unwrap();
    let all = stdout(&all);
    for one in ["openat entry", "io_uring_enter return", "BEGIN"] {
        assert!(all.lines().any(|line| line.ends_with(one)), "{one}: {all}");
    }
}

#[test]
fn timers_fire_beside_a_command_until_it_ends() {
    let program = "tick-20ms { @ = count(); } END { printa(\"%@d\\n\", @); }";
    let Some(run) = d(&["-q", "-n", program, "-c", "sleep 0.5"]) else { return };
    let fired: u64 = stdout(&run).trim().parse().unwrap();
    assert!(fired >= 1, "{run:?}");
}

/// However late the machine is: of the last, the slower timer may be due a moment after the other was looked at.
#[test]
fn ticks_that_were_kept_waiting_are_made_up_for_or_told() {
    let program = "int n; int k; tick-2ms { n++; } tick-50ms { k++; }
                   tick-50ms /k == 5/ { system(\"sleep 0.3\"); }
                   tick-50ms /k == 12/ { printf(\"%d\\n\", n); exit(0); }";
    let Some(run) = d(&["-qw", "-n", program]) else { return };
    let fired: u64 = stdout(&run).trim().parse().unwrap();
    let text = stderr(&run);
    let missed =
        text.strip_prefix("iotomy: ").and_then(|text| text.split_once(" firings of timers"));
    let missed: u64 = missed.map_or(0, |(count, _)| count.parse().unwrap());
    assert!(fired + missed >= 12 * 25 - 1, "{fired} and {missed}: {text}");
}

/// What is counted between two clears is printed once, however the clears fall among the calls.
#[test]
fn what_is_cleared_was_printed_with_all_that_came_before() {
    for clear in ["trunc(@calls)", "clear(@calls)"] {
        let program = format!(
            "syscall::write:entry /pid == $target/ {{ @calls[arg0] = count(); @all = count(); }}
             tick-5ms {{ printa(\"%d %@d\\n\", @calls); {clear}; }}
             END {{ printa(\"%d %@d\\n\", @calls); printa(\"all %@d\\n\", @all); }}"
        );
        // How often a timer fires meanwhile is a matter of the machine.
        let fires =
            |run: &Option<Output>| run.as_ref().is_none_or(|run| stdout(run).lines().count() > 3);
        let run = doubled_until(100_000, fires, |count| {
            let busy = format!("dd if=/dev/zero of=/dev/null bs=1 count={count} status=none");
            let run = d(&["-q", "-n", &program, "-c", &busy])?;
            let mut sums = [0_u64; 2];
            for line in stdout(&run).lines() {
                let (name, count) = line.rsplit_once(' ').unwrap();
                sums[usize::from(name == "all")] += count.parse::<u64>().unwrap();
            }
            assert_eq!(sums, [u64::from(count); 2], "{clear}");
            Some(run)
        });
        let Some(run) = run else { return };
        assert_eq!(complaints(&run), "", "{clear}");
    }
}

/// After each clear there are rows of the interval before and of the one that begins, of each CPU.
#[test]
fn what_has_no_key_is_counted_on_every_cpu_after_each_clear() {
    let program = "syscall::write:entry /progenyof($target)/ { @ = count(); }
                   tick-20ms { printa(\"%@d\\n\", @); clear(@); }
                   END { printa(\"%@d\\n\", @); }";
    let processors = std::thread::available_parallelism().unwrap().get();
    let fires =
        |run: &Option<Output>| run.as_ref().is_none_or(|run| stdout(run).lines().count() > 4);
    let run = doubled_until(20_000, fires, |count| {
        let busy = format!("dd if=/dev/zero of=/dev/null bs=1 count={count} status=none &\n");
        let all = busy.repeat(processors) + "wait\n";
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), all).unwrap();
        let command = format!("sh {}", file.path().display());
        let run = d(&["-q", "-n", program, "-c", &command])?;
        let sum: u64 = stdout(&run).lines().map(|line| line.parse::<u64>().unwrap()).sum();
        assert_eq!(sum, u64::from(count) * processors as u64, "{run:?}");
        Some(run)
    });
    let Some(run) = run else { return };
    assert_eq!(complaints(&run), "");
}

/// An aggregation that is truncated again and again never has more keys than there is room for.
#[test]
fn what_is_truncated_gives_its_room_back() {
    let program = "syscall::write:entry /pid == $target/ { @[i++ % 100] = count(); }
                   syscall::write:entry /pid == $target && i % 10000 == 0/ { trunc(@); }";
    let busy = "dd if=/dev/zero of=/dev/null bs=1 count=100000 status=none";
    let Some(run) = d(&["-q", "-x", "aggsize=16k", "-n", program, "-c", busy]) else { return };
    assert!(run.status.success() && run.stderr.is_empty(), "{run:?}");
}

#[test]
fn the_end_has_room_for_what_it_prints() {
    let program = "syscall:::entry /pid == $target/ { printf(\"%s %d\\n\", probefunc, timestamp); }
                   END { printf(\"%s %s\\n\", \"the\", \"end\"); exit(7); }";
    let busy = "dd if=/dev/zero of=/dev/null bs=1 count=100000 status=none";
    let words = ["-q", "-x", "bufsize=4k", "-n", program, "-c", busy];
    let Some(run) = d(&words) else { return };
    let text = stdout(&run);
    assert_eq!((text.lines().last(), run.status.code()), (Some("the end"), Some(7)));
}

#[test]
fn the_calls_of_a_command_are_those_that_strace_counts() {
    if !support::has("strace") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let counts = folder.path().join("counts");
    let program = "syscall::read:return /pid == $target/ { printf(\"%s %d\\n\", execname, arg0); }";
    let Some(run) = d(&["-q", "-n", program, "-c", WRITES]) else { return };
    let strace = support::bare("strace", &["-e", "trace=read", "-o"])
        .arg(&counts)
        .args(WRITES.split(' '))
        .status()
        .unwrap();
    assert!(strace.success());
    let said = fs::read_to_string(counts).unwrap();
    let returned = |line: &str| Some(format!("dd {}", line.split_once(" = ")?.1.trim()));
    let expected: Vec<String> =
        said.lines().filter(|line| line.starts_with("read(")).filter_map(returned).collect();
    assert_eq!(stdout(&run).lines().collect::<Vec<_>>(), expected);
}

#[test]
fn begin_is_printed_before_the_command_begins_and_a_closed_pipe_is_no_error() {
    let begin = "BEGIN { printf(\"begin\\n\"); }";
    let Some(run) = d(&["-q", "-n", begin, "-c", "echo command"]) else { return };
    assert_eq!(stdout(&run), "begin\ncommand\n");
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    fs::write(&script, "#!/nonexistent/interpreter\n").unwrap();
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let Some(run) = d(&["-q", "-n", begin, "-c", script.to_str().unwrap()]) else { return };
    assert_eq!((run.status.code(), &*stdout(&run)), (Some(127), "begin\n"), "{run:?}");
    // Its reader leaves after the first line.
    let program = "tick-10ms { printf(\"%d\\n\", i++); }";
    let mut run = iotomy(&["d", "-q", "-n", program])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 1];
    std::io::Read::read_exact(run.stdout.as_mut().unwrap(), &mut first).unwrap();
    drop(run.stdout.take());
    let ended = run.wait_with_output().unwrap();
    assert!(ended.status.success() && complaints(&ended).is_empty(), "{ended:?}");
}

#[test]
fn a_check_finds_what_a_run_would_refuse() {
    for (program, said) in [
        ("syscall::raed:entry {}", "did you mean `read`?"),
        ("syscall::read:entry { trace(stackdepth); }", "stackdepth cannot be traced"),
        ("syscall::read:entry { trace(curlwpsinfo->pr_pri); }", "the member pr_pri cannot be"),
    ] {
        let run = iotomy(&["d", "-e", "-n", program]).output().unwrap();
        assert_eq!(run.status.code(), Some(2), "{program}: {run:?}");
        assert!(stderr(&run).contains(said), "{program}: {run:?}");
    }
}

#[test]
fn what_a_program_became_is_explained_with_what_its_runs_took() {
    let program = "syscall::write:return /pid == $target/ { @[execname] = count(); }";
    let Some(run) = d(&["-q", "--explain", "-n", program, "-c", WRITES]) else { return };
    let text = stderr(&run);
    let lines: Vec<&str> = text.lines().collect();
    for (head, of) in [
        ("clauses", "  1  line 1"),
        ("probes", "syscall::write:return"),
        ("programs", "sys_exit"),
        ("maps", "rows"),
        ("overhead", "sys_exit"),
    ] {
        let at = lines.iter().position(|line| *line == head);
        let at = at.unwrap_or_else(|| panic!("no {head}: {text}"));
        let rest = lines[at + 1..].iter().take_while(|line| line.starts_with("  "));
        assert!(rest.clone().any(|line| line.contains(of)), "{head}: {text}");
    }
    assert!(text.contains("tp_btf/sys_exit") && text.contains(" ns on average"), "{text}");
}

#[test]
fn arguments_may_be_left_out_and_may_be_paths() {
    let program = "BEGIN { printf(\"%d %s|%s\\n\", $3, $1, $$4); exit(0); }";
    let words = ["-q", "-x", "defaultargs", "-n", program, "/a/b c"];
    let Some(run) = d(&words) else { return };
    assert_eq!(stdout(&run), "0 /a/b c|\n", "{run:?}");
}

#[test]
fn a_probe_has_the_same_id_in_a_list_and_a_run() {
    let listed = iotomy(&["d", "-l", "-n", "syscall::write:return"]).output().unwrap();
    let listed = stdout(&listed);
    let listed = listed.lines().last().unwrap().split_whitespace().next().unwrap().to_owned();
    let program =
        "syscall::write:return,syscall::read:entry /pid == $target/ { @[probefunc, id] = count(); }
                   END { printa(\"%s %d\\n\", @); }";
    let Some(run) = d(&["-q", "-n", program, "-c", WRITES]) else { return };
    assert!(stdout(&run).lines().any(|line| line == format!("write {listed}")), "{run:?}");
    let all = stdout(&iotomy(&["d", "-l"]).output().unwrap());
    let is_it = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.first() == Some(&&*listed) && words.ends_with(&["write", "return"])
    };
    assert!(all.lines().any(is_it), "{listed}");
}

#[test]
fn sizes_that_cannot_be_are_refused_at_once() {
    for option in ["bufsize=100", "bufsize=2g", "strsize=1", "strsize=2k", "aggsize=0"] {
        let run = iotomy(&["d", "-x", option, "-n", "BEGIN {}"]).output().unwrap();
        assert_eq!(run.status.code(), Some(2), "{option}: {run:?}");
        assert!(stderr(&run).contains("is out of range"), "{option}: {run:?}");
    }
}

#[test]
fn a_signal_ends_a_run_whose_output_nobody_reads() {
    if !bpf() {
        return;
    }
    // More than a pipe takes, and nobody reads it.
    let program = "tick-1ms { printf(\"%1000s\\n\", \"x\"); }";
    let mut command = iotomy(&["d", "-q", "-n", program]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let output = child.stdout.take().unwrap();
    let last = std::cell::Cell::new(0);
    let is_full = || {
        let bytes = rustix::io::ioctl_fionread(&output).unwrap();
        bytes > 30_000 && last.replace(bytes) == bytes
    };
    until("the pipe is full", || is_full().then_some(()));
    send(child.id(), Signal::SIGTERM);
    until("its end", || child.try_wait().unwrap());
}

#[test]
fn a_run_ends_when_the_reader_of_its_output_has_gone() {
    if !bpf() {
        return;
    }
    // It prints nothing more.
    let program = "BEGIN { printf(\"begun\\n\"); }";
    let mut command = iotomy(&["d", "-q", "-n", program]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = child.stdout.take().unwrap();
    let mut head = [0; 6];
    std::io::Read::read_exact(&mut output, &mut head).unwrap();
    drop(output);
    let status = until("its end", || child.try_wait().unwrap());
    assert!(status.success(), "{status}");
}
