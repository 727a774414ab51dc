//! `iotomy trace` of running processes by several PIDs, with their descendants, by name and by
//! control group.

use crate::support;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Duration;

use iotomy_record::Trace;
use nix::sys::signal::Signal;
use support::cgroups::{OwnCgroup, hierarchies, unique};
use support::{
    BackgroundProcess, Need, Tracing, Watching, bare, bpf, children, copy_of_program,
    doubled_until, each_observer, has, iotomy, root, skip, until, until_polling, until_watching,
};

/// On each line: as many calls as it says.
const COUNTS: &str =
    r#"$| = 1; print "ready\n"; while (<STDIN>) { getppid for 1..$_; print "done\n" }"#;

/// The same by a child, which it makes at the start; both end with standard input.
const BY_A_CHILD: &str = r#"
    $| = 1; pipe my $from, my $to or die;
    if (!fork) { close $to; while (<$from>) { getppid for 1..$_; print "done\n" } exit }
    close $from; select $to; $| = 1; select STDOUT; print "ready\n";
    while (<STDIN>) { print $to $_ } close $to; wait;
"#;

fn perl(script: &str) -> BackgroundProcess {
    BackgroundProcess::ready(&["perl", "-e", script]).0
}

impl Rounds for BackgroundProcess {
    fn calls(&mut self, number: u32) {
        self.say(&format!("{number}\n"));
        assert_eq!(self.line(), "done");
    }
}

trait Rounds {
    fn calls(&mut self, number: u32);
}

fn watching(observer: &str, options: &[&str]) -> Watching {
    let watching = Tracing::new(observer, options, &[]).start();
    until_polling(watching.pid());
    watching
}

/// The calls of a process; of all processes for 0.
fn count(record: &Trace, pid: u32) -> u64 {
    let rows = record.calls.iter().filter(|row| row.syscall == "getppid");
    rows.filter(|row| pid == 0 || row.pid == pid).map(|row| row.calls).sum()
}

#[test]
fn descendants_that_ran_before_are_watched_unless_only_the_process_is_wanted() {
    if !has("perl") {
        return;
    }
    each_observer(|observer| {
        for only in [false, true] {
            let mut maker = perl(BY_A_CHILD);
            let child = until("it has its child", || children(maker.pid()).first().copied());
            let pid = maker.pid().to_string();
            let options: &[&str] = if only { &["-p", &pid, "--only"] } else { &["-p", &pid] };
            let watched = Tracing::new(observer, options, &[]).start();
            until_watching(&watched, observer, if only { maker.pid() } else { child });
            maker.calls(50);
            assert_eq!(maker.end(), 0);
            let traced = watched.end();
            let record = traced.record();
            assert_eq!(count(&record, child), if only { 0 } else { 50 }, "{observer}");
            assert_eq!(record.view.only, only);
            let left_out: Vec<u32> = record.unwatched_children.iter().map(|one| one.pid).collect();
            assert_eq!(left_out, if only { vec![child] } else { vec![] }, "{observer}");
            let said = format!("not watched  perl ({child}): made by the watched processes");
            assert_eq!(traced.stderr().contains(&said), only, "{}", traced.stderr());
        }
    });
}

#[test]
fn processes_made_later_belong_to_it_unless_only_the_process_is_wanted() {
    if !has("perl") {
        return;
    }
    const FORKS: &str = r#"
        $| = 1; print "ready\n"; <STDIN>;
        for (1..3) { if (!fork) { getppid for 1..5; exit } wait }
        getppid for 1..7; print "done\n"; <STDIN>;
    "#;
    each_observer(|observer| {
        for only in [false, true] {
            let mut maker = perl(FORKS);
            let pid = maker.pid().to_string();
            let options: &[&str] = if only { &["-p", &pid, "--only"] } else { &["-p", &pid] };
            let watched = Tracing::new(observer, options, &[]).start();
            until_watching(&watched, observer, maker.pid());
            maker.calls(0);
            assert_eq!(maker.end(), 0);
            let record = watched.end().record();
            assert_eq!(count(&record, 0), if only { 7 } else { 3 * 5 + 7 }, "{observer}");
        }
    });
}

