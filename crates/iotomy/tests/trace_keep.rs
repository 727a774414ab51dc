//! The records that a watch writes while it goes on (`--ring`): of each call that fulfilled the condition
//! (`--keep`), and upon a signal.

use crate::support;

use std::path::Path;

use iotomy_fault_fs::{Fault, FaultFs, Operation};
use iotomy_record::Trace;
use iotomy_record::store::load_trace;
use nix::sys::signal::Signal;
use rustix::io::Errno;
use support::{
    Need, Tracing, bare, count, each_observer, has, iotomy, send, skip, status, text, traced,
    while_it_runs,
};

/// Fails with ENOTDIR again and again, until there have been so many records beside the file, then prints their
/// names and exits with 7. What makes others count: 3 failures of another kind before each.
const FAILS: &str = r#"
    my ($folder, $records) = @ARGV;
    my (%seen, @order);
    while (@order < $records) {
        rmdir '/nope' for 1..3;
        rmdir '/etc/hostname/x';
        select undef, undef, undef, 0.01;
        push @order, grep { !$seen{$_}++ } sort map { s{.*/}{}r } glob "$folder/record-*.json";
    }
    print join ' ', @order; exit 7;
"#;

/// The stretch: a tenth of a second is the least time between snapshots.
const STRETCH: &str = "0.1";
const STRETCH_NS: u64 = 100_000_000;

fn names(folder: &Path) -> Vec<String> {
    let all = std::fs::read_dir(folder).unwrap();
    let mut all: Vec<String> =
        all.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    all.sort();
    all
}

