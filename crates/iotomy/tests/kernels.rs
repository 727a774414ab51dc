//! What becomes of the verbs where the kernel refuses a part of what their programs use, one part after another: they
//! have the same counts, or say what is missing. The table of docs/kernels.md.

use crate::support;

use std::collections::BTreeMap;
use std::process::{Command, Output};

use iotomy_observe::FEATURES;
use iotomy_record::store::load_trace;
use iotomy_record::{MissingFeature, Trace};
use iotomy_test_requirements::guide;
use support::sessions::{TerminalSession, tools};
use support::{IOTOMY, Need, bare, bpf, iotomy, root, skip};

const REFUSE: &str = "IOTOMY_REFUSE";

/// A command with as many calls each time.
const SUBJECT: [&str; 6] =
    ["dd", "if=/dev/zero", "of=/dev/null", "bs=512", "count=23", "status=none"];

/// Verbs that watch it and print a record, and the objects that they load.
const VERBS: [(&str, &[&str]); 6] = [
    ("trace -q --observer bpf --json -", &["trace"]),
    ("trace -q --observer bpf --files --peers --paths --slowest 2 --json -", &["trace_details"]),
    ("trace -q --observer bpf --where bytes>0 --json -", &["trace_where"]),
    ("trace -q --observer bpf --requests --json -", &["shared", "trace", "exchanges"]),
    ("anatomy -q --json -", &["shared", "trace", "anatomy", "block"]),
    ("anatomy -q --user-stacks --timeline=1 --json -", &["anatomy", "block"]),
];

/// Without these, a verb that needs BPF cannot do its work.
const BASE: [&str; 12] = [
    "section=tp_btf/sys_enter",
    "section=tp_btf/sys_exit",
    "section=tp_btf/sched_switch",
    "section=tp_btf/sched_wakeup",
    "section=tp_btf/sched_wakeup_new",
    "section=tp_btf/sched_process_fork",
    "section=tp_btf/sched_process_exec",
    "section=tp_btf/sched_process_exit",
    "map=1",
    "map=2",
    "map=6",
    "section=iter/task",
];

/// Helpers of Linux 5.10 or older that no feature is made of, and `bpf_get_current_task_btf`: part of the base.
fn is_base(helper: u32) -> bool {
    const OF_FEATURES: [u32; 6] = [27, 87, 88, 126, 130, 134];
    (helper <= 155 || helper == 158) && !OF_FEATURES.contains(&helper)
}

fn watched(verb: &str, refused: &str) -> Output {
    let words: Vec<&str> = verb.split(' ').collect();
    let mut command = iotomy(&words);
    command.arg("--").args(SUBJECT).env(REFUSE, refused);
    command.output().unwrap()
}

/// The counts of the subject's calls that do not depend on the machine's mood, and what is missing.
fn counts(output: &Output) -> Option<(BTreeMap<String, u64>, Vec<MissingFeature>)> {
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).ok()?;
    let value = if value["trace"].is_object() { value["trace"].clone() } else { value };
    let record: Trace = serde_json::from_value(value).ok()?;
    let calls = record.calls.iter().filter(|call| call.exec.ends_with("dd"));
    let counts = calls.map(|call| (call.syscall.clone(), call.calls)).collect();
    Some((counts, record.observer.missing))
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_refused_part_leaves_the_counts_as_they_are_or_is_named() {
    if !bpf() || !root() {
        return;
    }
    let uses: BTreeMap<_, _> = iotomy_observe::uses().unwrap().into_iter().collect();
    let mut tried = 0;
    for (verb, objects) in VERBS {
        let whole = watched(verb, "");
        let (expected, missing) = counts(&whole).unwrap_or_else(|| panic!("{verb}: {whole:?}"));
        assert!(expected["write"] == 23, "{verb}: {expected:?}");
        if !missing.is_empty() {
            return skip(Need::Bpf, &format!("this kernel itself refuses {missing:?}"));
        }
        let mut parts: Vec<&String> = objects.iter().flat_map(|one| &uses[one]).collect();
        parts.sort_unstable();
        parts.dedup();
        let all = sections(&whole);
        for part in parts {
            let helper = part.strip_prefix("helper=").map(|number| number.parse::<u32>().unwrap());
            if helper.is_some_and(is_base) {
                continue;
            }
            let errno = if helper.is_some() { "EINVAL" } else { "EPERM" };
            let run = watched(verb, &format!("{part}:{errno}"));
            tried += 1;
            check(verb, part, errno, &run, &expected);
            if run.status.success() && sections(&run) != all {
                // Other parts have a replacement.
                let is_needed = part.starts_with("section=tp_btf/block_");
                assert!(
                    is_needed,
                    "{verb}, {part}: {all:?} without {:?}: {}",
                    sections(&run),
                    stderr(&run)
                );
            }
        }
    }
    assert!(tried > 60, "{tried}");
}

/// What a record of anatomy has besides its trace, where the kernel lets it.
fn sections(run: &Output) -> Vec<&'static str> {
    let value: serde_json::Value = serde_json::from_slice(&run.stdout).unwrap_or_default();
    ["block", "timelines"].into_iter().filter(|section| value[section].is_object()).collect()
}

