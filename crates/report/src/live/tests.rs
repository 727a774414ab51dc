//! Screens of fixed snapshots, and the effect of keys.

use std::time::Duration;

use iotomy_record::{Call, FileKind, FileUse, ImageCounts, LedgerRow, ProcessCounts, Snapshot};
use proptest::prelude::*;

use super::peer_tests::served;
use super::{Event, Key, Screen, ScreenRequest, Setting};

fn call(syscall: &str, calls: u64, wall_ns: u64, bytes: u64) -> Call {
    let blocked_ns = wall_ns / 50;
    Call {
        syscall: syscall.into(),
        calls,
        wall_ns,
        bytes,
        on_cpu_ns: Some(wall_ns - blocked_ns),
        blocked_ns: Some(blocked_ns),
        runnable_ns: Some(0),
        ..Call::default()
    }
}

fn file(path: &str, read_bytes: u64, write_bytes: u64) -> FileUse {
    FileUse {
        kind: FileKind::File,
        path: path.into(),
        read_calls: read_bytes / 4096,
        read_bytes,
        write_calls: write_bytes / 4096,
        write_bytes,
        ..FileUse::default()
    }
}

/// `n` seconds of a copy.
pub(super) fn snapshot(n: u64) -> Snapshot {
    let second = 1_000_000_000;
    let ledger = LedgerRow {
        thread_ns: n * second,
        user_ns: n * 150_000_000,
        calls_on_cpu_ns: n * 600_000_000,
        blocked_ns: n * 200_000_000,
        runnable_ns: n * 40_000_000,
        ..LedgerRow::default()
    };
    let mut openat = call("openat", 4 * n, 300_000 * n, 0);
    openat.errors = n;
    let futex = Call {
        in_flight: 2,
        on_cpu_ns: Some(0),
        blocked_ns: Some(n * 200_000_000),
        ..call("futex", 0, n * second, 0)
    };
    let mut read = call("read", 1000 * n, 400_000_000 * n, 65_536_000 * n);
    // Those of each second take longer than those of the one before: figures are of the last one.
    for at in 1..=n {
        (0..990).for_each(|_| read.wall_times.add(at * 1_000_000));
        (0..10).for_each(|_| read.wall_times.add(at * 30_000_000));
    }
    let of_image = read.wall_times.clone();
    Snapshot {
        elapsed_ns: n * second,
        calls: vec![read, call("write", 1000 * n, 390_000_000 * n, 65_536_000 * n), openat, futex],
        files: vec![
            file("/srv/data/source.img", 65_536_000 * n, 0),
            file("/srv/data/copy.img", 0, 65_536_000 * n),
        ],
        images: vec![ImageCounts {
            id: 7,
            pid: 27050,
            exec: "dd".into(),
            threads: 3,
            ledger: Some(ledger.clone()),
            calls: vec![Call {
                wall_times: of_image,
                ..call("read", 1000 * n, 400_000_000 * n, 65_536_000 * n)
            }],
            ..ImageCounts::default()
        }],
        uses: vec![
            FileUse {
                pid: 27050,
                exec: "dd".into(),
                ..file("/srv/data/copy.img", 0, 65_536_000 * n)
            },
            FileUse { pid: 9, exec: "other".into(), ..file("/srv/data/source.img", 4096 * n, 0) },
        ],
        processes: vec![ProcessCounts {
            pid: 27050,
            exec: "dd".into(),
            title: String::new(),
            threads: 3,
            calls: 2004 * n,
            errors: n,
            bytes: 131_072_000 * n,
            calls_ns: 790_300_000 * n,
            ledger: Some(ledger.clone()),
            inside: Some("futex".into()),
        }],
        ledger: Some(ledger),
        threads: 3,
        lost: 0,
        ..Snapshot::default()
    }
}

pub(super) fn setting() -> Setting {
    Setting {
        subject: "dd if=source.img of=copy.img bs=64k".into(),
        pid: Some(27050),
        observer: "bpf".into(),
        cost_range_ns: [105.0, 320.0],
        files: true,
        is_command: true,
        unicode: true,
        ..Setting::default()
    }
}

/// After two snapshots, a second apart.
fn screen(setting: Setting) -> Screen {
    let mut screen = Screen::new(setting);
    screen.on(Event::Look(snapshot(4), Duration::from_secs(1)));
    screen.on(Event::Look(snapshot(5), Duration::from_secs(1)));
    screen
}

