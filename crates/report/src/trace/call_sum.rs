//! The same call summed, of one image or of several.

use std::collections::BTreeMap;

use iotomy_record::{Call, Margins, SortKey, is_bound, statistic};

use crate::numbers::figure;
use crate::page::Page;

/// A call of all rows of its name.
#[derive(Debug, Default, Clone)]
pub(crate) struct CallSum<'r> {
    pub(crate) name: &'r str,
    pub(crate) error_kinds: BTreeMap<&'r str, u128>,
    /// The sum of every statistic that is a number.
    pub(crate) numbers: Call,
    /// The longest call that ended.
    pub(crate) max: u64,
    /// No call took longer, but which took how long is not known.
    max_is_bound: bool,
    /// Those that had not returned at the end, but for those that never do.
    pub(crate) open: u128,
    /// How far its estimates may be off, where a part of the time was counted.
    pub(crate) margins: Option<Margins>,
    /// The calls that ended, and their time.
    ended: u128,
    ended_ns: u128,
}

impl<'r> CallSum<'r> {
    pub(crate) fn calls(&self) -> u128 {
        self.numbers.calls.into()
    }

    pub(crate) fn errors(&self) -> u128 {
        self.numbers.errors.into()
    }

    pub(crate) fn bytes(&self) -> u128 {
        self.numbers.bytes.into()
    }

    pub(crate) fn wall(&self) -> u128 {
        self.numbers.wall_ns.into()
    }

    pub(crate) fn on_cpu(&self) -> Option<u128> {
        self.numbers.on_cpu_ns.map(u128::from)
    }

    pub(crate) fn blocked(&self) -> Option<u128> {
        self.numbers.blocked_ns.map(u128::from)
    }

    /// The increase since `earlier`; an apparent decrease is 0. Calls in flight and the longest
    /// call are the present ones.
    pub(crate) fn since(&self, earlier: Option<&Self>) -> Self {
        let Some(earlier) = earlier else { return self.clone() };
        let mut row = self.clone();
        row.ended = row.ended.saturating_sub(earlier.ended);
        row.ended_ns = row.ended_ns.saturating_sub(earlier.ended_ns);
        row.numbers = statistic::since(&self.numbers, &mut earlier.numbers.clone());
        row
    }

    fn add(&mut self, call: &'r Call) {
        statistic::add_numbers(&mut self.numbers, call);
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
        let key = key.of_calls();
        // The sort is stable and the rows come by name.
        sums.sort_by_cached_key(|sum| std::cmp::Reverse(sum.value(key)));
        sums
    }

    /// What it is sorted by; 0 for the name.
    pub(super) fn value(&self, key: SortKey) -> u128 {
        if key == SortKey::MAX {
            return self.max.into();
        }
        let number = key.statistic().and_then(|one| (one.field.number)(&self.numbers));
        number.unwrap_or(0).into()
    }
}
