//! The observers there are.

use crate::bpf::Bpf;
use crate::observer::Observer;
use crate::ptrace::Ptrace;

/// Every observer, best first: `auto` takes the first that is ready.
pub static OBSERVERS: &[&dyn Observer] = &[&Bpf, &Ptrace];

/// The observer called `name`.
pub fn observer(name: &str) -> Option<&'static dyn Observer> {
    OBSERVERS.iter().copied().find(|observer| observer.declaration().name == name)
}
