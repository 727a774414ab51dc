//! The overhead that watching adds to a call and to a switch, measured on this machine.
//!
//! A thread of this process works in rounds of five kinds: it makes the cheapest call there is; it
//! writes to and reads from a socket; it does so through several sockets in turn and uses the
//! nearest caches for other work in between, as a busy server does; it sends a request to another
//! thread and sleeps until the answer arrives; and the same with its caches used in between. The
//! fastest block of rounds is the least disturbed. The watched rounds less the unwatched ones are
//! the overhead. The unwatched ones run while the programs are loaded, one block after another with
//! a pause between: if neighbours slow the machine for a moment, not all of them are affected. The
//! overhead includes the clock reads, the look-ups and the kernel's slower entry path, all of which
//! the command pays too.
//!
//! The threads share a CPU, so that no time of theirs is another's idle time, and all of it is theirs.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use iotomy_sys::caches::Evictor;
use rustix::thread::{CpuSet, gettid, sched_getcpu, sched_setaffinity};

use super::object::{Adoption, Session};
use super::refusal::NO_DESCRIPTORS;
use crate::price::{Price, Range};

/// Of the watched, of each kind, and of the unwatched.
const BLOCKS: usize = 12;
/// Between unwatched blocks: they are spread over most of the time that loading takes.
const PAUSE: Duration = Duration::from_millis(2);
/// Rounds of a block: of the cheapest call, and of the others.
const TIGHT: u32 = 256;
const ROUNDS: u32 = 16;
/// The request size of most programs, or less.
const BLOCK: usize = 8 << 10;
/// Sockets used in turn: none is the one used last, and little of it is left in a cache.
const SOCKETS: usize = 8;
/// The size of a request to another thread, and of its answer.
const MESSAGE: usize = 64;
const ASKED_COLD: u8 = 1;

const THREAD_ENDED: &str = "cannot calibrate: the thread ended";

/// The time of a round of each kind in the fastest block, in ns.
#[derive(Debug, Clone, Copy)]
struct Fastest {
    /// A call.
    tight: f64,
    /// A write and a read.
    warm: f64,
    cold: f64,
    /// A write and a read on both sides, and two switches.
    talk: f64,
    cold_talk: f64,
}

impl Fastest {
    const NONE: Self = Self {
        tight: f64::INFINITY,
        warm: f64::INFINITY,
        cold: f64::INFINITY,
        talk: f64::INFINITY,
        cold_talk: f64::INFINITY,
    };

    fn or(self, other: Self) -> Self {
        Self {
            tight: self.tight.min(other.tight),
            warm: self.warm.min(other.warm),
            cold: self.cold.min(other.cold),
            talk: self.talk.min(other.talk),
            cold_talk: self.cold_talk.min(other.cold_talk),
        }
    }
}

/// The ends of a range, widened: two calibrations of one machine differ by a twentieth, and a Go server paid a
/// little more than the rounds with cold caches (`make bench-trace`, results/…/trace).
const AT_LEAST: f64 = 0.95;
const AT_MOST: f64 = 1.2;

/// The watched rounds less the unwatched ones.
fn price(bare: &Fastest, watched: &Fastest) -> Price {
    let switch = |talks: f64, calls: f64| (talks - 2.0 * calls) / 2.0;
    let warm = switch(watched.talk - bare.talk, watched.warm - bare.warm);
    let cold = switch(watched.cold_talk - bare.cold_talk, watched.cold - bare.cold);
    let range = |low, high| Range::between(AT_LEAST * low, AT_MOST * high);
    let call = range(watched.tight - bare.tight, (watched.cold - bare.cold) / 2.0);
    Price { call, switch: range(warm, cold), bare_call_ns: bare.tight }
}

/// Threads that work on request.
pub(super) struct Calibration {
    /// The pause before each block.
    ask: SyncSender<Duration>,
    hear: Receiver<Fastest>,
    threads: [JoinHandle<()>; 2],
    ids: [u32; 2],
}

