//! What a queue tells of a process' forks and executions, and of its children, where Linux tells of them.

use std::collections::{HashMap, HashSet};
use std::io::{ErrorKind, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use iotomy_ports::{Closes, Errno, Kevent, Kqueue, filter, flag, note};
use iotomy_test_requirements::{Need, skip};

const NOW: Option<Duration> = Some(Duration::ZERO);

fn queue() -> Kqueue {
    Kqueue::new(Closes::Checked).unwrap()
}

fn put(queue: &Kqueue, child: &Child, flags: u16, fflags: u32) -> Result<usize, Errno> {
    let ident = child.id() as usize;
    let change =
        Kevent { ident, filter: filter::PROC, flags, fflags, udata: 7, ..Kevent::default() };
    queue.kevent(&[change], 0, None, |_| ())
}

/// A shell that waits for a line and then does something. Its own execution has been told of.
fn shell(script: &str) -> Child {
    let script = format!("echo; read line; {script}");
    let mut command = Command::new("sh");
    let command = command.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    child
}

fn go(child: &mut Child) {
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
}

/// A shell that is watched; None with a skip where Linux does not tell this process.
fn watched(queue: &Kqueue, script: &str, fflags: u32) -> Option<Child> {
    let mut child = shell(script);
    match put(queue, &child, flag::ADD, fflags) {
        Ok(_) => Some(child),
        Err(error) => {
            assert!([Errno::ACCESS, Errno::INVAL].contains(&error), "{error:?}");
            skip(Need::Machine, "the process connector does not tell this process");
            go(&mut child);
            child.wait().unwrap();
            None
        }
    }
}

fn take(queue: &Kqueue, room: usize, timeout: Option<Duration>) -> Vec<Kevent> {
    let mut events = Vec::new();
    // Ends of children are signals, too.
    while let Err(error) = queue.wait(room, timeout, |event| events.push(event)) {
        assert_eq!((error.kind(), events.len()), (ErrorKind::Interrupted, 0));
    }
    events
}

/// All that comes until the process has ended, bit by bit.
fn until_exit(queue: &Kqueue, child: &Child) -> u32 {
    let mut came = 0;
    while came & note::EXIT == 0 {
        for event in take(queue, 1, None) {
            assert_eq!((event.ident, event.udata), (child.id() as usize, 7));
            came |= event.fflags;
        }
    }
    came
}

#[test]
fn forks_and_executions_are_told_if_they_are_asked_for() {
    let both = note::FORK | note::EXEC;
    for asked in [note::FORK, note::EXEC, both, both | note::EXIT] {
        let queue = queue();
        // A subshell is a fork, and `exec` no fork.
        let script = "(exit 3); exec true";
        let Some(mut child) = watched(&queue, script, asked | note::EXIT) else { return };
        assert_eq!(take(&queue, 4, NOW), []);
        go(&mut child);
        assert_eq!(until_exit(&queue, &child), asked | note::EXIT);
        assert_eq!(take(&queue, 4, NOW), []);
        child.wait().unwrap();
    }
}

#[test]
fn what_is_not_watched_for_is_not_told() {
    let queue = queue();
    let Some(mut child) = watched(&queue, "(exit 3); exec true", note::FORK | note::EXEC) else {
        return;
    };
    let mut other = shell("(exit 3); exec true");
    // It is asked for no longer, and its end as ever.
    assert_eq!(put(&queue, &child, 0, note::EXIT), Ok(0));
    go(&mut child);
    go(&mut other);
    assert_eq!(until_exit(&queue, &child), note::EXIT);
    child.wait().unwrap();
    other.wait().unwrap();
    assert_eq!(take(&queue, 4, NOW), []);
}

#[test]
fn children_are_tracked_with_their_parents_and_their_ends() {
    let queue = queue();
    let asked = note::TRACK | note::FORK | note::EXIT;
    // Each child is waited for before the next; one in ten has a child of its own.
    let script = "i=0; while [ $i -lt 40 ]; do i=$((i + 1)); \
                  if [ $((i % 10)) = 0 ]; then (true; (exit 4); exit 3); else (exit 3); fi; done";
    let Some(mut child) = watched(&queue, script, asked) else { return };
    go(&mut child);
    let own = child.id() as i64;
    let (mut parents, mut ends) = (HashMap::new(), HashMap::new());
    while ends.len() < 45 {
        for event in take(&queue, 1, None) {
            let ident = event.ident as i64;
            assert_eq!(event.fflags & note::TRACKERR, 0, "{event:?}");
            assert_eq!((event.filter, event.udata), (filter::PROC, 7));
            if event.fflags & note::CHILD != 0 && event.fflags & note::EXIT == 0 {
                parents.insert(ident, event.data);
            } else if event.fflags & note::CHILD != 0 {
                // With its end, the data is the status.
                parents.insert(ident, own);
            }
            if event.fflags & note::EXIT != 0 {
                assert_eq!(ends.insert(ident, event.data), None);
            }
        }
    }
    assert!(ends.remove(&own).is_some());
    let of_status = |status| ends.values().filter(|end| **end == status).count();
    assert_eq!((of_status(3 << 8), of_status(4 << 8)), (40, 4));
    let tracked: HashSet<_> = parents.keys().collect();
    assert_eq!(tracked, ends.keys().collect());
    child.wait().unwrap();
    assert_eq!(take(&queue, 4, NOW), []);
}

#[test]
fn a_queue_that_is_told_of_forks_sleeps_until_there_is_one_of_its_own() {
    let queue = queue();
    let Some(mut child) = watched(&queue, "(exit 3)", note::FORK | note::EXIT) else { return };
    // Others' forks end no wait.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..20 {
                assert!(Command::new("true").status().unwrap().success());
            }
        });
        assert_eq!(take(&queue, 4, Some(Duration::from_millis(30))), []);
    });
    go(&mut child);
    assert_eq!(until_exit(&queue, &child), note::FORK | note::EXIT);
    child.wait().unwrap();
}

#[test]
fn what_there_is_not_is_refused() {
    let queue = queue();
    let mut child = shell("exit 0");
    for fflags in [0x8, 0x10, 0x1000_0000] {
        assert_eq!(put(&queue, &child, flag::ADD, fflags | note::EXIT), Err(Errno::INVAL));
    }
    go(&mut child);
    child.wait().unwrap();
    let gone = put(&queue, &child, flag::ADD, note::FORK).unwrap_err();
    assert!([Errno::SRCH, Errno::ACCESS, Errno::INVAL].contains(&gone));
}
