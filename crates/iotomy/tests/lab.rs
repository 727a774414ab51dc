//! `iotomy lab` as a user has it: lists, small runs, and what is refused.

use crate::support;

use std::process::Command;

use iotomy_lab::{EXPERIMENTS, Takes};
use iotomy_movers::{MOVERS, Mover};
use iotomy_record::{AxisValue, store};
use iotomy_test_requirements::guide;
use support::labs::{ENOUGH, SMALL, User};
use support::{Need, iotomy, skip};

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_owned()).unwrap()
}

fn stdout_of(arguments: &[&str]) -> String {
    let output = iotomy(arguments).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    text(&output.stdout)
}

#[test]
fn the_list_has_every_experiment_and_tells_all_about_each() {
    let short = stdout_of(&["lab", "list"]);
    for one in EXPERIMENTS {
        let declared = one.declaration();
        let long = stdout_of(&["lab", "list", declared.name]);
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
    let experiments = EXPERIMENTS.iter().map(|one| {
        let declared = one.declaration();
        let axes = declared.axes.iter().map(|axis| match axis.takes {
            Takes::Names(names) => format!("`{}`: {}", axis.name, names.join(", ")),
            Takes::Listed(_)
            | Takes::Registered { .. }
            | Takes::Numbers(..)
            | Takes::Multiples(..) => format!("`{}`", axis.name),
        });
        let axes = axes.collect::<Vec<_>>().join("; ");
        vec![format!("`{}`", declared.name), declared.summary.to_owned(), axes]
    });
    let table = guide::table(&["name", "what", "axes"], experiments);
    guide::check("docs/lab.md", "experiments", &table);
    let claims = EXPERIMENTS.iter().flat_map(|one| one.declaration().claims).map(|claim| {
        vec![format!("`{}`", claim.id), claim.source.to_owned(), claim.text.to_owned()]
    });
    let table = guide::table(&["claim", "article", "in our words"], claims);
    guide::check("docs/lab.md", "claims", &table);
    let backends = iotomy_lab::file_backends().map(|(name, text)| format!("- `{name}`: {text}"));
    guide::check("docs/lab.md", "backends", &backends.collect::<Vec<_>>());
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
    // 8 MiB for every mover between files, 8 KiB for those whose requests have a size.
    let of_block = |bytes| {
        let cases = sweep.cases.iter().map(|case| case.params["block"] == AxisValue::Number(bytes));
        cases.filter(|is_of_block| *is_of_block).count()
    };
    let sized = |one: &&&dyn Mover| one.declaration().tunings.iter().any(|one| !one.contains(' '));
    let small = of_block(8 << 10);
    assert!((2..=MOVERS.iter().filter(sized).count()).contains(&small), "{:?}", sweep.cases);
    assert!(of_block(8 << 20) > small, "{:?}", sweep.cases);
    let shown = stdout_of(&["show", file.to_str().unwrap()]);
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
fn a_run_that_skips_all_its_cases_says_why_also_without_a_report() {
    let user = User::new();
    let beyond = ["wait", "-L", "waiter=select", "-L", "descriptors=5000", "-L", "active=1", "-q"];
    let output = user.run(&beyond);
    assert_eq!(output.status.code(), Some(2));
    let stderr = text(&output.stderr);
    assert!(
        stderr.starts_with(
            "iotomy: wait measured nothing: all 2 cases were skipped: select supports"
        )
    );
    assert!(stderr.contains("see iotomy lab list wait") && output.stdout.is_empty(), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
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
        ENOUGH,
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
    assert!(reason.starts_with("select supports descriptors up to 1023"), "{reason}");
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
    let axes =
        ["wait", "-L", "waiter=epoll,libevent,mio", "-L", "descriptors=20", "-L", "active=1"];
    let mut command = user.command(&[&axes[..], &["-q", "--json", "-", "--max-time=30"]].concat());
    let output = command.env("PATH", user.work.path()).output().unwrap();
    let sweep = store::parse_sweep(&output.stdout).unwrap();
    let skipped: Vec<_> = sweep.cases.iter().filter_map(|case| case.skipped.as_deref()).collect();
    assert_eq!(skipped.len(), 2, "{skipped:?}");
    for (reason, program) in skipped.iter().zip(["wait-peers for", "wait-peers-mio for"]) {
        let said = reason.contains(program) && reason.contains("build it with make bench-wait");
        assert!(said, "{reason}");
    }
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
        ENOUGH,
    ]);
    for case in &sweep.cases {
        let is_sigio = case.params["model"] == AxisValue::Name("sigio".into());
        assert_eq!(case.extra["overflows"] > 0.0, is_sigio, "{case:?}");
        assert_eq!(case.extra["lost"], 0.0, "{case:?}");
    }
}

/// What it takes is a matter of the machine, and no test; what it touches is counted.
#[test]
fn the_null_device_touches_nothing_that_is_mapped() {
    let user = User::new();
    let sweep = user.record(&["null-sink", "-L", "size=1M,32M", ENOUGH]);
    let claims: Vec<&str> = sweep.claims.iter().map(|claim| claim.id.as_str()).collect();
    let all = ["null-sink", "null-sink-pipe", "null-sink-atime", "null-sink-residency"];
    assert_eq!(claims, all);
    // A claim that fails is a result: the run had exit status 0.
    let atime = sweep.claims.iter().find(|claim| claim.id == "null-sink-atime").unwrap();
    assert_ne!(atime.verdict.name(), "holds", "Linux takes a mapping for an access");
    assert_eq!(sweep.cases.len(), 4 * 2);
    let of = |way: &str, size: u64| {
        let is = |case: &&iotomy_record::Case| {
            let at = |name: &str| case.params[name].to_string();
            at("way") == way && at("size") == size.to_string()
        };
        &sweep.cases.iter().find(is).unwrap().extra
    };
    for size in [1 << 20, 32 << 20] {
        let faults = of("mmap", size)["faults"];
        assert!(faults < 8.0, "{faults} for {size} bytes");
    }
    // Where files can leave memory: what was found cold is afterwards as cold.
    match of("mmap", 1 << 20).get("resident") {
        Some(mapped) => assert_eq!(*mapped, 0.0, "nothing of it was read"),
        None => skip(Need::Machine, "files cannot leave memory here"),
    }
}

#[test]
fn what_is_no_experiment_axis_or_value_is_refused_before_anything_runs() {
    let user = User::new();
    for (arguments, says) in [
        (&["herds"][..], "unknown experiment \"herds\"; the experiments are copy"),
        (&["copy", "-L", "speed=1"], "-L speed: unknown axis; the axes are block, mover, size"),
        (&["copy", "-L", "mover=magic"], "invalid mover \"magic\"; expected one of read-write"),
        (&["copy", "-L", "block=1"], "block 1 is not between 512 and"),
        (&["device", "-L", "block=5000"], "block 5000 is not a multiple of 4 KiB"),
        (&["device", "-L", "window=7"], "window 7 is not a multiple of 4"),
        (&["copy", "-L", "block=x"], "block: invalid size: expected a number of bytes"),
        (&["copy", "-L", "block"], "name=value"),
        (&["copy", "-L", "block=8K", "-L", "block=8M"], "-L block is given twice"),
        (
            &["copy", "-L", "mover=splice", "-L", "block=8K"],
            "these values give no valid case: movers without a choice of request size are measured once, at 8 MiB",
        ),
        (
            &["files", "-L", "op=names", "-L", "fs=tmpfs"],
            "give no valid case: the operation names is not for tmpfs, nor for names below 14\n",
        ),
        (
            &["wait", "-L", "descriptors=10", "-L", "active=100"],
            "these values give no valid case: the number of active descriptors exceeds their total",
        ),
        (&["copy", "null-sink", "--json", "/dev/null"], "name an existing directory"),
        (&["copy", "--path", "/nowhere"], "No such file"),
        (&["copy", "--quick", "--full"], "cannot be used with"),
        (&["copy", "--max-time", "0"], "more than 0 seconds"),
        (&["--resume"], "no interrupted run to resume; start one with iotomy lab run NAME"),
        (
            &["copy", "--resume"],
            "no interrupted run of copy to resume; start one with iotomy lab run copy",
        ),
        (&["--all", "--resume"], "no interrupted run to resume"),
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
        report.contains("MiB of memory") || report.contains("name another directory"),
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