pub(super) fn text(screen: &mut Screen, width: u16, height: u16) -> String {
    let buffer = screen.draw(width, height);
    let rows = buffer.content().chunks(usize::from(width));
    let lines = rows.map(|row| {
        let line: String = row.iter().map(|cell| cell.symbol()).collect();
        line.trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

pub(super) fn press(screen: &mut Screen, keys: &str) {
    for key in keys.chars() {
        let key = match key {
            '\r' => Key::Enter,
            '\x7f' => Key::Backspace,
            key => Key::Char(key),
        };
        let _ = screen.on(Event::Key(key));
    }
}

/// The line of the table with this text.
pub(super) fn line(screen: &mut Screen, what: &str) -> String {
    let text = text(screen, 160, 24);
    let found = text.lines().find(|line| line.contains(what));
    found.unwrap_or_else(|| panic!("no {what}: {text}")).to_owned()
}

#[test]
fn the_calls_of_the_last_second() {
    let mut screen = screen(setting());
    screen.on(Event::Output(b"\x1b[32mcopying\x1b[0m\n10 %\r20 %"));
    insta::assert_snapshot!(text(&mut screen, 100, 30));
}

#[test]
fn the_files_and_the_processes() {
    let mut screen = screen(setting());
    press(&mut screen, "2");
    let files = text(&mut screen, 80, 24);
    press(&mut screen, "3");
    insta::assert_snapshot!(files + "\n=====\n" + &text(&mut screen, 80, 24));
}

#[test]
fn the_smallest_screen_there_is_room_on_in_ascii() {
    let mut small = screen(Setting { unicode: false, ..setting() });
    let shown = text(&mut small, 40, 10);
    assert!(shown.is_ascii());
    insta::assert_snapshot!(shown);
    assert!(text(&mut small, 39, 10).starts_with("too small"));
    press(&mut small, "?");
    small.on(Event::Key(Key::End));
    assert!(text(&mut small, 40, 10).contains("fg"), "the last line but one of the help");
    small.on(Event::Key(Key::Home));
    let help = text(&mut small, 40, 10);
    assert!(help.contains("otherwise") && help.contains("ends"), "it is not cut: {help}");
    press(&mut small, "?");
    assert_eq!(small.draw(0, 0).content().len(), 0);
    assert!(small.draw(u16::MAX, u16::MAX).content().len() < 1_000_000);
}

#[test]
fn help_and_no_figures_yet() {
    let mut screen = Screen::new(setting());
    let none = text(&mut screen, 80, 12);
    press(&mut screen, "?");
    insta::assert_snapshot!(none + "\n=====\n" + &text(&mut screen, 80, 16));
}

#[test]
fn an_observer_that_cannot_split_time_has_no_columns_for_it() {
    let plain = |n| {
        let mut snapshot = snapshot(n);
        snapshot.ledger = None;
        snapshot.processes[0].ledger = None;
        for call in &mut snapshot.calls {
            (call.on_cpu_ns, call.blocked_ns, call.runnable_ns) = (None, None, None);
        }
        snapshot
    };
    let mut screen = Screen::new(Setting { times_inflated: true, ..setting() });
    screen.on(Event::Look(plain(1), Duration::from_secs(3)));
    let shown = text(&mut screen, 100, 20);
    assert!(!shown.contains("blocked") && !shown.contains("where the time goes"), "{shown}");
    assert!(shown.contains("times inflated") && shown.contains("every 3 s"), "{shown}");
}

#[test]
fn the_head_says_why_a_preferred_observer_does_not_watch() {
    let fallback = Some("bpf: load the BPF programs: EPERM".to_owned());
    let observer = "ptrace".to_owned();
    let mut screen = screen(Setting { fallback, observer, ..setting() });
    for (width, height, line) in
        [(100, 20, "watching by ptrace, because of"), (40, 10, "watching by")]
    {
        let shown = text(&mut screen, width, height);
        assert!(shown.lines().nth(1).unwrap().contains(line), "{shown}");
    }
}

/// The names in the first column, from top to bottom.
fn order(screen: &mut Screen) -> Vec<String> {
    let text = text(screen, 120, 20);
    let names = text.lines().filter_map(|line| line.strip_prefix("  "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    let calls = ["read", "write", "openat", "futex"];
    // The table is below the ledger.
    let below = text.lines().position(|line| line.contains("[calls]")).unwrap();
    let above = text.lines().take(below).filter(|line| line.starts_with("  ")).count();
    names.skip(above).filter(|name| calls.contains(name)).map(str::to_owned).collect()
}

#[test]
fn rows_are_sorted_by_the_column_chosen() {
    let mut screen = screen(setting());
    assert_eq!(order(&mut screen), ["futex", "read", "write", "openat"]);
    press(&mut screen, "r");
    assert_eq!(order(&mut screen), ["openat", "write", "read", "futex"]);
    press(&mut screen, "<<");
    assert_eq!(order(&mut screen)[0], "openat", "the only one with errors");
    press(&mut screen, "<<");
    assert_eq!(order(&mut screen), ["futex", "openat", "read", "write"], "by name");
    screen.on(Event::Key(Key::Left));
    screen.on(Event::Key(Key::Right));
    assert_eq!(order(&mut screen), ["futex", "openat", "read", "write"]);
}

#[test]
fn a_watch_of_a_process_names_its_id_once() {
    let subject = "process 27050".to_owned();
    let mut screen = screen(Setting { subject, is_command: false, ..setting() });
    let shown = text(&mut screen, 80, 24);
    assert!(shown.starts_with(" process 27050  "), "{shown}");
    assert_eq!(shown.lines().next().unwrap().matches("27050").count(), 1);
}

#[test]
fn a_filter_keeps_what_holds_its_text_until_it_is_taken_off() {
    let mut screen = screen(setting());
    press(&mut screen, "/EA");
    assert_eq!(order(&mut screen), ["read"]);
    assert!(
        matches!(screen.on(Event::Key(Key::Char('q'))), ScreenRequest::Redraw),
        "a letter of it"
    );
    screen.on(Event::Key(Key::Backspace));
    screen.on(Event::Key(Key::Enter));
    assert_eq!(order(&mut screen), ["read"]);
    assert!(matches!(screen.on(Event::Key(Key::Char('q'))), ScreenRequest::Leave));
    screen.on(Event::Key(Key::Escape));
    assert_eq!(order(&mut screen).len(), 4);
    press(&mut screen, "/none");
    assert!(text(&mut screen, 80, 24).contains("no name matches"));
}

#[test]
fn the_figures_stand_still_while_it_is_paused() {
    let mut screen = screen(setting());
    press(&mut screen, "p");
    assert!(screen.is_paused());
    assert!(text(&mut screen, 80, 24).contains("PAUSED"));
    press(&mut screen, " ");
    assert!(!screen.is_paused());
}

#[test]
fn scrolling_ends_at_the_ends() {
    let many = |n: u64| Snapshot {
        calls: (0..50).map(|i| call(&format!("call_{i:02}"), n, n * (100 - i), 0)).collect(),
        ..snapshot(n)
    };
    let mut screen = Screen::new(setting());
    screen.on(Event::Look(many(1), Duration::from_secs(1)));
    assert!(text(&mut screen, 80, 24).contains("1 to "));
    screen.on(Event::Key(Key::End));
    screen.on(Event::Key(Key::PageDown));
    assert!(text(&mut screen, 80, 24).contains("to 50 of 50"));
    screen.on(Event::Key(Key::Up));
    assert!(text(&mut screen, 80, 24).contains("to 50 of 50"), "the row above is shown already");
    for _ in 0..40 {
        screen.on(Event::Key(Key::Up));
    }
    assert!(text(&mut screen, 80, 24).contains("9 to "));
    screen.on(Event::Key(Key::Home));
    assert!(text(&mut screen, 80, 24).contains("  call_00"));
}

#[test]
fn a_process_opens_to_its_calls_and_files_and_a_file_to_its_processes() {
    let mut screen = screen(setting());
    press(&mut screen, "3\r");
    let calls = text(&mut screen, 80, 24);
    press(&mut screen, "2");
    let files = text(&mut screen, 80, 24);
    press(&mut screen, "\r");
    let users = text(&mut screen, 80, 24);
    insta::assert_snapshot!([calls, files, users.clone()].join("\n=====\n"));
    screen.on(Event::Key(Key::Escape));
    assert!(text(&mut screen, 80, 24).contains("dd (27050)  calls [files]"));
    press(&mut screen, "\x7f");
    assert!(text(&mut screen, 80, 24).contains(" calls  files [processes]"));
}

#[test]
fn a_process_that_ends_while_it_is_open_keeps_its_sums() {
    let mut screen = screen(setting());
    press(&mut screen, "3\r");
    for n in 6..9 {
        let gone =
            Snapshot { images: Vec::new(), processes: Vec::new(), uses: Vec::new(), ..snapshot(n) };
        screen.on(Event::Look(gone, Duration::from_secs(1)));
        let shown = text(&mut screen, 120, 24);
        assert!(shown.contains("it has ended") && shown.contains("0 calls/s"), "{shown}");
        assert!(line(&mut screen, "  read ").contains("5,000"), "{shown}");
    }
    press(&mut screen, "4");
    assert!(text(&mut screen, 80, 24).contains("no counted call has moved bytes"));
}

#[test]
fn a_selected_row_stays_selected_when_it_is_sorted_elsewhere() {
    let mut screen = screen(setting());
    press(&mut screen, "2j");
    // By bytes read, the copy is the second; by bytes written, the first.
    let _ = text(&mut screen, 80, 24);
    let mut turned = snapshot(6);
    turned.files[1].read_bytes = 1 << 40;
    screen.on(Event::Look(turned, Duration::from_secs(1)));
    let shown = text(&mut screen, 80, 24);
    let place = |name: &str| shown.lines().position(|line| line.contains(name)).unwrap();
    assert!(place("copy.img") < place("source.img  "), "{shown}");
    press(&mut screen, "\r");
    assert!(text(&mut screen, 80, 24).contains("copy.img [used by]"));
}

#[test]
fn the_counts_to_save_have_images_that_have_ended() {
    let mut screen = Screen::new(setting());
    assert!(screen.counts().is_none());
    let image = |id, threads| ImageCounts { id, threads, ..ImageCounts::default() };
    for (n, images) in
        [(1, vec![image(1, 1)]), (2, vec![image(2, 1)]), (3, Vec::new()), (4, Vec::new())]
    {
        screen.on(Event::Look(Snapshot { images, ..snapshot(n) }, Duration::from_secs(1)));
    }
    let (counts, left_out) = screen.counts().unwrap();
    let images: Vec<_> = counts.images.iter().map(|one| (one.id, one.threads)).collect();
    assert_eq!((images, left_out), (vec![(1, 0), (2, 0)], 0));
}

#[test]
fn counts_that_seem_to_fall_are_no_rates() {
    let mut screen = Screen::new(setting());
    screen.on(Event::Look(snapshot(5), Duration::from_secs(1)));
    screen.on(Event::Look(
        Snapshot { elapsed_ns: 6_000_000_000, ..snapshot(4) },
        Duration::from_secs(1),
    ));
    assert!(text(&mut screen, 100, 30).contains(" 0 calls/s"));
}

proptest! {
    /// For any names, cells hold glyphs, and every size can be drawn.
    #[test]
    fn hostile_names_are_inert_at_any_size(
        name in any::<String>(),
        output in proptest::collection::vec(any::<u8>(), 0..300),
        keys in "[1234srpjk<>\r\x7f/?]{0,8}",
        (width, height) in (0u16..160, 0u16..60),
        unicode: bool,
    ) {
        let hostile = format!("\x1b[31m{name}\x1b]0;t\x07\u{202e}");
        let mut snapshot = served(2, 2);
        for file in snapshot.files.iter_mut().chain(&mut snapshot.uses) {
            if let Some(socket) = &mut file.socket {
                socket.remote = Some(hostile.clone());
            }
        }
        snapshot.calls[0].syscall.clone_from(&hostile);
        snapshot.files[0].path.clone_from(&hostile);
        snapshot.uses[0].path.clone_from(&hostile);
        snapshot.uses[0].exec.clone_from(&hostile);
        snapshot.images[0].exec.clone_from(&hostile);
        snapshot.processes[0].exec.clone_from(&hostile);
        let mut screen = Screen::new(Setting { subject: hostile.clone(), unicode, ..setting() });
        screen.on(Event::Look(snapshot, Duration::from_secs(1)));
        screen.on(Event::Output(&output));
        press(&mut screen, &keys);
        screen.on(Event::Notice(&hostile));
        let buffer = screen.draw(width, height);
        for cell in buffer.content() {
            prop_assert!(!cell.symbol().chars().any(char::is_control), "{:?}", cell.symbol());
            prop_assert!(cell.symbol().chars().all(|c| c != '\u{202e}'), "it turns text round");
            prop_assert!(unicode || cell.symbol().is_ascii(), "{:?}", cell.symbol());
        }
    }
}
