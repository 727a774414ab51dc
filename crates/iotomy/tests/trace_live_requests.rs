//! `trace --live --requests`: the table of requests, and that it is saved.

use crate::support;

use iotomy_record::store::load_trace;
use iotomy_record::{Exchange, Role, Trace};
use support::sessions::{LEFT, TerminalSession, tools};
use support::{BackgroundProcess, IOTOMY, bpf, has, until};

/// A server in a process of its own, which ends with the one that began it. Upon a number, so many requests over a connection of their own; upon `wait`,
/// one that is not answered.
const SERVER: &str = r#"
import ctypes, os, signal, socket, sys
PR_SET_PDEATHSIG = 1
l = socket.socket(); l.bind(('127.0.0.1', 0)); l.listen(9)
if os.fork() == 0:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    while True:
        c, _ = l.accept()
        while True:
            got = c.recv(3)
            if got == b'ask': c.send(b'answer')
            elif not got: break
        c.close()
print(l.getsockname()[1], flush=True)
for line in sys.stdin:
    s = socket.create_connection(l.getsockname())
    if line == 'wait\n':
        kept = s; s.send(b'wai')
    else:
        for n in range(int(line)): s.send(b'ask'); assert len(s.recv(6)) == 6
        s.close()
    print('done', flush=True)
"#;

/// The row of a role.
fn row(record: &Trace, role: Role) -> &Exchange {
    let mut rows = record.requests.iter().filter(|row| row.ends.role == Some(role));
    rows.next().unwrap_or_else(|| panic!("{role:?}: {:#?}", record.requests))
}

/// Has the screen drawn anew until a row of it, from `name` on, begins with these words.
fn until_row(session: &mut TerminalSession, name: &str, words: &[&str]) {
    let (mut looks, mut from) = (0, 0);
    until(&format!("a row of {words:?}"), || {
        if looks % 200 == 0 {
            from = session.seen().len();
            session.press("\x0c");
        }
        looks += 1;
        let seen = session.seen();
        let (_, row) = seen.get(from..)?.split_once(name)?;
        row.split_whitespace().take(words.len()).eq(words.iter().copied()).then_some(())
    });
}

#[test]
fn requests_are_shown_with_those_in_flight_and_saved() {
    if !tools() || !bpf() || !has("python3") {
        return;
    }
    let (mut subject, port) = BackgroundProcess::ready(&["python3", "-c", SERVER]);
    let mut session = TerminalSession::start(&format!(
        "stty cols 200 rows 30; {IOTOMY} trace --live --requests --json whole -p {}",
        subject.pid()
    ));
    session.until_shown("read");
    session.press("6\x0c");
    session.until_shown("no request went over a connection");
    subject.say("41\n");
    assert_eq!(subject.line(), "done");
    session.until_shown("peer of requests");
    // The selected row is drawn with its blanks.
    session.press("/here\r");
    subject.say("wait\n");
    assert_eq!(subject.line(), "done");
    // None was answered in the last second, and one goes on.
    until_row(&mut session, &format!("127.0.0.1 (port {port} here)"), &["served", "1"]);
    // It leads to its connections.
    session.press("\r\x0c");
    session.until_shown("[connections]");
    session.press("\x1b\x0c");
    session.press("s");
    let saved = session.until("a record is there", || {
        let files = std::fs::read_dir(session.file(".")).unwrap().map(|one| one.unwrap().path());
        let mut records = files.filter(|path| path.extension().is_some_and(|end| end == "json"));
        records.find(|path| load_trace(path).is_ok())
    });
    session.press("q");
    session.until("the view is left", || session.seen().contains(LEFT).then_some(()));
    let whole = session.file("whole");
    session.until("the record is written", || load_trace(&whole).ok().map(drop));
    let records = [load_trace(&saved).unwrap(), load_trace(&whole).unwrap()];
    session.end(0);
    for (record, in_flight) in records.iter().zip([0, 1]) {
        assert!(record.view.requests);
        for role in [Role::Accept, Role::Connect] {
            let row = row(record, role);
            assert_eq!((row.requests, row.in_flight), (41, in_flight), "{role:?}");
            assert_eq!(row.wall_times.total(), 41, "{role:?}");
        }
        let [served, asked] = [Role::Accept, Role::Connect].map(|role| row(record, role).pid);
        assert!(served != asked && asked == subject.pid(), "{served} {asked}");
    }
}

#[test]
fn requests_of_processes_that_ended_stay_in_the_sums() {
    if !tools() || !bpf() || !has("python3") {
        return;
    }
    let (mut subject, port) = BackgroundProcess::ready(&["python3", "-c", CLIENTS]);
    let mut session = TerminalSession::start(&format!(
        "stty cols 200 rows 30; {IOTOMY} trace --live --requests -p {}",
        subject.pid()
    ));
    session.until_shown("read");
    session.press("6/127.0.0.1:\r\x0c");
    // More processes than are collected at a time ask once each, and end.
    for _ in 0..2 {
        subject.say("300\n");
        assert_eq!(subject.line(), "done");
    }
    let name = format!("tcp 127.0.0.1:{port}");
    let mut from = 0;
    let mut looks = 0;
    until("the sum over all of them is shown", || {
        if looks % 200 == 0 {
            from = session.seen().len();
            session.press("\x0c");
        }
        looks += 1;
        let seen = session.seen();
        let (_, row) = seen.get(from..)?.split_once(&name)?;
        row.split_whitespace().take(22).any(|word| word == "600").then_some(())
    });
    session.press("q");
    session.end(0);
}

/// Upon a number, so many processes that ask this one a request each.
const CLIENTS: &str = r#"
import os, socket, sys
l = socket.socket(); l.bind(('127.0.0.1', 0)); l.listen(512)
print(l.getsockname()[1], flush=True)
for line in sys.stdin:
    for n in range(int(line)):
        pid = os.fork()
        if pid == 0:
            s = socket.create_connection(l.getsockname())
            s.send(b'ask'); assert len(s.recv(6)) == 6
            s.close(); os._exit(0)
        c, _ = l.accept(); c.recv(3); c.send(b'answer'); assert not c.recv(1); c.close()
        assert os.waitpid(pid, 0)[1] == 0
    print('done', flush=True)
"#;
