//! What windows tell of the whole while a watch goes on: for its looks.
//!
//! The one invariant: what came since a look has one factor. The factor changes only between two looks, while no window is
//! open ([`super::Sampling::pause`]), and calls that were entered before do not count.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use iotomy_record::SampledTime;
use iotomy_stats::VarianceSum;

use super::name_at;
use crate::bpf::object::{Seen, Shutter};

/// The variances of the numbers of calls, by place in the programs' table.
#[derive(Default)]
pub(super) struct Variances {
    calls: BTreeMap<usize, VarianceSum>,
    /// Windows since the factor changed.
    windows: u64,
}

impl Variances {
    /// Adds what the window that ends has of a call, of which each stands for so many.
    pub(super) fn add(&mut self, at: usize, n: u32, calls: u64) {
        let sum = self.calls.entry(at).or_insert_with(|| VarianceSum::after(self.windows));
        sum.add(n.into(), calls as f64);
    }

    pub(super) fn end_window(&mut self) {
        self.windows += 1;
    }

    /// The factor changes.
    pub(super) fn turn(&mut self) {
        self.windows = 0;
        self.calls.values_mut().for_each(VarianceSum::turn);
    }

    /// By the names of calls; those that share a place are together, without one.
    fn by_name(&self) -> Vec<(String, f64)> {
        let mut shared = 0.0;
        let mut named = Vec::new();
        for (at, sum) in self.calls.iter().filter(|(_, sum)| sum.variance() > 0.0) {
            match name_at(*at) {
                Some(name) => named.push((name, sum.variance())),
                None => shared += sum.variance(),
            }
        }
        named.extend((shared > 0.0).then(|| (String::new(), shared)));
        named
    }
}

/// A window is added whole, or the thread that adds it has ended.
pub(super) fn locked(variances: &Mutex<Variances>) -> MutexGuard<'_, Variances> {
    variances.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What looks have of windows.
pub(in crate::bpf) struct Estimates {
    shutter: Shutter,
    n: u32,
    variances: Arc<Mutex<Variances>>,
    /// At the last look.
    seen: Seen,
    /// What it stands for.
    calls: u64,
    waits: u64,
}

impl Estimates {
    /// # Errors
    /// The kernel's error.
    pub(super) fn new(
        shutter: Shutter,
        n: u32,
        variances: Arc<Mutex<Variances>>,
    ) -> Result<Self, String> {
        let seen = sum(&shutter.seen()?);
        Ok(Self { shutter, n, variances, seen, calls: 0, waits: 0 })
    }

    /// One window of so many is open.
    pub(in crate::bpf) fn n(&self) -> u32 {
        self.n
    }

    /// The same from now on, after a look while none was open.
    pub(in crate::bpf) fn turn(&mut self, n: u32) {
        self.n = n;
    }

    /// The estimates with a look that is taken now.
    ///
    /// # Errors
    /// The kernel's error.
    pub(in crate::bpf) fn look(&mut self) -> Result<SampledTime, String> {
        let seen = sum(&self.shutter.seen()?);
        let more = seen.since(self.seen);
        self.seen = seen;
        let n = u64::from(self.n);
        self.calls = self.calls.saturating_add(more.calls.saturating_mul(n));
        self.waits = self.waits.saturating_add(more.waits.saturating_mul(n));
        let variances = locked(&self.variances).by_name();
        Ok(SampledTime { factor: self.n, calls: self.calls, waits: self.waits, variances })
    }
}

fn sum(all: &[Seen]) -> Seen {
    let mut sum = Seen::default();
    all.iter().for_each(|one| sum.add(*one));
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_have_their_variance_by_name_and_those_without_a_place_share_one() {
        let mut variances = Variances::default();
        let window = |variances: &mut Variances, n, calls: &[(usize, u64)]| {
            calls.iter().for_each(|(at, count)| variances.add(*at, n, *count));
            variances.end_window();
        };
        window(&mut variances, 2, &[(0, 5), (1, 3)]);
        window(&mut variances, 2, &[(0, 8), (1, 3), (511, 4), (1_023, 2)]);
        // Of read, 2 windows of a step of 3; of those that share a place, of 4 and of 2; write never changed.
        let of_two = |step: f64| 2.0 * step * step;
        let read = ("read".to_owned(), of_two(3.0));
        assert_eq!(variances.by_name(), [read, (String::new(), of_two(4.0) + of_two(2.0))]);
        // Windows of another factor are compared with none of those before.
        variances.turn();
        let before = variances.by_name();
        window(&mut variances, 100, &[(0, 500)]);
        assert_eq!(variances.by_name(), before);
    }
}
