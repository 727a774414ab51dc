//! Pushes at an interval, for as long as the agent runs.
//!
//! The one invariant: there is one push at a time, and it has the counts of when it began. One that failed is tried again
//! with newer ones.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use hyper::body::Bytes;
use iotomy_stats::order::Random;
use tokio::runtime::Builder;
use tokio::time::{MissedTickBehavior, interval, sleep};

use super::Endpoint;
use super::attempt::{Outcome, attempt};
use super::backoff::Backoff;
use crate::desk::{Desk, Form};
use crate::messages::say;

/// How long an attempt may take, as OpenTelemetry's exporters have it.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long the last one may take, which the end of the agent waits for.
const LAST_PATIENCE: Duration = Duration::from_secs(2);

/// Pushes the counts at once and at each interval, until the watches are over.
pub(crate) async fn keep_pushing(desk: Arc<Desk>, endpoint: Endpoint, every: Duration) {
    let mut random = Random::new(seed());
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut backoff = Backoff::default();
    let mut is_failing = false;
    loop {
        ticks.tick().await;
        loop {
            let body = match desk.ask(Form::Otlp).await {
                Ok(Ok(body)) => body,
                // The watch says why.
                Ok(Err(_)) => break,
                Err(_) => return,
            };
            let outcome = attempt(&endpoint, body, PATIENCE).await;
            count(&desk, &outcome);
            say_change(&endpoint, &outcome, &mut is_failing);
            let Outcome::Failed { after, .. } = outcome else { break };
            sleep(backoff.next(after, random.unit())).await;
        }
        backoff.reset();
    }
}

/// Pushes what was counted until the end, if the collector takes it soon.
pub(crate) fn push_last(endpoint: &Endpoint, body: Bytes) {
    let outcome = Builder::new_current_thread().enable_io().enable_time().build().map(|runtime| {
        let outcome = runtime.block_on(attempt(endpoint, body, LAST_PATIENCE));
        // A look-up of the host may go on.
        runtime.shutdown_background();
        outcome
    });
    let reason = match outcome {
        Ok(Outcome::Taken { .. }) => return,
        Ok(Outcome::Failed { reason, .. } | Outcome::Refused { reason }) => reason,
        Err(error) => error.to_string(),
    };
    say(&format!("cannot push the last counts to {endpoint}: {reason}"));
}

fn count(desk: &Desk, outcome: &Outcome) {
    let pushes = &desk.pushes;
    Desk::count(match outcome {
        Outcome::Taken { .. } => &pushes.taken,
        Outcome::Failed { .. } => &pushes.failed,
        Outcome::Refused { .. } => &pushes.refused,
    });
    if let Outcome::Taken { rejected, .. } = outcome {
        pushes.rejected_points.fetch_add(*rejected, Ordering::Relaxed);
    }
}

/// Says when pushes begin to fail, and when they are taken again; not each one.
fn say_change(endpoint: &Endpoint, outcome: &Outcome, is_failing: &mut bool) {
    let problem = match outcome {
        Outcome::Taken { rejected: 0, .. } => None,
        Outcome::Taken { rejected, reason } => {
            Some(format!("{endpoint} has rejected {rejected} points: {reason}"))
        }
        Outcome::Failed { reason, .. } => {
            Some(format!("cannot push metrics to {endpoint}: {reason}; trying again"))
        }
        Outcome::Refused { reason } => Some(format!("cannot push metrics to {endpoint}: {reason}")),
    };
    match (problem, *is_failing) {
        (Some(problem), false) => say(&problem),
        (None, true) => say(&format!("metrics are pushed to {endpoint} again")),
        _ => return,
    }
    *is_failing = !*is_failing;
}

fn seed() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::from(now.subsec_nanos()) << 32 ^ now.as_secs() ^ u64::from(std::process::id())
}
