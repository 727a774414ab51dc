//! The far ends of pipes and sockets: the threads that feed and read them, identical for all
//! contenders.
//!
//! A feeder passes references to the pages of a file in memory, which is the fastest method. A
//! reader reads every byte into a buffer that stays in the CPU's cache. Both are threads of this
//! program and run before the clock starts; the reader records when it has reached the end.

use std::fs::File;
use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use rustix::fs::sendfile;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, SpliceFlags, pipe_with, splice};

use crate::copy::route::{Source, Target};

/// Bytes in each read request of a reader.
const BUFFER: usize = 256 * 1024;

/// The expected content of the bytes.
pub(crate) enum Content {
    /// The content of a file.
    File(File),
    /// Nothing but zeros.
    Zeros,
}

/// The report of a reader.
pub(crate) struct ReaderReport {
    pub(crate) bytes: u64,
    pub(crate) at: Instant,
}

/// A pipe or a connection: its read end and its write end.
pub(crate) struct Channel {
    pub(crate) out: OwnedFd,
    pub(crate) into: OwnedFd,
}

impl Channel {
    pub(crate) fn pipe() -> Result<Self> {
        let (out, into) = pipe_with(PipeFlags::CLOEXEC).context("cannot make a pipe")?;
        Ok(Self { out, into })
    }

    pub(crate) fn socket() -> Result<Self> {
        let connect = || -> io::Result<Self> {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
            let into = TcpStream::connect(listener.local_addr()?)?;
            let (out, _) = listener.accept()?;
            Ok(Self { out: out.into(), into: into.into() })
        };
        connect().context("cannot connect to this program over loopback")
    }

    /// Creates the contender's standard input, when the source is a stream.
    pub(crate) fn of_source(source: Source) -> Result<Option<Self>> {
        match source {
            Source::Pipe => Self::pipe().map(Some),
            Source::Socket => Self::socket().map(Some),
            Source::File | Source::Zero => Ok(None),
        }
    }

    /// Creates the contender's standard output, when the target is a stream.
    pub(crate) fn of_target(target: Target) -> Result<Option<Self>> {
        match target {
            Target::Pipe => Self::pipe().map(Some),
            Target::Socket => Self::socket().map(Some),
            Target::File | Target::Null => Ok(None),
        }
    }
}

/// Feeds a file to a pipe or socket, in a separate thread; it ends when the reader closes its end.
pub(crate) fn feed(
    path: &Path,
    bytes: u64,
    into: OwnedFd,
    is_pipe: bool,
) -> Result<JoinHandle<io::Result<()>>> {
    let file = File::open(path).context("cannot open the feeder's file")?;
    Ok(std::thread::spawn(move || {
        let mut left = bytes;
        while left > 0 {
            let want = usize::try_from(left).unwrap_or(usize::MAX).min(1 << 30);
            let given = if is_pipe {
                splice(&file, None, &into, None, want, SpliceFlags::empty())
            } else {
                sendfile(into.as_fd(), file.as_fd(), None, want)
            };
            match given {
                Ok(0) | Err(Errno::PIPE | Errno::CONNRESET) => break,
                Ok(given) => left -= given as u64,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }))
}

/// Reads to the end in a separate thread; compares every byte when the expected content is given.
pub(crate) fn read_all(out: OwnedFd, with: Option<Content>) -> JoinHandle<Result<ReaderReport>> {
    let mut out = File::from(out);
    let mut buffer = vec![1; BUFFER];
    std::thread::spawn(move || {
        let bytes = match with {
            Some(content) => compare(&mut out, &content)?,
            None => {
                let mut bytes = 0;
                loop {
                    match out.read(&mut buffer) {
                        Ok(0) => break bytes,
                        Ok(got) => bytes += got as u64,
                        Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                        Err(error) => return Err(error).context("cannot read"),
                    }
                }
            }
        };
        Ok(ReaderReport { bytes, at: Instant::now() })
    })
}

/// Reads to the end and returns the number of bytes.
///
/// # Errors
/// At the first byte that differs from the expected content.
pub(crate) fn compare(from: &mut impl Read, with: &Content) -> Result<u64> {
    let mut buffer = vec![0; BUFFER];
    let mut expected = vec![0; BUFFER];
    let mut bytes = 0;
    loop {
        let got = match from.read(&mut buffer) {
            Ok(0) => return Ok(bytes),
            Ok(got) => got,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error).context("cannot read"),
        };
        if let Content::File(file) = with {
            file.read_exact_at(&mut expected[..got], bytes).context("more bytes than there are")?;
        }
        // Slices compare many bytes at once; the exact position is searched only where they differ.
        if buffer[..got] != expected[..got]
            && let Some(at) = (0..got).find(|at| buffer[*at] != expected[*at])
        {
            bail!("byte {} is not that of the source", bytes + at as u64);
        }
        bytes += got as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_is_found_at_its_place() {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, b"abcdef").unwrap();
        let content = Content::File(file);
        assert_eq!(compare(&mut &b"abcdef"[..], &content).unwrap(), 6);
        let error = compare(&mut &b"abcxef"[..], &content).unwrap_err();
        assert_eq!(error.to_string(), "byte 3 is not that of the source");
        assert!(compare(&mut &b"abcdefg"[..], &content).is_err());
        assert_eq!(compare(&mut &[0; 9][..], &Content::Zeros).unwrap(), 9);
    }

    #[test]
    fn all_that_is_fed_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, vec![7; 300_000]).unwrap();
        for (channel, is_pipe) in [(Channel::pipe(), true), (Channel::socket(), false)] {
            let Channel { out, into } = channel.unwrap();
            let content = Content::File(File::open(&path).unwrap());
            let reader = read_all(out, Some(content));
            let feeder = feed(&path, 300_000, into, is_pipe).unwrap();
            assert_eq!(reader.join().unwrap().unwrap().bytes, 300_000);
            feeder.join().unwrap().unwrap();
        }
    }
}