fn load(path: &Path) -> Trace {
    load_trace(path).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn each_call_that_fulfils_it_has_a_record_and_the_newest_are_kept() {
    if !has("perl") {
        return;
    }
    each_observer(|observer| {
        let options = ["--ring", STRETCH, "--until", "errno == ENOTDIR", "--keep", "2"];
        let mut tracing = Tracing::new(observer, &options, &["perl", "-e", FAILS]);
        let folder = tracing.folder.path().to_owned();
        std::fs::write(folder.join("record-20000101-000000.json"), "of another run").unwrap();
        tracing.command.arg(&folder).arg("5");
        let traced = tracing.run();
        // It ends nothing, and changes no status.
        assert_eq!(traced.code(), 7, "{}", traced.stderr());
        let written: Vec<&str> = traced.stdout().split(' ').collect();
        // The first is not its own; one more may have come since the last look.
        assert_eq!(written.len(), 5, "{written:?}");
        let left = names(&folder);
        assert_eq!((left.len(), left[0].as_str()), (4, "record-20000101-000000.json"), "{left:?}");
        assert_eq!(left[3], "record.json");
        assert!(left[1..3].iter().any(|name| *name == written[4]), "{left:?} of {written:?}");
        let mut kept: Vec<Trace> = left[1..3].iter().map(|name| load(&folder.join(name))).collect();
        kept.sort_by_key(|record| record.ring.unwrap().fired);
        let mut last_ns = 0;
        for record in &kept {
            let (ring, end) = (record.ring.unwrap(), record.ended_by.clone().unwrap());
            assert_eq!((ring.goes_on, ring.keeps, ring.asked_ns), (true, Some(2), STRETCH_NS));
            assert_eq!((&*end.call.exec, end.call.error.as_deref()), ("perl", Some("ENOTDIR")));
            assert_eq!(end.call.path.as_deref(), Some("/etc/hostname/x"));
            let at = end.call.start_ns + end.call.wall_ns;
            assert!(at <= ring.start_ns + record.wall_ns, "{ring:?} {end:?}");
            // Not within a stretch of the one before.
            assert!(last_ns == 0 || at >= last_ns + STRETCH_NS, "{last_ns} {end:?}");
            last_ns = at;
            assert!(count(record, "rmdir") >= 4, "{:?}", record.calls);
            let own = ring.own.unwrap();
            assert!(own.cpu_ns > 0 && own.rss_bytes > 1 << 20, "{own:?}");
            assert_eq!(own.table_bytes > 0, observer == "bpf", "{own:?}");
        }
        let fired: Vec<u64> = kept.iter().map(|record| record.ring.unwrap().fired).collect();
        let stderr = traced.stderr().split_whitespace().collect::<Vec<_>>().join(" ");
        // Where a disk or a CPU is busy, records are still being written when the next one is due.
        let left_out = stderr.matches("iotomy: a record was left out").count() as u64;
        assert!((1..=1 + left_out).contains(&(fired[1] - fired[0])), "{fired:?}: {stderr}");
        // The one at the end is of the watch, and has its own name.
        let end = load(&traced.json());
        let ring = end.ring.unwrap();
        assert_eq!((ring.goes_on, end.ended_by), (false, None));
        assert!((fired[1]..=fired[1] + left_out).contains(&ring.fired), "{fired:?}: {stderr}");
        for wanted in [
            "ms, fulfilled --until",
            "fulfilled it after",
            "the watch goes on",
            "fulfilled by",
            "calls fulfilled errno == ENOTDIR, counted once a stretch at most",
            "iotomy itself: ",
        ] {
            assert!(stderr.contains(wanted), "{wanted}: {stderr}");
        }
        assert!(!stderr.contains("--wait"), "{stderr}");
        let written = stderr.matches("iotomy: wrote record-").count() as u64;
        assert_eq!(written + left_out, ring.fired, "{stderr}");
    });
}

#[test]
fn sums_begin_anew_after_each_record() {
    if !has("perl") {
        return;
    }
    each_observer(|observer| {
        let options = [
            &["-q", "--ring", STRETCH, "--call", "rmdir", "--keep", "9"][..],
            &["--until", "count() >= 11 && errno == ENOTDIR"],
        ]
        .concat();
        let mut tracing = Tracing::new(observer, &options, &["perl", "-e", FAILS]);
        let folder = tracing.folder.path().to_owned();
        tracing.command.arg(&folder).arg("3");
        let traced = tracing.run();
        assert_eq!((traced.code(), traced.stderr()), (7, ""));
        for name in traced.stdout().split(' ') {
            let end = load(&folder.join(name)).ended_by.unwrap();
            // Of four at a time, the last fulfils it; the first time, from the first call on.
            assert!((11..=14).contains(&end.count.unwrap()), "{end:?}");
        }
    });
}

#[test]
fn a_signal_has_the_stretch_written_and_is_not_the_commands() {
    if !has("perl") {
        return;
    }
    const SLEEPS: &str =
        r#"$| = 1; rmdir '/nope' for 1..5; print "$$\n"; alarm 100; sleep 1000 while 1"#;
    let conditions = [&["--until", "errno == ENOTDIR"][..], &[]];
    each_observer(|observer| {
        conditions.iter().for_each(|condition| is_written(observer, condition));
    });

    fn is_written(observer: &str, condition: &[&str]) {
        let options = [&["--ring", "600"], condition].concat();
        let mut watching = Tracing::new(observer, &options, &["perl", "-e", SLEEPS]).start();
        let command: u32 = watching.line().parse().unwrap();
        let folder = watching.folder().to_owned();
        for number in 1..=2 {
            watching.signal(Signal::SIGUSR1);
            while_it_runs("the record", watching.pid(), || {
                (names(&folder).len() == number).then_some(())
            });
        }
        assert!(status(command, "State").is_some());
        for name in names(&folder) {
            let record = load(&folder.join(&name));
            assert!(name.starts_with("record-20"), "{name}");
            assert_eq!(count(&record, "rmdir"), 5);
            assert_eq!(record.still_running.len(), 1);
            let ring = record.ring.unwrap();
            assert_eq!((ring.goes_on, ring.start_ns, ring.keeps), (true, 0, None));
        }
        send(command, Signal::SIGTERM);
        let ended = watching.end();
        assert_eq!(ended.code(), 128 + Signal::SIGTERM as i32, "{}", ended.stderr());
        assert_eq!(names(&folder).len(), 3);
        let stderr = ended.stderr();
        assert!(stderr.contains("SIGUSR1"), "{stderr}");
        assert_eq!(stderr.contains("so far"), !condition.is_empty(), "{stderr}");
        assert!(load(&ended.json()).ring.is_some_and(|ring| !ring.goes_on));
    }
}

#[test]
fn without_a_file_a_record_is_a_report_or_a_line() {
    if !has("perl") {
        return;
    }
    each_observer(|observer| {
        let script = "rmdir '/etc/hostname/x'; select undef, undef, undef, 0.05";
        let words = ["trace", "--observer", observer, "--ring", "60", "--keep", "2"];
        let rest = ["--until", "errno == ENOTDIR", "--json", "-", "--", "perl", "-e", script];
        let output = iotomy(&[&words[..], &rest].concat()).output().unwrap();
        assert!(output.status.success());
        let (lines, said) = (text(&output.stdout[..]), text(&output.stderr[..]));
        // Each is a line, that of the end, too.
        let parsed = |line: &str| iotomy_record::store::parse_trace(line.as_bytes()).unwrap();
        let records: Vec<Trace> = lines.lines().map(parsed).collect();
        let end = records[0].ended_by.as_ref().unwrap();
        assert_eq!(end.call.error.as_deref(), Some("ENOTDIR"));
        let goes_on = |record: &Trace| record.ring.unwrap().goes_on;
        assert_eq!(records.iter().map(goes_on).collect::<Vec<_>>(), [true, false]);
        assert!(said.contains("fulfilled by") && !said.contains("wrote"), "{said}");
    });
}

#[test]
fn a_record_that_cannot_be_written_fails_the_run_and_not_the_command() {
    if !has("perl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let inner = folder.path().join("inner");
    std::fs::create_dir(&inner).unwrap();
    let json = inner.join("record.json");
    let script = format!("rmdir '{}'; rmdir '/etc/hostname/x'", inner.display());
    let words = ["trace", "--ring", "60", "--keep", "2", "--until", "errno == ENOTDIR", "--json"];
    let mut command = iotomy(&words);
    let output = command.arg(&json).args(["--", "perl", "-e", &script]).output().unwrap();
    let stderr = text(&output.stderr[..]);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("cannot write") && stderr.contains("inner/record-20"), "{stderr}");
}

#[test]
fn records_are_not_kept_in_a_fifo() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    assert!(bare("mkfifo", &[fifo.to_str().unwrap()]).status().unwrap().success());
    let keeps = &["--keep", "2", "--until", "errno == EIO"][..];
    for (option, rest) in [("--json", keeps), ("--output", keeps), ("--json", &[])] {
        let words = [&["trace", "--ring", "60"], rest, &[option]].concat();
        let output = iotomy(&words).arg(&fifo).args(["--", "true"]).output().unwrap();
        let stderr = text(&output.stderr[..]);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        let wanted =
            format!("/fifo: it is a FIFO, and --ring writes one after another; give {option}");
        assert!(stderr.contains(&wanted), "{stderr}");
    }
}

