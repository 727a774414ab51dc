//! `trace --live` of processes and of the machine: every way it ends, and every size of terminal.

use crate::support;

use std::fs;

use nix::sys::signal::Signal;
use support::sessions::{BUSY, LEFT, TerminalSession, members, tools};
use support::{
    BackgroundProcess, IOTOMY, bpf, count, each_observer, send, send_if_there, state, until,
    until_ended,
};

/// A live view of what `options` say, and iotomy's id.
fn live(options: &str) -> (TerminalSession, u32) {
    let line = format!("(sh -c 'echo $PPID > pid'; exec {IOTOMY} trace --live {options})");
    let session = TerminalSession::start(&line);
    session.until_shown("[calls]");
    let pid = pid_of(&session);
    (session, pid)
}

fn pid_of(session: &TerminalSession) -> u32 {
    fs::read_to_string(session.file("pid")).unwrap().trim().parse().unwrap()
}

/// A process that makes calls without end.
fn busy() -> BackgroundProcess {
    BackgroundProcess::ready(&["perl", "-e", "$| = 1; print qq(on\n); getppid while 1"]).0
}

#[test]
fn a_view_of_the_machine_has_calls_files_and_processes_and_ends_with_a_record() {
    if !tools() || !bpf() {
        return;
    }
    let subject = busy();
    let (mut session, _) = live("-a --files --json record.json");
    session.until_shown("the whole machine");
    session.until_shown("getppid");
    // Drawn anew, what is shown is whole and not only what differs.
    session.press("2\x0c");
    session.until_shown("[files]");
    session.press("3\x0c");
    session.until_shown("[processes]");
    session.press("/perl\r\x0c");
    session.until_shown(&format!("({})", subject.pid()));
    session.press("q");
    session.until("the record is there", || session.file("record.json").exists().then_some(()));
    let record = iotomy_record::store::load_trace(session.file("record.json")).unwrap();
    assert!(count(&record, "getppid") > 0 && record.command.is_empty());
    let seen = session.end(0);
    assert!(seen.rsplit_once(LEFT).unwrap().1.contains("watched for"), "{seen}");
}

#[test]
fn a_signal_ends_the_view_of_the_machine_with_its_report() {
    if !tools() || !bpf() {
        return;
    }
    for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT] {
        let (session, pid) = live("-a");
        send(pid, signal);
        let seen = session.end(0);
        let after = seen.rsplit_once(LEFT).unwrap().1;
        assert!(after.contains("watched for"), "{signal}: {after}");
    }
}

#[test]
fn a_signal_ends_the_view_of_a_process_and_not_the_process() {
    if !tools() {
        return;
    }
    let subject = busy();
    each_observer(|observer| {
        for signal in [Signal::SIGTERM, Signal::SIGHUP] {
            let (session, pid) = live(&format!("--observer {observer} -p {}", subject.pid()));
            session.until_shown("getppid");
            send(pid, signal);
            assert!(session.end(0).contains("watched for"), "{observer} {signal}");
            assert!(!matches!(state(subject.pid()), None | Some('Z' | 'T' | 't')), "{observer}");
        }
    });
}

#[test]
fn the_view_ends_when_the_process_or_the_time_is_over() {
    if !tools() {
        return;
    }
    each_observer(|observer| {
        let subject = busy();
        let (session, _) = live(&format!("--observer {observer} -p {}", subject.pid()));
        session.until_shown("getppid");
        send(subject.pid(), Signal::SIGKILL);
        assert!(session.end(0).contains("watched for"), "{observer}");
    });
    if bpf() {
        let (session, _) = live("-a -d 0.5");
        assert!(session.end(0).contains("watched for"));
    }
}

#[test]
fn signals_that_iotomy_does_not_survive_leave_the_terminal_as_it_was() {
    if !tools() || !bpf() {
        return;
    }
    for (signal, status) in [(Signal::SIGSEGV, 139), (Signal::SIGABRT, 134), (Signal::SIGKILL, 137)]
    {
        // It is the guard that puts the terminal in order, and the shell does not wait for it.
        let line = format!(
            "ulimit -c 0; (sh -c 'echo $PPID > pid'; exec {IOTOMY} trace --live -a); \
             code=$?; \
             until test -e go || ! kill -0 {}; do sleep 0.01; done; (exit $code)",
            std::process::id()
        );
        let session = TerminalSession::start(&line);
        session.until_shown("[calls]");
        send(pid_of(&session), signal);
        session.until_shown(LEFT);
        fs::write(session.file("go"), "").unwrap();
        session.end(status);
    }
}

#[test]
fn a_kill_by_the_name_or_by_the_command_line_leaves_the_terminal_as_it_was() {
    if !tools() || !bpf() {
        return;
    }
    for file in ["comm", "cmdline"] {
        let line = format!(
            "(sh -c 'echo $PPID > pid'; exec {IOTOMY} trace --live -a); code=$?; \
             until test -e go || ! kill -0 {}; do sleep 0.01; done; (exit $code)",
            std::process::id()
        );
        let session = TerminalSession::start(&line);
        session.until_shown("[calls]");
        let is_named = |pid: &u32| {
            let name = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            String::from_utf8_lossy(&name).contains("iotomy")
        };
        let named: Vec<u32> = members(session.shell()).into_iter().filter(is_named).collect();
        assert!(named.contains(&pid_of(&session)), "{file}: {named:?}");
        // At once: all are stopped before the first is killed.
        for pid in &named {
            send(*pid, Signal::SIGSTOP);
            until("it has stopped", || (state(*pid) == Some('T')).then_some(()));
        }
        named.iter().for_each(|pid| send_if_there(*pid, Signal::SIGKILL));
        session.until_shown(LEFT);
        fs::write(session.file("go"), "").unwrap();
        session.end(137);
    }
}

#[test]
fn a_terminal_of_any_size_shows_what_it_has_room_for() {
    if !tools() {
        return;
    }
    let (mut session, _) = live(BUSY);
    session.until_shown("getppid");
    for (columns, rows, shown) in [
        // Blanks are what is there, and are not written.
        (39, 10, "small:"),
        (5, 3, "too"),
        (1, 1, "t"),
        (40, 10, "getppid"),
        // More than there is of anything.
        (u16::MAX, u16::MAX, "getppid"),
        // Not known: the usual size is taken.
        (0, 0, "getppid"),
    ] {
        let before = session.seen().len();
        session.resize(columns, rows);
        session.until(&format!("{columns} by {rows} is shown"), || {
            // What was not whole when it was looked at may be longer or shorter by now.
            let seen = session.seen();
            seen.get(before..).unwrap_or(&seen).contains(shown).then_some(())
        });
    }
    session.press("\x03");
    session.end(130);
}

#[test]
fn nothing_is_left_when_the_terminal_goes_away() {
    if !tools() {
        return;
    }
    each_observer(|observer| {
        // A shell that heeds it takes what is in the foreground with it.
        let line = format!(
            "trap - HUP; (sh -c 'echo $PPID > pid'; \
             exec {IOTOMY} trace --live --observer {observer} {BUSY})"
        );
        let mut session = TerminalSession::start(&line);
        session.until_shown("getppid");
        let (shell, pid) = (session.shell(), pid_of(&session));
        session.hang_up();
        until_ended(pid);
        until("all has ended", || members(shell).is_empty().then_some(()));
    });
    if bpf() {
        // One that does not leaves a watch that nobody could end. A look finds out, or the wait for keys:
        // whichever is first.
        for _ in 0..5 {
            let (mut session, pid) = live("-a");
            session.hang_up();
            until_ended(pid);
        }
    }
}
