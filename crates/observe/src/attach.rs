//! Whom an attachment is to: any thread stands for its process.

use std::fs;
use std::io;

use crate::ObserveError;

/// `PF_KTHREAD` of the kernel: a flag in `/proc/PID/stat`.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// The process that task `pid` belongs to, unless it is the kernel's own.
///
/// # Errors
/// There is no such task, or it is one that makes no calls.
pub(crate) fn process(pid: u32) -> Result<u32, ObserveError> {
    let refused = |source| ObserveError::Attach { pid, source };
    let gone = || refused(rustix::io::Errno::SRCH.into());
    let status = fs::read_to_string(format!("/proc/{pid}/status")).map_err(|_| gone())?;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).map_err(|_| gone())?;
    if flags(&stat).unwrap_or(0) & KERNEL_THREAD != 0 {
        let said = "it is a thread of the kernel, which makes no calls";
        return Err(refused(io::Error::new(io::ErrorKind::Unsupported, said)));
    }
    let process = status.lines().find_map(|line| line.strip_prefix("Tgid:"));
    process.and_then(|id| id.trim().parse().ok()).ok_or_else(gone)
}

/// The seventh field behind the name, which may hold blanks and brackets.
fn flags(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(6)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_found_behind_any_name() {
        assert_eq!(flags("2 (a) S b)) S 0 0 0 0 -1 2129984 0 0"), Some(2_129_984));
        assert_eq!(flags("2 (cut"), None);
    }

    #[test]
    fn a_task_that_is_not_there_is_named() {
        let error = process(u32::MAX).unwrap_err().to_string();
        assert!(error.contains("process 4294967295: No such process"), "{error}");
    }
}
