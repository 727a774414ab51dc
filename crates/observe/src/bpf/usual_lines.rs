//! How many lines of the caches a usual call touches in what the programs keep of its thread (`struct thread`). Where a
//! thread comes back after others, each of them is a miss, which costs more than the instructions do.
//!
//! The fields are listed by hand and held against the text of the functions on that way; where they are is asked of the
//! compiled programs. A field that moves to another line, or a new one in such a line, fails the tests.

use std::collections::BTreeSet;

use super::btf::{Btf, Type, kind, word};
use super::layout::PLAIN_TIMES;
use super::numbers::with_types;

/// The bytes of a line.
const LINE: u32 = 64;
/// The kernel's own in front of a value in task storage, which begins a line.
const BEFORE: u32 = 8;
/// As in `thread.bpf.h`: rows of frequent calls.
const HOT: u32 = 4;

/// What every usual call reads or writes.
const OF_EVERY_CALL: &[&str] = &[
    "last_ns",
    "user_ns",
    "calls_on_cpu_ns",
    "hot_call",
    "call",
    "in_call",
    "left",
    "call_thread",
];
/// The same in the call's row in `hot`, without its counter of a time.
const OF_ITS_ROW: &[&str] =
    &["usual", "times", "row.sums.numbers.wall_ns", "row.sums.numbers.max_ns"];
/// What every call has more where files are counted, as they are unless the whole machine is watched.
const OF_FILES: &[&str] = &["image", "transfer"];
/// What is behind these where the call moves bytes of the same file as the last one: in `from` or `to`.
const OF_A_SIDE: &[&str] =
    &["key.dentry", "key.inode", "file", "inode", "super", "operations", "calls", "bytes"];
/// What those functions name on other ways.
const UNUSUAL: &[&str] = &["out_ns", "off_ns", "off_at_last_ns", "attached", "passed", "argument"];

/// Where something is in `struct thread`: its first byte, and its size.
fn place(types: &Btf<'_>, path: &str) -> (u32, u32) {
    let is_it = |one: &Type<'_>| one.kind() == kind::STRUCT && types.name(one.name) == b"thread";
    let (mut id, _) = types.types().find(|(_, one)| is_it(one)).unwrap();
    let mut at = 0;
    for name in path.split('.') {
        let found = types.get(structure(types, id)).unwrap();
        let is_it = |member: &&[u8]| types.name(word(member, 0).unwrap()) == name.as_bytes();
        let member = found.rest.chunks(12).find(is_it).unwrap_or_else(|| panic!("{path}"));
        at += word(member, 8).unwrap() / 8;
        id = word(member, 4).unwrap();
    }
    (at, size(types, id))
}

/// The struct that a type is, or that an array is made of.
fn structure(types: &Btf<'_>, id: u32) -> u32 {
    let found = types.get(id).unwrap();
    match found.kind() {
        kind::ARRAY => structure(types, word(found.rest, 0).unwrap()),
        kind::TYPEDEF | kind::CONST | kind::VOLATILE => structure(types, found.size),
        _ => id,
    }
}

fn size(types: &Btf<'_>, id: u32) -> u32 {
    let found = types.get(id).unwrap();
    match found.kind() {
        kind::ARRAY => word(found.rest, 8).unwrap() * size(types, word(found.rest, 0).unwrap()),
        kind::TYPEDEF | kind::CONST | kind::VOLATILE => size(types, found.size),
        kind::POINTER => 8,
        _ => found.size,
    }
}

/// The most lines that these fields are in, with a row in `hot` and any counter of its times.
fn lines(fields: &[String]) -> usize {
    let of = |(at, size): (u32, u32)| (BEFORE + at) / LINE..=(BEFORE + at + size - 1) / LINE;
    with_types(|types| {
        let (_, whole) = place(types, "hot");
        let (counters, bytes) = place(types, "hot.row.plain");
        let width = bytes / PLAIN_TIMES as u32;
        let fixed: BTreeSet<u32> = fields.iter().flat_map(|path| of(place(types, path))).collect();
        let with_row = |row: u32, time: u32| {
            let shift = row * whole / HOT;
            let in_row = OF_ITS_ROW.iter().map(|path| place(types, &format!("hot.{path}")));
            let counter = (counters + time * width, width);
            let moved = in_row.chain([counter]).map(|(at, size)| (at + shift, size));
            moved.flat_map(of).chain(fixed.iter().copied()).collect::<BTreeSet<u32>>().len()
        };
        let rows = (0..HOT).flat_map(|row| (0..PLAIN_TIMES as u32).map(move |time| (row, time)));
        rows.map(|(row, time)| with_row(row, time)).max().unwrap()
    })
}

