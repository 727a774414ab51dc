//! The record's stacks as a picture of flames for a page, as a table of functions, and the difference of
//! two records.
//!
//! The pictures of `iotomy anatomy --svg` bring a script and handlers of their own, which the policy of a
//! page lets nobody run; so a page draws its own, which are plain boxes where there are no scripts.

use std::collections::BTreeMap;

use iotomy_record::{Anatomy, Stack, StackKind};

use super::flame::{have_callers, is_of_callers_alone};
use super::icicle::{ASLEEP, USER, WHOLE, is_of_user_space, left_out, legend, on_cpu};
use crate::chart::{Chart, Key};
use crate::frames::{self, Frame, Whole};
use crate::numbers::{decimals_for, duration, fixed, percent, share, thousands};
use crate::page::Page;
use crate::sheet::{Cell, Field, Sheet};

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// A program, a call: what is asleep and what runs is below it.
    Whole,
    Kernel,
    User,
    Asleep,
}

impl Kind {
    fn class(self, name: &str) -> &'static str {
        match self {
            Self::Whole => WHOLE,
            Self::Kernel => on_cpu(name),
            Self::User => USER,
            Self::Asleep => ASLEEP,
        }
    }
}

/// Stacks put together from the outside in. Times are of one record, or of two: before and now.
#[derive(Debug, Default)]
struct Node {
    /// Time with this frame innermost.
    own: [u128; 2],
    below: BTreeMap<(String, Kind), Node>,
}

impl Node {
    fn add(&mut self, path: impl Iterator<Item = (String, Kind)>, side: usize, ns: u128) {
        let mut node = self;
        for key in path {
            node = node.below.entry(key).or_default();
        }
        node.own[side] += ns;
    }

    /// Its time on both sides, and the sum over its frames of the longer of the two.
    fn sums(&self) -> ([u128; 2], u128) {
        let mut sums = (self.own, self.own[0].max(self.own[1]));
        for node in self.below.values() {
            let (both, width) = node.sums();
            sums.0[0] += both[0];
            sums.0[1] += both[1];
            sums.1 += width;
        }
        sums
    }
}

/// Functions of a stack that are kept: the kernel has no longer ones, a stranger's record might.
const DEEPEST: usize = 127;

/// A stack from its program, or its call, to its innermost function.
fn path(
    page: &Page<'_>,
    stack: &Stack,
    with_program: bool,
    with_callers: bool,
) -> impl Iterator<Item = (String, Kind)> {
    let named = |name: &str| match page.name(name, 100) {
        name if name.is_empty() => "?".to_owned(),
        name => name,
    };
    let mut path = Vec::new();
    if with_program {
        path.push((named(&stack.exec), Kind::Whole));
    }
    if with_callers {
        path.extend(stack.user.iter().take(DEEPEST).map(|name| (named(name), Kind::User)));
        if is_of_callers_alone(stack) {
            return path.into_iter();
        }
    }
    path.push((
        stack.syscall.as_deref().map_or_else(|| "outside calls".to_owned(), named),
        Kind::Whole,
    ));
    let kind = match stack.kind {
        StackKind::Blocked => {
            let reason = named(stack.reason.as_deref().unwrap_or("unknown"));
            path.push((format!("asleep: {reason}"), Kind::Asleep));
            Kind::Asleep
        }
        StackKind::OnCpu if stack.syscall.is_none() && is_of_user_space(&stack.layer) => Kind::User,
        StackKind::OnCpu => Kind::Kernel,
    };
    path.extend(stack.frames.iter().take(DEEPEST).map(|name| (named(name), kind)));
    path.into_iter()
}

/// The stacks of a record, and what no stack speaks for: so that the whole is whole.
fn stacks(record: &Anatomy) -> Vec<(Stack, u128)> {
    let mut known: BTreeMap<(u32, &str, u32, Option<&str>), u128> = BTreeMap::new();
    let mut stacks = Vec::new();
    for stack in &record.stacks {
        let key = (stack.pid, stack.exec.as_str(), stack.image, stack.syscall.as_deref());
        *known.entry(key).or_default() += u128::from(stack.ns);
        stacks.push((stack.clone(), u128::from(stack.ns)));
    }
    for call in &record.calls {
        let whole = u128::from(call.on_cpu_ns) + u128::from(call.blocked_ns);
        let key = (call.pid, call.exec.as_str(), call.image, call.syscall.as_deref());
        let rest = Stack {
            exec: call.exec.clone(),
            syscall: call.syscall.clone(),
            frames: vec!["not sampled".to_owned()],
            ..Stack::default()
        };
        stacks.push((rest, whole.saturating_sub(known.remove(&key).unwrap_or(0))));
    }
    stacks.retain(|(_, ns)| *ns > 0);
    stacks
}

/// Whether the record is of more than one program.
fn has_programs(stacks: &[(Stack, u128)]) -> bool {
    stacks.windows(2).any(|two| two[0].0.exec != two[1].0.exec)
}

