//! The files that processes have mapped: their symbols and their tables of frames.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

use iotomy_record::{Caller, MappedCode, bytes_of};

use crate::anatomy::user::{FrameKept, UserSymbols};
use crate::mapped_file::{self, VDSO};
use crate::unwind::{Files, Tables};

/// Bytes of tables: those that were read before are read again where more would be held.
const MOST_HELD: usize = 256 << 20;

/// As far as they were read.
#[derive(Default)]
pub(super) struct MappedFiles {
    symbols: UserSymbols,
    /// By path and inode.
    tables: HashMap<(String, u64), Option<Tables>>,
    /// The size of the tables.
    held: usize,
    /// Where a file of a process is to be had, by its path there and its inode.
    places: HashMap<(String, u64), String>,
}

/// Those of one process.
pub(super) struct FilesOf<'a> {
    files: &'a mut MappedFiles,
    pid: u32,
}

/// The name by which the code of a mapping is known; none of memory of no file.
pub(super) fn file_of(code: &MappedCode) -> Option<String> {
    match code.is_vdso {
        true => Some(VDSO.to_owned()),
        false => code.file.clone(),
    }
}

impl MappedFiles {
    pub(super) fn of(&mut self, pid: u32) -> FilesOf<'_> {
        FilesOf { files: self, pid }
    }

    /// The function's name, if the file has it; `None` where there is no code.
    pub(super) fn function(&mut self, pid: u32, of: &Caller) -> Option<Option<String>> {
        // Behind the instruction that calls.
        let at = of.offset.checked_sub(1)?;
        let path = self.place(pid, of.file.as_ref()?, of.inode);
        Some(self.symbols.name(&path, of.inode, at))
    }

    pub(super) fn frame(&mut self, pid: u32, of: &Caller) -> Option<FrameKept> {
        let (file, at) = (of.file.as_ref()?, of.offset.checked_sub(1)?);
        let path = self.place(pid, file, of.inode);
        self.symbols.frame(&path, of.inode, at)
    }

    /// A file by its path here, or, where that is another one, by its path in the container of the process.
    fn place(&mut self, pid: u32, path: &str, inode: u64) -> String {
        let inside = format!("/proc/{pid}/root{path}");
        self.place_among(path, inode, [path.to_owned(), inside])
    }

    /// The first of several paths that leads to a file.
    fn place_among<const N: usize>(
        &mut self,
        path: &str,
        inode: u64,
        paths: [String; N],
    ) -> String {
        let key = (path.to_owned(), inode);
        if let Some(known) = self.places.get(&key) {
            return known.clone();
        }
        let is_it = |path: &String| {
            std::fs::metadata(OsStr::from_bytes(&bytes_of(path)))
                .is_ok_and(|file| file.ino() == inode)
        };
        let Some(found) = paths.into_iter().find(is_it) else { return path.to_owned() };
        self.places.entry(key).or_insert(found).clone()
    }

    /// The same of a mapping, which also leads to a file that was deleted, for as long as the process has it.
    fn place_of(&mut self, pid: u32, code: &MappedCode) -> Option<String> {
        let path = file_of(code)?;
        let inside = format!("/proc/{pid}/root{path}");
        let mapped = format!("/proc/{pid}/map_files/{:x}-{:x}", code.start, code.end);
        Some(self.place_among(&path, code.inode, [path.clone(), inside, mapped]))
    }
}

impl Files for FilesOf<'_> {
    fn tables(&mut self, code: &MappedCode) -> Option<&mut Tables> {
        let path = self.files.place_of(self.pid, code)?;
        let key = (path.clone(), code.inode);
        let files = &mut *self.files;
        if !files.tables.contains_key(&key) {
            let tables = mapped_file::open(&path, code.inode).and_then(Tables::read);
            let bytes = tables.as_ref().map_or(0, Tables::bytes);
            if files.held + bytes > MOST_HELD {
                files.tables.clear();
                files.held = 0;
            }
            files.held += bytes;
            files.tables.insert(key.clone(), tables);
        }
        files.tables.get_mut(&key)?.as_mut()
    }

    fn frame_kept(&mut self, code: &MappedCode, offset: u64) -> Option<FrameKept> {
        let path = self.files.place_of(self.pid, code)?;
        self.files.symbols.frame(&path, code.inode, offset)
    }
}
