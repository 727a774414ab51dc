//! Random records of copies.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::{machine, number, text};
use crate::{CopyPart, CopyPlan, CopyRun, MoverReason, MoverRefusal, TriedMover};

/// A record that [`crate::store::parse_copy`] accepts.
pub fn copy() -> impl Strategy<Value = CopyRun> {
    let names = (vec(text(), 0..4), text(), option::of(text()), text());
    let figures = (number(), number(), number(), number(), option::of(number()));
    let ends =
        (option::of(any::<bool>()), number(), vec(text(), 0..3), vec(super::finding(), 0..3));
    (machine(), names, figures, ends, vec(part(), 0..4)).prop_map(
        |(machine, (sources, target, mover, contract), figures, ends, copies)| CopyRun {
            schema: CopyRun::SCHEMA.to_owned(),
            started: "2025-03-01T10:20:30.5Z".to_owned(),
            machine,
            sources,
            target,
            mover,
            bytes: copies.iter().map(|part| part.bytes).sum(),
            referenced_bytes: figures.0,
            copied_bytes: figures.1,
            touched_bytes: figures.2,
            wall_ns: figures.3,
            fsync_ns: figures.4,
            verified: ends.0,
            errors: ends.1,
            messages: ends.2,
            contract,
            copies,
            findings: ends.3,
        },
    )
}

fn part() -> impl Strategy<Value = CopyPart> {
    let names = (text(), text(), text(), text(), option::of(text()), option::of(text()));
    // Their sum is a number of the record.
    let bytes = number().prop_map(|bytes| bytes / 4);
    (names, bytes, [(); 4].map(|()| number()), option::of(number()), plan()).prop_map(
        |(names, bytes, figures, dirty_bytes, plan)| CopyPart {
            source: names.0,
            source_is: names.1,
            target: names.2,
            target_is: names.3,
            mover: names.4,
            bytes,
            referenced_bytes: figures[0],
            copied_bytes: figures[1],
            touched_bytes: figures[2],
            wall_ns: figures[3],
            plan,
            error: names.5,
            dirty_bytes,
        },
    )
}

fn plan() -> impl Strategy<Value = CopyPlan> {
    let refusal = (text(), option::of(text()), text());
    let refusal = refusal.prop_map(|(call, errno, said)| MoverRefusal { call, errno, said });
    let tried = (text(), text(), option::of(text()), refusal);
    let tried = tried.prop_map(|(mover, reason, probed, refused)| TriedMover {
        mover,
        reason,
        probed,
        refused: Some(refused),
    });
    (vec(tried, 0..3), any::<bool>(), vec(reason(), 0..3), vec(reason(), 0..3)).prop_map(
        |(mut tried, served, spare, unsuited)| {
            if let Some(last) = tried.last_mut().filter(|_| served) {
                last.refused = None;
            }
            CopyPlan { tried, spare, unsuited }
        },
    )
}

fn reason() -> impl Strategy<Value = MoverReason> {
    let texts = (text(), text(), option::of(text()));
    texts.prop_map(|(mover, reason, probed)| MoverReason { mover, reason, probed })
}
