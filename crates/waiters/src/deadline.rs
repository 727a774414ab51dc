//! Time-outs: never early, in the unit a call takes, and kept over interruptions.
//!
//! The clock is read only for a time-out that is neither zero nor for ever: a wait that cannot end by
//! time does not pay for it.

use std::io;
use std::time::{Duration, Instant};

use rustix::io::Errno;

/// Makes `call`, which is given how long it may wait at most, until it has found something or the
/// time is up. `interrupted` counts the calls a signal ended.
#[inline]
pub(crate) fn wait_until(
    timeout: Option<Duration>,
    interrupted: &mut u64,
    mut call: impl FnMut(Option<Duration>) -> io::Result<usize>,
) -> io::Result<usize> {
    // The usual case; the rest is a separate function, so that its code is out of the way.
    if matches!(timeout, None | Some(Duration::ZERO)) {
        match call(timeout) {
            Ok(0) if timeout.is_none() => {}
            Err(error) if is_interruption(&error) => *interrupted += 1,
            answer => return answer,
        }
    }
    go_on(timeout, interrupted, &mut call)
}

/// A call that waits.
type Waits<'a> = &'a mut dyn FnMut(Option<Duration>) -> io::Result<usize>;

#[cold]
fn go_on(timeout: Option<Duration>, interrupted: &mut u64, call: Waits<'_>) -> io::Result<usize> {
    let is_look = timeout == Some(Duration::ZERO);
    let end = timeout.filter(|_| !is_look).and_then(|timeout| Instant::now().checked_add(timeout));
    let mut left = timeout;
    loop {
        match call(left) {
            Err(error) if is_interruption(&error) => *interrupted += 1,
            // The longest time-out of a call may be shorter than the requested one, and the call
            // may have been ended by something that is not to be reported.
            Ok(0) if !is_look => {}
            answer => return answer,
        }
        if let Some(end) = end {
            let now = Instant::now();
            if now >= end {
                return Ok(0);
            }
            left = Some(end - now);
        }
    }
}

fn is_interruption(error: &io::Error) -> bool {
    Errno::from_io_error(error) == Some(Errno::INTR)
}

/// For a call that takes ms: rounded up, and −1 for ever.
#[inline]
pub(crate) fn millis(left: Option<Duration>) -> i32 {
    let Some(left) = left else { return -1 };
    // Not by `as_nanos`: to divide 128 bits takes longer than all the rest here.
    let whole = left.as_secs().saturating_mul(1000);
    let part = u64::from(left.subsec_nanos().div_ceil(1_000_000));
    i32::try_from(whole.saturating_add(part)).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_out_is_rounded_up_and_never_for_ever() {
        assert_eq!(millis(None), -1);
        assert_eq!(millis(Some(Duration::ZERO)), 0);
        assert_eq!(millis(Some(Duration::from_nanos(1))), 1);
        assert_eq!(millis(Some(Duration::from_millis(7))), 7);
        assert_eq!(millis(Some(Duration::MAX)), i32::MAX);
    }

    #[test]
    fn an_interrupted_wait_goes_on_for_what_is_left() {
        let (mut calls, mut interrupted) = (Vec::new(), 0);
        let found = wait_until(Some(Duration::from_secs(60)), &mut interrupted, |left| {
            calls.push(left.unwrap());
            match calls.len() {
                1 => Err(io::Error::from_raw_os_error(Errno::INTR.raw_os_error())),
                2 => Ok(0),
                _ => Ok(5),
            }
        });
        assert_eq!((found.unwrap(), interrupted, calls.len()), (5, 1, 3));
        assert!(calls[0] > calls[1] && calls[1] > calls[2]);
    }

    #[test]
    fn a_look_is_one_call_and_the_time_is_up_when_it_is() {
        let mut calls = 0;
        let mut look = |timeout| {
            wait_until(timeout, &mut 0, |_| {
                calls += 1;
                Ok(0)
            })
        };
        assert_eq!(look(Some(Duration::ZERO)).unwrap(), 0);
        assert_eq!(look(Some(Duration::from_nanos(1))).unwrap(), 0);
        assert!(calls >= 2);
    }
}
