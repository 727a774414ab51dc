//! The errors of a copy between its two ends: a mover that failed, or all that were refused.

use std::io::ErrorKind;

use iotomy_movers::chooser::Report;
use iotomy_movers::{Kind, MoveError, Side};
use rustix::io::Errno;

use crate::CopyError;
use crate::error::{message, more_room, number};
use crate::source::Source;
use crate::target::Target;

/// Why a copy ended early.
pub(crate) enum Stop {
    /// It could not be done, or a check found a difference.
    Error(CopyError),
    /// The reader of the target has closed its end, which is not an error.
    ReaderGone,
}

impl From<CopyError> for Stop {
    fn from(error: CopyError) -> Self {
        Self::Error(error)
    }
}

/// A mover that failed, `before` bytes of the target behind it.
pub(crate) fn failed(error: MoveError, source: &Source, target: &Target, before: u64) -> Stop {
    if error.source.kind() == ErrorKind::BrokenPipe && target.is_stream() {
        return Stop::ReaderGone;
    }
    let attempt = match error.side {
        Side::Source => format!("read {}", source.name),
        Side::Target if error.call == "close" => format!("close {}", target.name),
        Side::Target => format!("write {}", target.name),
        Side::Either => format!("copy {} to {}", source.name, target.name),
    };
    let written = before + error.moved.bytes;
    let mut rest = format!(" after {} bytes", number(written));
    if error.lost > 0 {
        rest += &format!(", {} more were taken from {}", number(error.lost), source.name);
        rest += " and are lost";
    }
    if let Some(state) = target.state(written) {
        rest += "; ";
        rest += &state;
    }
    rest += remedy(&error, target);
    Stop::Error(CopyError::failed(attempt, error.source).with(&rest))
}

fn remedy(error: &MoveError, target: &Target) -> &'static str {
    match error.source.kind() {
        ErrorKind::StorageFull if target.end().kind() == Kind::Block => {
            "; the device ends there: copy less with --count, or to a larger one"
        }
        ErrorKind::FileTooLarge => "; see `ulimit -f`, and what the file system can hold",
        ErrorKind::IsADirectory => "; name the files in it",
        _ if error.is_late_refusal() => {
            "; copy it again with --mover read-write, which is never refused"
        }
        _ => more_room(&error.source, target.may_be_atomic()),
    }
}

/// The advice where there is no memory.
pub(crate) const SMALLER: &str =
    "make --block-size, --depth or --threads smaller, or see `ulimit -v` for what it may have";

/// Every mover of the plan was refused by the kernel.
pub(crate) fn all_refused(
    source: &Source,
    target: &Target<'_>,
    report: &Report,
    before: u64,
) -> CopyError {
    let answer = |errno: Option<Errno>| match errno {
        Some(errno) => message(&errno.into()),
        None => "moved nothing, without an error".to_owned(),
    };
    let all: Vec<String> = report
        .refused
        .iter()
        .map(|r| format!("{}: {}: {}", r.mover, r.call, answer(r.errno)))
        .collect();
    let mut text = format!("cannot copy {} to {}: ", source.name, target.name) + &all.join("; ");
    if before > 0 {
        text += &format!(" after {} bytes", number(before));
    }
    if let Some(state) = target.state(before) {
        text += "; ";
        text += &state;
    }
    let hint = match report.refused.last() {
        Some(last) if last.errno == Some(Errno::NOMEM) => SMALLER,
        _ => "leave out --mover and --reflink",
    };
    CopyError::Refused(text + "; " + hint)
}
