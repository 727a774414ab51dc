//! Where things are.

use std::path::PathBuf;

use iotomy_record::store::user_folder;

/// The user's store: `iotomy/history.db` in `XDG_DATA_HOME` or in `~/.local/share`. `None` when neither
/// is known.
pub fn store_file() -> Option<PathBuf> {
    Some(user_folder("XDG_DATA_HOME", ".local/share")?.join("iotomy/history.db"))
}

/// The user's configuration: `iotomy/config.toml` in `XDG_CONFIG_HOME` or in `~/.config`. `None` when
/// neither is known.
pub fn config_file() -> Option<PathBuf> {
    Some(user_folder("XDG_CONFIG_HOME", ".config")?.join("iotomy/config.toml"))
}
