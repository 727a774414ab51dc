//! Detects a source that is also the target, under any name.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use iotomy_movers::Kind;
use iotomy_record::path_text;
use rustix::fs::{
    AtFlags, FileType, Stat, StatxFlags, Timespec, Timestamps, futimens, stat, statat, statx, tell,
};

use crate::CopyError;
use crate::error::Result;
use crate::names::is_standard_input;
use crate::source::Source;
use crate::target::{Hold, Target, TargetPlace};

impl Target<'_> {
    /// Whether a file with this stat is, or will be replaced by, the target, or has its bytes in it, or it in its own.
    fn is(&self, stat: &Stat) -> bool {
        let is_device =
            |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice;
        if is_device(stat) || is_device(&self.stat) {
            let (source, target) = (backing(*stat), backing(self.stat));
            return self.is_named(&source) || is_same(&source, &target);
        }
        self.is_named(stat)
    }

    fn is_named(&self, stat: &Stat) -> bool {
        match (&self.hold, self.end().kind()) {
            (Hold::Fresh(fresh), _) => {
                let old = fresh.old().map(|old| (old.dev(), old.ino()));
                old == Some((stat.st_dev, stat.st_ino))
            }
            (_, Kind::Block) => {
                let same_kind = stat.st_mode & 0o170_000 == self.stat.st_mode & 0o170_000;
                same_kind && stat.st_rdev == self.stat.st_rdev
            }
            (_, Kind::Regular | Kind::Pipe) => {
                (self.stat.st_dev, self.stat.st_ino) == (stat.st_dev, stat.st_ino)
            }
            _ => false,
        }
    }

    /// Refuses a source that is the target too, unless bytes are read from one part of it and
    /// written to another.
    ///
    /// # Errors
    /// They are the same, and which of their names are.
    pub(crate) fn apart_from(&self, source: &Source, skip: u64, count: Option<u64>) -> Result<()> {
        let same = || self.same(&source.name);
        if !self.is(&source.stat) {
            return if self.is_shown_as(source) { Err(same()) } else { Ok(()) };
        }
        let begins = tell(source.fd()).map(|at| at.saturating_add(skip));
        let (Ok(from), Ok(at)) = (begins, tell(self.fd())) else { return Err(same()) };
        let goes = self.truncates || matches!(self.hold, Hold::Fresh(_));
        let is_regular = source.end().kind() == Kind::Regular;
        // Nothing is left to be read, so nothing will be written.
        if !goes && is_regular && source.ends_at(from) {
            return Ok(());
        }
        let to = if self.end().is_append() { source.end().size() } else { at };
        let length = count.unwrap_or(u64::MAX);
        if goes || (from < to.saturating_add(length) && to < from.saturating_add(length)) {
            return Err(same());
        }
        Ok(())
    }

    /// Whether the source is the target under another device's number, as FUSE shows the files of a directory (bindfs) and
    /// an overlay those of its layers: its content would be gone, or be read again and again as it grows. A change of the
    /// time of the one is then one of the other. Tried only where size and time are equal; the time is put back.
    fn is_shown_as(&self, source: &Source) -> bool {
        let (from, to) = (source.end(), self.end_as_found());
        // Of its layers, an overlay shows the files by their own numbers.
        let are_apart =
            from.finds_holes() && to.finds_holes() && source.stat.st_ino != self.stat.st_ino;
        let is_in_place = !matches!(self.hold, Hold::Fresh(_)) && to.kind() == Kind::Regular;
        let is_in_danger = self.has_what_goes() || is_in_place && !self.truncates && to.size() > 0;
        let is_regular = from.kind() == Kind::Regular && is_in_danger;
        if are_apart || !is_regular || from.size() != to.size() {
            return false;
        }
        // Not from a cache.
        let changed = |fd| {
            let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_FORCE_SYNC;
            let now = statx(fd, c"", flags, StatxFlags::MTIME);
            now.map(|now| (now.stx_mtime.tv_sec, now.stx_mtime.tv_nsec))
        };
        let (Ok(time), Ok(other)) = (changed(self.fd()), changed(source.fd())) else {
            return false;
        };
        let set = |tv_sec| {
            // bindfs changes both or none.
            let access_ns = i64::try_from(self.stat.st_atime_nsec).unwrap_or(0);
            let access = Timespec { tv_sec: self.stat.st_atime, tv_nsec: access_ns };
            let time = Timespec { tv_sec, tv_nsec: time.1.into() };
            futimens(self.fd(), &Timestamps { last_access: access, last_modification: time })
        };
        if time != other || set(time.0 - 1).is_err() {
            return false;
        }
        let now = changed(source.fd());
        // It is the target's again, or the target is about to be emptied.
        let _ = set(time.0);
        now.is_ok_and(|now| now.0 == time.0 - 1)
    }

    /// Whether the source is the target too, and has nothing left to be read.
    pub(crate) fn is_spent(&self, source: &Source) -> bool {
        self.is(&source.stat)
            && source.end().kind() == Kind::Regular
            && tell(source.fd()).is_ok_and(|at| source.ends_at(at))
    }

    /// As [`Target::apart_from`], of a source that is not open yet and will be read whole.
    ///
    /// # Errors
    /// They are the same.
    pub(crate) fn apart_from_named(&self, source: &str, stat: &Stat) -> Result<()> {
        let goes = self.truncates || matches!(self.hold, Hold::Fresh(_));
        if self.is(stat) && (goes || stat.st_size > 0) { Err(self.same(source)) } else { Ok(()) }
    }

    fn same(&self, source: &str) -> CopyError {
        let what = match self.end().kind() {
            Kind::Pipe => PIPE,
            Kind::Block => "device",
            _ => "file",
        };
        same(source, &self.name, what)
    }
}

