//! The private memory of processes: those of a herd, or one with many threads.
//!
//! It is the sum of the kernel's reports on each process. The machine's free memory before and
//! after would include all other programs, and processes that have just ended: their memory is
//! released while the next ones take their own.

/// Bytes of a task's stack in the kernel: `THREAD_SIZE` of x86, four pages since Linux 3.15.
const KERNEL_STACK: u64 = 16 << 10;

/// Returns the memory of processes: their proportional share of pages, their page tables and their
/// kernel stacks. Other kernel memory for tasks, descriptors and waits is not included, because the
/// kernel does not report it by process. `None` if a part is not known for all processes.
pub(crate) fn memory_of(pids: &[i32]) -> Option<u64> {
    let text = |pid: i32, name: &str| iotomy_host::kernel_text(format!("/proc/{pid}/{name}")).ok();
    let of_one = |pid: i32| of_process(&text(pid, "smaps_rollup")?, &text(pid, "status")?);
    pids.iter().try_fold(0, |sum: u64, pid| sum.checked_add(of_one(*pid)?))
}

/// Computes the memory of one process from the contents of `smaps_rollup` and `status`.
fn of_process(rollup: &str, status: &str) -> Option<u64> {
    let (share, tables) = (field(rollup, "Pss:")?, field(status, "VmPTE:")?);
    let threads = value(status, "Threads:")?.parse::<u64>().ok()?;
    Some(share + tables + threads * KERNEL_STACK)
}

/// Returns a field given in kB, in bytes.
fn field(text: &str, name: &str) -> Option<u64> {
    value(text, name)?.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_its_share_of_pages_its_tables_and_its_stacks_in_the_kernel() {
        let rollup = "55d0-7ffd ---p 00000000 00:00 0 [rollup]\nRss: 900 kB\nPss:    64 kB\n";
        let status = "Name:\tx\nVmPTE:\t      40 kB\nThreads:\t3\n";
        assert_eq!(of_process(rollup, status), Some((64 + 40 + 3 * 16) << 10));
        assert_eq!(of_process("Rss: 900 kB\n", status), None);
        assert_eq!(of_process(rollup, "Name:\tx\n"), None);
    }

    #[test]
    fn what_is_not_known_of_one_is_not_known_of_all() {
        let me = std::process::id().cast_signed();
        let Some(mine) = memory_of(&[me]) else {
            let reason = "/proc/self/smaps_rollup is not there";
            return iotomy_test_requirements::skip(iotomy_test_requirements::Need::Machine, reason);
        };
        assert!(mine > KERNEL_STACK, "{mine}");
        assert_eq!(memory_of(&[me, 0]), None);
    }
}
