//! Shards of experiments and their merging, as a user has them.

use crate::support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use iotomy_record::{AxisValue, Sweep, store};
use nix::sys::signal::Signal;
use support::labs::{User, until_measured};
use support::{iotomy, send, until};

/// Eight cases in two points, each of which takes some milliseconds.
const PLAN: [&str; 4] = ["null-sink", "-L", "size=1M,2M", "--max-time=2"];

fn root_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_owned()).unwrap()
}

impl User {
    /// Runs a shard, into a directory of the work.
    fn shard(&self, share: &str, machine: &str) -> Output {
        let to = self.work.path().join("records");
        fs::create_dir_all(&to).unwrap();
        let more = ["-q", "--shard", share, "--machine", machine, "--json", to.to_str().unwrap()];
        self.run(&[&PLAN[..], &more].concat())
    }

    fn records(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.work.path().join("records")).unwrap();
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    }

    fn merge(&self, records: &[PathBuf], more: &[&str]) -> Output {
        iotomy(&["lab", "merge"]).args(records).args(more).output().unwrap()
    }

    fn merged(&self, records: &[PathBuf]) -> Sweep {
        let output = self.merge(records, &["-q", "-o", "-"]);
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        store::parse_sweep(&output.stdout).unwrap()
    }
}

/// The values of each case, in order.
fn params(sweep: &Sweep) -> Vec<Vec<AxisValue>> {
    sweep.cases.iter().map(|case| case.params.values().cloned().collect()).collect()
}

#[test]
fn shards_of_one_machine_merge_into_the_record_of_one_piece() {
    let user = User::new();
    for share in ["1/3", "2/3", "3/3"] {
        let output = user.shard(share, "here");
        assert!(output.status.success(), "{output:?}");
    }
    let names: Vec<_> =
        user.records().iter().map(|path| path.file_name().unwrap().to_owned()).collect();
    assert_eq!(names, ["null-sink-1-of-3.json", "null-sink-2-of-3.json", "null-sink-3-of-3.json"]);
    let shards: Vec<Sweep> =
        user.records().iter().map(|path| store::load_sweep(path).unwrap()).collect();
    let sizes: Vec<usize> = shards.iter().map(|shard| shard.cases.len()).collect();
    assert_eq!(sizes, [4, 4, 0], "the four ways of a size stay together");
    for (shard, index) in shards.iter().zip(1..) {
        let facts = shard.run.shard.as_ref().unwrap();
        assert_eq!((facts.index, facts.of, facts.plan_cases), (index, 3, 8));
        assert_eq!(facts.plan, shards[0].run.shard.as_ref().unwrap().plan);
        assert_eq!((shard.machine.name.as_str(), shard.claims.len()), ("here", 0));
    }
    let whole = user.record(&PLAN);
    assert!(!whole.machine.name.is_empty() && whole.run.shard.is_none());
    let merged = user.merged(&user.records());
    assert_eq!(params(&merged), params(&whole));
    assert_eq!((&merged.axes, &merged.about), (&whole.axes, &whole.about));
    assert!(merged.machines.is_empty() && merged.run.shard.is_none());
    let ids = |of: &Sweep| of.claims.iter().map(|claim| claim.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&merged), ids(&whole));
    assert!(merged.claims.iter().all(|claim| !claim.because.is_empty()));
    assert_eq!(fs::read_dir(user.state.path().join("iotomy")).unwrap().count(), 0);
}

