//! Anatomies of programs whose insides are known.

use crate::support;

use std::collections::BTreeMap;
use std::fs;
use std::process::Output;

use iotomy_record::{Anatomy, DissectedCall, StackKind, store};
use support::sampling::fast_rate;
use support::volume::Volume;
use support::{BackgroundProcess, Need, anatomy, doubled_until, has, iotomy, root, skip};
use tempfile::TempDir;

/// An anatomy of a command that ran in its folder; its record adds up.
fn dissected(folder: &TempDir, options: &[&str], words: &[&str]) -> (Anatomy, Output) {
    let mut command = iotomy(&["anatomy", "--json", "record.json"]);
    command.args(options).arg("--").args(words).current_dir(folder.path());
    let output = command.output().unwrap();
    let record = store::load_anatomy(folder.path().join("record.json"))
        .unwrap_or_else(|error| panic!("{error}: {output:?}"));
    adds_up(&record);
    (record, output)
}

/// What is dissected of so many rounds that a layer with a tenth of the samples has dozens, and they tell `what`: a
/// machine that is held up has others, which weigh less the more there are.
#[track_caller]
fn sampled(
    first: u32,
    what: impl Fn(&Anatomy) -> bool,
    run: impl FnMut(u32) -> (Anatomy, Output),
) -> (Anatomy, Output) {
    let tells = |(record, _): &(Anatomy, Output)| record.sampling.samples >= 400 && what(record);
    doubled_until(first, tells, run)
}

/// What holds for any record: the parts of a call are the call's times in the trace.
fn adds_up(record: &Anatomy) {
    let mut exact: BTreeMap<(u32, &str, u32, Option<&str>), [u64; 2]> = BTreeMap::new();
    for call in &record.trace.calls {
        let key = (call.pid, call.exec.as_str(), call.image, Some(call.syscall.as_str()));
        let times = [call.on_cpu_ns.unwrap(), call.blocked_ns.unwrap()];
        assert_eq!(exact.insert(key, times), None, "{key:?} is there twice");
    }
    for row in &record.calls {
        let sum = |part: fn(&iotomy_record::Layer) -> u64| row.layers.iter().map(part).sum::<u64>();
        assert_eq!(sum(|layer| layer.on_cpu_ns), row.on_cpu_ns, "{row:?}");
        assert_eq!(sum(|layer| layer.blocked_ns), row.blocked_ns, "{row:?}");
        assert_eq!(sum(|layer| layer.samples), row.samples, "{row:?}");
        let of_row = record.stacks.iter().filter(|stack| {
            (stack.pid, &stack.exec, stack.image, &stack.syscall)
                == (row.pid, &row.exec, row.image, &row.syscall)
        });
        let found: u64 = of_row.map(|stack| stack.ns).sum();
        assert!(found <= row.on_cpu_ns + row.blocked_ns, "{row:?}");
        if let Some(times) = exact.remove(&(row.pid, &row.exec, row.image, row.syscall.as_deref()))
        {
            assert_eq!(times, [row.on_cpu_ns, row.blocked_ns], "{row:?}");
        } else {
            assert!(row.syscall.is_none() || row.on_cpu_ns + row.blocked_ns == 0, "{row:?}");
        }
    }
    assert!(exact.values().all(|times| *times == [0, 0]), "calls without layers: {exact:?}");
    let sampled: u64 = record.calls.iter().map(|row| row.samples).sum();
    assert_eq!(sampled + record.sampling.lost, record.sampling.samples);
}

/// Time by layer of the calls of this name; on a CPU, asleep.
fn layers(record: &Anatomy, call: impl Fn(&DissectedCall) -> bool) -> BTreeMap<String, [u64; 2]> {
    let mut layers: BTreeMap<String, [u64; 2]> = BTreeMap::new();
    for layer in record.calls.iter().filter(|row| call(row)).flat_map(|row| &row.layers) {
        let times = layers.entry(layer.layer.clone()).or_default();
        times[0] += layer.on_cpu_ns;
        times[1] += layer.blocked_ns;
    }
    layers
}

/// The layer with most time on a CPU, iotomy's own programs left out.
#[track_caller]
fn hottest(layers: &BTreeMap<String, [u64; 2]>) -> &str {
    let others = layers.iter().filter(|(name, _)| *name != "observer");
    others.max_by_key(|(_, times)| times[0]).map(|(name, _)| name.as_str()).unwrap()
}

fn is(name: &'static str) -> impl Fn(&DissectedCall) -> bool {
    move |row| row.syscall.as_deref() == Some(name)
}

