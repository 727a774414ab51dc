//! The overhead of watching: per-call overheads measured at the start, and the overhead of a run in
//! all.
//!
//! An overhead is a range. Its lower end is that of calls in a tight loop, with everything in the
//! nearest cache; its upper end that of calls between which the caches were used for other work. A
//! program's calls lie between: the more work there is between them, the colder they find the caches.

/// From the least to the most, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Range {
    /// The least.
    pub low: f64,
    /// The most.
    pub high: f64,
}

/// The ends of a range are this far apart at least: no measurement is so exact that they are one.
const LEAST_SPREAD: f64 = 1.25;
/// The overhead of a call in a tight loop on a core that a busy CPU shares is up to so many times the lower end.
const BESIDE_A_BUSY_CPU: f64 = 1.55;
/// What an end is where noise has hidden it, in ns.
const LEAST_NS: f64 = 1.0;

impl Range {
    /// Orders two measured figures, of which noise may have made one negative or swapped them.
    pub(crate) fn between(low: f64, high: f64) -> Self {
        let (low, high) = (low.min(high).max(0.0), high.max(low));
        Self { low, high: high.max(LEAST_SPREAD * low).max(LEAST_NS) }
    }

    pub(crate) fn middle(self) -> f64 {
        f64::midpoint(self.low, self.high)
    }

    pub(crate) fn ends(self) -> [f64; 2] {
        [self.low, self.high]
    }

    /// No end below that of a range whose work is part of this one's.
    pub(crate) fn at_least(self, part: Self) -> Self {
        Self { low: self.low.max(part.low), high: self.high.max(part.high) }
    }

    /// With `times` as much of `other` added.
    fn plus(self, other: Self, times: f64) -> Self {
        Self { low: self.low + times * other.low, high: self.high + times * other.high }
    }

    /// The lower part of it: a share of 1 is all of it. Beside a busy CPU a call in a tight loop, too, has more overhead
    /// than at the lower end.
    fn up_to(self, share: f64) -> Self {
        let tight = BESIDE_A_BUSY_CPU * self.low;
        Self { high: tight + share * (self.high - tight).max(0.0), ..self }
    }

    /// Not above `most`, and a range all the same.
    fn at_most(self, most: f64) -> Self {
        Self { low: self.low.min(most / LEAST_SPREAD), high: self.high.min(most) }
    }
}

/// The overhead of each call, and of each switch of a watched thread off its CPU and back.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Price {
    /// Of a call that counts.
    pub call: Range,
    /// Of a switch.
    pub switch: Range,
    /// Of each path that a call is given, where paths are watched.
    pub path: Range,
    /// Of a call that is let pass at its entry, because a filter leaves it out or no window is open.
    pub passed: Range,
    /// Of each call of a thread that is not watched.
    pub unwatched: Range,
    /// The time of the cheapest call without watching, in ns.
    pub bare_call_ns: f64,
}

/// The number of calls and switches of a run, and the time it had for them.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Work {
    /// Calls that were counted.
    pub calls: u64,
    /// Calls that a filter left out, or that were entered while no window was open.
    pub left_out: u64,
    /// Of these, the ones that were let pass at their entry.
    pub passed: u64,
    /// Switches of watched threads off their CPU and back.
    pub switches: u64,
    /// Paths that calls were given, where they are watched.
    pub paths: u64,
    /// The time that all of it took, watching included; 0: not known.
    pub passed_ns: u64,
}

/// What each call of a run had as overhead.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Overhead {
    pub(crate) call: Range,
    pub(crate) left_out: Range,
}

/// On-CPU time a call from which on its caches may be as cold as they are for the upper end: other work needs about as
/// long to fill the caches.
const COLD_FROM_NS: f64 = 2_000.0;

impl Price {
    /// The overhead per call of the run, counted or left out, with that of its switches and paths distributed over all calls. In
    /// all, it is no more than the time that passed, of which the calls themselves took some.
    pub(crate) fn of_run(&self, work: Work) -> Overhead {
        let long = work.left_out.saturating_sub(work.passed) as f64;
        // Those that were decided at their return cost as much as those that are counted.
        let of_left_out = match work.left_out {
            0 => self.passed,
            all => Range {
                low: (self.passed.low * work.passed as f64 + self.call.low * long) / all as f64,
                high: (self.passed.high * work.passed as f64 + self.call.high * long) / all as f64,
            },
        };
        let all = work.calls.saturating_add(work.left_out);
        if all == 0 {
            return Overhead { call: self.call, left_out: of_left_out };
        }
        let all = all as f64;
        let switches = work.switches as f64 / all;
        let (most, cold) = match work.passed_ns {
            0 => (f64::MAX, 1.0),
            passed => {
                let of_a_call = passed as f64 / all;
                ((of_a_call - self.bare_call_ns).max(0.0), (of_a_call / COLD_FROM_NS).min(1.0))
            }
        };
        let paths = work.paths as f64 / all;
        let of = |range: Range, paths: f64| {
            let range = range.plus(self.path, paths).up_to(cold).plus(self.switch, switches);
            Range::between(range.low, range.high).at_most(most)
        };
        Overhead { call: of(self.call, paths), left_out: of(of_left_out, 0.0) }
    }

