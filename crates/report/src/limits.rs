//! [`Limits`] as text: the number of measured ones and the time, then the floors, the ceilings,
//! those of each file system, and the skipped ones.
//!
//! One unit a column: ns for all floors, MB/s for all ceilings, so that they compare at a glance.
//!
//! Computed by `run` in `crates/limits/src/plan.rs`.

mod section;

use std::collections::{BTreeMap, BTreeSet};

use iotomy_record::{Limit, Limits, Machine};

use crate::Style;
use crate::numbers::{bytes, counted, figure, thousands};
use crate::page::{Ink, Page, columns};
pub(crate) use section::section;

/// Columns of the figures, wider when one needs more.
const VALUE: usize = 9;
const SPREAD: usize = 7;

/// Columns the names may take.
const WIDEST_NAME: usize = 30;

/// Columns below which the methods stand under their rows.
const METHOD: usize = 30;

/// The record as the text a terminal shows, ending in a line break. Any record renders, a hostile one
/// included.
pub fn limits(record: &Limits, style: &Style) -> String {
    let mut page = Page::new(style);
    headline(&mut page, record);
    machine(&mut page, &record.machine);
    let of_machine: Vec<_> = record.limits.iter().filter(|limit| limit.volume.is_none()).collect();
    tables(&mut page, "this machine", &of_machine);
    for of_volume in by_volume(record) {
        let title = title(&page, of_volume[0]);
        tables(&mut page, &title, &of_volume);
    }
    skipped(&mut page, record);
    if record.limits.iter().any(|limit| limit.value.is_some()) {
        let text = "a figure is the median of many short batches; its spread is the interquartile \
            range, as a share of it";
        page.blank();
        page.wrapped(&[(Ink::Plain, "  ")], Ink::Dim, text);
    }
    page.finish()
}

/// How many were measured, and how many of them were kept, and since when.
fn counts(page: &Page<'_>, record: &Limits) -> (String, Option<String>) {
    let all = record.limits.len() as u128;
    let without = record.limits.iter().filter(|limit| limit.skipped.is_some()).count() as u128;
    let mut head = counted(all.saturating_sub(without), "limit", "limits");
    if without > 0 {
        head += &format!(", {} skipped", thousands(without));
    }
    let when = |limit: &Limit| limit.measured.clone().unwrap_or_else(|| record.started.clone());
    let measured = record.limits.iter().filter(|limit| limit.value.is_some());
    let times: Vec<String> = measured.map(when).filter(|time| *time != record.started).collect();
    let kept = times.len() as u128;
    let times: BTreeSet<String> = times.into_iter().collect();
    let first = times.first().unwrap_or(&record.started);
    let kept = (kept > 0).then(|| {
        let mut text = format!("{} kept from {}", thousands(kept), page.name(first, 40));
        if let Some(last) = times.last().filter(|last| *last != first) {
            text += &format!(" to {}", page.name(last, 40));
        }
        text
    });
    (head, kept)
}

fn headline(page: &mut Page<'_>, record: &Limits) {
    let (head, kept) = counts(page, record);
    page.line(&[
        (Ink::Bold, &head),
        (Ink::Plain, &format!(" · {}", page.name(&record.started, 40))),
    ]);
    if let Some(text) = kept {
        page.wrapped(&[(Ink::Plain, "  ")], Ink::Plain, &(text + "; --refresh measures again"));
    }
}

fn machine(page: &mut Page<'_>, machine: &Machine) {
    let mut parts = vec![page.name(&machine.kernel, 60)];
    if !machine.cpu.is_empty() {
        parts.push(format!("{} x {}", machine.cpus, page.name(&machine.cpu, 60)));
    }
    if machine.memory_bytes > 0 {
        // To the MiB: the kernel's own part makes it an odd number.
        parts.push(bytes(u128::from(machine.memory_bytes >> 20) << 20));
    }
    for (lead, text) in [("", &machine.virtualization), ("clock ", &machine.clock)] {
        if !text.is_empty() && text != "none" {
            parts.push(format!("{lead}{}", page.name(text, 30)));
        }
    }
    parts.retain(|part| !part.is_empty());
    page.wrapped(&[(Ink::Plain, "  ")], Ink::Dim, &parts.join(" · "));
}

