//! Waits of tests for what cannot be waited for in another way, such as a state in `/proc`.

use std::thread::sleep;
use std::time::Duration;

/// Asks every millisecond until the answer is there.
///
/// # Panics
///
/// When it is not there after 45,000 times. That is no bound on speed: without an end, a defect would hang the suite and
/// tell nothing. On a busy machine so many take longer, too.
#[track_caller]
pub fn until_some<T>(what: &str, mut answer: impl FnMut() -> Option<T>) -> T {
    for _ in 0..45_000 {
        if let Some(answer) = answer() {
            return answer;
        }
        sleep(Duration::from_millis(1));
    }
    panic!("waited in vain until {what}");
}

/// The same of a condition.
///
/// # Panics
///
/// As [`until_some`].
#[track_caller]
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    until_some(what, || is_so().then_some(()));
}
