//! The view of peers, of fixed snapshots.

use std::time::Duration;

use iotomy_record::{
    Connection, ConnectionCounts, FileKind, FileUse, ImageCounts, Role, Snapshot, Socket,
    TcpFigures,
};

use super::tests::{line, press, setting, snapshot, text};
use super::{Event, Key, Screen, Setting};

/// A connection, with so many bytes and calls each way.
fn connection(inode: u64, local: &str, remote: &str, n: u64) -> FileUse {
    let socket = Socket {
        protocol: "tcp".into(),
        local: Some(local.into()),
        remote: Some(remote.into()),
        ..Socket::default()
    };
    FileUse {
        kind: FileKind::Socket,
        path: format!("socket:[{inode}]"),
        read_calls: 10 * n,
        read_bytes: 400 * n,
        write_calls: 5 * n,
        write_bytes: 100_000 * n,
        socket: Some(socket),
        ..FileUse::default()
    }
}

/// `n` seconds of a server with `clients` on one host, which asks a database and is fed by a pipe.
pub(super) fn served(n: u64, clients: u64) -> Snapshot {
    let (web, loader) = ((812, "web"), (900, "loader"));
    let by = |(pid, exec): (u32, &str), file: &FileUse| FileUse {
        pid,
        exec: exec.into(),
        ..file.clone()
    };
    let client = |at: u64| connection(at, "10.0.0.1:80", &format!("10.0.0.9:{}", 4000 + at), n);
    let mut files: Vec<FileUse> = (1..=clients).map(client).collect();
    files.push(connection(5_000, "10.0.0.1:51000", "10.0.0.5:5432", 2 * n));
    // One that is quiet.
    files.push(connection(5_001, "10.0.0.1:51001", "10.0.0.6:5432", 1));
    let mut uses: Vec<FileUse> = files.iter().map(|file| by(web, file)).collect();
    let pipe = FileUse { kind: FileKind::Pipe, path: "pipe:[77]".into(), ..FileUse::default() };
    let (read, written) = (4096 * n, 8192 * n);
    uses.push(FileUse { read_calls: n, read_bytes: read, ..by(web, &pipe) });
    uses.push(FileUse { write_calls: 2 * n, write_bytes: written, ..by(loader, &pipe) });
    files.push(FileUse {
        read_calls: n,
        read_bytes: read,
        write_calls: 2 * n,
        write_bytes: written,
        ..pipe
    });
    Snapshot { files, uses, ..snapshot(n) }
}

/// A screen of the last of these.
fn served_screen(clients: u64) -> Screen {
    let mut screen = Screen::new(setting());
    screen.on(Event::Look(served(4, clients), Duration::from_secs(1)));
    screen.on(Event::Look(served(5, clients), Duration::from_secs(1)));
    screen
}

#[test]
fn peers_open_to_their_connections_and_processes() {
    let mut screen = served_screen(3);
    press(&mut screen, "4");
    let peers = text(&mut screen, 110, 24);
    assert!(screen.shows_peers());
    press(&mut screen, "/9\r\r");
    let connections = text(&mut screen, 110, 24);
    screen.on(Event::Key(Key::Tab));
    let users = text(&mut screen, 110, 24);
    press(&mut screen, "\r");
    screen.on(Event::Key(Key::BackTab));
    let none = text(&mut screen, 110, 24);
    assert!(none.contains("used by"), "a process without counts of its own stays closed: {none}");
    insta::assert_snapshot!([peers, connections, users].join("\n=====\n"));
    assert!(screen.shows_peers());
    screen.on(Event::Key(Key::Escape));
    assert!(text(&mut screen, 110, 24).contains(" calls  files  processes [peers]"));
    press(&mut screen, "1");
    assert!(!screen.shows_peers());
}

#[test]
fn a_peer_that_gets_a_second_connection_stays_open_under_its_new_name() {
    let mut screen = served_screen(1);
    press(&mut screen, "4/9:4001\r\r");
    assert!(line(&mut screen, "[connections]").contains("tcp 10.0.0.9:4001"));
    screen.on(Event::Look(served(6, 2), Duration::from_secs(1)));
    assert!(line(&mut screen, "[connections]").contains("tcp 10.0.0.9 (port 80 here)"));
    assert!(line(&mut screen, "10.0.0.9:4002").contains("socket"));
}

#[test]
fn a_peer_that_is_gone_while_it_is_open_is_told_and_harms_nothing() {
    let mut screen = served_screen(2);
    press(&mut screen, "4/9 (\r\r");
    assert!(line(&mut screen, "10.0.0.9:4002").contains("socket"));
    for n in 6..8 {
        screen.on(Event::Look(served(n, 0), Duration::from_secs(1)));
    }
    assert!(text(&mut screen, 100, 24).contains("no connection of it is known any more"));
    screen.on(Event::Key(Key::Tab));
    assert!(text(&mut screen, 100, 24).contains("no process that is alive"));
    press(&mut screen, "\r\x7f");
    assert!(line(&mut screen, "[peers]").contains("processes"));
    assert!(!text(&mut screen, 100, 24).contains("10.0.0.9"));
}

