//! D programs on what kernels keep statistics of, and on threads that wait for block requests.

use crate::support;

use std::collections::BTreeMap;

use support::volume::Volume;
use support::{bpf, iotomy};

/// Lines `NAME NUMBER` that a program prints over a command, in a folder.
fn counted(program: &str, command: &str, folder: &std::path::Path) -> BTreeMap<String, u64> {
    let words = ["d", "-q", "-n", program, "-c", command];
    let output = iotomy(&words).current_dir(folder).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().filter_map(|line| line.rsplit_once(' '));
    lines.map(|(name, count)| (name.to_owned(), count.parse().unwrap())).collect()
}

const COUNTS: &str = r#"
    syscall::read:entry, syscall::readv:entry, syscall::pread64:entry /progenyof($target)/ { @["reads"] = sum(1); }
    syscall::write:entry, syscall::writev:entry, syscall::pwrite64:entry /progenyof($target)/ { @["writes"] = sum(1); }
    syscall::read:return, syscall::pread64:return /progenyof($target) && arg0 > 0/ { @["got"] = sum(arg0); }
    syscall::write:return /progenyof($target) && arg0 > 0/ { @["given"] = sum(arg0); }
    syscall::execve:entry /progenyof($target)/ { @["execs"] = sum(1); }
    proc:::create /progenyof($target)/ { @["made"] = sum(1); }
    sched:::off-cpu /progenyof($target)/ { @["left"] = sum(1); }
    sched:::preempt /progenyof($target)/ { @["had to"] = sum(1); }
    sysinfo:::sysread, sysinfo:::syswrite, sysinfo:::sysexec, sysinfo:::sysfork, sysinfo:::sysvfork, sysinfo:::readch,
    sysinfo:::writech, sysinfo:::pswitch, sysinfo:::inv_swtch, vminfo:::as_fault, vminfo:::prot_fault
    /progenyof($target)/ { @[probename] = sum(args[0]); }
    END { printa("%s %@d\n", @); }"#;

#[test]
fn statistics_grow_as_the_probes_of_what_they_are_of_fire() {
    if !bpf() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = "for i in 1 2 3; do dd if=/dev/zero of=f bs=1000 count=7 status=none; done; cat f f >/dev/null; sleep 0.01\n";
    std::fs::write(folder.path().join("script"), script).unwrap();
    let is = counted(COUNTS, "sh script", folder.path());
    let of = |name: &str| is.get(name).copied().unwrap_or(0);
    assert!(of("reads") > 21 && of("given") >= 21_000, "{is:?}");
    assert_eq!((of("sysread"), of("syswrite")), (of("reads"), of("writes")), "{is:?}");
    assert_eq!((of("readch"), of("writech")), (of("got"), of("given")), "{is:?}");
    // Three of dd, cat and sleep, by whichever call the shell makes processes.
    assert_eq!((of("made"), of("sysfork") + of("sysvfork")), (5, 5), "{is:?}");
    assert_eq!((of("sysexec"), of("execs") > 5), (of("execs"), true), "{is:?}");
    assert_eq!((of("pswitch"), of("inv_swtch")), (of("left"), of("had to")), "{is:?}");
    // A child writes to pages that it shares with its parent.
    assert!(of("prot_fault") > 0 && of("as_fault") > of("prot_fault"), "{is:?}");
}

/// A command is held until its execve, of which each probe has to be told by itself.
#[test]
fn a_statistic_is_counted_where_nothing_else_is_asked_after() {
    if !bpf() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (probe, least) in [
        ("sysinfo:::sysread", 7),
        ("sysinfo:::syswrite", 7),
        ("sysinfo:::readch", 7_000),
        ("sysinfo:::writech", 7_000),
        ("sysinfo:::pswitch", 1),
        ("vminfo:::as_fault", 10),
        ("vminfo:::prot_fault", 1),
    ] {
        let program = format!(
            "{probe} /pid == $target/ {{ @ = sum(arg0); }} END {{ printa(\"sum %@d\\n\", @); }}"
        );
        let command = "dd if=/dev/zero of=f bs=1000 count=7 conv=fsync status=none";
        let is = counted(&program, command, folder.path());
        assert!(is.get("sum").is_some_and(|sum| *sum >= least), "{probe}: {is:?}");
    }
}

