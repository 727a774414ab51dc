//! `iotomy lab` as a user has it: lists, small runs, what is refused, and runs that are interrupted.

#![expect(clippy::unwrap_used, reason = "a failed step of a test is a failed test")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use iotomy_lab::experiments::{EXPERIMENTS, Takes};
use iotomy_record::{AxisValue, Sweep, store};
use nix::sys::signal::Signal;
use support::{iotomy, send, until};
use tempfile::TempDir;

/// A user with folders of its own.
struct User {
    state: TempDir,
    work: TempDir,
}

impl User {
    fn new() -> Self {
        Self {
            state: tempfile::tempdir().unwrap(),
            work: tempfile::tempdir_in("/var/tmp").unwrap(),
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = iotomy(&["lab", "run", "--path"]);
        command.arg(self.work.path()).args(arguments).env("XDG_STATE_HOME", self.state.path());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn record(&self, arguments: &[&str]) -> Sweep {
        let output = self.run(&[arguments, &["-q", "--json", "-"]].concat());
        assert!(output.status.success(), "{output:?}");
        store::parse_sweep(&output.stdout).unwrap()
    }

    fn kept(&self, experiment: &str) -> PathBuf {
        self.state.path().join(format!("iotomy/lab-{experiment}.json"))
    }
}

/// Small enough for a test.
const SMALL: [&str; 6] = ["copy", "-L", "size=1M", "-L", "block=8K,8M", "--max-time=1"];

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_owned()).unwrap()
}

fn said(arguments: &[&str]) -> String {
    let output = iotomy(arguments).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    text(&output.stdout)
}

#[test]
fn the_list_has_every_experiment_and_tells_all_about_each() {
    let short = said(&["lab", "list"]);
    for one in EXPERIMENTS {
        let declared = one.declaration();
        let long = said(&["lab", "list", declared.name]);
        assert!(short.contains(declared.name) && long.starts_with(declared.name), "{long}");
        for claim in declared.claims {
            assert!(short.contains(claim.id) && long.contains(claim.id), "{}", claim.id);
        }
        for axis in declared.axes {
            assert!(long.contains(&format!("-L {}=", axis.name)), "{long}");
        }
        for line in short.lines().chain(long.lines()) {
            assert!(line.chars().count() <= 100 && !line.ends_with(' '), "{line:?}");
        }
    }
}

#[test]
fn the_guide_has_every_experiment_with_its_axes_and_claims() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let guide = fs::read_to_string(root.join("docs/lab.md")).unwrap();
    let mut rows = Vec::new();
    for one in EXPERIMENTS {
        let declared = one.declaration();
        let axes = declared.axes.iter().map(|axis| match axis.takes {
            Takes::Names(names) => format!("`{}`: {}", axis.name, names.join(", ")),
            Takes::Numbers(..) => format!("`{}`", axis.name),
        });
        let axes = axes.collect::<Vec<_>>().join("; ");
        rows.push(format!("| `{}` | {} | {axes} |", declared.name, declared.summary));
    }
    for claim in EXPERIMENTS.iter().flat_map(|one| one.declaration().claims) {
        rows.push(format!("| `{}` | {} | {} |", claim.id, claim.source, claim.text));
    }
    let found: Vec<&str> = guide.lines().filter(|line| line.starts_with("| `")).collect();
    assert_eq!(found, rows, "the tables should be:\n{}", rows.join("\n"));
}

#[test]
fn a_run_shows_its_claims_and_is_shown_again_from_its_record() {
    let user = User::new();
    let file = user.work.path().join("sweep.json");
    let output = user.run(&[&SMALL[..], &["--json", file.to_str().unwrap()]].concat());
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let report = text(&output.stdout);
    assert!(report.lines().all(|line| line.chars().count() <= 100), "{report}");
    let sweep = store::load_sweep(&file).unwrap();
    assert_eq!((sweep.experiment.as_str(), sweep.run.is_partial), ("copy", false));
    for claim in &sweep.claims {
        assert!(report.contains(&format!("{} ({})", claim.id, claim.source)), "{report}");
        assert!(!claim.because.is_empty(), "{claim:?}");
    }
    // 8 KiB for read-write alone, 8 MiB for four movers.
    assert_eq!(sweep.cases.len(), 5, "{:?}", sweep.cases);
    let shown = said(&["show", file.to_str().unwrap()]);
    assert_eq!(shown.trim_end(), report.trim_end());
    assert!(!user.kept("copy").exists(), "what came to its end is not kept");
}

