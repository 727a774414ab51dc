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
            let unmounted = Command::new("umount").arg("-l").arg(&self.path).status();
            if !unmounted.as_ref().is_ok_and(std::process::ExitStatus::success) {
                eprintln!("left behind: {} is mounted: {unmounted:?}", self.path.display());
            }
        }
    }
}

/// Where shared memory is. Containers have 64 MiB of it, as a rule.
const SHARED_MEMORY: &str = "/dev/shm";

/// A folder in memory, where there is one.
pub(crate) fn memory() -> Option<Folder> {
    memory_for(256 << 20)
}

/// A folder in memory with so much room, where there is one.
pub(crate) fn memory_for(bytes: u64) -> Option<Folder> {
    if has_room_in_memory(bytes) {
        let holder = tempfile::tempdir_in(SHARED_MEMORY).ok()?;
        let path = holder.path().to_owned();
        return Some(Folder { name: "tmpfs", path, mounted: false, _holder: holder });
    }
    if available_memory() < bytes { None } else { small(bytes).ok() }
}

/// Whether shared memory has room for so many bytes, and the machine memory for them.
fn has_room_in_memory(bytes: u64) -> bool {
    let room = rustix::fs::statvfs(SHARED_MEMORY)
        .map_or(0, |memory| memory.f_bavail.saturating_mul(memory.f_frsize));
    room.min(available_memory()) >= bytes
}

/// How much memory the kernel would hand out.
fn available_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.unwrap_or(0) << 10
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
    // In memory where it has room for all of it: what a test waits for is then not a disk.
    const SIZE: u64 = 320 << 20;
    let in_memory = has_room_in_memory(2 * SIZE);
    let place = if in_memory { SHARED_MEMORY } else { env!("CARGO_TARGET_TMPDIR") };
    let holder = tempfile::tempdir_in(place).map_err(|e| e.to_string())?;
    let image = holder.path().join("image");
    let file = std::fs::File::create(&image).map_err(|e| e.to_string())?;
    file.set_len(SIZE).map_err(|e| e.to_string())?;
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
