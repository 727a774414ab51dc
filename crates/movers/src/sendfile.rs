//! The `sendfile` mover.
//!
//! ```text
//! source file ──sendfile(2)──▶ target
//!               references (pipe, socket) or copy 1 (file)
//! ```
//!
//! The kernel splices from the source's page cache through a pipe of its own: one crossing for as
//! much as the target takes. A pipe or a socket is given references, so later writes to the source
//! show through until the reader has the bytes.

use rustix::fs::sendfile;
use rustix::io::Errno;

use crate::in_kernel::{by_value_kept, probed, repeat, traffic};
use crate::position::apart;
use crate::refusal::{only, plain};
use crate::route::Route;
use crate::{Choice, End, Holes, Job, Kind, MoveError, Mover, MoverDeclaration, Outcome, Probe};

pub(crate) struct Sendfile;

static DECLARATION: MoverDeclaration = MoverDeclaration {
    name: "sendfile",
    summary: "sendfile(2) from a file to anything",
    description: "The kernel splices from the source's page cache: references into pipes and \
        sockets, one copy into files, one crossing for as many bytes as the target takes.",
    man: &["sendfile(2)"],
    calls: &["sendfile", "ppoll", "fstat", "lseek", "read", "write", "pread64"],
    by_reference: true,
    positioned: false,
    holes: Holes::Filled,
    chosen: &[
        Choice {
            routes: &[Route::SmallFile],
            rank: 50,
            reason: "one copy inside the kernel in one crossing",
        },
        Choice {
            routes: &[
                Route::LargeFile,
                Route::FileToFile,
                Route::LargeFileCopied,
                Route::FileToFileCopied,
            ],
            rank: 50,
            reason: "one copy inside the kernel, in rounds of 64 KiB",
        },
        Choice {
            routes: &[Route::FileToSocket],
            rank: 20,
            reason: "no copy: the socket gets references to the page cache",
        },
        Choice {
            routes: &[Route::FileToNull],
            rank: 20,
            reason: "no copy: the null device drops references to the page cache",
        },
    ],
    tunings: &[],
};

impl Mover for Sendfile {
    fn declaration(&self) -> &'static MoverDeclaration {
        &DECLARATION
    }

    fn probe(&self) -> Probe {
        let Ok((out, into)) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC) else {
            return Probe::Unsupported("pipe2: no pipe available".to_owned());
        };
        // A pipe as the source is refused by a kernel that has the call and lets it be made.
        let answer = sendfile(&into, &out, None, 1);
        probed("sendfile", answer, &[Errno::INVAL, Errno::SPIPE])
    }

    fn serves(&self, source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Result<(), String> {
        only(source, "source", &[Kind::Regular, Kind::Block])?;
        let takers = [Kind::Regular, Kind::Pipe, Kind::Socket, Kind::Char, Kind::Block];
        only(target, "target", &takers)?;
        plain(source, target)?;
        by_value_kept(source, target, job)?;
        apart(source, target, job)
    }

    fn run(&self, source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Result<Outcome, MoveError> {
        let call = |want| sendfile(target.fd(), source.fd(), None, want);
        let figures = |_, bytes| traffic(source, target, bytes);
        repeat(&DECLARATION, source, target, job, call, figures)
    }
}
