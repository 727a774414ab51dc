//! The tables of docs/waiters.md are what the waiters declare.

use iotomy_test_requirements::guide;
use iotomy_waiters::{Call, Kind, Times, WAITERS, WaiterDeclaration};

fn calls(calls: &[Call]) -> String {
    let of = |are_rare: bool| -> Vec<String> {
        let calls = calls.iter().filter(|call| (call.times == Times::Rarely) == are_rare);
        calls.map(|call| format!("`{}`{}", call.name, call.times.summary())).collect()
    };
    let (always, rare) = (of(false).join(", "), of(true).join(", "));
    match (always.is_empty(), rare.is_empty()) {
        (true, true) => "none".to_owned(),
        (_, true) => always,
        (true, false) => format!("now and then {rare}"),
        (false, false) => format!("{always}; now and then {rare}"),
    }
}

fn yes(is_so: bool) -> &'static str {
    if is_so { "yes" } else { "no" }
}

fn step(waiter: &WaiterDeclaration) -> &'static str {
    match waiter.capabilities.timeout_step_ns {
        1 => "ns",
        1_000 => "µs",
        1_000_000 => "ms",
        other => panic!("{}: {other}", waiter.name),
    }
}

fn kinds(waiter: &WaiterDeclaration) -> String {
    let is_in = |kinds: &[Kind]| kinds.iter().all(|kind| waiter.capabilities.serves.contains(kind));
    if is_in(&Kind::ALL) {
        return "all".to_owned();
    }
    if is_in(&Kind::NO_FILES) {
        return "all but files".to_owned();
    }
    let names: Vec<_> =
        waiter.capabilities.serves.iter().map(|kind| format!("{}s", kind.name())).collect();
    names.join(", ")
}

#[test]
fn the_tables_are_what_is_declared() {
    let what = WAITERS.iter().map(|w| {
        let c = w.calls;
        let [add, modify, remove, wait] = [c.add, c.modify, c.remove, c.wait].map(calls);
        vec![format!("`{}`", w.name), w.summary.to_owned(), wait, add, modify, remove]
    });
    let header = ["waiter", "what it is", "a wait", "add", "modify", "remove"];
    guide::check("docs/waiters.md", "waiters", &guide::table(&header, what));
    let can = WAITERS.iter().map(|w| {
        let a = w.capabilities;
        let exclusive = if a.exclusive { ", exclusive" } else { "" };
        let highest = a.highest.map_or(String::new(), |highest| format!(" up to {highest}"));
        vec![
            format!("`{}`", w.name),
            a.model.name().to_owned(),
            format!("{}{exclusive}", a.trigger.name()),
            format!("{}{highest}", kinds(w)),
            a.room.summary().to_owned(),
            yes(a.names_hang_up).to_owned(),
            yes(a.shared).to_owned(),
            yes(a.inherited).to_owned(),
            yes(a.sleeps).to_owned(),
            step(w).to_owned(),
            a.closed.summary().to_owned(),
        ]
    });
    let header = [
        "waiter",
        "model",
        "trigger",
        "watches",
        "room to write",
        "names a hang-up",
        "several threads",
        "several processes",
        "sleeps",
        "time-outs in",
        "closed while watched",
    ];
    guide::check("docs/waiters.md", "capabilities", &guide::table(&header, can));
}
