use iotomy_sys::syscalls::Abi;

use super::*;
use crate::Request;
use crate::Target;

fn everything() -> Request {
    let request = Request::new(Target::Machine);
    Request { files: true, paths: true, slowest: 2, rows: 64, ..request }
}

#[test]
fn images_beyond_the_room_there_is_are_lost_with_their_calls() {
    let mut tally = Tally::with_room(2, 0);
    let image = |pid| Process { pid, exec: "dd".into(), threads: 1, ..Process::default() };
    let first = tally.begin(image(1));
    let second = tally.begin_forked(image(2));
    let third = tally.begin_after(second, image(2));
    for image in [first, third] {
        tally.returned(image, READ, Ok((1, 1)), 1);
        tally.unfinished(image, EXIT_GROUP, 1);
        tally.add_thread(image);
    }
    assert_eq!(tally.process(third).exec, "?");
    let rows = tally.into_rows(&everything(), None);
    assert_eq!(rows.processes.iter().map(|process| process.pid).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(rows.calls.iter().map(|call| call.calls).sum::<u64>(), 1);
    assert_eq!(rows.lost_events, 3, "the image and its two calls");
}

fn tally() -> (Tally, ImageId) {
    let mut tally = Tally::with_room(64, 0);
    let process = Process { pid: 5, exec: "dd".into(), threads: 1, ..Process::default() };
    let image = tally.begin(process);
    (tally, image)
}

const READ: CallNumber = (Abi::X86_64, 0);
const EXIT_GROUP: CallNumber = (Abi::X86_64, 231);

#[test]
fn a_call_that_returned_is_in_every_column_and_distribution() {
    let (mut tally, image) = tally();
    tally.returned(image, READ, Ok((8192, 8192)), 1000);
    tally.returned(image, READ, Ok((0, 0)), 10);
    tally.returned(image, READ, Err(9), 30);
    tally.returned(image, READ, Err(4000), 30);
    let rows = tally.into_rows(&everything(), None);
    let call = &rows.calls[0];
    assert_eq!((call.pid, &*call.exec, &*call.syscall), (5, "dd", "read"));
    assert_eq!((call.calls, call.errors, call.bytes, call.in_flight), (4, 2, 8192, 0));
    assert_eq!((call.wall_ns, call.max_ns, call.wall_log2.total()), (1070, 1000, 4));
    assert_eq!((call.return_log2.zero, call.return_log2.buckets[13]), (1, 1));
    assert_eq!(call.error_kinds["EBADF"], 1);
    assert_eq!(call.error_kinds["errno_4000"], 1);
}

#[test]
fn a_call_that_did_not_return_is_in_flight_and_in_no_distribution() {
    let (mut tally, image) = tally();
    tally.unfinished(image, READ, 500);
    tally.unfinished(image, EXIT_GROUP, 1);
    tally.headless();
    let rows = tally.into_rows(&everything(), None);
    assert_eq!(rows.incomplete_calls, 2, "exit_group is not incomplete");
    for call in &rows.calls {
        assert_eq!((call.calls, call.in_flight, call.wall_log2.total()), (0, 1, 0));
    }
}

#[test]
fn a_snapshot_tells_the_time_of_calls_that_did_not_return_apart() {
    let (mut tally, image) = tally();
    tally.returned(image, READ, Ok((1, 1)), 1000);
    tally.unfinished(image, READ, 50_000);
    let snapshot = tally.snapshot(&|_| true);
    for row in [&snapshot.calls[0], &snapshot.images[0].calls[0]] {
        assert_eq!((row.wall_ns, row.open_ns, row.max_ns), (51_000, Some(50_000), 50_000));
        let ended = row.ended();
        assert_eq!((ended.calls, ended.wall_ns, ended.max_ns), (1, 1000, 1000));
    }
}

#[test]
fn only_calls_asked_for_are_reported_and_the_longest_come_first() {
    let (mut tally, image) = tally();
    tally.returned(image, READ, Ok((1, 1)), 1);
    tally.returned(image, (Abi::X86_64, 1), Ok((1, 1)), 5);
    tally.returned(image, (Abi::I386, 20), Ok((1, 1)), 3);
    tally.returned(image, (Abi::X86_64, 39), Ok((1, 1)), 9);
    let mut request = everything();
    request.calls = Some(["read", "write", "getpid"].map(String::from).into());
    let names = |rows: Rows| rows.calls.into_iter().map(|c| c.syscall).collect::<Vec<_>>();
    assert_eq!(names(tally.into_rows(&request, None)), ["getpid", "write", "getpid(i386)", "read"]);
}

#[test]
fn files_beyond_the_room_there_is_are_lost_as_often_as_they_are_used() {
    let mut tally = Tally::with_room(2, 0);
    let image = tally.begin(Process { pid: 5, ..Process::default() });
    let file = |name: &str| FileRef { kind: FileKind::File, path: name.into() };
    for name in ["/a", "/b", "/c", "/d"] {
        if tally.is_new(&file(name)) {
            tally.note_file(file(name), FileUse { size_bytes: Some(7), ..FileUse::default() });
        }
        tally.moved(image, file(name), Direction::Read, 10);
        tally.moved(image, file(name), Direction::Read, 5);
    }
    assert!(tally.is_met(&file("/b")) && !tally.is_met(&file("/c")) && !tally.is_new(&file("/c")));
    let rows = tally.into_rows(&everything(), None);
    let files: Vec<_> = rows.files.iter().map(|row| (&*row.path, row.read_bytes)).collect();
    assert_eq!((&*files, rows.lost_files), (&[("/a", 15), ("/b", 15)][..], 4));
}

#[test]
fn files_are_counted_by_what_they_are() {
    let (mut tally, image) = tally();
    let zero = FileRef { kind: FileKind::Char, path: "/dev/zero".into() };
    tally.moved(image, zero.clone(), Direction::Read, 10);
    tally.moved(image, zero.clone(), Direction::Read, 5);
    tally.moved(image, zero, Direction::Write, 0);
    let file = &tally.into_rows(&everything(), None).files[0];
    assert_eq!((file.read_calls, file.read_bytes, file.write_calls), (2, 15, 1));
}
