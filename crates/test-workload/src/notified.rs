//! Calls that a supervisor answers: seccomp's user notifications.

use std::sync::mpsc::sync_channel;

use crate::raw;

const FLAG_NEW_LISTENER: u64 = 1 << 3;
const RECEIVE: u64 = 0xc050_2100;
const SEND: u64 = 0xc018_2101;

/// `struct seccomp_notif_resp`.
#[repr(C)]
struct Answer {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

pub(crate) fn run(times: u64) {
    let (tell, hear) = sync_channel(1);
    let caller = std::thread::spawn(move || {
        let listener = raw::install_filter(libc::SECCOMP_RET_USER_NOTIF, FLAG_NEW_LISTENER);
        tell.send(listener).expect("the first thread waits for it");
        raw::getppid(2 * times);
    });
    let listener = hear.recv().expect("the thread makes it");
    for nth in 0..2 * times {
        // struct seccomp_notif: its first word is the notification's id.
        let mut request = [0u64; 10];
        // SAFETY: room for a notification.
        let got = unsafe { libc::syscall(libc::SYS_ioctl, listener, RECEIVE, &raw mut request) };
        assert_eq!(got, 0);
        let (value, error) = if nth % 2 == 0 { (7, 0) } else { (0, -libc::EACCES) };
        let answer = Answer { id: request[0], value, error, flags: 0 };
        // SAFETY: an answer.
        let sent = unsafe { libc::syscall(libc::SYS_ioctl, listener, SEND, &raw const answer) };
        assert_eq!(sent, 0);
    }
    caller.join().expect("it makes calls only");
}
