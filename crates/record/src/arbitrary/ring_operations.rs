//! Arbitrary operations of rings.

use proptest::prelude::*;

use super::{histogram, image, number, statistics, text, times};
use crate::RingOperation;

pub(super) fn ring_operation() -> impl Strategy<Value = RingOperation> {
    let op = prop_oneof![4 => "read|write|send_zc|poll_add", 1 => text()];
    let kinds = prop::collection::btree_map(prop_oneof!["E[A-Z]{2,8}", text()], number(), 0..4);
    let spread = (histogram(), histogram(), times()).boxed();
    (image(), op, statistics(), kinds, spread).prop_map(
        |((pid, exec), op, row, error_kinds, spread): (_, _, RingOperation, _, _)| {
            let (result_log2, wall_log2, wall_times) = spread;
            RingOperation {
                pid,
                exec,
                image: (row.overflows % 3) as u32,
                op,
                error_kinds,
                result_log2,
                max_is_bound: row.max_ns % 5 == 0,
                wall_log2,
                wall_times,
                ..row
            }
        },
    )
}
