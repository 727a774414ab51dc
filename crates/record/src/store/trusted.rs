//! Files that iotomy finds by itself in the user's directories: settings, the history, saved state.
//!
//! The invariant: a file that another user could have written is neither read nor opened. HOME and the
//! XDG variables may be another user's (`sudo -E`, `su`), who would choose what this process does. A
//! file is judged before it is opened (`O_PATH`), so that no FIFO or device is waited for.

use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use iotomy_sys::lossless::path_text;
use rustix::fs::{CWD, Mode, OFlags, getxattr, openat};
use rustix::io::Errno;

use super::place::reopened;

const OTHERS_WRITE: u32 = 0o002;
const GROUP_WRITES: u32 = 0o020;
/// In a directory with it, only owners remove and rename.
const STICKY: u32 = 0o1000;

/// Why a file or directory is not trusted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Distrust {
    /// It is a directory, a FIFO, a device or a socket.
    #[error("it is not a regular file")]
    NotAFile,
    /// Its owner is neither this user nor root.
    #[error("it belongs to user {0}; copy it to a directory of your own")]
    Owner(u32),
    /// Its mode lets everyone write.
    #[error("everyone may write it; try chmod o-w")]
    Everyone,
    /// Its mode lets a group write, and this user is root.
    #[error("its group may write it; try chmod g-w")]
    Group,
    /// It has an access list (ACL) that lets somebody write.
    #[error("its access list lets others write it; try setfacl -b")]
    AccessList,
    /// A directory above it can be changed by another user.
    #[error("{folder} can be changed by {whom}", folder = path_text(.folder))]
    Folder {
        /// The directory.
        folder: PathBuf,
        /// The other user, in words.
        whom: String,
    },
}

impl From<Distrust> for io::Error {
    fn from(reason: Distrust) -> Self {
        Self::new(ErrorKind::PermissionDenied, reason)
    }
}

/// Opens a file for reading that no other user can have written.
///
/// # Errors
/// The kernel's error; [`ErrorKind::PermissionDenied`] with a [`Distrust`] inside if another user could
/// have written it or it is no regular file, which is not opened then.
pub fn open_trusted(path: &Path) -> io::Result<File> {
    let node = File::from(openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?);
    let facts = node.metadata()?;
    judge(&facts, user())?;
    if lets_others_write(path, &facts) {
        return Err(Distrust::AccessList.into());
    }
    reopened(&node, OFlags::RDONLY | OFlags::NOCTTY, (CWD.as_fd(), path.as_os_str()))
}

