//! Where things are.

use std::path::PathBuf;

use iotomy_record::store::user_folder;

/// The user's store: `iotomy/history.db` in `XDG_DATA_HOME` or in `~/.local/share`. `None` when neither
/// is known.
pub fn store_file() -> Option<PathBuf> {
    Some(user_folder("XDG_DATA_HOME", ".local/share")?.join("iotomy/history.db"))
}
