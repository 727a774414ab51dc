//! What a trace counts, against what is known, against strace and against bpftrace.

use crate::support;

use std::collections::BTreeMap;
use std::fs;

use iotomy_record::{Call, FileKind, Trace};
use support::{
    Need, bare, bpf, call, count, doubled_until, each_observer, has, program, skip, traced,
};

/// Calls and errors of every call `strace -f -c` prints for a command.
fn by_strace(words: &[&str]) -> Option<BTreeMap<String, (u64, u64)>> {
    if !has("strace") {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report");
    let mut strace = bare("strace", &["-f", "-c", "-o", report.to_str().unwrap(), "--"]);
    let output = strace.args(words).output().unwrap();
    let Ok(text) = fs::read_to_string(&report) else {
        skip(
            Need::Machine,
            &format!("strace did not work: {}", String::from_utf8_lossy(&output.stderr)),
        );
        return None;
    };
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        // % time, seconds, usecs/call, calls, errors where there are some, name.
        if fields.len() < 5 || !fields[0].starts_with(|c: char| c.is_ascii_digit()) {
            continue;
        }
        let (name, calls) = (*fields.last().unwrap(), fields[3].parse().unwrap());
        let errors = if fields.len() == 6 { fields[4].parse().unwrap() } else { 0 };
        counts.insert(name.to_owned(), (calls, errors));
    }
    counts.remove("total");
    assert!(!counts.is_empty(), "{text}");
    Some(counts)
}

fn agrees_with_strace(record: &Trace, counts: &BTreeMap<String, (u64, u64)>) {
    for (name, expected) in counts {
        let rows = || record.calls.iter().filter(|call| call.syscall == *name);
        // strace counts a call when it is entered, also one that does not return.
        let calls: u64 = rows().map(|call| call.calls).sum();
        let errors: u64 = rows().map(|call| call.errors).sum();
        assert_eq!((calls, errors), *expected, "{name} by {}", record.observer.name);
    }
    for call in record.calls.iter().filter(|call| call.calls > 0) {
        assert!(counts.contains_key(&call.syscall), "strace has no {}", call.syscall);
    }
}

#[test]
fn dd_copies_8192_blocks_and_every_one_is_counted_as_strace_counts_it() {
    const BLOCKS: u64 = 8192;
    if !bpf() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = fs::File::create(folder.path().join("F")).unwrap();
    file.set_len(BLOCKS * 8192).unwrap();
    let from = format!("if={}", folder.path().join("F").display());
    let to = format!("of={}", folder.path().join("G").display());
    let words = ["dd", &from, &to, "bs=8192", "status=none"];
    let record = traced("bpf", &["--files"], &words).whole_record();
    let read = call(&record, "dd", "read");
    assert_eq!(read.return_log2.buckets[13], BLOCKS);
    // The end of F, and of a file the loader or the C library reads, if it does.
    assert!(read.return_log2.zero >= 1);
    let write = call(&record, "dd", "write");
    assert_eq!((write.calls, write.errors), (BLOCKS, 0));
    assert_eq!((write.return_log2.buckets[13], write.bytes), (BLOCKS, BLOCKS * 8192));
    let file = |name: &str| {
        let path = folder.path().join(name).to_str().unwrap().to_owned();
        record.files.iter().find(|file| file.path == path).unwrap().clone()
    };
    let (f, g) = (file("F"), file("G"));
    assert_eq!((f.read_calls, f.read_bytes, f.write_calls), (BLOCKS + 1, BLOCKS * 8192, 0));
    assert_eq!((g.write_calls, g.write_bytes, g.read_calls), (BLOCKS, BLOCKS * 8192, 0));
    if let Some(counts) = by_strace(&words) {
        agrees_with_strace(&record, &counts);
    }
}

#[test]
fn a_script_of_pipelines_is_counted_as_strace_counts_it() {
    // Nothing here depends on who is first: every reader gets all there is in one read.
    let script = "for i in 1 2 3; do /bin/echo $i | cat >/dev/null; done; \
                  cat /nonexistent/a /nonexistent/b 2>/dev/null; (exit 3)";
    let words = ["sh", "-c", script];
    let Some(mut counts) = by_strace(&words) else { return };
    // Whether a shell is told of a child at once or waits, and is interrupted, depends on time.
    for varying in ["wait4", "rt_sigreturn", "rt_sigsuspend", "restart_syscall"] {
        counts.remove(varying);
    }
    each_observer(|observer| {
        let mut record = traced(observer, &[], &words).whole_record();
        record.calls.retain(|call| {
            !["wait4", "rt_sigreturn", "rt_sigsuspend", "restart_syscall"]
                .contains(&call.syscall.as_str())
        });
        agrees_with_strace(&record, &counts);
    });
}

