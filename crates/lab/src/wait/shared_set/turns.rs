//! Events that are delivered in turns, to count how many threads are told of each.
//!
//! The one invariant: a thread acts only when it is its turn. Every thread polls before the first
//! one receives, so the counts are the same in every run.

use std::sync::mpsc::{Receiver, RecvError, Sender, channel};
use std::thread::{Builder, Scope, scope};
use std::time::Duration;

use iotomy_host::Skip;
use rustix::io::Errno;

use crate::wait::shared_set::sets::Shared;

/// The deliveries of a number of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Deliveries {
    /// Those beyond the first of each event.
    pub(super) duplicates: usize,
    /// Events that no thread was told of.
    pub(super) lost: usize,
}

/// What a thread does in its turn.
enum Turn {
    /// Polls the set, without waiting; the answer is the socket that it is told of.
    Poll,
    /// Serves a socket; the answer is the socket if it had a byte.
    Serve(usize),
}

/// A thread that shares the set. It ends when this is dropped.
struct Member {
    turns: Sender<Turn>,
    answers: Receiver<Result<Option<usize>, Errno>>,
}

impl Member {
    fn start<'s>(scope: &'s Scope<'s, '_>, shared: &'s Shared) -> Result<Self, Skip> {
        let ((turns, turn), (answer, answers)) = (channel(), channel());
        let work = move || {
            while let Ok(turn) = turn.recv() {
                // Nobody receives it if another thread has failed.
                let _ = answer.send(act(shared, turn));
            }
        };
        Builder::new().spawn_scoped(scope, work).map_err(|e| Skip::refused("clone", e))?;
        Ok(Self { turns, answers })
    }

    /// Gives the thread its turn, and waits until it has acted.
    fn take(&self, turn: Turn) -> Result<Option<usize>, Skip> {
        let answer = self.turns.send(turn).map_err(|_| RecvError);
        let answer = answer.and_then(|()| self.answers.recv());
        let answer = answer.map_err(|_| Skip("a thread ended before its turn".to_owned()))?;
        answer.map_err(|e| Skip::refused("poll of a shared set", e))
    }
}

fn act(shared: &Shared, turn: Turn) -> Result<Option<usize>, Errno> {
    match turn {
        Turn::Poll => shared.wait(Duration::ZERO),
        Turn::Serve(at) => {
            let had_byte = shared.receive(at)?;
            shared.served(at)?;
            Ok(had_byte.then_some(at))
        }
    }
}

/// Sends events one by one to the sockets of a set that so many threads share.
pub(super) fn deliver(shared: &Shared, threads: usize, events: usize) -> Result<Deliveries, Skip> {
    scope(|scope| {
        let members: Result<Vec<Member>, Skip> =
            (0..threads).map(|_| Member::start(scope, shared)).collect();
        let (members, mut found) = (members?, Deliveries::default());
        for event in 0..events {
            shared.send(event % shared.sockets()).map_err(|e| Skip::refused("sendto", e))?;
            let told: Result<Vec<Option<usize>>, Skip> =
                members.iter().map(|member| member.take(Turn::Poll)).collect();
            let mut received = 0;
            for (member, at) in members.iter().zip(told?) {
                let Some(at) = at else { continue };
                match member.take(Turn::Serve(at))? {
                    Some(_) => received += 1,
                    None => found.duplicates += 1,
                }
            }
            found.lost += usize::from(received == 0);
        }
        Ok(found)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait::shared_set::sets::{DEV_POLL, DEV_POLL_LOCK, EVENT_PORTS};

    #[test]
    fn each_thread_is_told_of_each_event_by_a_set_without_a_lock_and_one_thread_otherwise() {
        const EVENTS: usize = 23;
        for (set, threads, duplicates) in [
            (DEV_POLL, 1, 0),
            (DEV_POLL, 2, EVENTS),
            (DEV_POLL, 4, 3 * EVENTS),
            (DEV_POLL_LOCK, 4, 0),
            (EVENT_PORTS, 4, 0),
        ] {
            for sockets in [1, 5] {
                let shared = Shared::new(set, sockets).unwrap();
                let found = deliver(&shared, threads, EVENTS).unwrap();
                let wanted = Deliveries { duplicates, lost: 0 };
                assert_eq!(found, wanted, "{set}, {threads} threads, {sockets} sockets");
            }
        }
    }
}
