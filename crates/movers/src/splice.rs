//! The `splice` mover.
//!
//! ```text
//! the source is a pipe, or a small file goes into one:
//!     source ──splice(2)──▶ target
//! none is a pipe, or a large file goes into one:
//!     source ──splice(2)──▶ pipe of this process ──splice(2)──▶ target
//!            references                            references or copy 1
//! ```
//!
//! Pages change hands inside the kernel. Files pass references to their page cache, so a pipe or a
//! socket that keeps them shows later writes to the file; a file that is the target copies from
//! them. One crossing a move, two through the intermediate pipe.
//!
//! A pipe is locked while it is filled from a file, page after page, and its reader waits. From
//! another pipe it is filled by passing on the pages, so that the reader reads while the next round
//! is fetched.
//!
//! The one invariant: bytes in the intermediate pipe are not lost when the target refuses them. It
//! is drained with read(2) and write(2), and only bytes that these cannot deliver either are given
//! back to the source, or reported lost where the source has no position.

use std::os::fd::OwnedFd;

use rustix::event::PollFlags;
use rustix::io::{Errno, read};
use rustix::pipe::splice;
use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with};

use crate::in_kernel::{by_value_kept, probed, repeat, traffic};
use crate::memory::buffer;
use crate::patience::patiently;
use crate::position::{apart, give_back};
use crate::read_write::{pump, put_all, read_on};
use crate::refusal::{is_refusal, is_suspicious_end, plain, refused_or_failed};
use crate::route::Route;
use crate::{
    Choice, End, Holes, Job, Kind, MoveError, Moved, Mover, MoverDeclaration, Outcome, Probe, Side,
};

/// The size of a wide pipe in bytes, when the kernel allows it: the default of
/// `/proc/sys/fs/pipe-max-size`.
pub(crate) const PIPE_SIZE: usize = 1 << 20;

pub(crate) struct Splice;

static DECLARATION: MoverDeclaration = MoverDeclaration {
    name: "splice",
    summary: "splice(2), through an intermediate pipe if neither end is a suitable pipe",
    description: "Pages move inside the kernel: references into pipes and sockets, one copy into \
        files. Uses an intermediate pipe if neither end is a pipe, and from a large file into a \
        pipe, so that the reader does not wait. read(2) and write(2) drain the bytes that a \
        target refuses.",
    man: &["splice(2)", "pipe(7)"],
    calls: &["splice", "pipe2", "fcntl", "read", "write", "ppoll", "lseek", "fstat", "pread64"],
    by_reference: true,
    positioned: false,
    holes: Holes::Filled,
    chosen: &[
        Choice {
            routes: &[
                Route::LargeFile,
                Route::FileToFile,
                Route::LargeFileCopied,
                Route::FileToFileCopied,
            ],
            rank: 30,
            reason: "one copy inside the kernel, in rounds of 1 MiB",
        },
        Choice {
            routes: &[Route::FileToPipe],
            rank: 30,
            reason: "no copy: the pipe gets references to the page cache",
        },
        Choice {
            routes: &[Route::FileToSocket, Route::FileToNull],
            rank: 30,
            reason: "no copy, through a pipe",
        },
        Choice {
            routes: &[Route::FileToLoopback],
            rank: 30,
            reason: "no copy except the reader's: the socket gets references to the page cache",
        },
        Choice {
            routes: &[Route::FromPipe],
            rank: 30,
            reason: "pages move inside the kernel, and a file copies them once",
        },
        Choice {
            routes: &[Route::FromSocket],
            rank: 30,
            reason: "received pages move inside the kernel",
        },
        Choice {
            routes: &[Route::DeviceToPipe],
            rank: 30,
            reason: "one copy inside the kernel, in one crossing",
        },
    ],
    tunings: &[],
};

