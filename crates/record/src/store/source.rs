//! Opens what may hold a record, and refuses what would be waited for in vain: a FIFO that nobody writes to, a
//! terminal. Pipes are read, as those of `<(…)`.

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, Mode, OFlags, fcntl_getfl, fcntl_setfl, fstat, fstatfs, open};
use rustix::io::Errno;

/// The number of the file system of pipes, of linux/magic.h.
pub(super) const PIPEFS: i64 = 0x5049_5045;

/// How long a FIFO may be without a writer: one that is started together with this process comes later.
const PATIENCE: Duration = Duration::from_secs(3);

/// Why something is not read.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreadable {
    #[error(
        "it is a FIFO that no program writes to; start the one that does first, or name a file"
    )]
    NoWriter,
    #[error("it is a terminal; name a file, or `-` to type a record")]
    Terminal,
    #[error("it is a socket; name a file, or - for standard input")]
    Socket,
}

impl From<Unreadable> for io::Error {
    fn from(why: Unreadable) -> Self {
        Self::new(ErrorKind::InvalidInput, why)
    }
}

/// What can be read.
#[derive(Debug)]
pub(super) struct Source {
    /// Read already.
    pub(super) head: Vec<u8>,
    pub(super) file: File,
}

/// Opens it.
///
/// # Errors
/// Those of open(2), and an [`Unreadable`].
pub(super) fn open_source(path: &Path) -> io::Result<Source> {
    open_within(path, PATIENCE)
}

fn open_within(path: &Path, patience: Duration) -> io::Result<Source> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = match open(path, flags, Mode::empty()) {
        Err(Errno::NXIO) if is(FileType::Socket, path) => return Err(Unreadable::Socket.into()),
        // Another program holds a lease (fcntl(2)), which the kernel gives it some time to return.
        Err(Errno::AGAIN) if is(FileType::RegularFile, path) => {
            let flags = flags - OFlags::NONBLOCK;
            File::from(rustix::io::retry_on_intr(|| open(path, flags, Mode::empty()))?)
        }
        opened => File::from(opened?),
    };
    if file.is_terminal() {
        return Err(Unreadable::Terminal.into());
    }
    let is_fifo = FileType::from_raw_mode(fstat(&file)?.st_mode) == FileType::Fifo;
    // One without a name was made with both of its ends.
    let is_named = is_fifo && fstatfs(&file)?.f_type != PIPEFS;
    let head = if is_named { first_bytes(&file, patience)? } else { Vec::new() };
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(Source { head, file })
}

fn is(kind: FileType, path: &Path) -> bool {
    rustix::fs::stat(path).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == kind)
}

/// What is there, as soon as there is a writer: a FIFO without one is at its end.
fn first_bytes(mut file: &File, patience: Duration) -> io::Result<Vec<u8>> {
    let mut head = vec![0; 4096];
    let mut is_late = false;
    loop {
        match file.read(&mut head) {
            Ok(0) if is_late => return Err(Unreadable::NoWriter.into()),
            Ok(0) => {
                let mut waits = [PollFd::from_borrowed_fd(file.as_fd(), PollFlags::IN)];
                let limit = Timespec::try_from(patience).ok();
                // Returns early when bytes come, or a writer has come and gone.
                let came = poll(&mut waits, limit.as_ref());
                let has_gone = waits[0].revents() == PollFlags::HUP;
                match came {
                    Err(Errno::INTR) => continue,
                    Ok(_) if has_gone => return Ok(Vec::new()),
                    came => is_late = came? == 0,
                }
            }
            Ok(got) => {
                head.truncate(got);
                return Ok(head);
            }
            // A writer that has not written yet.
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(Vec::new()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;
    use std::process::{Command, Stdio};
    use std::thread;

    use iotomy_test_requirements::Need;

    use super::*;

    fn fifo() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("fifo");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        (folder, path)
    }

    fn all(source: Source) -> Vec<u8> {
        let Source { mut head, mut file } = source;
        file.read_to_end(&mut head).unwrap();
        head
    }

    #[test]
    fn a_fifo_that_nobody_writes_to_is_not_waited_for() {
        let (_folder, path) = fifo();
        let error = open_within(&path, Duration::ZERO).unwrap_err();
        assert!(error.to_string().contains("a FIFO that no program writes to"), "{error}");
    }

    #[test]
    fn a_fifo_is_read_whenever_its_writer_comes() {
        let (_folder, path) = fifo();
        let write = |path: PathBuf| {
            let mut to = OpenOptions::new().write(true).open(path).unwrap();
            to.write_all(&vec![b'x'; 100_000]).unwrap();
        };
        // Before the reader, and after it.
        let (before, there) = (path.clone(), path.clone());
        let writer = thread::spawn(move || write(before));
        assert_eq!(all(open_within(&path, Duration::MAX).unwrap()).len(), 100_000);
        writer.join().unwrap();
        let reader = thread::spawn(move || all(open_within(&there, Duration::MAX).unwrap()));
        write(path);
        assert_eq!(reader.join().unwrap().len(), 100_000);
    }

    #[test]
    fn a_writer_that_waits_is_waited_for_and_one_that_says_nothing_is_at_its_end() {
        let (_folder, path) = fifo();
        let mut to = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let source = open_within(&path, Duration::ZERO).unwrap();
        to.write_all(b"{}").unwrap();
        drop(to);
        assert_eq!(all(source), b"{}");
    }

    #[test]
    fn a_file_with_a_lease_is_read_once_it_is_returned() {
        const HOLDS: &str = r#"
            $| = 1; open my $file, '+<', $ARGV[0] or die $!;
            $SIG{IO} = sub { print $file 'new'; close $file; exit 0 };
            # F_SETLEASE, F_WRLCK
            fcntl $file, 1024, 1 or die "no lease: $!";
            print "held\n"; sleep 1000 while 1;
        "#;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record");
        std::fs::write(&path, "old").unwrap();
        let mut holder = Command::new("perl");
        holder.args(["-e", HOLDS]).arg(&path).stdout(Stdio::piped());
        let mut holder = match holder.spawn() {
            Ok(holder) => holder,
            Err(error) => {
                return iotomy_test_requirements::skip(Need::Programs, &format!("perl: {error}"));
            }
        };
        let mut said = [0; 5];
        holder.stdout.take().unwrap().read_exact(&mut said).unwrap();
        assert_eq!(all(open_source(&path).unwrap()), b"new");
        assert!(holder.wait().unwrap().success());
    }

    #[test]
    fn sockets_and_terminals_are_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let _listener = UnixListener::bind(&path).unwrap();
        let error = open_source(&path).unwrap_err().to_string();
        assert!(error.contains("it is a socket"), "{error}");
        let main = rustix::pty::openpt(rustix::pty::OpenptFlags::RDWR).unwrap();
        rustix::pty::unlockpt(&main).unwrap();
        let name = rustix::pty::ptsname(&main, Vec::new()).unwrap().into_string().unwrap();
        let error = open_source(Path::new(&name)).unwrap_err().to_string();
        assert!(error.contains("it is a terminal"), "{error}");
    }
}
