//! Comparison of sessions: the distance of a session from those of a baseline.
//!
//! Runs of two sessions are not paired. The spread between sessions is estimated from the sessions
//! of the baseline alone, and only from three on. The judged session does not contribute: otherwise
//! a saved regression would hide itself. All figures are logarithms, so that a difference is a
//! ratio.

use crate::student::t975;
use crate::unpaired::fewest_against;
use crate::{Interval, mean, median, shift_between, stddev};

/// The error rate of an interval, on machines whose sessions differ by less than a factor of 1.5.
const ALPHA: f64 = 0.05;

/// From this many sessions on their spread is known.
pub const ENOUGH_SESSIONS: usize = 3;

/// From this many sessions on their spread is known well.
const MANY_SESSIONS: usize = 10;

/// The smallest difference that counts, by what is known of the sessions: nothing, a little, much;
/// and where there are too few runs for ranks.
const LEAST_UNKNOWN: f64 = 0.05;
const LEAST_KNOWN: f64 = 0.02;
const LEAST_WELL_KNOWN: f64 = 0.01;
const LEAST_OF_FEW: f64 = 1.0;

/// A session that is this factor beyond every session of the baseline is not one of them, however far
/// these lie apart. The intervals end there: where sessions differ by a factor of more than 1.5 (one standard
/// deviation), those against few sessions are wrong more often than 5 times in 100.
const FAR: f64 = 2.0;

/// One session.
#[derive(Debug, Clone, PartialEq)]
pub struct LeveledSession {
    /// Its representative figure.
    pub level: f64,
    /// The measurements it is the middle of; empty where there is only the figure.
    pub samples: Vec<f64>,
}

/// The distance of a session from those of a baseline.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SessionDistance {
    /// The level of the baseline.
    pub level: f64,
    /// How far above it the session is.
    pub point: f64,
    /// The interval of that, no further than twice beyond every session; `None` where nothing is known of how far
    /// either may be off.
    pub interval: Option<Interval>,
    /// The least difference that is to be called one: 0.05 is 5 %.
    pub least: f64,
    /// An estimate of the further runs of the session that would decide, if more runs can.
    pub more_runs: Option<usize>,
}

/// The verdict on the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionVerdict {
    /// It is above the baseline.
    Above,
    /// It is below.
    Below,
    /// It is nearer than the least difference.
    Level,
    /// None of these.
    Unknown,
}

impl SessionDistance {
    /// The verdict.
    pub fn verdict(&self) -> SessionVerdict {
        let least = self.least.ln_1p();
        match self.interval {
            Some(Interval { low, .. }) if low > least => SessionVerdict::Above,
            Some(Interval { high, .. }) if high < -least => SessionVerdict::Below,
            // With so few runs, a small distance does not prove that there is none.
            Some(_) if self.least >= LEAST_OF_FEW => SessionVerdict::Unknown,
            Some(Interval { low, high, .. }) if low >= -least && high <= least => {
                SessionVerdict::Level
            }
            _ => SessionVerdict::Unknown,
        }
    }
}

/// Compares a session with those of a baseline; `None` without any.
pub fn apart(baseline: &[LeveledSession], now: &LeveledSession) -> Option<SessionDistance> {
    let levels: Vec<f64> = baseline.iter().map(|one| one.level).collect();
    let level = median(&levels)?;
    let found = match levels.len() >= ENOUGH_SESSIONS {
        true => known(baseline, &levels, level, now),
        false => unknown(baseline, level, now),
    };
    let more_runs = match (found.verdict(), found.interval) {
        (SessionVerdict::Unknown, Some(interval)) => more_runs(&found, interval, baseline, now),
        (SessionVerdict::Unknown, None) if !now.samples.is_empty() => missing_runs(baseline, now),
        _ => None,
    };
    Some(SessionDistance { more_runs, ..found })
}

/// By the spread among the sessions of the baseline.
fn known(
    baseline: &[LeveledSession],
    levels: &[f64],
    level: f64,
    now: &LeveledSession,
) -> SessionDistance {
    let count = levels.len();
    // The median of sessions is less sure than their mean by π/2.
    let worth = independent(levels, level);
    let share = 1.0 + std::f64::consts::FRAC_PI_2 / worth as f64;
    let between = t975(worth - 1) * stddev(levels).unwrap_or(0.0) * share.sqrt();
    let most = levels.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let fewest = levels.iter().copied().fold(f64::INFINITY, f64::min);
    let largest = baseline.iter().max_by_key(|one| one.samples.len());
    let within = largest.and_then(|one| within(one, now)).map(|(found, _)| found);
    let (down, up) = within.map_or((0.0, 0.0), |one| (one.point - one.low, one.high - one.point));
    let both = |within: f64, end: f64| {
        let between = between.min(end + FAR.ln());
        (within * within + between * between).sqrt()
    };
    let point = now.level - level;
    let interval = Interval {
        point,
        // The session may appear lower only because the baseline may be as high as its highest.
        low: point - both(down, most - level),
        high: point + both(up, level - fewest),
    };
    let least = if count >= MANY_SESSIONS { LEAST_WELL_KNOWN } else { LEAST_KNOWN };
    SessionDistance { level, point, interval: Some(interval), least, more_runs: None }
}

