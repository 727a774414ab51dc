//! `--user`, and iotomy without privilege.

#![expect(clippy::unwrap_used, reason = "a failed step of a test is a failed test")]

mod support;

use support::{Need, as_nobody, each_observer, for_everyone, has, iotomy, root, skip, traced};

fn nobody() -> Option<(String, String)> {
    let user = nix::unistd::User::from_name("nobody").unwrap();
    if user.is_none() {
        skip(Need::Machine, "there is no user nobody");
    }
    user.map(|user| (user.uid.to_string(), user.gid.to_string()))
}

#[test]
fn the_command_runs_as_the_user_asked_for() {
    let Some((uid, gid)) = nobody().filter(|_| root()) else { return };
    each_observer(|observer| {
        let script = "id -u; id -ru; id -g; id -G; echo $USER $LOGNAME";
        let traced = traced(observer, &["--user", "nobody"], &["sh", "-c", script]);
        let said: Vec<&str> = traced.stdout().lines().collect();
        assert_eq!(said[..3], [&uid, &uid, &gid], "{observer}: {}", traced.stderr());
        assert!(said[3].split(' ').any(|group| *group == gid) && !said[3].starts_with("0 "));
        assert_eq!(said[4], "nobody nobody");
        traced.whole_record();
    });
}

#[test]
fn a_user_that_is_not_there_is_an_error_in_a_line() {
    let output = iotomy(&["trace", "--user", "no-such-user", "true"]).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(error.starts_with("iotomy: there is no user \"no-such-user\""), "{error}");
}

#[test]
fn only_root_becomes_another_user() {
    if !root() || !has("setpriv") {
        return;
    }
    let folder = for_everyone();
    let mut command = as_nobody(folder.path());
    let output = command.args(["trace", "--user", "root", "id", "-u"]).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{error}");
    assert!(error.contains("only root may"), "{error}");
}

#[test]
fn without_privilege_auto_falls_back_and_says_why_on_one_line() {
    if !root() || !has("setpriv") {
        return;
    }
    let folder = for_everyone();
    let mut command = as_nobody(folder.path());
    let words = ["trace", "--json", "record.json", "sh", "-c", "echo ran; exit 3"];
    let output = command.args(words).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(3), &b"ran\n"[..]), "{error}");
    let mut lines = error.lines();
    let why = lines.next().unwrap();
    assert!(why.starts_with("iotomy: watching by ptrace, which slows every call"), "{why}");
    assert!(why.contains("EPERM") && why.contains("run as root"), "{why}");
    assert!(lines.next().unwrap().starts_with("sh ("), "{error}");
    let record = iotomy_record::store::load_trace(folder.path().join("record.json")).unwrap();
    assert_eq!(record.observer.name, "ptrace");
    let mut command = as_nobody(folder.path());
    let output = command.args(["trace", "--observer", "bpf", "true"]).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), error.lines().count()), (Some(2), 1), "{error}");
    assert!(error.starts_with("iotomy: cannot watch by bpf: "), "{error}");
}

#[test]
fn without_privilege_the_whole_machine_is_refused_with_the_reason() {
    if !root() || !has("setpriv") {
        return;
    }
    let folder = for_everyone();
    let output = as_nobody(folder.path()).args(["trace", "-a", "-d", "1"]).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.lines().last().unwrap().contains("root"), "{error}");
}