#[test]
fn the_calls_of_a_copy_are_those_of_its_requests() {
    if !support::bpf() {
        return;
    }
    // Time enough to be watched, also on a slow machine; so small a file has all its samples soon.
    let time_enough = ["copy", "-L", "size=1M", "-L", "block=8K,8M", "--max-time=120"];
    let sweep = User::new().record(&time_enough);
    let calls = |mover: &str, block: u64| {
        let is = |case: &&iotomy_record::Case| {
            case.params["mover"].to_string() == mover
                && case.params["block"].to_string() == block.to_string()
        };
        sweep.cases.iter().find(is).unwrap().extra["calls"]
    };
    // 1 MiB is 128 reads and writes of 8 KiB, and one of each of 8 MiB, whose buffer takes some calls
    // more to get.
    let more = calls("read-write", 8 << 10) - calls("read-write", 8 << 20);
    assert!((more - 2.0 * 127.0).abs() < 8.0, "{more}");
}

#[test]
fn waiters_meet_their_limits_and_lose_nothing_between_threads() {
    let sweep = User::new().record(&[
        "wait",
        "-L",
        "waiter=select,poll,epoll",
        "-L",
        "descriptors=20,600",
        "-L",
        "active=1",
        "--max-time=4",
    ]);
    let of = |waiter: &str, descriptors: u64| {
        let is = |case: &&iotomy_record::Case| {
            case.params["waiter"] == AxisValue::Name(waiter.into())
                && case.params["descriptors"] == AxisValue::Number(descriptors)
                && case.params["loop"] == AxisValue::Name("spin".into())
        };
        sweep.cases.iter().find(is).unwrap()
    };
    let reason = of("select", 600).skipped.as_deref().unwrap();
    assert!(reason.starts_with("select has room for descriptors up to 1023 only"), "{reason}");
    let (select, epoll) = (&of("select", 20).extra, &of("epoll", 600).extra);
    assert!(select["watchable"] < 512.0 && epoll["watchable"] == 600.0, "{select:?} {epoll:?}");
    assert_eq!(epoll["ceiling"], 256.0);
    assert_eq!((epoll["shares"], epoll["share_lost"]), (4.0, 0.0), "{epoll:?}");
    assert_eq!(of("poll", 600).extra["shares"], 1.0);
}

#[test]
fn more_descriptors_than_a_process_may_have_are_shared_out_among_several() {
    let user = User::new();
    let all = ["wait", "-L", "waiter=poll,epoll", "-L", "descriptors=100,500", "-L", "loop=spin"];
    let more = ["-L", "active=100", "-q", "--json", "-", "--max-time=60"];
    let inner = user.command(&[&all[..], &more].concat());
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 400 && exec \"$0\" \"$@\""]).arg(inner.get_program());
    let output = command.args(inner.get_args()).env("XDG_STATE_HOME", user.state.path()).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{output:?}");
    let sweep = store::parse_sweep(&output.stdout).unwrap();
    for case in &sweep.cases {
        assert!(case.skipped.is_none() && case.note.is_none(), "{case:?}");
        // (400 - 64) / 2 pairs fit into one.
        let processes =
            if case.params["descriptors"] == AxisValue::Number(500) { 3.0 } else { 1.0 };
        assert_eq!(case.extra["processes"], processes, "{case:?}");
    }
    // What several share out grows for none of them, and decides nothing.
    let scale = sweep.claims.iter().find(|claim| claim.id == "wait-scale").unwrap();
    assert_eq!(scale.verdict.name(), "inconclusive", "{scale:?}");
}

