//! What the agent refuses to begin with.

use std::fs;
use std::net::TcpListener;

use crate::support::command;

/// Its status and what it says.
fn refused(words: &[&str]) -> String {
    let output = command(words).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
    assert!(said.starts_with("iotomy: ") && !said.contains('\x1b'), "{said}");
    said
}

#[test]
fn it_listens_beyond_the_loopback_interface_with_tls_and_a_token_only() {
    for address in ["0.0.0.0:9979", "[::]:9979", "192.0.2.1:9979"] {
        let said = refused(&["--listen", address]);
        assert!(said.contains("is not a loopback address"), "{said}");
        assert!(said.contains("give tls-cert, tls-key and token-file, too"), "{said}");
    }
    assert!(refused(&["--listen", "localhost"]).contains("expected an IP address and a port"));
}

#[test]
fn an_address_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let said = refused(&["--listen", &address]);
    assert!(
        said.contains(&format!("cannot listen on {address}: Address already in use")),
        "{said}"
    );
}

#[test]
fn a_control_group_that_is_not_there_is_an_error() {
    for pattern in ["/no-such-group", "/no-such-*", "no-such-[ab]"] {
        let said = refused(&["--listen", "127.0.0.1:0", "--cgroup", pattern]);
        assert!(said.contains("no-such-") && said.contains("find /sys/fs/cgroup"), "{said}");
    }
    assert!(refused(&["--cgroup", ""]).contains("--cgroup"));
}

#[test]
fn a_budget_is_a_percentage_above_none() {
    for (text, reason) in [
        ("1", "invalid percentage: expected something like 1%"),
        ("much", "invalid percentage: expected something like 1%"),
        ("0%", "invalid percentage: expected 0.0001% to 100%"),
        ("101%", "invalid percentage: expected 0.0001% to 100%"),
    ] {
        let said = refused(&["--budget", text]);
        assert!(said.contains("--budget <SHARE>") && said.contains(reason), "{said}");
    }
}

#[test]
fn a_file_that_is_wrong_is_named_with_the_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent.toml");
    let path = file.to_str().unwrap();
    fs::write(&file, "by = \"image\"\n\ncolour = 1\n").unwrap();
    let said = refused(&["--config", path]);
    let expected =
        format!("iotomy: invalid configuration {path}: line 3: there is no option \"colour\"\n");
    assert_eq!(said, expected);
    fs::remove_file(&file).unwrap();
    assert!(refused(&["--config", path]).contains("No such file or directory"));
}

#[test]
fn help_and_version_are_answers() {
    for word in ["--help", "--version"] {
        let output = std::process::Command::new(crate::support::AGENT).arg(word).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{word}");
        assert!(String::from_utf8(output.stdout).unwrap().contains("iotomy-agent"), "{word}");
    }
    assert!(refused(&["--by", "pid"]).contains("possible values: image, title"));
    assert!(refused(&["--max-services", "0"]).contains("from 1 to 10000"));
}
