//! `iotomy agent`: what it hands to the program that it becomes, and how it refuses.

use crate::support;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use support::{IOTOMY, iotomy};

/// Says its words, each in a line, in place of the program that serves metrics.
const ECHO: &[u8] = b"#!/bin/sh\nprintf '%s\\n' \"$@\"\n";

/// The command with such a program beside it.
fn beside(folder: &std::path::Path, program: Option<&[u8]>) -> Command {
    let alone = folder.join("iotomy");
    fs::copy(IOTOMY, &alone).unwrap();
    if let Some(text) = program {
        support::program(folder, "iotomy-agent", text);
    }
    let mut command = Command::new(alone);
    command.env("XDG_CONFIG_HOME", folder.join("config"));
    command
}

#[test]
fn every_option_is_handed_on_as_it_was_given() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = beside(folder.path(), Some(ECHO));
    command.args(["agent", "--cgroup", "/a *", "--listen", "127.0.0.1:1", "--by", "title"]);
    command.args(["--cgroup", "/b", "--max-services", "7", "--config", "agent file.toml"]);
    command.args(["--otlp-interval", "5", "--otlp", "http://a:4318", "--budget", "1 %"]);
    command.args(["--allow-plain", "--token-file", "t", "--tls-key", "k", "--tls-cert", "c c"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let words = String::from_utf8(output.stdout).unwrap();
    let pairs = [
        ["--listen", "127.0.0.1:1"],
        ["--tls-cert", "c c"],
        ["--tls-key", "k"],
        ["--token-file", "t"],
        ["--by", "title"],
        ["--max-services", "7"],
        ["--budget", "1 %"],
        ["--otlp", "http://a:4318"],
        ["--otlp-interval", "5"],
        ["--config", "agent file.toml"],
        ["--cgroup", "/a *"],
        ["--cgroup", "/b"],
    ];
    let expected = [&pairs.concat()[..], &["--allow-plain"]].concat();
    assert_eq!(words.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn config_toml_has_defaults_for_it_as_for_every_verb() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = beside(folder.path(), Some(ECHO));
    let config = folder.path().join("config/iotomy");
    fs::create_dir_all(&config).unwrap();
    fs::write(config.join("config.toml"), "[agent]\nmax-services = 9\n").unwrap();
    fs::set_permissions(config.join("config.toml"), PermissionsExt::from_mode(0o600)).unwrap();
    let output = command.arg("agent").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "--max-services\n9\n", "{output:?}");
}

#[test]
fn a_command_line_that_is_wrong_is_refused() {
    for words in [
        &["agent", "--by", "pid"][..],
        &["agent", "--max-services", "0"],
        &["agent", "--max-services", "10001"],
        &["agent", "--cgroup", ""],
        &["agent", "--otlp", ""],
        &["agent", "--otlp-interval", "0"],
        &["agent", "--budget", ""],
        &["agent", "--colour", "1%"],
        &["agent", "more"],
    ] {
        let output = iotomy(words).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(output.stderr.starts_with(b"iotomy: "), "{words:?}: {output:?}");
    }
}

#[test]
fn without_the_program_it_is_said_how_to_get_it() {
    let folder = tempfile::tempdir().unwrap();
    let output = beside(folder.path(), None).arg("agent").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let is_installed = ["/usr/local/bin", "/usr/bin"]
        .iter()
        .any(|at| fs::metadata(format!("{at}/iotomy-agent")).is_ok());
    if is_installed {
        return support::skip(support::Need::Machine, "iotomy-agent is installed here");
    }
    assert_eq!(output.status.code(), Some(2), "{said}");
    let expected =
        format!("iotomy: cannot find iotomy-agent in {}, ", folder.path().to_str().unwrap());
    assert!(said.starts_with(&expected), "{said}");
    assert!(said.ends_with("`make install`, or build it with `make build-agent`\n"), "{said}");
}
