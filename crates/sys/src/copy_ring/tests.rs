use super::*;
use iotomy_test_requirements::{Need, skip};
use std::io::{Read, Write};
use std::os::fd::AsFd;

#[test]
fn a_ring_dropped_with_a_read_under_way_comes_to_an_end() {
    let (out, mut into) = io::pipe().unwrap();
    let (_kept, other) = io::pipe().unwrap();
    let mut ring = match CopyRing::new(out.as_fd(), other.as_fd(), 2, 4096, Duration::MAX) {
        Ok(ring) => ring,
        Err((call, error)) => return skip(Need::IoUring, &format!("{call}: {error}")),
    };
    into.write_all(b"abc").unwrap();
    ring.read(0, 100, None);
    let completion = ring.wait().unwrap();
    assert_eq!((completion.slot, completion.half), (0, Half::Read));
    assert_eq!(completion.result.unwrap(), 3);
    assert_eq!(&ring.buffer(0)[..3], b"abc");
    ring.read(1, 100, None);
    drop(ring);
    drop(into);
    let mut rest = Vec::new();
    let mut out = out;
    out.read_to_end(&mut rest).unwrap();
    assert!(rest.is_empty());
}

#[test]
fn a_read_that_does_not_complete_is_taken_back_and_can_be_asked_for_again() {
    let (out, mut into) = io::pipe().unwrap();
    let (_kept, other) = io::pipe().unwrap();
    let patience = Duration::from_millis(1);
    let mut ring = match CopyRing::new(out.as_fd(), other.as_fd(), 2, 4096, patience) {
        Ok(ring) => ring,
        Err((call, error)) => return skip(Need::IoUring, &format!("{call}: {error}")),
    };
    for again in 0..3 {
        ring.read(0, 100, None);
        let completion = ring.wait().unwrap();
        assert_eq!((completion.slot, completion.half), (0, Half::Read));
        assert_eq!(completion.result.unwrap_err().raw_os_error(), Some(libc::ECANCELED));
        assert_eq!(ring.waits, patience * (2 << again), "more patience each time");
    }
    ring.read(0, 100, None);
    into.write_all(b"abc").unwrap();
    loop {
        match ring.wait().unwrap().result {
            Ok(got) => break assert_eq!(&ring.buffer(0)[..got], b"abc"),
            // Not at all unlikely on a machine that has something else to do.
            Err(_) => ring.read(0, 100, None),
        }
    }
    assert_eq!(ring.waits, patience);
}
