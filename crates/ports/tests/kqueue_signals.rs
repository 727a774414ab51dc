//! What the filters `SIGNAL` and `PROC` of a queue tell.

use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use iotomy_ports::{Closes, Errno, Kevent, Kqueue, filter, flag, note};
use rustix::process::{Signal, getpid, kill_process};

const NOW: Option<Duration> = Some(Duration::ZERO);

fn queue() -> Kqueue {
    Kqueue::new(Closes::Checked).unwrap()
}

fn change(ident: usize, filter: i16, flags: u16, fflags: u32) -> Kevent {
    Kevent { ident, filter, flags, fflags, udata: 7, ..Kevent::default() }
}

fn put(queue: &Kqueue, change: Kevent) -> Result<usize, Errno> {
    queue.kevent(&[change], 0, None, |_| ())
}

/// Signals of other tests may wake this thread and be handled by another one: that is an interruption.
fn take(queue: &Kqueue, timeout: Option<Duration>) -> Vec<Kevent> {
    loop {
        let mut events = Vec::new();
        match queue.kevent(&[], 8, timeout, |event| events.push(event)) {
            Err(Errno::INTR) => {}
            got => {
                assert_eq!(got, Ok(events.len()));
                return events;
            }
        }
    }
}

fn watch(queue: &Kqueue, signal: Signal) {
    let ident = signal.as_raw() as usize;
    assert_eq!(put(queue, change(ident, filter::SIGNAL, flag::ADD, 0)), Ok(0));
}

fn send(signal: Signal) {
    kill_process(getpid(), signal).unwrap();
}

/// Signals that are sent to the process come in any of its threads, at any time: takes until there are so many.
fn count(queue: &Kqueue, signal: Signal, expected: i64) {
    let mut got = 0;
    while got < expected {
        for event in take(queue, None) {
            assert_eq!((event.ident, event.filter), (signal.as_raw() as usize, filter::SIGNAL));
            assert_eq!((event.udata, event.flags & flag::CLEAR), (7, flag::CLEAR));
            assert!(event.data > 0);
            got += event.data;
        }
    }
    assert_eq!(got, expected);
    assert_eq!(take(queue, NOW), []);
}

#[test]
fn signals_are_counted_by_each_queue() {
    let (first, second) = (queue(), queue());
    watch(&first, Signal::WINCH);
    assert_eq!(take(&first, NOW), []);
    send(Signal::WINCH);
    count(&first, Signal::WINCH, 1);
    watch(&second, Signal::WINCH);
    for _ in 0..3 {
        send(Signal::WINCH);
        // The next one must not come while this one is pending: it would be the same.
        count(&first, Signal::WINCH, 1);
    }
    count(&second, Signal::WINCH, 3);
    let ident = Signal::WINCH.as_raw() as usize;
    assert_eq!(put(&first, change(ident, filter::SIGNAL, flag::DELETE, 0)), Ok(0));
    send(Signal::WINCH);
    count(&second, Signal::WINCH, 1);
    assert_eq!(take(&first, NOW), []);
    assert_eq!(put(&first, change(ident, filter::SIGNAL, flag::ENABLE, 0)), Err(Errno::NOENT));
}

#[test]
fn a_disabled_signal_is_counted_and_told_when_it_is_enabled() {
    let queue = queue();
    watch(&queue, Signal::URG);
    let ident = Signal::URG.as_raw() as usize;
    assert_eq!(put(&queue, change(ident, filter::SIGNAL, flag::DISABLE, 0)), Ok(0));
    send(Signal::URG);
    assert_eq!(take(&queue, Some(Duration::from_millis(5))), []);
    assert_eq!(put(&queue, change(ident, filter::SIGNAL, flag::ENABLE, 0)), Ok(0));
    count(&queue, Signal::URG, 1);
}

#[test]
fn a_thread_that_waits_is_woken_by_a_signal() {
    let queue = queue();
    watch(&queue, Signal::CONT);
    for _ in 0..20 {
        thread::scope(|scope| {
            let waiting = scope.spawn(|| take(&queue, None));
            send(Signal::CONT);
            assert_eq!(waiting.join().unwrap()[0].data, 1);
        });
    }
}

#[test]
fn what_is_no_signal_is_refused() {
    let queue = queue();
    for ident in [0, 65, usize::MAX, Signal::KILL.as_raw() as usize] {
        assert_eq!(put(&queue, change(ident, filter::SIGNAL, flag::ADD, 0)), Err(Errno::INVAL));
    }
}

