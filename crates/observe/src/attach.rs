//! The process to attach to: any thread stands for its process. Its identity, and the processes it
//! has created before.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;

use iotomy_host::kernel_text;
use iotomy_record::{Running, bytes_of, lossless};

use crate::ObserveError;
use crate::executed::executed_as;
use crate::naming::{basename, called};
use crate::title::title_of;

/// `PF_KTHREAD` of the kernel: a flag in `/proc/PID/stat`.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// The process that task `pid` belongs to, unless it is the kernel's own, or iotomy.
///
/// # Errors
/// There is no such task, or it is one that makes no calls, or whose calls are not watched.
pub(crate) fn process(pid: u32) -> Result<u32, ObserveError> {
    let refused = |source| ObserveError::Attach { pid, source };
    let no_process = |said: String| refused(io::Error::new(io::ErrorKind::NotFound, said));
    let gone = || refused(rustix::io::Errno::SRCH.into());
    let status = kernel_text(format!("/proc/{pid}/status")).map_err(|_| gone())?;
    let stat = kernel_text(format!("/proc/{pid}/stat")).map_err(|_| gone())?;
    if flags(&stat).unwrap_or(0) & KERNEL_THREAD != 0 {
        let said = "it is a kernel thread, which makes no system calls";
        return Err(refused(io::Error::new(io::ErrorKind::Unsupported, said)));
    }
    let process = field(&status, "Tgid:").and_then(|id| id.parse().ok()).ok_or_else(gone)?;
    if process == std::process::id() {
        return Err(no_process("it is iotomy itself, which never watches itself".to_owned()));
    }
    let status = match process == pid {
        true => status,
        false => kernel_text(format!("/proc/{process}/status")).map_err(|_| gone())?,
    };
    if is_zombie(&status) {
        let parent = field(&status, "PPid:").unwrap_or("?");
        return Err(no_process(format!(
            "it has ended, and stays a zombie until its parent, process {parent}, waits for it"
        )));
    }
    Ok(process)
}

/// A field of `/proc/PID/status`.
fn field<'s>(status: &'s str, name: &str) -> Option<&'s str> {
    status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// Whether nothing of the process is left to run: its first thread alone may have ended before the
/// others.
fn is_zombie(status: &str) -> bool {
    let has_ended = field(status, "State:").is_some_and(|state| state.starts_with(['Z', 'X']));
    let threads: u32 = field(status, "Threads:").and_then(|n| n.parse().ok()).unwrap_or(1);
    has_ended && threads <= 1
}

/// The names of a process that runs already, as `/proc` has them.
#[derive(Debug, Default)]
pub(crate) struct Names {
    /// As it was executed, or else of the file it runs.
    pub(crate) exec: String,
    /// The name that users know it by; empty where it equals `exec`.
    pub(crate) called: String,
    /// Of the file it runs; empty where it equals `exec`.
    pub(crate) binary: String,
    pub(crate) argv: Vec<String>,
    /// The title that it has set; empty where it has set none.
    pub(crate) title: String,
}

/// The names of process `pid`, as far as they could be read: it may vanish meanwhile, or be
/// inaccessible.
pub(crate) fn names(pid: u32) -> Names {
    let (comm, argv, exe) = (comm(pid), arguments(pid), exe(pid));
    let executed = exe.as_deref().and_then(|exe| executed_as(pid, exe, &comm, &argv));
    let file = from_file(&comm, &argv, exe.as_deref());
    let Some(executed) = executed else { return file };
    let exec = lossless(&executed);
    Names {
        called: called(&exec, Some(&lossless(&comm)), &file.argv),
        exec,
        binary: file.exec,
        ..file
    }
}

/// The names of process `pid` by the file it runs, whatever it was executed by. No path is looked up for them.
pub(crate) fn file_names(pid: u32) -> Names {
    from_file(&comm(pid), &arguments(pid), exe(pid).as_deref())
}

fn from_file(comm: &[u8], argv: &[Vec<u8>], exe: Option<&[u8]>) -> Names {
    let exec = exe.map_or_else(|| lossless(comm), |exe| basename(&lossless(exe)).to_owned());
    let names = [bytes_of(&exec), comm.to_vec()];
    let title = argv.first().map(|first| title_of(first, &names)).unwrap_or_default();
    let argv: Vec<String> = argv.iter().map(|word| lossless(word)).collect();
    let called = called(&exec, Some(&lossless(comm)), &argv);
    Names { called, exec, binary: String::new(), argv, title }
}

