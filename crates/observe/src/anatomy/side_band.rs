//! Receives the kernel's mapping events during a watch, on a thread of its own that sleeps until a
//! ring is half full.
//!
//! The one tricky invariant is the order: each CPU has its own ring, and a child's first record may
//! be read before that of its fork. So records newer than the previous round are held back until
//! the next round.

use std::io::{self, PipeReader, PipeWriter, Write};
use std::thread::JoinHandle;

use iotomy_record::lossless;
use iotomy_sys::side_band::{Record, SideBand, records};
use nix::sys::signal::{SigSet, SigmaskHow};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{ClockId, clock_gettime};

use super::mappings::Mappings;
use crate::Selection;
use crate::attach;

/// The processes that have mappings already when the watch begins.
pub(crate) enum MappedBefore {
    /// None: a command is launched.
    Nothing,
    /// The selected ones.
    By(Selection),
    /// Any process may turn out to be watched.
    ByAll,
}

impl MappedBefore {
    fn processes(&self) -> Vec<u32> {
        match self {
            Self::Nothing => Vec::new(),
            Self::By(selection) => selection.running().into_iter().collect(),
            Self::ByAll => attach::all().filter(|pid| *pid != std::process::id()).collect(),
        }
    }
}

/// The rings being listened to.
pub(crate) struct Listener {
    /// Written to, it ends the thread. Closing it might not: a fork has it, too.
    end: PipeWriter,
    thread: JoinHandle<Mappings>,
}

impl Listener {
    /// Listens from now on; some processes run already.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn begin(cpus: &[u32], before: &MappedBefore) -> io::Result<Self> {
        let rings = cpus.iter().map(|cpu| SideBand::open(*cpu)).collect::<io::Result<Vec<_>>>()?;
        let mut mappings = Mappings::new(std::process::id());
        for pid in before.processes() {
            let maps = match std::fs::read(format!("/proc/{pid}/maps")) {
                // Some processes of the machine may be closed to everyone.
                Err(error)
                    if error.kind() == io::ErrorKind::PermissionDenied
                        && !matches!(before, MappedBefore::ByAll) =>
                {
                    return Err(error);
                }
                // One that has ended meanwhile has none.
                maps => maps.unwrap_or_default(),
            };
            mappings.attach(pid, &lossless(&maps));
        }
        let (ended, end) = io::pipe()?;
        // Signals are for the thread that watches.
        let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let rounds = Rounds { rings, mappings, kept_back: Vec::new(), last_ns: 0 };
        let thread = std::thread::Builder::new()
            .name("side-band".to_owned())
            .spawn(move || rounds.until(&ended));
        before.thread_set_mask()?;
        Ok(Self { end, thread: thread? })
    }

    /// Reads the rest of the rings, too.
    pub(crate) fn finish(mut self) -> Option<Mappings> {
        self.end.write_all(&[0]).ok()?;
        self.thread.join().ok()
    }
}

struct Rounds {
    rings: Vec<SideBand>,
    mappings: Mappings,
    kept_back: Vec<Record>,
    /// When the round before began.
    last_ns: u64,
}

impl Rounds {
    fn until(mut self, ended: &PipeReader) -> Mappings {
        while !self.sleep(ended) {
            self.round();
        }
        // The second round processes the records held back by the first.
        self.round();
        self.round();
        self.mappings
    }

    /// Whether the watch has ended.
    fn sleep(&self, ended: &PipeReader) -> bool {
        let mut waited = vec![PollFd::new(ended, PollFlags::IN)];
        waited.extend(self.rings.iter().map(|ring| PollFd::new(ring, PollFlags::IN)));
        match poll(&mut waited, None) {
            Ok(_) => !waited[0].revents().is_empty(),
            Err(error) => error != rustix::io::Errno::INTR,
        }
    }

    fn round(&mut self) {
        let now = clock_gettime(ClockId::Monotonic);
        let began_ns = now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs();
        for ring in &mut self.rings {
            let mut bytes = Vec::new();
            ring.take(&mut bytes);
            self.kept_back.extend(records(&bytes));
        }
        self.kept_back.sort_by_key(|record| record.at_ns);
        let ripe = self.kept_back.partition_point(|record| record.at_ns < self.last_ns);
        self.kept_back.drain(..ripe).for_each(|record| self.mappings.note(record));
        self.last_ns = began_ns;
    }
}
