//! What the filters of a queue tell of descriptors, timers and the program's own events.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write, pipe};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

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

fn put(queue: &Kqueue, change: Kevent) {
    assert_eq!(queue.kevent(&[change], 0, None, |_| ()), Ok(0));
}

fn add(queue: &Kqueue, fd: &impl AsRawFd, filter: i16) {
    put(queue, change(of(fd), filter, flag::ADD));
}

fn fails(queue: &Kqueue, change: Kevent, error: Errno) {
    assert_eq!(queue.kevent(&[change], 0, None, |_| ()), Err(error));
}

fn take(queue: &Kqueue, timeout: Option<Duration>) -> Vec<Kevent> {
    let mut events = Vec::new();
    let got = queue.kevent(&[], 8, timeout, |event| events.push(event));
    assert_eq!(got, Ok(events.len()));
    events
}

/// The one event that there is, which may take a moment.
fn only(queue: &Kqueue) -> Kevent {
    let events = take(queue, None);
    assert_eq!(events.len(), 1, "{events:?}");
    events[0]
}

#[test]
fn a_listener_tells_of_the_connections_that_wait() {
    let queue = queue();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    add(&queue, &listener, filter::READ);
    assert_eq!(take(&queue, NOW), []);
    let address = listener.local_addr().unwrap();
    let clients = [TcpStream::connect(address).unwrap(), TcpStream::connect(address).unwrap()];
    // A connect returns before the listener has the connection in its queue.
    while only(&queue).data != 2 {}
    listener.accept().unwrap();
    assert_eq!(only(&queue).data, 1);
    listener.accept().unwrap();
    assert_eq!(take(&queue, NOW), []);
    drop(clients);
}

#[test]
fn a_socket_at_its_end_is_eof_and_may_have_data() {
    let queue = queue();
    let (mut a, mut b) = UnixStream::pair().unwrap();
    add(&queue, &a, filter::READ);
    b.write_all(b"abc").unwrap();
    let event = only(&queue);
    assert_eq!((event.data, event.flags & flag::EOF), (3, 0));
    drop(b);
    let event = only(&queue);
    assert_eq!((event.data, event.flags & flag::EOF), (3, flag::EOF));
    a.read_exact(&mut [0; 3]).unwrap();
    let event = only(&queue);
    assert_eq!((event.data, event.flags & flag::EOF), (0, flag::EOF));
}

#[test]
fn a_datagram_without_data_is_an_event() {
    let queue = queue();
    let (a, b) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    add(&queue, &a, filter::READ);
    b.send_to(b"", a.local_addr().unwrap()).unwrap();
    assert_eq!(only(&queue).data, 0);
    a.recv(&mut [0; 8]).unwrap();
    b.send_to(b"12345", a.local_addr().unwrap()).unwrap();
    assert_eq!(only(&queue).data, 5);
}

#[test]
fn a_pipe_without_writers_is_eof_and_one_without_readers_too() {
    let queue = queue();
    let (out, into) = pipe().unwrap();
    add(&queue, &out, filter::READ);
    drop(into);
    let event = only(&queue);
    assert_eq!((event.data, event.flags & flag::EOF), (0, flag::EOF));
    put(&queue, change(of(&out), filter::READ, flag::DELETE));
    let (out, into) = pipe().unwrap();
    add(&queue, &into, filter::WRITE);
    assert_eq!(only(&queue).flags & flag::EOF, 0);
    drop(out);
    assert_eq!(only(&queue).flags & flag::EOF, flag::EOF);
}

#[test]
fn room_in_a_pipe_is_told_and_awaited() {
    let queue = queue();
    let (mut out, mut into) = pipe().unwrap();
    let size = rustix::pipe::fcntl_getpipe_size(&into).unwrap();
    add(&queue, &into, filter::WRITE);
    assert_eq!(only(&queue).data, size as i64);
    into.write_all(&vec![0; size]).unwrap();
    assert_eq!(take(&queue, NOW), []);
    out.read_exact(&mut vec![0; size / 2]).unwrap();
    assert_eq!(only(&queue).data, (size / 2) as i64);
    // A limit is awaited even where the kernel tells nothing of it.
    let low = Kevent { fflags: note::LOWAT, data: size as i64, ..Kevent::default() };
    put(&queue, Kevent { ..change(of(&into), filter::WRITE, flag::DISABLE) });
    put(&queue, Kevent { ident: of(&into), filter: filter::WRITE, flags: flag::ADD, ..low });
    put(&queue, Kevent { ident: of(&into), filter: filter::WRITE, flags: flag::ENABLE, ..low });
    assert_eq!(take(&queue, NOW), []);
    std::thread::scope(|scope| {
        scope.spawn(|| out.read_exact(&mut vec![0; size / 2]).unwrap());
        assert_eq!(only(&queue).data, size as i64);
    });
}