fn check(verb: &str, part: &str, errno: &str, run: &Output, expected: &BTreeMap<String, u64>) {
    let stderr = stderr(run);
    assert!(
        !stderr.contains("BEGIN PROG LOAD LOG") && !stderr.contains("panicked"),
        "{part}: {stderr}"
    );
    if run.status.success() {
        let (counts, missing) = counts(run).unwrap_or_else(|| panic!("{verb}, {part}: {run:?}"));
        assert_eq!(&counts, expected, "{verb}, {part}");
        for MissingFeature { feature, reason, lost } in missing {
            assert!(FEATURES.iter().any(|one| one.name == feature), "{feature}");
            assert!(!reason.is_empty() && !lost.is_empty(), "{verb}, {part}: {feature}");
        }
    } else {
        assert!(BASE.contains(&part), "{verb} could have worked without {part}: {stderr}");
        assert!(stderr.contains(errno), "{verb}, {part}: {stderr}");
        let (_, name) = part.split_once('=').unwrap();
        let is_named = part.starts_with("map=") || stderr.contains(name);
        assert!(is_named, "{verb}, {part}: {stderr}");
    }
}

#[test]
fn a_feature_that_is_lost_is_named_in_the_report_and_the_record() {
    if !bpf() || !root() {
        return;
    }
    for (verb, refused, feature, reason) in [
        ("anatomy -q --json -", "section=perf_event:EPERM", "perf events", "EPERM"),
        ("anatomy -q --json -", "event=perf:EACCES", "perf events", "EACCES"),
        ("anatomy -q --json -", "map=7:EINVAL", "tables of stacks", "EINVAL"),
        ("anatomy -q --json -", "helper=180:EINVAL", "bpf_find_vma", "EINVAL"),
        ("trace -q --json -", "map=27:EPERM", "ring buffers", "EPERM"),
        (
            "trace -q --slowest 3 --json -",
            "section=tp_btf/sched_waking:EPERM",
            "sched_waking",
            "EPERM",
        ),
        (
            "trace -q --peers --json -",
            "section=tp_btf/tcp_destroy_sock:EPERM",
            "tracepoints of sockets",
            "EPERM",
        ),
        (
            "trace -q --requests --json -",
            "section=tp_btf/sk_data_ready:EPERM",
            "sk_data_ready",
            "EPERM",
        ),
    ] {
        let run = watched(verb, refused);
        let (_, missing) = counts(&run).unwrap_or_else(|| panic!("{refused}: {run:?}"));
        let found = missing.iter().find(|one| one.feature == feature);
        let found = found.unwrap_or_else(|| panic!("{refused}: {missing:?}"));
        assert!(found.reason.contains(reason) && !found.lost.is_empty(), "{found:?}");
        let words: Vec<&str> =
            verb.split(' ').filter(|word| !["-q", "--json", "-"].contains(word)).collect();
        let told = iotomy(&words).arg("--").args(SUBJECT).env(REFUSE, refused).output().unwrap();
        assert!(stderr(&told).contains(&format!("the kernel refused {feature} (")), "{told:?}");
    }
}

#[test]
fn intervals_have_the_same_counts_without_ring_buffers_task_storage_or_batches() {
    if !bpf() || !root() {
        return;
    }
    let count = |refused: &str| -> u64 {
        let run = watched("trace -q -i 1 --json -", refused);
        let text = String::from_utf8(run.stdout).unwrap();
        let records = text.lines().map(|line| serde_json::from_str::<Trace>(line).unwrap());
        let calls = records.flat_map(|record| record.calls);
        calls.filter(|call| call.syscall == "write").map(|call| call.calls).sum()
    };
    for refused in ["", "map=27:EPERM", "map=29:EINVAL", "command=batch:EPERM"] {
        assert_eq!(count(refused), 23, "{refused}");
    }
}

#[test]
fn the_live_view_has_the_same_counts_without_what_may_be_refused() {
    if !bpf() || !root() || !tools() {
        return;
    }
    const COMMAND: &str = r#"perl -e 'syswrite STDERR, q(.) for 1 .. 23; 1 until -e "go"'"#;
    for refused in ["map=27:EPERM", "map=29:EPERM", "command=batch:EPERM", "helper=181:EINVAL"] {
        let session = TerminalSession::start(&format!(
            "{REFUSE}={refused} {IOTOMY} trace --live --observer bpf --json record {COMMAND}"
        ));
        // What it asks again and again; it may have written before the first interval ends.
        session.until_shown("stat");
        std::fs::write(session.file("go"), "").unwrap();
        let record = session.file("record");
        let record = session.until("the record is written", || load_trace(&record).ok());
        session.end(0);
        let writes = record.calls.iter().filter(|call| call.syscall == "write");
        assert_eq!(writes.map(|call| call.calls).sum::<u64>(), 23, "{refused}");
    }
}

