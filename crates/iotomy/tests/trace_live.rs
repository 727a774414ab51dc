//! `trace --live` on a terminal of its own: how it ends, and that the terminal is as it was.

use crate::support;

use std::fs;

use nix::sys::signal::Signal;
use support::attached::Attached;
use support::sessions::{BUSY, ENTERED, LEFT, TerminalSession, members, tools};
use support::{BackgroundProcess, IOTOMY, bare, each_observer, has, send, state, until};

#[test]
fn a_command_that_ends_ends_the_view_and_its_output_and_report_follow() {
    if !tools() {
        return;
    }
    each_observer(|observer| {
        let command = r#"perl -e '$| = 1; print "-t STDOUT\n" if -t STDOUT; print "a line\n"; 1 until -e "go"; exit 7'"#;
        let session = TerminalSession::start(&format!(
            "{IOTOMY} trace --live --observer {observer} {command}"
        ));
        session.until_shown("[calls]");
        fs::write(session.file("go"), "").unwrap();
        let seen = session.end(7);
        let after = seen.rsplit_once(LEFT).unwrap().1;
        assert!(after.contains("-t STDOUT\r\na line\r\n"), "{observer}: {after}");
        assert!(after.contains("exit 7"), "{after}");
    });
}

#[test]
fn q_ends_the_watch_of_a_process() {
    if !tools() {
        return;
    }
    each_observer(|observer| {
        let (subject, _) =
            BackgroundProcess::ready(&["perl", "-e", "$| = 1; print qq(on\n); getppid while 1"]);
        let mut session = TerminalSession::start(&format!(
            "{IOTOMY} trace --live --observer {observer} --json record.json -p {}",
            subject.pid()
        ));
        session.until_shown("getppid");
        session.press("q");
        session.until("the record is there", || session.file("record.json").exists().then_some(()));
        let record = iotomy_record::store::load_trace(session.file("record.json")).unwrap();
        assert!(support::count(&record, "getppid") > 0, "{observer}");
        let seen = session.end(0);
        assert!(seen.rsplit_once(LEFT).unwrap().1.contains("watched for"), "{observer}: {seen}");
    });
}

#[test]
fn ctrl_c_ends_a_command_that_does_not_handle_it() {
    if !tools() {
        return;
    }
    each_observer(|observer| {
        let mut session =
            TerminalSession::start(&format!("{IOTOMY} trace --live --observer {observer} {BUSY}"));
        session.until_shown("getppid");
        session.press("\x03");
        let seen = session.end(130);
        assert!(seen.contains("killed by SIGINT"), "{observer}: {seen}");
    });
}

#[test]
fn sigterm_reaches_the_command_and_ends_the_view_with_it() {
    if !tools() {
        return;
    }
    each_observer(|observer| {
        let line = format!(
            "sh -c 'echo $$ > pid; exec {IOTOMY} trace --live --observer {observer} sleep 1000'"
        );
        let session = TerminalSession::start(&line);
        // The view comes up before the command is watched.
        session.until_shown("nanosleep");
        let pid = fs::read_to_string(session.file("pid")).unwrap().trim().parse().unwrap();
        send(pid, Signal::SIGTERM);
        assert!(session.end(143).contains("killed by SIGTERM"), "{observer}");
    });
}

#[test]
fn the_terminal_is_restored_when_iotomy_is_killed() {
    if !tools() {
        return;
    }
    each_observer(|observer| {
        let line = format!(
            "sh -c 'echo $$ > pid; exec {IOTOMY} trace --live --observer {observer} \
             sh -c \"echo \\$\\$ > command; exec sleep 1000\"'; \
             until test -e go || ! kill -0 {}; do sleep 0.01; done",
            std::process::id()
        );
        let session = TerminalSession::start(&line);
        session.until_shown("[calls]");
        let command = session.until("the command is there", || {
            fs::read_to_string(session.file("command")).ok()?.trim().parse().ok()
        });
        let pid = fs::read_to_string(session.file("pid")).unwrap().trim().parse().unwrap();
        let held = Attached::to(pid);
        assert_eq!(held == Attached::default(), observer != "bpf", "{held:?}");
        send(pid, Signal::SIGKILL);
        session.until_shown(LEFT);
        held.until_gone();
        assert!(!matches!(state(command), None | Some('Z')), "it goes on");
        send(command, Signal::SIGKILL);
        fs::write(session.file("go"), "").unwrap();
        session.end(0);
    });
}

