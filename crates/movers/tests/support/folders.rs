//! Folders on the file systems of this machine, and on images made for the run.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A folder on a file system, gone with this value, also when a test panics.
pub(crate) struct Folder {
    /// What messages call it.
    pub(crate) name: &'static str,
    path: PathBuf,
    mounted: bool,
    _holder: TempDir,
}

impl Folder {
    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.mounted {
            // Lazily: a descriptor that a failed test leaves open must not keep it.
            let _ = Command::new("umount").arg("-l").arg(&self.path).status();
        }
    }
}

/// A folder in memory, where there is one.
pub(crate) fn memory() -> Option<Folder> {
    let holder = tempfile::tempdir_in("/dev/shm").ok()?;
    Some(Folder { name: "tmpfs", path: holder.path().to_owned(), mounted: false, _holder: holder })
}

/// A folder of the file system the build is on.
pub(crate) fn here() -> Folder {
    let holder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let path = holder.path().to_owned();
    Folder { name: "build directory", path, mounted: false, _holder: holder }
}

/// A file system in an image of its own.
///
/// # Errors
/// Why there is none: the reason to skip.
pub(crate) fn image(kind: &'static str) -> Result<Folder, String> {
    if !rustix::process::geteuid().is_root() {
        return Err(format!("{kind}: not root"));
    }
    // In memory where there is one: what a test waits for is then not a disk.
    let holder = tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")))
        .map_err(|e| e.to_string())?;
    let image = holder.path().join("image");
    let file = std::fs::File::create(&image).map_err(|e| e.to_string())?;
    file.set_len(320 << 20).map_err(|e| e.to_string())?;
    let quiet: &[&str] = if kind == "ext4" { &["-q", "-F"] } else { &["-q", "-f"] };
    succeed(Command::new(format!("mkfs.{kind}")).args(quiet).arg(&image))?;
    let path = holder.path().join("mount");
    std::fs::create_dir(&path).map_err(|e| e.to_string())?;
    succeed(Command::new("mount").args(["-o", "loop"]).arg(&image).arg(&path))?;
    Ok(Folder { name: kind, path, mounted: true, _holder: holder })
}

/// A folder in memory with room for so many bytes.
///
/// # Errors
/// Why there is none: the reason to skip.
pub(crate) fn small(bytes: u64) -> Result<Folder, String> {
    if !rustix::process::geteuid().is_root() {
        return Err("small tmpfs: not root".to_owned());
    }
    let holder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let path = holder.path().join("mount");
    std::fs::create_dir(&path).map_err(|e| e.to_string())?;
    let size = format!("size={bytes}");
    succeed(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&path))?;
    Ok(Folder { name: "small tmpfs", path, mounted: true, _holder: holder })
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    match command.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim())),
        Err(error) => Err(format!("{program}: {error}")),
    }
}
