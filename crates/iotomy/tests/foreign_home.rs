//! HOME and the XDG directories of another user: nothing in them is followed, and nothing is waited for.

use crate::support;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;
use std::process::{Command, Output};

use support::{IOTOMY, root};
use tempfile::TempDir;

/// The other user: `nobody`.
const OTHER: u32 = 65534;

fn make_fifo(path: &Path) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir_in("/tmp").unwrap());
        fs::set_permissions(home.0.path(), Permissions::from_mode(0o755)).unwrap();
        for folder in ["config", "data", "state", "cache"] {
            fs::create_dir_all(home.0.path().join(folder).join("iotomy")).unwrap();
        }
        home
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, words: &[&str]) -> Output {
        // Status 124 is a run that waited for something.
        let mut command = Command::new("timeout");
        command.args(["-k", "1", "300", IOTOMY]).args(words).env_remove("IOTOMY_CONFIG");
        for (variable, folder) in [
            ("XDG_CONFIG_HOME", "config"),
            ("XDG_DATA_HOME", "data"),
            ("XDG_STATE_HOME", "state"),
            ("XDG_CACHE_HOME", "cache"),
        ] {
            command.env(variable, self.path(folder));
        }
        command.current_dir(self.0.path()).output().unwrap()
    }

    fn refuses(&self, words: &[&str], says: &str) {
        let output = self.run(words);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {error}");
        assert!(error.contains(says), "{words:?}: {error}");
    }
}

#[test]
fn a_history_that_another_user_can_change_is_not_opened() {
    if !root() {
        return;
    }
    let home = Home::new();
    fs::write(home.path("a"), "x").unwrap();
    assert!(home.run(&["copy", "--save", "a", "b"]).status.success());
    assert!(home.run(&["history", "list"]).status.success());
    // SQLite would undo what the journal says, and remove the file that it names.
    for end in ["", "-journal", "-wal", "-shm"] {
        let file = home.path(&format!("data/iotomy/history.db{end}"));
        let is_there = file.exists();
        if !is_there {
            fs::write(&file, "").unwrap();
        }
        chown(&file, Some(OTHER), None).unwrap();
        home.refuses(&["history", "list"], "it belongs to user 65534");
        home.refuses(&["copy", "--save", "a", "b"], "it belongs to user 65534");
        match is_there {
            true => chown(&file, Some(0), None).unwrap(),
            false => fs::remove_file(&file).unwrap(),
        }
    }
    assert!(home.run(&["history", "list"]).status.success());
    for folder in ["data/iotomy", "data", "."] {
        chown(home.path(folder), Some(OTHER), None).unwrap();
        home.refuses(&["history", "list"], "can be changed by user 65534");
        home.refuses(&["history", "show", "last"], "can be changed by user 65534");
        home.refuses(&["copy", "--save", "a", "b"], "can be changed by user 65534");
        chown(home.path(folder), Some(0), None).unwrap();
    }
    assert!(home.run(&["history", "list"]).status.success());
}

#[test]
fn a_fifo_in_place_of_a_file_is_not_waited_for() {
    let home = Home::new();
    make_fifo(&home.path("config/iotomy/config.toml"));
    fs::write(home.path("a"), "x").unwrap();
    let output = home.run(&["copy", "a", "b"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    assert!(error.contains("is not followed: it is not a regular file"), "{error}");
    make_fifo(&home.path("data/iotomy/history.db"));
    home.refuses(&["history", "list"], "it is not a regular file");
    make_fifo(&home.path("state/iotomy/lab-null-sink.json"));
    home.refuses(&["lab", "run", "null-sink", "--resume"], "it is not a regular file");
}

#[test]
fn the_state_of_another_user_leads_no_experiment_anywhere() {
    if !root() {
        return;
    }
    let home = Home::new();
    fs::write(home.path("precious"), "precious").unwrap();
    symlink("../../precious", home.path("state/iotomy/lab-null-sink.lock")).unwrap();
    fs::create_dir(home.path(".iotomy-lab-1-1")).unwrap();
    let left = home.path(".iotomy-lab-1-1");
    fs::write(home.path("state/iotomy/made-1-1"), left.to_str().unwrap()).unwrap();
    fs::write(home.path("state/iotomy/lab-null-sink.json"), "{}").unwrap();
    chown(home.path("state/iotomy"), Some(OTHER), None).unwrap();
    home.run(&["lab", "run", "null-sink", "--quick", "-L", "size=1M", "--max-time=1"]);
    assert_eq!(fs::read(home.path("precious")).unwrap(), b"precious");
    assert!(left.exists());
    home.refuses(&["lab", "run", "null-sink", "--resume"], "can be changed by user 65534");
}
