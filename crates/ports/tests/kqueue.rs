//! A queue of FreeBSD's: its changes and flags, from the sentences of kqueue(2).

use std::io::{Read, Write, pipe};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use iotomy_ports::{Closes, Errno, Kevent, Kqueue, filter, flag, note};

const NOW: Option<Duration> = Some(Duration::ZERO);

fn queue() -> Kqueue {
    Kqueue::new(Closes::Checked).unwrap()
}

fn change(ident: usize, filter: i16, flags: u16) -> Kevent {
    Kevent { ident, filter, flags, ..Kevent::default() }
}

fn of(fd: &impl AsRawFd) -> usize {
    fd.as_raw_fd() as usize
}

/// Makes a change, which succeeds.
fn put(queue: &Kqueue, change: Kevent) {
    assert_eq!(queue.kevent(&[change], 0, None, |_| ()), Ok(0));
}

fn fails(queue: &Kqueue, change: Kevent, error: Errno) {
    assert_eq!(queue.kevent(&[change], 0, None, |_| ()), Err(error));
}

/// The events that there are now.
fn take(queue: &Kqueue, room: usize) -> Vec<Kevent> {
    let mut events = Vec::new();
    let got = queue.kevent(&[], room, NOW, |event| events.push(event));
    assert_eq!(got, Ok(events.len()));
    events
}

fn trigger(ident: usize) -> Kevent {
    Kevent { fflags: note::TRIGGER, ..change(ident, filter::USER, 0) }
}

#[test]
fn an_added_descriptor_is_returned_until_it_is_read() {
    let queue = queue();
    let (mut out, mut into) = pipe().unwrap();
    put(&queue, Kevent { udata: 77, ..change(of(&out), filter::READ, flag::ADD) });
    assert_eq!(take(&queue, 4), []);
    into.write_all(b"abc").unwrap();
    for _ in 0..3 {
        let events = take(&queue, 4);
        assert_eq!((events.len(), events[0].ident, events[0].filter), (1, of(&out), filter::READ));
        assert_eq!((events[0].data, events[0].udata), (3, 77));
    }
    out.read_exact(&mut [0; 3]).unwrap();
    assert_eq!(take(&queue, 4), []);
}

#[test]
fn a_cleared_note_is_returned_once_for_what_happens() {
    let queue = queue();
    let (mut out, mut into) = pipe().unwrap();
    put(&queue, change(of(&out), filter::READ, flag::ADD | flag::CLEAR));
    assert_eq!(take(&queue, 4), []);
    for count in 1..4 {
        into.write_all(b"a").unwrap();
        assert_eq!(take(&queue, 4)[0].data, count);
        assert_eq!(take(&queue, 4), []);
    }
    out.read_exact(&mut [0; 3]).unwrap();
    assert_eq!(take(&queue, 4), []);
    into.write_all(b"a").unwrap();
    // What was true before it is enabled again is an event too.
    assert_eq!(take(&queue, 4).len(), 1);
    put(&queue, change(of(&out), filter::READ, flag::ENABLE));
    assert_eq!(take(&queue, 4).len(), 1);
    assert_eq!(take(&queue, 4), []);
}

#[test]
fn a_note_of_a_ready_descriptor_is_returned_once_with_clear() {
    let queue = queue();
    let (out, mut into) = pipe().unwrap();
    into.write_all(b"a").unwrap();
    put(&queue, change(of(&out), filter::READ, flag::ADD | flag::CLEAR));
    assert_eq!(take(&queue, 4).len(), 1);
    assert_eq!(take(&queue, 4), []);
    // Data is no edge of the other direction.
    let (a, mut b) = UnixStream::pair().unwrap();
    put(&queue, change(of(&a), filter::WRITE, flag::ADD | flag::CLEAR));
    put(&queue, change(of(&a), filter::READ, flag::ADD | flag::CLEAR));
    assert_eq!(take(&queue, 4)[0].filter, filter::WRITE);
    b.write_all(b"a").unwrap();
    let events = take(&queue, 4);
    assert!(events.len() == 1 && events[0].filter == filter::READ, "{events:?}");
}

#[test]
fn oneshot_returns_one_event_and_deletes_the_note() {
    let queue = queue();
    let (out, mut into) = pipe().unwrap();
    put(&queue, change(of(&out), filter::READ, flag::ADD | flag::ONESHOT));
    into.write_all(b"a").unwrap();
    assert_eq!(take(&queue, 4).len(), 1);
    assert_eq!(take(&queue, 4), []);
    fails(&queue, change(of(&out), filter::READ, flag::ENABLE), Errno::NOENT);
    fails(&queue, change(of(&out), filter::READ, flag::DELETE), Errno::NOENT);
}

