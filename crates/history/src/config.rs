//! The user's configuration: whether every run is kept.

use std::env;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// The user's settings for all runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Which runs are saved.
    history: History,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct History {
    always: bool,
}

/// Why the user's setting is unknown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The variable has another value.
    #[error("invalid IOTOMY_HISTORY={found:?}: expected always or never")]
    Variable {
        /// The text found there.
        found: String,
    },
    /// The file could not be read.
    #[error("cannot read the configuration {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file was read, and has an invalid setting.
    #[error("invalid configuration {path}: line {line}: {what}; the only key is history.always")]
    Content {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// The mistake.
        what: String,
    },
}

impl Config {
    /// The variable's word, where it has one, and else the file's; a file that is not there wants
    /// nothing.
    ///
    /// # Errors
    /// When the setting that counts is invalid.
    pub fn of_user() -> Result<Self, ConfigError> {
        let always = |always| Ok(Self { history: History { always } });
        match env::var_os("IOTOMY_HISTORY").filter(|value| !value.is_empty()) {
            Some(value) if value == "always" => always(true),
            Some(value) if value == "never" => always(false),
            Some(value) => {
                Err(ConfigError::Variable { found: value.to_string_lossy().into_owned() })
            }
            None => crate::config_file().map_or(Ok(Self::default()), |path| Self::read(&path)),
        }
    }

    /// Whether every run is kept.
    pub fn keeps_always(self) -> bool {
        self.history.always
    }

    fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(Self::default());
            }
            // A directory that this user may not enter, such as that of the user before su, does
            // not have this user's settings.
            Err(e)
                if e.kind() == ErrorKind::PermissionDenied && path.symlink_metadata().is_err() =>
            {
                return Ok(Self::default());
            }
            Err(source) => return Err(ConfigError::Read { path: path.to_owned(), source }),
        };
        toml::from_str(&text).map_err(|error| {
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
            ConfigError::Content {
                path: path.to_owned(),
                line: before.matches('\n').count() + 1,
                what: error.message().replace('\n', ", "),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        std::fs::write(&path, text).unwrap();
        Config::read(&path).map_err(|error| error.to_string())
    }

    #[test]
    fn the_file_says_whether_every_run_is_kept() {
        for (text, always) in [
            ("", false),
            ("history.always = true\n", true),
            ("[history]\nalways = true # all of them\n", true),
            ("history = {always = false}", false),
        ] {
            assert_eq!(read(text).unwrap().keeps_always(), always, "{text}");
        }
        assert!(!Config::read(Path::new("/nonexistent/x")).unwrap().keeps_always());
        assert!(!Config::read(Path::new("/dev/null/x")).unwrap().keeps_always());
    }

    #[test]
    fn what_it_does_not_know_is_named_with_its_line() {
        for (text, line, says) in [
            ("\nhistory.alway = true", 2, "alway"),
            ("\n\nfuture = 1", 3, "future"),
            ("history.always = \"yes\"", 1, "boolean"),
            ("history.always = ", 1, ""),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(&format!("line {line}: ")) && error.contains(says), "{error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }
}