#[test]
fn a_limit_of_reading_holds_back_less_but_no_end() {
    let queue = queue();
    let (a, mut b) = UnixStream::pair().unwrap();
    let low = Kevent { fflags: note::LOWAT, data: 5, ..change(of(&a), filter::READ, flag::ADD) };
    put(&queue, low);
    b.write_all(b"1234").unwrap();
    assert_eq!(take(&queue, NOW), []);
    b.write_all(b"5").unwrap();
    assert_eq!(only(&queue).data, 5);
    (&a).read_exact(&mut [0; 3]).unwrap();
    assert_eq!(take(&queue, NOW), []);
    drop(b);
    let event = only(&queue);
    assert_eq!((event.data, event.flags & flag::EOF), (2, flag::EOF));
}

#[test]
fn a_regular_file_tells_how_far_its_end_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let mut writer = File::create(&path).unwrap();
    writer.write_all(b"12345").unwrap();
    let mut file = File::open(&path).unwrap();
    let queue = queue();
    add(&queue, &file, filter::READ);
    assert_eq!(only(&queue).data, 5);
    file.seek(SeekFrom::Start(2)).unwrap();
    assert_eq!(only(&queue).data, 3);
    file.seek(SeekFrom::Start(7)).unwrap();
    assert_eq!(only(&queue).data, -2);
    file.seek(SeekFrom::End(0)).unwrap();
    assert_eq!(take(&queue, NOW), []);
    std::thread::scope(|scope| {
        scope.spawn(|| writer.write_all(b"678").unwrap());
        assert!((1..=3).contains(&only(&queue).data));
    });
    file.seek(SeekFrom::End(0)).unwrap();
    put(&queue, Kevent { fflags: note::FILE_POLL, ..change(of(&file), filter::READ, flag::ADD) });
    assert_eq!(only(&queue).data, 0);
    put(&queue, change(of(&file), filter::READ, flag::DELETE));
    add(&queue, &writer, filter::WRITE);
    assert_eq!(only(&queue).filter, filter::WRITE);
}

fn timer(flags: u16, fflags: u32, data: i64) -> Kevent {
    Kevent { fflags, data, ..change(7, filter::TIMER, flag::ADD | flags) }
}

#[test]
fn a_timer_expires_in_each_unit_and_not_before() {
    let units =
        [(0, 2, 2_000_000), (note::MSECONDS, 3, 3_000_000), (note::USECONDS, 1500, 1_500_000)];
    for (unit, data, ns) in units.into_iter().chain([(note::NSECONDS, 777_777, 777_777)]) {
        let queue = queue();
        let start = Instant::now();
        put(&queue, timer(flag::ONESHOT, unit, data));
        let event = only(&queue);
        assert!(start.elapsed() >= Duration::from_nanos(ns), "unit {unit}");
        assert_eq!((event.ident, event.data), (7, 1));
        fails(&queue, change(7, filter::TIMER, flag::DELETE), Errno::NOENT);
    }
    let queue = queue();
    let start = Instant::now();
    put(&queue, timer(flag::ONESHOT, note::SECONDS, 1));
    assert_eq!(only(&queue).data, 1);
    assert!(start.elapsed() >= Duration::from_secs(1));
}

