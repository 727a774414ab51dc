//! The commands under each other, with their times.
//!
//! Computed by `spread` in `crates/race/src/compare.rs`.

use iotomy_record::{Race, RaceCommand};

use crate::numbers::{counted, decimals_for, duration, fixed};
use crate::page::{Ink, Page};
use crate::table::{Column, Row, Table, bar};

/// Columns of the longest bar.
const BAR: usize = 12;

pub(super) fn print(page: &mut Page<'_>, record: &Race) {
    let ms = |ns: f64| ns / 1e6;
    let largest = record.commands.iter().map(|one| one.wall.median_ns).fold(0.0, f64::max);
    let decimals = decimals_for(ms(largest));
    let mut table = Table::new(&[
        Column::text("", 9),
        Column::number("wall", "ms", 9),
        Column::number("95 % CI", "", 7),
        Column::number("min", "ms", 4),
        Column::number("max", "ms", 3),
        Column::number("CPU", "ms", 8),
        Column::text("", 1),
    ]);
    for one in &record.commands {
        let figures = &one.wall;
        let interval = figures.ci95.map_or_else(String::new, |[low, high]| {
            format!("{} … {}", fixed(ms(low), decimals), fixed(ms(high), decimals))
        });
        let label = page.name(&one.label, 8);
        table.push(Row {
            cells: vec![
                format!("{label}  {}", page.name(&one.command, 200)),
                fixed(ms(figures.median_ns), decimals),
                if page.unicode() { interval } else { interval.replace('…', "..") },
                fixed(ms(figures.min_ns), decimals),
                fixed(ms(figures.max_ns), decimals),
                fixed(ms(one.cpu.median_ns), decimals),
                bar(figures.median_ns as i128, largest as u128, BAR, page.unicode()),
            ],
            remarks: remarks(page, record, one),
            ink: Ink::Plain,
        });
    }
    page.blank();
    table.print(page);
}

pub(super) fn remarks(page: &Page<'_>, record: &Race, one: &RaceCommand) -> Vec<String> {
    let mut remarks = Vec::new();
    if one.shell {
        remarks.push(match record.harness.shell_startup_ns {
            Some(ns) => format!("under sh, whose start-up is {}", duration(ns as f64)),
            None => "under sh".to_owned(),
        });
    }
    if !one.denied.is_empty() {
        let denied: Vec<String> = one.denied.iter().map(|call| page.name(call, 60)).collect();
        remarks.push(format!("without {}", denied.join(", ")));
    }
    if one.failures > 0 {
        remarks.push(counted(u128::from(one.failures), "failed run", "failed runs"));
    }
    remarks
}
