//! The parts of an [`Anatomy`] whose rows name programs, under the names that users know these by.

use std::borrow::Cow;

use iotomy_record::{Anatomy, BlockIo, SlowestCalls, Stack};

use crate::trace::images::Names;

/// The work of the block layer.
pub(super) fn block(record: &Anatomy) -> Option<Cow<'_, BlockIo>> {
    let names = Names::from_record(&record.trace);
    let mut block = Cow::Borrowed(record.block.as_ref()?);
    for at in 0..block.requests.len() {
        let row = &block.requests[at];
        if let Some(name) = names.other_name(&row.exec, row.pid) {
            block.to_mut().requests[at].exec = name;
        }
    }
    for at in 0..block.read_ahead.len() {
        let row = &block.read_ahead[at];
        if let Some(name) = names.other_name(&row.exec, row.pid) {
            block.to_mut().read_ahead[at].exec = name;
        }
    }
    Some(block)
}

/// The slowest calls.
pub(super) fn timelines(record: &Anatomy) -> Option<Cow<'_, SlowestCalls>> {
    let names = Names::from_record(&record.trace);
    let mut timelines = Cow::Borrowed(record.timelines.as_ref()?);
    for at in 0..timelines.calls.len() {
        let call = &timelines.calls[at];
        if let Some(name) = names.other_name(&call.exec, call.pid) {
            timelines.to_mut().calls[at].exec = name;
        }
    }
    Some(timelines)
}

/// A stack.
pub(super) fn stack<'r>(stack: &'r Stack, names: &Names<'_>) -> Cow<'r, Stack> {
    match names.other_name(&stack.exec, stack.pid) {
        Some(exec) => Cow::Owned(Stack { exec, ..stack.clone() }),
        None => Cow::Borrowed(stack),
    }
}
