//! The ways to make the calls of the loop: a file each, one source for all.
//!
//! What differs between two ways is what they are there to tell apart and nothing else: the loop, its
//! clock and its start are the same C program (`worker/`), compiled when iotomy is built and kept
//! inside it. In this process the calls would have Rust's library around them, and its threads beside
//! them, which make a look at the table of descriptors dearer.

mod io_uring;
mod libc;
mod musl;
mod raw;
mod r#static;

/// A way to make the calls.
#[derive(Debug)]
pub(super) struct Backend {
    /// As the axis has it.
    pub(super) name: &'static str,
    /// What it is, in a few words.
    pub(super) summary: &'static str,
    /// The compiled loop; empty when it could not be compiled.
    program: &'static [u8],
    /// Why it could not be; else empty.
    reason: &'static str,
    /// Whether it can have several files under way in one thread.
    pub(super) has_depth: bool,
}

/// Every way, in the order they are listed.
pub(super) static WAYS: &[&Backend] =
    &[&libc::WAY, &r#static::WAY, &musl::WAY, &raw::WAY, &io_uring::WAY];

/// Their names, as the axis takes them.
pub(super) const NAMES: &[&str] = &["libc", "static", "musl", "raw", "io-uring"];

/// The way called `name`.
pub(super) fn way(name: &str) -> Option<&'static Backend> {
    WAYS.iter().copied().find(|one| one.name == name)
}

/// The ways of the experiment `files`: names and summaries, for the guide.
pub fn ways() -> impl Iterator<Item = (&'static str, &'static str)> {
    WAYS.iter().map(|one| (one.name, one.summary))
}

/// The program that makes the rounds by a way: an ELF file that tells its use.
///
/// # Errors
/// Why there is none.
pub fn program_of_way(name: &str) -> Result<&'static [u8], String> {
    way(name).ok_or_else(|| format!("unknown strategy {name}"))?.program()
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
        let names: Vec<&str> = WAYS.iter().map(|one| one.name).collect();
        assert_eq!(names, NAMES);
        for one in WAYS {
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
