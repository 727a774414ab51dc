//! Single calls of a watch that goes on: the one that fulfilled the condition of `--until`, which may have ended it
//! instead, and the slowest since these were taken before.

use libbpf_rs::{MapCore, MapFlags};
use rustix::thread::{MembarrierCommand, membarrier};

use super::{RowAction, Session, map, refusal};
use crate::bpf::details::{FiringRow, RingFiringRow, SlowRow, SlowRows};
use crate::bpf::layout::{Count, FileKey, FileName, Wire};
use crate::bpf::user_stack::UserStack;
use crate::variables::Sums;

/// `fired_ns` of `until.bpf.h`.
const MOMENT: &str = ".data.fired";

/// `slow_turn` of `slowest.bpf.h`.
pub(super) const TURN: &str = ".data.slow_turn";

impl Session {
    /// The call or the request that fulfilled the condition, if one did, and the sums with it. Final once every program
    /// that was under way has ended: until then, another that returned before may take its place.
    pub(in crate::bpf) fn firing(&self) -> Option<(SlowRow, Sums)> {
        if !self.can_fire {
            return None;
        }
        let by_call = self.row::<FiringRow>("firings", &0u32.to_ne_bytes())?.0;
        let by_ring = self.row::<RingFiringRow>("ring_firings", &0u32.to_ne_bytes())?.0;
        let first = by_call.into_iter().chain(by_ring).min_by_key(|(call, _)| call.end_ns);
        first.map(|(call, sums)| (self.with_stack(call, 2 * self.most_slowest), sums))
    }

    /// The slowest calls of a turn, each with the stack that it was made on.
    pub(super) fn slowest_of(&self, turn: u32) -> Vec<SlowRow> {
        let rows = self.row::<SlowRows>("slowest", &turn.to_ne_bytes());
        let rows = rows.map_or_else(Vec::new, |rows| rows.0).into_iter();
        let first = turn * self.most_slowest;
        rows.map(|(at, call)| self.with_stack(call, first + at)).collect()
    }

    /// A call with the stack at this place, if that is of the call.
    fn with_stack(&self, call: SlowRow, place: u32) -> SlowRow {
        let stack = self.row::<UserStack>("user_stacks", &place.to_ne_bytes());
        let stack = stack.filter(|stack| stack.is_of(call.end_ns, call.tid));
        SlowRow { stack, ..call }
    }

    /// Whether a call has ended the watch.
    pub(in crate::bpf) fn was_ended(&self) -> bool {
        self.can_fire && !self.goes_on && self.ended_ns() != 0
    }

    /// Whether a call has fulfilled the condition of a watch that goes on.
    pub(in crate::bpf) fn has_fired(&self) -> bool {
        self.goes_on && self.row::<Count>(MOMENT, &0u32.to_ne_bytes()).is_some_and(|at| at.0 != 0)
    }

    /// Returns when every program that is under way has ended: one of another CPU may have seen a call that returned
    /// first. It waits for an RCU grace period, and programs run as RCU readers. Where the kernel does not have it, what
    /// has passed meanwhile is thousands of times what a program takes.
    pub(in crate::bpf) fn await_programs(&self) {
        let _ = membarrier(MembarrierCommand::Global);
    }

    /// Has the condition asked of calls again. What was kept of the call that fulfilled it is gone, and sums begin anew.
    ///
    /// # Errors
    /// The kernel's error.
    pub(in crate::bpf) fn ask_again(&self) -> Result<(), String> {
        self.clear("firings", 0, FiringRow::SIZE)?;
        self.clear("ring_firings", 0, RingFiringRow::SIZE)?;
        self.clear(".data.sums", 0, Sums::SIZE)?;
        // Last: from here on another call may fulfil it.
        self.clear(MOMENT, 0, Count::SIZE)
    }

    /// The slowest calls since they were taken before. Those that return meanwhile are taken the next time.
    ///
    /// # Errors
    /// The kernel's error.
    pub(in crate::bpf) fn take_slowest(&self) -> Result<Vec<SlowRow>, String> {
        let turn = self.row::<u32>(TURN, &0u32.to_ne_bytes()).unwrap_or(0);
        let next = 1 - turn.min(1);
        self.clear("slowest", next, SlowRows::SIZE)?;
        self.clear(".data.slow_floor", 0, 2 * Count::SIZE)?;
        map(&self.object, TURN)
            .update(&0u32.to_ne_bytes(), &next.to_ne_bytes(), MapFlags::ANY)
            .map_err(|error| refusal("take the slowest calls", &error))?;
        // One that is under way may still keep a call in the table before.
        self.await_programs();
        Ok(self.slowest_of(turn))
    }

    /// Forgets the places of the paths of single calls where there are more than these, so that they do not fill their
    /// table in a watch that lasts. One that a call refers to that is still to be taken is not named then.
    pub(in crate::bpf) fn forget_places(&self, most: u32) {
        let mut places = 0;
        self.visit("directories", |_: FileKey, _: FileName| {
            places += 1;
            RowAction::Kept
        });
        if places > most {
            self.visit("directories", |_: FileKey, _: FileName| RowAction::Freed);
        }
    }

    /// Sets a row of an array to zeros.
    fn clear(&self, table: &str, at: u32, size: usize) -> Result<(), String> {
        map(&self.object, table)
            .update(&at.to_ne_bytes(), &vec![0; size], MapFlags::ANY)
            .map_err(|error| refusal("go on after a call was kept", &error))
    }
}
