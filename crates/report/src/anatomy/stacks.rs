//! The record's stacks as a picture of flames.
//!
//! The pictures are plain boxes: a page's script has them zoom, a file of its own stands still.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeMap;

use iotomy_record::{Anatomy, Stack, StackKind};

use super::icicle::{ASLEEP, USER, WHOLE, is_of_user_space, left_out, legend, on_cpu};
use super::named;
use crate::chart::{Chart, Key};
use crate::frames::{self, Frame, RootPosition};
use crate::numbers::{duration, share};
use crate::page::Page;
use crate::section::origin;
use crate::sheet::wide_style;
use crate::trace;
use crate::trace::images::Names;

/// The kind of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// A program, a call: blocked and on-CPU time are below it.
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

/// Functions of a stack that are kept: the kernel has no longer ones, a stranger's record might.
pub(super) const DEEPEST: usize = 127;

/// A stack with its time, of the first record or of the second.
pub(super) struct Timed<'r> {
    pub(super) stack: Cow<'r, Stack>,
    pub(super) ns: u128,
    side: usize,
}

/// The stacks of one record, or of two (before and now), put together from the outside in. A stranger's
/// record may have millions of functions that are in no other stack, so boxes too small to be drawn are
/// counted and not made.
pub(super) struct StackTree<'r> {
    /// In the order of their functions, from the outside in.
    stacks: Vec<Timed<'r>>,
    with_program: bool,
    with_callers: bool,
}

/// Times of a box on both sides, and the sum over its frames of the longer of the two.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sums {
    pub(super) both: [u128; 2],
    pub(super) width: u128,
}

/// Receives a box when its parts are known.
trait Boxes {
    type Made;

    /// A box with its parts; `at` is empty for the whole.
    fn made(&mut self, at: (&str, Kind), sums: Sums, parts: Vec<(Self::Made, Sums)>) -> Self::Made;
}

impl<'r> StackTree<'r> {
    pub(super) fn new(mut stacks: Vec<Timed<'r>>, with_program: bool, with_callers: bool) -> Self {
        stacks.sort_by(|a, b| {
            let both = |depth| {
                let at = |one| function(one, depth, with_program, with_callers);
                (at(&a.stack), at(&b.stack))
            };
            let differ = (0..).map(both).find(|(a, b)| a != b || a.is_none());
            differ.map_or(Ordering::Equal, |(a, b)| a.cmp(&b))
        });
        Self { stacks, with_program, with_callers }
    }

    /// The boxes of these stacks, which are alike down to `depth`, are made, the innermost first.
    fn go<B: Boxes>(
        &self,
        all: &[Timed<'r>],
        at: (&str, Kind),
        depth: usize,
        boxes: &mut B,
    ) -> (B::Made, Sums) {
        let (mut own, mut rest) = ([0u128; 2], all);
        let mut sums = Sums::default();
        let mut parts = Vec::new();
        while let Some(first) = rest.first() {
            let name = self.function(first, depth);
            let alike = rest.partition_point(|one| self.function(one, depth) <= name);
            let (part, behind) = rest.split_at(alike);
            rest = behind;
            let Some((name, kind)) = name else {
                part.iter().for_each(|one| own[one.side] += one.ns);
                continue;
            };
            let part = self.go(part, (&name, kind), depth + 1, boxes);
            sums.both[0] += part.1.both[0];
            sums.both[1] += part.1.both[1];
            sums.width += part.1.width;
            parts.push(part);
        }
        sums.both[0] += own[0];
        sums.both[1] += own[1];
        sums.width += own[0].max(own[1]);
        (boxes.made(at, sums, parts), sums)
    }

    fn function<'s>(&self, one: &'s Timed<'r>, depth: usize) -> Option<(Cow<'s, str>, Kind)> {
        function(&one.stack, depth, self.with_program, self.with_callers)
    }

    /// The tree of the boxes that are drawn, and the number of the others. `frame` makes one from
    /// its name, its kind and its times, with a width of `width`.
    pub(super) fn frames(
        &self,
        name: (&str, Kind),
        frame: &dyn Fn(&str, Kind, Sums) -> Frame,
    ) -> (Frame, usize) {
        let mut all = frames::Largest::default();
        let ((), sums) = self.go(&self.stacks, name, 0, &mut all);
        let floor = all.floor(sums.width);
        let mut made = Made { floor, frame, count: 0 };
        let (root, _) = self.go(&self.stacks, name, 0, &mut made);
        // The whole is in the tree, however small.
        (root.unwrap_or_default(), all.count - made.count.max(1))
    }
}

impl Boxes for frames::Largest {
    type Made = ();

    fn made(&mut self, _: (&str, Kind), sums: Sums, _: Vec<((), Sums)>) {
        self.add(sums.width);
    }
}

/// Makes the boxes that are drawn.
struct Made<'f> {
    floor: u128,
    frame: &'f dyn Fn(&str, Kind, Sums) -> Frame,
    count: usize,
}

