//! The free processes, descriptors and memory, each with its bounds: the machine, the user's own
//! limits, and the control groups of this process.

use std::fs;
use std::path::Path;

use iotomy_host::room::{OfGroup, free_in_machine, memory_of_groups, processes_of_groups};
use iotomy_record::path_text;
use rustix::process::{Resource, Rlimit, getrlimit};

use super::Bound;

/// Processes left free for other programs.
const SPARE_PROCESSES: u64 = 64;

/// Descriptors that a process may open.
pub(super) fn descriptors(root: &Path, most: u64) -> Bound {
    let file = root.join("proc/sys/fs/nr_open");
    let above =
        iotomy_host::kernel_text(file).ok().and_then(|text| text.trim().parse::<u64>().ok());
    let first = match above.is_some_and(|above| above <= most) {
        true => "sysctl fs.nr_open=#, then ",
        false => "",
    };
    let raise = format!(
        "as root, raise the limit of this shell: {first}prlimit --pid $$ \
        --nofile=#"
    );
    Bound { free: most, most, by: format!("ulimit -Hn is {most}"), raise }
}

/// Memory of the machine and of the control groups of this process.
pub(super) fn memory_bounds(root: &Path) -> Vec<Bound> {
    let of_machine = |free| Bound {
        free,
        most: free,
        by: "the machine does not have more".to_owned(),
        raise: "free memory, or give smaller values with -L".to_owned(),
    };
    let of_group = |group: OfGroup| Bound {
        free: group.free(),
        most: group.most,
        by: format!("{} is {} MiB", path_text(&group.file), group.most >> 20),
        raise: format!("as root: echo # > {}", path_text(&group.file)),
    };
    let in_groups = memory_of_groups(root).into_iter().map(of_group);
    in_groups.chain(free_in_machine(root).map(of_machine)).collect()
}

/// A user whose processes are counted. Root's are not.
#[derive(Debug, Clone, Copy)]
pub(super) struct User {
    id: u32,
    /// Processes that may exist now, including their threads.
    soft: Option<u64>,
    /// The value to which the user may raise the soft limit.
    hard: Option<u64>,
}

impl User {
    pub(super) fn own() -> Self {
        let Rlimit { current, maximum } = getrlimit(Resource::Nproc);
        Self { id: rustix::process::getuid().as_raw(), soft: current, hard: maximum }
    }

    fn bound(self, root: &Path) -> Option<Bound> {
        let most = self.soft?;
        let tasks = self.tasks(root);
        let own = match self.hard.is_none_or(|hard| hard > most) {
            true => "ulimit -u #, or ",
            false => "",
        };
        Some(Bound {
            free: most.saturating_sub(tasks + SPARE_PROCESSES),
            most,
            by: format!("ulimit -u is {most}, of which user {} uses {tasks}", self.id),
            raise: format!(
                "{own}as root, raise the limit of this shell: prlimit --pid $$ \
                --nproc=#"
            ),
        })
    }

    /// Counts the visible tasks of the user.
    fn tasks(self, root: &Path) -> u64 {
        let of_process = |folder: fs::DirEntry| {
            folder.file_name().to_str()?.parse::<u32>().ok()?;
            let status = iotomy_host::kernel_text(folder.path().join("status")).ok()?;
            let field = |name: &str| {
                let line = status.lines().find_map(|line| line.strip_prefix(name))?;
                line.split_whitespace().next()?.parse::<u64>().ok()
            };
            // The first field is the real user id, by which the kernel counts.
            (field("Uid:")? == u64::from(self.id)).then(|| field("Threads:"))?
        };
        let all = fs::read_dir(root.join("proc")).into_iter().flatten().flatten();
        all.filter_map(of_process).sum()
    }
}

