//! The filter of calls, their groups and the end of the watch, decided at each return: as in the kernel's
//! programs (`where.bpf.h`, `until.bpf.h`).

use std::time::Instant;

use iotomy_dtrace::Outcome;
use iotomy_host::kernel_text;
use iotomy_record::Group;
use iotomy_sys::syscalls;

use super::entered::{Entered, EntryFacts};
use super::procfs;
use super::session::PtraceSession;
use crate::call_names::descriptor;
use crate::clock::nanoseconds;
use crate::compiled::Verdict;
use crate::grouping::Grouping;
use crate::naming::{CallNumber, call_name, plain_name};
use crate::tally::ImageId;
use crate::variables::{CallFacts, fact};

impl PtraceSession {
    /// The facts of a call that is entered; `None` where its number decides all.
    pub(super) fn entry_facts(
        &mut self,
        tid: u32,
        call: CallNumber,
        args: &[u64; 6],
    ) -> Option<EntryFacts> {
        let name = call_name(call.0, call.1);
        let verdict = self.filter.of_call(&name);
        let is_doubtful = verdict == Verdict::Open;
        let is_asked_for = is_doubtful
            || !self.filter.by.is_none()
            || self.filter.uses_sums()
            || self.filter.ends_at_call(&name) != Verdict::None;
        if verdict == Verdict::None || !is_asked_for {
            return None;
        }
        let name = plain_name(&name);
        let at = descriptor(name);
        // A descriptor is the lower half of its argument's register.
        let fd = at.map_or(-1, |at| args[usize::from(at)] as i32);
        let peer = match at {
            Some(_) if self.filter.uses(fact::PEER) => self.peer_of(tid, fd),
            _ => String::new(),
        };
        let mut facts = EntryFacts { is_doubtful, fd: fd.into(), paths: Vec::new(), peer };
        if self.filter.uses(fact::PATH) {
            facts.paths = match syscalls::paths(name).is_empty() {
                false => procfs::paths_of_call(tid, name, args).into_iter().flatten().collect(),
                true => at
                    .and_then(|_| procfs::file(tid, fd))
                    .map(|file| file.path)
                    .into_iter()
                    .collect(),
            };
            for path in &mut facts.paths {
                if let Some(name) = path.strip_suffix(" (deleted)") {
                    *path = name.to_owned();
                }
            }
        }
        Some(facts)
    }

    /// Whether a call that returned is one to count, and whether it ends the watch.
    pub(super) fn counts(
        &mut self,
        tid: u32,
        image: ImageId,
        entered: &mut Entered,
        (value, moved): (Result<u64, u32>, u64),
        now: Instant,
    ) -> (bool, bool) {
        if !self.is_wanted(&call_name(entered.call.0, entered.call.1)) {
            return (true, false);
        }
        let Some(EntryFacts { fd, mut paths, mut peer, .. }) = entered.facts.take() else {
            return (true, false);
        };
        if self.filter.uses(fact::PEER)
            && let Some(other) = self.other_peer(tid, entered, value)
        {
            peer = other;
        }
        let uses = |fact| self.filter.uses(fact);
        let name = syscalls::name(entered.call.0, entered.call.1);
        if uses(fact::PATH) && name == "chdir" && value.is_ok() {
            paths = procfs::working_directory(tid).into_iter().collect();
        }
        let images = match uses(fact::IMAGE) {
            true => {
                let process = self.tally.process(image);
                [&process.exec, &process.binary]
                    .into_iter()
                    .filter(|one| !one.is_empty())
                    .cloned()
                    .collect()
            }
            false => Vec::new(),
        };
        let threadname = match uses(fact::THREADNAME) {
            true => procfs::thread_name(tid),
            false => String::new(),
        };
        let cgroups = match uses(fact::CGROUP) {
            true => {
                let lines = kernel_text(format!("/proc/{tid}/cgroup")).unwrap_or_default();
                let path = |line: &str| line.splitn(3, ':').nth(2).map(str::to_owned);
                lines.lines().filter_map(path).collect()
            }
            false => Vec::new(),
        };
        let title = match uses(fact::TITLE) {
            true => procfs::title(self.tracees.get(tid).map_or(tid, |tracee| tracee.process)),
            false => String::new(),
        };
        let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let bytes = value.ok().filter(|_| syscalls::returns_bytes(&name)).map(|_| moved);
        let facts = CallFacts {
            fd,
            errno: value.err().unwrap_or(0).into(),
            bytes: bytes.map_or(0, signed),
            duration_ns: signed(nanoseconds(entered.at, now)),
            thread: tid.into(),
            pid: self.tracees.get(tid).map_or(0, |tracee| tracee.process).into(),
            paths,
            images,
            threadname,
            cgroups,
            peer,
            title,
        };
        match self.filter.holds(entered.call, &facts) {
            Outcome::True => {
                self.group(entered.call, &facts);
                (true, self.ends_at(image, entered.call, &facts, now))
            }
            Outcome::False => (false, false),
            Outcome::DividedByZero => {
                self.divided_by_zero += 1;
                (false, false)
            }
        }
    }

    /// Whether a call that is counted ends the watch, or is one that the viewer is told of.
    fn ends_at(
        &mut self,
        image: ImageId,
        call: CallNumber,
        facts: &CallFacts,
        now: Instant,
    ) -> bool {
        let is_wanted = || self.is_wanted(&call_name(call.0, call.1));
        let pauses = || self.asks_again.is_some_and(|at| now < at);
        if !self.filter.has_until() || !self.tally.has_room_for(image) || !is_wanted() || pauses() {
            return false;
        }
        self.sums.count += 1;
        self.sums.bytes = self.sums.bytes.wrapping_add(facts.bytes);
        self.sums.duration_ns = self.sums.duration_ns.wrapping_add(facts.duration_ns);
        match self.filter.ends_at(call, facts, &self.sums) {
            Outcome::True => true,
            Outcome::False => false,
            Outcome::DividedByZero => {
                self.end_divided_by_zero += 1;
                false
            }
        }
    }

    /// Adds a call that is counted to its groups.
    fn group(&mut self, call: CallNumber, facts: &CallFacts) {
        if self.filter.by.is_none() {
            return;
        }
        let row = Group {
            key: Vec::new(),
            calls: 1,
            errors: u64::from(facts.errno != 0),
            bytes: facts.bytes.cast_unsigned(),
            wall_ns: facts.duration_ns.cast_unsigned(),
            max_ns: facts.duration_ns.cast_unsigned(),
        };
        let name = call_name(call.0, call.1);
        for key in self.filter.by.keys(&name, &|fact| Grouping::value(fact, facts)) {
            self.groups.add(key, &row, self.rows);
        }
    }
}
