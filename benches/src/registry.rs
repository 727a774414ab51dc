//! The benches in the order of their execution.

use crate::bench::Bench;
use crate::{anatomy, copy, d, files, live, ports, race, report, rings, services, trace, wait};

/// Every bench.
pub static BENCHES: &[&Bench] = &[
    &trace::BENCH,
    &rings::BENCH,
    &d::BENCH,
    &services::BENCH,
    &live::BENCH,
    &race::BENCH,
    &copy::BENCH,
    &wait::BENCH,
    &ports::BENCH,
    &files::BENCH,
    &anatomy::BENCH,
    &report::BENCH,
];

/// Describes the durations of these benches, bench by bench.
pub fn durations<'a>(benches: impl Iterator<Item = &'a Bench> + Clone) -> String {
    let each: Vec<String> =
        benches.clone().map(|bench| format!("{} {}", bench.name, bench.minutes)).collect();
    let all: u32 = benches.map(|bench| bench.minutes).sum();
    format!("some {all} minutes in all ({})", each.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_how_long_is_said_beforehand() {
        let some = BENCHES.iter().copied().filter(|bench| ["copy", "wait"].contains(&bench.name));
        assert_eq!(durations(some), "some 31 minutes in all (copy 28, wait 3)");
    }
}
