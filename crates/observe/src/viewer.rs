//! The viewer of a watch: it is shown the start, the signals and the counts so far, and can end the
//! watch.
//!
//! The one invariant: a watch with a viewer has the same counts as one without. The viewer is
//! called from the watch's own loop, on its thread, and never between two counts.

use std::os::fd::BorrowedFd;
use std::time::Instant;

use iotomy_record::{EndedBy, MissingFeature, Snapshot};

use crate::price::Price;

/// How a watch begins.
#[derive(Debug, Clone)]
pub struct WatchStart {
    /// The observer's name.
    pub observer: &'static str,
    /// Whether it slows calls so much that their times cannot be taken at face value.
    pub times_inflated: bool,
    /// The overhead that watching adds to a call, from the cheapest to the most expensive call, in
    /// ns.
    pub cost_range_ns: [f64; 2],
    /// The overhead of each call of the processes that are not watched: the least and the most.
    pub unwatched_range_ns: [f64; 2],
    /// What both follow from, of an observer that can count a part of the time.
    pub price: Option<Price>,
    /// Whether it sees what io_uring does.
    pub sees_rings: bool,
    /// What the kernel refused, and what is not seen because of that.
    pub missing: Vec<MissingFeature>,
    /// The process the watch is about, if it is about one.
    pub pid: Option<u32>,
}

/// A viewer's request to the watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewerRequest {
    /// That it goes on.
    GoOn,
    /// That it ends.
    End,
}

/// Takes a snapshot of the counts, or returns why it cannot; `None` where the watch is over.
pub type TakeSnapshot<'a> = dyn FnMut() -> Result<Option<Snapshot>, String> + 'a;

/// The viewer, if any.
pub type OptionalViewer<'a> = Option<&'a mut (dyn Viewer + 'static)>;

/// A viewer of a watch.
pub trait Viewer {
    /// Before it begins: why a preferred observer cannot watch, so that another one will.
    fn fall_back(&mut self, reason: &str) {
        let _ = reason;
    }

    /// The watch begins. Nothing waits for a command to execute from here on, which one that is
    /// stopped from the terminal would not; and no thread of the watch has been made yet.
    fn begin(&mut self, outset: &WatchStart);

    /// Descriptors that are readable when it wants to be called.
    fn wakers(&self) -> Vec<BorrowedFd<'_>>;

    /// When it wants to be called at the latest.
    fn deadline(&self) -> Option<Instant>;

    /// Called when a waker is readable, when the deadline has passed, and from time to time. `look`
    /// is `None` when the watch is over and only the command is still waited for.
    fn update(&mut self, look: Option<&mut TakeSnapshot<'_>>) -> ViewerRequest;

    /// Called once when the watch ends, before anything is taken down: the last time that the counts
    /// can be seen.
    fn end(&mut self, look: &mut TakeSnapshot<'_>) {
        let _ = look;
    }

    /// A call fulfilled the condition of a watch that goes on ([`Filter::going_on`](crate::Filter::going_on)): which, and
    /// the counts with it, or why they cannot be read.
    fn on_firing(&mut self, call: EndedBy, now: Result<Snapshot, String>) {
        let _ = (call, now);
    }

    /// Of a watch that counts a part of the time ([`Request::sample`](crate::Request::sample)): one window of so many is
    /// to be open from now on. `None`: it stays as it is.
    fn sample(&self) -> Option<u32> {
        None
    }

    /// Called once that changes, while no window is open: the last look at what stands for as many as so far
    /// ([`SampledTime::factor`](iotomy_record::SampledTime::factor)). Whether it was taken; if it was not, nothing changes.
    fn end_sample(&mut self, look: &mut TakeSnapshot<'_>) -> bool {
        let _ = look;
        false
    }

    /// A signal came to this process. Whether it was for the viewer; else it is passed on to the command or ends the
    /// watch.
    fn takes_signal(&mut self, signal: i32) -> bool;
}
