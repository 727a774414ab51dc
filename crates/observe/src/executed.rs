//! The name by which a process that runs already was executed, where its file has several: links,
//! as `redis-server` is one to `redis-check-rdb`.
//!
//! `/proc` tells what file a process runs, not by which name. The kernel's name of the process is
//! that name, cut, unless the program chose another. So it counts only where a file of that name leads
//! to the file that runs.
//!
//! The one tricky invariant: names are looked up only where nobody else can hold up the look-up. A
//! path is taken from the kernel's cache; what is not there is read only from a file system that is
//! this machine's own, and not from one of a network or of a program (FUSE), which may never answer. The
//! cache also refuses what it has while anything is mounted or renamed, so it is asked several times.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use iotomy_host::kernel_text;
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, ResolveFlags, Statx, StatxFlags, open, openat2, readlinkat,
    statx,
};
use rustix::io::Errno;

use crate::naming::is_cut;

/// Where links to programs of other directories are.
const LINKS: [&str; 6] =
    ["/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"];

/// File systems that answer by themselves.
const OWN: [&str; 13] = [
    "ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs", "f2fs", "bcachefs", "zfs", "ramfs", "rootfs",
    "squashfs", "erofs",
];

/// How often the cache is asked in a row: a mount that is made meanwhile is seldom in the way twice.
const ASKED: u32 = 8;

/// Links that are followed by hand on the way to a file; the kernel follows as many.
const MOST_LINKS: u32 = 40;

/// The name that process `pid`, which runs the file `exe`, was executed by; `None` where that is the
/// file's own, or is not known. `comm` is the kernel's name of the process.
pub(crate) fn executed_as(pid: u32, exe: &[u8], comm: &[u8], argv: &[Vec<u8>]) -> Option<Vec<u8>> {
    let own = last(exe);
    let is_other = |name: &[u8]| name != own && is_cut(name, comm);
    let first = argv.first().map_or(&[][..], |word| match is_other(last(word)) {
        true => word,
        false => first_word(word),
    });
    if comm.is_empty() || (is_cut(own, comm) && !is_other(last(first))) {
        return None;
    }
    // The kernel puts the path of a script behind its interpreter and at most one option of that.
    let script = argv.iter().skip(1).take(2).map(|word| last(word)).find(|name| is_other(name));
    if let Some(script) = script.filter(|_| !is_other(last(first))) {
        return Some(script.to_vec());
    }
    let process = Process::open(pid)?;
    // A name that was cut is whole in the first argument, if anywhere.
    let name = [last(first), comm].into_iter().find(|name| is_other(name))?;
    let given = Path::new(OsStr::from_bytes(first)).parent().filter(|_| is_other(last(first)));
    let beside = Path::new(OsStr::from_bytes(exe)).parent();
    let directories = given.into_iter().chain(beside).chain(LINKS.iter().map(Path::new));
    let mut tried = BTreeSet::new();
    let mut directories = directories.filter(|directory| tried.insert(*directory));
    let leads_there = |directory: &Path| process.runs(&directory.join(OsStr::from_bytes(name)));
    directories.any(leads_there).then(|| name.to_vec())
}