#[test]
fn reads_and_writes_of_a_tree_are_counted_as_bpftrace_counts_them() {
    if !bpf() || !has("bpftrace") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    fs::write(&data, vec![0; 230_000]).unwrap();
    let script = program(
        folder.path(),
        "tree",
        format!(
            "#!/bin/sh\nfor i in 1 2; do dd if={} of=/dev/null bs=10000 status=none; done\n",
            data.display()
        )
        .as_bytes(),
    );
    let probes = "tracepoint:syscalls:sys_enter_read /comm == \"dd\"/ { @r[pid] = count(); } \
                  tracepoint:syscalls:sys_enter_write /comm == \"dd\"/ { @w[pid] = count(); } \
                  END { print(@r); print(@w); clear(@r); clear(@w); }";
    let mut command =
        bare("bpftrace", &["-q", "-e", probes, "-c", &format!("/bin/sh {}", script.display())]);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() || !text.contains("@r[") {
        skip(
            Need::Machine,
            &format!("bpftrace did not work: {}", String::from_utf8_lossy(&output.stderr)),
        );
        return;
    }
    let counts = |name: &str| -> Vec<u64> {
        let lines = text.lines().filter(|line| line.starts_with(name));
        lines.map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect()
    };
    let record = traced("bpf", &[], &[script.to_str().unwrap()]).whole_record();
    let ours = |name: &str| -> Vec<u64> {
        let rows = record.calls.iter().filter(|call| call.exec == "dd" && call.syscall == name);
        rows.map(|call| call.calls).collect()
    };
    // Other tests may run a dd of their own meanwhile: it is there, but not in our tree.
    let theirs = counts("@r[");
    assert_eq!(ours("read").len(), 2);
    assert!(ours("read").iter().all(|count| theirs.contains(count)), "{text}");
    // A write for each block.
    assert_eq!(ours("write"), [23, 23]);
    assert!(counts("@w[").contains(&23), "{text}");
}

#[test]
fn a_sleep_is_blocked_time_and_a_large_read_of_zeroes_is_time_on_a_cpu() {
    if !bpf() {
        return;
    }
    // How long the timer's programming takes on a CPU that is held up, and how long memory takes to be had, is a
    // matter of the machine: more sleep and more zeroes leave less of it.
    let times = |row: &Call| (row.on_cpu_ns.unwrap(), row.blocked_ns.unwrap());
    let is_asleep = |record: &Trace| {
        let (on_cpu, blocked) = times(call(record, "sleep", "clock_nanosleep"));
        blocked > on_cpu
    };
    let record = doubled_until(1, is_asleep, |tenths| {
        let seconds = f64::from(tenths) / 10.0;
        let record = traced("bpf", &[], &["sleep", &seconds.to_string()]).whole_record();
        let sleep = call(&record, "sleep", "clock_nanosleep");
        assert!(sleep.wall_ns as f64 >= seconds * 1e9, "{sleep:?}");
        record
    });
    assert!(record.ledger[0].blocked_ns >= times(call(&record, "sleep", "clock_nanosleep")).1);
    let is_on_cpu = |record: &Trace| {
        let (on_cpu, blocked) = times(call(record, "dd", "read"));
        on_cpu > blocked
    };
    let record = doubled_until(8, is_on_cpu, |blocks| {
        let count = format!("count={blocks}");
        let words = ["dd", "if=/dev/zero", "of=/dev/null", "bs=64M", &count, "status=none"];
        traced("bpf", &[], &words).whole_record()
    });
    let (on_cpu, _) = times(call(&record, "dd", "read"));
    assert!(record.ledger[0].calls_on_cpu_ns >= on_cpu);
}

#[test]
fn a_table_too_small_loses_events_and_says_so() {
    if !bpf() {
        return;
    }
    let traced = traced("bpf", &["--max-rows", "8"], &["sh", "-c", "ls / >/dev/null; true"]);
    assert_eq!(traced.code(), 0);
    assert!(traced.record().observer.lost_events > 0);
    let report = traced.stderr();
    assert!(report.contains("lost") && report.contains("could not be counted"), "{report}");
}