#[test]
fn dispatch_disables_the_note_with_each_event() {
    let queue = queue();
    let (out, mut into) = pipe().unwrap();
    put(&queue, change(of(&out), filter::READ, flag::ADD | flag::DISPATCH));
    into.write_all(b"a").unwrap();
    for _ in 0..3 {
        assert_eq!(take(&queue, 4).len(), 1);
        assert_eq!(take(&queue, 4), []);
        into.write_all(b"a").unwrap();
        assert_eq!(take(&queue, 4), []);
        put(&queue, change(of(&out), filter::READ, flag::ENABLE));
    }
}

#[test]
fn a_disabled_note_returns_nothing_until_it_is_enabled() {
    let queue = queue();
    let (out, mut into) = pipe().unwrap();
    put(&queue, change(of(&out), filter::READ, flag::ADD | flag::DISABLE));
    into.write_all(b"a").unwrap();
    assert_eq!(take(&queue, 4), []);
    put(&queue, change(of(&out), filter::READ, flag::ENABLE));
    assert_eq!(take(&queue, 4).len(), 1);
    put(&queue, change(of(&out), filter::READ, flag::DISABLE));
    assert_eq!(take(&queue, 4), []);
    put(&queue, change(of(&out), filter::READ, flag::ENABLE));
    assert_eq!(take(&queue, 4).len(), 1);
    put(&queue, change(of(&out), filter::READ, flag::DELETE));
    assert_eq!(take(&queue, 4), []);
}

#[test]
fn adding_again_changes_the_note_and_makes_no_second_one() {
    let queue = queue();
    let (out, mut into) = pipe().unwrap();
    into.write_all(b"abc").unwrap();
    put(&queue, Kevent { udata: 1, ..change(of(&out), filter::READ, flag::ADD) });
    put(&queue, Kevent { udata: 2, ..change(of(&out), filter::READ, flag::ADD) });
    let events = take(&queue, 4);
    assert_eq!((events.len(), events[0].udata), (1, 2));
    let low = Kevent { fflags: note::LOWAT, data: 4, udata: 3, ..events[0] };
    put(&queue, Kevent { flags: flag::ADD, ..low });
    assert_eq!(take(&queue, 4), []);
    into.write_all(b"d").unwrap();
    assert_eq!((take(&queue, 4)[0].udata, take(&queue, 4)[0].data), (3, 4));
}

#[test]
fn the_callers_value_is_kept_if_that_is_asked_for() {
    let queue = queue();
    put(&queue, Kevent { udata: 5, ..change(1, filter::USER, flag::ADD | flag::CLEAR) });
    put(&queue, Kevent { flags: flag::KEEP_UDATA, ..trigger(1) });
    assert_eq!(take(&queue, 4)[0].udata, 5);
    put(&queue, trigger(1));
    assert_eq!(take(&queue, 4)[0].udata, 0);
    fails(&queue, change(2, filter::USER, flag::ADD | flag::KEEP_UDATA), Errno::INVAL);
}

#[test]
fn receipts_and_errors_are_events_as_far_as_there_is_room() {
    let queue = queue();
    let changes = [
        change(1, filter::USER, flag::ADD | flag::RECEIPT),
        change(2, filter::USER, flag::DELETE),
        Kevent { ident: usize::MAX, udata: 9, ..change(0, filter::READ, flag::ADD) },
        change(0, 99, flag::ADD),
        Kevent { fflags: note::TRIGGER, ..change(3, filter::USER, flag::ADD) },
    ];
    let mut events = Vec::new();
    // Nothing is waited for, as there are outcomes.
    assert_eq!(queue.kevent(&changes, 8, None, |event| events.push(event)), Ok(4));
    let expected = [0, Errno::NOENT.raw_os_error(), Errno::BADF.raw_os_error()];
    for (event, error) in events.iter().zip(expected) {
        assert_eq!((event.flags, event.data), (flag::ERROR, error.into()));
    }
    assert_eq!((events[2].ident, events[2].udata), (usize::MAX, 9));
    assert_eq!(events[3].data, Errno::INVAL.raw_os_error().into());
    assert_eq!(take(&queue, 8).len(), 1);
    // Without room, the first error is that of the call, and what comes after a receipt is not done.
    assert_eq!(queue.kevent(&changes[1..], 0, None, |_| ()), Err(Errno::NOENT));
    assert_eq!(queue.kevent(&changes, 0, None, |_| ()), Ok(0));
    assert_eq!(queue.kevent(&changes, 1, None, |_| ()), Err(Errno::NOENT));
}

#[test]
fn forced_it_returns_one_event_whatever_the_filter_says() {
    let queue = queue();
    let (out, _into) = pipe().unwrap();
    put(&queue, change(of(&out), filter::READ, flag::ADD));
    put(&queue, change(of(&out), filter::READ, flag::FORCE_ONESHOT));
    assert_eq!(take(&queue, 4).len(), 1);
    fails(&queue, change(of(&out), filter::READ, flag::DELETE), Errno::NOENT);
}

