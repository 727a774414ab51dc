//! The structs of `trace.h` for what is kept of single calls on request: paths, the slowest calls, and
//! the one that ended the watch.

use super::layout::{COMM_LEN, Fields, FileKey, Wire, text};
use super::user_stack::UserStack;
use crate::variables::Sums;

/// A path that calls of a thread were given, by outcome.
#[derive(Debug, Clone, Copy)]
pub(super) struct PathKey {
    pub(super) thread: u32,
    pub(super) call: u16,
    pub(super) error: u16,
}

impl Wire for PathKey {
    const SIZE: usize = 16;

    fn read(from: &mut Fields<'_>) -> Self {
        let _hash = from.u64();
        Self { thread: from.u32(), call: from.u16(), error: from.u16() }
    }
}

pub(super) struct PathRow {
    pub(super) calls: u64,
    pub(super) wall_ns: u64,
    /// Where a relative path begins.
    pub(super) directory: Option<FileKey>,
    pub(super) image: u32,
    /// `None` where it could not be read.
    pub(super) text: Option<String>,
}

pub(super) const PATH_TEXT: usize = 384;

/// A path of so many bytes, its end among them; `None` for one that could not be read.
pub(super) fn cut_text(from: &mut Fields<'_>, length: u32) -> Option<String> {
    let length = length as usize;
    let bytes = from.bytes(PATH_TEXT);
    let mut path = text(bytes.get(..length).unwrap_or(bytes));
    if length >= PATH_TEXT {
        path.push('…');
    }
    (length > 0).then_some(path)
}

impl Wire for PathRow {
    const SIZE: usize = 48 + PATH_TEXT;

    fn read(from: &mut Fields<'_>) -> Self {
        let (calls, wall_ns) = (from.u64(), from.u64());
        let directory = FileKey::read(from);
        let (image, length) = (from.u32(), from.u32());
        Self {
            calls,
            wall_ns,
            directory: (directory.dentry != 0).then_some(directory),
            image,
            text: cut_text(from, length),
        }
    }
}

/// As in `trace.h`.
const MOST: usize = 100;

/// `struct slow_call` of `trace.h`.
#[derive(Debug)]
pub(super) struct SlowRow {
    pub(super) end_ns: u64,
    pub(super) wall_ns: u64,
    pub(super) off_ns: u64,
    pub(super) blocked_ns: u64,
    pub(super) returned: i64,
    pub(super) bytes: u64,
    pub(super) arguments: [u64; 6],
    pub(super) file: FileKey,
    pub(super) directory: FileKey,
    pub(super) image: u32,
    pub(super) tid: u32,
    pub(super) call: u32,
    pub(super) waker_tid: u32,
    pub(super) waker_context: u32,
    pub(super) waker_call: i32,
    pub(super) thread: String,
    pub(super) waker: String,
    pub(super) text: Option<String>,
    /// Where the innermost function returns to, if it has no frame.
    pub(super) on_top: CallerRow,
    /// The innermost first.
    pub(super) callers: Vec<CallerRow>,
    /// The stack that it was made on; it is in a table of its own.
    pub(super) stack: Option<UserStack>,
}

/// `struct caller` of `trace.h`.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallerRow {
    /// The file that is mapped there; a dentry of 0: none is.
    pub(super) file: FileKey,
    /// In it, or the address.
    pub(super) at: u64,
}

impl Wire for CallerRow {
    const SIZE: usize = FileKey::SIZE + 8;

    fn read(from: &mut Fields<'_>) -> Self {
        Self { file: FileKey::read(from), at: from.u64() }
    }
}

/// As in `trace.h`.
const CALLERS: usize = 12;

impl Wire for SlowRow {
    const SIZE: usize = 12 * 8
        + 2 * FileKey::SIZE
        + 8 * 4
        + 2 * COMM_LEN
        + PATH_TEXT
        + (1 + CALLERS) * CallerRow::SIZE;

    fn read(from: &mut Fields<'_>) -> Self {
        let (end_ns, wall_ns, off_ns, blocked_ns) =
            (from.u64(), from.u64(), from.u64(), from.u64());
        let (returned, bytes) = (from.u64().cast_signed(), from.u64());
        let arguments = std::array::from_fn(|_| from.u64());
        let (file, directory) = (FileKey::read(from), FileKey::read(from));
        let (image, tid, call) = (from.u32(), from.u32(), from.u32());
        let (waker_tid, waker_context) = (from.u32(), from.u32());
        let (waker_call, length, count) = (from.u32().cast_signed(), from.u32(), from.u32());
        Self {
            end_ns,
            wall_ns,
            off_ns,
            blocked_ns,
            returned,
            bytes,
            arguments,
            file,
            directory,
            image,
            tid,
            call,
            waker_tid,
            waker_context,
            waker_call,
            thread: text(from.bytes(COMM_LEN)),
            waker: text(from.bytes(COMM_LEN)),
            text: cut_text(from, length),
            on_top: CallerRow::read(from),
            callers: callers(from, count),
            stack: None,
        }
    }
}

fn callers(from: &mut Fields<'_>, count: u32) -> Vec<CallerRow> {
    let all: Vec<CallerRow> = (0..CALLERS).map(|_| CallerRow::read(from)).collect();
    all.into_iter().take(count as usize).collect()
}

impl Wire for Sums {
    const SIZE: usize = 3 * 8;

    fn read(from: &mut Fields<'_>) -> Self {
        let mut sum = || from.u64().cast_signed();
        Self { count: sum(), bytes: sum(), duration_ns: sum() }
    }
}

/// `struct firing` of `until.bpf.h`: the call that ended the watch, if one did, and the sums with it.
pub(super) struct FiringRow(pub(super) Option<(SlowRow, Sums)>);

impl Wire for FiringRow {
    const SIZE: usize = 8 + Sums::SIZE + SlowRow::SIZE;

    fn read(from: &mut Fields<'_>) -> Self {
        let _lock = from.u64();
        let sums = Sums::read(from);
        let call = SlowRow::read(from);
        Self((call.end_ns > 0).then_some((call, sums)))
    }
}

/// `struct ring_firing` of `ring_where.bpf.h`: the same of a request of io_uring.
pub(super) struct RingFiringRow(pub(super) Option<(SlowRow, Sums)>);

impl Wire for RingFiringRow {
    const SIZE: usize = FiringRow::SIZE - 8;

    fn read(from: &mut Fields<'_>) -> Self {
        let sums = Sums::read(from);
        let call = SlowRow::read(from);
        Self((call.end_ns > 0).then_some((call, sums)))
    }
}

/// `struct slowest` of `slowest.bpf.h`: those that are filled, each with its place.
pub(super) struct SlowRows(pub(super) Vec<(u32, SlowRow)>);

impl Wire for SlowRows {
    const SIZE: usize = 8 + MOST * (8 + SlowRow::SIZE);

    fn read(from: &mut Fields<'_>) -> Self {
        let _lock_and_keys = from.bytes(8 + MOST * 8);
        let rows = (0..).zip((0..MOST).map(|_| SlowRow::read(from)));
        Self(rows.filter(|(_, row)| row.wall_ns > 0).collect())
    }
}