impl Boxes for Made<'_> {
    type Made = Option<Frame>;

    fn made(
        &mut self,
        (name, kind): (&str, Kind),
        sums: Sums,
        parts: Vec<(Option<Frame>, Sums)>,
    ) -> Option<Frame> {
        if sums.width < self.floor {
            return None;
        }
        self.count += 1;
        let mut frame = (self.frame)(name, kind, sums);
        let mut gap = 0u128;
        for (part, sums) in parts {
            match part {
                Some(part) => frame.parts.push(Frame { gap: std::mem::take(&mut gap), ..part }),
                None => gap = gap.saturating_add(sums.width),
            }
        }
        Some(frame)
    }
}

/// The frame `depth` below the outermost of a stack: its program, functions of user space, its
/// call, and those of the kernel.
fn function(
    stack: &Stack,
    depth: usize,
    with_program: bool,
    with_callers: bool,
) -> Option<(Cow<'_, str>, Kind)> {
    let mut depth = depth;
    if with_program {
        if depth == 0 {
            return Some((Cow::from(&stack.exec), Kind::Whole));
        }
        depth -= 1;
    }
    if with_callers {
        let callers = stack.user.len().min(DEEPEST);
        if depth < callers {
            return Some((Cow::from(&stack.user[depth]), Kind::User));
        }
        if is_of_callers_alone(stack) {
            return None;
        }
        depth -= callers;
    }
    if depth == 0 {
        let call = stack.syscall.as_deref().unwrap_or("outside calls");
        return Some((Cow::from(call), Kind::Whole));
    }
    depth -= 1;
    let kind = match stack.kind {
        StackKind::Blocked if depth == 0 => {
            let reason = stack.reason.as_deref().unwrap_or("unknown");
            return Some((Cow::from(format!("blocked: {reason}")), Kind::Asleep));
        }
        StackKind::Blocked => {
            depth -= 1;
            Kind::Asleep
        }
        StackKind::OnCpu if stack.syscall.is_none() && is_of_user_space(&stack.layer) => Kind::User,
        StackKind::OnCpu => Kind::Kernel,
    };
    let frame = stack.frames.get(depth).filter(|_| depth < DEEPEST)?;
    Some((Cow::from(frame), kind))
}

/// The name of a box.
pub(super) fn named(page: &Page<'_>, name: &str) -> String {
    match page.name(name, 100) {
        name if name.is_empty() => "?".to_owned(),
        name => name,
    }
}

/// Whether a stack consists of user functions only: the thread was running there.
pub(super) fn is_of_callers_alone(stack: &Stack) -> bool {
    let outside = stack.kind == StackKind::OnCpu && stack.syscall.is_none();
    outside && !stack.user.is_empty() && is_of_user_space(&stack.layer)
}

/// The frame of a call's time without a stack.
pub(super) const NOT_SAMPLED: &str = "not sampled";

/// The stacks of a record, and the time without a stack: so that the whole is complete.
pub(super) fn stacks(record: &Anatomy, side: usize) -> Vec<Timed<'_>> {
    let mut known: BTreeMap<(u32, &str, u32, Option<&str>), u128> = BTreeMap::new();
    let names = Names::from_record(&record.trace);
    let mut stacks = Vec::new();
    for stack in &record.stacks {
        let key = (stack.pid, stack.exec.as_str(), stack.image, stack.syscall.as_deref());
        *known.entry(key).or_default() += u128::from(stack.ns);
        stacks.push(Timed { stack: named::stack(stack, &names), ns: u128::from(stack.ns), side });
    }
    for call in &record.calls {
        let whole = u128::from(call.on_cpu_ns) + u128::from(call.blocked_ns);
        let key = (call.pid, call.exec.as_str(), call.image, call.syscall.as_deref());
        let rest = Stack {
            exec: names.other_name(&call.exec, call.pid).unwrap_or_else(|| call.exec.clone()),
            syscall: call.syscall.clone(),
            frames: vec![NOT_SAMPLED.to_owned()],
            ..Stack::default()
        };
        let ns = whole.saturating_sub(known.remove(&key).unwrap_or(0));
        stacks.push(Timed { stack: Cow::Owned(rest), ns, side });
    }
    stacks.retain(|one| one.ns > 0);
    stacks
}

