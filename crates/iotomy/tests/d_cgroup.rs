//! D programs whose probes fire in some control groups only.

use crate::support;

use std::path::Path;
use std::process::Output;

use support::cgroups::{OwnCgroup, hierarchies};
use support::{bpf, iotomy};

/// Runs a program for a command that makes writes outside of a group and in it.
fn run(group: &Path, selected: &Path) -> Output {
    let writes =
        |count: u32| format!("dd if=/dev/zero of=/dev/null bs=8k count={count} status=none");
    let procs = group.join("cgroup.procs");
    let command = format!("{}; echo $$ > {}; {}; true", writes(19), procs.display(), writes(23));
    // The shell leaves the group again, so that it can be removed.
    let command = format!("sh -c '{command}'");
    let program = "syscall::write:return /execname == \"dd\"/ { @[probefunc] = count(); }
                   proc:::exit /execname == \"dd\"/ { @[\"ends\"] = count(); }
                   END { printa(\"%s %@d\\n\", @); }";
    let selected = selected.to_str().unwrap();
    iotomy(&["d", "-q", "--cgroup", selected, "-n", program, "-c", &command]).output().unwrap()
}

#[test]
fn probes_fire_in_the_selected_groups_and_below_them_only() {
    if !bpf() {
        return;
    }
    for mount in hierarchies() {
        let group = OwnCgroup::below(&mount).unwrap();
        let below = OwnCgroup::named(&group.0, "below").unwrap();
        let other = OwnCgroup::below(&mount).unwrap();
        for (where_to, selected, text) in [
            (&group, &group, "ends 1\nwrite 23\n"),
            (&below, &group, "ends 1\nwrite 23\n"),
            (&group, &other, ""),
        ] {
            let run = run(&where_to.0, &selected.0);
            assert_eq!(String::from_utf8_lossy(&run.stdout), text, "{mount:?}: {run:?}");
            assert!(run.status.success(), "{run:?}");
        }
    }
}

#[test]
fn a_group_that_is_made_anew_is_followed() {
    if !bpf() {
        return;
    }
    for mount in hierarchies() {
        let group = OwnCgroup::below(&mount).unwrap();
        let path = group.0.display();
        let command = format!(
            "sh -c 'rmdir {path}; mkdir {path}; echo $$ > {path}/cgroup.procs; \
             dd if=/dev/zero of=/dev/null bs=8k count=23 status=none; true'"
        );
        let program = "syscall::write:return /execname == \"dd\"/ { @ = count(); } END { printa(\"%@d\\n\", @); }";
        let selected = group.0.to_str().unwrap();
        let words = ["d", "-q", "--cgroup", selected, "-n", program, "-c", &command];
        let run = iotomy(&words).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&run.stdout), "23\n", "{mount:?}: {run:?}");
    }
}

#[test]
fn a_group_that_is_none_is_refused_before_the_command_runs() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["d", "--cgroup", "/no/such/group", "-n", "BEGIN {}", "-c", "touch made"];
    let run = iotomy(&words).current_dir(folder.path()).output().unwrap();
    assert_eq!(run.status.code(), Some(2), "{run:?}");
    assert!(String::from_utf8_lossy(&run.stderr).contains("/no/such/group"), "{run:?}");
    assert!(!folder.path().join("made").exists());
}
