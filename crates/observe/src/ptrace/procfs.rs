//! The facts that `/proc` has about a task: its ids, its program, its usage, its descriptors.
//!
//! Every answer is an `Option` or a default: a task can vanish between any two reads.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::Path;

use iotomy_host::{file_systems, kernel_text, title};
use iotomy_record::{FileKind, FileUse, Process, lossless};
use iotomy_sys::syscalls::{self, PathArgument};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use rustix::thread::{CpuSet, sched_getaffinity};

use crate::attach::{Names, file_names, names, own_names};
use crate::cache;
use crate::naming::{basename, called, join};
use crate::tally::{FileRef, Usage};
use crate::title::title_of;

/// The kernel's unit of times in `/proc/*/stat`: 1/100 s for every program on x86-64.
const TICK_NS: u64 = 10_000_000;

/// A task's place in the tree.
#[derive(Debug, Clone, Copy)]
pub(super) struct Family {
    /// Its process: the task itself when it is the first thread.
    pub(super) process: u32,
    /// That process's parent.
    pub(super) parent: u32,
}

pub(super) fn family(tid: u32) -> Option<Family> {
    let status = kernel_text(format!("/proc/{tid}/status")).ok()?;
    Some(Family {
        process: field(&status, "Tgid:")?.try_into().ok()?,
        parent: field(&status, "PPid:")?.try_into().ok()?,
    })
}

