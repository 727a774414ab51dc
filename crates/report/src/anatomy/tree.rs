//! Calls, their layers, and the functions of these, with the time of each.
//!
//! The rows under a call add up to it, and the calls with the rest to the threads' time: a row
//! shows the sum of hidden ones.
//!
//! Computed by `split` in `crates/observe/src/anatomy/parts.rs`.

use std::collections::BTreeMap;

use iotomy_record::{Anatomy, DissectedCall, LedgerRow};

use super::callers::callers;
use crate::numbers::{decimals_for, fixed, share, thousands};
use crate::page::{Ink, Page};
use crate::table::{Column, Row, Table, bar};

/// The default number of calls with a row of their own.
const CALLS: usize = 6;
/// Layers of a call that get one.
const LAYERS: usize = 8;
/// A call with fewer samples is not split.
pub(super) const FEW: u64 = 10;
/// Functions of a layer that do, where it has one part in this many of the time that is split.
const FUNCTIONS: usize = 3;
const FUNCTIONS_OF: u128 = 20;
/// Columns a function's name may take, and up to which a name is whole on a usual terminal.
const FUNCTION: usize = 44;
const LABEL: usize = FUNCTION + 4;
/// Columns of a bar of the whole time.
const BAR: usize = 20;

/// A call of all images, or the time outside calls.
#[derive(Default)]
pub(super) struct CallNode {
    pub(super) name: String,
    /// Whether it is the time outside calls.
    pub(super) is_outside: bool,
    calls: usize,
    pub(super) on_cpu: u128,
    blocked: u128,
    /// Squared, of time on CPUs that is no exact figure of the trace's.
    error: f64,
    pub(super) samples: u128,
    /// By name; blocked time separately, by reason.
    pub(super) layers: BTreeMap<(String, Option<String>), Share>,
}

/// A layer of a part, on a CPU or blocked.
#[derive(Default)]
pub(super) struct Share {
    pub(super) ns: u128,
    /// Squared: errors of several images add up so.
    error: f64,
    pub(super) samples: u128,
    pub(super) functions: BTreeMap<String, u128>,
}

impl Share {
    /// Within how much of it the truth lies; 0 where it is exact.
    pub(super) fn error(&self) -> f64 {
        self.error.sqrt()
    }
}

impl CallNode {
    fn add(&mut self, row: &DissectedCall) {
        self.on_cpu += u128::from(row.on_cpu_ns);
        self.blocked += u128::from(row.blocked_ns);
        self.error += (row.error_ns as f64).powi(2);
        self.samples += u128::from(row.samples);
        for layer in &row.layers {
            if layer.on_cpu_ns > 0 {
                let share = self.layers.entry((layer.layer.clone(), None)).or_default();
                share.ns += u128::from(layer.on_cpu_ns);
                share.error += (layer.error_ns as f64).powi(2);
                share.samples += u128::from(layer.samples);
                for function in &layer.functions {
                    *share.functions.entry(function.name.clone()).or_default() +=
                        u128::from(function.on_cpu_ns);
                }
            }
            let known: u128 = layer.waits.values().map(|ns| u128::from(*ns)).sum();
            let rest = u128::from(layer.blocked_ns).saturating_sub(known);
            let waits = layer.waits.iter().map(|(what, ns)| (what.as_str(), u128::from(*ns)));
            for (what, ns) in waits.chain([("unknown", rest)]).filter(|(_, ns)| *ns > 0) {
                let key = (layer.layer.clone(), Some(what.to_owned()));
                self.layers.entry(key).or_default().ns += ns;
            }
        }
    }

    fn merge(&mut self, other: Self) {
        self.calls += 1;
        self.on_cpu += other.on_cpu;
        self.blocked += other.blocked;
        self.error += other.error;
        self.samples += other.samples;
        for (key, share) in other.layers {
            let into = self.layers.entry(key).or_default();
            into.ns += share.ns;
            into.error += share.error;
            into.samples += share.samples;
            for (name, ns) in share.functions {
                *into.functions.entry(name).or_default() += ns;
            }
        }
    }

    pub(super) fn ns(&self) -> u128 {
        self.on_cpu + self.blocked
    }
}

