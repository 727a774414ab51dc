//! A budget: in which part of the time calls count, so that watching takes no more than a share of the watched CPU time.
//!
//! It decides from what each step has: estimates of calls and of those that left their CPU, and CPU time. It measures
//! nothing and has no clock. The one invariant: a part stands for a whole number of others, a power of two up to
//! [`MOST`], so that every scaled count is a whole number.

use std::fmt;

use iotomy_observe::{Price, Work};

/// The smallest part of the time that is counted, one in so many. A smaller one would save less than a hundredth of what
/// counting takes, and windows would be so rare that estimates take minutes.
pub const MOST: u32 = 128;

/// A step has so much time at least, in ns.
const STEP_NS: u64 = 900_000_000;

/// What is asked of the past, in seconds: rates are means of about as long, and of so many periods of windows.
const MEMORY_S: f64 = 5.0;
const MEMORY_PERIODS: f64 = 10.0;

/// The length of a period of windows, as part of which one is open, in seconds.
const WINDOW_S: f64 = 0.01;

/// More of the time counts again where that takes no more than so much of the budget, for so long.
const ENOUGH: f64 = 0.8;
const CALM_S: f64 = 10.0;

/// That the budget does not suffice is said once it has not for so long.
const PATIENCE_S: f64 = 60.0;

/// A share of the CPU time, in millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share(u32);

impl Share {
    /// A share from `1%` or `0.5 %`.
    ///
    /// # Errors
    /// It is no percentage, or is 0, or more than all.
    pub fn parse(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        let percent =
            number.ok_or_else(|| String::from("invalid percentage: expected something like 1%"))?;
        match (0.000_1..=100.0).contains(&percent) {
            true => Ok(Self((percent * 1e4).round() as u32)),
            false => Err(String::from("invalid percentage: expected 0.0001% to 100%")),
        }
    }

    pub(crate) fn ratio(self) -> f64 {
        f64::from(self.0) / 1e6
    }
}

impl fmt::Display for Share {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} %", f64::from(self.0) / 1e4)
    }
}

/// What came in some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Load {
    pub(crate) elapsed_ns: u64,
    /// Calls that returned, counted or not.
    pub(crate) calls: u64,
    pub(crate) switches: u64,
    pub(crate) cpu_ns: u64,
}

/// The same a second.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Rates {
    calls: f64,
    switches: f64,
    cpu_ns: f64,
}

/// Decides which part of the time counts.
#[derive(Debug)]
pub(crate) struct Budget {
    share: Share,
    price: Price,
    factor: u32,
    /// Of the step that has begun.
    load: Load,
    rates: Option<Rates>,
    /// How long more of the time could have counted.
    calm_s: f64,
    /// How long the budget has not sufficed for the smallest part, and whether that was said.
    over_s: f64,
    is_over_said: bool,
}

impl Budget {
    pub(crate) fn new(share: Share) -> Self {
        Self {
            share,
            price: Price::default(),
            factor: 1,
            load: Load::default(),
            rates: None,
            calm_s: 0.0,
            over_s: 0.0,
            is_over_said: false,
        }
    }

    /// Another share from now on.
    pub(crate) fn set_share(&mut self, share: Share) {
        if self.share != share {
            (self.share, self.is_over_said, self.over_s) = (share, false, 0.0);
        }
    }

    /// A watch begins, with such overheads.
    pub(crate) fn begin(&mut self, price: Price) {
        self.price = price;
        self.load = Load::default();
    }

    pub(crate) fn share(&self) -> Share {
        self.share
    }

    /// One call that is counted stands for so many.
    pub(crate) fn factor(&self) -> u32 {
        self.factor
    }

    /// The share of the CPU time that watching takes at most, of late.
    pub(crate) fn overhead(&self) -> f64 {
        self.overhead_by(self.factor)
    }

    /// What it would be if so much of the time counted.
    fn overhead_by(&self, factor: u32) -> f64 {
        /// Rates are counts of so many seconds, to be whole numbers.
        const SECONDS: f64 = 1_000.0;
        let Some(Rates { calls, switches, cpu_ns }) = self.rates else { return 0.0 };
        let whole = |rate: f64| (rate * SECONDS) as u64;
        let (all, cpu_ns) = (whole(calls), whole(cpu_ns));
        if cpu_ns == 0 {
            return 0.0;
        }
        let calls = all / u64::from(factor);
        let left_out = all - calls;
        let switches = whole(switches);
        let work =
            Work { calls, left_out, passed: left_out, switches, paths: 0, passed_ns: cpu_ns };
        (self.price.most_ns(work) / cpu_ns as f64).min(1.0)
    }

    /// The largest part of the time that takes no more than this.
    fn factor_within(&self, share: f64) -> u32 {
        let mut factors = (0..).map(|power| 1u32 << power).take_while(|factor| *factor < MOST);
        factors.find(|factor| self.overhead_by(*factor) <= share).unwrap_or(MOST)
    }

    /// Goes on by what came since; the text of what is to be said of it.
    pub(crate) fn step(&mut self, more: Load) -> Option<String> {
        let Load { elapsed_ns, calls, switches, cpu_ns } = &mut self.load;
        for (sum, more) in [
            (elapsed_ns, more.elapsed_ns),
            (calls, more.calls),
            (switches, more.switches),
            (cpu_ns, more.cpu_ns),
        ] {
            *sum = sum.saturating_add(more);
        }
        if self.load.elapsed_ns < STEP_NS {
            return None;
        }
        let seconds = self.remember();
        self.turn(seconds);
        let is_over = self.overhead() > self.share.ratio();
        self.over_s = if is_over { self.over_s + seconds } else { 0.0 };
        if self.is_over_said || self.over_s < PATIENCE_S || self.factor < MOST {
            return None;
        }
        self.is_over_said = true;
        Some(format!(
            "the budget of {} does not suffice: watching takes up to {:.1} % of the CPU time, though calls count in 1/{MOST} \
             of the time only, because every call and switch is slower while it is watched; raise --budget, or choose \
             control groups by --cgroup",
            self.share,
            100.0 * self.overhead()
        ))
    }

    /// Adds the step to the rates. Its length.
    fn remember(&mut self) -> f64 {
        let load = std::mem::take(&mut self.load);
        let seconds = load.elapsed_ns as f64 / 1e9;
        let a_second = |count: u64| count as f64 / seconds;
        let now = Rates {
            calls: a_second(load.calls),
            switches: a_second(load.switches),
            cpu_ns: a_second(load.cpu_ns),
        };
        let memory_s = MEMORY_S + MEMORY_PERIODS * WINDOW_S * f64::from(self.factor);
        let weight = 1.0 - (-seconds / memory_s).exp();
        let mean = |before: f64, now: f64| before + weight * (now - before);
        self.rates = Some(self.rates.map_or(now, |before| Rates {
            calls: mean(before.calls, now.calls),
            switches: mean(before.switches, now.switches),
            cpu_ns: mean(before.cpu_ns, now.cpu_ns),
        }));
        seconds
    }

    /// Less of the time at once where the budget asks for it; more of it where there was enough for some time.
    fn turn(&mut self, seconds: f64) {
        let share = self.share.ratio();
        let least = self.factor_within(share);
        if least > self.factor {
            (self.factor, self.calm_s) = (least, 0.0);
            return;
        }
        let enough = self.factor_within(ENOUGH * share);
        self.calm_s = if enough < self.factor { self.calm_s + seconds } else { 0.0 };
        if self.calm_s >= CALM_S {
            (self.factor, self.calm_s) = (enough, 0.0);
        }
    }
}

#[cfg(test)]
#[path = "budget_tests.rs"]
mod tests;
