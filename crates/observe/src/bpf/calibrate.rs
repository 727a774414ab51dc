//! The overhead that watching adds to a call and to a switch, measured on this machine.
//!
//! A thread of this process works in rounds of several kinds ([`rounds`]): it makes the cheapest call there is; it
//! writes to and reads from a dozen descriptors in turn; it does so with caches that other work has filled, as a busy
//! server's are; it makes calls with a path; it sends a request to another thread and sleeps until the answer arrives. It does all of that several
//! times: while the programs are loaded and once more before they are attached, beside them as an unwatched thread, as
//! a watched one, and, under a filter, with calls that are left out. The differences between the typical (median)
//! rounds are the overheads ([`typical`]). A fastest round would be one with warm caches, which no server has.
//!
//! All but the first follow each other within some 20 ms, and nothing else of iotomy runs meanwhile: what slows the
//! machine slows all of them. The exception is a CPU that shares its core with this one, and is busy for a while: how long
//! the same work takes between the rounds tells those that it slowed. Where something else watches calls for a moment,
//! one of the two measurements before may be without that.
//!
//! The threads share a CPU, so that no time of theirs is another's idle time, and all of it is theirs.

mod rounds;
mod typical;

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use rustix::thread::{CpuSet, gettid, sched_getcpu, sched_setaffinity};

use self::rounds::{Worker, answer};
use self::typical::{Phases, Rounds};
use super::object::{Adoption, Session};
use super::refusal::NO_DESCRIPTORS;
use crate::price::Price;

const THREAD_ENDED: &str = "cannot calibrate: the thread ended";

/// Threads that work on request.
pub(super) struct Calibration {
    ask: SyncSender<()>,
    hear: Receiver<Rounds>,
    threads: [JoinHandle<()>; 2],
    ids: [u32; 2],
}

impl Calibration {
    /// Makes the threads, which begin beside the loading of the programs. `sockets`: whether calls on sockets are watched
    /// more closely than others.
    ///
    /// # Errors
    /// The resource that did not suffice.
    pub(super) fn begin(sockets: bool) -> Result<Self, String> {
        let mut worker = Worker::new(sockets).map_err(|error| match error.raw_os_error() {
            Some(number) if number == rustix::io::Errno::MFILE.raw_os_error() => {
                format!("cannot calibrate: {NO_DESCRIPTORS}")
            }
            _ => format!("cannot calibrate: no descriptors: {error}"),
        })?;
        let far = worker.take_far();
        let (ask, asked) = sync_channel::<()>(0);
        let (tell, hear) = sync_channel(0);
        let (tell_id, hear_id) = sync_channel(2);
        let cpu = sched_getcpu();
        let tell_own = tell_id.clone();
        let begin = |work: Box<dyn FnOnce() + Send>| {
            let thread = std::thread::Builder::new().name("calibrate".to_owned());
            thread.spawn(work).map_err(|e| format!("cannot calibrate: no thread: {e}"))
        };
        let caller = begin(Box::new(move || {
            stay_on(cpu);
            let _ = tell_own.send((0, gettid()));
            worker.warm_up();
            for () in asked {
                if tell.send(worker.rounds()).is_err() {
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
        let calibration = Self { ask, hear, threads: [caller, peer], ids };
        calibration.request()?;
        Ok(calibration)
    }

    fn request(&self) -> Result<(), String> {
        self.ask.send(()).map_err(|_| THREAD_ENDED.to_owned())
    }

    fn rounds(&self) -> Result<Rounds, String> {
        self.request()?;
        self.answer()
    }

    /// The result of the request.
    fn answer(&self) -> Result<Rounds, String> {
        let rounds = self.hear.recv().map_err(|_| THREAD_ENDED.to_owned())?;
        match rounds.are_complete() {
            true => Ok(rounds),
            false => Err("cannot calibrate: no round was made".to_owned()),
        }
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
        let bare = [self.answer()?, self.rounds()?];
        session.attach()?;
        beside(session)?;
        let unwatched = self.rounds()?;
        for id in self.ids {
            session.adopt(Adoption::Thread(id))?;
        }
        let watched = self.rounds()?;
        let passed = match lets_pass {
            true => {
                session.leave_out_own_calls()?;
                Some(self.rounds()?)
            }
            false => None,
        };
        // The caller ends for want of requests, and its peer with it.
        drop(self.ask);
        for thread in self.threads {
            let _ = thread.join();
        }
        Ok(Phases { bare, unwatched, watched, passed, paths }.price())
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
        assert!(calibration.answer().unwrap().are_complete());
        assert!(calibration.rounds().unwrap().are_complete());
        let Calibration { ask, threads, .. } = calibration;
        drop(ask);
        for thread in threads {
            thread.join().unwrap();
        }
    }
}
