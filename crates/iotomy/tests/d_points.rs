//! D programs on processes and on timers of the CPUs.

use crate::support;

use std::collections::BTreeMap;
use std::process::Output;

use support::{bpf, iotomy};

/// What a program prints over what a shell runs; `None` where BPF does not work.
fn d(program: &str, commands: &str) -> Option<String> {
    if !bpf() {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    std::fs::write(&script, commands).unwrap();
    let command = format!("sh {}", script.display());
    let output = iotomy(&["d", "-q", "-n", program, "-c", &command]).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    Some(text(&output))
}

fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Lines `NAME NUMBER` by name.
fn counts(text: &str) -> BTreeMap<String, u64> {
    let lines = text.lines().filter_map(|line| line.rsplit_once(' '));
    lines.map(|(name, count)| (name.to_owned(), count.parse().unwrap())).collect()
}

#[test]
fn processes_are_told_of_from_their_making_to_their_end() {
    let program = r#"
        proc:::create, proc:::exec-success, proc:::start, proc:::exit, proc:::lwp-create,
        proc:::lwp-start, proc:::lwp-exit /progenyof($target)/ { @[probename] = count(); }
        proc:::exit /progenyof($target)/ { @ends[args[0]] = count(); }
        proc:::exec-success /progenyof($target)/ { @lines[curpsinfo->pr_psargs] = count(); }
        END { printa("%s %@d\n", @); printa("end-%d %@d\n", @ends); printa("%s %@d\n", @lines); }"#;
    let commands = "exec 2>/dev/null; for i in 1 2 3; do expr $i + 20; done >/dev/null; (exit 3); sh -c 'kill -9 $$'\ntrue";
    let Some(text) = d(program, commands) else { return };
    let is = counts(&text);
    let of = |name: &str| is.get(name).copied().unwrap_or(0);
    // Three of expr, a subshell, and the killed one; the first was made before the program began.
    assert_eq!((of("create"), of("start")), (5, 5), "{text}");
    assert_eq!((of("lwp-create"), of("lwp-start")), (5, 5), "{text}");
    assert_eq!((of("exec-success"), of("exit"), of("lwp-exit")), (5, 6, 6), "{text}");
    // As waitid(2) has them: 1 is an end of its own, 2 a signal.
    assert_eq!((of("end-1"), of("end-2")), (5, 1), "{text}");
    assert_eq!((of("expr 2 + 20"), of("sh -c kill -9 $$")), (1, 1), "{text}");
}

#[test]
fn each_thread_is_told_of_and_its_process_ends_once() {
    if !support::has("python3") || !bpf() {
        return;
    }
    let program = r#"
        proc:::create, proc:::exit, proc:::lwp-create, proc:::lwp-start, proc:::lwp-exit
        /pid == $target && index(execname, "python") == 0/ { @[probename] = count(); }
        END { printa("%s %@d\n", @); }"#;
    // Threads that end side by side with their process, and some before.
    let threads = "import threading,os,time\n\
                   a=[threading.Thread(target=int) for _ in range(23)]\n\
                   [t.start() for t in a]; [t.join() for t in a]\n\
                   [threading.Thread(target=time.sleep,args=(60,),daemon=True).start() for _ in range(8)]\n\
                   os._exit(0)";
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("threads.py");
    std::fs::write(&script, threads).unwrap();
    let command = format!("python3 {}", script.display());
    let output = iotomy(&["d", "-q", "-n", program, "-c", &command]).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let text = text(&output);
    let is = counts(&text);
    assert_eq!((is.get("lwp-create"), is.get("lwp-start")), (Some(&31), Some(&31)), "{text}");
    assert_eq!((is.get("lwp-exit"), is.get("exit"), is.get("create")), (Some(&32), Some(&1), None));
}

#[test]
fn a_signal_is_told_with_its_sender_and_its_receiver() {
    let program = r#"
        proc:::signal-send /pid == $target && args[2] == 10/
        { printf("%s %d %d\n", args[1]->pr_fname, args[1]->pr_pid == $target, args[0]->pr_lwpid == tid); }
        proc:::create /pid == $target/ { child = args[0]->pr_pid; }
        proc:::signal-send /pid == $target && args[2] == 15/ { printf("child %d\n", args[1]->pr_pid == child); }"#;
    let commands = "trap : USR1; kill -USR1 $$; sleep 60 & kill $!; wait\ntrue";
    let Some(text) = d(program, commands) else { return };
    assert_eq!(text, "sh 1 1\nchild 1\n");
}

/// The command is busy until it has been seen often enough, however fast the machine is: the program ends it.
#[test]
fn a_profile_finds_what_the_cpus_run() {
    if !bpf() {
        return;
    }
    let program = r#"
        int done;
        profile-997hz /progenyof($target) && arg1/ { user++; @[execname] = count(); }
        profile-1009hz /progenyof($target) && arg0/ { kernel++; }
        profile-997hz /arg0 && arg1/ { both++; }
        profile-97hz /user > 30 && kernel > 30 && !done/
        { done = 1; printf("both %d\n", both); system("kill %d", $target); exit(7); }
        END { printa("%s %@d\n", @); }"#;
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("busy");
    let busy = "while :; do i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; \
                dd if=/dev/zero of=/dev/null bs=4M count=3 status=none; done";
    std::fs::write(&script, busy).unwrap();
    let command = format!("sh {}", script.display());
    let output = iotomy(&["d", "-qw", "-n", program, "-c", &command]).output().unwrap();
    let text = text(&output);
    assert_eq!(
        (output.status.code(), text.lines().next()),
        (Some(7), Some("both 0")),
        "{output:?}"
    );
    let is = counts(&text);
    assert!(is.get("sh").is_some_and(|seen| *seen > 0), "{text}");
    assert!(is.keys().all(|name| ["both", "sh", "dd", "busy"].contains(&&**name)), "{text}");
}

#[test]
fn a_probe_that_there_is_not_is_told_with_those_that_there_are() {
    for (probe, said) in [
        ("proc:::creat", "did you mean `create`?"),
        ("proc:::fault", "the probes of proc are create, lwp-create, exec-success, start"),
        ("profile-200000hz", "the shortest interval is 10 µs"),
        ("sched:::tick", "take sched:::on-cpu, off-cpu, sleep, preempt or wakeup"),
    ] {
        let program = format!("{probe} {{}}");
        let output = iotomy(&["d", "-n", &program]).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{probe}: {text}");
        assert!(text.contains("no probe matches") && text.contains(said), "{probe}: {text}");
    }
}
