//! Changing the interest of a descriptor for every event of it.

use iotomy_record::numbers::thousands;
use iotomy_record::{Process, Verdict};
use serde_json::json;

use crate::finding::{Declaration, Rule, UnnamedFinding};
use crate::run::Run;

pub(crate) static DECLARATION: Declaration = Declaration {
    id: "ctl-per-event",
    verdict: Verdict::Advice,
    summary: "at least one epoll_ctl for every two events",
    description: "A program made at least 1,000 successful calls of epoll_ctl, beyond two for \
        each new descriptor (accept, socket, pipe and similar), and at least one for every two \
        events that epoll_wait and similar calls returned: repeated registration spends what \
        registration saves over poll.",
    rules: &[Rule::Run(judge)],
};

const WAITS: [&str; 3] = ["epoll_wait", "epoll_pwait", "epoll_pwait2"];
const MANY: u64 = 1_000;

/// The calls that create descriptors to wait for, and how many each call creates.
const MAKERS: [(&str, u64); 13] = [
    ("accept", 1),
    ("accept4", 1),
    ("socket", 1),
    ("socketpair", 2),
    ("pipe", 2),
    ("pipe2", 2),
    ("eventfd", 1),
    ("eventfd2", 1),
    ("timerfd_create", 1),
    ("signalfd", 1),
    ("signalfd4", 1),
    ("inotify_init1", 1),
    ("pidfd_open", 1),
];

/// The registrations of one image.
struct Registered<'r> {
    exec: &'r str,
    changes: u64,
    events: u64,
    made: u64,
}

fn judge(run: &Run<'_>) -> Option<UnnamedFinding> {
    let images = run.trace.processes.iter().map(|image| of_image(run, image));
    // Each descriptor is added once, and removed once.
    let again = |one: &Registered<'_>| one.changes.saturating_sub(one.made.saturating_mul(2));
    let those = images
        .filter(|one| one.events > 0 && again(one) >= MANY && again(one) >= one.events.div_ceil(2));
    let Registered { exec, changes, events, made } = those.max_by_key(again)?;
    let text = format!(
        "{exec} changed a registration by epoll_ctl {} times for {} events and {} new descriptors",
        thousands(changes.into()),
        thousands(events.into()),
        thousands(made.into())
    );
    let evidence = [
        ("exec", json!(exec)),
        ("epoll_ctl", json!(changes)),
        ("events", json!(events)),
        ("descriptors", json!(made)),
    ];
    let advice = "register each descriptor once: level-triggered, or edge-triggered (EPOLLET) and \
        read to EAGAIN";
    Some(UnnamedFinding::new(text, evidence).advise(advice))
}

fn of_image<'r>(run: &'r Run<'_>, image: &'r Process) -> Registered<'r> {
    let rows = run.of_image(image.pid, &image.exec, image.image);
    let succeeded = |name: &str| {
        let all = rows.total(&[name]);
        all.calls.saturating_sub(all.errors)
    };
    let made = MAKERS.iter().map(|(name, each)| succeeded(name).saturating_mul(*each)).sum();
    Registered {
        exec: &image.exec,
        changes: succeeded("epoll_ctl"),
        events: rows.total(&WAITS).ready,
        made,
    }
}
