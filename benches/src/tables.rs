//! Figures and tables, as text that is also Markdown.

use std::fmt::Write as _;

use crate::stats::Estimate;

/// Formats a median with its interval.
pub fn interval(found: Estimate, decimals: usize) -> String {
    let Estimate { median, low, high } = found;
    if low == high {
        return digits(median, decimals);
    }
    format!("{} [{}, {}]", digits(median, decimals), digits(low, decimals), digits(high, decimals))
}

/// Formats a figure; large ones without decimals.
pub fn digits(figure: f64, decimals: usize) -> String {
    let decimals = if figure.abs() >= 1000.0 { 0 } else { decimals };
    format!("{figure:.decimals$}")
}

/// Formats a Markdown table with aligned columns; the first `left` columns are names, the rest
/// figures.
pub fn table(rows: &[Vec<String>], left: usize) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).max(3)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = match column < left {
                true => write!(text, "| {cell:<width$} "),
                false => write!(text, "| {cell:>width$} "),
            };
        }
        text += "|\n";
        if number == 0 {
            for (column, width) in widths.iter().enumerate() {
                let _ = match column < left {
                    true => write!(text, "| {} ", "-".repeat(*width)),
                    false => write!(text, "| {}: ", "-".repeat(width - 1)),
                };
            }
            text += "|\n";
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned() {
        let rows = [["name", "ns"], ["a", "1000"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(table(&rows, 1), "| name |   ns |\n| ---- | ---: |\n| a    | 1000 |\n");
    }
}
