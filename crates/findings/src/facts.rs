//! The facts that findings rest on, and whether a record has them whole.
//!
//! A record of some calls (`--call`, `--where`), of a part of a run (`-p`, `--until`, `--ring`, `-i`), of some of its
//! processes (`--only`) or with losses lacks facts without a sign in its tables: a call that was not counted looks
//! as one that was not made. So no rule decides by itself whether it may speak: it declares its facts, and
//! the registry asks it only where the record has all of them.

use iotomy_record::calls::{ALL_RINGS, RING_PREFIX, group};
use iotomy_record::{Anatomy, Call, RingOperation, Trace};

/// What a rule reads from a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    /// The number, errors, bytes and times of the calls of these names; of all calls if there is no name.
    Calls(&'static [&'static str]),
    /// The time in the calls of these names, of which unfinished ones have their part.
    Times(&'static [&'static str]),
    /// As of calls, of the requests to io_uring of these operations; of all if there is no name.
    Rings(&'static [&'static str]),
    /// The bytes read from, written to and mapped of each file.
    Files,
    /// The paths that calls were given.
    Paths,
    /// The time of threads by state.
    Ledger,
    /// All processes of the run: none of them was left out.
    Tree,
    /// The run from its beginning: the first use of a file, descriptors made before they are used.
    Beginning,
    /// The run to its end.
    End,
    /// Where the time of calls was spent, by layer.
    Samples,
}

/// Of calls of a name, so many may be unfinished before their number says too little.
const UNFINISHED: u64 = 10;

impl Fact {
    /// Whether a record has the fact whole, as if nothing had been left out and nothing lost.
    pub(crate) fn is_whole(self, trace: &Trace) -> bool {
        let (view, observer) = (&trace.view, &trace.observer);
        let has_all_events = observer.lost_events == 0 && view.r#where.is_empty();
        match self {
            Self::Calls(names) => {
                has_all_events && counts_all(&view.calls, names) && most_ended(&trace.calls, names)
            }
            Self::Times(names) => has_all_events && counts_all(&view.calls, names),
            Self::Rings(names) => {
                has_all_events
                    && observer.lost_requests == 0
                    && counts_rings(&view.calls, names)
                    && !has_unseen_ring(trace)
                    && most_completed(&trace.ring_operations, names)
            }
            Self::Files => {
                let moving = group("%io").map_or(&[][..], |group| group.calls);
                has_all_events && observer.lost_files == 0 && counts_all(&view.calls, moving)
            }
            Self::Paths => has_all_events && observer.lost_paths == 0,
            Self::Ledger => observer.lost_events == 0,
            Self::Tree => {
                let is_left_out = view.only || !trace.unwatched_children.is_empty();
                observer.lost_events == 0 && !is_left_out
            }
            Self::Beginning => {
                let is_late = trace.interval.as_ref().is_some_and(|one| one.number > 1)
                    || trace.ring.as_ref().is_some_and(|ring| ring.start_ns > 0);
                !is_late && trace.targets.is_empty() && !view.machine
            }
            Self::End => {
                let is_early = trace.interval.as_ref().is_some_and(|one| !one.is_last);
                !is_early && trace.ended_by.is_none() && trace.exit.is_some()
            }
            Self::Samples => has_all_events,
        }
    }

    /// The same of an anatomy, whose samples may be lost or left out.
    pub(crate) fn is_whole_in(self, record: &Anatomy) -> bool {
        let sampling = &record.sampling;
        let lost = [sampling.lost, sampling.lost_stacks, sampling.lost_sleeps, sampling.left_out];
        self.is_whole(&record.trace) && (self != Self::Samples || lost == [0; 4])
    }
}

/// Whether a restriction to `chosen` (calls and groups) counts all of these calls.
fn counts_all(chosen: &[String], names: &[&str]) -> bool {
    let counts = |name: &&str| {
        chosen
            .iter()
            .any(|one| one == name || group(one).is_some_and(|group| group.calls.contains(name)))
    };
    chosen.is_empty() || !names.is_empty() && names.iter().all(counts)
}

/// The same for operations of io_uring.
fn counts_rings(chosen: &[String], names: &[&str]) -> bool {
    let counts =
        |name: &&str| chosen.iter().any(|one| one.strip_prefix(RING_PREFIX) == Some(*name));
    let counts_each = || !names.is_empty() && names.iter().all(counts);
    chosen.is_empty() || chosen.iter().any(|one| one == ALL_RINGS) || counts_each()
}

/// Whether a ring may have done what the record does not have.
fn has_unseen_ring(trace: &Trace) -> bool {
    let is_ring = |call: &&Call| ["io_uring_enter", "io_uring_setup"].contains(&&*call.syscall);
    let used = trace.calls.iter().filter(is_ring).any(|call| call.calls > 0 || call.in_flight > 0);
    used && trace.observer.sees_rings != Some(true) && trace.ring_operations.is_empty()
}

/// Whether unfinished calls are few: they are in no other count.
fn most_ended(calls: &[Call], names: &[&str]) -> bool {
    let those = calls.iter().filter(|call| names.is_empty() || names.contains(&&*call.syscall));
    is_most(those.map(|call| (call.calls, call.in_flight)))
}

fn most_completed(rows: &[RingOperation], names: &[&str]) -> bool {
    let those = rows.iter().filter(|row| names.is_empty() || names.contains(&&*row.op));
    is_most(those.map(|row| (row.completed, row.in_flight)))
}

fn is_most(counts: impl Iterator<Item = (u64, u64)>) -> bool {
    let add = |sum: (u64, u64), one: (u64, u64)| {
        (sum.0.saturating_add(one.0), sum.1.saturating_add(one.1))
    };
    let (ended, unfinished) = counts.fold((0, 0), add);
    unfinished <= ended / UNFINISHED
}
