//! `iotomy ports`: a command with event ports and `/dev/poll`.
//!
//! It owns the search for the library, and what a program has to be that can load it ([`program`]).
//! The command takes this process's place, so its status, signals and files are its own.

mod program;

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use iotomy_sys::launch::{Command, LaunchError, become_command, find_program};

use super::trace::{exec_status, program_hint};
use crate::errors::print_error;
use crate::manual::{FAILED, Manual, NO_PROGRAM, NOT_EXECUTABLE};
use crate::screen::path_text;

/// As it is installed, and as cargo builds it.
const INSTALLED: &str = "libiotomy-ports.so.0";
const BUILT: &str = "libiotomy_ports_c.so";

/// The variable that the dynamic linker reads.
const PRELOAD: &str = "LD_PRELOAD";

pub(crate) const MANUAL: Manual = Manual {
    examples: &[
        ("iotomy ports -- ./server", "Run a program that opens /dev/poll:"),
        ("iotomy trace -- iotomy ports -- ./server", "See the calls that it makes:"),
    ],
    status: &[
        ("status of CMD", "CMD ran: it takes the place of iotomy."),
        NO_PROGRAM,
        NOT_EXECUTABLE,
        FAILED,
    ],
    see_also: &["iotomy-ports(7)", "devpoll(7)", "port_create(3)", "ld.so(8)"],
};

/// Run a command with event ports and /dev/poll
///
/// Has the dynamic linker load libiotomy-ports before the other libraries of the command and of the
/// programs that it starts, so that those that open /dev/poll find it without being linked with the
/// library. Programs that load no library are refused: static ones, and those that run as another user
/// (set-user-ID).
#[derive(Debug, clap::Args)]
#[command(override_usage = "iotomy ports [OPTIONS] CMD…")]
pub(crate) struct PortsArgs {
    /// The command to run, with its arguments
    #[arg(value_name = "CMD", trailing_var_arg = true, required = true)]
    command: Vec<OsString>,

    /// The library, if it is not installed beside iotomy, in /usr/local/lib or in /usr/lib
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
}

pub(crate) fn run(args: &PortsArgs) -> Result<ExitCode> {
    let name = args.command.first().map(OsString::as_os_str).unwrap_or_default();
    let library = library(args.library.as_deref())?;
    let cannot = |error: &std::io::Error| {
        print_error(&anyhow!(
            "cannot run {}: {error}{}",
            path_text(name),
            program_hint(name, error)
        ));
        Ok(ExitCode::from(exec_status(error)))
    };
    let program = match find_program(name, env::var_os("PATH").as_deref()) {
        Ok(program) => program,
        Err(error) => return cannot(&error),
    };
    if let Some(reason) = program::loads_nothing(&program) {
        bail!("cannot give {} event ports: {reason}", path_text(name));
    }
    let mut all = library.into_os_string();
    if let Some(others) = env::var_os(PRELOAD).filter(|others| !others.is_empty()) {
        all.push(":");
        all.push(others);
    }
    let command = Command {
        program,
        argv: args.command.clone(),
        environment: vec![(PRELOAD.into(), all)],
        ..Command::default()
    };
    match become_command(&command) {
        LaunchError::Exec { source, .. } => cannot(&source),
        error => Err(error.into()),
    }
}

/// The library that is named, or the first that is found.
fn library(named: Option<&Path>) -> Result<PathBuf> {
    let folders = folders();
    let found = match named {
        Some(path) => Some(path.to_owned()).filter(|path| path.is_file()),
        None => folders.iter().find(|path| path.is_file()).cloned(),
    };
    let Some(found) = found else {
        match named {
            Some(path) => bail!("cannot find the library {}; check the path", path_text(path)),
            None => bail!(
                "cannot find {INSTALLED} in {}; install it with `make install`, or name it with --library",
                folders
                    .iter()
                    .filter_map(|path| path.parent())
                    .map(path_text)
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
        }
    };
    let path = found.canonicalize().unwrap_or(found);
    // The dynamic linker takes these for the ends of names.
    if path.as_os_str().as_bytes().iter().any(|byte| b" :".contains(byte)) {
        bail!(
            "cannot load {}: its path has a space or a colon; install it elsewhere",
            path_text(&path)
        );
    }
    Ok(path)
}

/// Where it may be: beside this program, as installed or as built, and where `make install` puts it.
fn folders() -> Vec<PathBuf> {
    let own = env::current_exe().ok();
    let beside = own.as_deref().and_then(Path::parent);
    let prefix = beside.and_then(Path::parent);
    let installed = prefix.map(|prefix| prefix.join("lib").join(INSTALLED));
    let built = beside.map(|folder| folder.join(BUILT));
    let usual = ["/usr/local/lib", "/usr/lib"].map(|folder| Path::new(folder).join(INSTALLED));
    installed.into_iter().chain(built).chain(usual).collect()
}

/// What the file name of a path is, for texts.
fn file_name(path: &Path) -> String {
    path_text(path.file_name().unwrap_or(OsStr::new("?")))
}