/// The number behind `name` in the text of a `status` file.
fn field(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// A process with one thread, as it is now, with nothing counted yet.
pub(super) fn process(pid: u32) -> Process {
    named(pid, names(pid))
}

fn named(pid: u32, names: Names) -> Process {
    let Names { exec, called, binary, argv, title } = names;
    Process {
        pid,
        ppid: family(pid).map_or(0, |family| family.parent),
        exec,
        called,
        binary,
        argv,
        title,
        threads: 1,
        ..Process::default()
    }
}

/// The title that a process has set by now; empty where it has set none.
pub(super) fn title(pid: u32) -> String {
    title_of(&title::first_argument(pid), &own_names(pid))
}

/// Whether there is such a task, ended or not, that has not been waited for.
pub(super) fn exists(tid: u32) -> bool {
    let task = i32::try_from(tid).ok().and_then(Pid::from_raw);
    // Not by /proc, which may be mounted so as to hide others' processes.
    task.is_some_and(|task| test_kill_process(task) != Err(Errno::SRCH))
}

/// The tasks of a process that exist now.
pub(super) fn threads(pid: u32) -> Vec<u32> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Whether a task exists and has not ended.
pub(super) fn is_alive(tid: u32) -> bool {
    let Ok(stat) = kernel_text(format!("/proc/{tid}/stat")) else { return false };
    let state = after_name(&stat).and_then(|fields| fields.split_whitespace().next());
    !matches!(state, None | Some("Z" | "X"))
}

/// The fields of a `stat` line from the state on: the name before it may hold blanks and brackets.
fn after_name(stat: &str) -> Option<&str> {
    stat.rsplit_once(')').map(|(_, fields)| fields)
}

/// The CPUs on which a thread may run; none where it is gone.
pub(super) fn allowed_cpus(tid: u32) -> Vec<usize> {
    let task = i32::try_from(tid).ok().and_then(Pid::from_raw);
    let set = task.and_then(|task| sched_getaffinity(Some(task)).ok());
    let set = set.as_ref();
    set.map_or_else(Vec::new, |set| (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect())
}

/// The kernel's name of a thread; empty where it is gone.
pub(super) fn name(pid: u32, tid: u32) -> String {
    let name = fs::read(format!("/proc/{pid}/task/{tid}/comm")).unwrap_or_default();
    lossless(name.strip_suffix(b"\n").unwrap_or(&name))
}

/// The kernel's accounting of one thread so far.
pub(super) fn usage(pid: u32, tid: u32) -> Option<Usage> {
    let folder = format!("/proc/{pid}/task/{tid}");
    let stat = kernel_text(format!("{folder}/stat")).ok()?;
    let status = kernel_text(format!("{folder}/status")).ok()?;
    let run_ns = iotomy_host::kernel_text(format!("{folder}/schedstat"))
        .ok()
        .and_then(|line| line.split_whitespace().next()?.parse().ok());
    // Fields 3 (state), 10 (minor faults), 12 (major), 14 and 15 (user, system) of proc(5).
    let fields: Vec<&str> = after_name(&stat)?.split_whitespace().collect();
    let number = |at: usize| fields.get(at - 3).and_then(|text| text.parse().ok()).unwrap_or(0);
    let (user_ns, system_ns) = split_time(number(14), number(15), run_ns);
    Some(Usage {
        user_ns,
        system_ns,
        minor_faults: number(10),
        major_faults: number(12),
        voluntary_switches: field(&status, "voluntary_ctxt_switches:").unwrap_or(0),
        involuntary_switches: field(&status, "nonvoluntary_ctxt_switches:").unwrap_or(0),
    })
}

/// User and system time, from both in ticks and the exact time on a CPU. Where no tick came, all of
/// it is user time: the kernel's own rule (`cputime_adjust`).
fn split_time(user: u64, system: u64, run_ns: Option<u64>) -> (u64, u64) {
    let Some(run_ns) = run_ns else {
        return (user.saturating_mul(TICK_NS), system.saturating_mul(TICK_NS));
    };
    let ticks = u128::from(user) + u128::from(system);
    let system_ns = (u128::from(run_ns) * u128::from(system)).checked_div(ticks).unwrap_or(0);
    let system_ns = u64::try_from(system_ns).unwrap_or(run_ns);
    (run_ns - system_ns, system_ns)
}

/// Whether a signal waits for the thread that seccomp sends in place of a call.
pub(super) fn is_trapped(tid: u32) -> bool {
    const SIGSYS: u32 = 31;
    let status = kernel_text(format!("/proc/{tid}/status")).unwrap_or_default();
    let pending = status.lines().find_map(|line| line.strip_prefix("SigPnd:"));
    let pending = pending.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    pending.is_some_and(|set| set >> (SIGSYS - 1) & 1 == 1)
}

/// The largest resident set the process's address space has had.
pub(super) fn peak_resident_bytes(pid: u32) -> u64 {
    let status = kernel_text(format!("/proc/{pid}/status")).unwrap_or_default();
    field(&status, "VmHWM:").unwrap_or(0) * 1024
}

/// The process as it is after it executed `path`, with nothing counted yet.
///
/// The executed path names it: for a script it is the script, and for a link (`sh`) the link, as in
/// the kernel's names of processes. Paths that name no program (`/proc/self/exe`) are resolved.
pub(super) fn executed(pid: u32, path: Option<&str>) -> Process {
    // Its arguments are those that it was given.
    let found = Process { title: String::new(), ..named(pid, file_names(pid)) };
    let file = found.exec.clone();
    let leads_on = |path: &&str| !path.starts_with("/proc/") && !path.starts_with("/dev/fd/");
    let name = path.filter(leads_on).map(basename).filter(|name| !name.is_empty());
    match name {
        Some(name) if name != file => {
            Process { exec: name.to_owned(), called: String::new(), binary: file, ..found }
        }
        // A file executed by its own name may be of many programs.
        _ => Process {
            called: called(&file, None, &found.argv),
            exec: file,
            binary: String::new(),
            ..found
        },
    }
}

/// The path at `address` in a stopped task's memory, which ends with a zero.
pub(super) fn path_at(tid: u32, address: u64) -> Option<String> {
    const PAGE: usize = 4096;
    const LONGEST: usize = 4096;
    let memory = fs::File::open(format!("/proc/{tid}/mem")).ok()?;
    let mut path = Vec::new();
    while path.len() < LONGEST {
        // Up to the end of the page: the next one may not be mapped.
        let from = address.checked_add(path.len() as u64)?;
        let mut piece = [0u8; PAGE];
        let room = PAGE - (from % PAGE as u64) as usize;
        let got = memory.read_at(&mut piece[..room], from).ok()?;
        let piece = piece.get(..got).filter(|piece| !piece.is_empty())?;
        if let Some(end) = piece.iter().position(|byte| *byte == 0) {
            path.extend_from_slice(&piece[..end]);
            return Some(lossless(&path));
        }
        path.extend_from_slice(piece);
    }
    None
}

/// So many bytes at `address` in a stopped task's memory.
pub(super) fn bytes_at(tid: u32, address: u64, length: usize) -> Option<Vec<u8>> {
    let memory = fs::File::open(format!("/proc/{tid}/mem")).ok()?;
    let mut bytes = vec![0; length];
    memory.read_exact_at(&mut bytes, address).ok()?;
    Some(bytes)
}

/// The paths that a task's call is given, as it is entered; `None` for one that cannot be read.
pub(super) fn paths_of_call(tid: u32, call: &str, args: &[u64; 6]) -> Vec<Option<String>> {
    const AT_FDCWD: i32 = -100;
    let paths = syscalls::paths(call).iter().map(|PathArgument { text, directory }| {
        // A descriptor: the kernel, too, looks at its lower half only.
        let fd = directory.map_or(AT_FDCWD, |at| args[usize::from(at)] as u32 as i32);
        let path = match args[usize::from(*text)] {
            // The descriptor's own file is meant.
            0 if fd != AT_FDCWD => String::new(),
            address => cut(path_at(tid, address)?),
        };
        let link = || match fd {
            AT_FDCWD => working_directory(tid),
            fd => link(&format!("/proc/{tid}/fd/{fd}")),
        };
        let directory = if path.starts_with('/') { None } else { link() };
        Some(join(directory.as_deref(), &path))
    });
    paths.collect()
}

/// As long as the other observer keeps them.
fn cut(mut path: String) -> String {
    const MOST: usize = 383;
    if path.len() > MOST {
        let whole = (0..=MOST).rev().find(|at| path.is_char_boundary(*at));
        path.truncate(whole.unwrap_or(0));
        path.push('…');
    }
    path
}

/// The name of a thread.
pub(super) fn thread_name(tid: u32) -> String {
    let name = fs::read(format!("/proc/{tid}/comm")).unwrap_or_default();
    lossless(name.strip_suffix(b"\n").unwrap_or(&name))
}

/// The directory that a task works in.
pub(super) fn working_directory(tid: u32) -> Option<String> {
    link(&format!("/proc/{tid}/cwd"))
}

fn link(at: &str) -> Option<String> {
    Some(lossless(fs::read_link(at).ok()?.as_os_str().as_bytes()))
}

/// The file behind descriptor `fd` of a task. It is looked up each time: programs reuse
/// descriptors.
pub(super) fn file(tid: u32, fd: i32) -> Option<FileRef> {
    let link = format!("/proc/{tid}/fd/{fd}");
    let path = lossless(fs::read_link(&link).ok()?.as_os_str().as_bytes());
    let kind = match path.strip_prefix("anon_inode:") {
        Some("[eventfd]") => FileKind::Eventfd,
        Some(_) => FileKind::Anon,
        None => fs::metadata(&link).map_or(FileKind::Other, |found| kind(found.file_type())),
    };
    Some(FileRef { kind, path })
}

/// The inode of a socket, from the path of its descriptor.
pub(super) fn socket_inode(path: &str) -> Option<u64> {
    path.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// The inode of the socket behind descriptor `fd` of a task.
pub(super) fn socket_of(tid: u32, fd: i32) -> Option<u64> {
    socket_inode(&link(&format!("/proc/{tid}/fd/{fd}"))?)
}

/// The sockets behind all descriptors of a task, by inode.
pub(super) fn sockets(tid: u32) -> Vec<(i32, u64)> {
    let Ok(entries) = fs::read_dir(format!("/proc/{tid}/fd")) else { return Vec::new() };
    let socket = |entry: fs::DirEntry| {
        let fd = entry.file_name().to_str()?.parse().ok()?;
        let path = fs::read_link(entry.path()).ok()?;
        Some((fd, socket_inode(path.to_str()?)?))
    };
    entries.flatten().filter_map(socket).collect()
}

/// The regular file descriptor `fd` of a task leads to, as it is now, with nothing counted.
pub(super) fn as_it_is(tid: u32, fd: i32) -> FileUse {
    let link = format!("/proc/{tid}/fd/{fd}");
    let found = fs::metadata(&link).ok();
    let on = rustix::fs::statfs(&link).ok().map(|on| file_systems::magic(on.f_type));
    FileUse {
        kind: FileKind::File,
        file_system: on.map(file_systems::name),
        size_bytes: found.map(|found| found.len()),
        cached_bytes: cache::cached_bytes(Path::new(&link))
            .filter(|_| on != Some(file_systems::OVERLAY) && !is_direct(tid, fd)),
        ..FileUse::default()
    }
}

/// Whether a descriptor reads past the page cache.
fn is_direct(tid: u32, fd: i32) -> bool {
    const O_DIRECT: u64 = 0o40000;
    let text = iotomy_host::kernel_text(format!("/proc/{tid}/fdinfo/{fd}")).unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    flags
        .and_then(|flags| u64::from_str_radix(flags.trim(), 8).ok())
        .is_some_and(|flags| flags & O_DIRECT != 0)
}

fn kind(of: fs::FileType) -> FileKind {
    match of {
        of if of.is_file() => FileKind::File,
        of if of.is_dir() => FileKind::Directory,
        of if of.is_fifo() => FileKind::Pipe,
        of if of.is_socket() => FileKind::Socket,
        of if of.is_char_device() => FileKind::Char,
        of if of.is_block_device() => FileKind::Block,
        _ => FileKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn time_on_a_cpu_is_split_as_the_ticks_are() {
        assert_eq!(split_time(3, 1, Some(1000)), (750, 250));
        assert_eq!(split_time(0, 0, Some(1000)), (1000, 0));
        assert_eq!(split_time(0, 7, Some(u64::MAX)), (0, u64::MAX));
        assert_eq!(split_time(1, 2, None), (10_000_000, 20_000_000));
    }

    #[test]
    fn a_name_with_brackets_does_not_shift_the_fields() {
        assert_eq!(after_name("12 (a) b) S 1 2"), Some(" S 1 2"));
    }

    #[test]
    fn this_process_is_described() {
        let me = std::process::id();
        assert_eq!(family(me).unwrap().process, me);
        assert!(threads(me).contains(&me) && is_alive(me) && exists(me));
        assert!(!exists(u32::MAX >> 2) && !exists(u32::MAX) && !is_alive(u32::MAX >> 2));
        assert!(usage(me, me).unwrap().minor_faults > 0);
        assert!(peak_resident_bytes(me) > 0);
        let mine = process(me);
        assert_eq!(mine.argv[0], std::env::args().next().unwrap());
        let exe = std::env::current_exe().unwrap();
        assert_eq!(Some(&*mine.exec), exe.file_name().unwrap().to_str());
        let run = executed(me, Some("/tmp/run.sh"));
        assert_eq!((&*run.exec, &*run.binary, &*run.called), ("run.sh", &*mine.exec, ""));
        assert_eq!(executed(me, Some("/proc/self/exe")).exec, mine.exec);
    }

    #[test]
    fn strings_are_read_from_memory_and_bad_addresses_are_none() {
        let me = std::process::id();
        let text = c"/usr/bin/true";
        assert_eq!(path_at(me, text.as_ptr() as u64).unwrap(), "/usr/bin/true");
        assert_eq!(bytes_at(me, text.as_ptr() as u64, 4).unwrap(), b"/usr");
        assert_eq!((bytes_at(me, 8, 1), bytes_at(me, u64::MAX, 2)), (None, None));
        assert_eq!(path_at(me, 8), None);
        assert_eq!(path_at(me, u64::MAX), None);
    }

    #[test]
    fn descriptors_are_told_apart() {
        let me = std::process::id();
        let null = fs::File::open("/dev/null").unwrap();
        let found = file(me, null.as_raw_fd()).unwrap();
        assert_eq!((found.kind, &*found.path), (FileKind::Char, "/dev/null"));
        let (reader, _writer) = std::io::pipe().unwrap();
        let found = file(me, reader.as_raw_fd()).unwrap();
        assert!(found.kind == FileKind::Pipe && found.path.starts_with("pipe:["));
        assert_eq!(file(me, -1), None);
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let inode = socket_of(me, socket.as_raw_fd()).unwrap();
        assert!(sockets(me).contains(&(socket.as_raw_fd(), inode)));
        assert_eq!((socket_of(me, null.as_raw_fd()), socket_inode("socket:[x]")), (None, None));
    }
}
