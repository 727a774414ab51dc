//! What a port knows: its completions, its threads and what they do, and which of them looks.
//!
//! The one invariant: `running` is the number of threads that are [`Doing::Running`].

use std::collections::VecDeque;
use std::thread::Thread;
use std::time::Duration;

/// Looks in the time of an interval while they find threads that are blocked: where some block, others do soon.
const MOST_OFTEN: u32 = 16;

/// How much longer than a look the time until the next one is at least, so that looking stays cheap with many threads.
const REST: u32 = 8;

/// What a thread retrieves: the three values of a completion packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Completion {
    /// What it is of (`CompletionKey`).
    pub key: usize,
    /// How many bytes were moved (`NumberOfBytes`).
    pub bytes: u32,
    /// The caller's value (`Overlapped`).
    pub user: usize,
}

/// What has happened in a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PortCounts {
    /// Completions that threads have retrieved.
    pub retrieved: u64,
    /// Threads that were woken for a completion; the other completions were there when a thread came.
    pub woken: u64,
    /// Looks at the threads.
    pub looks: u64,
    /// Threads that were found blocked.
    pub blocked: u64,
    /// The most threads that ran at once, as far as was known.
    pub most_running: usize,
}

/// What a thread of the port does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// It waits for a completion, or is about to.
    Waiting,
    Running,
    /// It has not come back, and was found blocked.
    Blocked,
}

#[derive(Debug)]
struct Member {
    thread: Thread,
    id: i32,
    doing: Doing,
    /// Tells the returns of all threads apart, so that what was seen of a thread that has returned since is void.
    turn: u64,
    /// What it was woken for.
    given: Option<Completion>,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) concurrency: usize,
    pub(super) queue: VecDeque<Completion>,
    pub(super) running: usize,
    pub(super) is_closed: bool,
    pub(super) counts: PortCounts,
    /// How long the last look took, and the looks in a row that found none blocked.
    look_took: Duration,
    looks_in_vain: u32,
    members: Vec<Option<Member>>,
    /// Those that sleep; the last one is released first.
    sleepers: Vec<usize>,
    lookout: Option<usize>,
    /// Whether the watch was told that it is wanted.
    is_wanted: bool,
    turns: u64,
}

impl State {
    pub(super) fn new(concurrency: usize) -> Self {
        Self {
            concurrency,
            queue: VecDeque::new(),
            running: 0,
            is_closed: false,
            counts: PortCounts::default(),
            look_took: Duration::ZERO,
            looks_in_vain: 0,
            members: Vec::new(),
            sleepers: Vec::new(),
            lookout: None,
            is_wanted: false,
            turns: 0,
        }
    }

    /// Takes a thread in; returns its number.
    pub(super) fn join(&mut self, thread: Thread, id: i32) -> usize {
        let member = Member { thread, id, doing: Doing::Waiting, turn: 0, given: None };
        let free = self.members.iter().position(Option::is_none).unwrap_or(self.members.len());
        if free == self.members.len() {
            self.members.push(None);
        }
        self.members[free] = Some(member);
        free
    }

    /// Forgets a thread; returns its id.
    pub(super) fn leave(&mut self, thread: usize) -> i32 {
        self.stop(thread);
        self.members[thread].take().map_or(0, |member| member.id)
    }

    /// A thread has come back: it runs no more.
    pub(super) fn stop(&mut self, thread: usize) {
        self.set(thread, Doing::Waiting);
    }

    /// Gives a thread what it was woken for, or what is queued if it may run.
    pub(super) fn take(
        &mut self,
        thread: usize,
        room: usize,
        put: &mut impl FnMut(Completion),
    ) -> Option<usize> {
        let given = self.member(thread).given.take();
        if given.is_none() {
            if self.queue.is_empty() || self.running >= self.concurrency {
                return None;
            }
            self.wake_up(thread);
            self.set(thread, Doing::Running);
        }
        let others = self.queue.len().min(room - usize::from(given.is_some()));
        let mut got = 0;
        for completion in given.into_iter().chain(self.queue.drain(..others)) {
            put(completion);
            got += 1;
        }
        self.counts.retrieved += got as u64;
        Some(got)
    }

    /// A thread returns without a completion.
    pub(super) fn go_on(&mut self, thread: usize) {
        self.wake_up(thread);
        self.set(thread, Doing::Running);
    }

    pub(super) fn fall_asleep(&mut self, thread: usize) {
        if !self.sleepers.contains(&thread) {
            self.sleepers.push(thread);
        }
    }

    fn wake_up(&mut self, thread: usize) {
        self.sleepers.retain(|sleeper| *sleeper != thread);
        if self.lookout == Some(thread) {
            self.lookout = None;
        }
    }

