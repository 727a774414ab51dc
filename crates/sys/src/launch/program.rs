//! The file of a command: found as a shell finds it, with its kind.

use std::ffi::{CString, OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::LaunchError;
use crate::signals::ignore_keys_as_given;

/// Finds `name` as a shell would: as it is when it holds a slash, else along `PATH`.
///
/// # Errors
/// `NotFound` when there is no such file, `PermissionDenied` when there is one that may not be
/// executed, `IsADirectory` when `name` leads to a directory.
pub fn find_program(name: &OsStr, path: Option<&OsStr>) -> io::Result<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return executable(Path::new(name)).map(|()| PathBuf::from(name));
    }
    let mut refusal = io::Error::from_raw_os_error(libc::ENOENT);
    if name.is_empty() {
        return Err(refusal);
    }
    for folder in std::env::split_paths(path.unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin")))
    {
        let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder };
        let candidate = folder.join(name);
        if std::fs::metadata(&candidate).is_err() {
            // Missing, or in a directory that is closed to this user: for a shell, the same.
            continue;
        }
        match executable(&candidate) {
            Ok(()) => return Ok(candidate),
            Err(error) if matches!(error.raw_os_error(), Some(libc::EACCES | libc::EISDIR)) => {
                refusal = io::Error::from_raw_os_error(libc::EACCES);
            }
            Err(_) => {}
        }
    }
    Err(refusal)
}

/// The directories of a system's programs, which belong to root.
pub const SYSTEM_PATH: &str =
    "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin:/run/current-system/sw/bin";

/// A program of the system, by its absolute path: root runs nothing through `PATH`, and passes on
/// no other `PATH`. Other users search the absolute directories of their `PATH`, and the system's
/// after them.
///
/// # Errors
/// As [`find_program`].
pub fn helper(name: &str) -> io::Result<std::process::Command> {
    // SAFETY: takes nothing.
    let is_root = unsafe { libc::geteuid() } == 0;
    let path = helpers_path(is_root, std::env::var_os("PATH").as_deref());
    let mut command = std::process::Command::new(find_program(OsStr::new(name), Some(&path))?);
    command.env("PATH", path);
    ignore_keys_as_given(&mut command);
    Ok(command)
}

fn helpers_path(is_root: bool, path: Option<&OsStr>) -> OsString {
    let own = path.filter(|_| !is_root).unwrap_or_default();
    let own = std::env::split_paths(own).filter(|folder| folder.is_absolute());
    let folders: Vec<PathBuf> = own.chain(std::env::split_paths(SYSTEM_PATH)).collect();
    // Directories that were split can be joined.
    std::env::join_paths(folders).unwrap_or_else(|_| SYSTEM_PATH.into())
}

fn executable(path: &Path) -> io::Result<()> {
    let metadata = std::fs::metadata(path)?;
    let text = c_string(path.as_os_str()).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: `text` is NUL-terminated and outlives the call.
    let refused = unsafe { libc::access(text.as_ptr(), libc::X_OK) } != 0;
    if metadata.is_dir() {
        return Err(io::Error::from_raw_os_error(libc::EISDIR));
    }
    if refused || !metadata.is_file() {
        return Err(io::Error::from_raw_os_error(libc::EACCES));
    }
    Ok(())
}

/// Whether a shell would take the file for a script: the examined part of its first line has no NUL
/// byte.
pub(super) fn may_be_script(program: &Path) -> bool {
    let mut start = Vec::new();
    let file = std::fs::File::open(program);
    // 80 bytes, as bash has it.
    let read = file.and_then(|file| file.take(80).read_to_end(&mut start));
    let first_line = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
    read.is_ok() && !first_line.contains(&0)
}

pub(super) fn c_string(text: &OsStr) -> Result<CString, LaunchError> {
    CString::new(text.as_bytes()).map_err(|_| LaunchError::Nul(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helpers_of_root_come_from_the_systems_folders_alone() {
        let path = Some(OsStr::new(".:/home/u/bin::bin:/opt/bin"));
        assert_eq!(helpers_path(true, path), SYSTEM_PATH);
        assert_eq!(helpers_path(false, None), SYSTEM_PATH);
        let others = helpers_path(false, path).into_string().unwrap();
        assert_eq!(others, format!("/home/u/bin:/opt/bin:{SYSTEM_PATH}"));
    }

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        let path = Some(OsStr::new("/nowhere:/bin"));
        assert_eq!(find_program(OsStr::new("sh"), path).unwrap(), Path::new("/bin/sh"));
        let absent = find_program(OsStr::new("no-such-program"), path).unwrap_err();
        assert_eq!(absent.kind(), io::ErrorKind::NotFound);
        let folder = find_program(OsStr::new("/etc"), path).unwrap_err();
        assert_eq!(folder.kind(), io::ErrorKind::IsADirectory);
    }
}
