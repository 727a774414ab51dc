//! All that a scrape has: the sums, and the numbers of the agent itself.

use std::fmt;
use std::time::Duration;

use crate::totals::{OfCall, Totals};

/// How pushes over OTLP went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Pushes {
    pub(crate) taken: u64,
    pub(crate) failed: u64,
    pub(crate) refused: u64,
    pub(crate) rejected_points: u64,
}

/// What a budget has come to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct OfBudget {
    pub(crate) ratio: f64,
    /// What watching takes at most, of late.
    pub(crate) overhead: f64,
    pub(crate) factor: u32,
}

/// The numbers of the agent itself.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Own {
    /// Since the epoch.
    pub(crate) began: Duration,
    pub(crate) cpu: Duration,
    /// The least and the most that watching adds to a call.
    pub(crate) overhead_ns: [f64; 2],
    pub(crate) watches: u64,
    pub(crate) scrapes: u64,
    pub(crate) refused: u64,
    pub(crate) cut: u64,
    pub(crate) unauthorized: u64,
    /// When the certificate expires, since the epoch: where there is one.
    pub(crate) expiry: Option<Duration>,
    pub(crate) pushes: Pushes,
    pub(crate) is_reloaded: bool,
    /// Where there is a budget.
    pub(crate) budget: Option<OfBudget>,
}

/// All that a scrape has.
#[derive(Debug, Default)]
pub(crate) struct Exposed {
    pub(crate) totals: Totals,
    pub(crate) own: Own,
}

impl Exposed {
    /// Encodes something of each call of each service, which has these labels.
    ///
    /// # Errors
    /// That of `encode`.
    pub(crate) fn each_call(
        &self,
        mut encode: impl FnMut([(&'static str, &str); 2], &OfCall) -> fmt::Result,
    ) -> fmt::Result {
        self.totals.iter().try_for_each(|(service, one)| {
            let mut of_service = one.calls.iter();
            of_service
                .try_for_each(|(name, call)| encode([("service", service), ("call", name)], call))
        })
    }
}