    /// Gives what is queued to those that sleep, the last one first, as far as they may run.
    pub(super) fn release(&mut self) -> Vec<Thread> {
        let mut released = Vec::new();
        while self.running < self.concurrency && !self.queue.is_empty() {
            let Some(thread) = self.sleepers.last().copied() else { break };
            self.wake_up(thread);
            self.set(thread, Doing::Running);
            let completion = self.queue.pop_front();
            let member = self.member(thread);
            member.given = completion;
            released.push(member.thread.clone());
        }
        self.counts.woken += released.len() as u64;
        released
    }

    /// All that sleep, which are to find that the port is closed.
    pub(super) fn wake_all(&mut self) -> Vec<Thread> {
        self.lookout = None;
        let sleepers = std::mem::take(&mut self.sleepers);
        sleepers.into_iter().map(|thread| self.member(thread).thread.clone()).collect()
    }

    pub(super) fn waiting(&self) -> usize {
        self.sleepers.len()
    }

    /// Whether something is queued that a thread would take, if one of those that run were blocked.
    pub(super) fn is_stuck(&self) -> bool {
        !self.queue.is_empty() && !self.sleepers.is_empty() && self.running >= self.concurrency
    }

    /// Whether this thread, which is about to sleep or sleeps, is the one that looks; it becomes that if one must.
    pub(super) fn is_lookout(&mut self, thread: usize, looks: bool) -> bool {
        if looks && self.lookout.is_none() && self.is_stuck() {
            self.lookout = Some(thread);
        }
        self.lookout == Some(thread)
    }

    /// Has one of those that sleep look, if one must: the one that is released last. Returns it, to be woken.
    pub(super) fn appoint_lookout(&mut self, looks: bool) -> Option<Thread> {
        if !looks || self.lookout.is_some() || !self.is_stuck() {
            return None;
        }
        let thread = self.sleepers[0];
        self.lookout = Some(thread);
        Some(self.member(thread).thread.clone())
    }

    pub(super) fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// Whether the watch is wanted now, if that has changed.
    pub(super) fn change_of_want(&mut self) -> Option<bool> {
        let is_wanted = self.is_stuck();
        let was_wanted = std::mem::replace(&mut self.is_wanted, is_wanted);
        (was_wanted != is_wanted).then_some(is_wanted)
    }

    pub(super) fn dismiss_lookout(&mut self) {
        self.lookout = None;
    }

    /// The threads that have not come back: number, id and turn.
    pub(super) fn outside(&mut self) -> Vec<(usize, i32, u64)> {
        self.counts.looks += 1;
        let members = self.members.iter().enumerate();
        let outside = members.filter_map(|(at, member)| Some((at, member.as_ref()?)));
        let outside = outside.filter(|(_, member)| member.doing != Doing::Waiting);
        outside.map(|(at, member)| (at, member.id, member.turn)).collect()
    }

    /// How long the one that looks sleeps until the next look: the interval, or less while looks find some blocked,
    /// and much longer than a look takes.
    pub(super) fn nap(&self, interval: Duration) -> Duration {
        let shorter = MOST_OFTEN.checked_shr(self.looks_in_vain).unwrap_or(0).max(1);
        (interval / shorter).max(self.look_took * REST)
    }

    /// Takes note of which of them run.
    pub(super) fn apply(&mut self, seen: &[(usize, u64, bool)], took: Duration) {
        let blocked = self.counts.blocked;
        for (thread, turn, runs) in seen {
            let Some(member) = &self.members[*thread] else { continue };
            let doing = if *runs { Doing::Running } else { Doing::Blocked };
            if member.turn != *turn || member.doing == Doing::Waiting || member.doing == doing {
                continue;
            }
            self.counts.blocked += u64::from(!*runs);
            self.change(*thread, doing);
        }
        self.look_took = took;
        self.looks_in_vain =
            if self.counts.blocked > blocked { 0 } else { self.looks_in_vain.saturating_add(1) };
    }

    fn member(&mut self, thread: usize) -> &mut Member {
        self.members[thread].as_mut().expect("a thread that is seated is a member")
    }

    /// A thread begins or ends its turn.
    fn set(&mut self, thread: usize, doing: Doing) {
        self.turns += 1;
        self.member(thread).turn = self.turns;
        self.change(thread, doing);
    }

    fn change(&mut self, thread: usize, doing: Doing) {
        let before = std::mem::replace(&mut self.member(thread).doing, doing);
        self.running -= usize::from(before == Doing::Running);
        self.running += usize::from(doing == Doing::Running);
        self.counts.most_running = self.counts.most_running.max(self.running);
    }
}