#[test]
fn several_processes_are_watched_to_the_last_one_s_end() {
    if !has("perl") {
        return;
    }
    each_observer(|observer| {
        let [mut first, mut second, mut other] = [(); 3].map(|()| perl(COUNTS));
        let pids = [first.pid(), second.pid()];
        // One is named twice, and counts once.
        let list = format!("{},{}", pids[0], pids[1]);
        let watched =
            Tracing::new(observer, &["-p", &list, "-p", &pids[0].to_string()], &[]).start();
        until_watching(&watched, observer, second.pid());
        first.calls(10);
        assert_eq!(first.end(), 0);
        other.calls(1000);
        second.calls(20);
        assert_eq!(second.end(), 0);
        let traced = watched.end();
        let record = traced.record();
        assert_eq!(pids.map(|pid| count(&record, pid)), [10, 20], "{observer}");
        assert_eq!(count(&record, 0), 30, "{observer}");
        let targets: Vec<_> = record.targets.iter().map(|one| (&*one.kind, &*one.name)).collect();
        let names = pids.map(|pid| pid.to_string());
        let first = ("process", &*names[0]);
        assert_eq!(targets, [first, ("process", &names[1]), first]);
        assert!(traced.stderr().contains(" 2 processes  watched for"), "{}", traced.stderr());
    });
}

