//! Descriptors, notes and files that end while other threads wait for them: what a call says to have ended, no
//! call that begins afterwards tells of. Nobody tells these ports and queues of closes.

use std::fs::{self, File};
use std::io::{PipeReader, Write, pipe};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use iotomy_ports::{
    Closes, Errno, FileChanges, FileObject, Kevent, Kqueue, PollEntry, PollSet, Port, Source,
    filter, flag, note,
};
use rustix::event::PollFlags;

const NOW: Option<Duration> = Some(Duration::ZERO);
const SOON: Option<Duration> = Some(Duration::from_millis(2));
const ROUNDS: usize = 400;

/// A pipe that has something to read.
fn filled() -> (PipeReader, std::io::PipeWriter) {
    let (out, mut into) = pipe().unwrap();
    into.write_all(b"x").unwrap();
    (out, into)
}

/// Retrieves until it is over, and checks that nothing comes that had ended before the call; returns how much came.
fn receive(port: &Port, ended: &AtomicUsize, is_over: &AtomicBool) -> usize {
    let mut count = 0;
    while !is_over.load(Ordering::SeqCst) {
        let dead = ended.load(Ordering::SeqCst);
        match port.get(SOON) {
            Ok(event) => {
                assert!(event.user > dead, "{event:?} had ended with {dead}");
                count += 1;
            }
            Err(error) => assert_eq!(error, Errno::TIME),
        }
    }
    count
}

/// The same of a queue.
fn take(queue: &Kqueue, ended: &AtomicUsize, is_over: &AtomicBool) -> usize {
    let mut count = 0;
    while !is_over.load(Ordering::SeqCst) {
        let dead = ended.load(Ordering::SeqCst);
        let told = queue.wait(2, SOON, |event| {
            assert!(event.udata > dead, "{event:?} had ended with {dead}");
        });
        count += told.unwrap();
    }
    count
}

/// Runs rounds while two threads do something; returns the sum of what they did.
fn beside(act: impl Fn(&AtomicUsize, &AtomicBool) -> usize + Sync, round: impl Fn(usize)) -> usize {
    let (ended, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        let threads = [(); 2].map(|()| scope.spawn(|| act(&ended, &is_over)));
        for number in 1..=ROUNDS {
            round(number);
            ended.store(number, Ordering::SeqCst);
        }
        is_over.store(true, Ordering::SeqCst);
        threads.map(|thread| thread.join().unwrap()).iter().sum()
    })
}

#[test]
fn a_descriptor_that_was_closed_sends_nothing_from_then_on() {
    let port = Port::new(Closes::Checked).unwrap();
    beside(
        |ended, is_over| receive(&port, ended, is_over),
        |number| {
            let (out, _into) = filled();
            port.associate(out.as_raw_fd(), PollFlags::IN, number).unwrap();
            drop(out);
        },
    );
    assert_eq!(port.get(NOW), Err(Errno::TIME));
}

#[test]
fn a_descriptor_that_was_closed_has_no_note_from_then_on() {
    let queue = Kqueue::new(Closes::Checked).unwrap();
    let flags = [0, flag::CLEAR, flag::ONESHOT, flag::DISPATCH];
    beside(
        |ended, is_over| take(&queue, ended, is_over),
        |number| {
            let (out, _into) = filled();
            let change = Kevent {
                ident: out.as_raw_fd() as usize,
                filter: filter::READ,
                flags: flag::ADD | flags[number % 4],
                udata: number,
                ..Kevent::default()
            };
            queue.apply([change], 0, |_| ()).unwrap();
            drop(out);
        },
    );
    assert_eq!(queue.wait(1, NOW, |event| panic!("{event:?}")), Ok(0));
}

