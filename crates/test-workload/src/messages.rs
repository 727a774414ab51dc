//! Messages through a pair of datagram sockets: several by one call, looked at without being taken, and longer than the
//! room for them.

const SIZES: [usize; 3] = [100, 200, 300];
const LONG: usize = 1000;
const SHORT: [usize; 2] = [4, 6];

fn pair() -> [i32; 2] {
    let mut ends = [-1; 2];
    // SAFETY: `ends` is room for two descriptors.
    let made = unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_DGRAM, 0, ends.as_mut_ptr()) };
    assert_eq!(made, 0);
    ends
}

fn header(parts: &mut [libc::iovec]) -> libc::msghdr {
    // SAFETY: all zeroes is a header without anything.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    (header.msg_iov, header.msg_iovlen) = (parts.as_mut_ptr(), parts.len());
    header
}

fn parts(buffer: &mut [u8], sizes: &[usize]) -> Vec<libc::iovec> {
    let iov_base = buffer.as_mut_ptr().cast();
    sizes.iter().map(|size| libc::iovec { iov_base, iov_len: *size }).collect()
}

/// So many calls of sendmmsg and of recvmmsg, each of three messages with 600 bytes in all.
pub(crate) fn many(times: u64) {
    let [to, from] = pair();
    let mut buffer = vec![7u8; LONG];
    let mut rooms = SIZES.map(|size| parts(&mut buffer, &[size]));
    let mut messages: Vec<libc::mmsghdr> =
        rooms.iter_mut().map(|room| libc::mmsghdr { msg_hdr: header(room), msg_len: 0 }).collect();
    for _ in 0..times {
        let at = messages.as_mut_ptr();
        // SAFETY: three headers whose parts are in the buffer.
        let sent = unsafe { libc::syscall(libc::SYS_sendmmsg, to, at, 3, 0) };
        // SAFETY: the same, and no time limit.
        let got = unsafe { libc::syscall(libc::SYS_recvmmsg, from, at, 3, 0, 0) };
        assert_eq!((sent, got), (3, 3));
    }
}

/// So many times, by each of recvfrom, recvmsg and recvmmsg: a message of 1,000 bytes is looked at, then taken into room
/// for 10 by a call that is told of its whole length.
pub(crate) fn peeked(times: u64) {
    let [to, from] = pair();
    let mut buffer = vec![7u8; LONG];
    let mut room = parts(&mut buffer, &SHORT);
    let long = i64::try_from(LONG).expect("small");
    let ten = SHORT.iter().sum::<usize>();
    for _ in 0..times {
        for flags in [libc::MSG_PEEK | libc::MSG_TRUNC, libc::MSG_TRUNC] {
            let peeks = flags != libc::MSG_TRUNC;
            let mut message = libc::mmsghdr { msg_hdr: header(&mut room), msg_len: 0 };
            let at = buffer.as_mut_ptr();
            for _ in 0..if peeks { 3 } else { 0 } {
                // SAFETY: the buffer is readable.
                assert_eq!(unsafe { libc::syscall(libc::SYS_write, to, at, LONG) }, long);
            }
            // SAFETY: the buffer has room for ten bytes, and no address is asked for.
            let one = unsafe { libc::syscall(libc::SYS_recvfrom, from, at, ten, flags, 0, 0) };
            let header = &raw mut message.msg_hdr;
            // SAFETY: a header whose parts are in the buffer.
            let other = unsafe { libc::syscall(libc::SYS_recvmsg, from, header, flags) };
            let all = &raw mut message;
            // SAFETY: the same header, and no time limit.
            let messages = unsafe { libc::syscall(libc::SYS_recvmmsg, from, all, 1, flags, 0) };
            assert_eq!((one, other, messages), (long, long, 1));
            assert_eq!(message.msg_len as usize, LONG);
        }
    }
}
