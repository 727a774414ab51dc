//! Calls of one thread.

use std::mem::MaybeUninit;

pub(crate) fn getppid(times: u64) {
    for _ in 0..times {
        // SAFETY: takes no arguments and cannot fail.
        unsafe { libc::syscall(libc::SYS_getppid) };
    }
}

pub(crate) fn errors() {
    let path = c"/no/such/file/anywhere";
    for _ in 0..23 {
        // SAFETY: the path is a C string.
        let opened = unsafe {
            libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), libc::O_RDONLY)
        };
        assert_eq!(opened, -1);
    }
    let mut byte = 0u8;
    for _ in 0..7 {
        assert_eq!(readv(-1, &mut byte), -1);
    }
}

/// Reads one byte by `readv(2)`.
pub(crate) fn readv(fd: i32, byte: &mut u8) -> i64 {
    let room = libc::iovec { iov_base: (&raw mut *byte).cast(), iov_len: 1 };
    // SAFETY: `room` describes one writable byte.
    unsafe { libc::syscall(libc::SYS_readv, fd, &raw const room, 1) }
}

pub(crate) fn int80(times: u64) {
    const GETPID: u32 = 20;
    for _ in 0..times {
        // SAFETY: getpid takes no arguments; the 32-bit entry may spoil r8 to r11.
        unsafe {
            std::arch::asm!("int 0x80", inlateout("eax") GETPID => _,
                out("r8") _, out("r9") _, out("r10") _, out("r11") _);
        }
    }
}

/// Writes to a pipe by the 32-bit call. The register of the 64-bit ABI's argument holds another
/// pipe, to detect observers that confuse the two ABIs.
pub(crate) fn int80_write(times: u64) {
    const WRITE: u32 = 4;
    let [reader, writer] = new_pipe();
    let [_, decoy] = new_pipe();
    let (access, map) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new page below 4 GiB that nothing else uses; its address is checked.
    let page =
        unsafe { libc::mmap(std::ptr::null_mut(), 4096, access, map | libc::MAP_32BIT, -1, 0) };
    assert_ne!(page, libc::MAP_FAILED);
    for _ in 0..times {
        // SAFETY: writes ten bytes of the page; rbx, which the compiler reserves, is restored, and
        // the 32-bit entry may clobber r8 to r11.
        unsafe {
            std::arch::asm!("xchg rbx, {fd}", "int 0x80", "xchg rbx, {fd}",
                fd = inout(reg) u64::from(writer.unsigned_abs()) => _,
                inlateout("eax") WRITE => _, in("rcx") page, in("rdx") 10,
                in("rdi") u64::from(decoy.unsigned_abs()),
                out("r8") _, out("r9") _, out("r10") _, out("r11") _);
        }
        // SAFETY: the page has room for ten bytes.
        assert_eq!(unsafe { libc::read(reader, page, 10) }, 10);
    }
}

/// Makes `times` calls of getppid, then as many that a seccomp filter refuses with EACCES.
pub(crate) fn refused(times: u64) {
    getppid(times);
    refuse_getppid();
    getppid(times);
}

/// Installs a seccomp filter that refuses getppid with EACCES.
pub(crate) fn refuse_getppid() {
    filter_getppid(libc::SECCOMP_RET_ERRNO | libc::EACCES as u32);
}

pub(crate) fn answered(times: u64) {
    filter_getppid(libc::SECCOMP_RET_ERRNO);
    getppid(times);
}

pub(crate) fn trapped(times: u64) {
    extern "C" fn go_on(_: i32) {}
    let handler: extern "C" fn(i32) = go_on;
    // SAFETY: the handler does nothing.
    assert_ne!(unsafe { libc::signal(libc::SIGSYS, handler as usize) }, libc::SIG_ERR);
    filter_getppid(libc::SECCOMP_RET_TRAP);
    getppid(times);
}

pub(crate) fn killed_by_seccomp() {
    filter_getppid(libc::SECCOMP_RET_KILL_PROCESS);
    getppid(1);
}

pub(crate) fn thread_killed_by_seccomp() {
    extern "C" fn die(_: *mut libc::c_void) -> *mut libc::c_void {
        filter_getppid(libc::SECCOMP_RET_KILL_THREAD);
        getppid(1);
        std::ptr::null_mut()
    }
    let mut thread = 0;
    let (usual, none) = (std::ptr::null(), std::ptr::null_mut());
    // SAFETY: room for the thread's id; the function takes no argument.
    assert_eq!(unsafe { libc::pthread_create(&raw mut thread, usual, die, none) }, 0);
    // SAFETY: a thread that has not been joined; the kernel wakes the waiting thread, however it
    // ended.
    assert_eq!(unsafe { libc::pthread_join(thread, std::ptr::null_mut()) }, 0);
}

pub(crate) fn odd_numbers(times: u64) {
    for _ in 0..times {
        for number in [500, 20_000, -1] {
            // SAFETY: there is no such call.
            assert_eq!(unsafe { libc::syscall(number) }, -1);
        }
    }
}