#[test]
fn processes_of_a_name_are_watched_those_that_start_later_too() {
    if !bpf() || !has("perl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // The kernel keeps 15 characters of this; the file has all.
    let name = unique("named");
    let long = format!("{name}-and-more-than-that");
    let files = [
        copy_of_program("perl", folder.path(), &name),
        copy_of_program("perl", folder.path(), &long),
    ];
    let link = folder.path().join("linked");
    symlink(&files[1], &link).unwrap();
    let run = |file: &Path| BackgroundProcess::ready(&[file.to_str().unwrap(), "-e", COUNTS]).0;
    let mut before = run(&files[0]);
    let mut other = perl(COUNTS);
    let pattern = format!("{name}*");
    let watched = watching("bpf", &["--each", "--name", &pattern]);
    before.calls(11);
    other.calls(1000);
    let pids = [&files[0], &files[1], &link].map(|file| {
        let mut later = run(file);
        later.calls(13);
        let pid = later.pid();
        assert_eq!(later.end(), 0);
        pid
    });
    watched.signal(Signal::SIGINT);
    let traced = watched.end();
    assert_eq!(traced.code(), 0, "{}", traced.stderr());
    let record = traced.record();
    assert_eq!(count(&record, before.pid()), 11);
    assert_eq!(pids.map(|pid| count(&record, pid)), [13; 3]);
    assert_eq!(count(&record, 0), 11 + 3 * 13);
    // What they execute is watched from its beginning: to open files is among the first things.
    assert!(record.calls.iter().any(|row| row.pid == pids[0] && row.syscall == "openat"));
    let said = format!("name {pattern}, 4 processes  watched for");
    assert!(traced.stderr().contains(&said), "{}", traced.stderr());
}

#[test]
fn a_name_that_nothing_has_is_told_and_waited_for() {
    if !bpf() {
        return;
    }
    let name = unique("nobody");
    let traced = Tracing::new("bpf", &["--name", &name, "-d", "0.1"], &[]).run();
    assert_eq!(traced.code(), 0);
    let said =
        format!("iotomy: no process is running yet of name {name}; those that start are watched");
    assert!(traced.stderr().contains(&said), "{}", traced.stderr());
    assert!(traced.stderr().contains(", no process  watched for"), "{}", traced.stderr());
}

#[test]
fn processes_of_a_cgroup_are_watched_those_that_come_later_too() {
    if !bpf() || !root() || !has("perl") {
        return;
    }
    let mounts = hierarchies();
    if mounts.is_empty() {
        return skip(Need::Machine, "no control group can be made here");
    }
    for mount in mounts {
        let outer = OwnCgroup::below(&mount).unwrap();
        let inner = OwnCgroup(outer.0.join("inner"));
        fs::create_dir(&inner.0).unwrap();
        let [mut there, mut other] = [(); 2].map(|()| perl(COUNTS));
        inner.add(there.pid());
        // Once as a directory, once by its path in the hierarchy.
        let path = Path::new("/").join(outer.0.strip_prefix(&mount).unwrap());
        for named in [&outer.0, &path] {
            let watched = watching("bpf", &["--each", "--cgroup", named.to_str().unwrap()]);
            there.calls(3);
            other.calls(1000);
            watched.signal(Signal::SIGINT);
            let record = watched.end().record();
            assert_eq!((count(&record, there.pid()), count(&record, 0)), (3, 3), "{named:?}");
            assert_eq!(record.targets[0].kind, "cgroup");
        }
        let watched = watching("bpf", &["--each", "--cgroup", outer.0.to_str().unwrap()]);
        // A service that starts anew: its process is moved, and executes a program.
        let started = started_in(&inner);
        // The groups are made anew, as for a container that starts again.
        assert_eq!(there.end(), 0);
        inner.removed();
        outer.renewed();
        fs::create_dir(&inner.0).unwrap();
        let again = started_in(&inner);
        watched.signal(Signal::SIGINT);
        let traced = watched.end();
        let record = traced.record();
        assert_eq!((count(&record, started), count(&record, again)), (17, 17), "{mount:?}");
        assert_eq!(count(&record, other.pid()), 0);
        for process in record.processes {
            assert_ne!(process.exec, "?", "{}", traced.stderr());
        }
    }
}

/// Neither that of the cgroup itself, nor that of a file system which has nothing to do with it.
#[test]
fn a_name_that_is_no_utf8_hides_no_cgroup() {
    if !root() || !bpf() || !has("perl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = folder.path().join(OsStr::from_bytes(b"a\xff"));
    fs::create_dir(&elsewhere).unwrap();
    let script = "mount -t tmpfs iotomy-test \"$0\" && exec \"$@\"";
    let mut hidden = bare("unshare", &["--mount", "sh", "-c", script]);
    hidden.arg(&elsewhere).args([support::IOTOMY, "trace", "-d", "0.1", "-q", "--json", "-"]);
    let mounts = hierarchies();
    let Some(mount) = mounts.first() else {
        return skip(Need::Machine, "no control group can be made here");
    };
    let name = [unique("iotomy-test").as_bytes(), b"\xfe"].concat();
    let cgroup = OwnCgroup(mount.join(OsStr::from_bytes(&name)));
    fs::create_dir(&cgroup.0).unwrap();
    let process = perl(COUNTS);
    cgroup.add(process.pid());
    let output = hidden.arg("--cgroup").arg(OsStr::from_bytes(&name)).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let record = iotomy_record::store::parse_trace(&output.stdout).unwrap();
    let pids: Vec<u32> = record.processes.iter().map(|process| process.pid).collect();
    assert_eq!(pids, [process.pid()]);
    assert_eq!(record.targets[0].name, iotomy_record::lossless(&name));
    assert_eq!(process.end(), 0);
}

#[test]
fn a_process_that_is_moved_into_a_cgroup_is_watched_soon() {
    if !bpf() || !root() || !has("perl") {
        return;
    }
    for mount in hierarchies() {
        let cgroup = OwnCgroup::below(&mount).unwrap();
        // Iotomy is told, and has to look for it: how long that takes is a matter of the machine.
        let record = doubled_until(
            8,
            |(record, pid): &(Trace, u32)| count(record, *pid) == 9,
            |milliseconds| {
                let mut moved = perl(COUNTS);
                let pid = moved.pid();
                let watched = watching("bpf", &["--cgroup", cgroup.0.to_str().unwrap()]);
                cgroup.add(pid);
                std::thread::sleep(Duration::from_millis(milliseconds.into()));
                moved.calls(9);
                assert_eq!(moved.end(), 0);
                watched.signal(Signal::SIGINT);
                (watched.end().record(), pid)
            },
        );
        let names: Vec<&str> = record.0.processes.iter().map(|process| &*process.exec).collect();
        assert_eq!(names, ["perl"]);
        cgroup.removed();
    }
}

/// A shell that moves itself into the group and becomes another program, which makes 17 calls.
fn started_in(cgroup: &OwnCgroup) -> u32 {
    let script = format!(
        "echo $$ > {}/cgroup.procs && exec perl -e 'getppid for 1..17; $| = 1; print \"ready\\n\"; <STDIN>'",
        cgroup.0.display()
    );
    let (started, line) = BackgroundProcess::ready(&["sh", "-c", &script]);
    assert_eq!(line, "ready");
    let pid = started.pid();
    assert_eq!(started.end(), 0);
    pid
}

#[test]
fn what_is_not_there_is_told_with_what_to_try() {
    for (arguments, said) in [
        (["--cgroup", "/no/such/group"], "the cgroup /no/such/group: "),
        (["--unit", "no-such-unit"], "the unit no-such-unit: "),
        (["--container", "no-such-container"], "the container no-such-container: "),
        (
            ["--cgroup", "/proc/self"],
            "the cgroup /proc/self: that is not in a cgroup file system; ",
        ),
        (["--unit", ""], "a value is required for '--unit <NAME>'"),
        (["--container", ""], "a value is required for '--container <NAME>'"),
        (["--cgroup", ""], "a value is required for '--cgroup <PATH>'"),
        (["--name", ""], "an empty pattern matches nothing"),
        (["--name", "a[b"], "`[` without `]`"),
        (["-p", "1,x"], "expected a process ID"),
    ] {
        for verb in ["trace", "anatomy"] {
            let output = iotomy(&[verb, arguments[0], arguments[1]]).output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{stderr}");
            assert!(stderr.contains(said), "{stderr}");
        }
    }
}

#[test]
fn a_cgroup_that_goes_away_ends_nothing() {
    if !bpf() || !root() || !has("perl") {
        return;
    }
    for mount in hierarchies() {
        let cgroup = OwnCgroup::below(&mount).unwrap();
        let watched = watching("bpf", &["--cgroup", cgroup.0.to_str().unwrap()]);
        let started = started_in(&cgroup);
        cgroup.removed();
        watched.signal(Signal::SIGINT);
        let traced = watched.end();
        assert_eq!(traced.code(), 0, "{}", traced.stderr());
        assert_eq!(count(&traced.record(), started), 17, "{mount:?}");
    }
}

#[test]
fn a_storm_of_processes_of_a_name_is_counted_or_said_to_be_lost() {
    if !bpf() || !has("perl") {
        return;
    }
    const STORM: &str = r#"
        $| = 1; print "ready\n"; <STDIN>;
        for (1..600) { my $pid = fork; if (!$pid) { getppid; exit } wait if $_ > 20 }
        1 while wait > 0; print "done\n"; <STDIN>;
    "#;
    let folder = tempfile::tempdir().unwrap();
    let name = unique("storm");
    let file = copy_of_program("perl", folder.path(), &name);
    for (rows, is_enough) in [("65536", true), ("100", false)] {
        let mut storm = BackgroundProcess::ready(&[file.to_str().unwrap(), "-e", STORM]).0;
        let watched = watching("bpf", &["--name", &name, "--max-rows", rows]);
        storm.calls(0);
        watched.signal(Signal::SIGINT);
        let traced = watched.end();
        assert_eq!(storm.end(), 0);
        let record = traced.record();
        let lost = record.observer.lost_events;
        match is_enough {
            true => assert_eq!((count(&record, 0), lost), (600, 0)),
            false => {
                assert!(count(&record, 0) < 600 && lost > 0, "{lost}");
                assert!(traced.stderr().contains("lost"), "{}", traced.stderr());
            }
        }
    }
}

#[test]
fn names_and_cgroups_are_for_the_observer_that_sees_all_processes() {
    let traced = Tracing::new("ptrace", &["--name", "x", "-d", "1"], &[]).run();
    let said = "ptrace cannot watch processes by name or cgroup; use --observer bpf as root";
    assert!(traced.stderr().contains(said), "{}", traced.stderr());
    assert_eq!(traced.code(), 2);
}

/// In a namespace of process ids of its own, where the next one can be chosen.
const REUSES_AN_ID: &str = r#"
    sleep 1000 & first=$!; sleep 1000 & second=$!
    "$1" trace -q --each -p $first,$second --json "$2" & trace=$!
    until read -r call rest < /proc/$trace/syscall && case $call in 7|271|219) true;; *) false;; esac
    do sleep 0.01; done
    kill $first; wait $first
    echo $((first - 1)) > /proc/sys/kernel/ns_last_pid
    perl -e 'getppid for 1..1000; exit($$ == shift() ? 0 : 3)' $first; reused=$?
    kill $second; wait $trace && exit $reused
"#;

#[test]
fn a_process_that_gets_the_id_of_one_that_ended_is_another() {
    if !bpf() || !root() || !has("perl") || !has("unshare") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("record.json");
    let mut unshare = bare("unshare", &["--pid", "--fork", "--mount-proc"]);
    unshare.args(["sh", "-c", REUSES_AN_ID, "sh", support::IOTOMY]).arg(&json);
    let output = unshare.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    if stderr.contains("unshare: ") {
        return skip(Need::Namespaces, &stderr);
    }
    assert_eq!(output.status.code(), Some(0), "3: the id was another: {stderr}");
    let record = iotomy_record::store::load_trace(&json).unwrap();
    assert_eq!(record.processes.len(), 2, "{:?}", record.processes);
    assert_eq!(count(&record, 0), 0);
}
