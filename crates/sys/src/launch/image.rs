//! A command in the form of `execve(2)`, made before the fork: between that and the call nothing
//! may be allocated.

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use super::program::{c_string, may_be_script};
use super::{Command, LaunchError};

/// A command in the form of `execve`: every string and array made before the fork.
pub(crate) struct Image {
    pub(super) program: CString,
    pub(super) argv: Pointers,
    /// `/bin/sh program arguments…`, for a script without an interpreter line, as `execvp` does.
    pub(super) shell_argv: Pointers,
    /// Whether the program could be such a script: a file for another machine is none.
    pub(super) may_be_script: bool,
    pub(super) environment: Pointers,
}

/// Strings and the array of pointers to them, which ends with a null pointer.
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
            .filter(|_| !command.clears_environment)
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