impl Calibration {
    /// Makes the threads, which begin with the unwatched rounds: beside the loading of the programs,
    /// where there is a CPU for that.
    ///
    /// # Errors
    /// The resource that did not suffice.
    pub(super) fn begin() -> Result<Self, String> {
        let mut worker = Worker::new().map_err(|error| match error.raw_os_error() {
            Some(number) if number == rustix::io::Errno::MFILE.raw_os_error() => {
                format!("cannot calibrate: {NO_DESCRIPTORS}")
            }
            _ => format!("cannot calibrate: no pair of sockets: {error}"),
        })?;
        let far = worker.far.take();
        let (ask, asked) = sync_channel::<Duration>(0);
        let (tell, hear) = sync_channel(0);
        let (tell_id, hear_id) = sync_channel(2);
        let cpu = sched_getcpu();
        let tell_own = tell_id.clone();
        let begin = |name: &str, work: Box<dyn FnOnce() + Send>| {
            let thread = std::thread::Builder::new().name(name.to_owned());
            thread.spawn(work).map_err(|e| format!("cannot calibrate: no thread: {e}"))
        };
        let caller = begin(
            "calibrate",
            Box::new(move || {
                stay_on(cpu);
                let _ = tell_own.send((0, gettid()));
                for pause in asked {
                    let fastest = (0..BLOCKS).fold(Fastest::NONE, |fastest, _| {
                        std::thread::sleep(pause);
                        fastest.or(worker.block().unwrap_or(Fastest::NONE))
                    });
                    if tell.send(fastest).is_err() {
                        break;
                    }
                }
            }),
        )?;
        let peer = begin(
            "calibrate",
            Box::new(move || {
                stay_on(cpu);
                let _ = tell_id.send((1, gettid()));
                if let Some(far) = far {
                    answer(far);
                }
            }),
        )?;
        let mut ids = [0; 2];
        for (nth, id) in hear_id.iter().take(2) {
            ids[nth] = id.as_raw_nonzero().get().unsigned_abs();
        }
        let calibration = Self { ask, hear, threads: [caller, peer], ids };
        calibration.request(PAUSE)?;
        Ok(calibration)
    }

    fn request(&self, pause: Duration) -> Result<(), String> {
        self.ask.send(pause).map_err(|_| THREAD_ENDED.to_owned())
    }

    /// The result of the request.
    fn fastest(&self) -> Result<Fastest, String> {
        let fastest = self.hear.recv().map_err(|_| THREAD_ENDED.to_owned())?;
        match fastest.cold_talk.is_finite() {
            true => Ok(fastest),
            false => Err("cannot calibrate: no round was made".to_owned()),
        }
    }

    /// Attaches the loaded programs, then those of `beside`, and returns the overhead with all of
    /// them.
    ///
    /// # Errors
    /// The error that kept them from being attached.
    pub(super) fn price(
        self,
        session: &mut Session,
        beside: impl FnOnce(&Session) -> Result<(), String>,
    ) -> Result<Price, String> {
        let bare = self.fastest()?;
        session.attach()?;
        beside(session)?;
        for id in self.ids {
            session.adopt(Adoption::Thread(id))?;
        }
        self.request(Duration::ZERO)?;
        let watched = self.fastest()?;
        // The caller ends for want of requests, and its peer with it.
        drop(self.ask);
        for thread in self.threads {
            let _ = thread.join();
        }
        Ok(price(&bare, &watched))
    }
}

/// Where it cannot stay, the rounds take longer, watched or not.
pub(super) fn stay_on(cpu: usize) {
    let mut only = CpuSet::new();
    if cpu < CpuSet::MAX_CPU {
        only.set(cpu);
        let _ = sched_setaffinity(None, &only);
    }
}

/// The thread that makes the rounds.
struct Worker {
    sockets: Vec<[OwnedFd; 2]>,
    near: OwnedFd,
    far: Option<OwnedFd>,
    block: Vec<u8>,
    evictor: Evictor,
}

impl Worker {
    fn new() -> io::Result<Self> {
        let pair = || UnixStream::pair().map(|(one, other)| [one, other].map(OwnedFd::from));
        let [near, far] = pair()?;
        Ok(Self {
            sockets: (0..SOCKETS).map(|_| pair()).collect::<io::Result<_>>()?,
            near,
            far: Some(far),
            block: vec![1; BLOCK],
            evictor: Evictor::default(),
        })
    }

