//! The settings of a sampled watch, and its samples and sleeps as numbers: the data that
//! `bpf/sampler.rs` hands to the anatomy, which resolves the names.

use std::collections::HashMap;

use super::mappings::Mappings;

/// The settings of sampling, and the further data to collect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleSettings {
    /// Samples a second on each CPU.
    pub hz: u32,
    /// How many of the slowest reading calls, and of the slowest writing calls, are recorded event
    /// by event.
    pub timelines: u32,
    /// Whether user stacks are recorded, too, as far as frame pointers allow.
    pub user_stacks: bool,
}

/// The samples and sleeps, as numbers.
pub(crate) struct Raw {
    pub(crate) event: &'static str,
    pub(crate) hz: u32,
    pub(crate) price_ns: f64,
    pub(crate) others: u64,
    pub(crate) lost: u64,
    pub(crate) lost_sleeps: u64,
    pub(crate) lost_names: u64,
    pub(crate) seen: Vec<SampleGroup>,
    /// What was seen in calls that the filter leaves out.
    pub(crate) left_out: HashMap<Image, LeftOut>,
    /// Addresses in the kernel by stack, the innermost first.
    pub(crate) stacks: HashMap<i32, Vec<u64>>,
    /// The call chains of user space, if requested.
    pub(crate) callers: Option<Callers>,
}

impl Raw {
    /// The programs count a few calls more than are asked for: those by which the overhead is measured.
    pub(crate) fn leave_out(&mut self, is_wanted: impl Fn(&str) -> bool) {
        let is_kept = |seen: &SampleGroup| seen.call.as_deref().is_none_or(&is_wanted);
        for seen in self.seen.extract_if(.., |seen| !is_kept(seen)) {
            let image = (seen.pid, seen.exec, seen.image);
            self.left_out.entry(image).or_default().add(seen.blocked, seen.times, seen.ns);
        }
    }
}

/// A program image: process id, name, and which of that name it is.
pub(crate) type Image = (u32, String, u32);

/// Samples and sleeps in calls that are not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct LeftOut {
    pub(crate) samples: u64,
    pub(crate) blocked_ns: u64,
}

impl LeftOut {
    /// Adds samples, or sleeps of so many ns.
    pub(crate) fn add(&mut self, blocked: bool, times: u64, ns: u64) {
        match blocked {
            true => self.blocked_ns += ns,
            false => self.samples += times,
        }
    }
}

/// The call chains in user space.
pub(crate) struct Callers {
    /// Addresses by stack, the innermost first.
    pub(crate) stacks: HashMap<i32, Vec<u64>>,
    pub(crate) mappings: Mappings,
}

/// All samples, or sleeps, that were alike.
pub(crate) struct SampleGroup {
    pub(crate) pid: u32,
    pub(crate) exec: String,
    pub(crate) image: u32,
    pub(crate) call: Option<String>,
    pub(crate) operation: Operation,
    pub(crate) blocked: bool,
    pub(crate) found: Location,
    pub(crate) chain: Chain,
    pub(crate) times: u64,
    /// Of sleeps.
    pub(crate) ns: u64,
}

/// The operation of io_uring that a thread was at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operation {
    /// None.
    Nothing,
    /// This one.
    Certain(String),
    /// This one if the thread was submitting and issuing a request, which its stack tells.
    IfIssued(String),
}

/// Where a thread was found.
pub(crate) enum Location {
    /// In the kernel, with this stack.
    Kernel(i32),
    /// In user space.
    User(Place),
    /// In the kernel, with a stack that collided with another's.
    Collided,
    /// It could not be found out.
    Nothing,
}

/// The chain of callers in user space, down to the place of the sample or of the system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chain {
    /// This stack, of an image that began then. In the kernel, `returns_to` is the address to which
    /// the innermost function may return where it keeps no frame; 0 where there is no such address.
    Stack { id: i32, began_ns: u64, returns_to: u64 },
    /// A stack that collided with another's.
    Collided,
    /// Not requested, or without one: the launch.
    Nothing,
}

/// A place in user space.
pub(crate) enum Place {
    /// In a mapped file, whose name may be lost.
    File { path: Option<String>, inode: u64, offset: u64 },
    /// In the kernel's own library.
    Vdso,
    /// In memory of no file.
    Memory,
}
