//! The same call summed, of one image or of several: every statistic of [`Call`], wide enough for any number of rows.

use std::collections::BTreeMap;

use iotomy_record::statistic::{Joins, Statistic, Statistics};
use iotomy_record::{Call, SortKey, is_bound};

use crate::numbers::figure;
use crate::page::Page;

/// A call of all rows of its name.
#[derive(Debug, Default, Clone)]
pub(crate) struct CallSum<'r> {
    pub(crate) name: &'r str,
    pub(crate) error_kinds: BTreeMap<&'r str, u128>,
    /// In the order of the statistics; none of what no row knows.
    sums: Vec<Option<u128>>,
    /// The longest call that ended.
    pub(crate) max: u64,
    /// No call took longer, but which took how long is not known.
    max_is_bound: bool,
    /// Those that had not returned at the end, but for those that never do.
    pub(crate) open: u128,
    /// The calls that ended, and their time.
    ended: u128,
    ended_ns: u128,
}

impl<'r> CallSum<'r> {
    /// A statistic, if it is known.
    pub(crate) fn of(&self, statistic: &Statistic<Call>) -> Option<u128> {
        self.named(statistic.name)
    }

    fn named(&self, name: &str) -> Option<u128> {
        let at = Call::statistics().position(|one| one.name == name)?;
        self.sums.get(at).copied().flatten()
    }

    pub(crate) fn calls(&self) -> u128 {
        self.named("calls").unwrap_or(0)
    }

    pub(crate) fn errors(&self) -> u128 {
        self.named("errors").unwrap_or(0)
    }

    pub(crate) fn bytes(&self) -> u128 {
        self.named("bytes").unwrap_or(0)
    }

    pub(crate) fn wall(&self) -> u128 {
        self.named("wall_ns").unwrap_or(0)
    }

    pub(crate) fn on_cpu(&self) -> Option<u128> {
        self.named("on_cpu_ns")
    }

    pub(crate) fn blocked(&self) -> Option<u128> {
        self.named("blocked_ns")
    }

    pub(crate) fn in_flight(&self) -> u128 {
        self.named("in_flight").unwrap_or(0)
    }

    /// The number of these that were in progress when the watch began, and returned.
    pub(crate) fn entered_before(&self) -> u128 {
        self.named("entered_before").unwrap_or(0)
    }

    /// The increase since `earlier`; an apparent decrease is 0. Calls in flight and the longest
    /// call are the present ones.
    pub(crate) fn since(&self, earlier: Option<&Self>) -> Self {
        let Some(earlier) = earlier else { return self.clone() };
        let mut row = self.clone();
        row.ended = row.ended.saturating_sub(earlier.ended);
        row.ended_ns = row.ended_ns.saturating_sub(earlier.ended_ns);
        let sums = row.sums.iter_mut().zip(&earlier.sums).zip(Call::statistics());
        for ((now, before), _) in sums.filter(|(_, one)| one.shape.joins == Joins::Sum) {
            *now = now.map(|now| now.saturating_sub(before.unwrap_or(0)));
        }
        row
    }

    fn add(&mut self, call: &'r Call) {
        self.sums.resize(Call::FIELDS.len(), None);
        for (sum, statistic) in self.sums.iter_mut().zip(Call::statistics()) {
            let Some(number) = (statistic.field.number)(call).map(u128::from) else { continue };
            let known = sum.get_or_insert_default();
            *known = match statistic.shape.joins {
                Joins::Sum | Joins::Gauge => *known + number,
                Joins::Most => number.max(*known),
            };
        }
        for (kind, n) in &call.error_kinds {
            *self.error_kinds.entry(kind).or_default() += u128::from(*n);
        }
        if !call.syscall.starts_with("exit") {
            self.open += u128::from(call.in_flight.saturating_sub(call.entered_before));
        }
        let ended = call.ended();
        self.ended += u128::from(ended.calls);
        self.ended_ns += u128::from(ended.wall_ns);
        let longest = (ended.max_ns, call.max_is_bound);
        self.max_is_bound = is_bound((self.max, self.max_is_bound), longest);
        self.max = self.max.max(ended.max_ns);
    }

    /// The longest call in µs, as a bound where only that is known.
    pub(crate) fn max_us(&self, page: &Page<'_>) -> String {
        if self.ended == 0 {
            return String::new();
        }
        let at_most = if self.max_is_bound { page.at_most() } else { "" };
        format!("{at_most}{}", figure(self.max as f64 / 1e3))
    }

    /// Of the calls that ended, if any did.
    pub(crate) fn mean_us(&self) -> Option<f64> {
        (self.ended > 0).then(|| self.ended_ns as f64 / self.ended as f64 / 1e3)
    }

    /// The sum over every call of `calls`, under one name.
    pub(crate) fn total(name: &'r str, calls: impl IntoIterator<Item = &'r Call>) -> Self {
        let mut total = Self { name, ..Self::default() };
        calls.into_iter().for_each(|call| total.add(call));
        total
    }

    /// Sums by name, sorted by `key`, the largest first; equals by name.
    pub(crate) fn by_name(calls: impl IntoIterator<Item = &'r Call>, key: SortKey) -> Vec<Self> {
        let mut by_name: BTreeMap<&str, Self> = BTreeMap::new();
        for call in calls {
            by_name.entry(&call.syscall).or_default().add(call);
        }
        let mut sums: Vec<_> =
            by_name.into_iter().map(|(name, sum)| Self { name, ..sum }).collect();
        // The sort is stable and the rows come by name.
        sums.sort_by_cached_key(|sum| std::cmp::Reverse(sum.value(key)));
        sums
    }

    /// What it is sorted by; 0 for the name.
    pub(super) fn value(&self, key: SortKey) -> u128 {
        key.statistic().and_then(|statistic| self.of(statistic)).unwrap_or(0)
    }
}
