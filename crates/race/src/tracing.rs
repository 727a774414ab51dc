//! The traced runs after the timed ones.

use iotomy_record::{Metric, Trace};

use super::compare::{counting, value};
use super::in_progress::{RaceInProgress, label};
use super::traced::Traced;
use super::{RaceError, RaceHost, Untraced, attribution};

impl RaceInProgress<'_> {
    /// Traces every command, the short ones several times: of these the run whose time is nearest
    /// to the untraced median stands for it.
    pub(super) fn traced_runs(
        &mut self,
        traced: &mut [Traced],
        around: &mut dyn RaceHost,
    ) -> Result<(), RaceError> {
        for (at, kept) in traced.iter_mut().enumerate() {
            let walls: Vec<f64> =
                counting(&self.runs[at], &self.rounds).map(|r| value(r, Metric::Wall)).collect();
            let median = iotomy_stats::median(&walls).unwrap_or(0.0);
            for again in 0..if median < 5e8 { 3 } else { 1 } {
                around.progress(&format!("tracing {} ({})", label(at), again + 1));
                let trace = match self.traced_run(at, around) {
                    Ok(Ok(trace)) => trace,
                    Err(RaceError::TooLong { .. }) => {
                        kept.missed("--max-time ended first".to_owned());
                        break;
                    }
                    Ok(Err(why)) => {
                        kept.missed(why);
                        break;
                    }
                    Err(error) => return Err(error),
                };
                let far = |trace: &Trace| (attribution::less_price(trace) - median).abs();
                if kept.trace.as_ref().is_none_or(|kept| far(&trace) < far(kept)) {
                    kept.trace = Some(trace);
                }
            }
        }
        Ok(())
    }

    fn traced_run(
        &mut self,
        at: usize,
        around: &mut dyn RaceHost,
    ) -> Result<Result<Trace, String>, RaceError> {
        self.prepare(at)?;
        let what = &self.runnables[at];
        let (traced, was_late) =
            self.runner.traced(what, around.is_interrupted(), |command| around.trace(command))?;
        if was_late {
            return Ok(Err("--max-time ended first".to_owned()));
        }
        let traced = match traced {
            Ok(traced) => traced,
            Err(Untraced::Interrupted(signal)) => return Err(RaceError::Interrupted(signal)),
            Err(Untraced::Cannot(why)) => return Ok(Err(why)),
        };
        let before = self.runs[at].last().map(|run| run.exit.status());
        let status = traced.exit.map(|exit| exit.status());
        if before != status {
            let status = status.map_or_else(|| "none".to_owned(), |status| status.to_string());
            return Ok(Err(format!(
                "its traced run ended with status {status}, unlike the timed ones"
            )));
        }
        Ok(Ok(traced))
    }
}
