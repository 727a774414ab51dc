//! Where things are, by the XDG base directory specification: a path that is not absolute is to be
//! ignored.

use std::env;
use std::path::PathBuf;

/// The user's store: `iotomy/history.db` in `XDG_DATA_HOME` or in `~/.local/share`. `None` when neither
/// is known.
pub fn store_file() -> Option<PathBuf> {
    Some(folder("XDG_DATA_HOME", ".local/share")?.join("iotomy/history.db"))
}

/// The user's configuration: `iotomy/config.toml` in `XDG_CONFIG_HOME` or in `~/.config`. `None` when
/// neither is known.
pub fn config_file() -> Option<PathBuf> {
    Some(folder("XDG_CONFIG_HOME", ".config")?.join("iotomy/config.toml"))
}

fn folder(variable: &str, of_home: &str) -> Option<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute(variable).or_else(|| Some(absolute("HOME")?.join(of_home)))
}
