//! `--brief`: one screen of trace, anatomy and show.

use crate::support;

use support::{each_observer, iotomy};

#[test]
fn a_brief_report_is_one_screen_and_names_what_is_left_out() {
    each_observer(|observer| {
        let folder = tempfile::tempdir().unwrap();
        let json = folder.path().join("run.json");
        let json = json.to_str().unwrap();
        let words = ["trace", "--brief", "--observer", observer, "--json", json, "--"];
        let command = ["sh", "-c", "ls -l / | cat; ls /nonexistent; exit 3"];
        let output = iotomy(&[&words[..], &command].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(3));
        let shown = iotomy(&["show", "--brief", json]).output().unwrap();
        let text = String::from_utf8(shown.stdout).unwrap();
        assert!(String::from_utf8(output.stderr).unwrap().ends_with(&text), "{text}");
        assert!(text.lines().count() <= 24, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.starts_with("sh (") && text.contains("exit 3"), "{text}");
        assert!(text.contains("left out: ") && text.contains("(without --brief)"), "{text}");
        // The record has everything.
        let whole = String::from_utf8(iotomy(&["show", json]).output().unwrap().stdout).unwrap();
        assert!(whole.lines().count() > text.lines().count());
        let both = iotomy(&["show", "--brief", "--top", "3", json]).output().unwrap();
        assert_eq!(both.status.code(), Some(2));
    });
}

#[test]
fn a_brief_anatomy_has_its_layers() {
    if !support::bpf() {
        return;
    }
    let words =
        ["anatomy", "--brief", "--", "dd", "if=/dev/zero", "of=/dev/null", "bs=64k", "count=20000"];
    let output = iotomy(&words).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.lines().any(|line| line.trim_start().starts_with("layer ")), "{text}");
    assert!(text.contains("left out: "), "{text}");
}
