//! Arbitrary requests of connections.

use proptest::prelude::*;

use super::{connections::socket, image, statistics, times};
use crate::Exchange;

pub(super) fn exchange() -> impl Strategy<Value = Exchange> {
    (image(), socket(), statistics(), times()).prop_map(
        |((pid, exec), ends, row, wall_times): (_, _, Exchange, _)| Exchange {
            pid,
            exec,
            image: (row.moved % 3) as u32,
            max_is_bound: row.max_ns % 5 == 0,
            ends,
            wall_times,
            ..row
        },
    )
}
