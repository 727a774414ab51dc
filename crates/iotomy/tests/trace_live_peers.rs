//! `trace --live`: the view of peers, and what it opens to.

use crate::support;

use std::fs;
use std::path::PathBuf;

use iotomy_record::store::load_trace;
use iotomy_record::{Role, Socket};
use support::sessions::{LEFT, TerminalSession, tools};
use support::{BackgroundProcess, IOTOMY, bare, bpf, each_observer, has};

/// Echoes itself five bytes for each three, by three connections of its own host, without end; its port.
const ECHO: &str = r#"
    use Socket; $| = 1;
    socket my $listen, PF_INET, SOCK_STREAM, 0 or die;
    bind $listen, sockaddr_in(0, INADDR_LOOPBACK) or die; listen $listen, 9;
    my $name = getsockname $listen;
    for (1..3) {
        socket my $client, PF_INET, SOCK_STREAM, 0 or die;
        connect $client, $name or die; accept my $served, $listen or die;
        push @pairs, [$client, $served];
    }
    print +(sockaddr_in($name))[0], "\n";
    while (1) {
        for (@pairs) {
            my ($client, $served) = @$_;
            syswrite $client, "abc"; sysread $served, my $got, 3;
            syswrite $served, "defgh"; sysread $client, $got, 5;
        }
    }
"#;

fn until_record(session: &TerminalSession) -> PathBuf {
    session.until("a record is there", || {
        let files = fs::read_dir(session.file(".")).unwrap().map(|entry| entry.unwrap().path());
        let mut records = files.filter(|path| path.extension().is_some_and(|end| end == "json"));
        // It is written in one piece; until then it may be empty.
        records.find(|path| load_trace(path).is_ok())
    })
}

#[test]
fn peers_open_to_connections_and_processes_and_are_saved() {
    if tools() && has("perl") {
        each_observer(peers_open);
    }
}

fn peers_open(observer: &str) {
    let (subject, port) = BackgroundProcess::ready(&["perl", "-e", ECHO]);
    let name = format!("perl ({})", subject.pid());
    let mut session = TerminalSession::start(&format!(
        "stty cols 160 rows 30; {IOTOMY} trace --live --observer {observer} -p {}",
        subject.pid()
    ));
    session.until_shown("read");
    // The server, and the clients' host by the server's port. Blanks of other rows than the selected one
    // are not written.
    session.press("4\x0c");
    session.until_shown(&format!("127.0.0.1:{port}"));
    session.press("/here\r\x0c");
    session.until_shown(&format!("tcp 127.0.0.1 (port {port} here)"));
    session.press("\r\x0c");
    session.until_shown("[connections]");
    session.until_shown(&format!("tcp 127.0.0.1:{port} to 127.0.0.1:"));
    session.press("s");
    let saved = until_record(&session);
    session.press("\t\x0c");
    session.until_shown("[used by]");
    let before = session.seen().len();
    // Its process opens to its calls, with their tails.
    session.press("\r\x0c");
    session.until("it is open", || {
        let seen = session.seen();
        let after = seen.get(before..)?;
        (after.contains(&name) && after.contains("[calls]") && after.contains("p99.9"))
            .then_some(())
    });
    session.press("q");
    session.until("the view is left", || session.seen().contains(LEFT).then_some(()));
    let record = load_trace(&saved).unwrap();
    let shown = bare(IOTOMY, &["show", saved.to_str().unwrap()]).output().unwrap();
    session.end(0);
    assert!(record.view.peers);
    let is_served = |address: &Option<String>| {
        address.as_deref().is_some_and(|text| text == format!("127.0.0.1:{port}"))
    };
    let mut served = record.files.iter().filter(|file| {
        file.pid == subject.pid() && file.socket.as_ref().is_some_and(|end| is_served(&end.local))
    });
    let first = served.next().unwrap();
    // Three bytes a call one way and five the other; a call may have been counted half.
    assert!(first.read_calls > 0 && first.read_bytes.abs_diff(first.read_calls * 3) <= 3);
    assert!(first.write_calls > 0 && first.write_bytes.abs_diff(first.write_calls * 5) <= 5);
    assert_eq!(served.count(), 2);
    let stdout = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(stdout.contains(&format!("tcp 127.0.0.1 (port {port} here)")), "{stdout}");
    assert!(stdout.contains(&name), "{stdout}");
}

