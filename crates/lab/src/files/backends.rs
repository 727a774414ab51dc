//! The backends of the loop: how it makes its calls, one file per backend, one source for all.
//!
//! Two backends differ only in how they make the calls: the loop, its clock and its start are the
//! same C program (`worker/`), compiled when iotomy is built and stored inside it. In this process
//! the calls would go through Rust's library, and its threads would make lookups in the descriptor
//! table slower.

mod io_uring;
mod libc;
mod musl;
mod raw;
mod r#static;

/// A backend: one method of making the calls.
#[derive(Debug)]
pub(super) struct Backend {
    /// The value of the axis.
    pub(super) name: &'static str,
    /// A summary in a few words.
    pub(super) summary: &'static str,
    /// The compiled loop; empty if it could not be compiled.
    program: &'static [u8],
    /// The reason why it could not be compiled; otherwise empty.
    reason: &'static str,
    /// Whether one thread can process several files at once.
    pub(super) has_depth: bool,
}

/// Every backend, in the order they are listed.
pub(super) static BACKENDS: &[&Backend] =
    &[&libc::BACKEND, &r#static::BACKEND, &musl::BACKEND, &raw::BACKEND, &io_uring::BACKEND];

/// Returns the names of the backends, which are the values of the axis.
pub(super) fn names() -> Vec<&'static str> {
    BACKENDS.iter().map(|one| one.name).collect()
}

/// Returns the backend called `name`.
pub(super) fn backend(name: &str) -> Option<&'static Backend> {
    BACKENDS.iter().copied().find(|one| one.name == name)
}

/// The backends of the experiment `files`: names and summaries, for the guide.
pub fn backends() -> impl Iterator<Item = (&'static str, &'static str)> {
    BACKENDS.iter().map(|one| (one.name, one.summary))
}

/// Returns the program that makes the rounds with a backend: an ELF file that prints its usage.
///
/// # Errors
/// Fails with the reason if there is no program.
pub fn backend_program(name: &str) -> Result<&'static [u8], String> {
    backend(name).ok_or_else(|| format!("unknown strategy {name}"))?.program()
}

impl Backend {
    /// Returns the compiled loop.
    ///
    /// # Errors
    /// Fails with the reason if there is no program.
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
                    iotomy_test_requirements::skip(
                        iotomy_test_requirements::Need::Programs,
                        &reason,
                    );
                }
            }
            assert!(!one.summary.is_empty() && !one.summary.ends_with('.'), "{}", one.name);
        }
    }
}