/// Whether the record has more than one program.
fn has_programs(stacks: &[Timed<'_>]) -> bool {
    stacks.windows(2).any(|two| two[0].stack.exec != two[1].stack.exec)
}

/// The record as a picture of flames, in SVG; none where no time was seen.
pub fn flame(record: &Anatomy) -> Option<String> {
    let style = wide_style();
    let page = Page::new(&style);
    let chart = flame_chart(&page, record)?;
    Some(chart.file(&origin(&trace::facts(&page, &record.trace))))
}

/// The picture; none where no time was seen.
pub(super) fn flame_chart(page: &Page<'_>, record: &Anatomy) -> Option<Chart> {
    let stacks = stacks(record, 0);
    let programs = has_programs(&stacks);
    let whole: u128 = stacks.iter().map(|one| one.ns).sum();
    let name = match stacks.first() {
        Some(one) if !programs => page.name(&one.stack.exec, 60),
        _ => "all programs".to_owned(),
    };
    if whole == 0 {
        return None;
    }
    let plain = |name: &str, kind: Kind, sums: Sums| plain(named(page, name), kind, sums, whole);
    let tower = StackTree::new(stacks, programs, true);
    let (root, small) = tower.frames((&name, Kind::Whole), &plain);
    let says: Vec<String> =
        largest(&root).iter().map(|frame| format!("{} {}", frame.name, frame.says)).collect();
    let drawn = frames::draw(&root, RootPosition::Below);
    let mut notes = vec![
        "each box stands on its caller; widths are times (on-CPU by samples, blocked exactly), \
         and the order from left to right is alphabetical"
            .to_owned(),
    ];
    notes.extend(left_out(drawn.left_out + small));
    Some(Chart {
        id: "flame".into(),
        title: "Flame graph".into(),
        says: says.join("; "),
        legend: legend_of(record),
        notes,
        drawing: drawn.drawing,
    })
}

/// In a record with user stacks, functions of the program are below those they call.
fn legend_of(record: &Anatomy) -> Vec<Key> {
    let mut legend = legend();
    if record.sampling.user_stacks.is_some() {
        legend.retain(|key| key.class != USER);
        legend.push(Key::new(USER, "functions of the program, and on-CPU time in them"));
    }
    legend
}

fn plain(name: String, kind: Kind, sums: Sums, whole: u128) -> Frame {
    let ns = sums.both[0];
    let part = share(i128::try_from(ns).unwrap_or(i128::MAX), whole);
    Frame {
        says: format!("{}, {part}", duration(ns as f64)),
        class: kind.class(&name),
        width: ns,
        name,
        ..Frame::default()
    }
}

/// The largest parts of a picture, as its text alternative.
pub(super) fn largest(root: &Frame) -> Vec<&Frame> {
    let mut parts: Vec<&Frame> = root.parts.iter().collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.width));
    parts.truncate(8);
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::frames::MOST;

    fn box_of(name: &str, kind: Kind, sums: Sums) -> Frame {
        plain(name.to_owned(), kind, sums, sums.width)
    }

    /// Only the boxes that are drawn, and all there are.
    fn trees(stacks: Vec<Stack>) -> ((Frame, usize), Frame) {
        let timed = |stack: Stack| {
            let ns = u128::from(stack.ns);
            Timed { stack: Cow::Owned(stack), ns, side: 0 }
        };
        let tower = StackTree::new(stacks.into_iter().map(timed).collect(), true, true);
        let name = ("all", Kind::Whole);
        let mut all = Made { floor: 0, frame: &box_of, count: 0 };
        let (root, _) = tower.go(&tower.stacks, name, 0, &mut all);
        (tower.frames(name, &box_of), root.unwrap())
    }

    fn boxes(frame: &Frame) -> usize {
        1 + frame.parts.iter().map(boxes).sum::<usize>()
    }

    #[test]
    fn of_functions_in_no_other_stack_only_those_that_are_drawn_are_kept() {
        let stack = |at: u64| Stack {
            exec: "dd".into(),
            frames: (0..127).map(|depth| format!("{at}.{depth}")).collect(),
            ns: 1 + at % 9,
            ..Stack::default()
        };
        let ((drawn, small), all) = trees((0..400).map(stack).collect());
        assert!(boxes(&drawn) <= MOST, "{}", boxes(&drawn));
        assert_eq!(boxes(&drawn) + small, boxes(&all));
        assert_eq!(boxes(&all), 3 + 400 * 127);
    }

    #[test]
    fn of_no_time_nothing_is_left_out_but_the_whole() {
        for stacks in [vec![], vec![Stack { frames: vec!["f".into()], ..Stack::default() }]] {
            let ((drawn, small), all) = trees(stacks);
            let [drawn, all] =
                [&drawn, &all].map(|root| frames::draw(root, RootPosition::Below).left_out);
            assert_eq!(drawn + small, all);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn the_picture_is_that_of_all_boxes(
            stacks in prop::collection::vec((prop::collection::vec(0u8..4, 0..7), 0u64..9, 0u32..40), 0..2_000)
        ) {
            let stack = |(frames, ns, scale): (Vec<u8>, u64, u32)| Stack {
                frames: frames.into_iter().map(|at| format!("f{at}")).collect(),
                ns: ns << scale,
                ..Stack::default()
            };
            let ((drawn, small), all) = trees(stacks.into_iter().map(stack).collect());
            let (drawn, all) = (frames::draw(&drawn, RootPosition::Below), frames::draw(&all, RootPosition::Below));
            prop_assert_eq!(drawn.left_out + small, all.left_out);
            prop_assert_eq!(drawn.drawing.body, all.drawing.body);
        }
    }
}
