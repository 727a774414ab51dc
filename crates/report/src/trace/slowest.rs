//! The calls that took longest, each whole.
//!
//! Computed by `note_slow` in `crates/observe/src/bpf/slowest.bpf.h`.

use iotomy_record::{Trace, WakeContext, Waker, WholeCall};

use super::images::{Names, label};
use super::rows;
use crate::numbers::{decimals_for, figure, fixed};
use crate::page::{Ink, Page};
use crate::sheet::{Cell, Field, Sheet, name};
use crate::table::{Column, Row, Table};

const COLUMNS: [Column<'static>; 7] = [
    Column::text("", 9),
    Column::number("start", "s", 8),
    Column::number("wall", "ms", 7),
    Column::number("on-CPU", "ms", 3),
    Column::number("blocked", "ms", 6),
    Column::number("runq", "ms", 2),
    Column::text("process", 5),
];

/// Columns a function may take.
const FUNCTION: usize = 60;

/// Functions that are shown of those that a call was made in.
const CALLERS: usize = 16;

/// Columns a path may take on the widest line.
const PATH: usize = 100;

pub(super) fn print(page: &mut Page<'_>, record: &Trace) {
    let shown = rows(record, usize::MAX).min(record.slowest.len());
    if record.view.slowest > 0 && record.slowest.is_empty() {
        page.blank();
        page.line(&[(Ink::Dim, "  no counted call returned")]);
        return;
    }
    if shown == 0 {
        return;
    }
    page.blank();
    table(page, record, "slowest call", &record.slowest[..shown]).print(page);
    super::print_hidden(page, shown, record.slowest.len(), "");
}

/// Those of the record of an interval: nothing where none returned.
pub(crate) fn print_in_interval(page: &mut Page<'_>, record: &Trace) {
    let shown = rows(record, usize::MAX).min(record.slowest.len());
    if shown > 0 {
        table(page, record, "slowest call", &record.slowest[..shown]).print(page);
        super::print_hidden(page, shown, record.slowest.len(), "");
    }
}

/// Calls, each with its arguments and who woke it; the first column has this head.
pub(super) fn table<'a>(
    page: &Page<'_>,
    record: &Trace,
    head: &'a str,
    calls: &[WholeCall],
) -> Table<'a> {
    let names = Names::from_record(record);
    let most = calls.iter().map(|call| call.wall_ns).max().unwrap_or(0);
    let decimals = decimals_for(most as f64 / 1e6);
    let ms = |ns: u64| fixed(ns as f64 / 1e6, decimals);
    let known = |ns: Option<u64>| ns.map_or_else(String::new, ms);
    let mut columns = COLUMNS;
    columns[0] = Column::text(head, 9);
    let mut table = Table::new(&columns);
    for call in calls {
        let cells = vec![
            page.name(&call.syscall, 28),
            fixed(call.start_ns as f64 / 1e9, 3),
            ms(call.wall_ns),
            known(call.on_cpu_ns),
            known(call.blocked_ns),
            known(call.runnable_ns),
            process(page, names.label_one(page, &call.exec, call.pid), call),
        ];
        let mut remarks = vec![text(page, call)];
        remarks.extend(call.woken_by.as_ref().map(|waker| woken(page, waker)));
        remarks.extend(callers(page, call, CALLERS));
        table.push(Row { cells, remarks, ..Row::default() });
    }
    table
}

/// The label of the process, and the thread where it is not its first.
pub(crate) fn process(page: &Page<'_>, process: String, call: &WholeCall) -> String {
    match call.tid == call.pid {
        true => process,
        false => format!("{process} {}", label(page, &call.thread, call.tid)),
    }
}

/// The call as a program would write it, but for addresses: `pread64(5, 0x55d0, 8192, 0) = 8192`.
pub(crate) fn text(page: &Page<'_>, call: &WholeCall) -> String {
    let plain = page.name(call.syscall.trim_end_matches("(i386)"), 28);
    let arguments: Vec<String> = call.arguments.iter().take(6).map(|at| argument(*at)).collect();
    let result = match &call.error {
        Some(error) => page.name(error, 24),
        None => argument(call.returned.cast_unsigned()),
    };
    let path = call.path.as_ref().map(|path| format!(": {}", page.name(path, PATH)));
    format!("{plain}({}) = {result}{}", arguments.join(", "), path.unwrap_or_default())
}

/// A small number as such, also a negative one of 32 or 64 bits; a large one, and an address, in
/// hexadecimal.
fn argument(value: u64) -> String {
    const LARGE: u64 = 1 << 24;
    const SMALL: i64 = -4096;
    let of_32_bits = i64::from(value as u32 as i32);
    match value {
        0..LARGE => value.to_string(),
        _ if value.cast_signed() < 0 && value.cast_signed() >= SMALL => {
            value.cast_signed().to_string()
        }
        _ if value >> 32 == 0 && (SMALL..0).contains(&of_32_bits) => of_32_bits.to_string(),
        _ => format!("{value:#x}"),
    }
}