#[test]
fn q_leaves_a_command_running_and_watched() {
    if !tools() {
        return;
    }
    each_observer(|observer| {
        let command =
            r#"perl -e '$| = 1; print "first\n"; getppid until -e "go"; print "last\n"; exit 3'"#;
        let mut session = TerminalSession::start(&format!(
            "{IOTOMY} trace --live --observer {observer} {command}"
        ));
        session.until_shown("getppid");
        session.press("q");
        session.until_shown("view closed");
        fs::write(session.file("go"), "").unwrap();
        let seen = session.end(3);
        let after = seen.rsplit_once(LEFT).unwrap().1;
        let places: Vec<_> = ["first", "view closed", "last", "exit 3"]
            .map(|word| after.find(word).unwrap_or_else(|| panic!("no {word}: {after}")))
            .into();
        assert!(places.is_sorted(), "{observer}: {after}");
    });
}

#[test]
fn a_shell_stops_and_continues_the_view_with_its_command() {
    if !tools() || !has("bash") {
        return;
    }
    each_observer(|observer| {
        let mut session = TerminalSession::start("exec bash --norc --noprofile -i");
        session.press(&format!(
            "stty -g > first; {IOTOMY} trace --live --observer {observer} {BUSY}\n"
        ));
        // What was typed is shown, too: in the view it comes behind its beginning.
        session.until("the command is watched", || {
            let seen = session.seen();
            seen.split_once(ENTERED).is_some_and(|(_, view)| view.contains("getppid")).then_some(())
        });
        session.press("\x1a");
        session.until_shown("Stopped");
        session.press("stty -g > stopped\n");
        session.until("it is written", || session.file("stopped").exists().then_some(()));
        let views = session.seen().matches(ENTERED).count();
        session.press("fg\n");
        session.until("the view is back", || {
            (session.seen().matches(ENTERED).count() > views).then_some(())
        });
        session.press("\x03");
        session.until_shown("killed by SIGINT");
        session.press("echo end $?\n");
        session.until_shown("end 130");
    });
}

#[test]
fn without_a_terminal_it_says_so_and_runs_nothing() {
    if !has("setsid") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("made");
    let made = made.to_str().unwrap();
    let run = |term: &str| {
        let mut setsid = bare("setsid", &["-w", IOTOMY, "trace", "--live", "touch", made]);
        setsid.env("TERM", term).output().unwrap()
    };
    for (term, reason) in [("xterm", "without a terminal"), ("dumb", "TERM is dumb")] {
        let refused = run(term);
        let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{stderr}");
        assert!(stderr.starts_with("iotomy: cannot show a live view"), "{stderr}");
        assert!(stderr.contains(reason), "{stderr}");
    }
    if fs::exists(made).unwrap() {
        panic!("the command ran");
    }
}

#[test]
fn a_test_that_fails_leaves_nothing_on_its_terminal() {
    if !tools() {
        return;
    }
    let line = format!("sh -c 'while :; do :; done' & {IOTOMY} trace --live {BUSY}");
    let session = TerminalSession::start(&line);
    session.until_shown(ENTERED);
    let shell = session.shell();
    // The shell, its loop, iotomy; the command may not have begun.
    assert!(members(shell).len() >= 3);
    drop(session);
    until("all has ended", || members(shell).is_empty().then_some(()));
}