/// The picture; none where no time was seen.
pub(super) fn flame(page: &Page<'_>, record: &Anatomy) -> Option<Chart> {
    let stacks = stacks(record);
    let programs = has_programs(&stacks);
    let mut root = Node::default();
    for (stack, ns) in &stacks {
        root.add(path(page, stack, programs, true), 0, *ns);
    }
    let whole = root.sums().0[0];
    if whole == 0 {
        return None;
    }
    let name = match stacks.first() {
        Some((stack, _)) if !programs => page.name(&stack.exec, 60),
        _ => "all programs".to_owned(),
    };
    let root = plain(&root, (name, Kind::Whole), whole);
    let says: Vec<String> =
        largest(&root).iter().map(|frame| format!("{} {}", frame.name, frame.says)).collect();
    let drawn = frames::draw(&root, Whole::Below);
    let mut notes = vec![
        "each box stands on what called it; widths are time, on a CPU by samples and asleep exactly, and \
         the order from left to right is the alphabet's"
            .to_owned(),
    ];
    notes.extend(left_out(drawn.left_out));
    Some(Chart {
        id: "flame".into(),
        title: "Flame graph".into(),
        says: says.join("; "),
        legend: legend_of(record),
        notes,
        drawing: drawn.drawing,
    })
}

/// Of a record with callers, functions of the program stand below what they call.
fn legend_of(record: &Anatomy) -> Vec<Key> {
    let mut legend = legend();
    if record.sampling.user_stacks.is_some() {
        legend.retain(|key| key.class != USER);
        legend.push(Key::new(USER, "functions of the program, and on a CPU in them"));
    }
    legend
}

fn plain(node: &Node, (name, kind): (String, Kind), whole: u128) -> Frame {
    let ns = node.sums().0[0];
    let part = share(i128::try_from(ns).unwrap_or(i128::MAX), whole);
    Frame {
        says: format!("{}, {part}", duration(ns as f64)),
        class: kind.class(&name),
        width: ns,
        parts: node.below.iter().map(|(key, node)| plain(node, key.clone(), whole)).collect(),
        name,
    }
}

/// The largest parts of a picture, for those who do not see it.
fn largest(root: &Frame) -> Vec<&Frame> {
    let mut parts: Vec<&Frame> = root.parts.iter().collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.width));
    parts.truncate(8);
    parts
}

/// The times of a function.
#[derive(Default)]
struct Times {
    /// Innermost, on a CPU and asleep.
    own: u128,
    asleep: u128,
    samples: u128,
    /// With what it calls.
    all: u128,
}

fn by_function(record: &Anatomy) -> Vec<(&str, Times)> {
    let mut by_name: BTreeMap<&str, Times> = BTreeMap::new();
    for stack in &record.stacks {
        let ns = u128::from(stack.ns);
        let mut seen: Vec<&str> = stack.user.iter().take(DEEPEST).map(String::as_str).collect();
        let inside = seen.len();
        seen.extend(stack.frames.iter().take(DEEPEST).map(String::as_str));
        if let Some(innermost) = seen[inside..].last() {
            let times = by_name.entry(innermost).or_default();
            match stack.kind {
                StackKind::OnCpu => {
                    times.own += ns;
                    times.samples += u128::from(stack.samples);
                }
                StackKind::Blocked => times.asleep += ns,
            }
        }
        // One that calls itself is there once.
        seen.sort_unstable();
        seen.dedup();
        seen.iter().for_each(|name| by_name.entry(name).or_default().all += ns);
    }
    let mut rows: Vec<_> = by_name.into_iter().collect();
    rows.sort_by_key(|(_, times)| std::cmp::Reverse((times.own + times.asleep, times.all)));
    rows
}

/// Every function with the time it was innermost in, and that of all it was part of.
pub(super) fn functions(page: &Page<'_>, record: &Anatomy) -> Sheet {
    let whole: u128 = stacks(record).iter().map(|(_, ns)| ns).sum();
    let decimals = decimals_for(whole as f64 / 1e6);
    let some = |n: u128, shown: String| Cell::whole(n, if n > 0 { shown } else { String::new() });
    let ms = |ns: u128| some(ns, fixed(ns as f64 / 1e6, decimals));
    let mut sheet = Sheet::new(
        "functions",
        "Functions",
        vec![
            Field::text("function", "function"),
            Field::number("on_cpu_ns", "innermost, on-CPU", "ms"),
            Field::number("samples", "samples", ""),
            Field::number("asleep_ns", "innermost, asleep", "ms"),
            Field::number("all_ns", "with what it calls", "ms"),
            Field::number("all_percent", "share", "%"),
        ],
    );
    for (name, times) in by_function(record) {
        let all = i128::try_from(times.all).unwrap_or(i128::MAX);
        let part = times.all as f64 / whole.max(1) as f64 * 100.0;
        sheet.push(vec![
            Cell::text(page.name(name, 100)),
            ms(times.own),
            some(times.samples, thousands(times.samples)),
            ms(times.asleep),
            ms(times.all),
            Cell::real(part, percent(all, whole)),
        ]);
    }
    sheet.folded = true;
    sheet
}

