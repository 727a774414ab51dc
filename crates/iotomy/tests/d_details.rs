//! D programs on the scheduler, block requests, names of files, stacks and memory of processes.

use crate::support;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::process::Output;

use support::{bpf, iotomy};

/// A run of a program over a command; its output. `None` where BPF does not work.
fn d(program: &str, command: &str) -> Option<String> {
    bpf().then(|| text(&iotomy(&["d", "-q", "-n", program, "-c", command]).output().unwrap()))
}

fn text(output: &Output) -> String {
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn descriptors_have_the_names_of_their_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("some file");
    fs::write(&path, "0123456789").unwrap();
    let program = "syscall::read:entry /pid == $target && fds[arg0].fi_name == \"some file\"/
        { printf(\"%s|%s|%s|%d|%d\\n\", fds[arg0].fi_pathname, fds[arg0].fi_dirname, fds[arg0].fi_name,
                 fds[arg0].fi_offset, fds[arg0].fi_oflags & O_WRONLY); }
        syscall::read:entry /pid == $target/ { @[fds[77].fi_pathname, fds[-1].fi_name] = count(); }
        END { printa(\"%s %s\\n\", @); }";
    let command = format!("dd 'if={}' of=/dev/null status=none", path.display());
    let Some(text) = d(program, &command) else { return };
    let whole = path.display();
    let within = folder.path().display();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(&*format!("{whole}|{within}|some file|0|0")), "{text}");
    assert_eq!(lines.next(), Some(&*format!("{whole}|{within}|some file|10|0")), "{text}");
    assert_eq!(lines.next(), Some("<none> <none>"), "{text}");
}

#[test]
fn pipes_have_no_path_and_file_systems_have_names() {
    let program = "syscall::write:entry /pid == $target && arg0 == 1/
        { printf(\"%s %s %s\\n\", fds[1].fi_pathname, fds[1].fi_fs, fds[1].fi_mount); exit(0); }";
    let Some(text) = d(program, "echo x") else { return };
    assert!(text.lines().any(|line| line.ends_with("<unknown> pipefs <unknown>")), "{text}");
    let program = "syscall::read:entry /pid == $target && fds[arg0].fi_name == \"status\"/
        { printf(\"%s %s\\n\", fds[arg0].fi_fs, fds[arg0].fi_mount); exit(0); }";
    let Some(text) = d(program, "cat /proc/self/status") else { return };
    assert!(text.lines().any(|line| line.ends_with("proc /proc")), "{text}");
}

#[test]
fn directories_of_a_process_are_known() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let program = "syscall::exit_group:entry /pid == $target/ { printf(\"%s %s\\n\", cwd, root); }";
    let command = format!("sh -c 'cd {}; exit 0'", folder.display());
    let Some(text) = d(program, &command) else { return };
    assert_eq!(text, format!("{} /\n", folder.display()));
}

#[test]
fn memory_of_a_process_is_copied_and_looked_at() {
    let program = "syscall::write:entry /pid == $target && arg0 == 1/
        { this->p = copyin(arg1, 6); printf(\"%d %s\\n\", *(uint8_t *)this->p, stringof(this->p + 1));
          tracemem(copyin(arg1, 4), 4);
          this->q = alloca(8); copyinto(arg1 + 1, 3, this->q);
          printf(\"%s %s\\n\", stringof(this->q), inet_ntoa(this->p)); }";
    // Nothing but zeros is behind what is copied.
    let Some(text) = d(program, "printf 'ABCDE\\0'") else { return };
    assert!(text.contains("65 BCDE\n"), "{text}");
    assert!(text.contains("41 42 43 44"), "{text}");
    assert!(text.contains("BCD 65.66.67.68\n"), "{text}");
    let program =
        "syscall::write:entry /pid == $target && arg0 == 1/ { trace(*(char *)copyin(1, 1)); }
                   ERROR { printf(\"address %x kind %d\\n\", arg5, arg4); }";
    let run = iotomy(&["d", "-q", "-n", program, "-c", "echo x"]).output().unwrap();
    assert!(String::from_utf8_lossy(&run.stdout).contains("address 1 kind 1"), "{run:?}");
}

#[test]
fn a_thread_leaves_its_cpu_as_often_as_it_comes_back() {
    let program =
        "sched:::off-cpu /pid == $target/ { @[\"off\"] = count(); self->left = timestamp; }
        sched:::on-cpu /pid == $target && self->left/ { @[\"on\"] = count(); self->left = 0; }
        sched:::sleep /pid == $target/ { @[\"sleep\"] = count(); }
        sched:::preempt /pid == $target/ { @[\"preempt\"] = count(); }
        sched:::wakeup /args[1]->pr_pid == $target/ { @[\"wakeup\"] = count(); }
        sched:::on-cpu /pid == $target/ { @names[execname, ppid > 0] = count(); }
        END { printa(\"%s %@d\\n\", @); printa(\"%s %d\\n\", @names); }";
    let Some(text) = d(program, "sh -c 'for i in 1 2 3; do sleep 0.01; done'") else { return };
    let count = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.map_or(0, |count| count.parse::<u64>().unwrap())
    };
    assert!(count("sleep") >= 3 && count("wakeup") >= 3, "{text}");
    assert_eq!(count("sleep") + count("preempt"), count("off"), "{text}");
    // It does not come back from its end.
    assert_eq!(count("on") + 1, count("off"), "{text}");
    assert!(text.lines().any(|line| line == "sh 1"), "{text}");
}

#[test]
fn block_requests_of_a_file_are_its_bytes() {
    let Some(volume) = support::volume::Volume::ext4() else { return };
    let path = volume.path().join("written");
    let program = "io:::start /args[2]->fi_name == \"written\" && args[0]->b_flags & B_WRITE/
        { @bytes[args[1]->dev_statname, args[2]->fi_pathname] = sum(args[0]->b_bcount);
          @begun = count(); at[arg0] = args[0]->b_blkno; device = args[0]->b_edev; }
        io:::done /at[arg0] != 0/
        { @ended = count(); @same = sum(at[arg0] == args[0]->b_blkno && args[0]->b_edev == device);
          @errors = sum(args[0]->b_error + args[0]->b_resid); at[arg0] = 0; }
        END { printa(\"%s %s %@d\\n\", @bytes); printa(\"%@d \", @begun); printa(\"%@d \", @ended);
              printa(\"%@d \", @same); printa(\"%@d\\n\", @errors); }";
    let command =
        format!("dd if=/dev/zero of={} bs=64k count=16 conv=fsync status=none", path.display());
    let Some(text) = d(program, &command) else { return };
    let lines: Vec<&str> = text.lines().collect();
    let [bytes, counts] = lines[..] else { panic!("{text}") };
    assert!(bytes.starts_with("loop") && bytes.ends_with(" /written 1048576"), "{text}");
    let counts: Vec<u64> = counts.split(' ').map(|count| count.parse().unwrap()).collect();
    assert!(counts[0] > 0 && counts[..3] == [counts[0]; 3] && counts[3] == 0, "{text}");
    assert_eq!(fs::metadata(&path).unwrap().size(), 1 << 20);
}

#[test]
fn stacks_have_the_names_of_functions() {
    let program = "syscall::write:entry /pid == $target && arg0 == 1/ { stack(5); ustack(3); }
        syscall::write:entry /pid == $target/ { @k[stack()] = count(); @u[ustack(2)] = count(); }";
    let Some(text) = d(program, "echo x") else { return };
    assert!(text.contains("vmlinux`do_syscall_64"), "{text}");
    assert!(!text.contains("bpf_"), "{text}");
    // The C library's function, by its file and name, of a process that has ended.
    assert!(text.lines().any(|line| line.contains("libc.so") && line.contains('`')), "{text}");
}

#[test]
fn probes_that_linux_does_not_tell_of_are_refused_with_what_there_is_instead() {
    for (probe, says) in [
        ("sysinfo:::sysreed", "did you mean `sysread`?"),
        ("sched:::enqueue", "sched:::wakeup"),
        ("sched:::on-cpus", "did you mean `on-cpu`?"),
        ("proc:::exec-failure", "syscall::exec*"),
        ("vminfo:::maj_fault", "counts page faults"),
        ("syscall::xsta?:entry", "no probe matches"),
    ] {
        let run = iotomy(&["d", "-e", "-n", &format!("{probe} {{}}")]).output().unwrap();
        let error = String::from_utf8_lossy(&run.stderr).into_owned();
        assert!(run.status.code() == Some(2) && error.contains(says), "{probe}: {error}");
    }
}
