//! The difference, call by call, of programs that were made to differ by something known.

use crate::support;

use std::fs;

use iotomy_record::{Metric, Race, Term, TermKind};
use support::races::{FinishedRace, raced, racing, sleeper, term};
use support::{IOTOMY, Need, bare, bpf, doubled_until, has, skip};

/// dd that reads `count` blocks of 4 MiB of the zero device, which takes a hundred times as long as what
/// dd and its observer do beside it, and writes them to the null device, which takes no time.
fn dd(count: u32) -> String {
    format!("dd if=/dev/zero of=/dev/null bs=4M count={count} status=none")
}

/// The wall time is that of the timed runs, which nobody watched: what the calls are said to take in
/// the traced run has to fit it, and the shortest runs are those to which other work of the machine, or of
/// its host, added least. A millisecond a call is far above what it adds to one, as long as who sleeps
/// runs at once when it wakes: for that it has a real-time priority. Whether it did is a matter of the machine: with
/// more calls, what was added once weighs less.
#[test]
fn more_calls_have_nine_tenths_of_the_untraced_wall_time() {
    if !bpf() || !has("chrt") {
        return;
    }
    if !bare("chrt", &["-f", "1", "true"]).status().unwrap().success() {
        return skip(Need::Machine, "no real-time priority is to be had here");
    }
    let with_more = |more: u32| {
        let folder = tempfile::tempdir().unwrap();
        for (name, times) in [("few", 10), ("many", 10 + more)] {
            sleeper(folder.path(), name, times, 1_000_000);
        }
        let options = ["-w", "0", "-r", "3", "chrt -f 1 ./few", "chrt -f 1 ./many"];
        let output = racing(&folder, &options).output().unwrap();
        let race = FinishedRace::from_output(output, folder).record();
        let wall = race.attributions.iter().find(|found| found.metric == Metric::Wall).unwrap();
        let [a, b] = [0, 1].map(|at| race.commands[at].wall.median_ns.round() as i64);
        assert_eq!(wall.delta_ns, b - a);
        let mine = || wall.terms.iter().filter(|term| term.name == "nanosleep");
        let calls = mine().find(|term| term.kind == TermKind::Syscall).unwrap();
        assert_eq!((calls.calls_base, calls.calls_other), (10, u64::from(more) + 10));
        let blocked = mine().find(|term| term.kind == TermKind::Blocked).unwrap();
        assert_eq!(
            [blocked.base_ns, blocked.other_ns],
            [0, 1].map(|at| blocked_in(&race, at, "nanosleep"))
        );
        let terms: i64 = wall.terms.iter().map(|term| term.delta_ns).sum();
        assert_eq!(terms + wall.residual_ns, wall.delta_ns);
        let mine: i64 = mine().map(|term| term.delta_ns).sum();
        let [few, many] = [0, 1].map(|at| race.commands[at].wall.min_ns.round() as i64);
        (mine, many - few)
    };
    let fits = |(mine, all): &(i64, i64)| mine * 10 >= all * 9 && all * 10 >= mine * 9;
    doubled_until(125, fits, with_more);
}

/// The blocked time in a call, as the trace of a command has it.
fn blocked_in(race: &Race, command: usize, call: &str) -> i64 {
    let trace = race.commands[command].trace.as_ref().unwrap();
    let rows = trace.calls.iter().filter(|row| row.syscall == call);
    rows.map(|row| row.blocked_ns.unwrap().cast_signed()).sum()
}

#[test]
fn more_calls_have_the_difference() {
    if !bpf() || !has("dd") {
        return;
    }
    // On a CPU, what others do to the machine moves little time between terms, and less with more calls.
    let has_it = |race: &Race| {
        let cpu = race.attributions.iter().find(|found| found.metric == Metric::Cpu).unwrap();
        let read = cpu.terms.iter().find(|term| term.name == "read").unwrap();
        let explained: i64 = cpu.terms.iter().map(|term| term.delta_ns).sum();
        read.delta_ns * 10 >= explained * 9 && cpu.terms[0].name == "read"
    };
    doubled_until(250, has_it, |more| {
        let race = raced(&["-r", "2", &dd(10), &dd(10 + more)]).record();
        let cpu = race.attributions.iter().find(|found| found.metric == Metric::Cpu).unwrap();
        let read = cpu.terms.iter().find(|term| term.name == "read").unwrap();
        assert_eq!(read.calls_other - read.calls_base, u64::from(more));
        let wall = term(&race, TermKind::Syscall, "read").unwrap();
        assert_eq!(wall.delta_ns, read.delta_ns);
        race
    });
}

#[test]
fn a_longer_sleep_is_time_asleep() {
    if !bpf() {
        return;
    }
    // What holds a sleeper up before its sleep or after it is a matter of the machine: a longer sleep has less of it.
    let slept = |race: &Race| -> Term {
        let mut terms = race.attributions[0].terms.iter();
        terms.find(|term| term.kind == TermKind::Blocked).unwrap().clone()
    };
    let is_asleep = |(race, longer): &(Race, f64)| {
        let share = slept(race).delta_ns as f64 / (longer * 1e9);
        (0.8..1.2).contains(&share)
    };
    let (race, _) = doubled_until(1, is_asleep, |halves| {
        let longer = f64::from(halves) / 2.0;
        let race = raced(&["-r", "2", "sleep 0.02", &format!("sleep {}", longer + 0.02)]).record();
        (race, longer)
    });
    let slept = slept(&race);
    assert!(slept.name.contains("nanosleep"), "{slept:?}");
    let asleep = [0, 1].map(|at| blocked_in(&race, at, &slept.name));
    assert_eq!([slept.base_ns, slept.other_ns], asleep);
    let cpu = race.attributions.iter().find(|found| found.metric == Metric::Cpu).unwrap();
    assert!(cpu.terms.iter().all(|term| term.kind != TermKind::Blocked));
}

