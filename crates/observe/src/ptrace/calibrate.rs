//! Tries the observer on a child that makes a known number of cheap calls: whether it works here,
//! and its overhead per call.

use std::io;
use std::time::{Duration, Instant};

use iotomy_sys::caller::{self, Caller};
use iotomy_sys::thread_wake::ThreadWake;

use super::session::PtraceSession;
use super::tracer::{self, Guide};
use crate::price::Range;
use crate::{Request, Selection, Target};

/// Calls of a trial, unless they take too long.
const CALLS: u32 = 500;
/// Trials; the overhead of a call lies between their results.
const TRIALS: usize = 4;
/// How long a trial may take at most, and how long another where not a call was made in that
/// time: the child has to get its turns on a CPU, which takes long on a busy or an emulated machine.
const LIMITS: [Duration; 3] =
    [Duration::from_millis(20), Duration::from_millis(400), Duration::from_secs(8)];

/// The overhead that watching adds to one call on this machine, now.
///
/// # Errors
/// When the child cannot be made or traced.
pub(super) fn cost_of_a_call(wake: &ThreadWake) -> io::Result<Range> {
    let began = Instant::now();
    caller::make_calls(CALLS);
    let bare_ns = began.elapsed().as_nanos() as f64 / f64::from(CALLS);
    let one = |limit| -> io::Result<Option<f64>> {
        let Trial { calls, took } = trial(wake, CALLS, limit)?;
        Ok((calls > 0).then(|| took.as_nanos() as f64 / calls as f64 - bare_ns))
    };
    for limit in LIMITS {
        let Some(first) = one(limit)? else { continue };
        let mut cost = Range::between(first, first);
        for _ in 1..TRIALS {
            if let Some(ns) = one(limit)? {
                cost = Range::between(cost.low.min(ns), cost.high.max(ns));
            }
        }
        return Ok(cost);
    }
    Err(io::Error::other("no call of a child was seen"))
}

/// Whether one call of a child is seen as one call.
///
/// # Errors
/// The error that kept it from being seen.
pub(super) fn works(wake: &ThreadWake) -> io::Result<()> {
    // It ends with the call: the limit only stops a hang.
    let [.., limit] = LIMITS;
    match trial(wake, 1, limit)?.calls {
        1 => Ok(()),
        seen => Err(io::Error::other(format!("1 call of a child was seen as {seen}"))),
    }
}

struct Trial {
    calls: u64,
    took: Duration,
}

fn trial(wake: &ThreadWake, calls: u32, limit: Duration) -> io::Result<Trial> {
    let child = Caller::hold(calls)?;
    let pid = child.pid();
    let request = Request {
        calls: Some(["getppid".to_owned()].into()),
        rows: 1,
        ..Request::new(Target::process(pid))
    };
    // Signals that come meanwhile are left to the watch this is for.
    let guide =
        Guide { wake, interrupts: None, command: None, duration: Some(limit), viewer: None };
    let seen = tracer::on_tracer_thread(guide, |flags| {
        let selection = Selection { only: true, ..Selection::process(pid) };
        let session = PtraceSession::running(&selection, &request).map_err(|(_, error)| error)?;
        child.start();
        let began = Instant::now();
        Ok((began, session.run(flags)))
    });
    let (began, seen) = match seen.and_then(|seen: io::Result<_>| seen) {
        Ok(seen) => seen,
        Err(error) => {
            child.end();
            return Err(error);
        }
    };
    if seen.exit.is_none() {
        child.end();
    }
    let took = seen.ended.duration_since(began);
    let calls = seen.tally.into_rows(&request, None).calls.iter().map(|call| call.calls).sum();
    Ok(Trial { calls, took })
}
