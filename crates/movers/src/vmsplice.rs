//! The `vmsplice` mover.
//!
//! ```text
//! source ──read(2)──▶ fresh pages of this process ──vmsplice(2)──▶ target pipe
//!          copy 1                                   references
//! ```
//!
//! One copy and two crossings a block: the write into the pipe only passes references. Later
//! changes of the source do not show, since it was read.
//!
//! The one tricky thing is when a page may be written to again: not before the last reader has read
//! it, and that cannot be known here. An empty pipe only shows that the references were taken;
//! splice(2) or tee(2) may have passed them on to a further pipe or socket, whose readers would see
//! the next block instead. So no page is used twice: each block gets fresh pages, unmapped once
//! they are given away, and the kernel frees them behind the last reader. Two alternating buffers
//! as long as the pipe would save the page faults, and are wrong.

use rustix::event::PollFlags;
use rustix::io::{Errno, read};
use rustix::pipe::{PipeFlags, pipe_with};

use iotomy_sys::mapping::Pages;

use crate::in_kernel::probed;
use crate::patience::patiently;
use crate::position::give_back;
use crate::refusal::{is_refusal, only, refused_or_failed};
use crate::{
    End, Holes, Job, Kind, MoveError, Moved, Mover, MoverDeclaration, Outcome, Probe, Side, Traffic,
};

pub(crate) struct Vmsplice;

static DECLARATION: MoverDeclaration = MoverDeclaration {
    name: "vmsplice",
    summary: "read(2) into fresh pages, vmsplice(2) from them into a pipe",
    description: "The kernel copies each block into fresh pages of this process and passes \
        references to the pipe: one copy, two crossings, and page faults.",
    man: &["vmsplice(2)"],
    calls: &["vmsplice", "mmap", "read", "munmap", "ppoll", "lseek"],
    by_reference: false,
    positioned: false,
    holes: Holes::Filled,
    chosen: &[],
    tunings: &["block-size=65536", "block-size=262144", "block-size=1048576"],
};

impl Mover for Vmsplice {
    fn declaration(&self) -> &'static MoverDeclaration {
        &DECLARATION
    }

    fn probe(&self) -> Probe {
        let answer = pipe_with(PipeFlags::CLOEXEC).and_then(|(_out, into)| {
            let pages = Pages::new(1).map_err(errno)?;
            pages.splice_into(std::os::fd::AsFd::as_fd(&into), 0..1).map_err(errno)
        });
        probed("vmsplice", answer, &[])
    }

    fn serves(&self, source: &End<'_>, target: &End<'_>, _: &Job<'_>) -> Result<(), String> {
        if source.kind() == Kind::Directory {
            return Err("the source is a directory".to_owned());
        }
        if source.is_direct() {
            return Err("the source is open with O_DIRECT".to_owned());
        }
        only(target, "target", &[Kind::Pipe])
    }

    fn buffers(&self, _: &End<'_>, _: &End<'_>, job: &Job<'_>) -> u64 {
        job.want(0, job.block().max(1)) as u64
    }

    fn run(&self, source: &End<'_>, target: &End<'_>, job: &Job<'_>) -> Result<Outcome, MoveError> {
        let mut bytes = 0;
        loop {
            let want = job.want(bytes, job.block().max(1));
            if want == 0 {
                break;
            }
            let mut pages = match Pages::new(want) {
                Ok(pages) => pages,
                Err(e) => {
                    let moved = moved(bytes);
                    return refused_or_failed(&DECLARATION, "mmap", Side::Either, moved, errno(e));
                }
            };
            let got = patiently(source.fd(), PollFlags::IN, || read(source.fd(), &mut *pages))
                .map_err(|e| failed("read", Side::Source, bytes, e))?;
            if got == 0 {
                break;
            }
            let mut given = 0;
            while given < got {
                // vmsplice(2) heeds no O_NONBLOCK: it waits for room.
                let put = patiently(target.fd(), PollFlags::OUT, || {
                    pages.splice_into(target.fd(), given..got).map_err(errno)
                });
                match put {
                    Ok(put @ 1..) => {
                        given += put;
                        bytes += put as u64;
                        job.advance(put as u64);
                    }
                    answer => {
                        let errno = answer.err().unwrap_or(Errno::IO);
                        let lost = give_back(source, (got - given) as u64);
                        if bytes == 0 && lost == 0 && is_refusal(errno) {
                            return Ok(Outcome::Refused { call: "vmsplice", errno: Some(errno) });
                        }
                        return Err(failed("vmsplice", Side::Target, bytes, errno).losing(lost));
                    }
                }
            }
        }
        Ok(Outcome::Done(moved(bytes)))
    }
}

/// The traffic of `bytes` that are read and given away.
fn moved(bytes: u64) -> Moved {
    Moved { bytes, traffic: Traffic { referenced: bytes, copied: bytes, touched: bytes } }
}

fn failed(call: &'static str, side: Side, bytes: u64, errno: Errno) -> MoveError {
    MoveError::new(&DECLARATION, call, side, moved(bytes), errno)
}

fn errno(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}