#[test]
fn a_process_and_its_peer_may_end_while_they_are_open() {
    if !tools() || !bpf() || !has("perl") {
        return;
    }
    // The other one keeps the watch going.
    let [(first, port), (second, _)] =
        [(); 2].map(|()| BackgroundProcess::ready(&["perl", "-e", ECHO]));
    let mut session = TerminalSession::start(&format!(
        "stty cols 160 rows 30; {IOTOMY} trace --live -p {},{}",
        first.pid(),
        second.pid()
    ));
    session.until_shown("read");
    session.press(&format!("4/{port} here\r\x0c"));
    session.until_shown(&format!("tcp 127.0.0.1 (port {port} here)"));
    session.press("\r\x0c");
    session.until_shown("[connections]");
    let pid = first.pid();
    drop(first);
    support::until_ended(pid);
    session.press("\t\x0c");
    session.until_shown("no process that is alive has read, written or mapped it");
    session.resize(20, 5);
    session.until_shown("small");
    session.resize(60, 10);
    session.press("\x1b\x0c");
    session.until("all peers are back", || {
        let seen = session.seen();
        let (_, after) = seen.rsplit_once("small")?;
        (after.contains("[peers]") && after.contains("127.0.0.1")).then_some(())
    });
    session.press("q");
    session.end(0);
}

/// Upon a line, makes five connections to itself, of which it ends four, and three to a port at which
/// nobody listens; then it waits.
const CONNECTS: &str = r#"
    use Socket; $| = 1;
    sub tcp { socket my $s, PF_INET, SOCK_STREAM, 0 or die; return $s }
    my ($listen, $dead) = (tcp, tcp);
    for ($listen, $dead) { bind $_, sockaddr_in(0, INADDR_LOOPBACK) or die }
    listen $listen, 9;
    my ($name, $nobody) = (getsockname $listen, getsockname $dead);
    print +(sockaddr_in($name))[0], " ", (sockaddr_in($nobody))[0], "\n";
    sysread STDIN, my $line, 1;
    for (1..5) {
        my $client = tcp; connect $client, $name or die; accept my $served, $listen or die;
        syswrite $client, "abc"; sysread $served, my $got, 3;
        @kept = ($client, $served);
    }
    for (1..3) { connect tcp, $nobody and die }
    print "done\n";
    sysread STDIN, $line, 1;
"#;

#[test]
fn connections_are_shown_and_saved_with_what_came_of_them() {
    if !tools() || !bpf() || !has("perl") {
        return;
    }
    let (mut subject, ports) = BackgroundProcess::ready(&["perl", "-e", CONNECTS]);
    let (port, dead) = ports.split_once(' ').unwrap();
    let mut session = TerminalSession::start(&format!(
        "stty cols 200 rows 30; {IOTOMY} trace --live --peers --json whole -p {}",
        subject.pid()
    ));
    session.until_shown("read");
    subject.say("\n");
    assert_eq!(subject.line(), "done");
    session.press("4\x0c");
    session.until_shown("ECONNREFUSED 3");
    // The row of one that refuses opens, though it has no connection.
    session.press(&format!("/{dead}\r\r\x0c"));
    session.until_shown("no counted call has moved bytes through a connection to it");
    session.press("s");
    let saved = until_record(&session);
    session.press("q");
    session.until("the view is left", || session.seen().contains(LEFT).then_some(()));
    let whole = session.file("whole");
    session.until("the record is written", || load_trace(&whole).ok().map(drop));
    let shown = bare(IOTOMY, &["show", saved.to_str().unwrap()]).output().unwrap();
    let records = [load_trace(&saved).unwrap(), load_trace(&whole).unwrap()];
    session.end(0);
    for record in &records {
        let row = |role: Role, is: &dyn Fn(&Socket) -> bool| {
            let mut rows = record.connections.iter();
            let found = rows.find(|row| row.ends.role == Some(role) && is(&row.ends));
            found.unwrap_or_else(|| panic!("{role:?}: {:#?}", record.connections)).clone()
        };
        let server = format!("127.0.0.1:{port}");
        let nobody = format!("127.0.0.1:{dead}");
        let connects = row(Role::Connect, &|ends| ends.remote.as_ref() == Some(&server));
        assert_eq!((connects.pid, connects.opened, connects.timed), (subject.pid(), 5, 5));
        assert_eq!((connects.closed, connects.write_bytes), (Some(4), 15));
        // Four that ended, and one that is open.
        let figures = connects.tcp.as_ref().unwrap();
        assert_eq!((figures.measured, figures.segments), (5, 5), "{figures:?}");
        let accepts = row(Role::Accept, &|ends| ends.local.as_ref() == Some(&server));
        assert_eq!((accepts.opened, accepts.closed, accepts.read_bytes), (5, Some(4), 15));
        let refused = row(Role::Connect, &|ends| ends.remote.as_ref() == Some(&nobody));
        assert_eq!((refused.opened, refused.errors["ECONNREFUSED"]), (0, 3));
    }
    let stdout = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(
        stdout.contains("ECONNREFUSED 3") && stdout.contains(&format!("127.0.0.1:{dead}")),
        "{stdout}"
    );
}
