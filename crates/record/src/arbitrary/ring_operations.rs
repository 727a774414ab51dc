//! Arbitrary operations of rings.

use proptest::collection::vec;
use proptest::prelude::*;

use super::{histogram, image, number, text, times};
use crate::RingOperation;

pub(super) fn ring_operation() -> impl Strategy<Value = RingOperation> {
    let op = prop_oneof![4 => "read|write|send_zc|poll_add", 1 => text()];
    let kinds = prop::collection::btree_map(prop_oneof!["E[A-Z]{2,8}", text()], number(), 0..4);
    let spread = (histogram(), histogram(), times()).boxed();
    (image(), op, vec(number(), 19), kinds, spread).prop_map(
        |((pid, exec), op, n, error_kinds, (result_log2, wall_log2, wall_times))| RingOperation {
            pid,
            exec,
            image: (n[13] % 3) as u32,
            op,
            submitted: n[0],
            completed: n[1],
            errors: n[2],
            error_kinds,
            cancelled: n[3],
            in_flight: n[4],
            bytes: n[5],
            result_log2,
            wall_ns: n[6],
            max_ns: n[7],
            max_is_bound: n[7] % 5 == 0,
            wall_log2,
            wall_times,
            inline: n[8],
            polled: n[9],
            worker: n[10],
            sqpoll: n[11],
            multishot_completions: n[12],
            overflows: n[13],
            worker_unbounded: n[14],
            before: n[15],
            registered_files: n[16],
            forced_async: n[17],
            unlinked: n[18],
        },
    )
}
