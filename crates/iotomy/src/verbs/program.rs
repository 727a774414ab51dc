//! Programs of their own that verbs become: what these need is too large for the command.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use iotomy_sys::launch::{Command, become_command};

use crate::screen::path_text;

/// Where `make install` and distributions put them.
const USUAL: [&str; 2] = ["/usr/local/bin", "/usr/bin"];

/// Becomes the program `name`, with these words behind its name.
///
/// # Errors
/// It is not installed, which `make TARGET` would build; or it cannot be run.
pub(super) fn become_program(
    name: &str,
    target: &str,
    words: impl IntoIterator<Item = OsString>,
) -> Result<ExitCode> {
    let candidates = candidates(name);
    let Some(program) = candidates.iter().find(|path| path.is_file()).cloned() else {
        let folders = candidates.iter().filter_map(|path| path.parent()).map(path_text);
        bail!(
            "cannot find {name} in {}; install it with `make install`, or build it with `make {target}`",
            folders.collect::<Vec<_>>().join(", ")
        );
    };
    let argv = [OsString::from(name)].into_iter().chain(words).collect();
    let shown = path_text(&program);
    let command = Command { program, argv, ..Command::default() };
    Err(become_command(&command)).with_context(|| format!("cannot run {shown}"))
}

/// Where it may be: beside this program first.
fn candidates(name: &str) -> Vec<PathBuf> {
    let own = env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent).map(Path::to_owned);
    let mut folders: Vec<PathBuf> = beside.into_iter().collect();
    for usual in USUAL.map(PathBuf::from) {
        if !folders.contains(&usual) {
            folders.push(usual);
        }
    }
    folders.into_iter().map(|folder| folder.join(name)).collect()
}
