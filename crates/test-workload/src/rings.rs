//! Requests of io_uring, by each way that they can take.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};

use io_uring::{IoUring, opcode, squeue, types};

use crate::many::{fork, wait};
use crate::ring::{Ring, buffer};
use crate::ring_connections;

fn nop() -> squeue::Entry {
    opcode::Nop::new().build()
}

fn read(from: &OwnedFd, length: u32) -> squeue::Entry {
    opcode::Read::new(types::Fd(from.as_raw_fd()), buffer().as_mut_ptr(), length).build()
}

fn pipe() -> (OwnedFd, OwnedFd) {
    rustix::pipe::pipe().expect("a pipe")
}

/// A file of a page, which is in the page cache.
fn file() -> OwnedFd {
    let name = std::env::temp_dir();
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::TMPFILE;
    let file = rustix::fs::open(name, flags, rustix::fs::Mode::RUSR).expect("a file");
    assert_eq!(rustix::io::pwrite(&file, buffer(), 0), Ok(4096));
    file
}

pub(crate) fn run(way: &str, count: u64) {
    match way {
        "inline" => Ring::new().each(count, &read(&file(), 100)),
        "batch" => {
            let mut ring = Ring::new();
            (0..count).for_each(|_| ring.push(&nop()));
            ring.reap(count);
        }
        "fixed" => fixed(count),
        "polled" => polled(count),
        "async" => Ring::new().each(count, &read(&file(), 100).flags(squeue::Flags::ASYNC)),
        "sqpoll" => {
            let ring = IoUring::builder().setup_sqpoll(1000).build(64);
            Ring::of(ring).each(count, &nop());
        }
        "linked" => linked(count),
        "cancelled" => cancelled(count),
        "accept" => accept(count),
        "poll" => poll(count),
        "silent" => silent(count),
        "overflow" => overflow(count),
        "overflow-nops" => overflow_nops(count),
        "refused" => refused(count),
        "opens" => opens(count),
        "connects" => ring_connections::run(count, squeue::Flags::empty(), false),
        "connects-async" => ring_connections::run(count, squeue::Flags::ASYNC, false),
        "connects-multishot" => ring_connections::run(count, squeue::Flags::empty(), true),
        "connects-refused" => ring_connections::refused(count),
        "in-flight" => in_flight(count),
        "on-demand" => on_demand(count),
        "unbounded" => unbounded(count),
        "bounded" => {
            Ring::new().each(count, &opcode::Fsync::new(types::Fd(file().into_raw_fd())).build())
        }
        "threads" => threads(count),
        "forked" => forked(count),
        "processes" => processes(count),
        _ => panic!("no such way: {way}"),
    }
}

/// Reads by workers for at least 300 ms of their CPU time, which is written to a file in ns as the scheduler has it.
pub(crate) fn workers(to: &str) {
    let mut ring = Ring::new();
    let zeroes =
        rustix::fs::open("/dev/zero", rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty());
    let zeroes = zeroes.expect("it is there");
    let room = vec![0u8; 16 << 20].leak();
    let request = opcode::Read::new(types::Fd(zeroes.as_raw_fd()), room.as_mut_ptr(), 16 << 20);
    let request = request.build().flags(squeue::Flags::ASYNC);
    let mut ran = 0;
    while ran < 300_000_000 {
        ring.each(1, &request);
        ran = workers_ns();
    }
    std::fs::write(to, ran.to_string()).expect("the file can be written");
}

/// What the workers of this process have run.
fn workers_ns() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").expect("there is one").flatten();
    let is_worker = |task: &std::path::PathBuf| {
        std::fs::read_to_string(task.join("comm")).is_ok_and(|comm| comm.starts_with("iou-wrk"))
    };
    let ran = |task: std::path::PathBuf| {
        let stat = std::fs::read_to_string(task.join("schedstat")).ok()?;
        stat.split(' ').next()?.parse::<u64>().ok()
    };
    tasks.map(|task| task.path()).filter(is_worker).filter_map(ran).sum()
}

/// Writes and reads of a registered file and buffer.
fn fixed(count: u64) {
    let file = file();
    let mut ring = Ring::new();
    let buffer = buffer();
    let vector = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // SAFETY: the buffer is never freed.
    unsafe { ring.ring.submitter().register_buffers(&[vector]) }.expect("they are registered");
    ring.ring.submitter().register_files(&[file.as_raw_fd()]).expect("they are registered");
    let at = types::Fixed(0);
    ring.each(count, &opcode::WriteFixed::new(at, buffer.as_ptr(), 200, 0).build());
    ring.each(count, &opcode::ReadFixed::new(at, buffer.as_mut_ptr(), 100, 0).build());
}

/// Reads of pipes that have nothing in them until all of them wait.
fn polled(count: u64) {
    let mut ring = Ring::new();
    let pipes: Vec<_> = (0..count).map(|_| pipe()).collect();
    for (reader, _) in &pipes {
        ring.push(&read(reader, 100));
    }
    ring.submit();
    for (_, writer) in &pipes {
        rustix::io::write(writer, &buffer()[..100]).expect("room in the pipe");
    }
    ring.reap(count);
}

/// A read that fails, and one that is linked to it.
fn linked(count: u64) {
    let mut ring = Ring::new();
    let bad = opcode::Read::new(types::Fd(-1), buffer().as_mut_ptr(), 100).build();
    for at in 1..=count {
        ring.push(&bad.clone().flags(squeue::Flags::IO_LINK));
        ring.push(&nop());
        ring.reap(2 * at);
    }
}