#[test]
fn two_thousand_connections_of_a_host_are_one_peer() {
    let mut screen = served_screen(2_000);
    press(&mut screen, "4");
    let row = line(&mut screen, "10.0.0.9 (port 80 here)");
    // Each has 15 calls a second.
    assert!(row.contains("2,000") && row.contains("30,000"), "{row}");
    press(&mut screen, "/port\r\r");
    for (width, height) in [(160, 24), (60, 24), (40, 10)] {
        screen.on(Event::Key(Key::End));
        let shown = text(&mut screen, width, height);
        // The last one's name is never cut beyond recognition.
        assert!(shown.contains("  tcp 10.") && shown.contains("10.0.0.9:6000"), "{shown}");
        assert!(width < 160 || shown.contains("to 2000 of 2000"), "{shown}");
    }
}

#[test]
fn sockets_without_addresses_are_no_peers_and_that_is_told() {
    let mut screen = Screen::new(setting());
    let socket = FileUse {
        kind: FileKind::Socket,
        path: "socket:[7]".into(),
        read_calls: 1,
        ..FileUse::default()
    };
    let seen = Snapshot { files: vec![socket], uses: Vec::new(), ..snapshot(1) };
    screen.on(Event::Look(seen, Duration::from_secs(1)));
    press(&mut screen, "4");
    assert!(text(&mut screen, 80, 24).contains("not known to this observer"));
    let mut whole = Screen::new(Setting { files: false, ..setting() });
    press(&mut whole, "4");
    assert!(text(&mut whole, 80, 24).contains("need --peers"));
}

/// The same server after `n` seconds, in each of which its host has made two connections more and ended
/// one; and three connects to a monitor were refused.
fn connected(n: u64) -> Snapshot {
    let ends = |role, local: &str, remote: &str| {
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let (local, remote, role) = (some(local), some(remote), Some(role));
        Socket { protocol: "tcp".into(), local, remote, role, ..Socket::default() }
    };
    let figures = |connections: u64, retransmits| TcpFigures {
        measured: connections,
        rtts: connections,
        rtt_us: 80 * connections,
        retransmits,
        ..TcpFigures::default()
    };
    let clients = ConnectionCounts {
        counts: Connection {
            pid: 812,
            exec: "web".into(),
            ends: ends(Role::Accept, "10.0.0.1:80", "10.0.0.9"),
            opened: 2 * n,
            closed: Some(n),
            timed: 2 * n,
            connect_ns: 2 * n * 45_000,
            tcp: Some(figures(n, 1)),
            ..Connection::default()
        },
        open: Some(figures(n, 2)),
    };
    let monitor = ConnectionCounts {
        counts: Connection {
            ends: ends(Role::Connect, "", "10.0.0.8:9187"),
            errors: [("ECONNREFUSED".to_owned(), 3), ("ETIMEDOUT".to_owned(), n)].into(),
            unfinished: 1,
            ..Connection::default()
        },
        open: None,
    };
    let connections = vec![clients, monitor];
    let image = ImageCounts {
        id: 7,
        pid: 812,
        exec: "web".into(),
        threads: 1,
        connections: connections[..1].to_vec(),
        ..ImageCounts::default()
    };
    Snapshot { connections, images: vec![image], ..served(n, 3) }
}

fn connected_screen() -> Screen {
    let mut screen = Screen::new(Setting { connections: true, ..setting() });
    screen.on(Event::Look(connected(4), Duration::from_secs(1)));
    screen.on(Event::Look(connected(6), Duration::from_secs(1)));
    screen
}

#[test]
fn peers_are_shown_with_what_came_of_their_connections() {
    let mut screen = connected_screen();
    press(&mut screen, "4");
    let wide = text(&mut screen, 220, 24);
    // Errors stay where there is little room.
    let narrow = text(&mut screen, 110, 24);
    insta::assert_snapshot!([wide, narrow].join("\n=====\n"));
}

#[test]
fn peers_are_sorted_by_the_number_of_errors_and_one_that_refuses_opens() {
    let mut screen = connected_screen();
    press(&mut screen, "4");
    for _ in 0..12 {
        screen.on(Event::Key(Key::Right));
    }
    let shown = text(&mut screen, 220, 24);
    let rows = shown.lines().skip_while(|line| !line.contains("▾errors"));
    assert!(rows.clone().nth(2).unwrap().contains("10.0.0.8:9187"), "{shown}");
    press(&mut screen, "\r");
    let none = text(&mut screen, 110, 24);
    assert!(none.contains("no counted call has moved bytes through a connection to it"), "{none}");
    screen.on(Event::Key(Key::Escape));
    assert!(text(&mut screen, 110, 24).contains("[peers]"));
}

#[test]
fn the_peers_of_a_process_have_its_own_connections() {
    let mut screen = connected_screen();
    press(&mut screen, "4/9 (\r\r");
    screen.on(Event::Key(Key::Tab));
    screen.on(Event::Key(Key::Enter));
    screen.on(Event::Key(Key::Tab));
    screen.on(Event::Key(Key::Tab));
    let shown = text(&mut screen, 220, 24);
    assert!(shown.contains("web (812)") && shown.contains("[peers]"), "{shown}");
    let row = line(&mut screen, "10.0.0.9 (port 80 here)");
    assert!(row.contains("10.0.0.9") && !shown.contains("10.0.0.8:9187"), "{shown}");
}

#[test]
fn without_connections_there_are_no_columns_of_them() {
    let mut screen = served_screen(3);
    press(&mut screen, "4");
    let shown = text(&mut screen, 220, 24);
    assert!(!shown.contains("opened") && !shown.contains("errors  "), "{shown}");
}