/// The limits of each file system, none of them without any, in the order in which they are met.
fn by_volume(record: &Limits) -> Vec<Vec<&Limit>> {
    let mut places = BTreeMap::new();
    let mut volumes: Vec<Vec<&Limit>> = Vec::new();
    for limit in &record.limits {
        let Some(volume) = &limit.volume else { continue };
        let place = *places.entry(&volume.id).or_insert(volumes.len());
        match volumes.get_mut(place) {
            Some(known) => known.push(limit),
            None => volumes.push(vec![limit]),
        }
    }
    volumes
}

fn title(page: &Page<'_>, limit: &Limit) -> String {
    let volume = limit.volume.as_ref();
    let (path, kind) = volume.map_or(("", ""), |v| (v.path.as_str(), v.file_system.as_str()));
    format!("{} ({})", page.name(path, 50), page.name(kind, 20))
}

fn tables(page: &mut Page<'_>, title: &str, limits: &[&Limit]) {
    let kinds =
        [("ns", "floors (medians)", "ns", 1.0), ("bytes/s", "ceilings (medians)", "MB/s", 1e-6)];
    for (unit, head, shown, factor) in kinds {
        let rows: Vec<_> = limits.iter().copied().filter(|limit| limit.unit == unit).collect();
        let rows = rows.iter().filter_map(|limit| row(page, limit, factor)).collect();
        table(page, &format!("{title}: {head}"), shown, rows);
    }
}

struct Row {
    name: String,
    value: String,
    spread: String,
    method: String,
}

fn row(page: &Page<'_>, limit: &Limit, factor: f64) -> Option<Row> {
    let value = limit.value?;
    let spread = limit.spread.unwrap_or(0.0) / value * 100.0;
    let spread = if spread >= 1_000.0 { "> 999".to_owned() } else { format!("{spread:.1}") };
    Some(Row {
        name: page.name(&limit.name, WIDEST_NAME),
        value: figure(rounded(value * factor)),
        spread: format!("{spread} %"),
        method: page.name(&limit.method, 400),
    })
}

/// To three significant digits: more is noise here.
fn rounded(x: f64) -> f64 {
    let unit = 10f64.powf(x.log10().floor() - 2.0);
    let short = (x / unit).round() * unit;
    // At the ends of the range there is no such unit.
    if short.is_finite() { short } else { x }
}

fn table(page: &mut Page<'_>, title: &str, unit: &str, rows: Vec<Row>) {
    if rows.is_empty() {
        return;
    }
    let widest = |cells: fn(&Row) -> &str| rows.iter().map(|row| columns(cells(row))).max();
    let name = widest(|row| &row.name).unwrap_or(0);
    let value = widest(|row| &row.value).unwrap_or(0).max(VALUE);
    let room = page.width().saturating_sub(2 + name + 2 + value + 2 + SPREAD + 3);
    page.blank();
    page.line(&[(Ink::Bold, title)]);
    let head = format!("  {:name$}  {unit:>value$}  {:>SPREAD$}", "", "spread");
    page.line(&[(Ink::Dim, &head)]);
    for row in rows {
        let pad = |text: &str, width: usize| " ".repeat(width.saturating_sub(columns(text)));
        let line = format!(
            "  {}{}  {}{}  {}{}",
            row.name,
            pad(&row.name, name),
            pad(&row.value, value),
            row.value,
            pad(&row.spread, SPREAD),
            row.spread
        );
        if room >= METHOD {
            page.wrapped(&[(Ink::Plain, &line), (Ink::Plain, "   ")], Ink::Dim, &row.method);
        } else {
            page.line(&[(Ink::Plain, &line)]);
            page.wrapped(&[(Ink::Plain, "      ")], Ink::Dim, &row.method);
        }
    }
}

fn skipped(page: &mut Page<'_>, record: &Limits) {
    let mut first = true;
    for limit in &record.limits {
        let Some(reason) = &limit.skipped else { continue };
        if first {
            page.blank();
            page.line(&[(Ink::Bold, "skipped")]);
            first = false;
        }
        let mut lead = format!("  {}", page.name(&limit.name, WIDEST_NAME));
        if let Some(volume) = &limit.volume {
            lead += &format!(" of {}", page.name(&volume.path, 30));
        }
        let reason = page.name(reason, 400);
        page.wrapped(&[(Ink::Yellow, &lead), (Ink::Plain, ": ")], Ink::Plain, &reason);
    }
}

#[cfg(test)]
mod tests {
    use iotomy_record::store::Record;
    use iotomy_record::{Volume, arbitrary};
    use proptest::prelude::*;

    use super::*;
    use crate::looks;