/// The file that a loop device, or a partition of one, has its bytes in; any other is itself.
fn backing(mut stat: Stat) -> Stat {
    // A loop device may be that of another.
    for _ in 0..8 {
        if FileType::from_raw_mode(stat.st_mode) != FileType::BlockDevice {
            break;
        }
        let (major, minor) = (rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev));
        let device = format!("/sys/dev/block/{major}:{minor}");
        let file = [".", ".."].iter().find_map(|of| {
            let path = fs::read(format!("{device}/{of}/loop/backing_file")).ok()?;
            let path = path.strip_suffix(b"\n").unwrap_or(&path);
            rustix::fs::stat(OsStr::from_bytes(path)).ok()
        });
        match file {
            Some(file) => stat = file,
            None => break,
        }
    }
    stat
}

/// Whether both are one file, or one device.
fn is_same(a: &Stat, b: &Stat) -> bool {
    let kind = |stat: &Stat| FileType::from_raw_mode(stat.st_mode);
    kind(a) == kind(b)
        && match kind(a) {
            FileType::BlockDevice => a.st_rdev == b.st_rdev,
            _ => (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino),
        }
}

const PIPE: &str = "pipe, whose output would become its input";

fn same(source: &str, target: &str, what: &str) -> CopyError {
    CopyError::Unsuited(format!(
        "cannot copy {source} to {target}: they are the same {what}; name another"
    ))
}

/// Refuses a FIFO that is a source and the target, before either is opened: that waits for the other.
///
/// # Errors
/// They are the same.
pub(crate) fn refuse_pipe_to_itself(sources: &[PathBuf], place: TargetPlace<'_>) -> Result<()> {
    let is_pipe = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo;
    if !place.is_there {
        return Ok(());
    }
    let target = statat(place.folder(), place.name, AtFlags::empty());
    let Some(target) = target.ok().filter(is_pipe) else { return Ok(()) };
    let is_it = |path: &&PathBuf| {
        !is_standard_input(path)
            && stat(path.as_path())
                .is_ok_and(|s| (s.st_dev, s.st_ino) == (target.st_dev, target.st_ino))
    };
    match sources.iter().find(is_it) {
        Some(path) => Err(same(&path_text(path), &path_text(place.path), PIPE)),
        None => Ok(()),
    }
}

/// Whether a path leads into this directory, judged by its text: no call is made.
pub(crate) fn lies_in(path: &Path, folder: &Path) -> bool {
    let words = |path: &Path| -> Vec<_> {
        let is_word = |part: &Component<'_>| *part != Component::CurDir;
        path.components().filter(is_word).map(|part| part.as_os_str().to_owned()).collect()
    };
    path.parent().is_some_and(|parent| words(parent) == words(folder))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_lies_in_the_folder_its_words_name() {
        for (path, folder, lies) in [
            ("f", ".", true),
            ("./f", "./", true),
            ("d/f", "./d//", true),
            ("/d/f", "/d", true),
            ("f", "d", false),
            ("d/e/f", "d", false),
            ("/f", ".", false),
            ("/", "/", false),
        ] {
            assert_eq!(lies_in(path.as_ref(), folder.as_ref()), lies, "{path} in {folder}");
        }
    }
}
