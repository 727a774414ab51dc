//! The files, in memory. Their memory is never freed, because a test is short.

use std::collections::BTreeMap;

use rustix::fs::FileType;
use rustix::io::Errno;

use crate::wire::Answer;

/// The node number of the mounted directory.
pub(crate) const ROOT: u64 = 1;

/// A file or a directory.
#[derive(Debug)]
pub(crate) struct Node {
    /// The most recent name; empty if it never had one.
    pub(crate) name: String,
    pub(crate) mode: u32,
    pub(crate) user: u32,
    pub(crate) group: u32,
    links: u32,
    /// The content of a file, or the target of a link.
    pub(crate) content: Vec<u8>,
    /// The entries of a directory.
    pub(crate) entries: BTreeMap<String, u64>,
    /// Access and modification times, in seconds and nanoseconds.
    pub(crate) times: [(u64, u32); 2],
}

/// All nodes; the number of a node is its position, counted from [`ROOT`].
#[derive(Debug)]
pub(crate) struct Files(Vec<Node>);

impl Files {
    pub(crate) fn new(files: &[(&str, &[u8])]) -> Self {
        let mut all = Self(Vec::new());
        all.add("", FileType::Directory.as_raw_mode() | 0o755, (0, 0));
        for (name, content) in files {
            let regular = FileType::RegularFile.as_raw_mode();
            let id = all.add(name, regular | 0o644, (0, 0));
            all.at(id).content = content.to_vec();
            all.enter(ROOT, name, id);
        }
        all
    }

    /// Creates a node that is in no directory.
    pub(crate) fn add(&mut self, name: &str, mode: u32, (user, group): (u32, u32)) -> u64 {
        self.0.push(Node {
            name: name.to_owned(),
            mode,
            user,
            group,
            links: 0,
            content: Vec::new(),
            entries: BTreeMap::new(),
            times: [(0, 0); 2],
        });
        self.0.len() as u64
    }

    /// Returns the node with this number, which was given to the kernel.
    pub(crate) fn at(&mut self, id: u64) -> &mut Node {
        let place = usize::try_from(id - ROOT).expect("a number that was given");
        &mut self.0[place]
    }

    pub(crate) fn child(&mut self, folder: u64, name: &str) -> Result<u64, Errno> {
        self.at(folder).entries.get(name).copied().ok_or(Errno::NOENT)
    }

    /// Gives a node a name in a directory, replacing a node with the same name.
    pub(crate) fn enter(&mut self, folder: u64, name: &str, id: u64) {
        name.clone_into(&mut self.at(id).name);
        self.at(id).links += 1;
        if let Some(old) = self.at(folder).entries.insert(name.to_owned(), id) {
            self.at(old).links -= 1;
        }
    }

    /// Removes a name.
    pub(crate) fn remove(&mut self, folder: u64, name: &str) -> Result<u64, Errno> {
        let id = self.child(folder, name)?;
        if !self.at(id).entries.is_empty() {
            return Err(Errno::NOTEMPTY);
        }
        self.at(folder).entries.remove(name);
        self.at(id).links -= 1;
        Ok(id)
    }

    /// Renames a node.
    pub(crate) fn rename(
        &mut self,
        (from, old): (u64, &str),
        (to, new): (u64, &str),
    ) -> Result<(), Errno> {
        let id = self.child(from, old)?;
        self.at(from).entries.remove(old);
        self.at(id).links -= 1;
        self.enter(to, new, id);
        Ok(())
    }

    /// Returns the attributes for stat(2), in the protocol's form; what is claimed stands for the size and the blocks.
    pub(crate) fn attributes(&mut self, id: u64, claimed: (Option<u64>, Option<u64>)) -> Answer {
        let node = self.at(id);
        let is_folder = FileType::from_raw_mode(node.mode) == FileType::Directory;
        let size = claimed.0.unwrap_or(node.content.len() as u64);
        let [(access, access_ns), (change, change_ns)] = node.times;
        let links = if is_folder { 2 } else { node.links };
        Answer::default()
            .u64(id)
            .u64(size)
            .u64(claimed.1.unwrap_or(size.div_ceil(512)))
            .u64(access)
            .u64(change)
            .u64(change)
            .u32(access_ns)
            .u32(change_ns)
            .u32(change_ns)
            .u32(node.mode)
            .u32(links)
            .u32(node.user)
            .u32(node.group)
            .zeros(80)
            .u32(4096)
            .zeros(88)
    }
}

impl Node {
    /// Like pwrite(2).
    pub(crate) fn write(&mut self, at: usize, bytes: &[u8]) {
        let end = at + bytes.len();
        if self.content.len() < end {
            self.content.resize(end, 0);
        }
        self.content[at..end].copy_from_slice(bytes);
    }

    /// Like pread(2).
    pub(crate) fn read(&self, at: usize, length: usize) -> &[u8] {
        let rest = self.content.get(at..).unwrap_or_default();
        &rest[..rest.len().min(length)]
    }
}