#[test]
fn a_thread_that_dies_in_a_call_makes_it_incomplete_and_the_report_says_so() {
    if !has("perl") {
        return;
    }
    // A child that is killed while it is in a pause for ever.
    let script = r#"
        pipe my $from, my $to; my $child = fork;
        if (!$child) { syswrite $to, "x"; sleep 1000 while 1 }
        sysread $from, my $byte, 1;
        sub told { local @ARGV = "/proc/$child/$_[0]"; local $/; <> }
        # Asleep in it, by its number on x86-64: clock_nanosleep, or nanosleep.
        until (told("stat") =~ /\) S / && told("syscall") =~ /^(230|35) /) {}
        kill KILL => $child; wait;
    "#;
    each_observer(|observer| {
        let traced = traced(observer, &[], &["perl", "-e", script]);
        let record = traced.record();
        assert_eq!(record.observer.incomplete_calls, 1, "{observer}: {}", traced.stderr());
        assert_eq!(
            record
                .calls
                .iter()
                .filter(|call| call.in_flight == 1
                    && call.calls == 0
                    && !call.syscall.starts_with("exit"))
                .count(),
            1,
            "{observer}"
        );
        assert!(traced.stderr().contains("incomplete"), "{}", traced.stderr());
    });
}

#[test]
fn only_the_calls_asked_for_are_counted_and_the_ledger_still_closes() {
    each_observer(|observer| {
        let only = |calls: &str| -> Vec<String> {
            let record = traced(observer, &["--call", calls], &["cat", "/etc/passwd"]);
            let record = record.whole_record();
            let mut names: Vec<String> = record.calls.into_iter().map(|c| c.syscall).collect();
            names.sort();
            names
        };
        assert_eq!(only("read,write"), ["read", "write"], "{observer}");
        assert_eq!(only("getppid"), [""; 0], "{observer}");
        let memory = only("%memory");
        assert!(memory.contains(&"mmap".to_owned()) && memory.contains(&"brk".to_owned()));
        assert!(!memory.contains(&"read".to_owned()));
        let both = only("%memory,read");
        assert_eq!(both.len(), memory.len() + 1);
    });
}

#[test]
fn calls_that_are_left_out_are_numbered_and_are_in_no_table() {
    each_observer(|observer| {
        let command = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=3000", "status=none"];
        let run = |options: &[&str]| {
            let options = [&["--files"], options].concat();
            let traced = traced(observer, &options, &command);
            (traced.whole_record(), traced.stderr().to_string())
        };
        let counted = |record: &Trace| record.calls.iter().map(|row| row.calls).sum::<u64>();
        let (whole, _) = run(&[]);
        assert_eq!(whole.observer.calls_left_out, None, "{observer}");
        // Read and write are also what the overhead is measured with.
        for (options, calls) in [
            (&["--call", "read"][..], Some(3000)),
            (&["--call", "write"], Some(3000)),
            (&["--call", "mount"], Some(0)),
            (&["--where", "call == \"write\" && bytes == 1"], Some(3000)),
            (&["--where", "call == \"read\" && bytes > 1M"], Some(0)),
            (&["--where", "path == \"/dev/zero\""], None),
            (&["--call", "read", "--where", "bytes == 1"], Some(3000)),
        ] {
            let (record, screen) = run(options);
            let left_out = record.observer.calls_left_out.unwrap();
            assert_eq!(counted(&record) + left_out, counted(&whole), "{observer} {options:?}");
            if let Some(calls) = calls {
                let all = counted(&record);
                assert!((calls..calls + 20).contains(&all), "{observer} {options:?}: {all}");
            }
            let [written, read] = ["/dev/null", "/dev/zero"]
                .map(|path| record.files.iter().any(|row| row.path == path));
            let words = options.join(" ");
            assert_eq!(written, words.contains("write"), "{observer} {options:?}");
            assert_eq!(
                read,
                (words.contains("read") && !words.contains("1M")) || words.contains("zero"),
                "{observer} {options:?}"
            );
            assert!(screen.contains("other calls are not counted"), "{screen}");
        }
    });
}