    fn limit(name: &str, unit: &str, value: f64, spread: f64, method: &str) -> Limit {
        Limit {
            name: name.into(),
            unit: unit.into(),
            value: Some(value),
            spread: Some(spread),
            method: method.into(),
            skipped: None,
            measured: Some("2025-03-01T10:20:30Z".into()),
            volume: None,
        }
    }

    fn without(limit: Limit, reason: &str) -> Limit {
        Limit { value: None, spread: None, skipped: Some(reason.into()), ..limit }
    }

    fn record() -> Limits {
        let disk = Volume { path: "/home".into(), file_system: "ext4".into(), id: "1".into() };
        let memory =
            Volume { path: "/dev/shm".into(), file_system: "tmpfs".into(), id: "2".into() };
        let on = |volume: &Volume, limit| Limit { volume: Some(volume.clone()), ..limit };
        let direct = limit("direct-read", "ns", 81_234.0, 9_000.0, "O_DIRECT pread of 4 KiB");
        let pushed = "one NOP queued, taken by the kernel's polling thread (SQPOLL), spun for";
        Limits {
            schema: Limits::SCHEMA.into(),
            started: "2025-03-01T10:20:30Z".into(),
            machine: Machine {
                kernel: "Linux 6.1.0 x86_64".into(),
                cpu: "Example CPU @ 3 GHz".into(),
                cpus: 8,
                memory_bytes: 16 << 30,
                virtualization: "none".into(),
                clock: "tsc".into(),
                ..Machine::default()
            },
            limits: vec![
                limit("syscall", "ns", 81.25, 0.4, "getppid by the syscall instruction"),
                limit("fork", "ns", 1_234_567.0, 99_000.0, "fork, _exit in the child, wait"),
                without(limit("io_uring-nop", "ns", 1.0, 0.0, pushed), "io_uring_setup: EPERM"),
                limit("io_uring-nop-sqpoll", "ns", 411.0, 30.0, pushed),
                limit("memory-copy", "bytes/s", 7.22e9, 0.9e9, "memcpy; bytes counted once"),
                limit("pipe", "bytes/s", 2.0e9, 0.1e9, "two threads"),
                on(&disk, direct.clone()),
                on(&disk, limit("sequential-read", "bytes/s", 4.2e7, 5e5, "4 MiB a call")),
                on(&memory, without(direct, "tmpfs takes O_DIRECT, but caches the bytes")),
            ],
        }
    }

    fn text(record: &Limits) -> String {
        limits(record, &Style::default())
    }

    #[test]
    fn measured_now() {
        insta::assert_snapshot!(text(&record()));
    }

    #[test]
    fn some_of_them_kept() {
        let mut record = record();
        record.limits.truncate(4);
        record.started = "2025-03-02T11:00:00Z".into();
        record.limits[3].measured = Some(record.started.clone());
        insta::assert_snapshot!(text(&record));
    }

    #[test]
    fn narrow_and_ascii() {
        let style = Style { width: 60, unicode: false, ..Style::default() };
        insta::assert_snapshot!(limits(&record(), &style));
    }

    #[test]
    fn nothing_at_all() {
        let empty = Limits { limits: Vec::new(), machine: Machine::default(), ..record() };
        assert_eq!(text(&empty), "0 limits · 2025-03-01T10:20:30Z\n\n");
    }

    #[test]
    fn a_saved_record_renders_as_the_one_that_was_saved() {
        let bytes = iotomy_record::store::RecordRef::Limits(&record()).json().unwrap();
        let loaded = iotomy_record::store::parse_limits(&bytes).unwrap();
        assert_eq!(text(&loaded), text(&record()));
    }

    #[test]
    fn a_page() {
        let record = Record::Limits(Box::new(record()));
        insta::assert_snapshot!(looks::page_alone(&record));
    }

    #[test]
    fn other_forms() {
        let record = Record::Limits(Box::new(record()));
        insta::assert_snapshot!(looks::other_forms(&record));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn any_record_renders_within_its_width(
            record in arbitrary::limits(), width in 0usize..200, unicode: bool,
        ) {
            looks::keeps_to(width, unicode, |style| limits(&record, style));
        }

        #[test]
        fn colour_changes_nothing_else(record in arbitrary::limits()) {
            looks::is_only_coloured(|style| limits(&record, style));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]

        #[test]
        fn any_record_is_inert_in_every_form(record in arbitrary::limits()) {
            looks::is_inert(&Record::Limits(Box::new(record)));
        }
    }
}
