//! Random records of D programs.

use proptest::collection::{btree_map, btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::{exit, machine, number, text};
use crate::{DBucket, DKey, DRow, DRun};

/// A record that [`crate::store::parse_d`] accepts.
pub fn d() -> impl Strategy<Value = DRun> {
    let texts = (text(), text(), vec(text(), 0..3), vec(text(), 0..3));
    let ends = (number(), option::of(exit()), option::of(any::<i32>()));
    let output = (vec(text(), 0..6), number());
    let lost = (btree_map(text(), number(), 0..3), btree_map(text(), number(), 0..3));
    (machine(), texts, ends, vec(row(), 0..12), output, lost).prop_map(
        |(machine, (script, program, arguments, command), ends, aggregations, output, lost)| DRun {
            schema: DRun::SCHEMA.to_owned(),
            started: "2025-03-01T10:20:30.5Z".to_owned(),
            machine,
            script,
            program,
            arguments,
            command,
            wall_ns: ends.0,
            exit: ends.1,
            status: ends.2,
            aggregations,
            output: output.0.join("\n"),
            output_cut_bytes: output.1,
            drops: lost.0,
            faults: lost.1,
        },
    )
}

fn row() -> impl Strategy<Value = DRow> {
    let value = (any::<bool>(), any::<i64>(), buckets());
    let normal = option::of(any::<i64>().prop_filter("a divisor", |normal| *normal != 0));
    let kind = select(vec!["count", "sum", "avg", "quantize", "lquantize"]);
    let name = prop_oneof![Just(String::new()), Just("a".to_owned()), text()];
    (name, kind, vec(key(), 0..3), value, normal, any::<bool>()).prop_map(
        |(name, kind, keys, (is_scalar, value, buckets), normal, printed)| DRow {
            name,
            kind: kind.to_owned(),
            keys,
            value: is_scalar.then_some(value),
            buckets: if is_scalar { Vec::new() } else { buckets },
            normal,
            printed,
        },
    )
}

fn key() -> impl Strategy<Value = DKey> {
    prop_oneof![
        any::<i64>().prop_map(DKey::Integer),
        (i64::MAX as u64 + 1..=u64::MAX).prop_map(DKey::Unsigned),
        text().prop_map(DKey::Text),
    ]
}

/// Buckets one behind the other.
fn buckets() -> impl Strategy<Value = Vec<DBucket>> {
    let bounds = prop_oneof![any::<i64>().boxed(), (-9..9_i64).boxed()];
    (btree_set(bounds, 0..10), vec(any::<i64>(), 10), any::<bool>()).prop_map(
        |(bounds, counts, is_open)| {
            let bounds: Vec<i64> = bounds.into_iter().collect();
            let pairs = bounds.chunks_exact(2).zip(counts);
            let bucket = |(ends, count): (&[i64], i64)| {
                let is_first = ends[0] == bounds[0] && is_open;
                DBucket { low: (!is_first).then_some(ends[0]), high: Some(ends[1]), count }
            };
            pairs.map(bucket).collect()
        },
    )
}