/// Reads that wait, each with its cancellation.
fn cancelled(count: u64) {
    let mut ring = Ring::new();
    let (reader, _writer) = pipe();
    for at in 1..=count {
        ring.push(&read(&reader, 100).user_data(at));
        ring.submit();
        ring.push(&opcode::AsyncCancel::new(at).build());
        ring.reap(2 * at);
    }
}

/// One request that accepts many connections.
fn accept(count: u64) {
    let mut ring = Ring::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    ring.push(&opcode::AcceptMulti::new(types::Fd(listener.as_raw_fd())).build().user_data(99));
    ring.submit();
    for at in 1..=count {
        let _client = TcpStream::connect(address).expect("it listens");
        let accepted = ring.reap(at);
        // SAFETY: the request has just made it.
        drop(unsafe { OwnedFd::from_raw_fd(accepted) });
    }
    ring.push(&opcode::AsyncCancel::new(99).build());
    ring.reap(count + 2);
}

/// One request that waits for a pipe many times.
fn poll(count: u64) {
    let mut ring = Ring::new();
    let (reader, writer) = pipe();
    let request = opcode::PollAdd::new(types::Fd(reader.as_raw_fd()), libc::POLLIN as u32);
    ring.push(&request.multi(true).build().user_data(98));
    ring.submit();
    let mut writer = std::fs::File::from(writer);
    for at in 1..=count {
        writer.write_all(b"x").expect("room in the pipe");
        ring.reap(at);
        rustix::io::read(&reader, buffer()).expect("a byte");
    }
    ring.push(&opcode::AsyncCancel::new(98).build());
    ring.reap(count + 2);
}

/// Requests that have no completion, since they succeed; each ends before the next is submitted.
fn silent(count: u64) {
    let mut ring = Ring::new();
    for _ in 0..count {
        ring.push(&nop().flags(squeue::Flags::SKIP_SUCCESS));
        ring.submit();
    }
}

/// More completions than the queue has room for.
fn overflow(count: u64) {
    let mut ring = Ring::of(IoUring::builder().setup_cqsize(4).build(4));
    let file = file();
    let request = read(&file, 100);
    for at in 0..count {
        ring.push(&request.clone().user_data(at));
        ring.submit();
    }
    ring.reap(count);
}

/// Nops whose completions found the queue full and are not reaped, and then reads of the same names that wait when the
/// program ends.
fn overflow_nops(count: u64) {
    let mut ring = Ring::of(IoUring::builder().setup_cqsize(4).build(4));
    for at in 0..count {
        ring.push(&nop().user_data(at));
        ring.submit();
    }
    let (reader, writer) = pipe();
    for at in 0..count {
        ring.push(&read(&reader, 100).user_data(at));
        ring.submit();
    }
    std::mem::forget((ring, reader, writer));
}

/// Opens of `/dev/null`, and of a name that is nowhere in `/dev`.
fn opens(count: u64) {
    let mut ring = Ring::new();
    let directory = rustix::fs::open("/dev", rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty());
    let directory = types::Fd(directory.expect("it is there").into_raw_fd());
    let open = |at, name: &'static std::ffi::CStr| opcode::OpenAt::new(at, name.as_ptr()).build();
    ring.each(count, &open(types::Fd(rustix::fs::CWD.as_raw_fd()), c"/dev/null"));
    ring.each(2 * count, &open(directory, c"nowhere"));
}

/// Requests that are refused when they are submitted.
fn refused(count: u64) {
    let mut ring = Ring::new();
    // A request of that kind takes no file.
    let request = opcode::Timeout::new(std::ptr::null()).build();
    ring.each(count, &request);
}

/// Requests that wait when the program ends.
fn in_flight(count: u64) {
    let mut ring = Ring::new();
    let (reader, writer) = pipe();
    (0..count).for_each(|_| ring.push(&read(&reader, 100)));
    ring.submit();
    std::mem::forget((ring, reader, writer));
}

/// Prints "ready" and its process id while as many reads of a pipe wait, goes on when a byte comes on stdin: the reads
/// end, and as many requests are made that do nothing.
fn on_demand(count: u64) {
    let mut ring = Ring::new();
    let (reader, writer) = pipe();
    (0..count).for_each(|_| ring.push(&read(&reader, 100)));
    ring.submit();
    println!("ready {}", std::process::id());
    let mut byte = [0];
    std::io::Read::read_exact(&mut std::io::stdin(), &mut byte).expect("a byte");
    for _ in 0..count {
        rustix::io::write(&writer, &buffer()[..100]).expect("room in the pipe");
    }
    ring.reap(count);
    ring.each(count, &nop());
}

/// Reads of a pipe by workers, which may wait for ever.
fn unbounded(count: u64) {
    let mut ring = Ring::new();
    let (reader, writer) = pipe();
    for _ in 0..count {
        rustix::io::write(&writer, &buffer()[..100]).expect("room in the pipe");
    }
    ring.each(count, &read(&reader, 100).flags(squeue::Flags::ASYNC));
}

/// Two threads, each with a ring of its own.
fn threads(count: u64) {
    let work = move || Ring::new().each(count, &nop());
    let both = [work, work].map(std::thread::spawn);
    both.into_iter().for_each(|thread| thread.join().expect("it does not panic"));
}

/// 80 children after one another, each with a ring and a file of its own.
fn processes(count: u64) {
    for _ in 0..80 {
        wait(fork(|| Ring::new().each(count, &read(&file(), 100))));
    }
}

/// A child uses the ring that it has from its parent.
fn forked(count: u64) {
    let mut ring = Ring::new();
    ring.each(count, &nop());
    let mut of_child = ring;
    wait(fork(|| of_child.each(2 * count, &nop())));
}
