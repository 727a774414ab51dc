//! `trace --live --until`: the view closes when a call has ended the watch, and the report names it.

use crate::support;

use std::fs;

use iotomy_record::Exit;
use iotomy_record::store::load_trace;
use support::sessions::{LEFT, TerminalSession, tools};
use support::{BackgroundProcess, IOTOMY, each_observer};

/// For each line, a call that fails.
const ASKS: &str = "$| = 1; print qq(on\n); while (<STDIN>) { rmdir '/nope' }";

/// What is printed after the view, without the breaks of its lines.
fn report(seen: &str) -> String {
    let (_, after) = seen.rsplit_once(LEFT).unwrap();
    after.split_whitespace().collect::<Vec<_>>().join(" ")
}

const UNTIL: &str = "'call == \"rmdir\" && errno == ENOENT'";

#[test]
fn of_a_running_process_the_view_closes_with_the_call_and_the_status_tells() {
    if !tools() {
        return;
    }
    each_observer(|observer| {
        let (mut subject, _) = BackgroundProcess::ready(&["perl", "-e", ASKS]);
        let session = TerminalSession::start(&format!(
            "{IOTOMY} trace --live --observer {observer} --until {UNTIL} --json whole -p {}",
            subject.pid()
        ));
        session.until_shown("read");
        assert!(!session.seen().contains(LEFT));
        subject.say("\n");
        session.until("the view is left", || session.seen().contains(LEFT).then_some(()));
        let whole = session.file("whole");
        let record = session.until("the record is written", || load_trace(&whole).ok());
        let end = record.ended_by.unwrap();
        assert_eq!((&*end.call.syscall, end.call.path.as_deref()), ("rmdir", Some("/nope")));
        assert_eq!(end.call.pid, subject.pid());
        let said = report(&session.end(3));
        let winner = format!("rmdir in perl ({}) ended the watch", subject.pid());
        assert!(said.contains(&winner) && said.contains("ended by"), "{said}");
    });
}

#[test]
fn a_view_that_is_left_before_such_a_call_says_that_there_was_none() {
    if !tools() {
        return;
    }
    each_observer(|observer| {
        let (subject, _) = BackgroundProcess::ready(&["perl", "-e", ASKS]);
        let mut session = TerminalSession::start(&format!(
            "{IOTOMY} trace --live --observer {observer} --until {UNTIL} -p {}",
            subject.pid()
        ));
        session.until_shown("read");
        session.press("q");
        let said = report(&session.end(1));
        assert!(said.contains("no call fulfilled"), "{said}");
    });
}

#[test]
fn a_command_runs_on_when_a_call_has_ended_the_watch() {
    if !tools() {
        return;
    }
    each_observer(|observer| {
        // It goes on until it is told to end, by a file: its input is the terminal, which the view has.
        let mut session = TerminalSession::start(&format!(
            "echo \"rmdir '/nope'; print 'still here'; select undef, undef, undef, 0.01 until -e 'end'; \
             exit 7\" > asks; \
             {IOTOMY} trace --live --observer {observer} --until {UNTIL} --json whole -- perl asks"
        ));
        session.until_shown("the watch has ended; waiting for the command");
        session.until_shown(LEFT);
        fs::write(session.file("end"), "").unwrap();
        let whole = session.file("whole");
        let record = session.until("the record is written", || load_trace(&whole).ok());
        assert_eq!(record.exit, Some(Exit::Code(7)));
        assert_eq!(record.ended_by.map(|end| end.call.syscall).as_deref(), Some("rmdir"));
        session.press("\x0c");
        let said = report(&session.end(3));
        assert!(said.contains("ended the watch after"), "{said}");
    });
}