/// The least part of itself by which a frame that is drawn as changed has changed.
const CHANGED: [(f64, &str, &str); 4] = [
    (0.6, "f-more3", "f-less3"),
    (0.25, "f-more2", "f-less2"),
    (0.05, "f-more1", "f-less1"),
    (0.0, "f-same", "f-same"),
];

/// What differs from an earlier record: boxes are as wide as the longer of the two times, so that what is
/// gone is there, too.
pub(super) fn difference(page: &Page<'_>, before: &Anatomy, now: &Anatomy) -> Option<Chart> {
    let mut root = Node::default();
    let callers = have_callers(before, now);
    for (side, record) in [before, now].into_iter().enumerate() {
        for (stack, ns) in stacks(record) {
            // Programs have other names on the two sides; their calls have the same.
            root.add(path(page, &stack, false, callers), side, ns);
        }
    }
    if root.sums().1 == 0 {
        return None;
    }
    let root = changed(&root, "all".to_owned());
    let says: Vec<String> =
        largest(&root).iter().map(|frame| format!("{}: {}", frame.name, frame.says)).collect();
    let drawn = frames::draw(&root, Whole::Below);
    let title = |record: &Anatomy| crate::trace::title(page, &record.trace);
    let mut notes = vec![
        format!("before: {}", title(before)),
        "a box is as wide as the longer of the two times and what it calls; by samples, small differences \
         are chance"
            .to_owned(),
    ];
    notes.extend(left_out(drawn.left_out));
    Some(Chart {
        id: "difference".into(),
        title: "What is more and what is less than in the first anatomy".into(),
        says: says.join("; "),
        legend: vec![
            Key::new("f-more3", "more than before (the stronger, the more of it is new)"),
            Key::new("f-same", "within 5 %"),
            Key::new("f-less3", "less than before"),
        ],
        notes,
        drawing: drawn.drawing,
    })
}

fn changed(node: &Node, name: String) -> Frame {
    let ([before, now], width) = node.sums();
    let delta = now as f64 - before as f64;
    let part = delta.abs() / before.max(now).max(1) as f64;
    let (_, more, less) = CHANGED.iter().find(|(least, ..)| part >= *least).unwrap_or(&CHANGED[3]);
    let name = match delta {
        0.0 => name,
        less if less < 0.0 => format!("{name} −{}", duration(-less)),
        more => format!("{name} +{}", duration(more)),
    };
    Frame {
        says: format!("{} before, {} now", duration(before as f64), duration(now as f64)),
        class: if delta < 0.0 { less } else { more },
        width,
        parts: node.below.iter().map(|((name, _), node)| changed(node, name.clone())).collect(),
        name,
    }
}

/// The same by call, as a table.
pub(super) fn differences(before: &Anatomy, now: &Anatomy, page: &Page<'_>) -> Sheet {
    type Key = (String, String, bool);
    let mut rows: BTreeMap<Key, [u128; 2]> = BTreeMap::new();
    for (side, record) in [before, now].into_iter().enumerate() {
        for call in &record.calls {
            let name = call.syscall.as_deref().unwrap_or("outside calls");
            for layer in &call.layers {
                let key = |asleep| (page.name(name, 60), page.name(&layer.layer, 60), asleep);
                rows.entry(key(false)).or_default()[side] += u128::from(layer.on_cpu_ns);
                rows.entry(key(true)).or_default()[side] += u128::from(layer.blocked_ns);
            }
        }
    }
    let largest = rows.values().flatten().max().copied().unwrap_or(0);
    let decimals = decimals_for(largest as f64 / 1e6);
    let signed = |ns: u128| i128::try_from(ns).unwrap_or(i128::MAX);
    let ms = |ns: i128| Cell::whole(ns, fixed(ns as f64 / 1e6, decimals));
    let mut rows: Vec<_> = rows.into_iter().filter(|(_, ns)| *ns != [0, 0]).collect();
    rows.sort_by_key(|(_, [before, now])| std::cmp::Reverse(before.abs_diff(*now)));
    let mut sheet = Sheet::new(
        "differences",
        "The same by layer",
        vec![
            Field::text("call", "call"),
            Field::text("layer", "layer"),
            Field::text("state", "state"),
            Field::number("before_ns", "before", "ms"),
            Field::number("now_ns", "now", "ms"),
            Field::number("delta_ns", "difference", "ms"),
        ],
    );
    for ((call, layer, asleep), [before, now]) in rows {
        let state = if asleep { "asleep" } else { "on a CPU" };
        let (before, now) = (signed(before), signed(now));
        let cells = [Cell::text(call), Cell::text(layer), Cell::text(state)];
        sheet.push(cells.into_iter().chain([ms(before), ms(now), ms(now - before)]).collect());
    }
    sheet.folded = true;
    sheet
}