#[test]
fn calls_of_one_side_only_are_shown_as_such() {
    if !bpf() {
        return;
    }
    let raced = raced(&["-r", "2", "true", "sleep 0.05"]);
    raced.record();
    assert!(raced.stdout().contains("only in B"), "{}", raced.stdout());
}

#[test]
fn without_bpf_calls_are_counted_and_the_times_left_alone() {
    let raced = raced(&["-r", "2", "--observer", "ptrace", "true", "echo a"]);
    let race = raced.record();
    let write = term(&race, TermKind::Syscall, "write").unwrap();
    assert_eq!((write.calls_base, write.calls_other, write.delta_ns), (0, 1, 0));
    assert!(raced.stdout().contains("inflates the times of calls"), "{}", raced.stdout());
}

#[test]
fn what_a_ring_does_in_place_of_calls_is_in_the_terms() {
    const SIZE: u64 = 16 << 20;
    const BLOCK: u64 = 64 << 10;
    if !bpf() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("f"), vec![7; SIZE as usize]).unwrap();
    let copy = |mover: &str| format!("{IOTOMY} copy --mover {mover} --block-size 64K f g");
    let commands = [copy("read-write"), copy("io-uring")];
    let options = ["-r", "2", &commands[0], &commands[1]];
    let output = racing(&folder, &options).output().unwrap();
    let raced = FinishedRace::from_output(output, folder);
    let race = raced.record();
    let trace = race.commands[1].trace.as_ref().unwrap();
    if trace.ring_operations.is_empty() {
        return skip(Need::IoUring, "no ring, or one that cannot be watched here");
    }
    for found in &race.attributions {
        let is_ring = |term: &&iotomy_record::Term| term.kind == TermKind::Ring;
        let of = |name: &str| {
            let those = found.terms.iter().filter(is_ring);
            let those = those.filter(|term| term.name.starts_with(name));
            those.fold([0; 4], |sum: [u64; 4], term| {
                assert_eq!((term.base_ns, term.other_ns, term.delta_ns), (0, 0, 0));
                let more = [term.calls_base, term.bytes_base, term.calls_other, term.bytes_other];
                std::array::from_fn(|at| sum[at] + more[at])
            })
        };
        // More than the file where the mover tried its ring before.
        let traced = |name: &str| {
            let those = trace.ring_operations.iter().filter(|row| row.op.starts_with(name));
            those.fold([0; 4], |sum: [u64; 4], row| {
                [0, 0, sum[2] + row.submitted, sum[3] + row.bytes]
            })
        };
        assert_eq!((of("read"), of("write")), (traced("read"), traced("write")));
        assert!(of("read")[2] >= SIZE / BLOCK && of("write")[3] >= SIZE, "{found:#?}");
        let workers = found.terms.iter().filter(|term| term.kind == TermKind::Workers);
        let workers: i64 = workers.map(|term| term.other_ns).sum();
        let booked: u64 = trace.ledger.iter().map(|row| row.worker_ns).sum();
        assert_eq!(workers as u64, if found.metric == Metric::Cpu { booked } else { 0 });
        let explained: i64 = found.terms.iter().map(|term| term.delta_ns).sum();
        assert_eq!(explained + found.residual_ns, found.delta_ns);
    }
}

fn cp(options: &[&str]) -> FinishedRace {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("f"), vec![7; 1 << 20]).unwrap();
    let commands = ["-r", "2", "cp --reflink=never f g", "cp --reflink=never f g"];
    let output = racing(&folder, &[options, &commands].concat()).output().unwrap();
    FinishedRace::from_output(output, folder)
}

#[test]
fn a_denied_call_drives_a_program_down_its_other_way() {
    if !has("cp") || !cp(&[]).stdout().contains("copy_file_range") && !bpf() {
        return;
    }
    let raced = cp(&["--deny", "B:copy_file_range=ENOSYS"]);
    let race = raced.record();
    assert!(race.commands[0].denied.is_empty());
    assert_eq!(race.commands[1].denied, ["copy_file_range=ENOSYS"]);
    assert!(raced.stdout().contains("without copy_file_range=ENOSYS"), "{}", raced.stdout());
    let calls = |at: usize, name: &str| -> (u64, u64) {
        let trace = race.commands[at].trace.as_ref().unwrap();
        let rows = trace.calls.iter().filter(|call| call.syscall == name);
        rows.fold((0, 0), |(calls, errors), call| (calls + call.calls, errors + call.errors))
    };
    let (made, failed) = calls(0, "copy_file_range");
    if made > 0 {
        assert_eq!(failed, 0);
        let (made, failed) = calls(1, "copy_file_range");
        assert!(made > 0 && made == failed);
        assert!(calls(1, "write").0 > 0 || calls(1, "sendfile").0 > 0);
    } else {
        skip(Need::Machine, "this cp makes no copy_file_range");
    }
}

#[test]
fn a_call_denied_to_all_is_denied_to_all() {
    let raced = raced(&[
        "--no-trace",
        "-i",
        "-r",
        "2",
        "--deny",
        "mkdir=EROFS",
        "--deny",
        "mkdirat=EROFS",
        "mkdir d",
        "mkdir e",
    ]);
    let race = raced.record();
    assert!(race.commands.iter().all(|one| one.failures == 2));
    assert!(!raced.folder.path().join("d").exists());
    let refused = support::races::raced(&["--no-trace", "--deny", "execve", "true"]);
    assert_eq!(refused.code(), 2);
    assert!(refused.stderr().contains("Function not implemented"), "{}", refused.stderr());
}
