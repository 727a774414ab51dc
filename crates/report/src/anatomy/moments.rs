//! The time between the moments of a timeline.
//!
//! Where moments are only counted, nothing is claimed: it is unknown who was off its CPU there.

use iotomy_record::{CallEvent, SlowCall};

/// A part of the time of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) from: u64,
    pub(super) until: u64,
    pub(super) class: &'static str,
    pub(super) what: &'static str,
}

pub(super) const ASLEEP: (&str, &str) = ("t-blocked", "blocked");
pub(super) const WAITING: (&str, &str) = ("t-waiting", "run queue delay");
pub(super) const RUNNING: (&str, &str) = ("t-call", "on-CPU");
pub(super) const QUEUED: (&str, &str) = ("s6 faint", "queued");
pub(super) const DEVICE: (&str, &str) = ("s6", "in the device");
pub(super) const INSIDE: (&str, &str) = ("s2", "until its end");
pub(super) const UNKNOWN: (&str, &str) =
    ("t-residual faint", "unknown: events there are only counted");

fn span(from: u64, until: u64, (class, what): (&'static str, &'static str)) -> Span {
    Span { from, until, class, what }
}

/// Where the thread was, from the call's entry to its return. No single thread carries out a request of io_uring: only
/// the sleep of the threads that worked on it is known.
pub(super) fn threads(timeline: &SlowCall) -> Vec<Span> {
    let mut spans = Vec::new();
    let (mut from, mut state) = (0, RUNNING);
    for event in &timeline.events {
        let next = match event.event.as_str() {
            "off-cpu" if sleeps(event) => ASLEEP,
            "off-cpu" => WAITING,
            "woken" if state == ASLEEP => WAITING,
            "on-cpu" => RUNNING,
            _ => continue,
        };
        spans.push(span(from, event.at_ns, state));
        (from, state) = (event.at_ns, next);
    }
    spans.push(span(from, timeline.wall_ns, state));
    for (from, until) in untold(timeline, &OF_THREADS) {
        let rest = |whole: Span| {
            let before = Span { until: whole.until.min(from), ..whole };
            [before, Span { from: whole.from.max(until), ..whole }]
        };
        spans = spans.into_iter().flat_map(rest).filter(|span| span.until > span.from).collect();
        spans.push(span(from, until, UNKNOWN));
    }
    let is_known = |span: &Span| !timeline.is_request() || span.what != RUNNING.1;
    spans.retain(|span| span.until > span.from && is_known(span));
    spans.sort_by_key(|span| span.from);
    spans
}

/// The events that show the state of a thread.
const OF_THREADS: [&str; 3] = ["off-cpu", "woken", "on-cpu"];

/// The times of events of these names that are only counted: after a recorded one, apart from each
/// other.
fn untold(timeline: &SlowCall, names: &[&str]) -> Vec<(u64, u64)> {
    let of_names = timeline.hidden.iter().filter(|hidden| names.contains(&hidden.event.as_str()));
    let mut times: Vec<(u64, u64)> = of_names
        .map(|hidden| {
            let until = hidden.before_ns.min(timeline.wall_ns);
            let told = |event: &&CallEvent| {
                event.at_ns < until
                    && (event.event == hidden.event || turns(&event.event) && turns(&hidden.event))
            };
            (timeline.events.iter().rfind(told).map_or(0, |event| event.at_ns), until)
        })
        .collect();
    times.sort_unstable();
    let mut apart: Vec<(u64, u64)> = Vec::new();
    for (from, until) in times {
        match apart.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(until),
            _ => apart.push((from, until)),
        }
    }
    apart
}

/// Whether a thread that leaves its CPU does so to sleep.
fn sleeps(event: &CallEvent) -> bool {
    let state = event.words.get("state").map_or("", String::as_str);
    state != "preempted" && state != "gives way"
}

/// Whether it is one of the two that alternate: none of the one is hidden before a recorded one of
/// the other.
fn turns(event: &str) -> bool {
    event == "off-cpu" || event == "on-cpu"
}

/// The state that an event begins, as far as the timeline has its end.
pub(super) fn lasting(timeline: &SlowCall, at: usize, event: &CallEvent) -> Vec<Span> {
    let after = &timeline.events[at + 1..];
    let until = |names: &[&str], end: Option<&CallEvent>, kind| {
        let end = end.map(|end| end.at_ns).filter(|end| {
            let between = |(from, until): &(u64, u64)| *from < *end && event.at_ns < *until;
            !untold(timeline, names).iter().any(between)
        });
        end.map(|end| span(event.at_ns, end, kind)).into_iter().collect::<Vec<Span>>()
    };
    match event.event.as_str() {
        "off-cpu" => {
            let back = after.iter().position(|later| is(later, "on-cpu"));
            let woken = after[..back.unwrap_or(0)].iter().find(|later| is(later, "woken"));
            let back = back.map(|at| &after[at]);
            match woken {
                Some(woken) if sleeps(event) => {
                    let mut spans = until(&OF_THREADS, Some(woken), ASLEEP);
                    let wait = until(&OF_THREADS, back, WAITING).into_iter();
                    spans.extend(wait.map(|wait| Span { from: woken.at_ns, ..wait }));
                    spans
                }
                _ => until(&OF_THREADS, back, if sleeps(event) { ASLEEP } else { WAITING }),
            }
        }
        "block-queue" => {
            let names = ["block-queue", "block-issue"];
            until(&names, find(after, names, event), QUEUED)
        }
        "block-issue" => {
            let names = ["block-issue", "block-complete"];
            until(&names, find(after, names, event), DEVICE)
        }
        name => match inside(name, after) {
            Some(end) => until(&[name, &end.event], Some(end), INSIDE),
            None => Vec::new(),
        },
    }
}