/// The name that process `pid` was executed by, where that is not the name of the file it runs.
pub(crate) fn executed_name(pid: u32) -> Option<Vec<u8>> {
    executed_as(pid, &exe(pid)?, &comm(pid), &arguments(pid))
}

/// The names that a process is selected by: the kernel's, and that of the file it runs. They are asked of every process,
/// so its arguments are not read: these are in its memory, which one that is stuck may keep locked.
pub(crate) fn own_names(pid: u32) -> Vec<Vec<u8>> {
    let exe = exe(pid);
    let file = exe.map(|exe| exe.rsplit(|byte| *byte == b'/').next().unwrap_or(&exe).to_vec());
    [Some(comm(pid)).filter(|comm| !comm.is_empty()), file].into_iter().flatten().collect()
}

/// The kernel's name of a process; empty where it is gone.
fn comm(pid: u32) -> Vec<u8> {
    let mut comm = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    comm.pop_if(|last| *last == b'\n');
    comm
}

/// The path of the file that a process runs.
fn exe(pid: u32) -> Option<Vec<u8>> {
    let exe = fs::read_link(format!("/proc/{pid}/exe")).ok()?.into_os_string().into_vec();
    Some(exe.strip_suffix(b" (deleted)").map(<[u8]>::to_vec).unwrap_or(exe))
}

/// All processes, those of the kernel included.
pub(crate) fn all() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// A process's arguments.
fn arguments(pid: u32) -> Vec<Vec<u8>> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    // An only argument that is empty is one.
    if line.is_empty() {
        return Vec::new();
    }
    let line = line.strip_suffix(&[0]).unwrap_or(&line);
    line.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect()
}

/// The living descendants of `pid`, under the names that users know them by. Empty where the kernel
/// does not list them (`CONFIG_PROC_CHILDREN`).
pub(crate) fn descendants(pid: u32) -> Vec<Running> {
    let mut found: Vec<Running> = Vec::new();
    let mut makers = vec![pid];
    while let Some(maker) = makers.pop() {
        let Ok(threads) = fs::read_dir(format!("/proc/{maker}/task")) else { continue };
        for thread in threads.flatten() {
            let children =
                iotomy_host::kernel_text(thread.path().join("children")).unwrap_or_default();
            for child in children.split_whitespace().filter_map(|id| id.parse().ok()) {
                // An id that is reused meanwhile must not cause an endless loop.
                if child == pid || found.iter().any(|one| one.pid == child) {
                    continue;
                }
                let Names { exec, called, .. } = names(child);
                let exec = if called.is_empty() { exec } else { called };
                found.push(Running { pid: child, exec });
                makers.push(child);
            }
        }
    }
    found.sort_by_key(|one| one.pid);
    found
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
    fn a_child_s_child_is_a_descendant() {
        let mut shell = std::process::Command::new("sh")
            .args(["-c", "cat | cat; exit 0"])
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        // The shell has made both once their ends of the pipe are theirs: they appear without end.
        let of_shell = || descendants(shell.id());
        iotomy_test_requirements::wait::until("there are two cats", || {
            of_shell().iter().filter(|one| one.exec == "cat").count() == 2
        });
        let mine = descendants(std::process::id());
        assert!(of_shell().iter().all(|one| mine.contains(one)), "{mine:?}");
        assert!(mine.iter().any(|one| one.pid == shell.id()));
        drop(shell.stdin.take());
        shell.wait().unwrap();
    }

    #[test]
    fn a_process_whose_first_thread_has_ended_is_no_zombie() {
        assert!(is_zombie("Name:\tx\nState:\tZ (zombie)\nThreads:\t1\n"));
        assert!(!is_zombie("Name:\tx\nState:\tZ (zombie)\nThreads:\t2\n"));
        assert!(!is_zombie("Name:\tx\nState:\tS (sleeping)\nThreads:\t1\n"));
    }

    #[test]
    fn a_task_that_is_not_there_is_named() {
        let error = process(u32::MAX).unwrap_err().to_string();
        assert!(error.contains("process 4294967295: No such process"), "{error}");
    }
}
