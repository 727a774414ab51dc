//! The calls, their layers and the functions of these as an icicle, and as a table.

use iotomy_record::{Anatomy, LedgerRow};

use super::tree::{self, CallNode, FEW, LEFT_OUT, Share, by_call};
use crate::chart::{Chart, Key};
use crate::frames::{self, Frame, RootPosition};
use crate::numbers::{counted, decimals_for, duration, fixed, percent, share, thousands};
use crate::page::Page;
use crate::sheet::{Cell, Field, Sheet};

/// The class of boxes of the whole time.
pub(super) const WHOLE: &str = "f-whole";
pub(super) const ASLEEP: &str = "f-asleep";
pub(super) const USER: &str = "f-user";
const WAITING: &str = "f-waiting";
const RESIDUAL: &str = "f-residual";
const ON_CPU: [&str; 3] = ["f-hot0", "f-hot1", "f-hot2"];

/// Neighbours of one kind are distinguished by their shade, which a name always has the same of.
pub(super) fn on_cpu(name: &str) -> &'static str {
    let sum = name.bytes().fold(7usize, |sum, byte| sum.wrapping_mul(31) + usize::from(byte));
    ON_CPU[sum % ON_CPU.len()]
}

/// Whether a layer is the program's own and not the kernel's.
pub(super) fn is_of_user_space(layer: &str) -> bool {
    ["program", "libc", "vDSO", "dynamic linker", "generated code"].contains(&layer)
        || layer.starts_with("library ")
}

pub(super) fn legend() -> Vec<Key> {
    vec![
        Key::new(WHOLE, "total of a program or call"),
        Key::new(ON_CPU[0], "on-CPU, in the kernel"),
        Key::new(USER, "on-CPU, in the program"),
        Key::new(ASLEEP, "blocked"),
    ]
}

/// The number of boxes that are not drawn, in words.
pub(super) fn left_out(count: usize) -> Option<String> {
    let boxes = counted(count as u128, "box is", "boxes are");
    (count > 0).then(|| format!("{boxes} too small to be drawn"))
}

/// Writes times of a whole.
struct ShareText {
    whole: u128,
}

impl ShareText {
    fn frame(&self, name: String, ns: u128, class: &'static str, more: &str) -> Frame {
        let part = share(i128::try_from(ns).unwrap_or(i128::MAX), self.whole);
        let says = format!("{}, {part}{more}", duration(ns as f64));
        Frame { name, says, class, width: ns, ..Frame::default() }
    }

    fn call(&self, page: &Page<'_>, part: &CallNode) -> Frame {
        let mut frame = self.frame(page.name(&part.name, 60), part.ns(), WHOLE, "");
        let few = part.samples < u128::from(FEW);
        if few && part.on_cpu > 0 {
            let class = if part.is_outside { USER } else { ON_CPU[0] };
            let more = format!("; too few samples ({}) to split it", thousands(part.samples));
            frame.parts.push(self.frame("on-CPU".into(), part.on_cpu, class, &more));
        }
        let layers = part.layers.iter().filter(|((_, wait), _)| wait.is_some() || !few);
        frame.parts.extend(layers.map(|((layer, wait), share)| {
            self.layer(page, part.is_outside, layer, wait.as_deref(), share)
        }));
        frame.parts.sort_by_key(|part| std::cmp::Reverse(part.width));
        frame
    }

    fn layer(
        &self,
        page: &Page<'_>,
        is_outside: bool,
        layer: &str,
        wait: Option<&str>,
        part: &Share,
    ) -> Frame {
        let name = page.name(layer, 60);
        if let Some(wait) = wait {
            let name = format!("{name}, blocked: {}", page.name(wait, 40));
            return self.frame(name, part.ns, ASLEEP, "; exact");
        }
        let is_user = is_outside && is_of_user_space(layer);
        let class = |name: &str| if is_user { USER } else { on_cpu(name) };
        let more = match part.error() {
            error if error > 0.0 => format!(", ± {}", duration(error)),
            _ => String::new(),
        };
        let mut frame = self.frame(name.clone(), part.ns, class(&name), &more);
        let mut room = part.ns;
        let mut functions: Vec<_> = part.functions.iter().collect();
        functions.sort_by_key(|(_, ns)| std::cmp::Reverse(**ns));
        for (name, ns) in functions {
            // A record that does not add up must not draw beside its box.
            let ns = (*ns).min(room);
            room -= ns;
            let name = page.name(name, 100);
            let class = class(&name);
            frame.parts.push(self.frame(name, ns, class, ""));
        }
        frame
    }
}

fn threads(record: &Anatomy, part: fn(&LedgerRow) -> u64) -> u128 {
    record.trace.ledger.iter().map(|row| u128::from(part(row))).sum()
}