/// The next event of the second name about the same place of the same device, unless there it
/// begins anew.
fn find<'s>(
    after: &'s [CallEvent],
    [begins, ends]: [&str; 2],
    of: &CallEvent,
) -> Option<&'s CallEvent> {
    let place = |event: &CallEvent| {
        let sector = event.values.get("sector").copied().filter(|at| *at > 0);
        (event.words.get("device").cloned(), sector)
    };
    let is_one = |event: &&CallEvent| is(event, begins) || is(event, ends);
    let next = after.iter().filter(is_one).find(|later| place(later) == place(of));
    next.filter(|next| is(next, ends))
}

/// The end of an event with a named beginning, unless it begins anew before.
fn inside<'s>(name: &str, after: &'s [CallEvent]) -> Option<&'s CallEvent> {
    let ends = [("_enter", "_exit"), ("_begin", "_end"), ("_start", "_end")];
    ends.into_iter().find_map(|(begin, end)| {
        let stem = name.strip_suffix(begin)?;
        let is_end = |event: &CallEvent| event.event.strip_suffix(end) == Some(stem);
        after.iter().find(|later| is(later, name) || is_end(later)).filter(|next| is_end(next))
    })
}

fn is(event: &CallEvent, name: &str) -> bool {
    event.event == name
}

#[cfg(test)]
mod tests {
    use super::*;
    use iotomy_record::Hidden;

    fn event(at_ns: u64, name: &str, state: &str) -> CallEvent {
        let words = [("state".to_owned(), state.to_owned())];
        CallEvent {
            at_ns,
            event: name.into(),
            words: words.into_iter().filter(|(_, state)| !state.is_empty()).collect(),
            ..CallEvent::default()
        }
    }

    fn timeline() -> SlowCall {
        let events = vec![
            event(10, "off-cpu", "sleeps"),
            event(30, "woken", ""),
            event(40, "on-cpu", ""),
            event(60, "off-cpu", "preempted"),
            event(65, "on-cpu", ""),
            event(70, "x_enter", ""),
            event(90, "x_exit", ""),
        ];
        SlowCall { wall_ns: 100, events, ..SlowCall::default() }
    }

    fn spans(of: &[Span]) -> Vec<(u64, u64, &'static str)> {
        of.iter().map(|span| (span.from, span.until, span.what)).collect()
    }

    #[test]
    fn a_thread_is_somewhere_all_the_time() {
        let known = [
            (0, 10, "on-CPU"),
            (10, 30, "blocked"),
            (30, 40, "run queue delay"),
            (40, 60, "on-CPU"),
            (60, 65, "run queue delay"),
            (65, 100, "on-CPU"),
        ];
        assert_eq!(spans(&threads(&timeline())), known);
    }

    #[test]
    fn of_a_request_only_the_sleep_of_its_threads_is_known() {
        let request = SlowCall { syscall: "ring:write".into(), ..timeline() };
        let known = [(10, 30, "blocked"), (30, 40, "run queue delay"), (60, 65, "run queue delay")];
        assert_eq!(spans(&threads(&request)), known);
        let times = super::super::timeline::times(&request);
        assert_eq!(times, "100 ns from submission to completion");
    }

    #[test]
    fn where_moments_are_only_counted_nothing_is_claimed() {
        let mut timeline = timeline();
        let hidden = |event: &str, before_ns| Hidden { event: event.into(), count: 3, before_ns };
        timeline.hidden = vec![hidden("on-cpu", 85), hidden("x_exit", 80), hidden("off-cpu", 85)];
        let known = spans(&threads(&timeline));
        let rest = [(60, 65, "run queue delay"), (65, 85, UNKNOWN.1), (85, 100, "on-CPU")];
        assert_eq!(known[4..], rest);
        assert_eq!(lasting(&timeline, 5, &timeline.events[5]), []);
        assert_eq!(spans(&lasting(&timeline, 0, &timeline.events[0]))[0], (10, 30, "blocked"));
    }

    #[test]
    fn what_begins_lasts_until_its_own_end() {
        let timeline = timeline();
        let of = |at: usize| spans(&lasting(&timeline, at, &timeline.events[at]));
        assert_eq!(of(0), [(10, 30, "blocked"), (30, 40, "run queue delay")]);
        assert_eq!(of(3), [(60, 65, "run queue delay")]);
        assert_eq!(of(5), [(70, 90, "until its end")]);
        assert_eq!(of(6), []);
    }
}