#[test]
fn a_timer_is_periodic_and_counts_what_nobody_took() {
    let queue = queue();
    let start = Instant::now();
    put(&queue, timer(0, note::MSECONDS, 2));
    let mut count = 0;
    while count < 5 {
        count += only(&queue).data;
    }
    assert!(start.elapsed() >= Duration::from_millis(10));
    std::thread::sleep(Duration::from_millis(7));
    assert!(only(&queue).data >= 3);
    // Added again, it starts anew, and what has expired is void.
    std::thread::sleep(Duration::from_millis(3));
    put(&queue, timer(0, note::SECONDS, 3600));
    assert_eq!(take(&queue, NOW), []);
    put(&queue, change(7, filter::TIMER, flag::DELETE));
    fails(&queue, change(7, filter::TIMER, flag::DELETE), Errno::NOENT);
}

#[test]
fn an_absolute_timer_expires_once_at_its_moment() {
    let queue = queue();
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let moment = now() + Duration::from_millis(5);
    put(&queue, timer(0, note::ABSTIME | note::NSECONDS, moment.as_nanos() as i64));
    assert_eq!(only(&queue).data, 1);
    assert!(now() >= moment);
    // It is a level, as it has no CLEAR of itself.
    assert_eq!(only(&queue).data, 1);
    put(&queue, timer(0, note::ABSTIME | note::SECONDS, 1));
    assert_eq!(only(&queue).data, 1);
    put(&queue, change(7, filter::TIMER, flag::DELETE));
    put(&queue, timer(flag::ONESHOT, 0, 0));
    assert_eq!(only(&queue).data, 1);
}

#[test]
fn a_disabled_timer_counts_until_it_is_enabled() {
    let queue = queue();
    put(&queue, timer(flag::DISABLE, note::MSECONDS, 1));
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(take(&queue, NOW), []);
    put(&queue, change(7, filter::TIMER, flag::ENABLE));
    assert!(only(&queue).data >= 4);
}

#[test]
fn a_timer_that_cannot_be_is_invalid() {
    let queue = queue();
    fails(&queue, timer(0, 0, -1), Errno::INVAL);
    fails(&queue, timer(0, note::SECONDS | note::MSECONDS, 1), Errno::INVAL);
    fails(&queue, timer(0, 0x100, 1), Errno::INVAL);
    fails(&queue, change(7, filter::TIMER, flag::ENABLE), Errno::NOENT);
    put(&queue, timer(0, note::SECONDS, i64::MAX));
    // A mistake leaves the timer as it is.
    fails(&queue, timer(0, 0, -1), Errno::INVAL);
    assert_eq!(take(&queue, NOW), []);
}

fn user(flags: u16, fflags: u32) -> Kevent {
    Kevent { fflags, ..change(3, filter::USER, flags) }
}

#[test]
fn flags_of_the_program_are_combined_and_returned() {
    let queue = queue();
    put(&queue, user(flag::ADD, 0xff));
    assert_eq!(take(&queue, NOW), []);
    put(&queue, Kevent { data: 42, ..user(0, note::TRIGGER) });
    let event = only(&queue);
    assert_eq!((event.fflags, event.data), (0xff, 42));
    let changes = [
        (note::FF_AND | 0x3c, 0x3c),
        (note::FF_OR | 0x100, 0x13c),
        (note::FF_NOP | 0x1, 0x13c),
        (note::FF_COPY | 0x00ab_cdef, 0x00ab_cdef),
    ];
    for (fflags, expected) in changes {
        put(&queue, user(0, fflags));
        assert_eq!(only(&queue).fflags, expected);
    }
    // A change with CLEAR takes the trigger back.
    put(&queue, user(flag::CLEAR, 0));
    assert_eq!(take(&queue, NOW), []);
}

#[test]
fn a_trigger_wakes_a_thread_that_waits() {
    let queue = queue();
    put(&queue, user(flag::ADD | flag::CLEAR, 0));
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| only(&queue));
        put(&queue, user(0, note::TRIGGER));
        assert_eq!(waits.join().unwrap().ident, 3);
    });
    assert_eq!(take(&queue, NOW), []);
}

#[test]
fn a_trigger_of_a_disabled_note_is_kept() {
    let queue = queue();
    put(&queue, user(flag::ADD | flag::CLEAR | flag::DISABLE, 0));
    put(&queue, user(0, note::TRIGGER));
    assert_eq!(take(&queue, NOW), []);
    put(&queue, user(flag::ENABLE, 0));
    assert_eq!(only(&queue).ident, 3);
    assert_eq!(take(&queue, NOW), []);
}
