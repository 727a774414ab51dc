//! The calls that took longest, from the kernel's table to the record.

use std::sync::Arc;

use iotomy_record::{Caller, WakeContext, Waker, WholeCall};
use iotomy_sys::syscalls;

use super::books::{Books, Paths};
use super::details::{CallerRow, SlowRow};
use super::layout::{CALL_NUMBER, FileKey, Image};
use super::names::{abi, call_or_ring, exec, path, ring_operation};
use crate::attach;
use crate::naming::{call_name, error_name, join, plain_name};
use crate::ring_names;

/// The calls in the record's terms, the longest first; `number` tells images of one name apart.
pub(super) fn calls(
    books: &Books,
    rows: Vec<SlowRow>,
    began_ns: u64,
    number: &dyn Fn(u32) -> u32,
) -> Vec<WholeCall> {
    let own = std::process::id();
    let of_watched = |row: &SlowRow| books.images.get(&row.image).is_some_and(|i| i.pid != own);
    let mut calls: Vec<WholeCall> =
        rows.into_iter().filter(of_watched).map(|row| one(books, row, began_ns, number)).collect();
    calls.sort_by_key(|call| std::cmp::Reverse(call.wall_ns));
    calls
}

/// One call in the record's terms, whatever is known of its process: of one whose program image found no room, and that
/// has ended, only the thread is.
pub(super) fn one(
    books: &Books,
    row: SlowRow,
    began_ns: u64,
    number: &dyn Fn(u32) -> u32,
) -> WholeCall {
    let image: Option<&Image> = books.images.get(&row.image);
    let pid = image.map(|image| image.pid).or_else(|| attach::process(row.tid).ok());
    WholeCall {
        pid: pid.unwrap_or(row.tid),
        exec: exec(books, row.image),
        image: number(row.image),
        ..call(&books.paths, row, began_ns)
    }
}

fn call(paths: &Paths, row: SlowRow, began_ns: u64) -> WholeCall {
    let syscall = call_or_ring(row.call);
    let operation = ring_operation(row.call);
    let plain = plain_name(&syscall);
    let failed = (-4095..0).contains(&row.returned);
    let is_gone = plain.starts_with("exec") && !failed;
    let count = match &operation {
        // Its descriptor, where it has one.
        Some(_) => usize::from(row.arguments[0].cast_signed() >= 0),
        None if is_gone => 0,
        None => syscalls::arity(plain).map_or(6, usize::from),
    };
    let place = |key: FileKey| {
        let known = paths.directories.get(&key);
        (key.dentry != 0).then(|| {
            known.map_or_else(
                || String::from("…"),
                |name| match &name.socket {
                    Some(socket) => socket.socket().text(),
                    None => path(name, key.inode),
                },
            )
        })
    };
    let caller = |row: &CallerRow| Caller {
        function: None,
        file: place(row.file),
        offset: row.at,
        inode: row.file.inode,
    };
    let callers = row.callers.iter().map(caller).collect();
    let on_top = (!row.callers.is_empty()).then(|| caller(&row.on_top));
    let stack = row.stack.map(|stack| Arc::new(stack.copied(&place)));
    let given = row.text.map(|text| join(place(row.directory).as_deref(), &text));
    let moves_bytes = match &operation {
        Some(operation) => ring_names::moves_bytes(operation),
        None => syscalls::returns_bytes(plain),
    };
    // Of a request it is not known who worked for it when.
    let split = |ns: u64| operation.is_none().then_some(ns);
    WholeCall {
        tid: row.tid,
        thread: row.thread,
        arguments: row.arguments[..count].to_vec(),
        path: given.or_else(|| place(row.file)),
        returned: if failed { 0 } else { row.returned },
        error: failed.then(|| error_name(row.returned.unsigned_abs() as u32)),
        bytes: (moves_bytes && !failed).then_some(row.bytes),
        start_ns: row.end_ns.saturating_sub(row.wall_ns).saturating_sub(began_ns),
        wall_ns: row.wall_ns,
        on_cpu_ns: split(row.wall_ns.saturating_sub(row.off_ns)),
        blocked_ns: split(row.blocked_ns),
        runnable_ns: split(row.off_ns.saturating_sub(row.blocked_ns)),
        woken_by: context(row.waker_context).map(|context| Waker {
            context,
            tid: row.waker_tid,
            syscall: u16::try_from(row.waker_call)
                .ok()
                .map(|call| call_name(abi(call), u32::from(call & CALL_NUMBER))),
            thread: row.waker,
        }),
        callers,
        on_top,
        stack,
        syscall,
        ..WholeCall::default()
    }
}

/// The numbers of `trace.h`.
fn context(number: u32) -> Option<WakeContext> {
    match number {
        0 => None,
        1 => Some(WakeContext::Thread),
        2 => Some(WakeContext::Softirq),
        3 => Some(WakeContext::Interrupt),
        _ => Some(WakeContext::Unknown),
    }
}
