//! The stacks of a record against those of an earlier one: as a picture of flames, and by layer in a table.

use std::collections::BTreeMap;

use iotomy_record::Anatomy;

use super::icicle::left_out;
use super::stacks::{Kind, StackTree, Sums, largest, named, stacks};
use crate::chart::{Chart, Key};
use crate::frames::{self, Frame, RootPosition};
use crate::numbers::{decimals_for, duration, fixed};
use crate::page::{Page, elide};
use crate::section::origin;
use crate::sheet::{Cell, Field, Sheet, wide_style};
use crate::trace;

/// The additional (red) and missing (blue) time of `after` compared with `before`, in SVG; none
/// where no time was sampled.
pub fn difference(before: &Anatomy, after: &Anatomy) -> Option<String> {
    let style = wide_style();
    let page = Page::new(&style);
    let mut chart = difference_chart(&page, before, after)?;
    let title = |record: &Anatomy| elide(&trace::title(&page, &record.trace), 48, "…");
    chart.title = format!("{}, against {}", title(after), title(before));
    Some(chart.file(&origin(&trace::facts(&page, &after.trace))))
}

/// The least part of itself by which a frame that is drawn as changed has changed.
const CHANGED: [(f64, &str, &str); 4] = [
    (0.6, "f-more3", "f-less3"),
    (0.25, "f-more2", "f-less2"),
    (0.05, "f-more1", "f-less1"),
    (0.0, "f-same", "f-same"),
];

/// The differences from an earlier record: boxes are as wide as the longer of the two times, so
/// that functions that are gone are visible, too.
pub(super) fn difference_chart(page: &Page<'_>, before: &Anatomy, now: &Anatomy) -> Option<Chart> {
    let callers = have_callers(before, now);
    // Programs have other names on the two sides; their calls have the same.
    let both = stacks(before, 0).into_iter().chain(stacks(now, 1)).collect();
    let changed = |name: &str, _: Kind, sums: Sums| changed(named(page, name), sums);
    let (root, small) = StackTree::new(both, false, callers).frames(("all", Kind::Whole), &changed);
    if root.width == 0 {
        return None;
    }
    let says: Vec<String> =
        largest(&root).iter().map(|frame| format!("{}: {}", frame.name, frame.says)).collect();
    let drawn = frames::draw(&root, RootPosition::Below);
    let mut notes = vec![
        format!("before: {}", trace::title(page, &before.trace)),
        "the width of a box is the longer of its two times, callees included; small differences \
         of sampled times are chance"
            .to_owned(),
    ];
    notes.extend(left_out(drawn.left_out + small));
    Some(Chart {
        id: "difference".into(),
        title: "Difference from the first anatomy".into(),
        says: says.join("; "),
        legend: vec![
            Key::new("f-more3", "more than before (the stronger, the larger the new share)"),
            Key::new("f-same", "within 5 %"),
            Key::new("f-less3", "less than before"),
        ],
        notes,
        drawing: drawn.drawing,
    })
}

fn changed(name: String, Sums { both: [before, now], width }: Sums) -> Frame {
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
        name,
        ..Frame::default()
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
        let state = if asleep { "blocked" } else { "on-CPU" };
        let (before, now) = (signed(before), signed(now));
        let cells = [Cell::text(call), Cell::text(layer), Cell::text(state)];
        sheet.push(cells.into_iter().chain([ms(before), ms(now), ms(now - before)]).collect());
    }
    sheet.folded = true;
    sheet
}

/// Whether both have user stacks: if only one had, everything would differ.
fn have_callers(before: &Anatomy, after: &Anatomy) -> bool {
    [before, after].iter().all(|record| record.sampling.user_stacks.is_some())
}