#[test]
fn records_are_kept_where_no_rename_spares_an_old_file() {
    if !has("perl") {
        return;
    }
    // It refuses to rename so in any case.
    let nameless = Fault::on("", Operation::Make, Errno::OPNOTSUPP);
    let folder = match FaultFs::mount(&[], &[nameless]) {
        Ok(folder) => folder,
        Err(reason) => return skip(Need::Fuse, &reason),
    };
    let words = ["trace", "-q", "--ring", "60", "--keep", "2", "--until", "errno == ENOTDIR"];
    let mut command = iotomy(&words);
    command.arg("--json").arg(folder.path("record.json"));
    let output = command.args(["--", "perl", "-e", "rmdir '/etc/hostname/x'"]).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr[..]));
    assert!(folder.times(0) > 0);
    let names = names(folder.folder());
    assert_eq!(names.len(), 2, "{names:?}");
    for name in names {
        assert!(name.starts_with("record"), "{name}");
        assert_eq!(count(&load(&folder.path(&name)), "rmdir"), 1);
    }
}

#[test]
fn what_would_write_nothing_is_refused() {
    for (words, wanted) in [
        (&["--keep", "2"][..], "--ring"),
        (&["--ring", "1", "--keep", "0"], "1..=10000"),
        (&["--ring", "1", "--keep", "2", "-q"], "--json or --output"),
    ] {
        let output = iotomy(&[&["trace"], words, &["true"]].concat()).output().unwrap();
        let stderr = text(&output.stderr[..]);
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(wanted), "{stderr}");
    }
    // Nothing fulfilled it.
    each_observer(|observer| {
        let options = ["--ring", "1", "--keep", "2", "--until", "errno == EXDEV"];
        let traced = traced(observer, &options, &["true"]);
        assert_eq!((traced.code(), names(traced.folder.path()).len()), (0, 1));
        assert!(traced.stderr().contains("no call fulfilled"), "{}", traced.stderr());
    });
}
