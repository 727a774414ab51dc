//! Names of ends: those of standard input and output.

use std::path::Path;

/// Whether a source of this name is standard input: `-`, or a name that leads to the same descriptor.
pub fn is_standard_input(path: &Path) -> bool {
    ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"].iter().any(|name| path == Path::new(name))
}

/// Whether a target of this name is standard output.
pub(crate) fn is_standard_output(path: &Path) -> bool {
    ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path == Path::new(name))
}