#[test]
fn one_place_for_events_loses_none_of_a_descriptor_that_is_readable_and_writable() {
    for flags in [flag::ADD, flag::ADD | flag::CLEAR, flag::ADD | flag::ONESHOT] {
        let queue = queue();
        let (a, mut b) = UnixStream::pair().unwrap();
        b.write_all(b"a").unwrap();
        put(&queue, change(of(&a), filter::READ, flags));
        put(&queue, change(of(&a), filter::WRITE, flags));
        let mut filters = [take(&queue, 1)[0].filter, take(&queue, 1)[0].filter];
        filters.sort_unstable();
        assert_eq!(filters, [filter::WRITE, filter::READ]);
    }
}

#[test]
fn all_of_many_events_come_through_little_room() {
    let queue = queue();
    for ident in 0..500 {
        put(&queue, Kevent { fflags: note::TRIGGER, ..change(ident, filter::USER, flag::ADD) });
    }
    let mut seen = [0; 500];
    for _ in 0..500 {
        take(&queue, 3).iter().for_each(|event| seen[event.ident] += 1);
    }
    // Each is as often there as the others.
    assert_eq!(seen, [3; 500]);
}

#[test]
fn a_queue_is_readable_as_long_as_it_has_events_and_can_be_in_another() {
    let (inner, outer) = (queue(), queue());
    put(&outer, change(of(&inner.as_fd()), filter::READ, flag::ADD));
    assert_eq!(take(&outer, 4), []);
    put(&inner, change(1, filter::USER, flag::ADD | flag::CLEAR));
    put(&inner, trigger(1));
    assert_eq!((take(&outer, 4).len(), take(&outer, 4).len()), (1, 1));
    assert_eq!(inner.pending(), 1);
    assert_eq!(take(&inner, 4).len(), 1);
    assert_eq!(take(&outer, 4), []);
    // It cannot be in itself.
    fails(&inner, change(of(&inner.as_fd()), filter::READ, flag::ADD), Errno::INVAL);
}

#[test]
fn without_room_nothing_is_waited_for() {
    let queue = queue();
    assert_eq!(queue.kevent(&[], 0, None, |_| ()), Ok(0));
}

#[test]
fn a_wait_ends_with_its_timeout_and_not_before() {
    let queue = queue();
    let start = std::time::Instant::now();
    let timeout = Duration::from_millis(7);
    assert_eq!(queue.kevent(&[], 4, Some(timeout), |_| ()), Ok(0));
    assert!(start.elapsed() >= timeout);
}

#[test]
fn each_of_many_threads_events_is_returned_once() {
    let queue = queue();
    let flags = flag::ADD | flag::CLEAR;
    (0..8).for_each(|ident| put(&queue, change(ident, filter::USER, flags)));
    put(&queue, change(99, filter::USER, flag::ADD));
    let count = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                loop {
                    let mut is_last = false;
                    let put = |event: Kevent| match event.ident {
                        99 => is_last = true,
                        _ => _ = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst),
                    };
                    queue.kevent(&[], 2, None, put).unwrap();
                    if is_last {
                        return;
                    }
                }
            });
        }
        for round in 0..200 {
            put(&queue, trigger(round % 8));
            // The next one of the same number would be the same event.
            iotomy_test_requirements::wait::until("it has been taken", || {
                count.load(std::sync::atomic::Ordering::SeqCst) > round
            });
        }
        put(&queue, trigger(99));
    });
    assert_eq!(count.into_inner(), 200);
}

#[test]
fn a_closed_queue_ends_the_waits_in_it() {
    let queue = queue();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| queue.kevent(&[], 4, None, |_| ()));
        queue.close();
        assert_eq!(waits.join().unwrap(), Err(Errno::BADF));
    });
    assert_eq!(queue.kevent(&[], 0, NOW, |_| ()), Err(Errno::BADF));
}

#[test]
fn the_end_of_a_descriptor_ends_its_notes() {
    let queue = queue();
    let (out, mut into) = pipe().unwrap();
    let number = of(&out);
    let copy = out.try_clone().unwrap();
    put(&queue, change(number, filter::READ, flag::ADD));
    into.write_all(b"a").unwrap();
    assert_eq!(take(&queue, 4).len(), 1);
    drop(out);
    assert_eq!(take(&queue, 4), []);
    put(&queue, change(of(&copy), filter::READ, flag::ADD));
    queue.forget(copy.as_raw_fd());
    fails(&queue, change(of(&copy), filter::READ, flag::DELETE), Errno::NOENT);
    put(&queue, change(of(&copy), filter::READ, flag::ADD));
    queue.forget_range(of(&copy) as u32, of(&copy) as u32);
    assert_eq!(take(&queue, 4), []);
}