#[test]
fn an_event_of_a_note_is_returned_or_deleted_and_never_both() {
    let queue = Kqueue::new(Closes::Checked).unwrap();
    let deleted = AtomicUsize::new(0);
    let came = beside(
        |ended, is_over| take(&queue, ended, is_over),
        |number| {
            let change = |flags, fflags| Kevent {
                ident: 1,
                filter: filter::USER,
                flags,
                fflags,
                udata: number,
                ..Kevent::default()
            };
            let add = change(flag::ADD | flag::ONESHOT, note::TRIGGER);
            queue.apply([add], 0, |_| ()).unwrap();
            match queue.apply([change(flag::DELETE, 0)], 0, |_| ()) {
                Ok(_) => drop(deleted.fetch_add(1, Ordering::SeqCst)),
                Err(error) => assert_eq!(error, Errno::NOENT),
            }
        },
    );
    assert_eq!(came + deleted.load(Ordering::SeqCst), ROUNDS);
}

#[test]
fn a_file_whose_association_ended_sends_nothing_from_then_on() {
    let port = Port::new(Closes::Checked).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let mut file = File::create(&path).unwrap();
    let ended_unretrieved = AtomicUsize::new(0);
    let object = || FileObject { path: &path, accessed: (0, 0), modified: (0, 0), changed: (0, 0) };
    // The time stamps differ, so each association has an event at once.
    let came = beside(
        |ended, is_over| receive(&port, ended, is_over),
        |number| {
            port.associate_file(7, object(), FileChanges::MODIFIED, number).unwrap();
            match port.dissociate_file(7) {
                Ok(()) => drop(ended_unretrieved.fetch_add(1, Ordering::SeqCst)),
                Err(error) => assert_eq!(error, Errno::NOENT),
            }
        },
    );
    assert_eq!(came + ended_unretrieved.load(Ordering::SeqCst), ROUNDS);
    file.write_all(b"x").unwrap();
    assert_eq!(port.get(NOW), Err(Errno::TIME));
}

#[test]
fn a_file_that_is_replaced_again_and_again_is_told_of_each_time() {
    let port = Port::new(Closes::Checked).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let [path, other] = ["file", "other"].map(|name| folder.path().join(name));
    File::create(&path).unwrap();
    for number in 1..=100 {
        File::create(&other).unwrap();
        let status = rustix::fs::stat(&path).unwrap();
        let stamp = |seconds, nanoseconds| (seconds, nanoseconds as i64);
        let object = FileObject {
            path: &path,
            accessed: stamp(status.st_atime, status.st_atime_nsec),
            modified: stamp(status.st_mtime, status.st_mtime_nsec),
            changed: stamp(status.st_ctime, status.st_ctime_nsec),
        };
        port.associate_file(7, object, FileChanges::MODIFIED, number).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| fs::rename(&other, &path).unwrap());
            // Whether the thread is first or not.
            let event = port.get(None).unwrap();
            assert_eq!((event.source, event.user), (Source::File, number));
        });
        let _ = port.dissociate_file(7);
    }
}

#[test]
fn a_set_tells_of_what_is_open_while_threads_add_and_remove() {
    let set = PollSet::new().unwrap();
    let (out, _into) = filled();
    let entry = |fd, events| PollEntry { fd, events, revents: 0 };
    let poll = |_: &AtomicUsize, is_over: &AtomicBool| {
        let mut count = 0;
        while !is_over.load(Ordering::SeqCst) {
            let put = |entry: PollEntry| assert_eq!(entry.revents, PollFlags::IN.bits());
            count += set.poll(4, SOON, None, put).unwrap();
        }
        count
    };
    beside(poll, |_| {
        let copy = out.try_clone().unwrap();
        let fd = copy.as_raw_fd();
        set.write(&[entry(fd, PollFlags::IN.bits())]).unwrap();
        set.write(&[entry(fd, iotomy_ports::REMOVE)]).unwrap();
    });
    assert_eq!(set.poll(4, NOW, None, |_| ()), Ok(0));
}

#[test]
fn waits_in_many_threads_end_with_the_port_and_the_queue() {
    for _ in 0..50 {
        let port = Port::new(Closes::Checked).unwrap();
        let queue = Kqueue::new(Closes::Checked).unwrap();
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| assert_eq!(port.get(None), Err(Errno::BADFD)));
                scope.spawn(|| assert_eq!(queue.wait(1, None, |_| ()), Err(Errno::BADF)));
            }
            port.close();
            queue.close();
        });
    }
}
