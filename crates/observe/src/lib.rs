//! Watches a process tree: its system calls, their counts, and the time of its threads by state.
//!
//! An observer is one file (with a directory for its parts, if it needs them) and one line in
//! [`OBSERVERS`]. It takes a [`Request`], starts or finds the target, and returns an
//! record ([`iotomy_record::Trace`]) without its head; it prints nothing and judges nothing.
//!
//! The one invariant: nothing is lost silently. The number of events that an observer could not
//! count is in [`iotomy_record::ObserverUse`].

pub mod anatomy;
mod attach;
mod bpf;
mod cache;
mod call_names;
mod callers;
mod capacity;
mod clock;
mod compiled;
mod connections;
mod error;
mod executed;
mod filter;
mod grouping;
mod interrupts;
mod mapped_file;
mod naming;
mod observer;
mod price;
mod ptrace;
mod registry;
mod request;
mod ring_names;
mod selection;
mod slowest;
mod sockets;
mod tally;
mod threads;
mod title;
mod tracefs;
mod unwind;
mod variables;
mod viewer;

pub use bpf::{FEATURES, Feature, SwitchWatch, Wakeups, d, probe_rings, refused_features, uses};
pub use callers::{CallerNames, name_callers};
pub use compiled::{call_advice, nearest_call};
pub use error::ObserveError;
pub use filter::Filter;
pub use interrupts::{is_interrupted, take_interrupt};
pub use iotomy_dtrace::{Glob, GlobError, Problem, nearest};
pub use naming::is_call;
pub use observer::{Observer, ObserverDeclaration, Probe};
pub use price::{Price, Range, Work};
pub use registry::{OBSERVERS, observer};
pub use request::{Request, Target};
pub use ring_names::{is_ring_operation, ring_operations};
pub use selection::Selection;
pub use tracefs::Tracefs;
pub use variables::{AGGREGATIONS, VARIABLES};
pub use viewer::{OptionalViewer, TakeSnapshot, Viewer, ViewerRequest, WatchStart};
