//! Which running processes `iotomy anatomy` dissects: by id, name, control group, unit, container, or all.

use crate::support;

use std::process::{Child, Stdio};

use iotomy_record::{Anatomy, store};
use nix::sys::signal::Signal;
use support::cgroups::{OwnCgroup, hierarchies, unique};
use support::{
    BackgroundProcess, Need, anatomy, children, copy_of_program, has, iotomy, root, send, skip,
    until_polling,
};
use tempfile::TempDir;

/// On each line: as many calls as it says, by itself and by a child that it made at the start.
const COUNTS: &str = r#"
    $| = 1; pipe my $from, my $to or die; pipe my $back, my $done or die;
    if (!fork) { close $to; select $done; $| = 1;
        while (<$from>) { getppid for 1..$_; print "done\n" } exit }
    close $from; print "ready\n";
    while (<STDIN>) { getppid for 1..$_; syswrite $to, $_; <$back>; print "done\n" }
    close $to; wait;
"#;

fn perl() -> BackgroundProcess {
    BackgroundProcess::ready(&["perl", "-e", COUNTS]).0
}

fn calls(of: &mut BackgroundProcess, number: u32) {
    of.say(&format!("{number}\n"));
    assert_eq!(of.line(), "done");
}

/// An anatomy under way.
struct Dissecting {
    child: Child,
    folder: TempDir,
}

impl Dissecting {
    fn start(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = iotomy(&["anatomy", "-q", "--json"]);
        command.arg(folder.path().join("record.json")).args(options);
        let child = command.stderr(Stdio::piped()).spawn().unwrap();
        until_polling(child.id());
        Self { child, folder }
    }

    fn end(self) -> Anatomy {
        send(self.child.id(), Signal::SIGINT);
        let output = self.child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        store::load_anatomy(self.folder.path().join("record.json")).unwrap()
    }
}

/// The calls of a process, which are dissected.
fn count(record: &Anatomy, pid: u32) -> u64 {
    let of_call = |call: &str, of: u32| call == "getppid" && of == pid;
    let rows = record.trace.calls.iter().filter(|row| of_call(&row.syscall, row.pid));
    let calls = rows.map(|row| row.calls).sum();
    let is_dissected =
        record.calls.iter().any(|row| of_call(row.syscall.as_deref().unwrap_or(""), row.pid));
    assert_eq!(is_dissected, calls > 0);
    calls
}

/// Watches by these options, of which each selects the first process, and with it its child, unless
/// `only` it is.
fn selects(options: &[&str], of: &mut BackgroundProcess, other: &mut BackgroundProcess) {
    for only in [false, true] {
        let mut all = options.to_vec();
        all.extend(only.then_some("--only"));
        let watch = Dissecting::start(&all);
        calls(of, 30);
        calls(other, 70);
        let record = watch.end();
        assert_eq!(count(&record, of.pid()), 30, "{all:?}");
        let child = children(of.pid())[0];
        // A pattern or a group selects the child itself.
        let has_child = !only || !options.contains(&"-p");
        assert_eq!(count(&record, child), if has_child { 30 } else { 0 }, "{all:?}");
        assert_eq!(count(&record, other.pid()), 0, "{all:?}");
        assert_eq!(record.trace.view.only, only);
    }
}

#[test]
fn several_processes_by_id_and_their_children_unless_only_they_are_wanted() {
    if !anatomy() || !has("perl") {
        return;
    }
    let [mut first, mut second, mut other] = [(); 3].map(|()| perl());
    let list = format!("{},{}", first.pid(), second.pid());
    selects(&["-p", &list], &mut first, &mut other);
    // Named twice, and counted once.
    let ids = [first.pid(), second.pid()].map(|pid| pid.to_string());
    let watch = Dissecting::start(&["-p", &ids[0], "-p", &ids[1], "-p", &list]);
    calls(&mut first, 5);
    calls(&mut second, 6);
    calls(&mut other, 7);
    let record = watch.end();
    let counts = [&first, &second, &other].map(|one| count(&record, one.pid()));
    assert_eq!(counts, [5, 6, 0]);
}

#[test]
fn all_processes_of_the_machine() {
    if !anatomy() || !root() || !has("perl") {
        return;
    }
    let [mut first, mut second] = [(); 2].map(|()| perl());
    let watch = Dissecting::start(&["-a", "--where", "call == \"getppid\""]);
    calls(&mut first, 5);
    calls(&mut second, 6);
    let record = watch.end();
    assert_eq!([&first, &second].map(|one| count(&record, one.pid())), [5, 6]);
    assert!(record.trace.view.machine);
}

#[test]
fn processes_by_name() {
    if !anatomy() || !has("perl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let name = unique("named");
    let file = copy_of_program("perl", folder.path(), &name);
    let mut named = BackgroundProcess::ready(&[file.to_str().unwrap(), "-e", COUNTS]).0;
    selects(&["--name", &name], &mut named, &mut perl());
}

#[test]
fn processes_by_control_group_unit_and_container() {
    if !anatomy() || !root() || !has("perl") {
        return;
    }
    let Some(mount) = hierarchies().into_iter().next() else {
        return skip(Need::Machine, "no control group can be made here");
    };
    // As systemd and docker name theirs.
    let unit = unique("iotomy-test");
    let id = format!("{:0>64}", format!("10707e5{:08x}", std::process::id()));
    let id: String = id.chars().rev().collect();
    for (option, directory, named) in [
        ("--cgroup", unique("iotomy-test"), None),
        ("--unit", format!("{unit}.service"), Some(unit)),
        ("--container", format!("docker-{id}.scope"), Some(id.clone())),
    ] {
        let cgroup = OwnCgroup::named(&mount, &directory).unwrap();
        let mut inside = perl();
        let child = children(inside.pid())[0];
        for pid in [inside.pid(), child] {
            cgroup.add(pid);
        }
        let path = cgroup.0.to_str().unwrap().to_owned();
        let named = named.unwrap_or(path);
        selects(&[option, &named], &mut inside, &mut perl());
        assert_eq!(inside.end(), 0);
        cgroup.removed();
    }
}

#[test]
fn a_time_ends_the_watch_and_what_it_watches_goes_on() {
    if !anatomy() || !has("perl") {
        return;
    }
    let mut subject = perl();
    let pid = subject.pid().to_string();
    let output = iotomy(&["anatomy", "-d", "0.2", "-p", &pid]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("watched for"), "{stderr}");
    calls(&mut subject, 3);
    assert_eq!(subject.end(), 0);
}
