//! Screens with ring operations.

use std::time::Duration;

use iotomy_record::{RingOperation, Snapshot};

use super::tests::{line, press, setting, snapshot, text};
use super::{Event, Key, Screen, Setting};

/// So many requests of a second that have ended, and `in_flight`; those of each second take longer than those of
/// the one before.
fn operation(op: &str, n: u64, in_flight: u64, bytes: u64) -> RingOperation {
    let mut row = RingOperation {
        op: op.into(),
        submitted: 500 * n + in_flight,
        completed: 500 * n,
        in_flight,
        bytes: 500 * n * bytes,
        inline: 400 * n,
        worker: 100 * n,
        errors: n,
        error_kinds: [("EAGAIN".to_owned(), n)].into(),
        ..RingOperation::default()
    };
    for at in 1..=n {
        (0..500).for_each(|_| row.wall_times.add(at * 100_000));
    }
    row.max_ns = row.wall_times.max_ns;
    row
}

/// `n` seconds of a copy by a ring, of one of two processes.
fn copied(n: u64) -> Snapshot {
    let operations = vec![operation("read", n, 7, 4096), operation("fsync", n, 0, 0)];
    let mut seen = snapshot(n);
    seen.images[0].ring_operations = operations[..1].to_vec();
    Snapshot { ring_operations: operations, ..seen }
}

fn copied_screen() -> Screen {
    let mut screen = Screen::new(Setting { rings: true, ..setting() });
    for n in [4, 6] {
        screen.on(Event::Look(copied(n), Duration::from_secs(1)));
    }
    screen
}

#[test]
fn the_ring_operations_of_the_last_second() {
    let mut screen = copied_screen();
    press(&mut screen, "5");
    let wide = text(&mut screen, 170, 24);
    let narrow = text(&mut screen, 80, 24);
    insta::assert_snapshot!([wide, narrow].join("\n=====\n"));
}

#[test]
fn ring_operations_are_sorted_by_requests_and_open_to_nothing() {
    let mut screen = copied_screen();
    press(&mut screen, "5");
    let shown = text(&mut screen, 170, 24);
    let at = |what: &str| shown.find(what).unwrap_or_else(|| panic!("{what}: {shown}"));
    // As many of both ended; in this second as many were submitted.
    assert!(at("  fsync ") < at("3,007"), "{shown}");
    press(&mut screen, "r\r");
    assert!(line(&mut screen, "[rings]").contains("peers"));
}

#[test]
fn the_process_that_uses_a_ring_has_a_table_of_its_own() {
    let mut screen = copied_screen();
    press(&mut screen, "3\r");
    assert!(line(&mut screen, "[calls]").contains(" rings"));
    screen.on(Event::Key(Key::BackTab));
    let shown = text(&mut screen, 170, 24);
    assert!(shown.contains("dd (27050)") && shown.contains("[rings]"), "{shown}");
    assert!(shown.contains("  read ") && !shown.contains("  fsync "), "{shown}");
}

#[test]
fn without_ring_operations_there_is_no_table_unless_it_is_asked_for() {
    let mut screen = Screen::new(Setting { rings: true, ..setting() });
    screen.on(Event::Look(snapshot(1), Duration::from_secs(1)));
    assert!(!text(&mut screen, 170, 24).contains("rings"));
    press(&mut screen, "5");
    assert!(text(&mut screen, 170, 24).contains("no request of a ring has been submitted"));
    screen.on(Event::Key(Key::Tab));
    assert!(text(&mut screen, 170, 24).contains("[calls]"));
    screen.setting_mut().rings = false;
    press(&mut screen, "5");
    assert!(text(&mut screen, 170, 24).contains("ring operations are not watched"));
}