pub(crate) fn woken(page: &Page<'_>, waker: &Waker) -> String {
    let inside = waker.syscall.as_ref().map(|call| format!(" in {}", page.name(call, 28)));
    let inside = inside.unwrap_or_default();
    let thread = label(page, &waker.thread, waker.tid);
    let who = match waker.tid {
        0 => "the CPU was idle".to_owned(),
        _ => format!("{thread} ran{inside}"),
    };
    match waker.context {
        WakeContext::Thread => format!("woken by {thread}{inside}"),
        WakeContext::Softirq => format!("woken in a softirq while {who}"),
        WakeContext::Interrupt => format!("woken in an interrupt while {who}"),
        WakeContext::Unknown => format!("woken while {who}"),
    }
}

/// The functions that it was made in, the innermost first and so many at most, each with its file where that is another
/// one's than before.
pub(crate) fn callers(page: &Page<'_>, call: &WholeCall, most: usize) -> Option<String> {
    let mut file = None;
    let mut names = Vec::new();
    for caller in call.callers.iter().take(most) {
        let own = caller.file.as_deref().map(|path| path.rsplit('/').next().unwrap_or(path));
        let function = caller.function.as_ref().map(|function| page.name(function, FUNCTION));
        names.push(match (function, own) {
            (Some(function), Some(own)) if file != Some(own) => {
                format!("{function} ({})", page.name(own, 40))
            }
            (Some(function), None) if file.is_some() => format!("{function} (JIT)"),
            (Some(function), _) => function,
            (None, Some(own)) => format!("{}+{:#x}", page.name(own, 40), caller.offset),
            (None, None) => "[caller unknown]".to_owned(),
        });
        file = own;
    }
    let more = call.callers.len() - names.len();
    if more > 0 {
        names.push(format!("[{more} more]"));
    }
    (!names.is_empty()).then(|| format!("in {}", names.join(" < ")))
}

/// All of them, for a page; nothing where there are none.
pub(super) fn sheet(
    page: &Page<'_>,
    record: &Trace,
    id: &str,
    title: &str,
    calls: &[WholeCall],
) -> Option<Sheet> {
    if calls.is_empty() {
        return None;
    }
    let fields = vec![
        Field::text("call", "call"),
        Field::text("process", "process"),
        Field::number("start_ns", "start", "s"),
        Field::number("wall_ns", "wall", "ms"),
        Field::number("on_cpu_ns", "on-CPU", "ms"),
        Field::number("blocked_ns", "blocked", "ms"),
        Field::number("runnable_ns", "runq", "ms"),
        Field::number("bytes", "bytes", ""),
        Field::text("text", "arguments and result"),
        Field::text("path", "path"),
        Field::text("woken_by", "woken by"),
        Field::text("callers", "callers"),
    ];
    let mut sheet = Sheet::new(id, title, fields);
    let names = Names::from_record(record);
    let ms = |ns: u64| Cell::whole(ns, figure(ns as f64 / 1e6));
    for call in calls {
        let whole = WholeCall { path: None, ..call.clone() };
        let path = call.path.as_ref().map(|path| name(page, path)).unwrap_or_default();
        let woken_by = call.woken_by.as_ref().map(|waker| woken(page, waker));
        sheet.push(vec![
            Cell::text(page.name(&call.syscall, 60)),
            Cell::text(process(page, names.label_one(page, &call.exec, call.pid), call)),
            Cell::whole(call.start_ns, fixed(call.start_ns as f64 / 1e9, 6)),
            ms(call.wall_ns),
            Cell::from_option(call.on_cpu_ns, ms),
            Cell::from_option(call.blocked_ns, ms),
            Cell::from_option(call.runnable_ns, ms),
            Cell::from_option(call.bytes, Cell::size),
            Cell::text(text(page, &whole)),
            Cell::text(path),
            Cell::text(woken_by.unwrap_or_default()),
            Cell::text(callers(page, call, usize::MAX).unwrap_or_default()),
        ]);
    }
    Some(sheet.without_empty_columns())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Style;
    use iotomy_record::Caller;

    #[test]
    fn no_more_functions_are_shown_than_fit() {
        let caller = |at: usize| Caller {
            function: Some(format!("f{at}")),
            file: Some("/bin/program".to_owned()),
            ..Caller::default()
        };
        let call = WholeCall { callers: (0..5).map(caller).collect(), ..WholeCall::default() };
        let style = Style::default();
        let page = Page::new(&style);
        let shown = |most| callers(&page, &call, most).unwrap();
        assert_eq!(shown(5), "in f0 (program) < f1 < f2 < f3 < f4");
        assert_eq!(shown(2), "in f0 (program) < f1 < [3 more]");
    }

    #[test]
    fn arguments_are_numbers_where_they_are_small() {
        assert_eq!(argument(0), "0");
        assert_eq!(argument(1_048_576), "1048576");
        assert_eq!(argument(u64::MAX - 99), "-100");
        assert_eq!(argument(0xffff_ff9c), "-100");
        assert_eq!(argument(0x7f00_1234_5678), "0x7f0012345678");
    }
}
