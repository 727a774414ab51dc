//! Copies of files, pipes and devices, by the fastest mover for each pair of ends.
//!
//! [`copy`] opens the ends by their names, and makes sure of all that can be known to fail before it changes anything;
//! the choice of the mover and the work are in [`iotomy_movers`]. It prints nothing: a [`Watcher`] is told how it goes,
//! and the [`Account`] says what came of it. Its errors are sentences for users of `iotomy copy`, whose options they name.
//!
//! A small copy makes no call that it could do without: no thread, no probe, no clock but the monotonic one, and that
//! only for an account in detail.
//!
//! The flow:
//!
//! 1. A FIFO that is source and target is refused. Sources are opened (several are looked at first), then the
//!    target, which is not changed yet. The same file at both ends, and options that do not fit the ends, are refused.
//! 2. The chooser makes a plan. A mover that the kernel may refuse as a whole is tried on a file beside the target. A
//!    regular target is emptied, and the plan is carried out.
//! 3. The target is read back, given the source's attributes and synced, as requested. Both ends are closed, as write
//!    errors may appear only then, and the target is put in place.
//!
//! ```
//! use iotomy_copy::{Options, Placement, copy};
//!
//! let folder = tempfile::tempdir()?;
//! let (source, target) = (folder.path().join("new"), folder.path().join("page"));
//! std::fs::write(&source, "a new page")?;
//! let options = Options { placement: Placement::Atomic, verify: true, ..Options::default() };
//! let account = copy(&options, &[source], &target, &mut ())?;
//! assert_eq!((account.moved.bytes, account.errors.len()), (10, 0));
//! assert_eq!(std::fs::read(target)?, b"a new page");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod account;
mod carry;
mod copier;
mod error;
mod fault;
mod names;
mod options;
mod preserve;
mod rehearsal;
mod same;
mod session;
mod source;
mod target;
mod transfer;
mod verify;
mod watcher;

pub use account::Account;
pub use copier::copy;
pub use error::CopyError;
pub use names::is_standard_input;
pub use options::{Detail, Options, Placement};
pub use watcher::{Progress, Watcher};
