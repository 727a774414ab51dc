//! The overhead that watching adds to a call and to a switch, measured on this machine.
//!
//! Two teams of threads of this process work in rounds of several kinds ([`rounds`]): a thread makes the cheapest call
//! there is; it writes to and reads from a dozen descriptors in turn; it does so with caches that other work has filled,
//! as a busy server's are; it makes calls with a path; it sends a request to another thread and sleeps until the answer
//! arrives. One team works while the programs are loaded and once more before they are attached. Then one is watched, the
//! other is not, and they take turns, a block of rounds each; under a filter they do so once more, with calls that are
//! left out. The differences between the typical (median) rounds are the overheads ([`typical`]). A fastest round would
//! be one with warm caches, which no server has.
//!
//! What slows the machine for a while slows the blocks of both teams: the difference between the watched and the unwatched
//! one is that of neighbours. The exception is a CPU that shares its core with this one, and is busy for a moment: how
//! long the same work takes between the rounds tells those that it slowed. Where something else watches calls for a
//! moment, one of the two measurements before may be without that.
//!
//! The threads share a CPU, so that no time of theirs is another's idle time, and all of it is theirs.

mod rounds;
mod typical;

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use rustix::thread::{CpuSet, gettid, sched_getcpu, sched_setaffinity};

use self::rounds::{Pairs, Worker, answer};
use self::typical::{Phases, Rounds, Turns};
use super::object::{Adoption, Session};
use super::refusal::NO_DESCRIPTORS;
use crate::price::Price;

const THREAD_ENDED: &str = "cannot calibrate: the thread ended";

/// Blocks of rounds, of a kind each team makes so many.
const BLOCKS: usize = 9;
/// Those of calls that are let pass, whose overhead is most of it that of an unwatched call: start-up waits for them.
const BLOCKS_LET_PASS: usize = 5;

/// A thread that makes rounds on request, and the one that answers its messages.
struct Team {
    ask: SyncSender<usize>,
    hear: Receiver<Rounds>,
    threads: [JoinHandle<()>; 2],
    ids: [u32; 2],
}

impl Team {
    fn begin(pairs: Pairs, cpu: usize) -> Result<Self, String> {
        let mut worker = Worker::new(pairs).map_err(|error| no_descriptors(&error))?;
        let far = worker.take_far();
        let (ask, asked) = sync_channel::<usize>(0);
        let (tell, hear) = sync_channel(0);
        let (tell_id, hear_id) = sync_channel(2);
        let tell_own = tell_id.clone();
        let begin = |work: Box<dyn FnOnce() + Send>| {
            let thread = std::thread::Builder::new().name("calibrate".to_owned());
            thread.spawn(work).map_err(|e| format!("cannot calibrate: no thread: {e}"))
        };
        let caller = begin(Box::new(move || {
            stay_on(cpu);
            let _ = tell_own.send((0, gettid()));
            worker.warm_up();
            for blocks in asked {
                if tell.send(worker.rounds(blocks)).is_err() {
                    break;
                }
            }
        }))?;
        let peer = begin(Box::new(move || {
            stay_on(cpu);
            let _ = tell_id.send((1, gettid()));
            if let Some(far) = far {
                answer(far);
            }
        }))?;
        let mut ids = [0; 2];
        for (nth, id) in hear_id.iter().take(2) {
            ids[nth] = id.as_raw_nonzero().get().unsigned_abs();
        }
        Ok(Self { ask, hear, threads: [caller, peer], ids })
    }

    fn request(&self, blocks: usize) -> Result<(), String> {
        self.ask.send(blocks).map_err(|_| THREAD_ENDED.to_owned())
    }

    /// The result of the request.
    fn answer(&self) -> Result<Rounds, String> {
        let rounds = self.hear.recv().map_err(|_| THREAD_ENDED.to_owned())?;
        match rounds.are_complete() {
            true => Ok(rounds),
            false => Err("cannot calibrate: no round was made".to_owned()),
        }
    }

    fn rounds(&self, blocks: usize) -> Result<Rounds, String> {
        self.request(blocks)?;
        self.answer()
    }

    /// The caller ends for want of requests, and its peer with it.
    fn end(self) {
        drop(self.ask);
        for thread in self.threads {
            let _ = thread.join();
        }
    }
}

/// Threads that work on request.
pub(super) struct Calibration {
    unwatched: Team,
    watched: Team,
}

impl Calibration {
    /// Makes the threads, which begin beside the loading of the programs. `sockets`: whether calls on sockets are watched
    /// more closely than others.
    ///
    /// # Errors
    /// The resource that did not suffice.
    pub(super) fn begin(sockets: bool) -> Result<Self, String> {
        let pairs = rounds::pairs(sockets).map_err(|error| no_descriptors(&error))?;
        let cpu = sched_getcpu();
        let [unwatched, watched] = [Team::begin(pairs.clone(), cpu)?, Team::begin(pairs, cpu)?];
        unwatched.request(BLOCKS)?;
        Ok(Self { unwatched, watched })
    }

    /// Blocks of both, a block each in turn.
    fn turns(&self, blocks: usize) -> Result<Turns, String> {
        let mut turns = Turns::default();
        for _ in 0..blocks {
            turns.unwatched.blocks.append(&mut self.unwatched.rounds(1)?.blocks);
            turns.watched.blocks.append(&mut self.watched.rounds(1)?.blocks);
        }
        Ok(turns)
    }

    /// Attaches the loaded programs, then those of `beside`, and returns the overhead with all of
    /// them. `lets_pass`: whether calls that are left out have one of their own.
    ///
    /// # Errors
    /// The error that kept them from being attached.
    pub(super) fn price(
        self,
        session: &mut Session,
        lets_pass: bool,
        paths: bool,
        beside: impl FnOnce(&Session) -> Result<(), String>,
    ) -> Result<Price, String> {
        let bare = [self.unwatched.answer()?, self.unwatched.rounds(BLOCKS)?];
        session.attach()?;
        beside(session)?;
        for id in self.watched.ids {
            session.adopt(Adoption::Thread(id))?;
        }
        // Their first calls make rows.
        self.watched.rounds(1)?;
        let counted = self.turns(BLOCKS)?;
        let passed = match lets_pass {
            true => {
                session.leave_out_own_calls()?;
                Some(self.turns(BLOCKS_LET_PASS)?)
            }
            false => None,
        };
        self.unwatched.end();
        self.watched.end();
        Ok(Phases { bare, counted, passed, paths }.price())
    }
}

fn no_descriptors(error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(number) if number == rustix::io::Errno::MFILE.raw_os_error() => {
            format!("cannot calibrate: {NO_DESCRIPTORS}")
        }
        _ => format!("cannot calibrate: no descriptors: {error}"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_of_every_kind_are_made_and_leave_no_thread() {
        let calibration = Calibration::begin(true).unwrap();
        assert!(calibration.unwatched.answer().unwrap().are_complete());
        let turns = calibration.turns(BLOCKS).unwrap();
        assert_eq!([turns.unwatched.blocks.len(), turns.watched.blocks.len()], [BLOCKS; 2]);
        let Calibration { unwatched, watched } = calibration;
        unwatched.end();
        watched.end();
    }
}
