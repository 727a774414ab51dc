//! Workloads for the tests of descriptors: which file was used, how much of it was mapped, how much
//! was requested.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::{many, raw};

/// Opens and closes one of each in turn, so that the kernel reuses the memory of the first for the
/// second.
pub(crate) fn anonymous(times: u64) {
    let one = 1u64;
    let mut expirations = 0u64;
    for _ in 0..times {
        // SAFETY: the arguments are numbers.
        let event = unsafe { libc::syscall(libc::SYS_eventfd2, 0, libc::EFD_NONBLOCK) };
        // SAFETY: 8 bytes are readable.
        let sent = unsafe { libc::syscall(libc::SYS_write, event, &raw const one, 8) };
        // SAFETY: nothing else uses the descriptor.
        unsafe { libc::syscall(libc::SYS_close, event) };
        // SAFETY: the arguments are numbers.
        let timer = unsafe {
            libc::syscall(libc::SYS_timerfd_create, libc::CLOCK_MONOTONIC, libc::TFD_NONBLOCK)
        };
        // SAFETY: 8 bytes are writable.
        let got = unsafe { libc::syscall(libc::SYS_read, timer, &raw mut expirations, 8) };
        // SAFETY: nothing else uses the descriptor.
        unsafe { libc::syscall(libc::SYS_close, timer) };
        assert_eq!((sent, got), (8, -1));
    }
}

pub(crate) fn maps(times: u64) {
    let own = File::open("/proc/self/exe").expect("its own program");
    for _ in 0..times {
        for kind in [libc::MAP_PRIVATE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS] {
            let none = std::ptr::null_mut::<u8>();
            // SAFETY: a new mapping at an address that the kernel chooses.
            let at = unsafe {
                libc::syscall(
                    libc::SYS_mmap,
                    none,
                    65536,
                    libc::PROT_READ,
                    kind,
                    own.as_raw_fd(),
                    0,
                )
            };
            assert!(at > 0);
            // SAFETY: the mapping was created above, and nothing refers to it.
            unsafe { libc::syscall(libc::SYS_munmap, at, 65536) };
        }
    }
}

pub(crate) fn refused_after_a_spin(times: u64, file: &str) {
    let file = File::open(file).expect("a file of a byte");
    let none = std::ptr::null_mut();
    // SAFETY: a new mapping at an address that the kernel chooses.
    let at = unsafe { libc::mmap(none, 1, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    assert_ne!(at, libc::MAP_FAILED);
    // SAFETY: a readable byte that stays mapped; other processes may write to it at any time.
    let go = unsafe { AtomicU8::from_ptr(at.cast()) };
    raw::refuse_getppid();
    many::ready();
    while go.load(Ordering::Relaxed) == 0 {
        std::hint::spin_loop();
    }
    // SAFETY: takes no arguments.
    unsafe { libc::syscall(libc::SYS_sched_yield) };
    raw::getppid(times);
}

pub(crate) fn touches(path: &str) {
    let file = File::open(path).expect("a file");
    let length = usize::try_from(file.metadata().expect("a file").len()).expect("a size of memory");
    // SAFETY: takes no pointers. A failure needs no handling.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    let none = std::ptr::null_mut();
    let (access, map) = (libc::PROT_READ, libc::MAP_PRIVATE);
    // SAFETY: a new mapping at an address that the kernel chooses.
    let at = unsafe { libc::mmap(none, length, access, map, file.as_raw_fd(), 0) };
    assert_ne!(at, libc::MAP_FAILED);
    // SAFETY: the mapping was created above.
    assert_eq!(unsafe { libc::madvise(at, length, libc::MADV_RANDOM) }, 0);
    for page in (0..length).step_by(4096) {
        // SAFETY: `page` is below the length, so the address is inside the mapping.
        let place = unsafe { at.cast::<u8>().add(page) };
        // SAFETY: a byte of the mapping, which nothing writes.
        std::hint::black_box(unsafe { place.read_volatile() });
    }
}

pub(crate) fn polls(times: u64) {
    let mut ends = [[0; 2]; 3];
    for pipe in &mut ends {
        // SAFETY: there is room for two descriptors.
        assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
    }
    // Two writable ends, and three readable ends without data.
    let asked = [ends[0][1], ends[1][1], ends[0][0], ends[1][0], ends[2][0]];
    let mut asked = asked.map(|fd| libc::pollfd {
        fd,
        events: if fd == ends[0][1] || fd == ends[1][1] { libc::POLLOUT } else { libc::POLLIN },
        revents: 0,
    });
    for _ in 0..times {
        // SAFETY: five entries are readable and writable.
        let ready = unsafe { libc::syscall(libc::SYS_poll, asked.as_mut_ptr(), asked.len(), 0) };
        assert_eq!(ready, 2);
    }
}

/// Runs the code in two files in turn, each mapped in place of the other.
pub(crate) fn swaps(times: u64, paths: &[String]) {
    const PAGE: usize = 4096;
    let files: Vec<File> = paths.iter().map(|path| File::open(path).expect("a file")).collect();
    let mut place: *mut libc::c_void = std::ptr::null_mut();
    for file in (0..times).flat_map(|_| &files) {
        let access = libc::PROT_READ | libc::PROT_EXEC;
        let fixed = if place.is_null() { 0 } else { libc::MAP_FIXED };
        let kind = libc::MAP_PRIVATE | fixed;
        // SAFETY: a new mapping, at the address of an earlier one that is no longer used.
        place = unsafe { libc::mmap(place, PAGE, access, kind, file.as_raw_fd(), 0) };
        assert_ne!(place, libc::MAP_FAILED);
        // SAFETY: the test has put a function of this type there, which changes no memory.
        let code: extern "C" fn() = unsafe { std::mem::transmute(place) };
        code();
    }
}
