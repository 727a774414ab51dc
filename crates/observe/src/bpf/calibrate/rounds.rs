//! The rounds of a calibration: what a thread does to find out how long it takes.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Instant;

use iotomy_sys::caches::Evictor;
use iotomy_sys::pace::busy_work;

use super::typical::{Block, Rounds};

/// Rounds in a block that give one time together.
const TIGHT: u32 = 128;
const WARM: u32 = 16;
/// Cold rounds, each of which gives a time.
const COLD: usize = 21;
const COLD_TALKS: usize = 9;
/// Turns of the work that tells the pace of a CPU: half a microsecond.
const PACE: u32 = 200;
/// The request size of most programs, or less.
const BLOCK: usize = 1 << 10;
/// Pairs of descriptors used in turn: none is the one used last, and little of it is left in a cache.
const PAIRS: usize = 16;
/// The size of a request to another thread, and of its answer.
const MESSAGE: usize = 64;

/// Descriptors that the threads share, as they take turns: one to write to and one to read from, each.
pub(super) type Pairs = Arc<[[OwnedFd; 2]]>;

/// `sockets`: whether calls on sockets are watched more closely than others.
pub(super) fn pairs(sockets: bool) -> io::Result<Pairs> {
    let pair = || match sockets {
        true => socket_pair(),
        // Without /dev/null or /dev/zero, sockets serve.
        false => device_pair().or_else(|_| socket_pair()),
    };
    (0..PAIRS).map(|_| pair()).collect()
}

/// The thread that makes the rounds.
pub(super) struct Worker {
    pairs: Pairs,
    near: OwnedFd,
    far: Option<OwnedFd>,
    block: Vec<u8>,
    evictor: Evictor,
    turn: usize,
}

impl Worker {
    pub(super) fn new(pairs: Pairs) -> io::Result<Self> {
        let [near, far] = socket_pair()?;
        Ok(Self {
            pairs,
            near,
            far: Some(far),
            block: vec![1; BLOCK],
            evictor: Evictor::of_half_the_second_level(),
            turn: 0,
        })
    }

    /// The other thread's end.
    pub(super) fn take_far(&mut self) -> Option<OwnedFd> {
        self.far.take()
    }

    /// Meets the page faults and the first use of every descriptor.
    pub(super) fn warm_up(&mut self) {
        for _ in 0..2 * PAIRS {
            let _ = self.pass();
        }
        self.evictor.evict();
        let _ = self.talk();
    }

    /// Blocks of rounds of every kind. One that fails, and those after it, are not there.
    pub(super) fn rounds(&mut self, blocks: usize) -> Rounds {
        Rounds { blocks: (0..blocks).map_while(|_| self.block().ok()).collect() }
    }

    fn block(&mut self) -> io::Result<Block> {
        let before = pace();
        let mut least_pace = before;
        let tight = tight_rounds()?;
        // The first descriptors after cold rounds are cold.
        self.pass()?;
        let warm = timed(WARM, || self.pass())?;
        self.talk()?;
        let talk = timed(WARM / 2, || self.talk())?;
        let path = timed(WARM, ask_for_a_path)?;
        let mut cold = Vec::new();
        for _ in 0..COLD {
            cold.push(self.cold_pass()?);
            least_pace = least_pace.min(pace());
        }
        let mut cold_talk = Vec::new();
        for _ in 0..COLD_TALKS {
            self.evictor.evict();
            cold_talk.push(timed(1, || self.talk())?);
        }
        let after = pace();
        let [pace, least_pace] = [before.max(after), least_pace.min(after)];
        Ok(Block { pace, least_pace, tight, warm, cold, talk, cold_talk, path })
    }

    /// A block through the next pair.
    fn pass(&mut self) -> io::Result<()> {
        self.turn = (self.turn + 1) % PAIRS;
        let [one, other] = &self.pairs[self.turn];
        write(one, &self.block)?;
        read(other, &mut self.block)
    }

    /// The same, each of the two calls with cold caches: ns.
    fn cold_pass(&mut self) -> io::Result<f64> {
        self.turn = (self.turn + 1) % PAIRS;
        let [one, other] = &self.pairs[self.turn];
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

fn socket_pair() -> io::Result<[OwnedFd; 2]> {
    UnixStream::pair().map(|(one, other)| [one, other].map(OwnedFd::from))
}

/// Calls on these are short: what watching adds is much of their time, and is seen although the speed of a CPU changes
/// by a fifth from one moment to the next.
fn device_pair() -> io::Result<[OwnedFd; 2]> {
    let null = OpenOptions::new().write(true).open("/dev/null")?;
    Ok([null, File::open("/dev/zero")?].map(OwnedFd::from))
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

/// The least time that the same work took: ns.
fn pace() -> f64 {
    let time = || {
        let start = Instant::now();
        busy_work(PACE);
        start.elapsed().as_nanos() as f64
    };
    (0..2).map(|_| time()).fold(f64::INFINITY, f64::min)
}

/// The cheapest call, again and again.
fn tight_rounds() -> io::Result<f64> {
    timed(TIGHT, || {
        std::hint::black_box(rustix::process::getppid());
        Ok(())
    })
}

/// Whether there is such a file is the same.
fn ask_for_a_path() -> io::Result<()> {
    let _ = rustix::fs::access(c"/usr/lib/locale/no-such-locale", rustix::fs::Access::EXISTS);
    Ok(())
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
