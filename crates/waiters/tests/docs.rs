//! The tables of docs/waiters.md are what the waiters declare.

#![allow(clippy::unwrap_used, reason = "a test fails by it")]

use iotomy_waiters::{Call, Declaration, Kind, WAITERS};

fn calls(calls: &[Call]) -> String {
    let all: Vec<_> =
        calls.iter().map(|call| format!("`{}`{}", call.name, call.times.summary())).collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}

fn yes(is_so: bool) -> &'static str {
    if is_so { "yes" } else { "no" }
}

fn step(waiter: &Declaration) -> &'static str {
    match waiter.abilities.timeout_step_ns {
        1 => "ns",
        1_000 => "µs",
        1_000_000 => "ms",
        other => panic!("{}: {other}", waiter.name),
    }
}

fn kinds(waiter: &Declaration) -> String {
    let is_in = |kinds: &[Kind]| kinds.iter().all(|kind| waiter.abilities.serves.contains(kind));
    if is_in(&Kind::ALL) {
        return "all".to_owned();
    }
    if is_in(&Kind::NO_FILES) {
        return "all but files".to_owned();
    }
    let names: Vec<_> =
        waiter.abilities.serves.iter().map(|kind| format!("{}s", kind.name())).collect();
    names.join(", ")
}

fn rows() -> Vec<String> {
    let what = WAITERS.iter().map(|w| {
        let c = w.calls;
        let [add, modify, remove, wait] = [c.add, c.modify, c.remove, c.wait].map(calls);
        format!("| `{}` | {} | {wait} | {add} | {modify} | {remove} |", w.name, w.summary)
    });
    let can = WAITERS.iter().map(|w| {
        let a = w.abilities;
        let highest = a.highest.map_or(String::new(), |highest| format!(" up to {highest}"));
        format!(
            "| `{}` | {}{} | {}{highest} | {} | {} | {} | {} | {} | {} |",
            w.name,
            a.trigger.name(),
            if a.exclusive { ", exclusive" } else { "" },
            kinds(w),
            a.room.summary(),
            yes(a.names_hang_up),
            yes(a.shared),
            yes(a.sleeps),
            step(w),
            a.closed.summary(),
        )
    });
    what.chain(can).collect()
}

#[test]
fn the_tables_are_what_is_declared() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/waiters.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rows = rows();
    let told: Vec<_> = page.lines().filter(|line| line.starts_with("| `")).collect();
    assert!(told == rows, "docs/waiters.md must have these rows:\n{}", rows.join("\n"));
}