#[test]
fn a_merged_record_is_written_shown_and_reported() {
    let user = User::new();
    for (share, machine) in [("1/2", "node1"), ("2/2", "node2")] {
        assert!(user.shard(share, machine).status.success());
    }
    let to = user.work.path().join("merged.json");
    let output = user.merge(&user.records(), &["-o", to.to_str().unwrap()]);
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let sweep = store::load_sweep(&to).unwrap();
    let names: Vec<_> = sweep.machines.iter().map(|one| one.machine.name.as_str()).collect();
    assert_eq!(names, ["node1", "node2"]);
    let on = |name: &str| {
        let value = AxisValue::Name(name.into());
        sweep.cases.iter().filter(|case| case.params["machine"] == value).count()
    };
    assert_eq!((on("node1"), on("node2"), sweep.cases.len()), (4, 4, 8));
    let report = text(&output.stdout);
    assert!(report.contains("merged from 2 shards · 2 machines"), "{report}");
    // One size is too few for a line, and that of the other machine is not taken for a second one.
    let words = report.split_whitespace().collect::<Vec<_>>().join(" ");
    let apart = "(4 of 8 cases ran on other machines, and cases of two machines are not compared)";
    assert!(words.contains("node1 inconclusive: ") && words.contains(apart), "{report}");
    assert!(report.lines().all(|line| line.chars().count() <= 100), "{report}");
    let shown = iotomy(&["show", to.to_str().unwrap()]).output().unwrap();
    assert_eq!(text(&shown.stdout).trim_end(), report.trim_end());
    let table = iotomy(&["report", "--csv", "--part", "claims-by-machine", to.to_str().unwrap()]);
    let table = text(&{ table }.output().unwrap().stdout);
    assert_eq!(table.lines().count(), 1 + 2 * sweep.claims.len(), "{table}");
    let cases = iotomy(&["report", "--csv", "--part", "cases", to.to_str().unwrap()]);
    let cases = text(&{ cases }.output().unwrap().stdout);
    assert!(cases.starts_with("machine,"), "{cases}");
    assert_eq!(cases.matches("\nnode1,").count(), 4, "{cases}");
    let page = user.work.path().join("page.html");
    let made = iotomy(&["report", to.to_str().unwrap(), "-o", page.to_str().unwrap()]).output();
    assert!(made.unwrap().status.success() && fs::read_to_string(&page).unwrap().contains("node2"));
}

#[test]
fn whole_records_of_machines_are_merged_by_machine() {
    let user = User::new();
    let records: Vec<PathBuf> = ["a", "b"]
        .iter()
        .map(|machine| {
            let to = user.work.path().join(format!("{machine}.json"));
            let more = ["-q", "--machine", machine, "--json", to.to_str().unwrap()];
            assert!(user.run(&[&PLAN[..], &more].concat()).status.success());
            to
        })
        .collect();
    let merged = user.merged(&records);
    assert_eq!((merged.cases.len(), merged.machines.len()), (16, 2));
    for (machine, record) in merged.machines.iter().zip(&records) {
        assert_eq!(machine.claims, store::load_sweep(record).unwrap().claims);
    }
}

#[test]
fn a_shard_that_is_complete_is_not_run_again() {
    let user = User::new();
    assert!(user.shard("2/2", "here").status.success());
    let record = &user.records()[0];
    let before = fs::read(record).unwrap();
    // Also on another machine, and in another directory.
    let output = user.shard("2/2", "elsewhere");
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    let said = text(&output.stderr);
    assert!(said.contains("iotomy: shard 2/2 of null-sink is complete in "), "{said}");
    assert_eq!(fs::read(record).unwrap(), before);
}

