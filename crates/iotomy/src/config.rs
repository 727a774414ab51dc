//! The configuration: defaults for the options of every verb, from `config.toml` of the user and of the
//! system.
//!
//! A table is a verb and its keys are the verb's long options; all of it is checked against the
//! declarations of the command line ([`table`]), so there is no other list of them. The one rule: a file
//! that another user could have written changes nothing. Without a file, nothing is parsed.

mod apply;
mod table;

use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use iotomy_record::store::{Distrust, open_trusted, user_folder};

pub(crate) use self::apply::with_defaults;
pub(crate) use self::table::Setting;
use crate::screen::{path_text, shown};

/// The file of the system.
const OF_SYSTEM: &str = "/etc/iotomy/config.toml";

/// The largest file that is read.
const MOST: u64 = 1 << 20;

/// The files that there are, the one that counts most first.
#[derive(Debug, Default)]
pub(crate) struct Config {
    files: Vec<ConfigFile>,
}

/// A file and its content.
#[derive(Debug)]
struct ConfigFile {
    path: PathBuf,
    text: String,
}

impl Config {
    /// Reads the user's file and the system's. One that another user may have written is left out with
    /// a message.
    ///
    /// # Errors
    /// A file that is there and cannot be read; the one that the variable names also where it is not
    /// there, or not to be trusted.
    pub(crate) fn read() -> Result<Self> {
        let mut files = Vec::new();
        match env::var_os("IOTOMY_CONFIG").filter(|path| !path.is_empty()) {
            Some(path) => files.extend(named(&path)?),
            None => {
                let own = user_folder("XDG_CONFIG_HOME", ".config");
                if let Some(folder) = own {
                    files.extend(usual(&folder.join("iotomy/config.toml"))?);
                }
            }
        }
        files.extend(usual(Path::new(OF_SYSTEM))?);
        Ok(Self { files })
    }

    /// Whether there is nothing to follow.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.iter().all(|file| file.text.trim().is_empty())
    }

    /// Whether no file can have a table of this verb: to check them takes longer than a small copy.
    pub(crate) fn is_without(&self, verb: &str) -> bool {
        self.files.iter().all(|file| !file.text.contains(verb))
    }

    /// Every setting, those that count most first, for the verbs below `root`. `is_subject` says whether
    /// an argument of a verb chooses what is run or watched.
    ///
    /// # Errors
    /// The first that is not valid, by its file and line.
    pub(crate) fn settings(
        &self,
        root: clap::Command,
        is_subject: fn(&str, &str) -> bool,
    ) -> Result<Vec<Setting>> {
        let mut root = root.disable_help_subcommand(true);
        root.build();
        let mut settings = Vec::new();
        for file in &self.files {
            let found = table::settings(&file.text, &root, is_subject);
            settings.extend(found.map_err(|mistake| {
                let path = path_text(&file.path);
                let table::Mistake { line, what } = mistake;
                anyhow::anyhow!("invalid configuration {path}: line {line}: {what}")
            })?);
        }
        Ok(settings)
    }
}

/// Whether the configuration keeps every run, once it is read.
static KEEPS_ALWAYS: AtomicBool = AtomicBool::new(false);

/// Takes over the settings that are of no option.
pub(crate) fn follow(settings: &[Setting]) {
    let found = settings.iter().find(|one| one.is(table::HISTORY, table::ALWAYS));
    KEEPS_ALWAYS.store(found.is_some_and(|one| one.values == ["true"]), Ordering::Relaxed);
}

/// Whether every run is kept: by the variable, or else by the configuration.
///
/// # Errors
/// Another word in the variable.
pub(crate) fn keeps_always() -> Result<bool> {
    match env::var_os("IOTOMY_HISTORY").filter(|value| !value.is_empty()) {
        Some(value) if value == "always" => Ok(true),
        Some(value) if value == "never" => Ok(false),
        Some(value) => {
            bail!("invalid IOTOMY_HISTORY={:?}: expected always or never", value.to_string_lossy())
        }
        None => Ok(KEEPS_ALWAYS.load(Ordering::Relaxed)),
    }
}

/// The file that the variable names.
fn named(path: &OsStr) -> Result<Option<ConfigFile>> {
    let path = PathBuf::from(path);
    if path == Path::new("/dev/null") {
        return Ok(None);
    }
    let shown_path = path_text(&path);
    match open_trusted(&path) {
        Ok(file) => content(file, path).map(Some),
        Err(error) => match distrust(&error) {
            Some(reason) => bail!("cannot follow the configuration {shown_path}: {reason}"),
            None => Err(error).with_context(|| {
                format!("cannot read the configuration {shown_path} (IOTOMY_CONFIG)")
            }),
        },
    }
}

/// A file at its usual place, if it is there.
fn usual(path: &Path) -> Result<Option<ConfigFile>> {
    let shown_path = || path_text(path);
    let error = match open_trusted(path) {
        Ok(file) => return content(file, path.to_owned()).map(Some),
        Err(error) => error,
    };
    if let Some(reason) = distrust(&error) {
        let text = format!("the configuration {} is not followed: {reason}", shown_path());
        // If standard error is closed, nothing can be reported.
        let _ = writeln!(std::io::stderr(), "iotomy: {}", shown(&text));
        return Ok(None);
    }
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Ok(None),
        // A directory that this user may not enter, such as that of the user before su, does not have
        // this user's settings.
        ErrorKind::PermissionDenied if path.symlink_metadata().is_err() => Ok(None),
        _ => Err(error).with_context(|| format!("cannot read the configuration {}", shown_path())),
    }
}

fn content(file: File, path: PathBuf) -> Result<ConfigFile> {
    let mut text = String::new();
    let shown_path = || path_text(&path);
    let read = file.take(MOST + 1).read_to_string(&mut text);
    read.with_context(|| format!("cannot read the configuration {}", shown_path()))?;
    if text.len() as u64 > MOST {
        bail!("cannot read the configuration {}: it is larger than 1 MiB", shown_path());
    }
    Ok(ConfigFile { path, text })
}

/// Why a file is not followed by this user: another could have written it.
fn distrust(error: &std::io::Error) -> Option<String> {
    let reason = error.get_ref()?.downcast_ref::<Distrust>()?;
    Some(match reason {
        Distrust::Owner(owner) => {
            format!("it belongs to user {owner}; copy it, or leave it out by --no-config")
        }
        reason => reason.to_string(),
    })
}
