//! The overhead of watching: per-call overheads measured at the start, and the overhead of a run in
//! all.
//!
//! An overhead is a range. Its lower end is that of calls in a tight loop, with everything in the
//! nearest cache; its upper end that of calls between which the caches were used for other work. A
//! program's calls lie between.

/// From the least to the most, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Range {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Range {
    /// Orders two measured figures, of which noise may have made one negative or swapped them.
    pub(crate) fn between(low: f64, high: f64) -> Self {
        let low = low.max(0.0);
        Self { low, high: high.max(low) }
    }

    pub(crate) fn middle(self) -> f64 {
        f64::midpoint(self.low, self.high)
    }

    pub(crate) fn ends(self) -> [f64; 2] {
        [self.low, self.high]
    }
}

/// The overhead of each call, and of each switch of a watched thread off its CPU and back.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Price {
    pub(crate) call: Range,
    pub(crate) switch: Range,
    /// The time of the cheapest call without watching, in ns.
    pub(crate) bare_call_ns: f64,
}

/// The number of calls and switches of a run, and the time it had for them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Work {
    pub(crate) calls: u64,
    pub(crate) switches: u64,
    /// The time that all of it took, watching included; 0: not known.
    pub(crate) passed_ns: u64,
}

impl Price {
    /// The overhead per call of the run, with that of its switches distributed over its calls. In
    /// all, it is no more than the time that passed, of which the calls themselves took some.
    pub(crate) fn of_a_call(&self, work: Work) -> Range {
        if work.calls == 0 {
            return self.call;
        }
        let calls = work.calls as f64;
        let switches = work.switches as f64 / calls;
        let most = match work.passed_ns {
            0 => f64::MAX,
            passed => (passed as f64 / calls - self.bare_call_ns).max(0.0),
        };
        let low = (self.call.low + self.switch.low * switches).min(most);
        Range::between(low, (self.call.high + self.switch.high * switches).min(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICE: Price = Price {
        call: Range { low: 200.0, high: 500.0 },
        switch: Range { low: 300.0, high: 900.0 },
        bare_call_ns: 50.0,
    };

    #[test]
    fn calls_that_sleep_pay_for_their_switches() {
        let of = |calls, switches| PRICE.of_a_call(Work { calls, switches, passed_ns: 0 }).ends();
        assert_eq!(of(1_000, 0), [200.0, 500.0]);
        assert_eq!(of(1_000, 100), [230.0, 590.0]);
        assert_eq!(of(1_000, 1_000), [500.0, 1_400.0]);
        assert_eq!(of(0, 10), [200.0, 500.0]);
    }

    #[test]
    fn no_run_paid_more_than_the_time_that_passed() {
        let of = |passed_ns| PRICE.of_a_call(Work { calls: 1_000, switches: 0, passed_ns });
        assert_eq!(of(1_000_000).ends(), [200.0, 500.0]);
        assert_eq!(of(450_000).ends(), [200.0, 400.0]);
        assert_eq!(of(150_000).ends(), [100.0, 100.0]);
        assert_eq!(of(10_000).ends(), [0.0, 0.0]);
    }

    #[test]
    fn a_range_is_never_upside_down() {
        assert_eq!(Range::between(-3.0, -5.0).ends(), [0.0, 0.0]);
        assert_eq!(Range::between(7.0, 5.0).ends(), [7.0, 7.0]);
        assert_eq!(Range::between(5.0, 9.0).middle(), 7.0);
    }
}
