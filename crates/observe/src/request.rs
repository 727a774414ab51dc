//! The target of a watch, and what is asked of it.

use std::collections::BTreeSet;
use std::time::Duration;

use iotomy_sys::launch::Command;

use crate::call_names::calls;
use crate::compiled::Verdict;
use crate::filter::Filter;
use crate::naming::{choice_name, plain_name};
use crate::ring_names;
use crate::selection::Selection;

/// The target of a watch.
#[derive(Debug, Clone)]
pub enum Target {
    /// A command, from its `execve` on, with every process and thread it makes.
    Command(Command),
    /// Running processes with all their threads.
    Running(Selection),
    /// Every process of the machine but this one.
    Machine,
}

impl Target {
    /// A running process, and its descendants.
    pub fn process(pid: u32) -> Self {
        Self::Running(Selection::process(pid))
    }
}

/// A watch to be made.
#[derive(Debug, Clone)]
pub struct Request {
    /// The target.
    pub target: Target,
    /// Whether to go on, after the command's end, until every process it made has ended.
    pub wait: bool,
    /// How long to watch at most. A command is not ended by it: it is waited for, unwatched.
    pub duration: Option<Duration>,
    /// Whether to count by file.
    pub files: bool,
    /// Whether to count by path, where calls are given one.
    pub paths: bool,
    /// Whether to count connections by peer, with their files.
    pub peers: bool,
    /// Whether to time the requests of connections: by an observer that can ([`crate::ObserverDeclaration`]).
    pub requests: bool,
    /// Whether to count by thread.
    pub threads: bool,
    /// How many of the slowest calls to keep whole, at most [`Request::MOST_SLOW`].
    pub slowest: u32,
    /// The calls to report; `None` for all. The ledger covers all calls in any case.
    pub calls: Option<BTreeSet<String>>,
    /// The operations of io_uring to report; `None` for all.
    pub ring_operations: Option<BTreeSet<String>>,
    /// Of these, the ones to count, one by one.
    pub filter: Filter,
    /// Of which part of the time to count calls: one window of so many. The ledger's blocked time and run queue delay
    /// cover all of it in any case. 1: all of the time, as long as the viewer wants no other ([`Viewer::sample`]). By an
    /// observer that can.
    ///
    /// [`Viewer::sample`]: crate::Viewer::sample
    pub sample: Option<u32>,
    /// Whether the watch forgets what ended once snapshots have shown it, so that its memory does not
    /// grow with its length; what an observation has is less then. Only an observer that has no bound
    /// of its own does.
    pub forgets: bool,
    /// Whether each snapshot takes the slowest calls since the one before: what an observation has are then those since
    /// the last one.
    pub takes_slowest: bool,
    /// Up to how many program images each have rows of their own. Of more, identical ones are put together as the rows
    /// are read, by an observer that can.
    pub images_apart: usize,
    /// The largest number of rows of a bounded table; rows that find no room are counted as lost.
    pub rows: u32,
}

impl Request {
    /// The usual bound on rows of a table, which take 0.5 to 1 KiB each: a row a call and thread.
    pub const ROWS: u32 = 65_536;

    /// The most of the slowest calls that are kept: as many as `trace.h` has room for.
    pub const MOST_SLOW: u32 = 100;

    /// A watch of a target that counts all of its calls, and nothing that has to be asked for.
    pub fn new(target: Target) -> Self {
        Self {
            target,
            wait: false,
            duration: None,
            files: false,
            paths: false,
            peers: false,
            requests: false,
            threads: false,
            slowest: 0,
            calls: None,
            ring_operations: None,
            filter: Filter::default(),
            sample: None,
            forgets: false,
            takes_slowest: false,
            images_apart: usize::MAX,
            rows: Self::ROWS,
        }
    }

    /// Whether the call `name` is to be reported.
    pub fn wants(&self, name: &str) -> bool {
        self.calls.as_ref().is_none_or(|calls| calls.contains(plain_name(choice_name(name))))
            && self.filter.of_call(name) != Verdict::None
    }

    /// Whether the operation `name` of io_uring is to be reported.
    pub(crate) fn wants_ring_operation(&self, name: &str) -> bool {
        self.ring_operations.as_ref().is_none_or(|operations| operations.contains(name))
            && self.filter.of_ring(name) != Verdict::None
    }

    /// Whether any operation of io_uring is. One without a name is one among those that have none.
    pub(crate) fn wants_rings(&self) -> bool {
        match &self.ring_operations {
            Some(operations) => operations.iter().any(|name| self.wants_ring_operation(name)),
            None => self.possible_operations().any(|name| self.wants_ring_operation(name)),
        }
    }

    /// Those that are known, and one that is not.
    fn possible_operations(&self) -> impl Iterator<Item = &'static str> {
        ring_names::ring_operations().chain(["op_255"])
    }

    /// Whether the call `name` is none of the slowest because it waits for work: unless calls are chosen.
    pub(crate) fn is_left_idle(&self, name: &str) -> bool {
        !self.is_restricted() && iotomy_record::calls::is_idle_wait(plain_name(name))
    }

    /// Whether there are calls that are not counted.
    pub(crate) fn is_restricted(&self) -> bool {
        self.calls.is_some() || self.filter.restricts()
    }

    /// Whether there is a call that can be counted, or a ring operation.
    pub fn can_count(&self) -> bool {
        calls(|name| self.wants(name)).into_iter().flatten().any(|word| word != 0)
            || self.wants_rings()
    }

    /// Whether there is a call that can end the watch, or a ring operation.
    pub fn can_be_ended(&self) -> bool {
        let can_end =
            |name: &str| self.wants(name) && self.filter.ends_at_call(name) != Verdict::None;
        let ring_can_end = |name: &str| {
            self.wants_ring_operation(name) && self.filter.ends_at_ring(name) != Verdict::None
        };
        calls(can_end).into_iter().flatten().any(|word| word != 0)
            || self.possible_operations().any(ring_can_end)
    }
}
