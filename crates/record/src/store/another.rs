//! Contents in new files, by a name with a mark: further ones of an output, while its own is still to come, each in a file
//! of its own beside it.
//!
//! The one invariant: no file is ever replaced, and none is removed that was not written here.

use std::ffi::{OsStr, OsString};
use std::fs::Metadata;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use rustix::fs::{AtFlags, statat};

use super::output::{Destination, Failed, failed, named, through};
use super::place::Slot;
use super::{NewFile, OutputFile, Place, StoreError, remove_own, shown};

/// Names that are tried of one mark.
const TRIES: u32 = 1_000;

/// A file beside an output, as it was written.
#[derive(Debug)]
pub struct AnotherFile {
    name: OsString,
    own: Metadata,
}

impl AnotherFile {
    /// Its name in its directory.
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// Whether its name still leads to what was written. A file that took its place may have the same inode number, as it is
    /// not kept open.
    fn is_as_written(&self, slot: &Slot) -> bool {
        let now = statat(slot.folder(), &self.name, AtFlags::SYMLINK_NOFOLLOW);
        now.is_ok_and(|now| {
            let own = &self.own;
            (now.st_dev, now.st_ino, now.st_size)
                == (own.dev(), own.ino(), own.size().cast_signed())
                && (now.st_mtime, now.st_mtime_nsec.cast_signed())
                    == (own.mtime(), own.mtime_nsec())
        })
    }
}

impl OutputFile {
    /// Whether it will be a regular file, beside which there may be others.
    pub fn is_file(&self) -> bool {
        self.slot().is_some()
    }

    /// Whether it is a FIFO with a name: its reader comes to an end as often as it is written to. A pipe, as that of
    /// `>(…)`, is held open by who made it.
    pub fn is_fifo(&self) -> bool {
        let Destination::Place(place) = &self.to else { return false };
        let Place::Through(passage) = &**place else { return false };
        passage.metadata().file_type().is_fifo() && !passage.is_pipe()
    }

    /// Writes `bytes` whole to a file of its own beside this one. Its name is this one's, with `mark` before the ending,
    /// and a number where there is such a file. What is no regular file is written to itself; there is no other file
    /// then.
    ///
    /// # Errors
    /// When it cannot be written whole: no file is left. `EEXIST` when no name of the mark is free; `EPERM` and the
    /// like on a file system that can neither rename a file without replacing another nor link it.
    pub fn put_another(&self, mark: &str, bytes: &[u8]) -> Result<Option<AnotherFile>, StoreError> {
        self.tried_another(mark, bytes).map_err(|Failed(operation, error)| {
            let name = match self.slot() {
                Some(slot) => beside(&self.name, &marked(slot.name(), mark, 1)),
                None => self.name.clone(),
            };
            failed(operation, &name, self.is_nowhere, error)
        })
    }

    fn tried_another(&self, mark: &str, bytes: &[u8]) -> Result<Option<AnotherFile>, Failed> {
        let content = |to: &mut dyn io::Write| to.write_all(bytes);
        let place = match &self.to {
            Destination::Standard => return through(io::stdout().as_fd(), content).map(|()| None),
            Destination::Error => return through(io::stderr().as_fd(), content).map(|()| None),
            Destination::Place(place) => &**place,
        };
        let slot = match place {
            Place::Replace(slot) => slot,
            Place::Through(passage) => {
                let file = passage.open().map_err(|error| Failed("open", error))?;
                return through(file.as_fd(), content).map(|()| None);
            }
        };
        let beside = slot.beside().map_err(|error| Failed("write", error))?;
        put_marked(beside, (slot.name(), mark), self.syncs, content).map(Some)
    }

    /// Removes such a file, unless another one has its name by now, or it was changed.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn remove_another(&self, one: &AnotherFile) -> Result<(), StoreError> {
        let Some(slot) = self.slot() else { return Ok(()) };
        if !one.is_as_written(slot) {
            return Ok(());
        }
        remove_own(slot.folder(), &one.name, &one.own).map_err(|error| {
            failed("remove", &beside(&self.name, &one.name), self.is_nowhere, error)
        })
    }

    fn slot(&self) -> Option<&Slot> {
        match &self.to {
            Destination::Place(place) => match &**place {
                Place::Replace(slot) => Some(slot),
                Place::Through(_) => None,
            },
            Destination::Standard | Destination::Error => None,
        }
    }
}

/// Writes `bytes` whole to a new file of a directory. Its name is `name` with `mark` before the ending, and a number where
/// there is such a file; returned is the name.
///
/// # Errors
/// When it cannot be written whole: no file is left.
pub fn put_new(folder: &Path, name: &str, mark: &str, bytes: &[u8]) -> io::Result<OsString> {
    let place = Slot::without_a_name(Place::folder(folder)?);
    let written = put_marked(place, (OsStr::new(name), mark), true, |to| to.write_all(bytes));
    written.map(|file| file.name).map_err(|Failed(_, error)| error)
}