/// The last component of a path.
fn last(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// A title begins with the program.
fn first_word(word: &[u8]) -> &[u8] {
    word.split(u8::is_ascii_whitespace).next().unwrap_or(word)
}

struct Process {
    root: OwnedFd,
    /// Where it works now.
    works_in: OwnedFd,
    runs: Statx,
    mounts: String,
}

impl Process {
    fn open(pid: u32) -> Option<Self> {
        // Neither asks the file system for anything.
        let of_process = |name| {
            open(format!("/proc/{pid}/{name}"), OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()
        };
        let runs = facts(of_process("exe")?.as_fd())?;
        let mounts = kernel_text(format!("/proc/{pid}/mountinfo")).ok()?;
        Some(Self { root: of_process("root")?, works_in: of_process("cwd")?, runs, mounts })
    }

    /// Whether this path leads to the file that the process runs.
    fn runs(&self, path: &Path) -> bool {
        let mut links = MOST_LINKS;
        let found = self.find(path, &mut links).and_then(|found| facts(found.as_fd()));
        let file = |of: &Statx| (of.stx_ino, of.stx_dev_major, of.stx_dev_minor);
        found.is_some_and(|found| file(&found) == file(&self.runs))
    }

    /// The file that a path leads to in the eyes of the process, over so many links at most that are followed by hand.
    fn find(&self, path: &Path, links: &mut u32) -> Option<OwnedFd> {
        match self.in_cache(path) {
            Err(Errno::AGAIN) => self.by_hand(path, links),
            found => found.ok(),
        }
    }

    fn in_cache(&self, path: &Path) -> rustix::io::Result<OwnedFd> {
        let (at, path, how) = match path.strip_prefix("/") {
            Ok(path) => (&self.root, path, ResolveFlags::IN_ROOT),
            Err(_) => (&self.works_in, path, ResolveFlags::empty()),
        };
        // The directory itself.
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let ask = || look_up(at.as_fd(), path, OFlags::empty(), how | ResolveFlags::CACHED);
        let again =
            |answer: &rustix::io::Result<OwnedFd>| answer.as_ref().err() == Some(&Errno::AGAIN);
        (1..ASKED).fold(ask(), |answer, _| if again(&answer) { ask() } else { answer })
    }

    /// Looks up the last name of a path in its directory, where that is on a file system of the machine's own, and enters
    /// no other. A link there is followed from here: the cache does not have one whose time of access is due, and an
    /// absolute one begins at the root of the process, which need not be ours.
    fn by_hand(&self, path: &Path, links: &mut u32) -> Option<OwnedFd> {
        let parent = path.parent()?;
        let directory = self.find(parent, links)?;
        if !self.is_own(&facts(directory.as_fd())?) {
            return None;
        }
        let name = Path::new(path.file_name()?);
        let file =
            look_up(directory.as_fd(), name, OFlags::NOFOLLOW, ResolveFlags::NO_XDEV).ok()?;
        let mode = u32::from(facts(file.as_fd())?.stx_mode);
        if FileType::from_raw_mode(mode) != FileType::Symlink {
            return Some(file);
        }
        *links = links.checked_sub(1)?;
        let target = readlinkat(&file, c"", Vec::new()).ok()?;
        self.find(&parent.join(OsString::from_vec(target.into_bytes())), links)
    }

    /// Whether a file is on such a file system, by the list of mounts.
    fn is_own(&self, file: &Statx) -> bool {
        let mount = format!("{} ", file.stx_mnt_id);
        let line = self.mounts.lines().find(|line| line.starts_with(&mount));
        let kind = line.and_then(|line| line.split_once(" - ")?.1.split(' ').next());
        kind.is_some_and(|kind| OWN.contains(&kind))
    }
}

fn look_up(
    at: BorrowedFd<'_>,
    path: &Path,
    flags: OFlags,
    how: ResolveFlags,
) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | flags;
    openat2(at, path, flags, Mode::empty(), how | ResolveFlags::NO_MAGICLINKS)
}

/// What the kernel knows of a file without asking its file system.
fn facts(file: BorrowedFd<'_>) -> Option<Statx> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    statx(file, c"", flags, StatxFlags::TYPE | StatxFlags::INO | StatxFlags::MNT_ID).ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;
    use crate::attach::executed_name;

    fn name_of(command: &mut Command) -> Option<Vec<u8>> {
        let mut child = command.arg("1000").spawn().unwrap();
        // Its arguments are there last: after its file and its name.
        let arguments = format!("/proc/{}/cmdline", child.id());
        while !std::fs::read(&arguments).unwrap().ends_with(b"\x001000\0") {
            std::thread::yield_now();
        }
        let name = executed_name(child.id());
        child.kill().unwrap();
        child.wait().unwrap();
        name
    }

    #[test]
    fn a_link_is_the_name_and_what_the_first_argument_claims_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("naps-for-a-long-time");
        symlink("/bin/sleep", &link).unwrap();
        let whole = Some(b"naps-for-a-long-time".to_vec());
        assert_eq!(name_of(&mut Command::new(&link)), whole);
        assert_eq!(name_of(Command::new("./naps-for-a-long-time").current_dir(&folder)), whole);
        let spaced = folder.path().join("naps for\na long time");
        symlink("/bin/sleep", &spaced).unwrap();
        assert_eq!(name_of(&mut Command::new(&spaced)), Some(b"naps for\na long time".to_vec()));
        // The kernel's name is cut, and nothing that it leads to is found.
        assert_eq!(name_of(Command::new(&link).arg0("naps-for-a-long-way")), None);
        assert_eq!(name_of(Command::new("/bin/sleep").arg0("naps")), None);
        assert_eq!(executed_name(std::process::id()), None);
    }

    #[test]
    fn links_are_followed_by_hand_from_the_root_of_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let of = |name: &str| folder.path().join(name);
        symlink("/bin/sleep", of("absolute")).unwrap();
        symlink("absolute", of("relative")).unwrap();
        symlink("endless", of("endless")).unwrap();
        let process = Process::open(std::process::id()).unwrap();
        let opened = |path: &Path| open(path, OFlags::PATH, Mode::empty()).unwrap();
        if !process.is_own(&facts(opened(folder.path()).as_fd()).unwrap()) {
            let reason = "temporary files are on a file system that others answer for";
            return iotomy_test_requirements::skip(iotomy_test_requirements::Need::Machine, reason);
        }
        let number = |file: OwnedFd| facts(file.as_fd()).unwrap().stx_ino;
        let found = |name: &str, mut links: u32| process.by_hand(&of(name), &mut links).map(number);
        let sleep = Some(number(opened(Path::new("/bin/sleep"))));
        assert_eq!((found("absolute", MOST_LINKS), found("relative", MOST_LINKS)), (sleep, sleep));
        assert_eq!(found("relative", 0), None);
        assert_eq!((found("endless", MOST_LINKS), found("absent", MOST_LINKS)), (None, None));
    }
}
