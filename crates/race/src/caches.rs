//! How much of a command's files is in memory before it runs.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

use rustix::fs::{Advice, fadvise};

use super::error::{RaceError, system};

/// The treatment of caches before each run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cache {
    /// Nothing but runs beforehand.
    Warm,
    /// The commands' files are dropped from the page cache.
    Cold,
    /// Nothing at all.
    AsIs,
}

impl Cache {
    /// Its name on the command line and in the record.
    pub fn name(self) -> &'static str {
        match self {
            Self::Warm => "warm",
            Self::Cold => "cold",
            Self::AsIs => "asis",
        }
    }
}

/// The regular files a command names: whole words, and what stands behind the = of a word.
pub(super) fn files(text: &str, program: &std::path::Path) -> Vec<PathBuf> {
    let marks = |c: char| c.is_whitespace() || "|&;<>()'\"`".contains(c);
    let words = text.split(marks).filter(|word| !word.is_empty());
    let mut files: Vec<PathBuf> = words
        .flat_map(|word| [Some(word), word.split_once('=').map(|(_, value)| value)])
        .flatten()
        .map(PathBuf::from)
        .chain([program.to_path_buf()])
        .filter(|path| path.is_file())
        .collect();
    files.sort();
    files.dedup();
    files
}

/// Drops the files' pages from the page cache, those first that wait to be written. A file that
/// cannot be opened is left alone: a command may have removed it.
pub(super) fn drop_files(files: &[PathBuf]) {
    for file in files.iter().filter_map(|path| File::open(path).ok()) {
        let _ = rustix::fs::fdatasync(&file);
        let _ = fadvise(&file, 0, None, Advice::DontNeed);
    }
}

/// Drops all the machine's page cache, names and inodes.
pub(super) fn drop_all() -> Result<(), RaceError> {
    rustix::fs::sync();
    let write = || -> io::Result<()> {
        OpenOptions::new().write(true).open("/proc/sys/vm/drop_caches")?.write_all(b"3")
    };
    write().map_err(system("drop the machine's caches (--drop-caches)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_among_the_words() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        std::fs::write(&path, "x").unwrap();
        let name = path.display();
        for text in [
            format!("cat {name}"),
            format!("dd if={name} of=/dev/null"),
            format!("cat<'{name}'|cat"),
        ] {
            assert_eq!(files(&text, "/nonexistent".as_ref()), vec![path.clone()], "{text}");
        }
        drop_files(&files(&format!("cat {name}"), "/bin/cat".as_ref()));
    }
}