#[test]
fn a_comparator_that_is_not_there_is_a_reason_and_no_row() {
    let user = User::new();
    let axes = ["wait", "-L", "waiter=epoll,libevent", "-L", "descriptors=20", "-L", "active=1"];
    let mut command = user.command(&[&axes[..], &["-q", "--json", "-", "--max-time=30"]].concat());
    let output = command.env("PATH", user.work.path()).output().unwrap();
    let sweep = store::parse_sweep(&output.stdout).unwrap();
    let skipped: Vec<_> = sweep.cases.iter().filter_map(|case| case.skipped.as_deref()).collect();
    assert!(skipped.len() == 1 && skipped[0].contains("make bench-wait builds it"), "{skipped:?}");
    let tax = sweep.claims.iter().find(|claim| claim.id == "reactor-tax").unwrap();
    assert_eq!(tax.verdict.name(), "inconclusive");
    assert!(tax.because.contains("waiter=epoll,libevent,libuv"), "{tax:?}");
}

#[test]
fn a_burst_of_signals_overflows_and_none_is_lost() {
    let sweep = User::new().record(&[
        "models",
        "-L",
        "model=sigio,epoll",
        "-L",
        "rate=1000",
        "-L",
        "descriptors=100",
        "--max-time=2",
    ]);
    for case in &sweep.cases {
        let is_sigio = case.params["model"] == AxisValue::Name("sigio".into());
        assert_eq!(case.extra["overflows"] > 0.0, is_sigio, "{case:?}");
        assert_eq!(case.extra["lost"], 0.0, "{case:?}");
    }
}

#[test]
fn the_null_device_touches_nothing_that_is_mapped() {
    let user = User::new();
    let sweep = user.record(&["null-sink", "-L", "size=1M,32M", "--max-time=2"]);
    let verdict = |id: &str| {
        let claim = sweep.claims.iter().find(|claim| claim.id == id).unwrap();
        println!("{id}: {:?}: {}", claim.verdict, claim.because);
        claim.verdict.name()
    };
    assert_eq!(verdict("null-sink"), "holds");
    assert_eq!(verdict("null-sink-pipe"), "holds");
    // Not where files cannot leave memory.
    assert_ne!(verdict("null-sink-residency"), "fails");
    // A claim that fails is a result: the run had exit status 0.
    assert_ne!(verdict("null-sink-atime"), "holds", "Linux takes a mapping for an access");
    for case in sweep.cases.iter().filter(|case| case.params["way"].to_string() == "mmap") {
        let faults = case.extra["faults"];
        assert!(faults < 8.0, "{faults} for {} pages", case.params["size"]);
    }
}

#[test]
fn what_is_no_experiment_axis_or_value_is_refused_before_anything_runs() {
    let user = User::new();
    for (arguments, says) in [
        (&["herds"][..], "there is no experiment \"herds\"; there are copy"),
        (
            &["copy", "-L", "speed=1"],
            "-L speed: there is no such axis; there are block, mover, size",
        ),
        (&["copy", "-L", "mover=magic"], "\"magic\" is no mover; it is one of read-write"),
        (&["copy", "-L", "block=1"], "block 1 is not from 512 to"),
        (&["copy", "-L", "block=x"], "block: a size is a number of bytes"),
        (&["copy", "-L", "block"], "name=value"),
        (&["copy", "-L", "block=8K", "-L", "block=8M"], "-L block is given twice"),
        (&["copy", "-L", "mover=splice", "-L", "block=8K"], "these values make no case"),
        (&["copy", "null-sink", "--json", "/dev/null"], "name a folder that exists"),
        (&["copy", "--path", "/nowhere"], "No such file"),
        (&["copy", "--quick", "--full"], "cannot be used with"),
        (&["copy", "--max-time", "0"], "more than 0 seconds"),
        (&["--resume"], "no interrupted run to go on with"),
        (&[], "required"),
    ] {
        let mut command = iotomy(&["lab", "run"]);
        command.args(arguments).env("XDG_STATE_HOME", user.state.path());
        let output = command.output().unwrap();
        let error = text(&output.stderr);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?}");
        assert!(error.starts_with("iotomy: ") && error.contains(says), "{arguments:?}: {error}");
    }
}

