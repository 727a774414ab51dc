//! An anatomy on one screen: its layers over all calls.

use std::collections::BTreeMap;

use iotomy_record::Anatomy;

use crate::numbers::{counted, decimals_for, fixed, percent};
use crate::page::Page;
use crate::table::{Column, Row, Table};
use crate::{Style, trace};

const LAYERS: [Column<'static>; 5] = [
    Column::text("layer", 11),
    Column::number("on-CPU", "ms", 10),
    Column::number("±", "ms", 6),
    Column::number("share", "%", 7),
    Column::number("blocked", "ms", 9),
];

/// A layer, summed over calls.
#[derive(Default)]
struct LayerSum {
    on_cpu: u128,
    blocked: u128,
    /// Squared: errors of several calls add up so.
    error: f64,
}

/// An anatomy on one screen.
pub fn anatomy_brief(record: &Anatomy, style: &Style) -> String {
    let mut layers: BTreeMap<&str, LayerSum> = BTreeMap::new();
    for layer in record.calls.iter().flat_map(|call| &call.layers) {
        let sum = layers.entry(&layer.layer).or_default();
        sum.on_cpu += u128::from(layer.on_cpu_ns);
        sum.blocked += u128::from(layer.blocked_ns);
        sum.error += (layer.error_ns as f64).powi(2);
    }
    let mut layers: Vec<(&str, LayerSum)> = layers.into_iter().collect();
    layers.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.on_cpu + sum.blocked));
    let shown = layers.len().min(trace::BRIEF_ROWS);
    let rest = layers.len() - shown;
    let hidden = (rest > 0).then(|| counted(rest as u128, "layer", "layers"));
    let hidden = hidden.map_or("calls".to_owned(), |layers| format!("{layers}, calls"));
    let table = |page: &mut Page<'_>| print(page, &layers, shown);
    trace::brief(&record.trace, style, table, Some(hidden))
}

fn print(page: &mut Page<'_>, layers: &[(&str, LayerSum)], shown: usize) {
    if layers.is_empty() {
        return;
    }
    let whole: u128 = layers.iter().map(|(_, sum)| sum.on_cpu).sum();
    let largest = layers.iter().map(|(_, sum)| sum.on_cpu.max(sum.blocked)).max().unwrap_or(0);
    let decimals = decimals_for(largest as f64 / 1e6);
    let ms = |ns: f64| fixed(ns / 1e6, decimals);
    let mut table = Table::new(&LAYERS);
    for (name, sum) in &layers[..shown] {
        let cells = vec![
            page.name(name, 36),
            ms(sum.on_cpu as f64),
            if sum.error > 0.0 { ms(sum.error.sqrt()) } else { String::new() },
            percent(i128::try_from(sum.on_cpu).unwrap_or(i128::MAX), whole),
            ms(sum.blocked as f64),
        ];
        table.push(Row { cells, ..Row::default() });
    }
    table.print(page);
}

#[cfg(test)]
mod tests {
    use iotomy_record::arbitrary;
    use proptest::prelude::*;

    use super::*;
    use crate::looks;

    proptest! {
        #[test]
        fn any_anatomy_fits_on_a_screen(record in arbitrary::anatomy()) {
            let text = anatomy_brief(&record, &Style::default());
            prop_assert!(text.lines().count() <= 24, "{}", text);
            looks::keeps_to(80, false, |style| anatomy_brief(&record, style));
        }
    }
}