#[test]
fn a_race_draws_its_flames_without_what_may_be_refused_and_names_it() {
    if !bpf() || !root() {
        return;
    }
    for (refused, feature) in [
        ("section=perf_event:EPERM", "perf events"),
        ("map=7:EINVAL", "tables of stacks"),
        ("helper=180:EINVAL", "bpf_find_vma"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut race = iotomy(&["race", "-r", "2", "--flame", "flames.svg"]);
        race.args(["sleep 0.01", "sleep 0.02"]).current_dir(folder.path());
        let run = race.env(REFUSE, refused).output().unwrap();
        assert!(run.status.success(), "{refused}: {run:?}");
        let picture = std::fs::read(folder.path().join("flames.svg")).unwrap();
        assert!(String::from_utf8_lossy(&picture).contains("</svg>"), "{refused}");
        let report = String::from_utf8_lossy(&run.stdout);
        let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(report.contains(&format!("the kernel refused {feature} (")), "{report}");
    }
}

#[test]
fn d_counts_the_same_or_names_what_it_needs() {
    if !bpf() || !root() {
        return;
    }
    const PROGRAM: &str = "syscall::write:entry /pid == $target/ { self->bytes = arg2; self->from = vtimestamp; } \
        syscall::write:return /self->bytes == 512 && vtimestamp >= self->from/ { @ = count(); self->bytes = 0; } \
        END { printa(\"%@d\\n\", @); }";
    let run = |refused: &str| {
        let command = SUBJECT.join(" ");
        let words = ["d", "-q", "-n", PROGRAM, "-c", &command];
        iotomy(&words).env(REFUSE, refused).output().unwrap()
    };
    for refused in [
        "",
        "map=29:EPERM",
        "helper=156:EINVAL",
        "section=perf_event:EPERM",
        "section=iter/task:EPERM",
    ] {
        let run = run(refused);
        assert_eq!(String::from_utf8_lossy(&run.stdout), "23\n", "{refused}: {run:?}");
    }
    for (refused, name) in [
        ("map=27:EPERM", "ring buffers: EPERM"),
        ("section=syscall:EINVAL", "find_self (syscall): EINVAL"),
        ("section=tp_btf/sys_exit:EPERM", "sys_exit (tp_btf/sys_exit): EPERM"),
    ] {
        let run = run(refused);
        assert!(!run.status.success() && stderr(&run).contains(name), "{refused}: {run:?}");
    }
}

/// A watch where `script` has changed the machine for it alone.
fn inside(script: &str, words: &[&str]) -> Output {
    let script = format!("{script}\nexec \"$0\" \"$@\"");
    let mut command: Command = bare("unshare", &["--mount", "sh", "-c", &script, IOTOMY]);
    command.args(words).args(SUBJECT).output().unwrap()
}

#[test]
fn without_the_kernels_types_trace_counts_by_ptrace_and_anatomy_says_why_not() {
    if !bpf() || !root() || !support::ptrace() {
        return;
    }
    let hide = "mount -t tmpfs none /sys/kernel/btf || exit 99";
    let run = inside(hide, &["trace", "-q", "--json", "-", "--"]);
    if run.status.code() == Some(99) {
        return skip(Need::Namespaces, &stderr(&run));
    }
    let (counts, _) = counts(&run).unwrap_or_else(|| panic!("{run:?}"));
    assert_eq!(counts["write"], 23);
    let run = inside(hide, &["anatomy", "-q", "--"]);
    assert!(!run.status.success() && stderr(&run).contains("/sys/kernel/btf/vmlinux"), "{run:?}");
}

#[test]
fn hidden_addresses_and_a_missing_cap_syslog_cost_anatomy_no_layer() {
    if !bpf() || !root() {
        return;
    }
    let names = |command: &mut Command| {
        let run = command.output().unwrap();
        let text = String::from_utf8(run.stdout.clone()).unwrap();
        let record: serde_json::Value =
            serde_json::from_str(&text).unwrap_or_else(|_| panic!("{run:?}"));
        let frames = record["stacks"].as_array().unwrap().iter().flat_map(|stack| {
            stack["frames"].as_array().unwrap().iter().filter_map(|frame| frame.as_str())
        });
        let frames: Vec<String> = frames.map(str::to_owned).collect();
        assert!(record["trace"]["observer"]["missing"].is_null(), "{record:?}");
        frames.iter().filter(|frame| frame.starts_with("0xffffffff")).count()
    };
    let words =
        ["anatomy", "-q", "--json", "-", "--", "sh", "-c", "for i in 1 2 3; do sleep 0.01; done"];
    let mut bounded = bare("setpriv", &["--inh-caps=-syslog", "--bounding-set=-syslog", IOTOMY]);
    assert_eq!(names(bounded.args(words)), 0);
}

#[test]
fn the_guide_has_every_feature() {
    let rows = FEATURES
        .iter()
        .map(|one| vec![one.name.to_owned(), one.used_by.to_owned(), one.without.to_owned()]);
    let table = guide::table(&["feature", "used by", "without it"], rows);
    guide::check("docs/kernels.md", "features", &table);
}
