//! A folder for one test.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A folder for one test, on the file system the build is on.
pub(crate) struct Folder {
    path: PathBuf,
    _holder: Option<TempDir>,
}

impl Folder {
    pub(crate) fn new() -> Self {
        let holder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        Self { path: holder.path().to_owned(), _holder: Some(holder) }
    }

    /// One that is there already, and stays.
    pub(crate) fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), _holder: None }
    }

    pub(crate) fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.path.join(name)
    }

    pub(crate) fn write(&self, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn read(&self, name: impl AsRef<Path>) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// Everything in it, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.path).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}
