//! `iotomy ports`: commands that find `/dev/poll`.

use crate::support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::PathBuf;
use std::process::{Command, Output};

use support::{Need, has, iotomy, root, skip};

/// The library as cargo has built it for its own tests.
fn library() -> Option<PathBuf> {
    let tests = std::env::current_exe().unwrap();
    let library = tests.parent().unwrap().join("libiotomy_ports_c.so");
    if !library.exists() {
        skip(Need::Programs, "no libiotomy_ports_c.so: cargo build -p iotomy-ports-c --tests");
        return None;
    }
    Some(library)
}

fn ports(words: &[&str]) -> Option<Output> {
    let library = library()?;
    let mut command = iotomy(&["ports", "--library", library.to_str().unwrap(), "--"]);
    Some(command.args(words).output().unwrap())
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Opens `/dev/poll`, adds standard output to it, and waits for that: prints how many are ready.
const ASK: &str = r#"
open(my $set, "+<", "/dev/poll") or exit 9;
syswrite($set, pack("iss", 1, 4, 0)) == 8 or exit 8;
my $entry = "\0" x 8;
my $asked = pack("QQix4", unpack("Q", pack("P", $entry)), 1, 1000);
print ioctl($set, 0xD001, $asked) + 0, " @ARGV";
exit 7"#;

#[test]
fn a_program_that_is_not_linked_with_the_library_finds_dev_poll() {
    if !has("perl") {
        return;
    }
    let bare = Command::new("perl").args(["-e", ASK]).status().unwrap();
    assert_eq!(bare.code(), Some(9), "there is a /dev/poll");
    let Some(output) = ports(&["perl", "-e", ASK, "a", "b"]) else { return };
    assert_eq!(output.status.code(), Some(7), "{}", said(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1 a b");
}

#[test]
fn the_command_inherits_what_iotomy_did_and_the_library() {
    let Some(library) = library() else { return };
    let library = fs::canonicalize(library).unwrap();
    let script = "echo $0 $LD_PRELOAD; trap - XFSZ; kill -XFSZ $$";
    let mut command = iotomy(&["ports", "--library", library.to_str().unwrap(), "sh", "-c"]);
    // What is there already comes after it.
    let others = library.to_str().unwrap();
    let output = command.args([script, "name"]).env("LD_PRELOAD", others).output().unwrap();
    let expected = format!("name {others}:{others}\n");
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{}", said(&output));
    // A signal that was ignored at its start could not be set to its default by a shell.
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&output.status), Some(25));
}

#[test]
fn programs_that_would_not_load_it_are_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8], mode: u32| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let mut elf = vec![0; 64];
    elf[..5].copy_from_slice(b"\x7fELF\x02");
    elf[18] = if cfg!(target_arch = "aarch64") { 183 } else { 62 };
    let fixed = file("fixed", &elf, 0o755);
    let script = file("script", format!("#!{fixed} x\n").as_bytes(), 0o755);
    let mut refused = vec![(fixed, "fixed is linked statically"), (script, "fixed is linked")];
    if root() {
        let other = file("other", &fs::read("/bin/true").unwrap(), 0o755);
        chown(&other, Some(1), Some(1)).unwrap();
        fs::set_permissions(&other, fs::Permissions::from_mode(0o4755)).unwrap();
        refused.push((other, "other runs as another user or group"));
    }
    for (program, reason) in refused {
        let Some(output) = ports(&[&program]) else { return };
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(reason) && said.lines().count() == 1, "{said}");
    }
    let plain = file("plain", b"", 0o644);
    for (words, status, reason) in [
        (vec!["no-such-program-here"], 127, "no directory in $PATH contains it"),
        (vec![&*plain], 126, "Permission denied"),
    ] {
        let Some(output) = ports(&words) else { return };
        assert_eq!(output.status.code(), Some(status), "{}", said(&output));
        assert!(said(&output).contains(reason), "{}", said(&output));
    }
    let nowhere = iotomy(&["ports", "--library", "/nowhere/lib.so", "true"]).output().unwrap();
    assert_eq!(nowhere.status.code(), Some(2));
    assert!(said(&nowhere).contains("cannot find the library"), "{}", said(&nowhere));
}
