//! The declared parts of a verb's help and man page besides its options.

use clap::Command;

/// The declaration of a verb.
#[derive(Debug)]
pub(crate) struct Manual {
    /// Command lines with their explanations. Lines that belong together are one example.
    pub(crate) examples: &'static [Example],
    /// Every exit status with its meaning.
    pub(crate) status: &'static [Fact],
    /// Other pages, as in `strace(1)`; the command's own family is added.
    pub(crate) see_also: &'static [&'static str],
}

/// Command lines and their explanation.
pub(crate) type Example = (&'static str, &'static str);

/// A name and its meaning.
pub(crate) type Fact = (&'static str, &'static str);

/// The status of a verb that has done its work.
pub(crate) const DONE: Fact = ("0", "The verb succeeded.");

/// The status of a verb that could not.
pub(crate) const FAILED: Fact =
    ("2", "The command line is wrong, or an operation failed; standard error has the reason.");

/// As shells have it.
pub(crate) const NO_PROGRAM: Fact = ("127", "There is no such program.");

/// As shells have it.
pub(crate) const NOT_EXECUTABLE: Fact = ("126", "The program cannot be executed.");

/// The name of a command below another of this name.
pub(crate) fn below(name: &str, command: &Command) -> String {
    format!("{name} {}", command.get_name()).trim_start().to_owned()
}
