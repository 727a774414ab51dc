//! A command as `execve(2)` takes it, made before the fork: the child allocates nothing.

use std::ffi::{CString, OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use super::{Command, LaunchError};

/// A command as `execve` takes it: every string and array made before the fork.
pub(crate) struct Image {
    pub(super) program: CString,
    pub(super) argv: Pointers,
    /// `/bin/sh program arguments…`, for a script without an interpreter line, as `execvp` does.
    pub(super) shell_argv: Pointers,
    /// Whether the program could be such a script: a file for another machine is none.
    pub(super) may_be_script: bool,
    pub(super) environment: Pointers,
}

pub(super) struct Pointers {
    pub(super) raw: Vec<*const libc::c_char>,
    _owned: Vec<CString>,
}

impl Pointers {
    fn new(owned: Vec<CString>) -> Self {
        let raw = owned.iter().map(|s| s.as_ptr()).chain([std::ptr::null()]).collect();
        Self { raw, _owned: owned }
    }
}

impl Image {
    pub(crate) fn new(command: &Command) -> Result<Self, LaunchError> {
        let program = c_string(command.program.as_os_str())?;
        let argv = command.argv.iter().map(|a| c_string(a)).collect::<Result<Vec<_>, _>>()?;
        let mut shell_argv = vec![c"/bin/sh".to_owned(), program.clone()];
        shell_argv.extend(argv.iter().skip(1).cloned());
        let mut environment: Vec<(OsString, OsString)> = std::env::vars_os()
            .filter(|(name, _)| command.environment.iter().all(|(set, _)| set != name))
            .collect();
        environment.extend(command.environment.iter().cloned());
        let environment = environment
            .into_iter()
            .map(|(name, value)| {
                let mut line = name.into_vec();
                line.push(b'=');
                line.extend(value.into_vec());
                c_string(OsStr::from_bytes(&line))
            })
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            program,
            argv: Pointers::new(argv),
            shell_argv: Pointers::new(shell_argv),
            may_be_script: may_be_script(&command.program),
            environment: Pointers::new(environment),
        })
    }
}

/// Whether a shell would take the file for a script: its first line, as far as that is looked at,
/// has no NUL byte.
fn may_be_script(program: &Path) -> bool {
    let mut start = Vec::new();
    let file = std::fs::File::open(program);
    // 80 bytes, as bash has it.
    let read = file.and_then(|file| file.take(80).read_to_end(&mut start));
    let first_line = start.split(|byte| *byte == b'\n').next().unwrap_or_default();
    read.is_ok() && !first_line.contains(&0)
}

fn c_string(text: &OsStr) -> Result<CString, LaunchError> {
    CString::new(text.as_bytes()).map_err(|_| LaunchError::Nul(text.to_owned()))
}