/// Calls by numbers beyond every table, also with the bit of x32, and by both entries; and by one that no call has.
pub(crate) fn unnamed_numbers(times: u64) {
    const X32_GETPID: i64 = 0x4000_0000 | 39;
    for _ in 0..times {
        for number in [500, 511, 999, 16_385, -5, X32_GETPID] {
            // SAFETY: there is no such call, or it is getpid.
            unsafe { libc::syscall(number) };
        }
        // SAFETY: there is no such call; the 32-bit entry may spoil r8 to r11.
        unsafe {
            std::arch::asm!("int 0x80", inlateout("eax") 999 => _,
                out("r8") _, out("r9") _, out("r10") _, out("r11") _);
        }
    }
}

/// Installs a seccomp filter that applies this action to getppid.
fn filter_getppid(action: u32) {
    install_filter(action, 0);
}

/// The same with these flags of `seccomp(2)`; returns the listener where that is one of them.
pub(crate) fn install_filter(action: u32, flags: u64) -> i32 {
    let statement = |code, k| libc::sock_filter { code, jt: 0, jf: 0, k };
    let mut filter = [
        // Loads the call's number; for getppid continues with the next statement, otherwise with
        // the one after it.
        statement(0x20, 0),
        libc::sock_filter { code: 0x15, jt: 0, jf: 1, k: libc::SYS_getppid as u32 },
        statement(0x06, action),
        statement(0x06, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: 4, filter: filter.as_mut_ptr() };
    // SAFETY: takes no pointers.
    assert_eq!(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }, 0);
    let mode = libc::SECCOMP_SET_MODE_FILTER;
    // SAFETY: the program and its four statements live until the call has returned.
    let set = unsafe { libc::syscall(libc::SYS_seccomp, mode, flags, &raw const program) };
    assert!(set >= 0);
    i32::try_from(set).expect("a descriptor")
}

pub(crate) fn new_pipe() -> [i32; 2] {
    let mut ends = [-1; 2];
    // SAFETY: `ends` is room for two descriptors.
    assert_eq!(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) }, 0);
    ends
}

pub(crate) fn pipe(times: u64, size: u64) {
    let [reader, writer] = new_pipe();
    let mut buffer = vec![7u8; usize::try_from(size).expect("a size of memory")];
    let whole = i64::try_from(size).expect("a size of memory");
    for _ in 0..times {
        // SAFETY: the buffer is readable.
        let sent = unsafe { libc::syscall(libc::SYS_write, writer, buffer.as_ptr(), buffer.len()) };
        // SAFETY: the buffer is writable.
        let got =
            unsafe { libc::syscall(libc::SYS_read, reader, buffer.as_mut_ptr(), buffer.len()) };
        assert_eq!((sent, got), (whole, whole));
    }
}

pub(crate) fn sleep(ms: u64) {
    let time = libc::timespec {
        tv_sec: i64::try_from(ms / 1000).expect("a time"),
        tv_nsec: i64::try_from(ms % 1000 * 1_000_000).expect("a time"),
    };
    let none = std::ptr::null_mut::<libc::timespec>();
    // SAFETY: `time` is readable; a null remainder is not written.
    unsafe { libc::syscall(libc::SYS_nanosleep, &raw const time, none) };
}

fn zero_device() -> i32 {
    // SAFETY: the path is a C string.
    let zero = unsafe { libc::open(c"/dev/zero".as_ptr(), libc::O_RDONLY) };
    assert!(zero >= 0);
    zero
}

pub(crate) fn woken(times: u64) {
    const MS: i64 = 1_000_000;
    let mut buffer = vec![1u8; 4 << 20];
    let zero = zero_device();
    for _ in 0..times {
        let mut at = clock(libc::CLOCK_MONOTONIC);
        at.tv_nsec = (at.tv_nsec / MS + 1) * MS;
        if at.tv_nsec == 1_000 * MS {
            (at.tv_sec, at.tv_nsec) = (at.tv_sec + 1, 0);
        }
        let none = std::ptr::null_mut::<libc::timespec>();
        let (monotonic, absolute) = (libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME);
        // SAFETY: `at` is readable; a null remainder is not written.
        unsafe {
            libc::syscall(libc::SYS_clock_nanosleep, monotonic, absolute, &raw const at, none)
        };
        // SAFETY: the buffer is writable.
        unsafe { libc::syscall(libc::SYS_read, zero, buffer.as_mut_ptr(), buffer.len()) };
        // SAFETY: the buffer is writable.
        unsafe { libc::syscall(libc::SYS_pread64, zero, buffer.as_mut_ptr(), buffer.len(), 0) };
    }
}

pub(crate) fn spin_read(ms: u64) {
    let mut buffer = vec![1u8; 16 << 20];
    let zero = zero_device();
    let end = on_cpu_ns() + ms * 1_000_000;
    while on_cpu_ns() < end {
        // SAFETY: the buffer is writable.
        unsafe { libc::syscall(libc::SYS_read, zero, buffer.as_mut_ptr(), buffer.len()) };
    }
}

fn on_cpu_ns() -> u64 {
    let now = clock(libc::CLOCK_THREAD_CPUTIME_ID);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

fn clock(id: libc::clockid_t) -> libc::timespec {
    let mut now = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: `now` is writable.
    unsafe { libc::clock_gettime(id, now.as_mut_ptr()) };
    // SAFETY: zeroed plain integers, written by the call.
    unsafe { now.assume_init() }
}
