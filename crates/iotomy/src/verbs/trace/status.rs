//! The exit status of a watch.

use std::process::ExitCode;

use anyhow::Result;
use iotomy_record::Exit;

use crate::errors::{COULD_NOT_RUN, print_error};
use crate::manual::{Fact, NO_PROGRAM, NOT_EXECUTABLE};

/// How a trace ends.
pub(super) const TRACE_STATUS: &[Fact] = &[
    ("status of CMD", "CMD ran and exited. Without a CMD it is 0."),
    ("128 + n", "Signal n ended CMD."),
    NO_PROGRAM,
    NOT_EXECUTABLE,
    ("3", "With --until: a call ended the watch, however CMD exited afterwards."),
    ("1", "With --until and no CMD: the watch ended otherwise."),
    COULD_NOT,
];

/// How a watch of a command ends.
pub(in crate::verbs) const WATCH_STATUS: &[Fact] = &[
    ("status of CMD", "CMD ran and exited. Without a CMD it is 0."),
    ("128 + n", "Signal n ended CMD."),
    NO_PROGRAM,
    NOT_EXECUTABLE,
    COULD_NOT,
];

const COULD_NOT: Fact = (
    "2",
    "The command line is wrong, the watch could not begin, or CMD succeeded and its report or record \
     could not be written, or its run not be kept (--save).",
);

/// The status where a call ended the watch.
const ENDED_BY_CALL: u8 = 3;

/// The status where no call ended a watch that one was to end.
const NOT_ENDED_BY_CALL: u8 = 1;

/// Of a command: its own, unless that is 0 and an output failed.
pub(in crate::verbs) fn ended(exit: Option<Exit>, written: Result<()>, is_kept: bool) -> ExitCode {
    let own = u8::try_from(exit.map_or(0, Exit::status)).unwrap_or(u8::MAX);
    let failed = written.map_err(|error| print_error(&error)).is_err() || !is_kept;
    ExitCode::from(if own == 0 && failed { COULD_NOT_RUN } else { own })
}

/// Of a command whose watch a call has ended.
pub(super) fn ended_by_call(written: Result<()>, is_kept: bool) -> ExitCode {
    ended(Some(Exit::Code(ENDED_BY_CALL.into())), written, is_kept)
}

/// Without a command, where a call was to end the watch.
pub(super) fn without_command(is_ended: bool, written: Result<()>, is_kept: bool) -> ExitCode {
    match (written.is_ok() && is_kept, is_ended) {
        (true, true) => ENDED_BY_CALL.into(),
        (true, false) => NOT_ENDED_BY_CALL.into(),
        (false, _) => ended(None, written, is_kept),
    }
}
