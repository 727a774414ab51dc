//! What the name of a call, or of an operation of io_uring, decides.

use iotomy_dtrace::StringTest;
use iotomy_record::calls::{ALL_RINGS, GROUPS, RING_PREFIX};
use iotomy_sys::syscalls::{self, Abi};

use crate::naming::{call_name, choice_name, plain_name};
use crate::variables::fact;

/// A bit for each number of a call whose name, as records have it, is as asked; of both entries.
pub(crate) fn calls(is: impl Fn(&str) -> bool) -> [[u64; 8]; 2] {
    [Abi::X86_64, Abi::I386].map(|abi| {
        let mut words = [0u64; 8];
        for number in 0..512u32 {
            let is_in = is(&call_name(abi, number));
            words[number as usize / 64] |= u64::from(is_in) << (number % 64);
        }
        words
    })
}

/// The argument of a call that is the descriptor it works on; also of a call after which that leads
/// nowhere, or elsewhere.
pub(crate) fn descriptor(name: &str) -> Option<u8> {
    let ends = matches!(
        name,
        "close"
            | "fstat64"
            | "fstatfs64"
            | "fchown32"
            | "setns"
            | "finit_module"
            | "pidfd_getfd"
            | "pidfd_send_signal"
            | "mq_timedsend"
            | "mq_timedreceive"
            | "mq_notify"
            | "_llseek"
    );
    syscalls::descriptor(name).or(ends.then_some(0))
}

/// Whether a call's name, or a group's that it is in, is what a test asks for.
pub(crate) fn is_of_call(test: &StringTest, name: &str) -> bool {
    let name = choice_name(name);
    let plain = plain_name(name);
    let matches = |text: &str| test.pattern.matches(text.as_bytes());
    if test.fact == fact::CALL {
        return matches(plain) || matches(name);
    }
    let groups = GROUPS.iter().filter(|group| group.calls.contains(&plain));
    groups
        .into_iter()
        .any(|group| matches(group.name) || matches(group.name.trim_start_matches('%')))
}

/// The same of an operation of io_uring.
pub(crate) fn is_of_ring(test: &StringTest, operation: &str) -> bool {
    let matches = |text: &str| test.pattern.matches(text.as_bytes());
    match test.fact == fact::CALL {
        true => matches(&format!("{RING_PREFIX}{operation}")),
        false => matches(ALL_RINGS) || matches(ALL_RINGS.trim_start_matches('%')),
    }
}

pub(crate) fn bits(of: impl Iterator<Item = bool>) -> u64 {
    of.enumerate().map(|(bit, is_set)| u64::from(is_set) << bit).sum()
}