    /// A block of each kind.
    fn block(&mut self) -> io::Result<Fastest> {
        // The shortest of them, several times, lest all of it fall into one disturbance.
        let mut tight = f64::INFINITY;
        tight = tight.min(tight_loop()?);
        let warm = timed(ROUNDS, |_| self.pass(0))?;
        tight = tight.min(tight_loop()?);
        let cold = timed(ROUNDS, |round| {
            self.evictor.evict();
            self.pass(round as usize % SOCKETS)
        })?;
        tight = tight.min(tight_loop()?);
        let talk = timed(ROUNDS, |_| self.talk(0))?;
        let cold_talk = timed(ROUNDS, |_| {
            self.evictor.evict();
            self.talk(ASKED_COLD)
        })?;
        tight = tight.min(tight_loop()?);
        Ok(Fastest { tight, warm, cold, talk, cold_talk })
    }

    /// A block through a socket.
    fn pass(&mut self, nth: usize) -> io::Result<()> {
        let [one, other] = &self.sockets[nth];
        write(one, &self.block)?;
        read(other, &mut self.block)
    }

    /// A message to the other thread, and its answer.
    fn talk(&mut self, how: u8) -> io::Result<()> {
        write(&self.near, &[how; MESSAGE])?;
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
fn tight_loop() -> io::Result<f64> {
    timed(TIGHT, |_| {
        std::hint::black_box(rustix::process::getppid());
        Ok(())
    })
}

/// ns a round.
fn timed(rounds: u32, mut round: impl FnMut(u32) -> io::Result<()>) -> io::Result<f64> {
    let start = Instant::now();
    for nth in 0..rounds {
        round(nth)?;
    }
    Ok(start.elapsed().as_nanos() as f64 / f64::from(rounds))
}

/// The other thread: answers until the requests end.
fn answer(far: OwnedFd) {
    let evictor = Evictor::default();
    let mut message = [0; MESSAGE];
    while read(&far, &mut message).is_ok() {
        if message[0] == ASKED_COLD {
            evictor.evict();
        }
        if write(&far, &message).is_err() {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BARE: Fastest =
        Fastest { tight: 80.0, warm: 1_500.0, cold: 4_000.0, talk: 4_000.0, cold_talk: 9_000.0 };

    #[test]
    fn what_is_added_to_rounds_is_shared_out_among_their_calls_and_switches() {
        let watched = Fastest {
            tight: 280.0,
            warm: 2_000.0,
            cold: 5_200.0,
            // Two passes' calls and two switches at 300 and 700 more.
            talk: 4_000.0 + 2.0 * 500.0 + 600.0,
            cold_talk: 9_000.0 + 2.0 * 1_200.0 + 1_400.0,
        };
        let price = price(&BARE, &watched);
        assert_eq!(price.call.ends(), [0.95 * 200.0, 1.2 * 600.0]);
        assert_eq!(price.bare_call_ns, 80.0);
        assert_eq!(price.switch.ends(), [0.95 * 300.0, 1.2 * 700.0]);
    }

    #[test]
    fn a_disturbed_calibration_makes_no_price_negative() {
        let watched =
            Fastest { tight: 70.0, warm: 1_400.0, cold: 3_000.0, talk: 1_000.0, cold_talk: 2.0 };
        let price = price(&BARE, &watched);
        assert_eq!((price.call.ends(), price.switch.ends()), ([0.0; 2], [0.0; 2]));
    }

    #[test]
    fn rounds_of_every_kind_are_made_and_leave_no_thread() {
        let calibration = Calibration::begin().unwrap();
        let fastest = calibration.fastest().unwrap();
        for ns in [fastest.tight, fastest.warm, fastest.cold, fastest.talk, fastest.cold_talk] {
            assert!(ns > 0.0 && ns.is_finite(), "{fastest:?}");
        }
        let Calibration { ask, threads, .. } = calibration;
        drop(ask);
        for thread in threads {
            thread.join().unwrap();
        }
    }
}
