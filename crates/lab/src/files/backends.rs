//! The backends of the loop: how its calls are made, a file each, one source for all.
//!
//! Two backends differ only in how they make the calls: the loop, its clock and its start are the same
//! C program (`worker/`), compiled when iotomy is built and stored inside it. In this process the calls
//! would go through Rust's library, and its threads would make lookups in the descriptor table slower.

mod io_uring;
mod libc;
mod musl;
mod raw;
mod r#static;

/// A backend: one method of making the calls.
#[derive(Debug)]
pub(super) struct Backend {
    /// As the axis has it.
    pub(super) name: &'static str,
    /// A summary of a few words.
    pub(super) summary: &'static str,
    /// The compiled loop; empty when it could not be compiled.
    program: &'static [u8],
    /// Why it could not be; else empty.
    reason: &'static str,
    /// Whether it can have several files under way in one thread.
    pub(super) has_depth: bool,
}

/// Every backend, in the order they are listed.
pub(super) static BACKENDS: &[&Backend] =
    &[&libc::BACKEND, &r#static::BACKEND, &musl::BACKEND, &raw::BACKEND, &io_uring::BACKEND];

/// Their names, as the axis takes them.
pub(super) fn names() -> Vec<&'static str> {
    BACKENDS.iter().map(|one| one.name).collect()
}

/// The backend called `name`.
pub(super) fn backend(name: &str) -> Option<&'static Backend> {
    BACKENDS.iter().copied().find(|one| one.name == name)
}

/// The backends of the experiment `files`: names and summaries, for the guide.
pub fn backends() -> impl Iterator<Item = (&'static str, &'static str)> {
    BACKENDS.iter().map(|one| (one.name, one.summary))
}

/// The program that makes the rounds by a backend: an ELF file that prints its usage.
///
/// # Errors
/// Why there is none.
pub fn backend_program(name: &str) -> Result<&'static [u8], String> {
    backend(name).ok_or_else(|| format!("unknown strategy {name}"))?.program()
}

impl Backend {
    /// The compiled loop.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn program(&self) -> Result<&'static [u8], String> {
        match self.program {
            [] => Err(self.reason.to_owned()),
            program => Ok(program),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_is_there_or_says_why_not() {
        for one in BACKENDS {
            match one.program() {
                Ok(program) => assert!(program.starts_with(b"\x7fELF"), "{}", one.name),
                Err(reason) => {
                    assert!(!reason.is_empty(), "{}", one.name);
                    let reason = format!("{}: {reason}", one.name);
                    iotomy_needs::skip(iotomy_needs::Need::Programs, &reason);
                }
            }
            assert!(!one.summary.is_empty() && !one.summary.ends_with('.'), "{}", one.name);
        }
    }
}
