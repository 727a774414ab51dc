//! The children of this process, those among them that their own parents left behind, and their end.

use std::fs;
use std::io;

/// Makes this process the new parent of its descendants' orphans.
///
/// # Errors
/// The kernel's error.
pub fn become_subreaper() -> io::Result<()> {
    // SAFETY: takes plain integers.
    match unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The children of this process, the orphans it has adopted among them.
pub fn children() -> Vec<u32> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().filter_map(Result::ok);
    tasks
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|list| {
            list.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<u32>>()
        })
        .collect()
}

/// Kills the children except `spared`, and does not wait for them.
pub fn kill(spared: &[u32]) {
    for pid in children().into_iter().filter(|pid| !spared.contains(pid)) {
        // SAFETY: takes plain integers; a child that was not waited for keeps its id.
        unsafe { libc::kill(pid.cast_signed(), libc::SIGKILL) };
    }
}

/// Kills and waits for the children except `spared`, and for those that it adopts when they end,
/// until there are none; returns their number.
pub fn end(spared: &[u32]) -> usize {
    let mut ended = 0;
    loop {
        let mut left = children();
        left.retain(|pid| !spared.contains(pid));
        if left.is_empty() {
            return ended;
        }
        for pid in left {
            let pid = pid.cast_signed();
            let mut status = 0;
            // SAFETY: as in `kill`.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            // SAFETY: `status` is room for the one integer the call writes.
            while unsafe { libc::waitpid(pid, &raw mut status, 0) } < 0
                && io::Error::last_os_error().raw_os_error() == Some(libc::EINTR)
            {}
            ended += 1;
        }
    }
}