/// A semaphore and a queue of messages, which are removed, and processes that are made without `vfork`.
const OTHERS: &str = r#"use IPC::SysV qw(IPC_PRIVATE IPC_RMID);
my $s = semget(IPC_PRIVATE, 1, 0600); semop($s, pack("s3", 0, 1, 0)) for 1 .. 3; semctl($s, 0, IPC_RMID, 0);
my $q = msgget(IPC_PRIVATE, 0600); msgsnd($q, pack("l! a*", 1, "x"), 0) for 1 .. 4;
my $m; msgrcv($q, $m, 9, 0, 0) for 1 .. 4; msgctl($q, IPC_RMID, 0);
for (1 .. 5) { my $p = fork; exit if !$p; waitpid $p, 0 }
"#;

#[test]
fn calls_of_each_kind_are_told_apart() {
    if !bpf() || !support::has("perl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("others"), OTHERS).unwrap();
    let program = r#"
        sysinfo:::sema, sysinfo:::msg, sysinfo:::sysfork, sysinfo:::sysvfork, sysinfo:::sysexec
        /pid == $target/ { @[probename] = sum(arg0); }
        END { printa("%s %@d\n", @); }"#;
    let is = counted(program, "perl others", folder.path());
    let expected = [("sema", 3), ("msg", 8), ("sysfork", 5), ("sysexec", 1)];
    let expected = expected.map(|(name, count)| (name.to_owned(), count));
    assert_eq!(is, BTreeMap::from(expected));
}

#[test]
fn what_is_read_from_a_device_and_into_new_memory_is_counted() {
    let Some(volume) = Volume::ext4() else { return };
    std::fs::write(volume.path().join("f"), vec![1; 1 << 20]).unwrap();
    volume.mount_again();
    let program = r#"
        vminfo:::pgin, vminfo:::pgpgin, vminfo:::kernel_asflt /pid == $target/ { @[probename] = sum(arg0); }
        END { printa("%s %@d\n", @); }"#;
    let is = counted(program, "dd if=f of=/dev/null bs=1M status=none", &volume.path());
    let of = |name: &str| is.get(name).copied().unwrap_or(0);
    // The kernel copies into pages that dd has not touched yet.
    assert!(of("pgpgin") >= 256 && of("pgin") > 0 && of("kernel_asflt") > 0, "{is:?}");
}

#[test]
fn who_waits_for_a_device_is_told_at_both_ends_and_pages_are_counted() {
    let Some(volume) = Volume::ext4() else { return };
    let program = r#"
        vminfo:::pgpgout /execname == "dd"/ { @["pages"] = sum(args[0]); }
        vminfo:::pgout /execname == "dd"/ { @["requests"] = sum(args[0]); }
        io:::wait-start /pid == $target/ { @["begun"] = sum(1); self->began = timestamp; }
        io:::wait-done /pid == $target/ { @["done"] = sum(1); }
        io:::wait-done /pid == $target && self->began && timestamp >= self->began/ { @["both"] = sum(1); self->began = 0; }
        END { printa("%s %@d\n", @); }"#;
    let is = counted(
        program,
        "dd if=/dev/zero of=f bs=64k count=16 conv=fsync status=none",
        &volume.path(),
    );
    let of = |name: &str| is.get(name).copied().unwrap_or(0);
    assert!(of("pages") >= 256 && of("requests") > 0, "{is:?}");
    assert!(of("begun") > 0, "{is:?}");
    assert_eq!((of("done"), of("both")), (of("begun"), of("begun")), "{is:?}");
}

#[test]
fn a_wait_has_no_request_and_that_is_said() {
    let program = "io:::wait-start { trace(args[0]->b_bcount); }";
    let output = iotomy(&["d", "-e", "-n", program]).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("these probes have no args[0]"), "{stderr}");
}
