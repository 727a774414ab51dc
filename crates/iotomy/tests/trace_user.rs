//! `--user`, and iotomy without privilege.

use crate::support;

use support::{
    Need, as_nobody, bare, each_observer, for_everyone, has, iotomy, root, skip, traced,
};

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
    let reason = record.observer.fallback.unwrap();
    assert!(reason.starts_with("bpf: ") && reason.contains("EPERM"), "{reason}");
    assert!(error.contains("\n  fallback    watched by ptrace, because of bpf: "), "{error}");
    let mut command = as_nobody(folder.path());
    let output = command.args(["trace", "--observer", "bpf", "true"]).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), error.lines().count()), (Some(2), 1), "{error}");
    assert!(error.starts_with("iotomy: cannot watch by bpf: "), "{error}");
}

#[test]
fn root_without_a_capability_is_not_told_to_become_root() {
    if !root() || !has("setpriv") {
        return;
    }
    let mut other = bare("setpriv", &["--reuid=65534", "--clear-groups", "sleep", "1000"]);
    let mut other = other.spawn().unwrap();
    let pid = other.id().to_string();
    let said = |words: &[&str]| {
        let iotomy = iotomy(words);
        let mut command = bare("setpriv", &["--bounding-set=-sys_admin,-bpf,-perfmon,-sys_ptrace"]);
        command.arg(iotomy.get_program()).args(iotomy.get_args());
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let all = [
        (said(&["trace", "--observer", "bpf", "true"]), "CAP_BPF and CAP_PERFMON"),
        (said(&["anatomy", "true"]), "CAP_BPF and CAP_PERFMON"),
        (said(&["d", "-n", "BEGIN { exit(0) }"]), "CAP_BPF and CAP_PERFMON"),
        (said(&["trace", "--observer", "ptrace", "-p", &pid, "-d", "0.1"]), "CAP_SYS_PTRACE"),
    ];
    other.kill().unwrap();
    other.wait().unwrap();
    for (said, lacking) in all {
        assert!(said.contains(&format!("give this container {lacking}")), "{said}");
        assert!(!said.contains("as root"), "{said}");
    }
}

#[test]
fn a_process_that_runs_already_is_watched_by_ptrace_only_if_that_is_typed() {
    if !root() || !has("setpriv") {
        return;
    }
    let folder = for_everyone();
    let mut sleep = std::process::Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "sleep", "1000"])
        .spawn()
        .unwrap();
    let pid = sleep.id().to_string();
    let program = || std::fs::read_link(format!("/proc/{pid}/exe")).unwrap();
    while program().file_name() == std::path::Path::new("setpriv").file_name() {
        std::thread::yield_now();
    }
    for options in [&["-d", "0.1"][..], &["-i", "1", "-d", "0.1"], &["--ring", "1", "-d", "0.1"]] {
        let words = [&["trace", "-p", &pid], options].concat();
        let output = as_nobody(folder.path()).args(words).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), error.lines().count()), (Some(2), 1), "{error}");
        assert!(error.starts_with("iotomy: cannot watch by bpf: "), "{error}");
        assert!(error.contains("EPERM") && error.contains("--observer ptrace"), "{error}");
    }
    let typed = ["trace", "-p", &pid, "-d", "0.1", "--observer", "ptrace"];
    let output = as_nobody(folder.path()).args(typed).output().unwrap();
    sleep.kill().unwrap();
    sleep.wait().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{error}");
    assert!(error.contains("observer ptrace") && !error.contains("fallback"), "{error}");
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

/// The lines that the command of `--user nobody` with these options prints.
fn environment(options: &[&str]) -> Vec<String> {
    let mut command = iotomy(&["trace", "-q", "--user", "nobody"]);
    command.args(options).args(["--", "/usr/bin/env"]);
    command.env("SECRET", "x").env("TERM", "vt100").env("LC_ALL", "C").env("HOME", "/root");
    let output = command.env("PATH", "/root/bin:/usr/bin:/bin").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn another_user_gets_the_environment_of_a_login() {
    let Some(user) = nix::unistd::User::from_name("nobody").unwrap().filter(|_| root()) else {
        return;
    };
    let lines = environment(&[]);
    let value = |name: &str| {
        let lead = format!("{name}=");
        lines.iter().find_map(|line| line.strip_prefix(&lead))
    };
    assert_eq!(value("HOME"), user.dir.to_str());
    assert_eq!(value("SHELL"), user.shell.to_str());
    assert_eq!((value("USER"), value("LOGNAME")), (Some("nobody"), Some("nobody")));
    assert_eq!((value("TERM"), value("LC_ALL")), (Some("vt100"), Some("C")));
    assert!(value("PATH").is_some_and(|path| path.contains("/bin") && !path.contains("/root")));
    assert_eq!(value("SECRET"), None);
    let lines = environment(&["--preserve-environment"]);
    for line in ["SECRET=x", "HOME=/root", "PATH=/root/bin:/usr/bin:/bin"] {
        assert!(lines.iter().any(|one| one == line), "{line} in {lines:?}");
    }
    assert!(!lines.iter().any(|line| line == "USER=nobody"), "{lines:?}");
}

#[test]
fn an_environment_is_preserved_of_a_user_alone() {
    for words in
        [&["trace", "--preserve-environment", "true"][..], &["trace", "-a", "--user", "nobody"]]
    {
        let output = iotomy(words).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
}