fn named(lists: &[&[&str]], side: Option<&str>) -> Vec<String> {
    let own = lists.concat().into_iter().map(str::to_owned);
    let of_side =
        side.into_iter().flat_map(|side| OF_A_SIDE.iter().map(move |f| format!("{side}.{f}")));
    own.chain(of_side).collect()
}

/// The aim is 4 for every usual call. Beyond it are those that move bytes, by the two lines of a side.
#[test]
fn a_usual_call_touches_no_more_lines_than_it_has_to() {
    assert_eq!(lines(&named(&[OF_EVERY_CALL], None)), 3, "without files");
    let every = [OF_EVERY_CALL, OF_FILES];
    assert_eq!(lines(&named(&every, None)), 4, "a call that moves no bytes");
    assert_eq!(lines(&named(&every, Some("from"))), 6, "a call that reads");
    assert_eq!(lines(&named(&every, Some("to"))), 6, "a call that writes");
}

/// The identifiers behind `start` in the function of this name.
fn after<'t>(text: &'t str, function: &str, start: &str) -> BTreeSet<&'t str> {
    let (_, from) = text.split_once(function).unwrap_or_else(|| panic!("{function}"));
    let (body, _) = from.split_once("\n}\n").unwrap();
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let is_start = |(at, _): &(usize, &str)| !body[..*at].ends_with(is_name);
    let found = body.match_indices(start).filter(is_start);
    found.map(|(at, _)| body[at + start.len()..].split(|c| !is_name(c)).next().unwrap()).collect()
}

#[test]
fn the_fields_on_the_usual_way_are_those_of_the_list() {
    let (calls, files) = (include_str!("calls.bpf.h"), include_str!("files.bpf.h"));
    let listed: BTreeSet<&str> =
        [OF_EVERY_CALL, OF_FILES, UNUSUAL, &["hot", "from", "to"]].concat().into_iter().collect();
    let functions = [
        (calls, "void enter_call("),
        (calls, "bool count_usual("),
        (calls, "int leave_call("),
        (files, "void note_transfer("),
        (files, "int identify("),
        (files, "void count_transfer("),
    ];
    for (text, function) in functions {
        let found = after(text, function, "t->");
        assert!(found.len() > 1 && found.is_subset(&listed), "{function}: {found:?}");
    }
    // What comes before these, in the programs themselves.
    for (program, fields) in [
        ("BPF_PROG(sys_enter,", &["call"][..]),
        ("BPF_PROG(sys_exit,", &["call", "in_call", "passed"]),
    ] {
        let found = after(calls, program, "t->");
        assert_eq!(found, fields.iter().copied().collect(), "{program}");
        assert!(found.is_subset(&listed), "{program}: {found:?}");
    }
    let of_row: BTreeSet<&str> = ["usual", "times", "row"].into();
    assert_eq!(after(calls, "bool count_usual(", "hot->"), of_row);
    let of_sums: BTreeSet<&str> = ["wall_ns", "max_ns"].into();
    assert_eq!(after(calls, "bool count_usual(", "c->sums.numbers."), of_sums);
    assert_eq!(after(calls, "bool count_usual(", "c->"), ["plain", "sums"].into());
    let of_side = after(files, "bool is_still(", "side->");
    let of_side = of_side.into_iter().chain(after(files, "void count_transfer(", "t->from."));
    let of_side: BTreeSet<&str> = of_side.chain(after(files, "int identify(", "side->")).collect();
    let listed: BTreeSet<&str> =
        OF_A_SIDE.iter().map(|path| path.split('.').next().unwrap()).collect();
    assert_eq!(of_side, listed);
}