/// The bounds on the processes that `user`, or root, can create.
pub(super) fn process_bounds(root: &Path, user: Option<User>) -> Vec<Bound> {
    let read = |path: &str| iotomy_host::kernel_text(root.join(path)).ok();
    let number = |path: &str| read(path)?.trim().parse::<u64>().ok();
    // The fourth field has the running and the existing tasks: "1/234".
    let tasks = read("proc/loadavg")
        .and_then(|text| text.split_whitespace().nth(3)?.split('/').nth(1)?.parse::<u64>().ok());
    let taken = tasks.unwrap_or(0) + SPARE_PROCESSES;
    let of_machine = [
        ("proc/sys/kernel/pid_max", "kernel.pid_max"),
        ("proc/sys/kernel/threads-max", "kernel.threads-max"),
    ]
    .into_iter()
    .filter_map(|(path, name)| {
        let most = number(path)?;
        let (by, raise) = (format!("{name} is {most}"), format!("sysctl {name}=#"));
        Some(Bound { free: most.saturating_sub(taken), most, by, raise })
    });
    let of_user = user.and_then(|user| user.bound(root));
    let of_group = |group: OfGroup| Bound {
        free: group.free().saturating_sub(SPARE_PROCESSES),
        most: group.most,
        by: format!("{} is {}", path_text(&group.file), group.most),
        raise: format!("as root: echo # > {}", path_text(&group.file)),
    };
    of_machine.chain(of_user).chain(processes_of_groups(root).into_iter().map(of_group)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{FreeRoom, Needs};
    use super::*;
    use iotomy_host::Skip;

    #[test]
    fn the_tightest_bound_of_processes_is_named_with_what_raises_it() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let bound = |user| {
            let bounds = process_bounds(root.path(), user);
            bounds.into_iter().min_by_key(|bound| bound.free)
        };
        let said = |user, needed| {
            let bound = bound(user).unwrap();
            (bound.free, bound.reason(needed))
        };
        assert_eq!(bound(None), None);
        put("proc/loadavg", "0.00 0.01 0.05 1/236 12345\n");
        put("proc/sys/kernel/pid_max", "32768\n");
        put("proc/sys/kernel/threads-max", "190000\n");
        let text = "kernel.pid_max is 32768; sysctl kernel.pid_max=40300";
        assert_eq!(said(None, 40_000), (32_468, text.to_owned()));
        // Five of the 236 tasks belong to the user.
        put("proc/7/status", "Name:\ta\nUid:\t9\t0\t0\t0\nThreads:\t4\n");
        put("proc/8/status", "Name:\tb\nUid:\t0\t9\t9\t9\nThreads:\t8\n");
        put("proc/9/status", "Name:\tc\nUid:\t9\t9\t9\t9\nThreads:\t1\n");
        put("proc/sys/status", "Uid:\t9\nThreads:\t1\n");
        let user = |soft, hard| Some(User { id: 9, soft: Some(soft), hard: Some(hard) });
        let text = "ulimit -u is 300, of which user 9 uses 5; as root, raise the limit of this shell: \
                    prlimit --pid $$ --nproc=331";
        assert_eq!(said(user(300, 300), 262), (231, text.to_owned()));
        let text = "ulimit -u is 300, of which user 9 uses 5; ulimit -u 331, or as root, raise \
                    the limit of this shell: prlimit --pid $$ --nproc=331";
        assert_eq!(said(user(300, 400), 262), (231, text.to_owned()));
        for (version, line, folder) in
            [("v1", "3:cpu,pids:/a/b\n", "pids/a"), ("v2", "0::/a/b\n", "a")]
        {
            put("proc/self/cgroup", line);
            put(&format!("sys/fs/cgroup/{folder}/pids.max"), "350\n");
            put(&format!("sys/fs/cgroup/{folder}/pids.current"), "100\n");
            put(&format!("sys/fs/cgroup/{folder}/b/pids.max"), "max\n");
            let file = format!("/sys/fs/cgroup/{folder}/pids.max");
            let text = format!("{file} is 350; as root: echo 364 > {file}");
            assert_eq!(said(user(1_000, 1_000), 200), (186, text), "{version}");
        }
    }

    #[test]
    fn descriptors_and_memory_are_bound_by_what_is_named_with_what_raises_it() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let said = descriptors(root.path(), 50).reason(1_027);
        let rest = "as root, raise the limit of this shell: prlimit --pid $$ --nofile=1027";
        assert_eq!(said, format!("ulimit -Hn is 50; {rest}"));
        put("proc/sys/fs/nr_open", "50\n");
        let said = descriptors(root.path(), 50).reason(1_027);
        assert!(said.contains("shell: sysctl fs.nr_open=1027, then prlimit "), "{said}");
        put("proc/meminfo", "MemTotal: 9 kB\nMemAvailable:    10240 kB\n");
        let refused = |bytes| {
            let bounds = memory_bounds(root.path()).into_iter();
            let memory_bytes = bounds.min_by_key(|bound| bound.free);
            let room = FreeRoom { memory_bytes, ..FreeRoom::default() };
            let needs = Needs { memory_bytes: bytes, ..Needs::default() };
            room.check(needs).map_err(|Skip(reason)| reason).unwrap_err()
        };
        assert!(
            refused(6 << 20).contains("the machine does not have more; free memory"),
            "machine"
        );
        put("proc/self/cgroup", "4:cpu,memory:/x\n");
        put("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "8388608\n");
        put("sys/fs/cgroup/memory/x/memory.usage_in_bytes", "1048576\n");
        let file = "/sys/fs/cgroup/memory/x/memory.limit_in_bytes";
        let enough = (2 * 6 + 1) << 20;
        let text = format!("stay reserved: {file} is 8 MiB; as root: echo {enough} > {file}");
        assert!(refused(6 << 20).ends_with(&text), "{}", refused(6 << 20));
    }
}
