//! Records compared with each other.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::{number, positive, text};
use crate::{Against, Change, Difference, RaceVerdict};

/// One that a record may hold.
pub(super) fn against() -> impl Strategy<Value = Against> {
    let tables = (vec(difference().boxed(), 0..4), vec(change().boxed(), 0..4));
    (text(), vec(number(), 0..4), tables).prop_map(|(baseline, runs, tables)| Against {
        baseline,
        started: "2025-02-01T10:20:30Z".to_owned(),
        runs,
        differences: tables.0,
        changes: tables.1,
    })
}

fn difference() -> impl Strategy<Value = Difference> {
    (text(), text(), text(), any::<bool>()).prop_map(|(what, then, now, matters)| Difference {
        what,
        then,
        now,
        matters,
    })
}

fn change() -> impl Strategy<Value = Change> {
    let verdicts = [
        RaceVerdict::Faster,
        RaceVerdict::Slower,
        RaceVerdict::NoDifference,
        RaceVerdict::Undecided,
    ];
    let names = (text(), text(), select(vec!["ns", "bytes/s", "", "x"]));
    let values = ([positive(), positive()], option::of(positive()));
    let ends = option::of([positive(), positive()]);
    let verdict = option::of(select(verdicts.to_vec()));
    let counts = ([number(), number(), number()], positive());
    let more = (option::of(number()), option::of([positive(), positive()]));
    (names, values, ends, counts, verdict, more).prop_map(
        |(names, ([then, now], ratio), ci95, counts, verdict, (more_runs, range))| Change {
            subject: names.0,
            measure: names.1,
            unit: names.2.to_owned(),
            then,
            now,
            runs_then: counts.0[0],
            runs_now: counts.0[1],
            ratio,
            ci95,
            verdict,
            sessions: counts.0[2],
            min_effect: counts.1,
            more_runs,
            range,
        },
    )
}
