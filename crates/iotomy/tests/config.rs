//! `config.toml`: defaults of options, their precedence, mistakes, and files that are not to be trusted.

use crate::support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use support::{iotomy, root};
use tempfile::TempDir;

/// A user with a record to show, and a configuration.
struct User {
    folder: TempDir,
}

impl User {
    fn new(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let user = Self { folder };
        let json = user.path("run.json");
        let words = ["trace", "-q", "--json", &json, "--", "ls", "/"];
        assert!(iotomy(&words).status().unwrap().success());
        fs::create_dir(user.path("iotomy")).unwrap();
        fs::write(user.path("iotomy/config.toml"), config).unwrap();
        user
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    fn run(&self, words: &[&str]) -> Output {
        let mut command = iotomy(words);
        command.env_remove("IOTOMY_CONFIG").env("XDG_CONFIG_HOME", self.folder.path());
        command.current_dir(self.folder.path()).output().unwrap()
    }

    fn shows(&self, options: &[&str]) -> String {
        let output = self.run(&[&["show"], options, &["run.json"]].concat());
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn refused(&self, words: &[&str]) -> String {
        let output = self.run(words);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.starts_with("iotomy: ") && text.lines().count() == 1, "{text}");
        text
    }
}

#[test]
fn the_command_line_goes_before_the_file_and_the_file_before_the_default() {
    let user = User::new("[show]\ntop = 2\nascii = true\nquantize = ['wall']\n");
    let plain = user.shows(&["--no-config"]);
    let configured = user.shows(&[]);
    assert_eq!(
        configured,
        user.shows(&["--no-config", "--top", "2", "--ascii", "--quantize", "wall"])
    );
    assert_ne!(configured, plain);
    assert!(configured.is_ascii() && configured.contains("wall time"), "{configured}");
    let given = user.shows(&["--top", "0", "--quantize", "return"]);
    assert_eq!(
        given,
        user.shows(&["--no-config", "--top", "0", "--quantize", "return", "--ascii"])
    );
    // Also in front of the verb.
    let output = user.run(&["--no-config", "show", "run.json"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), plain);
}

#[test]
fn the_variable_names_another_file() {
    let user = User::new("[show]\ntop = 2\n");
    let other = user.path("other.toml");
    fs::write(&other, "[show]\nascii = true\n").unwrap();
    let with = |path: &str| {
        let mut command = iotomy(&["show", "run.json"]);
        command.env("XDG_CONFIG_HOME", user.folder.path()).env("IOTOMY_CONFIG", path);
        command.current_dir(user.folder.path()).output().unwrap()
    };
    let expected = user.shows(&["--no-config", "--ascii"]);
    assert_eq!(String::from_utf8(with(&other).stdout).unwrap(), expected);
    let missing = with("/nonexistent/config.toml");
    assert_eq!(missing.status.code(), Some(2), "{missing:?}");
    let stderr = String::from_utf8(missing.stderr).unwrap();
    assert!(stderr.contains("cannot read the configuration /nonexistent/config.toml"), "{stderr}");
}

#[test]
fn a_mistake_is_named_by_file_and_line_and_nothing_is_run() {
    let user = User::new("[show]\ntop = 2\n\n[trase]\ntop = 1\n");
    for words in [&["show", "run.json"][..], &["trace", "--", "touch", "made"]] {
        let stderr = user.refused(words);
        assert!(
            stderr.contains("iotomy/config.toml: line 4: there is no verb \"trase\"; is it trace?"),
            "{stderr}"
        );
    }
    assert!(!fs::exists(user.path("made")).unwrap());
    // Help, versions and completions are there all the same.
    for words in
        [&["--help"][..], &["trace", "-h"], &["--version"], &["complete", "--", "iotomy", ""]]
    {
        assert!(user.run(words).status.success(), "{words:?}");
    }
    assert!(user.shows(&["--no-config"]).contains("ls"));
}

#[test]
fn a_default_gives_way_to_an_option_that_excludes_it() {
    let user = User::new("[report]\nmarkdown = true\n");
    let text = |words: &[&str]| {
        let output = user.run(&[&["report"], words, &["run.json"]].concat());
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(text(&[]).starts_with("# trace"));
    assert!(text(&["--csv"]).lines().next().unwrap().contains(','));
}

#[test]
fn defaults_hold_for_a_copy_of_names_alone() {
    let user = User::new("[copy]\nappend = true\n");
    fs::write(user.path("a"), "new").unwrap();
    fs::write(user.path("b"), "old").unwrap();
    assert!(user.run(&["copy", "a", "b"]).status.success());
    assert_eq!(fs::read_to_string(user.path("b")).unwrap(), "oldnew");
    assert!(user.run(&["copy", "--no-config", "a", "b"]).status.success());
    assert_eq!(fs::read_to_string(user.path("b")).unwrap(), "new");
}

#[test]
fn a_file_that_another_user_may_have_written_is_left_out() {
    let user = User::new("[show]\ntop = 2\n");
    let plain = user.shows(&["--no-config"]);
    let path = user.path("iotomy/config.toml");
    let left_out = |reason: &str| {
        let output = user.run(&["show", "run.json"]);
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains("is not followed: ") && stderr.contains(reason), "{stderr}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), plain);
    };
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    left_out("everyone may write it");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    assert_ne!(user.shows(&[]), plain);
    if root() {
        std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
        left_out("it belongs to user 65534");
    }
}