/// Writes a new file in the directory of `place`, by the first of the marked names that is free.
fn put_marked(
    place: Slot,
    (name, mark): (&OsStr, &str),
    syncs: bool,
    content: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
) -> Result<AnotherFile, Failed> {
    let fresh = NewFile::beside(place, 0o666).map_err(|error| Failed("write", error))?;
    let names = (1..=TRIES).map(|number| marked(name, mark, number));
    let (name, own) = named(fresh, syncs, content, |fresh| fresh.put_free(names))?;
    Ok(AnotherFile { name, own })
}

/// `name` with a mark before its ending: `spike-MARK.json`, and `spike-MARK-2.json` for the second.
fn marked(name: &OsStr, mark: &str, number: u32) -> OsString {
    let path = Path::new(name);
    let mut bytes = path.file_stem().unwrap_or(name).as_bytes().to_vec();
    bytes.push(b'-');
    bytes.extend(mark.as_bytes());
    if number > 1 {
        bytes.extend(format!("-{number}").into_bytes());
    }
    if let Some(ending) = path.extension() {
        bytes.push(b'.');
        bytes.extend(ending.as_bytes());
    }
    OsString::from_vec(bytes)
}

/// The name in messages of a file in the directory of another.
fn beside(name: &str, other: &OsStr) -> String {
    let other = shown(Path::new(other), "");
    name.rsplit_once('/').map_or_else(|| other.clone(), |(folder, _)| format!("{folder}/{other}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let name = |entry: io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
        let all = std::fs::read_dir(folder).unwrap().map(name);
        let mut all: Vec<String> = all.map(|name| name.into_string().unwrap()).collect();
        all.sort();
        all
    }

    #[test]
    fn the_mark_is_before_the_ending() {
        for (name, number, expected) in [
            ("spike.json", 1, "spike-T.json"),
            ("spike.json", 3, "spike-T-3.json"),
            ("a.b.gz", 1, "a.b-T.gz"),
            ("spike", 2, "spike-T-2"),
            (".spike", 1, ".spike-T"),
        ] {
            assert_eq!(marked(OsStr::new(name), "T", number), expected);
        }
    }

    #[test]
    fn no_file_is_replaced_and_only_own_ones_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("spike-T.json"), "another's").unwrap();
        let output = OutputFile::open(Path::new("spike.json"), folder.path()).unwrap();
        assert!(output.is_file());
        let put = |bytes: &[u8]| output.put_another("T", bytes).unwrap().unwrap();
        let (one, two) = (put(b"1"), put(b"2"));
        assert_eq!(
            (one.name(), two.name()),
            ("spike-T-2.json".as_ref(), "spike-T-3.json".as_ref())
        );
        assert_eq!(names(folder.path()), ["spike-T-2.json", "spike-T-3.json", "spike-T.json"]);
        assert_eq!(std::fs::read(folder.path().join("spike-T-3.json")).unwrap(), b"2");
        // Another file has the name by now.
        std::fs::remove_file(folder.path().join("spike-T-2.json")).unwrap();
        std::fs::write(folder.path().join("spike-T-2.json"), "another's").unwrap();
        output.remove_another(&one).unwrap();
        output.remove_another(&two).unwrap();
        assert_eq!(names(folder.path()), ["spike-T-2.json", "spike-T.json"]);
        output.put(b"end").unwrap();
        assert_eq!(std::fs::read(folder.path().join("spike.json")).unwrap(), b"end");
    }

    #[test]
    fn what_is_no_file_is_written_to_itself() {
        let output = OutputFile::open(Path::new("/dev/null"), Path::new("")).unwrap();
        assert!(!output.is_file());
        assert!(output.put_another("T", b"1").unwrap().is_none());
    }

    #[test]
    fn a_fifo_is_told_from_a_pipe() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert!(OutputFile::open(&path, Path::new("")).unwrap().is_fifo());
        let (_reader, writer) = io::pipe().unwrap();
        let pipe = crate::store::place::proc_name(writer.as_fd());
        assert!(!OutputFile::open(Path::new(&pipe), Path::new("")).unwrap().is_fifo());
    }

    #[test]
    fn a_directory_that_is_gone_is_named_with_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let output = OutputFile::open(Path::new("spike.json"), folder.path()).unwrap();
        folder.close().unwrap();
        let error = output.put_another("T", b"1").unwrap_err().to_string();
        assert!(error.contains("spike-T.json"), "{error}");
    }
}