#[test]
fn dd_from_memory_to_a_disk_copies_most_of_its_time() {
    if !anatomy() || !has("dd") {
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let Ok(memory) = tempfile::tempdir_in("/dev/shm") else {
        return skip(Need::Machine, "there is no /dev/shm");
    };
    let source = memory.path().join("source");
    // Containers have 64 MiB of such memory.
    fs::write(&source, vec![7; 16 << 20]).unwrap();
    let from = format!("if={}", source.display());
    let both = |row: &DissectedCall| matches!(row.syscall.as_deref(), Some("read" | "write"));
    let is_copying = |record: &Anatomy| {
        let unknown = layers(record, |_| true).get("unknown").map_or(0, |times| times[0]);
        let all: u64 = record.calls.iter().map(|row| row.on_cpu_ns).sum();
        hottest(&layers(record, both)) == "page cache and copying" && unknown * 20 <= all
    };
    let (_, output) = sampled(4, is_copying, |rounds| {
        let copies =
            format!("for i in $(seq {rounds}); do dd {from} of=target bs=64k status=none; done");
        dissected(&folder, &["--rate", &fast_rate()], &["sh", "-c", &copies])
    });
    assert!(output.status.success(), "{output:?}");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("page cache and copying") && stderr.contains("samples by"), "{stderr}");
}

