//! A small file system of one's own, on a loop device, and such a device alone.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tempfile::TempDir;

use super::{Need, bare, has, root, skip, until};

/// It is unmounted, and its device let go, when this is dropped.
pub(crate) struct Volume {
    folder: TempDir,
}

impl Volume {
    /// An ext4 of 256 MiB with blocks of a page; `None`, said and counted: not to be had here.
    pub(crate) fn ext4() -> Option<Self> {
        if !root() || !has("mkfs.ext4") || !has("mount") {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let image = folder.path().join("image");
        std::fs::File::create(&image).unwrap().set_len(256 << 20).unwrap();
        std::fs::create_dir(folder.path().join("mounted")).unwrap();
        let volume = Self { folder };
        let image = image.to_str().unwrap();
        let mounted = volume.path().to_str().unwrap().to_owned();
        for words in [
            &["mkfs.ext4", "-q", "-b", "4096", image][..],
            &["mount", "-o", "loop", image, &mounted],
        ] {
            let done = bare(words[0], &words[1..]).stderr(Stdio::piped()).output().unwrap();
            if !done.status.success() {
                let stderr = String::from_utf8_lossy(&done.stderr).into_owned();
                skip(Need::Devices, &format!("{} does not work here: {}", words[0], stderr.trim()));
                return None;
            }
        }
        Some(volume)
    }

    /// Where it is mounted.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().join("mounted")
    }

    /// Has nothing of it cached, neither names nor inodes.
    pub(crate) fn mount_again(&self) {
        let (image, mounted) = (self.folder.path().join("image"), self.path());
        // A process that looks at every mount may have something of it open for a moment.
        until("it can be unmounted", || unmounts(&[], &mounted).ok());
        run(&["mount", "-o", "loop", image.to_str().unwrap(), mounted.to_str().unwrap()]);
    }

    /// A file of it, by name.
    pub(crate) fn file(&self, name: &str) -> String {
        self.path().join(name).to_str().unwrap().to_owned()
    }

    /// The name of its device, such as `loop0`.
    pub(crate) fn device(&self) -> String {
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
        let here = self.path();
        let mut devices = mounts.lines().filter_map(|line| {
            let mut words = line.split(' ');
            let device = words.next()?;
            (words.next() == here.to_str()).then(|| Path::new(device).file_name())?
        });
        devices.next().expect("it is mounted").to_str().unwrap().to_owned()
    }

    /// Writes a file of `pages` and takes it out of the page cache.
    pub(crate) fn cold_file(&self, name: &str, pages: u32) -> String {
        let file = self.file(name);
        let of = format!("of={file}");
        let count = format!("count={pages}");
        run(&["dd", "status=none", "if=/dev/zero", &of, "bs=4096", &count, "conv=fsync"]);
        run(&[
            "dd",
            "status=none",
            "if=/dev/null",
            &of,
            "count=0",
            "conv=notrunc",
            "oflag=nocache",
        ]);
        file
    }
}

/// A block device that leads to a file, which it lets go when this is dropped.
pub(crate) struct Device(String);

impl Device {
    /// Of this file, whose size is one of whole sectors; `None`, said and counted: not to be had here.
    pub(crate) fn attach(file: &Path) -> Option<Self> {
        if !root() || !has("losetup") {
            return None;
        }
        let made = bare("losetup", &["-f", "--show", file.to_str().unwrap()]).output().unwrap();
        if !made.status.success() {
            let stderr = String::from_utf8_lossy(&made.stderr).into_owned();
            skip(Need::Devices, &format!("no loop device to be had here: {}", stderr.trim()));
            return None;
        }
        Some(Self(String::from_utf8(made.stdout).unwrap().trim().to_owned()))
    }

    /// Its path.
    pub(crate) fn path(&self) -> &str {
        &self.0
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let let_go = bare("losetup", &["-d", &self.0]).output();
        if !let_go.as_ref().is_ok_and(|output| output.status.success()) {
            eprintln!("left behind: {}: {let_go:?}", self.0);
        }
    }
}

/// Runs a command that must succeed.
pub(crate) fn run(words: &[&str]) {
    assert!(bare(words[0], &words[1..]).status().unwrap().success(), "{words:?}");
}

impl Drop for Volume {
    fn drop(&mut self) {
        let mounted = self.path();
        // It may not have come to a mount. With it goes the loop device.
        if !is_mounted(&mounted) || unmounts(&[], &mounted).is_ok() {
            return;
        }
        let users = users(&mounted);
        match unmounts(&["--lazy"], &mounted) {
            Ok(()) => eprintln!(
                "left behind: the volume of {}, until these end: {users:?}",
                mounted.display()
            ),
            Err(error) => eprintln!("left behind: {} is mounted: {error}", mounted.display()),
        }
    }
}

/// Unmounts a directory, or returns the reason why not.
fn unmounts(options: &[&str], mounted: &Path) -> Result<(), String> {
    let mut command = bare("umount", options);
    let output = command.arg(mounted).output().map_err(|error| error.to_string())?;
    let stderr = || String::from_utf8_lossy(&output.stderr).trim().to_owned();
    output.status.success().then_some(()).ok_or_else(stderr)
}

fn is_mounted(directory: &Path) -> bool {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    mounts.lines().any(|line| line.split(' ').nth(1) == directory.to_str())
}

/// The processes that have something below a directory open, or are in it, each with its id and name.
fn users(directory: &Path) -> Vec<String> {
    let all = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let uses = |process: &PathBuf| {
        let open = std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
        let places = ["cwd", "root", "exe"].map(|place| process.join(place));
        let mut links = open.map(|entry| entry.path()).chain(places);
        links.any(|link| std::fs::read_link(link).is_ok_and(|to| to.starts_with(directory)))
    };
    let name = |process: PathBuf| {
        let name = std::fs::read_to_string(process.join("comm")).unwrap_or_default();
        format!("{} ({})", name.trim(), process.file_name().unwrap().display())
    };
    all.filter(uses).map(name).collect()
}

#[test]
fn a_volume_that_is_in_use_is_unmounted_all_the_same_and_goes_with_its_last_user() {
    let Some(volume) = Volume::ext4() else { return };
    let (mounted, device) = (volume.path(), volume.device());
    let backing = format!("/sys/block/{device}/loop/backing_file");
    let image = std::fs::read_to_string(&backing).unwrap();
    let open = std::fs::File::create(volume.path().join("open")).unwrap();
    assert!(
        users(&mounted).iter().any(|user| user.ends_with(&format!("({})", std::process::id())))
    );
    drop(volume);
    assert!(!is_mounted(&mounted) && !mounted.exists());
    drop(open);
    // Its file is gone: the kernel says so behind the name, as long as there is the device.
    until("the device has gone", || {
        let now = std::fs::read_to_string(&backing).unwrap_or_default();
        (!now.starts_with(image.trim())).then_some(())
    });
}