/// How many independent sessions these are worth, at least three: where each lies near the one before,
/// they show less of how far sessions wander (by the correlation of neighbours).
fn independent(levels: &[f64], level: f64) -> usize {
    let off: Vec<f64> = levels.iter().map(|one| one - level).collect();
    let all: f64 = off.iter().map(|one| one * one).sum();
    let near: f64 = off.windows(2).map(|pair| pair[0] * pair[1]).sum();
    if all <= 0.0 {
        return levels.len();
    }
    let together = (near / all).clamp(0.0, 0.9);
    let worth = levels.len() as f64 * (1.0 - together) / (1.0 + together);
    (worth.round() as usize).max(ENOUGH_SESSIONS)
}

/// With one session or two: it has to be apart from each, and by more.
fn unknown(baseline: &[LeveledSession], level: f64, now: &LeveledSession) -> SessionDistance {
    let point = now.level - level;
    let each: Option<Vec<_>> = baseline.iter().map(|one| within(one, now)).collect();
    let Some(each) = each else {
        return SessionDistance {
            level,
            point,
            interval: None,
            least: LEAST_UNKNOWN,
            more_runs: None,
        };
    };
    let point = match each.as_slice() {
        [(only, _)] => only.point,
        _ => point,
    };
    let low = each.iter().map(|(one, _)| one.low).fold(point, f64::min);
    let high = each.iter().map(|(one, _)| one.high).fold(point, f64::max);
    let is_few = each.iter().any(|(_, is_few)| *is_few);
    let least = if is_few { LEAST_OF_FEW } else { LEAST_UNKNOWN };
    let interval = Some(Interval { point, low, high });
    SessionDistance { level, point, interval, least, more_runs: None }
}

/// The distance between the runs of two sessions: by ranks; with too few runs for these by
/// Student's distribution, which is reported. `None` where neither has two runs.
fn within(base: &LeveledSession, now: &LeveledSession) -> Option<(Interval, bool)> {
    if let Some(found) = shift_between(&base.samples, &now.samples, ALPHA) {
        return Some((found, false));
    }
    let (n, m) = (base.samples.len(), now.samples.len());
    if n == 0 || m == 0 {
        return None;
    }
    let freedom = (n + m).checked_sub(2).filter(|freedom| *freedom > 0)?;
    let squares = |samples: &[f64]| -> f64 {
        let middle = mean(samples).unwrap_or(0.0);
        samples.iter().map(|one| (one - middle).powi(2)).sum()
    };
    let spread = ((squares(&base.samples) + squares(&now.samples)) / freedom as f64).sqrt();
    let half = t975(freedom) * spread * (1.0 / n as f64 + 1.0 / m as f64).sqrt();
    let point = mean(&now.samples)? - mean(&base.samples)?;
    Some((Interval { point, low: point - half, high: point + half }, true))
}

/// The interval narrows with the square root of the runs: the number of further runs until it lies
/// on one side of the smallest difference; `None` without a forecast, or when the sessions make it
/// wide.
fn more_runs(
    found: &SessionDistance,
    interval: Interval,
    baseline: &[LeveledSession],
    now: &LeveledSession,
) -> Option<usize> {
    if baseline.len() >= ENOUGH_SESSIONS || now.samples.is_empty() {
        return None;
    }
    if found.least >= LEAST_OF_FEW {
        return missing_runs(baseline, now);
    }
    let half = (interval.high - interval.low) / 2.0;
    let away = (found.point.abs() - found.least.ln_1p()).abs();
    let times = (half / away).powi(2);
    (away > 0.0 && times < 100.0).then(|| {
        let runs = now.samples.len() as f64;
        ((runs * times).ceil() as usize).saturating_sub(now.samples.len()).max(1)
    })
}

/// How many runs are lacking for ranks to be sure; `None` where the baseline has too few.
fn missing_runs(baseline: &[LeveledSession], now: &LeveledSession) -> Option<usize> {
    let least = baseline.iter().map(|one| one.samples.len()).min()?;
    let wanted = fewest_against(least, ALPHA)?;
    wanted.checked_sub(now.samples.len()).filter(|more| *more > 0)
}

#[cfg(test)]
#[path = "sessions_tests.rs"]
mod tests;