#[test]
fn an_interrupted_shard_is_resumed_by_asking_again() {
    let user = User::new();
    let to = user.work.path().join("shard.json");
    let slow =
        ["copy", "-L", "size=64M", "-L", "block=8M", "--max-time=20", "--shard=1/1", "--json"];
    let command = || {
        let mut command = user.command(&slow);
        command.arg(&to).arg("-q");
        command
    };
    let kept = || {
        let mut entries = fs::read_dir(user.state.path().join("iotomy")).unwrap().flatten();
        let is_record = |path: &PathBuf| path.extension().is_some_and(|of| of == "json");
        entries.by_ref().map(|entry| entry.path()).find(is_record)
    };
    let child = command().spawn().unwrap();
    let file = until("its state is kept", || {
        user.state.path().join("iotomy").exists().then(kept).flatten()
    });
    until_measured(&file);
    send(child.id(), Signal::SIGKILL);
    assert!(!child.wait_with_output().unwrap().status.success());
    assert!(!to.exists(), "a record is there when it is whole");
    let mut before = store::load_sweep(&file).unwrap();
    // Its time is over: it has only to come to its end.
    before.run.wall_ns = before.run.max_time_ns.unwrap();
    store::RecordRef::Sweep(&before).save_to(&file, Path::new("/")).unwrap();
    // On another machine it starts from its beginning.
    let mut elsewhere = command();
    let mut child = elsewhere.args(["--machine", "other"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut said).unwrap();
    assert!(said.contains("shard 1/1 of copy starts from its beginning: "), "{said}");
    assert!(said.contains("it is from the machine "), "{said}");
    send(child.id(), Signal::SIGKILL);
    child.wait().unwrap();
    store::RecordRef::Sweep(&before).save_to(&file, Path::new("/")).unwrap();
    let output = command().output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let after = store::load_sweep(&to).unwrap();
    assert_eq!((&after.started, after.run.is_partial), (&before.started, false));
    for (after, before) in after.cases.iter().zip(&before.cases) {
        assert_eq!(after.samples, before.samples);
    }
    assert_eq!(kept(), None);
}

#[test]
fn what_is_no_shard_is_refused_before_anything_runs() {
    let user = User::new();
    let to = user.work.path().join("x.json");
    let json = ["--json", to.to_str().unwrap()];
    for (arguments, says) in [
        (&["--shard", "0/3"][..], "invalid shard 0 of 3: expected 1 to 3"),
        (&["--shard", "4/3"], "invalid shard 4 of 3: expected 1 to 3"),
        (&["--shard", "1/0"], "invalid number of shards 0: expected 1 to 100000"),
        (&["--shard", "two"], "invalid shard: expected I/N, as in 2/5"),
        (&["--shard", "1/2", "--resume"], "cannot be used with"),
        (&["--machine", " "], "expected a name"),
        (&["--machine", "a\nb"], "expected a name without control characters"),
    ] {
        let output = user.run(&[&["copy"][..], &json, arguments].concat());
        let error = text(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?}");
        assert!(error.starts_with("iotomy: ") && error.contains(says), "{arguments:?}: {error}");
    }
    let output = user.run(&["copy", "--shard", "1/2"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("--json"), "{output:?}");
    // A plan without cases has none for a shard.
    let none = ["copy", "-L", "mover=splice", "-L", "block=8K", "--shard", "1/2"];
    let output = user.run(&[&none[..], &json].concat());
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("these values give no valid case"), "{output:?}");
    assert!(!to.exists());
}

#[test]
fn a_file_of_something_else_is_not_written_over_by_a_shard() {
    let user = User::new();
    assert!(user.shard("1/2", "here").status.success());
    let shard = user.records()[0].clone();
    let other = user.work.path().join("other");
    fs::write(&other, "something").unwrap();
    let root = root_directory();
    let whole = root.join("results/2026-11-22-epyc-2cpu-linux-6.18/lab/null-sink.json");
    let copy = user.work.path().join("whole.json");
    fs::copy(whole, &copy).unwrap();
    for (file, share, says) in [
        (&shard, "2/2", "it has shard 1/2 of another plan of null-sink"),
        (&shard, "1/3", "it has shard 1/2 of another plan of null-sink"),
        (&other, "1/2", "it has something else than the record of a shard"),
        (&copy, "1/2", "it has a record of null-sink that is no shard"),
    ] {
        let before = fs::read(file).unwrap();
        let more = ["--shard", share, "--json", file.to_str().unwrap()];
        let output = user.run(&[&PLAN[..], &more].concat());
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(says) && error.contains("move it away"), "{error}");
        assert_eq!(fs::read(file).unwrap(), before);
    }
}

