//! Mechanisms to move bytes from one descriptor to another, and the choice among them.
//!
//! A mover is one file and one line in [`MOVERS`]: its declaration tells the chooser where to try
//! it. It moves bytes between two descriptors that the caller opened and keeps; it opens nothing by
//! name, prints nothing, and never changes a descriptor's flags, which others may share.
//!
//! The one invariant: a mover *refuses* only while nothing has moved, so that another can take its
//! place; after the first byte, every error says how much had moved. No byte is ever lost between
//! the two: bytes taken from the source have reached the target, or the error says so.

pub mod chooser;
mod copy_file_range;
mod declaration;
mod direct;
mod end;
mod fallocate;
mod holes;
mod in_kernel;
mod io_uring;
mod job;
mod join;
mod memory;
mod mmap_write;
mod mover;
mod null;
mod outcome;
mod parallel;
mod patience;
mod pipelined;
mod position;
mod read_write;
mod reflink;
mod refusal;
mod registry;
mod reopen;
pub mod route;
mod sendfile;
mod sharing;
mod splice;
mod vmsplice;

pub use declaration::{Choice, Holes, MoverDeclaration};
pub use end::{End, Kind};
pub use job::{BLOCK_SIZE, Job, Reflink, Sparse};
pub use mover::{Mover, MoverSession, Probe};
pub use outcome::{MoveError, Moved, Outcome, Side, Traffic};
pub use registry::{MOVERS, mover};
