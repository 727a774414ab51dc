//! The rounds of a calibration: what a thread does to find out how long it takes.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use iotomy_sys::caches::Evictor;

use super::typical::Rounds;

/// Rounds of a kind are made in as many blocks.
const BLOCKS: usize = 9;
/// Rounds in a block that give one time together.
const TIGHT: u32 = 128;
const WARM: u32 = 16;
/// Cold rounds in all, each of which gives a time.
const COLD: usize = 63;
const COLD_TALKS: usize = 27;
/// The request size of most programs, or less.
const BLOCK: usize = 1 << 10;
/// Sockets used in turn: none is the one used last, and little of it is left in a cache.
const SOCKETS: usize = 16;
/// The size of a request to another thread, and of its answer.
const MESSAGE: usize = 64;

/// The thread that makes the rounds.
pub(super) struct Worker {
    sockets: Vec<[OwnedFd; 2]>,
    near: OwnedFd,
    far: Option<OwnedFd>,
    block: Vec<u8>,
    evictor: Evictor,
    turn: usize,
}

impl Worker {
    pub(super) fn new() -> io::Result<Self> {
        let pair = || UnixStream::pair().map(|(one, other)| [one, other].map(OwnedFd::from));
        let [near, far] = pair()?;
        Ok(Self {
            sockets: (0..SOCKETS).map(|_| pair()).collect::<io::Result<_>>()?,
            near,
            far: Some(far),
            block: vec![1; BLOCK],
            evictor: Evictor::of_second_level(),
            turn: 0,
        })
    }

    /// The other thread's end.
    pub(super) fn take_far(&mut self) -> Option<OwnedFd> {
        self.far.take()
    }

    /// Meets the page faults and the first use of every socket.
    pub(super) fn warm_up(&mut self) {
        for _ in 0..2 * SOCKETS {
            let _ = self.pass();
        }
        self.evictor.evict();
        let _ = self.talk();
    }

    /// Rounds of each kind. A kind that fails has none.
    pub(super) fn rounds(&mut self) -> Rounds {
        let mut rounds = Rounds::default();
        let _ = self.fill(&mut rounds);
        rounds
    }

    /// The kinds alternate, lest all rounds of one fall into one disturbance.
    fn fill(&mut self, rounds: &mut Rounds) -> io::Result<()> {
        for _ in 0..BLOCKS {
            rounds.tight.push(tight_block()?);
            // The first sockets after cold rounds are cold.
            self.pass()?;
            rounds.warm.push(timed(WARM, || self.pass())?);
            self.talk()?;
            rounds.talk.push(timed(WARM / 2, || self.talk())?);
            for _ in 0..COLD / BLOCKS {
                rounds.cold.push(self.cold_pass()?);
            }
            for _ in 0..COLD_TALKS / BLOCKS {
                self.evictor.evict();
                rounds.cold_talk.push(timed(1, || self.talk())?);
            }
        }
        Ok(())
    }

    /// A block through the next socket.
    fn pass(&mut self) -> io::Result<()> {
        self.turn = (self.turn + 1) % SOCKETS;
        let [one, other] = &self.sockets[self.turn];
        write(one, &self.block)?;
        read(other, &mut self.block)
    }

    /// The same, each of the two calls with cold caches: ns.
    fn cold_pass(&mut self) -> io::Result<f64> {
        self.turn = (self.turn + 1) % SOCKETS;
        let [one, other] = &self.sockets[self.turn];
        self.evictor.evict();
        let written = timed(1, || write(one, &self.block))?;
        self.evictor.evict();
        Ok(written + timed(1, || read(other, &mut self.block))?)
    }

    /// A message to the other thread, and its answer.
    fn talk(&mut self) -> io::Result<()> {
        write(&self.near, &[1; MESSAGE])?;
        read(&self.near, &mut [0; MESSAGE])
    }
}

/// By write(2) and not by a library's send: the overhead is measured for this call.
fn write(to: &OwnedFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        bytes = &bytes[rustix::io::retry_on_intr(|| rustix::io::write(to, bytes))?..];
    }
    Ok(())
}

fn read(from: &OwnedFd, mut into: &mut [u8]) -> io::Result<()> {
    while !into.is_empty() {
        match rustix::io::retry_on_intr(|| rustix::io::read(from, &mut *into))? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            got => into = &mut into[got..],
        }
    }
    Ok(())
}

/// The cheapest call, again and again.
fn tight_block() -> io::Result<f64> {
    timed(TIGHT, || {
        std::hint::black_box(rustix::process::getppid());
        Ok(())
    })
}

/// ns a round.
fn timed(rounds: u32, mut round: impl FnMut() -> io::Result<()>) -> io::Result<f64> {
    let start = Instant::now();
    for _ in 0..rounds {
        round()?;
    }
    Ok(start.elapsed().as_nanos() as f64 / f64::from(rounds))
}

/// The other thread: answers until the requests end.
pub(super) fn answer(far: OwnedFd) {
    let mut message = [0; MESSAGE];
    while read(&far, &mut message).is_ok() {
        if write(&far, &message).is_err() {
            break;
        }
    }
}
