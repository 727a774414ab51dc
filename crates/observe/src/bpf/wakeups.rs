//! Counts in the kernel how often some sleeping processes are woken: no other count shows a process
//! that is woken and sleeps on without leaving its call.

use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::{Link, MapCore, MapFlags, Object};

use super::embedded::{Embedded, embedded};
use super::loading::{Purpose, load};
use super::object::{iterate, map};
use super::refusal::refusal;
use super::without::Without;

const PURPOSE: Purpose =
    Purpose { attempt: "load the BPF programs that count wake-ups", needs: &[] };

static OBJECT: Embedded = embedded!("wakeups");

/// Counts wake-ups of the children that this process had when it was made, until it is dropped.
pub struct Wakeups {
    object: Object,
    _link: Link,
    children: u64,
}

impl std::fmt::Debug for Wakeups {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Wakeups").field("children", &self.children).finish_non_exhaustive()
    }
}

/// As `counters` of `wakeups.bpf.c`.
struct Counters {
    wakeups: u64,
    marked: u64,
    unmarked: u64,
}

impl Wakeups {
    /// Counts from now on.
    ///
    /// # Errors
    /// The refused call and the kernel's error, in a line; or that there was no room for all.
    pub fn of_children() -> Result<Self, String> {
        let unpacked = OBJECT.unpack()?;
        let object = load(unpacked.open()?, &PURPOSE, &Without::default())?;
        iterate(&object, "mark")?;
        let mut programs = object.progs_mut();
        let program = programs.find(|one| one.name() == TRACEPOINT).expect("the object has it");
        let link = program.attach();
        let link = link.map_err(|error| refusal(&format!("attach {TRACEPOINT}"), &error))?;
        drop(programs);
        let mut counting = Self { object, _link: link, children: 0 };
        let Counters { marked, unmarked, .. } = counting.counters();
        counting.children = marked;
        match unmarked {
            0 => Ok(counting),
            some => Err(format!("{some} of {} did not fit into the table", marked + some)),
        }
    }

    /// How many children are counted of.
    pub fn children(&self) -> u64 {
        self.children
    }

    /// How often they were woken so far, all together.
    ///
    /// # Errors
    /// When some were missed.
    pub fn so_far(&self) -> Result<u64, String> {
        let program = self.object.progs_mut().find(|one| one.name() == TRACEPOINT);
        let info = program.and_then(|program| {
            let file = format!("/proc/self/fdinfo/{}", program.as_fd().as_raw_fd());
            iotomy_host::kernel_text(file).ok()
        });
        let missed = info.as_deref().and_then(|text| {
            let line = text.lines().find_map(|line| line.strip_prefix("recursion_misses:"))?;
            line.trim().parse::<u64>().ok()
        });
        match missed {
            Some(some) if some > 0 => Err(format!("{some} wake-ups of the machine were missed")),
            _ => Ok(self.counters().wakeups),
        }
    }

    fn counters(&self) -> Counters {
        let bytes = map(&self.object, ".bss").lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
        let bytes = bytes.ok().flatten().unwrap_or_default();
        let word = |at: usize| {
            let word = bytes.get(8 * at..8 * at + 8).and_then(|word| word.try_into().ok());
            word.map_or(0, u64::from_ne_bytes)
        };
        Counters { wakeups: word(0), marked: word(1), unmarked: word(2) }
    }
}

const TRACEPOINT: &str = "sched_wakeup";