pub(super) fn print(page: &mut Page<'_>, record: &Anatomy) {
    let sum = |part: fn(&LedgerRow) -> u64| {
        record.trace.ledger.iter().map(|row| u128::from(part(row))).sum::<u128>()
    };
    let (threads, workers) = (sum(|row| row.thread_ns), sum(|row| row.worker_ns));
    let thread = threads + workers;
    let parts = parts(record);
    let shown: u128 = parts.iter().map(CallNode::ns).sum();
    let runnable = sum(|row| row.runnable_ns);
    let lines =
        Lines::new(thread.max(shown), parts.iter().map(|part| part.on_cpu).sum(), page.unicode());
    let mut table = Table::new(&[
        Column::text("where the time went", 9).usually(LABEL),
        Column::number("ms", "", 8),
        Column::number("±", "", 6),
        Column::number("share", "", 7),
        Column::text("", 1),
    ]);
    for part in &parts {
        lines.node(page, &mut table, part);
        for (name, ns) in callers(page, record, &part.name) {
            lines.plain(&mut table, &format!("  from {name}"), signed(ns), Ink::Dim);
        }
    }
    let left_out = left_out(record);
    if left_out > 0 {
        lines.plain(&mut table, LEFT_OUT, signed(left_out), Ink::Plain);
    }
    lines.plain(&mut table, "run queue delay", signed(runnable), Ink::Plain);
    let residual = signed(thread) - signed(shown) - signed(left_out) - signed(runnable);
    lines.plain(&mut table, "residual", residual, Ink::Plain);
    lines.plain(&mut table, whole(workers), signed(thread), Ink::Bold);
    page.blank();
    table.print(page);
    let mut note = "± is the 95 % confidence interval; values without one are exact".to_owned();
    if record.sampling.user_stacks.is_none() {
        note.push_str(". In user space, only the innermost function is known");
    }
    page.wrapped(&[(Ink::Plain, "  ")], Ink::Dim, &note);
}

/// The name of the time of all threads, of which io_uring's own have such CPU time.
pub(super) fn whole(workers: u128) -> &'static str {
    match workers {
        0 => "thread time",
        _ => "thread time, with the CPU time of io_uring's",
    }
}

/// The row of the calls that `--where` leaves out.
pub(super) const LEFT_OUT: &str = "calls left out";

/// The time of calls that `--where` leaves out, on a CPU and blocked: what the ledger has beyond the
/// calls that are counted and the time outside calls.
pub(super) fn left_out(record: &Anatomy) -> u128 {
    if record.trace.view.r#where.is_empty() {
        return 0;
    }
    let sum = |part: fn(&LedgerRow) -> u64| {
        record.trace.ledger.iter().map(|row| u128::from(part(row))).sum::<u128>()
    };
    let calls = || record.calls.iter();
    let in_calls = calls().filter(|row| row.syscall.is_some()).map(|row| u128::from(row.on_cpu_ns));
    let blocked = calls().map(|row| u128::from(row.blocked_ns));
    sum(|row| row.calls_on_cpu_ns).saturating_sub(in_calls.sum())
        + sum(|row| row.blocked_ns).saturating_sub(blocked.sum())
}

/// By call, most time first.
pub(super) fn by_call(record: &Anatomy) -> Vec<CallNode> {
    let mut by_name: BTreeMap<Option<&str>, CallNode> = BTreeMap::new();
    for row in &record.calls {
        by_name.entry(row.syscall.as_deref()).or_default().add(row);
    }
    let named = by_name.into_iter().map(|(name, part)| CallNode {
        name: name.unwrap_or("outside calls").to_owned(),
        is_outside: name.is_none(),
        ..part
    });
    let mut parts: Vec<CallNode> = named.collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.ns()));
    parts
}

/// The same, the small ones together.
fn parts(record: &Anatomy) -> Vec<CallNode> {
    let mut parts = by_call(record);
    let whole: u128 = parts.iter().map(CallNode::ns).sum();
    let most = match record.trace.view.top {
        None => CALLS,
        Some(0) => usize::MAX,
        Some(top) => top,
    };
    let usual = record.trace.view.top.is_none();
    let large = |part: &&CallNode| !usual || part.ns() * 100 >= whole;
    let shown = parts.iter().take(most).take_while(large).count().max(1).min(parts.len());
    if shown + 1 < parts.len() {
        let mut others = CallNode::default();
        parts.drain(shown..).for_each(|part| others.merge(part));
        others.name = format!("other calls ({})", thousands(others.calls as u128));
        parts.push(others);
    }
    parts
}

/// The layout of rows that share a whole.
struct Lines {
    whole: u128,
    /// On-CPU time, which samples split.
    busy: u128,
    decimals: usize,
    unicode: bool,
}