#[test]
fn files_of_every_kind_are_counted_under_what_they_are() {
    if !has("perl") {
        return;
    }
    // memfd_create and eventfd2 have numbers only, in perl: those of x86-64.
    let script = r#"
        use Socket; $| = 1;
        pipe my $from, my $to; syswrite $to, "x" x 10; sysread $from, my $b, 10;
        socketpair my $a, my $z, AF_UNIX, SOCK_STREAM, 0; syswrite $a, "y" x 20; sysread $z, $b, 20;
        open my $null, "+<", "/dev/null"; syswrite $null, "z" x 30;
        open my $event, "+<&=", syscall 290, 0, 0; syswrite $event, pack "Q", 1; sysread $event, $b, 8;
        my $name = "inmemory"; open my $memory, "+<&=", syscall 319, $name, 0; syswrite $memory, "m" x 50;
        open my $gone, "+>", $ARGV[0]; unlink $ARGV[0]; syswrite $gone, "g" x 60;
        open my $proc, "<", "/proc/self/status"; sysread $proc, $b, 70;
    "#;
    let folder = tempfile::tempdir().unwrap();
    let gone = folder.path().join("gone");
    each_observer(|observer| {
        let words = ["perl", "-e", script, gone.to_str().unwrap()];
        let record = traced(observer, &["--files"], &words).whole_record();
        let find = |kind: FileKind, path: &str, read: u64, written: u64| {
            let found = record.files.iter().any(|file| {
                file.kind == kind
                    && file.path.contains(path)
                    && (file.read_bytes, file.write_bytes) == (read, written)
            });
            assert!(found, "{observer}: {kind:?} {path} {read} {written}: {:#?}", record.files);
        };
        find(FileKind::Pipe, "pipe:[", 10, 10);
        find(FileKind::Socket, "socket:[", 0, 20);
        find(FileKind::Socket, "socket:[", 20, 0);
        find(FileKind::Char, "/dev/null", 0, 30);
        find(FileKind::Eventfd, "anon_inode:[eventfd]", 8, 8);
        find(FileKind::File, "/memfd:inmemory", 0, 50);
        find(FileKind::File, "gone", 0, 60);
        assert!(!record.files.iter().any(|file| file.path.contains('…')), "{observer}: cut short");
        find(FileKind::File, "/status", 70, 0);
    });
}

#[test]
fn calls_of_a_32_bit_program_are_named_and_marked() {
    // A 32-bit ELF file of one segment: getppid 23 times, then exit(5), by int 0x80.
    let code: &[u8] = &[
        0xbb, 23, 0, 0, 0, // mov ebx, 23
        0xb8, 64, 0, 0, 0, 0xcd, 0x80, // mov eax, getppid; int 0x80
        0x4b, 0x75, 0xf6, // dec ebx; jnz back
        0xb8, 1, 0, 0, 0, 0xbb, 5, 0, 0, 0, 0xcd, 0x80, // exit(5)
    ];
    let (base, headers) = (0x0804_8000_u32, 52 + 32);
    let mut elf = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x03\0\x01\0\0\0".to_vec();
    elf.extend([base + headers, 52, 0, 0].map(u32::to_le_bytes).concat());
    elf.extend([52, 32, 1, 40, 0, 0].map(u16::to_le_bytes).concat());
    let size = headers + code.len() as u32;
    elf.extend([1, 0, base, base, size, size, 5, 0x1000].map(u32::to_le_bytes).concat());
    elf.extend(code);
    let folder = tempfile::tempdir().unwrap();
    let path = program(folder.path(), "small", &elf);
    if bare(path.to_str().unwrap(), &[]).status().is_ok_and(|status| status.code() == Some(5)) {
        each_observer(|observer| {
            let traced = traced(observer, &[], &[path.to_str().unwrap()]);
            assert_eq!(traced.code(), 5, "{observer}");
            let record = traced.whole_record();
            assert_eq!(count(&record, "getppid(i386)"), 23, "{observer}");
            assert_eq!(count(&record, "getppid"), 0, "{observer}");
            assert_eq!(call(&record, "small", "exit(i386)").in_flight, 1, "{observer}");
        });
    } else {
        skip(Need::Machine, "this kernel runs no 32-bit programs");
    }
}

#[test]
fn a_set_up_of_io_uring_is_a_call_like_any() {
    if !has("perl") {
        return;
    }
    // By its number on x86-64: without parameters it fails, or is forbidden, and was made.
    each_observer(|observer| {
        let traced = traced(observer, &[], &["perl", "-e", "syscall 425, 1, 0"]);
        assert_eq!(count(&traced.whole_record(), "io_uring_setup"), 1, "{observer}");
    });
}

#[test]
fn files_that_find_no_room_are_counted_as_lost() {
    let folder = tempfile::tempdir().unwrap();
    (0..64).for_each(|n| fs::write(folder.path().join(n.to_string()), "x\n").unwrap());
    // In one process: the shell itself reads.
    let script = format!("for file in {}/*; do read line < $file; done", folder.path().display());
    let options = ["-q", "--files", "--max-rows", "16"];
    let record = traced("ptrace", &options, &["sh", "-c", &script]).whole_record();
    assert!(record.files.len() <= 16, "{:?}", record.files);
    assert!(record.observer.lost_files >= 64 - 16, "{:?}", record.observer);
}