impl Mover for Splice {
    fn declaration(&self) -> &'static MoverDeclaration {
        &DECLARATION
    }

    fn probe(&self) -> Probe {
        let Ok((out, into)) = pipe_with(PipeFlags::CLOEXEC) else {
            return Probe::Unsupported("pipe2: no pipe available".to_owned());
        };
        let answer = rustix::io::write(&into, b"x").and_then(|_| {
            let (_kept, other) = pipe_with(PipeFlags::CLOEXEC)?;
            splice(&out, None, &other, None, 1, SpliceFlags::empty())
        });
        probed("splice", answer, &[])
    }

    fn serves(&self, source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Result<(), String> {
        for (end, role) in [(source, "source"), (target, "target")] {
            if matches!(end.kind(), Kind::Directory | Kind::Other) {
                return Err(format!("the {role} is a {}", end.kind().name()));
            }
        }
        plain(source, target)?;
        by_value_kept(source, target, job)?;
        apart(source, target, job)
    }

    fn run(&self, source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Result<Outcome, MoveError> {
        let is_pipe = source.kind() == Kind::Pipe || target.kind() == Kind::Pipe;
        if is_pipe && !fills(source, target, job) {
            return straight(source, target, job);
        }
        let (out, into) = match pipe_with(PipeFlags::CLOEXEC) {
            Ok(pipe) => pipe,
            Err(_) if is_pipe => return straight(source, target, job),
            Err(errno) => return Ok(Outcome::Refused { call: "pipe2", errno: Some(errno) }),
        };
        // Refused for users who have many pipes: the size it has serves too.
        let size = fcntl_setpipe_size(&into, PIPE_SIZE)
            .or_else(|_| fcntl_getpipe_size(&into))
            .unwrap_or(64 * 1024);
        PipeRun { source, target, job, out, into, size }.run()
    }
}

/// Whether a file goes into a pipe that cannot hold it at once.
fn fills(source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> bool {
    let is_large = job.want(0, usize::MAX) > PIPE_SIZE && source.size() > PIPE_SIZE as u64;
    source.kind() == Kind::Regular && target.kind() == Kind::Pipe && is_large
}

/// One end is a pipe, and no other is needed.
fn straight(source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Result<Outcome, MoveError> {
    let call = |want| splice(source.fd(), None, target.fd(), None, want, SpliceFlags::empty());
    repeat(&DECLARATION, source, target, job, call, |_, bytes| traffic(source, target, bytes))
}

/// A run through an intermediate pipe, which is empty at the start of each round.
struct PipeRun<'a, 'fd> {
    source: &'a End<'fd>,
    target: &'a End<'fd>,
    job: &'a Job<'a>,
    out: OwnedFd,
    into: OwnedFd,
    size: usize,
}

/// How a round ended.
enum Round {
    /// All that was taken has reached the target.
    Moved,
    /// The target takes no pages; what was taken has reached it by a copy.
    Copied,
}

impl PipeRun<'_, '_> {
    fn run(&self) -> Result<Outcome, MoveError> {
        let mut all = Moved::default();
        loop {
            let want = self.job.want(all.bytes, self.size);
            if want == 0 {
                return Ok(Outcome::Done(all));
            }
            let taken = match self.take(want) {
                Ok(0) if all.bytes == 0 && is_suspicious_end(self.source) => {
                    return Ok(Outcome::Refused { call: "splice", errno: None });
                }
                Ok(0) => {
                    return read_on(&DECLARATION, self.source, self.target, self.job, all)
                        .map(Outcome::Done);
                }
                Ok(taken) => taken,
                Err(e) => {
                    return refused_or_failed(&DECLARATION, "splice", Side::Source, all, e);
                }
            };
            match self.deliver(taken, &mut all)? {
                Round::Moved => {}
                Round::Copied => {
                    return pump(&DECLARATION, self.source, self.target, self.job, all)
                        .map(Outcome::Done);
                }
            }
        }
    }

    fn take(&self, want: usize) -> Result<usize, Errno> {
        patiently(self.source.fd(), PollFlags::IN, || {
            splice(self.source.fd(), None, &self.into, None, want, SpliceFlags::empty())
        })
    }

    /// Empties the pipe of `taken` bytes into the target.
    fn deliver(&self, taken: usize, all: &mut Moved) -> Result<Round, MoveError> {
        let mut left = taken;
        while left > 0 {
            let put = patiently(self.target.fd(), PollFlags::OUT, || {
                splice(&self.out, None, self.target.fd(), None, left, SpliceFlags::empty())
            });
            match put {
                Ok(0) => return self.drain(left, Errno::INVAL, all),
                Ok(put) => {
                    left -= put;
                    let bytes = put as u64;
                    let traffic = traffic(self.source, self.target, bytes);
                    *all = *all + Moved { bytes, traffic };
                    self.job.advance(bytes);
                }
                Err(errno) => return self.drain(left, errno, all),
            }
        }
        Ok(Round::Moved)
    }

    /// Copies to the target what the pipe still holds after splice(2) failed with `errno`. A refusal
    /// is overcome by that; of another error the bytes in the pipe are saved, and it is reported.
    fn drain(&self, left: usize, errno: Errno, all: &mut Moved) -> Result<Round, MoveError> {
        let mut buffer = buffer(left).map_err(|e| {
            let error = MoveError::new(&DECLARATION, "mmap", Side::Either, *all, e);
            error.losing(give_back(self.source, left as u64))
        })?;
        let mut in_pipe = left;
        while in_pipe > 0 {
            let into = &mut buffer[..in_pipe];
            let got = patiently(std::os::fd::AsFd::as_fd(&self.out), PollFlags::IN, || {
                read(&self.out, &mut *into)
            });
            let got = match got {
                Ok(got @ 1..) => got,
                Ok(0) => break,
                Err(e) => {
                    let lost = give_back(self.source, in_pipe as u64);
                    let error = MoveError::new(&DECLARATION, "read", Side::Either, *all, e);
                    return Err(error.losing(lost));
                }
            };
            in_pipe -= got;
            put_all(&DECLARATION, self.source, self.target, self.job, &buffer[..got], all)
                .map_err(|error| {
                    let lost = error.lost + give_back(self.source, in_pipe as u64);
                    error.losing(lost)
                })?;
        }
        if is_refusal(errno) {
            return Ok(Round::Copied);
        }
        Err(MoveError::new(&DECLARATION, "splice", Side::Target, *all, errno))
    }
}
