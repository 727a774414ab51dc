//! The calls that took longest, for an observer that sees each.

use std::cmp::Reverse;

use iotomy_record::WholeCall;

/// A bounded number of calls, the longest.
#[derive(Debug, Default)]
pub(crate) struct Slowest {
    most: usize,
    /// In no order.
    calls: Vec<WholeCall>,
}

impl Slowest {
    /// With room for so many.
    pub(crate) fn with_room(most: u32) -> Self {
        Self { most: most.try_into().unwrap_or(usize::MAX), calls: Vec::new() }
    }

    /// Whether a call that took so long is one of them.
    pub(crate) fn admits(&self, wall_ns: u64) -> bool {
        self.calls.len() < self.most || self.calls.iter().any(|call| call.wall_ns < wall_ns)
    }

    /// Keeps a call, in place of the shortest where there is no room.
    pub(crate) fn keep(&mut self, call: WholeCall) {
        self.calls.push(call);
        if self.calls.len() > self.most {
            let shortest = (0..self.calls.len()).min_by_key(|at| self.calls[*at].wall_ns);
            shortest.map(|at| self.calls.swap_remove(at));
        }
    }

    /// The longest first; it begins anew.
    pub(crate) fn take(&mut self) -> Vec<WholeCall> {
        let mut calls = std::mem::take(&mut self.calls);
        calls.sort_by_key(|call| Reverse(call.wall_ns));
        calls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_are_kept() {
        let mut slowest = Slowest::with_room(3);
        for wall_ns in [5, 1, 9, 7, 3, 9, 2] {
            if slowest.admits(wall_ns) {
                slowest.keep(WholeCall { wall_ns, ..WholeCall::default() });
            }
        }
        let kept: Vec<u64> = slowest.take().iter().map(|call| call.wall_ns).collect();
        assert_eq!(kept, [9, 9, 7]);
        assert!(slowest.admits(1) && slowest.take().is_empty());
        assert!(!Slowest::with_room(0).admits(1));
    }
}