    /// The most that watching some work took, in ns: each call at the upper end of its range.
    pub fn most_ns(&self, work: Work) -> f64 {
        let Overhead { call, left_out } = self.of_run(work);
        call.high * work.calls as f64 + left_out.high * work.left_out as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICE: Price = Price {
        call: Range { low: 200.0, high: 1_000.0 },
        switch: Range { low: 300.0, high: 900.0 },
        path: Range { low: 400.0, high: 2_000.0 },
        passed: Range { low: 100.0, high: 400.0 },
        unwatched: Range { low: 90.0, high: 350.0 },
        bare_call_ns: 50.0,
    };

    const NONE: Work =
        Work { calls: 0, left_out: 0, passed: 0, switches: 0, paths: 0, passed_ns: 0 };

    #[test]
    fn calls_that_sleep_pay_for_their_switches() {
        let of = |calls, switches| PRICE.of_run(Work { calls, switches, ..NONE }).call.ends();
        assert_eq!(of(1_000, 0), [200.0, 1_000.0]);
        assert_eq!(of(1_000, 100), [230.0, 1_090.0]);
        assert_eq!(of(1_000, 1_000), [500.0, 1_900.0]);
        assert_eq!(of(0, 10), [200.0, 1_000.0]);
    }

    #[test]
    fn calls_with_a_path_have_the_overhead_of_it() {
        let of = |paths| PRICE.of_run(Work { calls: 1_000, paths, ..NONE }).call.ends();
        assert_eq!(of(0), [200.0, 1_000.0]);
        assert_eq!(of(500), [400.0, 2_000.0]);
    }

    #[test]
    fn calls_left_out_have_an_overhead_of_their_own_and_share_the_switches() {
        let of = |calls, left_out, passed| {
            let work = Work { calls, left_out, passed, switches: 500, ..NONE };
            let Overhead { call, left_out } = PRICE.of_run(work);
            [call.ends(), left_out.ends()]
        };
        // Half a switch a call: not 500 switches of the few that are counted.
        assert_eq!(of(10, 990, 990), [[350.0, 1_450.0], [250.0, 850.0]]);
        assert_eq!(of(0, 1_000, 1_000), [[350.0, 1_450.0], [250.0, 850.0]]);
        // Decided at their return: as much as a counted one.
        assert_eq!(of(10, 990, 0), [[350.0, 1_450.0], [350.0, 1_450.0]]);
        assert_eq!(of(0, 1_000, 500), [[350.0, 1_450.0], [300.0, 1_150.0]]);
    }

    #[test]
    fn the_more_work_there_is_between_calls_the_colder_they_find_the_caches() {
        let of = |passed_ns| PRICE.of_run(Work { calls: 1_000, passed_ns, ..NONE }).call.ends();
        assert_eq!(of(40_000_000), [200.0, 1_000.0]);
        assert_eq!(of(4_000_000), [200.0, 1_000.0]);
        assert_eq!(of(2_000_000), [200.0, 1_000.0]);
        assert_eq!(of(1_000_000), [200.0, 655.0]);
        assert_eq!(of(500_000), [200.0, 450.0]);
    }

    #[test]
    fn the_most_of_some_work_is_that_of_all_its_calls() {
        let work = Work { calls: 10, left_out: 90, passed: 90, switches: 50, ..NONE };
        assert_eq!(PRICE.most_ns(work), 10.0 * 1_450.0 + 90.0 * 850.0);
        assert_eq!(PRICE.most_ns(Work { passed_ns: 7, ..NONE }), 0.0);
        // No more than the time that there was.
        assert!(PRICE.most_ns(Work { passed_ns: 10_000, ..work }) <= 10_000.0);
    }

    #[test]
    fn no_run_paid_more_than_the_time_that_passed() {
        let of = |passed_ns| PRICE.of_run(Work { calls: 1_000, passed_ns, ..NONE }).call.ends();
        assert_eq!(of(300_000), [200.0, 250.0]);
        assert_eq!(of(175_000), [100.0, 125.0]);
        assert_eq!(of(10_000), [0.0, 0.0]);
    }

    #[test]
    fn a_range_is_never_upside_down_and_never_a_single_number() {
        assert_eq!(Range::between(-3.0, -5.0).ends(), [0.0, 1.0]);
        assert_eq!(Range::between(8.0, 5.0).ends(), [5.0, 8.0]);
        assert_eq!(Range::between(8.0, 8.0).ends(), [8.0, 10.0]);
        assert_eq!(Range::between(5.0, 9.0).middle(), 7.0);
    }
}
