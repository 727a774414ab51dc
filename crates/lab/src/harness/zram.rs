//! Block devices of compressed memory: zram.
//!
//! The invariant: a device is removed by the run that added it, or by the next one, and no other
//! device is touched. The kernel keeps a device when the process that added it ends, so the run
//! writes a note. The note distinguishes the device from a later one with the same number by the
//! sequence number that the kernel gives every disk, and by the boot id. A kill between the
//! kernel's adding of the device and the note may leave a device without a size, and so without
//! memory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use iotomy_host::Skip;

use super::State;
use super::notes::{LeftBehind, Note, unique};

/// Prefix of the names of its notes.
pub(crate) const NOTE: &str = "zram-";

const CONTROL: &str = "/sys/class/zram-control";

/// How long to wait for a device that another program, which scans all devices, has open.
const PATIENCE: Duration = Duration::from_secs(3);

/// A device of this run. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct Zram {
    path: String,
    identity: String,
    note: Option<Note>,
}

impl Zram {
    /// Adds a device of `bytes` bytes. It takes memory as it is written.
    pub(crate) fn with_size(bytes: u64) -> Result<Self, Skip> {
        Self::noted(bytes, State::of_user().and_then(|state| state.folder().ok()).as_deref())
    }

    fn noted(bytes: u64, notes: Option<&Path>) -> Result<Self, Skip> {
        let refused = |what: &str| {
            let what = what.to_owned();
            move |error: io::Error| Skip::refused(&what, error)
        };
        // A read of this file adds a device.
        let added = format!("{CONTROL}/hot_add");
        let number =
            iotomy_host::kernel_text(&added).map_err(refused(&format!("read of {added}")))?;
        let number: u32 = number
            .trim()
            .parse()
            .map_err(|_| Skip(format!("{added} answered {:?}", number.trim())))?;
        let Some(identity) = identity(number) else {
            let _ = removed(number);
            return Err(Skip("the kernel has no sequence numbers of disks".to_owned()));
        };
        // Without a note, a killed run leaves its device behind.
        let note =
            notes.and_then(|folder| Note::write(folder, NOTE, &unique(), identity.as_bytes()).ok());
        let device = Self { path: format!("/dev/zram{number}"), identity, note };
        let size = format!("/sys/block/zram{number}/disksize");
        fs::write(&size, bytes.to_string()).map_err(refused(&format!("write of {size}")))?;
        // A private /dev, as in containers, does not get the device.
        fs::File::open(device.path()).map_err(refused(&format!("open {}", device.path())))?;
        Ok(device)
    }

    /// Returns its path, such as `/dev/zram1`.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }
}

impl Drop for Zram {
    fn drop(&mut self) {
        // If the device cannot be removed now, the note stays.
        let left = remove_noted(self.identity.as_bytes());
        if left.is_none_or(|left| left.error.is_none())
            && let Some(note) = &self.note
        {
            note.forget();
        }
    }
}

/// Returns the identity of a device: its number, the sequence number of its disk, and the boot id.
fn identity(number: u32) -> Option<String> {
    let read = |path: &str| Some(iotomy_host::kernel_text(path).ok()?.trim().to_owned());
    let disk = read(&format!("/sys/block/zram{number}/diskseq"))?;
    Some(format!("{number} {disk} {}", read("/proc/sys/kernel/random/boot_id")?))
}

/// Frees a device's memory and removes it, once no process has it open.
fn removed(number: u32) -> io::Result<()> {
    let began = Instant::now();
    loop {
        // A device in use refuses both.
        let outcome = fs::write(format!("/sys/block/zram{number}/reset"), "1")
            .and_then(|()| fs::write(format!("{CONTROL}/hot_remove"), number.to_string()));
        match outcome {
            Err(error)
                if error.kind() == io::ErrorKind::ResourceBusy && began.elapsed() < PATIENCE =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => return other,
        }
    }
}

/// Removes the device that a note names, if it is still the same one.
pub(crate) fn remove_noted(content: &[u8]) -> Option<LeftBehind> {
    let noted = std::str::from_utf8(content).ok()?;
    let number: u32 = noted.split(' ').next()?.parse().ok()?;
    (identity(number).as_deref() == Some(noted)).then(|| LeftBehind {
        path: PathBuf::from(format!("/dev/zram{number}")),
        error: removed(number).err(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::left_behind::remove_left_behind;

    /// Adds a device; `None` if there is no zram or no permission to use it.
    fn device(notes: &Path) -> Option<Zram> {
        match Zram::noted(1 << 20, Some(notes)) {
            Ok(device) => Some(device),
            Err(Skip(reason)) => {
                iotomy_test_requirements::skip(iotomy_test_requirements::Need::Devices, &reason);
                None
            }
        }
    }

    fn number(device: &Zram) -> u32 {
        device.path.trim_start_matches("/dev/zram").parse().unwrap()
    }

    #[test]
    fn a_device_goes_with_its_run_and_no_other_run_removes_it() {
        let notes = tempfile::tempdir().unwrap();
        let Some(one) = device(notes.path()) else { return };
        let number = number(&one);
        let size = fs::read_to_string(format!("/sys/block/zram{number}/size")).unwrap();
        assert_eq!(size.trim(), "2048");
        assert!(remove_left_behind(&State::in_folder(notes.path())).is_empty());
        let before = identity(number);
        drop(one);
        assert_ne!(identity(number), before);
        assert_eq!(fs::read_dir(notes.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_device_of_the_same_number_that_is_another_is_left_alone() {
        let notes = tempfile::tempdir().unwrap();
        let Some(one) = device(notes.path()) else { return };
        let (number, noted) = (number(&one), one.identity.clone());
        let boot = noted.rsplit(' ').next().unwrap();
        for other in
            [format!("{number} 0 {boot}"), format!("{noted}x"), "x".to_owned(), String::new()]
        {
            assert!(remove_noted(other.as_bytes()).is_none(), "{other}");
        }
        assert_eq!(identity(number).as_ref(), Some(&noted));
        let found = remove_noted(noted.as_bytes()).unwrap();
        assert!(found.error.is_none(), "{found:?}");
        assert_eq!(found.path, Path::new(one.path()));
        assert_ne!(identity(number), Some(noted));
        // The drop finds nothing more to remove.
        drop(one);
    }
}