#[test]
fn records_that_make_no_whole_are_refused_and_nothing_is_written() {
    let user = User::new();
    for share in ["1/3", "2/3"] {
        assert!(user.shard(share, "here").status.success());
    }
    let records = user.records();
    let to = user.work.path().join("merged.json");
    let refused = |records: &[PathBuf]| {
        let output = user.merge(records, &["-o", to.to_str().unwrap()]);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{output:?}");
        assert!(!to.exists());
        let error = text(&output.stderr);
        assert!(error.starts_with("iotomy: ") && error.lines().count() == 1, "{error}");
        error
    };
    let error = refused(&records);
    assert!(
        error.contains("cannot merge the shards of null-sink: shard 3/3 is missing; run"),
        "{error}"
    );
    // The command that it gives runs the shard that is missing.
    let folder = user.work.path().to_str().unwrap();
    let command = error.split_once("as in: iotomy ").unwrap().1.trim();
    let expected = format!(
        "lab run null-sink -L size=1048576,2097152 --max-time 2 --path {folder} --shard 3/3 --json \
         null-sink-3-of-3.json"
    );
    assert_eq!(command, expected);
    let words: Vec<&str> = command.split(' ').collect();
    let mut run = iotomy(&words);
    run.args(["-q", "--machine", "here"]).env("XDG_STATE_HOME", user.state.path());
    let output = run.current_dir(user.work.path().join("records")).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let records = user.records();
    assert_eq!(user.merged(&records).cases.len(), 8);
    let error = refused(&[records[0].clone(), user.work.path().join("nothing.json")]);
    assert!(error.contains("nothing.json"), "{error}");
    let trace = root_directory().join("docs/examples/dd-and-cat.json");
    let error = refused(&[records[0].clone(), trace]);
    assert!(error.contains("not a sweep"), "{error}");
    let old = root_directory().join("results/2026-11-22-epyc-2cpu-linux-6.18/lab/null-sink.json");
    let error = refused(&[old]);
    assert!(error.contains("it does not name its machine; run it again"), "{error}");
    // A record of another shard in place of one.
    let mut other = store::load_sweep(&records[0]).unwrap();
    other.run.wall_ns += 1;
    let copy = user.work.path().join("again.json");
    store::RecordRef::Sweep(&other).save_to(&copy, Path::new("/")).unwrap();
    let error = refused(&[records[0].clone(), copy, records[1].clone(), records[2].clone()]);
    assert!(error.contains("both are shard 1/3, with different measurements"), "{error}");
    let mut alien = other;
    alien.experiment = "magic".to_owned();
    let copy = user.work.path().join("alien.json");
    store::RecordRef::Sweep(&alien).save_to(&copy, Path::new("/")).unwrap();
    let error = refused(&[copy]);
    assert!(error.contains("this iotomy does not know the experiment magic"), "{error}");
    // A record is not written over by what it is merged into.
    let before = fs::read(&records[0]).unwrap();
    let output = user.merge(&records, &["-o", records[0].to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("it is one of the records"), "{output:?}");
    assert_eq!(fs::read(&records[0]).unwrap(), before);
}

/// What a pod of the Job runs: the text of the manifest, by a shell, with the variables of Kubernetes.
#[test]
fn the_job_of_kubernetes_runs_a_shard_by_its_index() {
    let user = User::new();
    let root = root_directory();
    let script = |name: &str| {
        let manifest = fs::read_to_string(root.join("scripts/kubernetes").join(name)).unwrap();
        let (_, block) = manifest.split_once("args:\n            - |\n").unwrap();
        let (block, _) = block.split_once("          env:").unwrap();
        block
            .replace("\n              ", "\n")
            .replace("--full --max-time 600", "-L size=1M --max-time=2")
    };
    let records = user.work.path().join("records");
    fs::create_dir(&records).unwrap();
    let program = iotomy(&[]).get_program().to_owned();
    let folder = Path::new(&program).parent().unwrap().to_owned();
    let path = std::env::join_paths([folder, "/usr/bin".into(), "/bin".into()]).unwrap();
    let run = |text: String, index: &str| {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-euc", &text]).env("JOB_COMPLETION_INDEX", index).env("SHARDS", "2");
        shell.env("RECORDS", &records).env("XDG_STATE_HOME", user.state.path());
        shell.env("NODE", format!("node{index}")).env("PATH", &path);
        let output = shell.output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    for index in ["0", "1"] {
        run(script("lab.yaml"), index);
    }
    run(script("merge.yaml"), "");
    let merged = store::load_sweep(records.join("null-sink.json")).unwrap();
    assert_eq!((merged.cases.len(), merged.run.shards.len()), (4, 2));
}
