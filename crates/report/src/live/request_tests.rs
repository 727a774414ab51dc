//! Screens with the requests of connections.

use std::time::Duration;

use iotomy_record::{Exchange, ImageCounts, Role, Snapshot, Socket};

use super::tests::{line, press, setting, snapshot, text};
use super::{Event, Key, Screen, Setting};

fn ends(role: Role, local: Option<&str>, remote: Option<&str>) -> Socket {
    Socket {
        protocol: "tcp".into(),
        local: local.map(str::to_owned),
        remote: remote.map(str::to_owned),
        role: Some(role),
        ..Socket::default()
    }
}

/// So many requests of a second; those of each second take longer than those of the one before.
fn asked(ends: Socket, n: u64, a_second: u64, in_flight: u64) -> Exchange {
    let mut row = Exchange { ends, requests: a_second * n, in_flight, ..Exchange::default() };
    for at in 1..=n {
        (0..a_second).for_each(|_| row.wall_times.add(at * 100_000));
        row.wall_ns += at * a_second * 100_000;
    }
    row.max_ns = row.wall_times.max_ns;
    (row.unread_ns, row.on_cpu_ns) = (row.wall_ns / 2, row.wall_ns / 4);
    (row.peer_ns, row.unanswered) = (row.wall_ns / 4, n);
    row
}

fn of_clients(n: u64, a_second: u64, in_flight: u64) -> Exchange {
    asked(ends(Role::Accept, Some("10.0.0.1:80"), Some("10.0.0.9")), n, a_second, in_flight)
}

fn of_database(n: u64, a_second: u64, in_flight: u64) -> Exchange {
    asked(ends(Role::Connect, None, Some("10.0.0.5:5432")), n, a_second, in_flight)
}

/// `n` seconds of two processes of a server, the first of which asks a database.
fn served(n: u64) -> Snapshot {
    let image = |id: u32, requests: Vec<Exchange>| ImageCounts {
        id,
        pid: 800 + id,
        exec: "web".into(),
        threads: 1,
        requests,
        ..ImageCounts::default()
    };
    let images = vec![
        image(11, vec![of_clients(n, 100, 1), of_database(n, 50, 3)]),
        image(12, vec![of_clients(n, 900, 0)]),
    ];
    let requests = vec![of_clients(n, 1_000, 1), of_database(n, 50, 3)];
    let mut seen = snapshot(n);
    let of = |pid: u32| iotomy_record::ProcessCounts {
        pid,
        exec: "web".into(),
        threads: 1,
        ..iotomy_record::ProcessCounts::default()
    };
    seen.processes.extend([of(811), of(812)]);
    seen.images.extend(images);
    Snapshot { requests, ..seen }
}

fn served_screen() -> Screen {
    let mut screen = Screen::new(Setting { requests: true, ..setting() });
    for n in [4, 6] {
        screen.on(Event::Look(served(n), Duration::from_secs(1)));
    }
    screen
}

#[test]
fn the_requests_of_the_last_second() {
    let mut screen = served_screen();
    press(&mut screen, "6");
    let widths = [200, 120, 80, 40];
    let shown = widths.map(|width| text(&mut screen, width, 24));
    insta::assert_snapshot!(shown.join("\n=====\n"));
}

#[test]
fn figures_are_of_the_requests_since_the_refresh_before() {
    let mut screen = served_screen();
    press(&mut screen, "6");
    let row = line(&mut screen, "10.0.0.9 (port 80 here)");
    // 2,000 requests of 0.5 and 0.6 ms in two seconds.
    assert!(row.contains(" served ") && row.contains(" 1,000 "), "{row}");
    assert!(row.contains(" 550 ") && row.contains(" 491 "), "{row}");
    // Nothing more came: what is in flight is shown still, and nothing of the seconds before.
    screen.on(Event::Look(Snapshot { elapsed_ns: 7_000_000_000, ..served(6) }, Duration::ZERO));
    let row = line(&mut screen, "10.0.0.5:5432");
    assert!(row.contains(" asked ") && row.contains(" 3 "), "{row}");
    assert!(!row.contains(" 550 "), "{row}");
}

#[test]
fn the_slowest_peer_comes_first_when_sorted_by_p99() {
    let mut screen = served_screen();
    let mut slow = of_database(6, 50, 3);
    (0..50).for_each(|_| slow.wall_times.add(9_000_000));
    let now = Snapshot { requests: vec![of_clients(7, 1_000, 0), slow], ..served(7) };
    screen.on(Event::Look(now, Duration::from_secs(1)));
    press(&mut screen, "6");
    let order = |screen: &mut Screen| {
        let shown = text(screen, 200, 24);
        let at = |what: &str| shown.find(what).unwrap_or_else(|| panic!("{what}: {shown}"));
        at("10.0.0.5:5432") < at("10.0.0.9 (port 80 here)")
    };
    assert!(!order(&mut screen));
    (0..5).for_each(|_| _ = screen.on(Event::Key(Key::Right)));
    assert!(text(&mut screen, 200, 24).contains("▾p99"));
    assert!(order(&mut screen));
    press(&mut screen, "r");
    assert!(!order(&mut screen));
}

#[test]
fn a_process_has_its_own_requests_and_a_peer_leads_to_its_connections() {
    let mut screen = served_screen();
    press(&mut screen, "3/812\r\r");
    screen.on(Event::Key(Key::BackTab));
    let shown = text(&mut screen, 200, 24);
    assert!(shown.contains("web (812)") && shown.contains("[requests]"), "{shown}");
    assert!(shown.contains(" 900 ") && !shown.contains("10.0.0.5:5432"), "{shown}");
    screen.on(Event::Key(Key::Escape));
    press(&mut screen, "6");
    let all = text(&mut screen, 200, 24);
    assert!(all.contains("2 processes") && all.contains("web (811)"), "{all}");
    press(&mut screen, "/5432\r\r");
    assert!(line(&mut screen, "[connections]").contains("10.0.0.5:5432"));
    screen.on(Event::Key(Key::Escape));
    assert!(line(&mut screen, "[requests]").contains("peers"));
}

#[test]
fn the_selected_table_is_in_sight_on_the_narrowest_screen() {
    let mut screen = served_screen();
    press(&mut screen, "6");
    let shown = text(&mut screen, 40, 10);
    assert!(shown.contains("[requests]"), "{shown}");
}

#[test]
fn without_requests_the_view_says_why() {
    let mut screen = Screen::new(setting());
    screen.on(Event::Look(snapshot(1), Duration::from_secs(1)));
    assert!(!text(&mut screen, 120, 24).contains("requests"));
    press(&mut screen, "6");
    assert!(text(&mut screen, 120, 24).contains("requests need --requests"));
    screen.setting_mut().requests = true;
    assert!(text(&mut screen, 120, 24).contains("no request went over a connection"));
    screen.setting_mut().requests_refused = true;
    assert!(text(&mut screen, 120, 24).contains("the kernel does not let requests be timed"));
}

#[test]
fn requests_that_were_lost_are_told() {
    let mut screen = served_screen();
    screen.on(Event::Look(Snapshot { lost_exchanges: 12, ..served(7) }, Duration::from_secs(1)));
    assert!(text(&mut screen, 80, 24).contains(" 12 lost"));
}
