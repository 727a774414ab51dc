//! A set of descriptors that is polled.

use std::io::{Read, Write, pipe};
use std::os::fd::AsRawFd;
use std::time::Duration;

use iotomy_ports::{PollEntry, PollSet, REMOVE};
use rustix::event::PollFlags;

const NOW: Option<Duration> = Some(Duration::ZERO);

#[test]
fn a_set_reports_the_level_until_a_descriptor_is_removed() {
    let set = PollSet::new().unwrap();
    let (mut out, mut into) = pipe().unwrap();
    let entry = |events| [PollEntry { fd: out.as_raw_fd(), events, revents: 0 }];
    let (add, remove) = (entry(PollFlags::IN.bits()), entry(REMOVE));
    let ask = || {
        let mut ready = Vec::new();
        assert_eq!(set.poll(5, NOW, None, |entry| ready.push(entry)), Ok(ready.len()));
        ready
    };
    set.write(&add).unwrap();
    assert!(ask().is_empty());
    into.write_all(b"ab").unwrap();
    for _ in 0..3 {
        assert_eq!(ask(), [PollEntry { revents: PollFlags::IN.bits(), ..add[0] }]);
    }
    out.read_exact(&mut [0; 2]).unwrap();
    assert!(ask().is_empty());
    into.write_all(b"a").unwrap();
    set.forget(add[0].fd);
    // The number is open: it is the file that it is now.
    assert_eq!(ask().len(), 1);
    set.write(&remove).unwrap();
    assert!(ask().is_empty());
    assert_eq!(set.wanted(add[0].fd), Ok(None));
}

#[test]
fn a_wait_ends_with_its_timeout_and_not_before() {
    let set = PollSet::new().unwrap();
    let timeout = Duration::from_millis(7);
    let start = std::time::Instant::now();
    assert_eq!(set.poll(5, Some(timeout), None, |_| ()), Ok(0));
    assert!(start.elapsed() >= timeout);
}

#[test]
fn what_there_is_no_room_for_is_reported_in_turn() {
    let file = std::fs::File::open("/proc/self/exe").unwrap();
    let wanted = |fd| PollEntry { fd, events: PollFlags::IN.bits(), revents: 0 };
    for (with_file, pipes, room) in
        [(false, 6, 1), (false, 7, 3), (true, 5, 2), (true, 6, 3), (true, 4, 5), (true, 4, 9)]
    {
        let set = PollSet::new().unwrap();
        let pipes: Vec<_> = (0..pipes).map(|_| pipe().unwrap()).collect();
        for (out, into) in &pipes {
            let mut into = into;
            into.write_all(b"a").unwrap();
            set.write(&[wanted(out.as_raw_fd())]).unwrap();
        }
        if with_file {
            // It is not in the kernel's set, and is reported first.
            set.write(&[wanted(file.as_raw_fd())]).unwrap();
        }
        let all = pipes.len() + usize::from(with_file);
        let mut reported = Vec::new();
        for _ in 0..pipes.len() {
            let mut ready = Vec::new();
            let count = set.poll(room, NOW, None, |entry| ready.push(entry.fd)).unwrap();
            assert_eq!(count, room.min(all), "{with_file} {all} {room}");
            ready.sort_unstable();
            ready.dedup();
            assert_eq!(ready.len(), count, "{with_file} {all} {room}: one is reported twice");
            reported.extend(ready);
        }
        let is_reported = |fd| reported.contains(&fd);
        assert!(pipes.iter().all(|(out, _)| is_reported(out.as_raw_fd())), "{all} {room}");
    }
}