#[test]
fn a_file_that_finds_no_room_is_an_error_with_the_folder_and_what_to_try() {
    let user = User::new();
    let output = user.run(&["null-sink", "-L", "size=1T"]);
    let report = text(&output.stdout);
    // Whichever there is less of.
    assert!(
        report.contains("MiB of memory") || report.contains("name another folder"),
        "{output:?}"
    );
}

#[test]
fn several_experiments_write_a_record_each() {
    let user = User::new();
    let folder = user.work.path().to_str().unwrap();
    let small = ["-L", "size=1M", "-L", "block=8M", "--max-time", "1"];
    let output = user.run(&[&["copy", "null-sink", "-q", "--json", folder], &small[..]].concat());
    assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
    for name in ["copy", "null-sink"] {
        let sweep = store::load_sweep(user.work.path().join(format!("{name}.json"))).unwrap();
        assert_eq!(sweep.experiment, name);
    }
}

/// Starts a run that takes long, and waits until it has measured something.
fn started(user: &User) -> std::process::Child {
    let mut command = user.command(&["copy", "-L", "size=64M", "--max-time=600", "--seed=5"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    until("something has been measured", || user.kept("copy").exists().then_some(()));
    child
}

#[test]
fn an_interrupted_run_says_how_to_go_on_and_goes_on() {
    let user = User::new();
    let child = started(&user);
    send(child.id(), Signal::SIGINT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let said = text(&output.stderr);
    assert!(said.contains("iotomy lab run copy --resume goes on with it"), "{said}");
    let mut kept = store::load_sweep(user.kept("copy")).unwrap();
    assert!(kept.run.is_partial);
    // So little time is left that it has only to come to its end.
    kept.run.max_time_ns = Some(kept.run.wall_ns);
    store::save_sweep(&kept, &user.kept("copy"), Path::new("/")).unwrap();
    let sweep = user.record(&["--resume"]);
    assert_eq!((sweep.run.seed, sweep.run.is_partial), (5, false));
    assert_eq!(sweep.started, kept.started);
    for (after, before) in sweep.cases.iter().zip(&kept.cases) {
        assert_eq!(after.samples, before.samples);
    }
    assert!(!user.kept("copy").exists());
}

#[test]
fn of_several_experiments_those_that_came_to_their_end_are_not_run_again() {
    let user = User::new();
    let whole = user.record(&SMALL);
    let mut part = user.record(&["null-sink", "-L", "size=1M", "--max-time=1"]);
    (part.run.is_partial, part.run.max_time_ns) = (true, Some(part.run.wall_ns));
    for kept in [&whole, &part] {
        store::save_sweep(kept, &user.kept(&kept.experiment), Path::new("/")).unwrap();
    }
    let folder = user.work.path().to_str().unwrap();
    let output = user.run(&["copy", "null-sink", "--resume", "-q", "--json", folder]);
    assert!(output.status.success(), "{output:?}");
    let again = store::load_sweep(user.work.path().join("copy.json")).unwrap();
    assert_eq!(again, whole);
    let on = store::load_sweep(user.work.path().join("null-sink.json")).unwrap();
    assert_eq!((on.started, on.run.is_partial), (part.started, false));
    assert!(!user.kept("copy").exists() && !user.kept("null-sink").exists());
}

#[test]
fn a_killed_run_leaves_no_file_but_what_it_goes_on_from() {
    let user = User::new();
    let mut child = started(&user);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(fs::read_dir(user.work.path()).unwrap().count(), 0);
    assert!(store::load_sweep(user.kept("copy")).unwrap().run.is_partial);
}

#[test]
fn a_record_that_finds_no_room_fails_after_the_report() {
    let user = User::new();
    let output = user.run(&[&SMALL[..], &["--json", "/dev/full"]].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stdout).contains("mmap-beats-read"), "{output:?}");
    assert!(text(&output.stderr).contains("/dev/full"), "{output:?}");
    assert!(user.kept("copy").exists(), "it can be had again");
}