/// Checks a file by its name, if it is there; in a [trusted directory](trusted_folder) it stays what it is.
///
/// # Errors
/// As [`open_trusted`].
pub fn check_trusted(path: &Path) -> io::Result<()> {
    match path.metadata() {
        Ok(facts) => match judge(&facts, user()) {
            Ok(()) if lets_others_write(path, &facts) => Err(Distrust::AccessList.into()),
            judged => Ok(judged?),
        },
        Err(error) if is_absent(&error) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The directory at `path` without links, if no other user can change what is in it: it and those above
/// it belong to this user or root, and others may not write there. One that is not there yet is judged
/// by those above it.
///
/// # Errors
/// The kernel's error; [`ErrorKind::PermissionDenied`] with a [`Distrust`] inside.
pub fn trusted_folder(path: &Path) -> io::Result<PathBuf> {
    let mut absent: Vec<OsString> = Vec::new();
    let mut there = path;
    let mut folder = loop {
        match there.canonicalize() {
            Err(error) if is_absent(&error) => {
                match (there.symlink_metadata(), there.parent(), there.file_name()) {
                    // It was made a moment ago.
                    (Ok(facts), ..) if !facts.is_symlink() => {}
                    (Err(_), Some(above), Some(name)) => {
                        absent.push(name.to_owned());
                        there = above;
                    }
                    // A link that leads nowhere would be followed when the directory is made.
                    _ => return Err(error),
                }
            }
            found => break found?,
        }
    };
    let user = user();
    for above in folder.ancestors() {
        let facts = above.metadata()?;
        let by_list = || {
            lets_others_write(above, &facts).then(|| "those that its access list names".to_owned())
        };
        if let Some(whom) = who_can_change(&facts, user).or_else(by_list) {
            return Err(Distrust::Folder { folder: above.to_owned(), whom }.into());
        }
    }
    folder.extend(absent.iter().rev());
    Ok(folder)
}

/// Whether nothing has the name.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Whether a file can only have been written by this user or root.
fn judge(facts: &Metadata, user: u32) -> Result<(), Distrust> {
    if !facts.is_file() {
        Err(Distrust::NotAFile)
    } else if ![user, 0].contains(&facts.uid()) {
        Err(Distrust::Owner(facts.uid()))
    } else if facts.mode() & OTHERS_WRITE != 0 {
        Err(Distrust::Everyone)
    } else if group_writes(facts, user) {
        Err(Distrust::Group)
    } else {
        Ok(())
    }
}

/// Another user who can make, rename or remove names of this one's in a directory.
fn who_can_change(folder: &Metadata, user: u32) -> Option<String> {
    if ![user, 0].contains(&folder.uid()) && !is_outside(folder.uid()) {
        Some(format!("user {}", folder.uid()))
    } else if folder.mode() & STICKY != 0 {
        None
    } else if folder.mode() & OTHERS_WRITE != 0 {
        Some(String::from("everyone"))
    } else {
        group_writes(folder, user).then(|| format!("group {}", folder.gid()))
    }
}

/// Whether this is what the kernel says for users that a user namespace does not have: there, the
/// directories above a user's own are those of the root outside.
fn is_outside(owner: u32) -> bool {
    const OVERFLOW: u32 = 65534;
    let maps = || std::fs::read("/proc/self/uid_map").unwrap_or_default();
    let is_whole = |map: &[u8]| {
        let numbers = map.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        numbers.eq([&b"0"[..], b"0", b"4294967295"])
    };
    owner == OVERFLOW && !is_whole(&maps())
}

/// Whether there is an access list (ACL) that lets somebody else write: the bits of the group are then what it lets any of
/// those have that it names.
fn lets_others_write(path: &Path, facts: &Metadata) -> bool {
    let has_list = || {
        let found = getxattr(path, c"system.posix_acl_access", &mut [0u8; 0][..]);
        matches!(found, Ok(_) | Err(Errno::RANGE))
    };
    facts.mode() & (GROUP_WRITES | STICKY) == GROUP_WRITES && has_list()
}

/// A user's own group is often the default one of a directory, and holds nobody else; root's files are
/// nobody's but root's.
fn group_writes(facts: &Metadata, user: u32) -> bool {
    user == 0 && facts.mode() & GROUP_WRITES != 0 && facts.gid() != 0
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    #[test]
    fn a_file_that_others_may_write_is_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "").unwrap();
        let own = path.metadata().unwrap().uid();
        let reason = |mode: u32, user: u32| {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            judge(&path.metadata().unwrap(), user)
        };
        assert_eq!(reason(0o644, own), Ok(()));
        assert_eq!(reason(0o646, own), Err(Distrust::Everyone));
        // As user of another id, who is not root: it is root's own or a stranger's.
        assert_eq!(reason(0o644, own + 1).is_ok(), own == 0);
        assert_eq!(judge(&folder.path().metadata().unwrap(), own), Err(Distrust::NotAFile));
    }

    #[test]
    fn what_an_access_list_lets_others_write_is_not_trusted() {
        let top = tempfile::tempdir_in("/tmp").unwrap();
        let path = top.path().join("file");
        fs::write(&path, "").unwrap();
        let set = |on: &Path, list: &str| {
            let set = std::process::Command::new("setfacl").args(["-m", list]).arg(on).status();
            set.is_ok_and(|status| status.success())
        };
        if !set(&path, "u:2:r") {
            return iotomy_test_requirements::skip(
                iotomy_test_requirements::Need::Programs,
                "no setfacl, or no lists here",
            );
        }
        open_trusted(&path).unwrap();
        assert!(set(&path, "u:2:rw"));
        for error in [open_trusted(&path).unwrap_err(), check_trusted(&path).unwrap_err()] {
            assert!(error.to_string().contains("access list"), "{error}");
        }
        trusted_folder(top.path()).unwrap();
        assert!(set(top.path(), "u:2:rwx"));
        let error = trusted_folder(top.path()).unwrap_err().to_string();
        assert!(error.ends_with("can be changed by those that its access list names"), "{error}");
    }

    #[test]
    fn nothing_but_a_regular_file_is_opened_and_none_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        symlink("fifo", folder.path().join("link")).unwrap();
        let socket = folder.path().join("socket");
        let _socket = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for path in [&fifo, &folder.path().join("link"), &socket, Path::new("/dev/zero")] {
            let error = open_trusted(path).unwrap_err();
            assert_eq!(error.to_string(), Distrust::NotAFile.to_string(), "{path:?}");
            assert!(check_trusted(path).is_err());
        }
        assert_eq!(
            open_trusted(&folder.path().join("none")).unwrap_err().kind(),
            ErrorKind::NotFound
        );
        check_trusted(&folder.path().join("none")).unwrap();
    }

    #[test]
    fn a_directory_is_trusted_if_nobody_else_can_change_the_way_to_it() {
        let top = tempfile::tempdir_in("/tmp").unwrap();
        let path = top.path().join("a/b");
        let absent = path.join("c/d");
        fs::create_dir_all(&path).unwrap();
        assert_eq!(trusted_folder(&absent).unwrap(), path.canonicalize().unwrap().join("c/d"));
        fs::set_permissions(top.path().join("a"), Permissions::from_mode(0o777)).unwrap();
        let error = trusted_folder(&absent).unwrap_err().to_string();
        assert!(error.contains("/a can be changed by everyone"), "{error}");
        fs::set_permissions(top.path().join("a"), Permissions::from_mode(0o1777)).unwrap();
        trusted_folder(&absent).unwrap();
        symlink("nowhere", path.join("c")).unwrap();
        trusted_folder(&absent).unwrap_err();
        if user() == 0 {
            chown(top.path().join("a"), Some(65534), None).unwrap();
            let error = trusted_folder(&path).unwrap_err().to_string();
            assert!(error.contains("can be changed by user 65534"), "{error}");
        }
    }
}