fn child(script: &str) -> Child {
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdin(Stdio::piped()).spawn().unwrap()
}

#[test]
fn the_end_of_a_child_is_told_with_its_status() {
    for (script, status) in [("read line; exit 7", 7 << 8), ("read line; kill -TERM $$", 15)] {
        let queue = queue();
        let mut child = child(script);
        let ident = child.id() as usize;
        assert_eq!(put(&queue, change(ident, filter::PROC, flag::ADD, note::EXIT)), Ok(0));
        assert_eq!(take(&queue, NOW), []);
        child.stdin.take().unwrap().write_all(b"go\n").unwrap();
        let events = take(&queue, None);
        assert_eq!(events.len(), 1);
        let event = events[0];
        assert_eq!((event.ident, event.filter, event.udata), (ident, filter::PROC, 7));
        assert_eq!((event.fflags, event.data), (note::EXIT, status));
        assert_eq!(event.flags & (flag::EOF | flag::ONESHOT), flag::EOF | flag::ONESHOT);
        // The note is gone with the process, which is still the parent's to wait for.
        assert_eq!(take(&queue, NOW), []);
        let delete = change(ident, filter::PROC, flag::DELETE, 0);
        assert_eq!(put(&queue, delete), Err(Errno::NOENT));
        assert!(!child.wait().unwrap().success());
    }
}

#[test]
fn a_process_that_has_ended_is_told_at_once_until_it_is_waited_for() {
    let queue = queue();
    let mut child = child("exit 3");
    let ident = child.id() as usize;
    // The first note tells that it has ended.
    for _ in 0..2 {
        assert_eq!(put(&queue, change(ident, filter::PROC, flag::ADD, note::EXIT)), Ok(0));
        assert_eq!(take(&queue, None)[0].data, 3 << 8);
    }
    child.wait().unwrap();
    let gone = change(ident, filter::PROC, flag::ADD, note::EXIT);
    assert_eq!(put(&queue, gone), Err(Errno::SRCH));
}

#[test]
fn the_end_of_another_ones_child_is_told() {
    let queue = queue();
    let mut command = Command::new("sh");
    // The child of the child ends when it is told to, and is waited for afterwards.
    // A shell gives what it starts in the background the null device, before other redirections.
    let script = "exec 3<&0; sh -c 'read line; exit 9' <&3 & echo $!; wait $!; exit $?";
    let command = command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut parent = command.spawn().unwrap();
    let mut line = String::new();
    let mut out = std::io::BufReader::new(parent.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    let ident: usize = line.trim().parse().unwrap();
    assert_eq!(put(&queue, change(ident, filter::PROC, flag::ADD, note::EXIT)), Ok(0));
    parent.stdin.take().unwrap().write_all(b"go\n").unwrap();
    let event = take(&queue, None)[0];
    assert_eq!((event.ident, event.fflags), (ident, note::EXIT));
    // Its parent may have waited for it already, which old kernels tell nobody of.
    assert!([9 << 8, 0].contains(&event.data), "{}", event.data);
    assert_eq!(parent.wait().unwrap().code(), Some(9));
}

#[test]
fn a_note_that_asks_for_nothing_ends_with_the_process_without_an_event() {
    let queue = queue();
    let mut child = child("read line");
    let ident = child.id() as usize;
    assert_eq!(put(&queue, change(ident, filter::PROC, flag::ADD, 0)), Ok(0));
    child.wait().unwrap();
    assert_eq!(take(&queue, NOW), []);
    let delete = change(ident, filter::PROC, flag::DELETE, 0);
    assert_eq!(put(&queue, delete), Err(Errno::NOENT));
}

#[test]
fn what_linux_does_not_tell_of_processes_is_refused() {
    let queue = queue();
    let own = std::process::id() as usize;
    // NOTE_REAP, and what there is not.
    for fflags in [0x1000_0000, 8] {
        let add = change(own, filter::PROC, flag::ADD, fflags | note::EXIT);
        assert_eq!(put(&queue, add), Err(Errno::INVAL));
    }
    for ident in [0, usize::MAX] {
        let add = change(ident, filter::PROC, flag::ADD, note::EXIT);
        assert_eq!(put(&queue, add), Err(Errno::SRCH));
    }
}