#[test]
fn a_loop_of_getppid_is_entry_and_exit() {
    if !anatomy() || !has("perl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // perl keeps its own copy of what getppid says; the call by number is made each time.
    let is_entry = |record: &Anatomy| hottest(&layers(record, is("getppid"))) == "entry and exit";
    sampled(400_000, is_entry, |rounds| {
        let calls = format!("syscall(110) for 1 .. {rounds}");
        dissected(&folder, &["--rate", &fast_rate()], &["perl", "-e", &calls])
    });
}

#[test]
fn two_that_play_ping_pong_over_pipes_wait_and_wake_each_other() {
    if !anatomy() || !has("perl") {
        return;
    }
    const PING_PONG: &str = "pipe(A, B); pipe(C, D); $n = shift; \
         if (!fork) { for (1 .. $n) { sysread A, $x, 1; syswrite D, 'y' } exit } \
         for (1 .. $n) { syswrite B, 'x'; sysread C, $x, 1 }";
    let folder = tempfile::tempdir().unwrap();
    let moves = |row: &DissectedCall| matches!(row.syscall.as_deref(), Some("read" | "write"));
    let is_of_the_scheduler = |record: &Anatomy| {
        let layers = layers(record, moves);
        let of = |layer: &str| layers.get(layer).map_or(0, |times| times[0]);
        let others = ["VFS", "page cache and copying", "memory allocation", "entry and exit"];
        others.into_iter().all(|other| of("scheduler and wake-up") > of(other))
    };
    let waits_for_the_pipe = |record: &Anatomy| {
        let reads = || record.calls.iter().filter(|row| is("read")(row));
        let layers = reads().flat_map(|row| &row.layers);
        let waited: u64 = layers.filter_map(|layer| layer.waits.get("pipe")).sum();
        let blocked: u64 = reads().map(|row| row.blocked_ns).sum();
        blocked > 0 && waited * 10 >= blocked * 9
    };
    let tells = |record: &Anatomy| is_of_the_scheduler(record) && waits_for_the_pipe(record);
    sampled(15_000, tells, |rounds| {
        let words = ["perl", "-e", PING_PONG, &rounds.to_string()];
        dissected(&folder, &["--rate", &fast_rate()], &words)
    });
}

#[test]
fn fsync_waits_for_the_journal_and_the_device() {
    if !anatomy() || !has("perl") {
        return;
    }
    let Some(volume) = Volume::ext4() else { return };
    const SYNC: &str = "use IO::Handle; for (1 .. $ARGV[1]) { open(F, '>', \"$ARGV[0]/f$_\"); \
         print F 'x' x 4096; F->flush; F->sync; close F }";
    let folder = tempfile::tempdir().unwrap();
    let waits_are_known = |(record, _): &(Anatomy, Output)| {
        let rows = || record.calls.iter().filter(|row| is("fsync")(row));
        let blocked: u64 = rows().map(|row| row.blocked_ns).sum();
        let waits = |what: &str| -> u64 {
            rows().flat_map(|row| &row.layers).filter_map(|layer| layer.waits.get(what)).sum()
        };
        let known = waits("journal") + waits("device");
        waits("journal") > 0 && known * 10 >= blocked * 9
    };
    doubled_until(20, waits_are_known, |files| {
        let words = ["perl", "-e", SYNC, &volume.file(""), &files.to_string()];
        dissected(&folder, &[], &words)
    });
}

#[test]
fn two_images_of_one_name_in_a_process_are_told_apart() {
    if !anatomy() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (record, _) = dissected(&folder, &[], &["sh", "-c", "exec sh -c 'exit 0'"]);
    let images: Vec<u32> = record.trace.processes.iter().map(|one| one.image).collect();
    assert_eq!(images, [1, 2]);
    let ledger: Vec<u32> = record.trace.ledger.iter().map(|row| row.image).collect();
    assert_eq!(ledger, [1, 2]);
    let outside = |image: u32| {
        record.calls.iter().filter(|row| row.syscall.is_none() && row.image == image).count()
    };
    assert_eq!((outside(1), outside(2)), (1, 1));
}

#[test]
fn a_sleep_is_known_to_the_nanosecond_without_a_sample() {
    if !anatomy() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (record, output) = dissected(&folder, &["--rate", "1"], &["sleep", "0.05"]);
    let nap = record.calls.iter().find(|row| is("clock_nanosleep")(row)).unwrap();
    // The programming of the timer takes a part of it, and much of it on a CPU that is held up.
    let call = record.trace.calls.iter().find(|row| row.syscall == "clock_nanosleep").unwrap();
    assert!(call.wall_ns >= 50_000_000 && nap.blocked_ns > 0, "{call:?} {nap:?}");
    assert_eq!(Some(nap.blocked_ns), call.blocked_ns, "{call:?}");
    assert_eq!(nap.layers[0].waits.get("timer"), Some(&nap.blocked_ns), "{nap:?}");
    let stacks = record.stacks.iter().filter(|stack| stack.kind == StackKind::Blocked);
    let nap = stacks.max_by_key(|stack| stack.ns).unwrap();
    assert!(nap.frames.iter().all(|frame| !frame.starts_with("bpf_")), "{nap:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("blocked: timer"), "{output:?}");
}

#[test]
fn a_running_process_is_dissected_until_the_time_is_up() {
    if !anatomy() || !has("perl") {
        return;
    }
    // Ends with the test, however that ends.
    let (busy, _) = BackgroundProcess::ready(&["perl", "-e", "$| = 1; print qq(on\\n); 1 while 1"]);
    let pid = busy.pid().to_string();
    let watch = |halves: u32| {
        let seconds = f64::from(halves) / 2.0;
        let words = ["anatomy", "--json", "-", "-q", "-d", &seconds.to_string(), "-p", &pid];
        store::parse_anatomy(&iotomy(&words).output().unwrap().stdout).unwrap()
    };
    let record = doubled_until(1, |record: &Anatomy| record.sampling.samples > 0, watch);
    drop(busy);
    adds_up(&record);
    let layers = layers(&record, |row| row.syscall.is_none());
    assert!(layers.contains_key("program"), "{layers:?}");
}

#[test]
fn the_status_is_the_commands_and_every_output_is_written() {
    if !anatomy() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let rate = fast_rate();
    let options = ["--rate", &rate, "--folded", "stacks", "--svg", "flames.svg", "-o", "report"];
    let script = "i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; exit 7";
    let (record, output) = dissected(&folder, &options, &["sh", "-c", script]);
    assert_eq!((output.status.code(), output.stderr.len()), (Some(7), 0), "{output:?}");
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let micros = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
    let folded: u64 = read("stacks").lines().map(micros).sum();
    let whole: u64 = record.calls.iter().map(|row| row.on_cpu_ns + row.blocked_ns).sum();
    let lines = read("stacks").lines().count() + 4 * record.calls.len() + record.stacks.len();
    assert!(
        folded * 1_000 <= whole && whole <= (folded + lines as u64) * 1_000,
        "{folded} {whole}"
    );
    assert!(read("flames.svg").contains("</svg>"));
    let shown = iotomy(&["show", "record.json"]).current_dir(folder.path()).output().unwrap();
    assert_eq!(read("report"), String::from_utf8(shown.stdout).unwrap());
    let mut again =
        iotomy(&["anatomy", "-qo", "again", "--against", "record.json", "--svg", "difference.svg"]);
    let again = again.args(["--", "sh", "-c", script]).current_dir(folder.path()).output().unwrap();
    assert_eq!((again.status.code(), again.stderr.len()), (Some(7), 0), "{again:?}");
    assert!(read("difference.svg").contains("against"));
    assert!(read("again").starts_with("sh ("), "a file is no noise");
}

#[test]
fn a_race_draws_what_the_second_does_more() {
    if !anatomy() || !has("dd") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let commands = ["dd if=/dev/zero of=/dev/null bs=4k count=20000 status=none", "sleep 0.02"];
    let mut race = iotomy(&["race", "-r", "2", "--json", "race.json", "--flame", "flames.svg"]);
    let output = race.args(commands).current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let race = store::load_race(folder.path().join("race.json")).unwrap();
    for command in &race.commands {
        let sampled = command.sampled.as_ref().unwrap();
        assert_eq!(sampled.sampling.user_stacks, None);
        assert!(sampled.stacks.iter().all(|stack| stack.user.is_empty()), "{sampled:?}");
    }
    let picture = fs::read_to_string(folder.path().join("flames.svg")).unwrap();
    assert!(picture.contains("sleep 0.02, against dd") && picture.contains("blocked: timer"));
}

#[test]
fn a_race_of_more_or_less_than_two_has_no_difference_to_draw() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |words: &[&str], why: &str| {
        let mut race = iotomy(&["race", "-r", "2", "--flame", "flames.svg"]);
        let output = race.args(words).current_dir(folder.path()).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(why), "{stderr}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{words:?} ran");
    };
    refused(&["touch ran"], "use `iotomy anatomy --svg`");
    refused(&["touch a", "touch b", "touch c"], "there are 3; race two");
    refused(&["touch {n}", "touch x{n}", "-L", "n=1,2"], "there are 4; race two");
}