impl Lines {
    fn new(whole: u128, busy: u128, unicode: bool) -> Self {
        Self { whole, busy, decimals: decimals_for(ms(signed(whole))), unicode }
    }

    fn plain(&self, table: &mut Table<'_>, label: &str, ns: i128, ink: Ink) {
        self.about(table, label, ns, 0.0, ink);
    }

    /// A row of a time that is known within an error.
    fn about(&self, table: &mut Table<'_>, label: &str, ns: i128, error: f64, ink: Ink) {
        let cells = vec![
            label.to_owned(),
            fixed(ms(ns), self.decimals),
            if error > 0.0 { fixed(error / 1e6, self.decimals) } else { String::new() },
            share(ns, self.whole),
            String::new(),
        ];
        table.push(Row { cells, ink, ..Row::default() });
    }

    fn node(&self, page: &Page<'_>, table: &mut Table<'_>, part: &CallNode) {
        let label = page.name(&part.name, 24);
        self.about(table, &label, signed(part.ns()), part.error.sqrt(), Ink::Bold);
        let few = part.samples < u128::from(FEW);
        let unsplit = few && part.on_cpu > 0;
        if unsplit && part.blocked == 0 {
            table.remark(too_few(part.samples));
        }
        let mut layers: Vec<_> =
            part.layers.iter().filter(|((_, wait), _)| wait.is_some() || !few).collect();
        layers.sort_by_key(|(_, share)| std::cmp::Reverse(share.ns));
        if unsplit && part.blocked > 0 {
            self.plain(table, "  on-CPU", signed(part.on_cpu), Ink::Dim);
            table.remark(too_few(part.samples));
        }
        let large = |share: &Share| share.ns * 100 >= part.ns();
        let shown = layers.iter().take(LAYERS).take_while(|(_, share)| large(share)).count();
        let shown = if shown + 1 == layers.len() { layers.len() } else { shown };
        for ((layer, wait), share) in &layers[..shown] {
            self.layer(page, table, layer, wait.as_deref(), share);
        }
        if shown < layers.len() {
            let rest: u128 = layers[shown..].iter().map(|(_, share)| share.ns).sum();
            let label = format!("  {} more layers", layers.len() - shown);
            self.plain(table, &label, signed(rest), Ink::Dim);
        }
    }

    fn layer(
        &self,
        page: &Page<'_>,
        table: &mut Table<'_>,
        layer: &str,
        wait: Option<&str>,
        part: &Share,
    ) {
        let layer = page.name(layer, 40);
        let label = match wait {
            None => format!("  {layer}"),
            Some(wait) => format!("  {layer}, blocked: {}", page.name(wait, 24)),
        };
        let error = part.error();
        let functions = hottest(page, part);
        let apart = wait.is_none() && part.ns * FUNCTIONS_OF >= self.busy;
        let remarks = if apart {
            Vec::new()
        } else {
            functions.iter().take(1).map(|(name, _)| name.clone()).collect()
        };
        table.push(Row {
            cells: vec![
                label,
                fixed(ms(signed(part.ns)), self.decimals),
                if error > 0.0 { fixed(error / 1e6, self.decimals) } else { String::new() },
                share(signed(part.ns), self.whole),
                bar(signed(part.ns), self.whole, BAR, self.unicode),
            ],
            remarks,
            ink: Ink::Plain,
        });
        for (name, ns) in functions.iter().filter(|_| apart) {
            self.plain(table, &format!("    {name}"), signed(*ns), Ink::Dim);
        }
    }
}

/// The functions that a layer's time is mostly in.
fn hottest(page: &Page<'_>, part: &Share) -> Vec<(String, u128)> {
    let mut functions: Vec<_> = part.functions.iter().collect();
    functions.sort_by_key(|(_, ns)| std::cmp::Reverse(**ns));
    let large = functions.into_iter().take(FUNCTIONS).filter(|(_, ns)| **ns * 10 >= part.ns);
    large.map(|(name, ns)| (page.name(name, FUNCTION), *ns)).collect()
}

/// Why the on-CPU time of a call is not split.
fn too_few(samples: u128) -> String {
    match samples {
        0 => String::from("no sample"),
        some => format!("too few samples ({})", thousands(some)),
    }
}

fn ms(ns: i128) -> f64 {
    ns as f64 / 1e6
}

fn signed(ns: u128) -> i128 {
    i128::try_from(ns).unwrap_or(i128::MAX)
}
