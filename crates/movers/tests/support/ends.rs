//! Ends of every kind, made for one run: a source with somebody who feeds it, a target with somebody
//! who reads it.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread::{JoinHandle, spawn};

use rustix::fs::{CWD, FileType, Mode, OFlags, fcntl_getfl, fcntl_setfl, mknodat};

/// Kinds of sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// A regular file, read from here.
    File(u64),
    /// The same, past the page cache.
    Direct(u64),
    Pipe,
    Fifo,
    Unix,
    Tcp,
}

/// Kinds of targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TargetKind {
    /// A new regular file.
    File,
    /// A regular file with content, written from here.
    Over(u64),
    Append,
    Direct,
    Pipe,
    Fifo,
    Unix,
    Tcp,
    Null,
}

/// What a file that is not new holds.
pub(crate) const OLD: [u8; 10_000] = [0xEE; 10_000];

/// A source, ready to be read.
pub(crate) struct Source {
    pub(crate) fd: OwnedFd,
    feeder: Option<JoinHandle<()>>,
}

/// A target, ready to be written to.
pub(crate) struct Target {
    pub(crate) fd: OwnedFd,
    path: Option<std::path::PathBuf>,
    reader: Option<JoinHandle<Vec<u8>>>,
}

/// A pair of connected descriptors: written to the first, read from the second.
fn connected(kind: From, folder: &Path, name: &str) -> (OwnedFd, OwnedFd) {
    match kind {
        From::Pipe => {
            let (out, into) = std::io::pipe().unwrap();
            (into.into(), out.into())
        }
        From::Fifo => {
            let path = folder.join(name);
            mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
            // Opened both ways first: an open for one way waits for the other.
            let both = OpenOptions::new().read(true).write(true).open(&path).unwrap();
            let out = File::open(&path).unwrap();
            let into = OpenOptions::new().write(true).open(&path).unwrap();
            drop(both);
            std::fs::remove_file(&path).unwrap();
            (into.into(), out.into())
        }
        From::Unix => {
            let (one, other) = UnixStream::pair().unwrap();
            (one.into(), other.into())
        }
        From::Tcp => {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            (one.into(), listener.accept().unwrap().0.into())
        }
        From::File(_) | From::Direct(_) => unreachable!("a file is connected to nothing"),
    }
}

/// A source of `kind` that gives `content`, and then ends.
pub(crate) fn source(kind: From, content: &[u8], folder: &Path) -> Source {
    if let From::File(at) | From::Direct(at) = kind {
        let path = folder.join("source");
        let mut file = File::create(&path).unwrap();
        file.write_all(&vec![0xAA; usize::try_from(at).unwrap()]).unwrap();
        file.write_all(content).unwrap();
        let direct = matches!(kind, From::Direct(_));
        let flags = if direct { OFlags::DIRECT } else { OFlags::empty() };
        let flags = i32::try_from(flags.bits()).unwrap();
        let mut file = OpenOptions::new().read(true).custom_flags(flags).open(&path).unwrap();
        file.seek(SeekFrom::Start(at)).unwrap();
        return Source { fd: file.into(), feeder: None };
    }
    let (into, out) = connected(kind, folder, "source-fifo");
    let content = content.to_vec();
    // A source that is not read to its end makes this fail, which is as it should be.
    let feed = move || drop(File::from(into).write_all(&content));
    Source { fd: out, feeder: Some(spawn(feed)) }
}

impl Source {
    /// All that is left to be read.
    pub(crate) fn rest(self) -> Vec<u8> {
        plain(&self.fd);
        let mut rest = Vec::new();
        File::from(self.fd).read_to_end(&mut rest).unwrap();
        self.feeder.map(JoinHandle::join);
        rest
    }
}

/// A target of `kind`.
pub(crate) fn target(kind: TargetKind, folder: &Path) -> Target {
    let path = folder.join("target");
    let pair = match kind {
        TargetKind::Pipe => From::Pipe,
        TargetKind::Fifo => From::Fifo,
        TargetKind::Unix => From::Unix,
        TargetKind::Tcp => From::Tcp,
        TargetKind::Null => {
            let fd = OpenOptions::new().write(true).open("/dev/null").unwrap().into();
            return Target { fd, path: None, reader: None };
        }
        TargetKind::File | TargetKind::Direct => {
            let flags = if kind == TargetKind::Direct { OFlags::DIRECT } else { OFlags::empty() };
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true);
            options.custom_flags(i32::try_from(flags.bits()).unwrap());
            let fd = options.open(&path).unwrap().into();
            return Target { fd, path: Some(path), reader: None };
        }
        TargetKind::Over(at) => {
            std::fs::write(&path, OLD).unwrap();
            let mut file = OpenOptions::new().write(true).open(&path).unwrap();
            file.seek(SeekFrom::Start(at)).unwrap();
            return Target { fd: file.into(), path: Some(path), reader: None };
        }
        TargetKind::Append => {
            std::fs::write(&path, OLD).unwrap();
            let file = OpenOptions::new().append(true).open(&path).unwrap();
            return Target { fd: file.into(), path: Some(path), reader: None };
        }
    };
    let (into, out) = connected(pair, folder, "target-fifo");
    let read = move || {
        let mut all = Vec::new();
        File::from(out).read_to_end(&mut all).unwrap();
        all
    };
    Target { fd: into, path: None, reader: Some(spawn(read)) }
}

impl Target {
    /// All that has reached it; `None` where nobody can know.
    pub(crate) fn content(self) -> Option<Vec<u8>> {
        drop(self.fd);
        match (self.reader, self.path) {
            (Some(reader), _) => Some(reader.join().unwrap()),
            (_, Some(path)) => Some(std::fs::read(path).unwrap()),
            _ => None,
        }
    }
}

/// Makes calls on `fd` wait no more.
pub(crate) fn non_blocking(fd: impl AsFd) {
    let flags = fcntl_getfl(&fd).unwrap();
    fcntl_setfl(&fd, flags | OFlags::NONBLOCK).unwrap();
}

fn plain(fd: impl AsFd) {
    let flags = fcntl_getfl(&fd).unwrap();
    fcntl_setfl(&fd, flags - OFlags::NONBLOCK - OFlags::DIRECT).unwrap();
}

/// What a target of `kind` holds once `moved` has reached it.
pub(crate) fn expected(kind: TargetKind, moved: &[u8]) -> Option<Vec<u8>> {
    let at = match kind {
        TargetKind::Null => return None,
        TargetKind::Over(at) => usize::try_from(at).unwrap(),
        TargetKind::Append => OLD.len(),
        _ => return Some(moved.to_vec()),
    };
    let mut all = OLD.to_vec();
    if moved.is_empty() {
        return Some(all);
    }
    all.resize(all.len().max(at + moved.len()), 0);
    all[at..at + moved.len()].copy_from_slice(moved);
    Some(all)
}

/// Where a target of `kind` stands once so many bytes have reached it.
pub(crate) fn position_after(kind: TargetKind, moved: u64) -> Option<u64> {
    match kind {
        TargetKind::File | TargetKind::Direct => Some(moved),
        TargetKind::Over(at) => Some(at + moved),
        TargetKind::Append if moved == 0 => Some(0),
        TargetKind::Append => Some(OLD.len() as u64 + moved),
        _ => None,
    }
}