/// The picture; none where no time was seen.
pub(super) fn chart(page: &Page<'_>, record: &Anatomy) -> Option<Chart> {
    let parts = by_call(record);
    let shown: u128 = parts.iter().map(CallNode::ns).sum();
    let runnable = threads(record, |row| row.runnable_ns);
    let not_counted = tree::left_out(record);
    let workers = threads(record, |row| row.worker_ns);
    let all = threads(record, |row| row.thread_ns) + workers;
    let whole = all.max(shown + not_counted + runnable);
    if whole == 0 {
        return None;
    }
    let tell = ShareText { whole };
    let mut root = tell.frame(tree::whole(workers).into(), whole, WHOLE, "");
    root.parts = parts.iter().map(|part| tell.call(page, part)).collect();
    root.parts.push(tell.frame(LEFT_OUT.into(), not_counted, RESIDUAL, ""));
    root.parts.push(tell.frame("run queue delay".into(), runnable, WAITING, ""));
    let residual = whole - shown - not_counted - runnable;
    root.parts.push(tell.frame("residual".into(), residual, RESIDUAL, ""));
    root.parts.retain(|part| part.width > 0);
    root.parts.sort_by_key(|part| std::cmp::Reverse(part.width));
    let says: Vec<String> =
        root.parts.iter().take(8).map(|part| format!("{} {}", part.name, part.says)).collect();
    let drawn = frames::draw(&root, RootPosition::Above);
    let mut legend = legend();
    for (class, label, ns) in
        [(WAITING, "run queue delay", runnable), (RESIDUAL, "residual", residual)]
    {
        legend.extend((ns > 0).then(|| Key::new(class, label)));
    }
    let mut notes = vec![
        "below each call are its layers, and below these the sampled functions; widths are times"
            .to_owned(),
    ];
    notes.extend(left_out(drawn.left_out));
    Some(Chart {
        id: "icicle".into(),
        title: "Calls, layers and functions".into(),
        says: says.join("; "),
        legend,
        notes,
        drawing: drawn.drawing,
    })
}

/// Functions of a layer that are named in its row.
const FUNCTIONS: usize = 3;

/// Every layer of every call.
pub(super) fn sheet(page: &Page<'_>, record: &Anatomy) -> Sheet {
    let parts = by_call(record);
    let shown: u128 = parts.iter().map(CallNode::ns).sum();
    let all = threads(record, |row| row.thread_ns) + threads(record, |row| row.worker_ns);
    let whole = all.max(shown);
    let mut sheet = Sheet::new(
        "layers",
        "Layers of each call",
        vec![
            Field::text("call", "call"),
            Field::text("layer", "layer"),
            Field::text("waits_for", "blocked on"),
            Field::number("ns", "time", "ms"),
            Field::number("error_ns", "±", "ms"),
            Field::number("percent", "share", "%"),
            Field::number("samples", "samples", ""),
            Field::text("functions", "hottest functions"),
        ],
    );
    let mut rows: Vec<_> = parts
        .iter()
        .flat_map(|part| part.layers.iter().map(move |(key, share)| (part, key, share)))
        .collect();
    rows.sort_by_key(|(.., share)| std::cmp::Reverse(share.ns));
    for (part, (layer, wait), of) in rows {
        let mut row = vec![
            Cell::text(page.name(&part.name, 60)),
            Cell::text(page.name(layer, 60)),
            Cell::text(wait.as_ref().map_or_else(String::new, |wait| page.name(wait, 40))),
        ];
        row.extend(figures(of, wait.is_some(), whole));
        row.push(Cell::text(hottest(page, of)));
        sheet.push(row);
    }
    sheet.folded = true;
    let exact =
        "± is the 95 % confidence interval; blocked time has none, as every sleep is recorded";
    sheet.notes.push(exact.to_owned());
    sheet.without_empty_columns()
}

/// Time, error, share and samples; blocked time was not sampled.
fn figures(part: &Share, is_asleep: bool, whole: u128) -> [Cell; 4] {
    let decimals = decimals_for(whole as f64 / 1e6);
    let signed = i128::try_from(part.ns).unwrap_or(i128::MAX);
    let error = part.error();
    let [error, samples] = match is_asleep {
        true => [Cell::absent(), Cell::absent()],
        false => [
            Cell::real(error, fixed(error / 1e6, decimals)),
            Cell::whole(part.samples, thousands(part.samples)),
        ],
    };
    let of_all = part.ns as f64 / whole.max(1) as f64 * 100.0;
    [
        Cell::whole(part.ns, fixed(part.ns as f64 / 1e6, decimals)),
        error,
        Cell::real(of_all, percent(signed, whole)),
        samples,
    ]
}

fn hottest(page: &Page<'_>, part: &Share) -> String {
    let mut functions: Vec<_> = part.functions.iter().collect();
    functions.sort_by_key(|(_, ns)| std::cmp::Reverse(**ns));
    let few = functions.iter().take(FUNCTIONS).map(|(name, ns)| {
        let of = share(i128::try_from(**ns).unwrap_or(i128::MAX), part.ns);
        format!("{} {of}", page.name(name, 60))
    });
    few.collect::<Vec<_>>().join(", ")
}
