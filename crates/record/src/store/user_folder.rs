//! Where a user's files are, by the XDG base directory specification.

use std::env;
use std::path::{Path, PathBuf};

/// The directory that a variable names, or the one of this name in the user's home directory; a
/// path that is not absolute is ignored. `None` when neither is known, or the home directory does
/// not exist: iotomy does not create it. Below it, and where the variable points, directories may
/// be created.
pub fn user_folder(variable: &str, of_home: &str) -> Option<PathBuf> {
    folder(|name| env::var_os(name).map(PathBuf::from), variable, of_home)
}

fn folder(
    named: impl Fn(&str) -> Option<PathBuf>,
    variable: &str,
    of_home: &str,
) -> Option<PathBuf> {
    let absolute = |name| named(name).filter(|path| path.is_absolute());
    let home = || absolute("HOME").filter(|home| Path::is_dir(home));
    absolute(variable).or_else(|| Some(home()?.join(of_home)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_that_is_not_there_has_no_folder() {
        let found = |data: Option<&str>, home: Option<&str>| {
            let named = |name: &str| if name == "HOME" { home } else { data }.map(PathBuf::from);
            folder(named, "XDG_DATA_HOME", ".local/share")
        };
        let home = tempfile::tempdir().unwrap();
        let there = home.path().to_str().unwrap();
        let missing = home.path().join("none");
        let missing = missing.to_str();
        assert_eq!(found(None, Some(there)), Some(home.path().join(".local/share")));
        assert_eq!(found(Some("relative"), Some(there)), Some(home.path().join(".local/share")));
        assert_eq!(found(Some("/data"), missing), Some(PathBuf::from("/data")));
        for home in [None, missing, Some("relative"), Some("/etc/passwd")] {
            assert_eq!(found(None, home), None);
        }
    }
}
