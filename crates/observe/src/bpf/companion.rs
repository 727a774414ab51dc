//! What watches the same threads in the same watch, by programs of its own: the trace's cost no more
//! where nobody asks for it.

use std::collections::HashMap;

use super::books::Books;
use super::layout::{CALL_I386, CALL_NUMBER, FileKey};
use super::object::Session;
use super::outcome::path;
use crate::naming::call_name;
use iotomy_sys::syscalls::Abi;

/// Programs beside the trace's. A companion that fails in `begin` keeps the watch from beginning; after
/// that nothing it does may cost the command its run.
pub(crate) trait Companion {
    /// Loads and attaches its programs: the trace's are attached, so these run behind them, and
    /// nothing is watched yet.
    ///
    /// # Errors
    /// What was refused and what the kernel said.
    fn begin(&mut self, session: &Session) -> Result<(), String>;

    /// Ends its counting; the trace's own end comes next.
    fn stop(&mut self);

    /// Takes what there is: the trace's books are closed. What cannot be taken is counted as lost.
    fn finish(&mut self, session: &Session, images: &Images);
}

/// Whose image is which.
#[derive(Debug, Default)]
pub(crate) struct Images {
    by_id: HashMap<u32, (u32, String)>,
    first: Option<u32>,
    /// When the first image began.
    pub(super) first_ns: u64,
    paths: HashMap<FileKey, String>,
}

impl Images {
    /// Of the books, this process's own left out.
    pub(super) fn of(books: &Books) -> Self {
        let own = std::process::id();
        let watched = || books.images.iter().filter(|(_, image)| image.pid != own);
        let name = |id: u32| books.program(id).map_or_else(|| "?".to_owned(), |p| p.exec.clone());
        Self {
            by_id: watched().map(|(id, image)| (*id, (image.pid, name(*id)))).collect(),
            first: watched().min_by_key(|(id, image)| (image.start_ns, **id)).map(|(id, _)| *id),
            first_ns: watched().map(|(_, image)| image.start_ns).min().unwrap_or(0),
            paths: books.file_names.iter().map(|(key, n)| (*key, path(n, key.inode))).collect(),
        }
    }

    /// The path of a file that was met.
    pub(super) fn path(&self, file: &FileKey) -> Option<&str> {
        self.paths.get(file).map(String::as_str)
    }

    /// Process id and program of an image; 0 is the launch, which is the first image's.
    pub(crate) fn name(&self, id: u32) -> Option<(u32, &str)> {
        let id = if id == 0 { self.first? } else { id };
        self.by_id.get(&id).map(|(pid, exec)| (*pid, exec.as_str()))
    }
}

/// A call by the number the programs have it under, as the record names it.
pub(crate) fn call_by_number(call: u16) -> String {
    let abi = if call & CALL_I386 == 0 { Abi::X86_64 } else { Abi::I386 };
    call_name(abi, u32::from(call & CALL_NUMBER))
}
