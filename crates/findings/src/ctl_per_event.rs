//! Changing the interest of a descriptor for every event of it.

use iotomy_record::numbers::thousands;
use iotomy_record::{Process, Verdict};
use serde_json::json;

use crate::facts::Fact;
use crate::finding::{FindingDeclaration, Rule, UnnamedFinding};
use crate::run::Run;

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "ctl-per-event",
    verdict: Verdict::Advice,
    summary: "at least one epoll_ctl for every two events",
    description: "A program made at least 1,000 successful calls of epoll_ctl, beyond two for \
        each new descriptor (accept, socket, pipe and similar), and at least one for every two \
        events that epoll_wait and similar calls returned: repeated registration spends what \
        registration saves over poll.",
    facts: &[
        Fact::Calls(&["epoll_ctl"]),
        Fact::Calls(&WAITS),
        Fact::Calls(&MAKERS),
        Fact::Calls(&MAKERS_OF_TWO),
        Fact::Beginning,
    ],
    rules: &[Rule::Run(judge)],
};

const WAITS: [&str; 3] = ["epoll_wait", "epoll_pwait", "epoll_pwait2"];
const MANY: u64 = 1_000;

/// The calls that create descriptors to wait for: one each, or two.
const MAKERS: [&str; 10] = [
    "accept",
    "accept4",
    "socket",
    "eventfd",
    "eventfd2",
    "timerfd_create",
    "signalfd",
    "signalfd4",
    "inotify_init1",
    "pidfd_open",
];
const MAKERS_OF_TWO: [&str; 3] = ["socketpair", "pipe", "pipe2"];

/// The registrations of one image.
struct Registered<'r> {
    image: &'r Process,
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
    let Registered { image, changes, events, made } = those.max_by_key(again)?;
    let text = format!(
        "{} changed a registration by epoll_ctl {} times for {} events and {} new descriptors",
        image.name(),
        thousands(changes.into()),
        thousands(events.into()),
        thousands(made.into())
    );
    let evidence = [
        ("exec", json!(image.exec)),
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
    let succeeded = |names: &[&str]| {
        let all = rows.total(names);
        all.calls.saturating_sub(all.errors)
    };
    let made = succeeded(&MAKERS).saturating_add(succeeded(&MAKERS_OF_TWO).saturating_mul(2));
    Registered { image, changes: succeeded(&["epoll_ctl"]), events: rows.total(&WAITS).ready, made }
}