#[test]
fn hostile_names_are_shown_and_do_nothing() {
    if !anatomy() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let name = "a;b\x1b[31m\n<script>x<script>\"&";
    let program = support::program(folder.path(), name, &fs::read("/bin/sleep").unwrap());
    let options = ["--svg", "flames.svg", "--folded", "stacks"];
    let (record, output) = dissected(&folder, &options, &[program.to_str().unwrap(), "0.01"]);
    assert!(record.trace.processes.iter().any(|process| process.exec.starts_with("a;b")));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(!stderr.contains('\x1b'), "{stderr:?}");
    let folded = fs::read_to_string(folder.path().join("stacks")).unwrap();
    assert!(folded.lines().all(|line| line.starts_with("a:b\\x1b[31m")), "{folded:?}");
    let picture = fs::read_to_string(folder.path().join("flames.svg")).unwrap();
    assert!(!picture.contains("<script>x") && !picture.contains('\x1b'), "{picture:?}");
}

#[test]
fn what_cannot_be_is_refused_before_the_command_runs() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |options: &[&str], why: &str| {
        let mut command = iotomy(&["anatomy"]);
        command.args(options).args(["--", "touch", "ran"]).current_dir(folder.path());
        let output = command.output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(why), "{stderr}");
        assert!(!folder.path().join("ran").exists(), "{options:?}");
    };
    refused(&["--rate", "0"], "0");
    refused(&["--rate", "10001"], "10001 is not in 1..=10000");
    refused(&["--json", "x", "--svg", "./x"], "both write to");
    refused(&["--against", "/nope", "--svg", "x"], "cannot read the record /nope");
    refused(&["--against", "/nope"], "--against applies to the flame graph");
    if root() && has("setpriv") {
        let words = ["--bounding-set=-all", "--inh-caps=-all", "--reuid=65534", "--clear-groups"];
        let program =
            support::program(folder.path(), "iotomy", &fs::read(support::IOTOMY).unwrap());
        let mut command = support::bare("setpriv", &words);
        command.arg("--regid=65534").arg(&program).args(["anatomy", "true"]);
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("anatomy needs") && said.contains("iotomy doctor"), "{said}");
    }
}

#[test]
fn too_few_descriptors_are_told_as_such() {
    if !support::bpf() {
        return;
    }
    // From the first that is opened to the last that is attached.
    for limit in [16, 32, 48, 64] {
        let words = ["-c", "ulimit -n $0 && exec \"$@\""];
        let mut command = support::bare("sh", &words);
        command.arg(limit.to_string()).args([support::IOTOMY, "anatomy", "--", "true"]);
        let output = command.output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{limit}: {stderr}");
        assert!(
            stderr.contains(": too many open files (EMFILE); raise it with `ulimit -n`"),
            "{limit}: {stderr}"
        );
        assert!(!stderr.contains("CAP_BPF") && !stderr.contains("()"), "{limit}: {stderr}");
    }
}
