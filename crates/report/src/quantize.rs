//! Distributions as DTrace's `quantize()` draws them.
//!
//! A row a power of two, from one empty row below the first that is filled to one above the last;
//! a bar is the row's part of all values, rounded, 40 characters being all of them. A long run of
//! empty rows is cut to its ends, as the listings of DTrace's users are.

use iotomy_record::Histogram;

use crate::numbers::thousands;
use crate::page::{Ink, Page, columns};

/// Characters of a bar of all values.
const BAR: usize = 40;

/// Empty rows in a row from which on only the first and the last are shown, and dots between.
const LONG_RUN: usize = 6;

/// Prints a distribution under its heads; `unit` stands over the values. An empty one prints
/// nothing.
pub(crate) fn print(page: &mut Page<'_>, histogram: &Histogram, unit: &str) {
    let rows = rows(histogram);
    let total: u128 = rows.iter().map(|row| u128::from(row.count)).sum();
    if total == 0 {
        return;
    }
    let labels = rows.iter().map(|row| columns(&row.label)).max().unwrap_or(0).max(12);
    let counts = rows.iter().map(|row| columns(&thousands(row.count.into()))).max().unwrap_or(0);
    // Where 40 is too wide the bars are shorter and still in proportion.
    let bar = BAR.min(page.width().saturating_sub(2 + labels + 2 + 1 + counts.max(5))).max(4);
    let head = format!("{:-^bar$}", if bar >= 18 { " Distribution " } else { "" });
    let text = format!("  {unit:>labels$}  {head} count");
    page.line(&[(Ink::Dim, &text)]);
    let mut at = 0;
    while let Some(row) = rows.get(at) {
        let text = format!(
            "  {:>labels$} |{:<bar$} {}",
            row.label,
            "@".repeat(length(row.count, total, bar)),
            thousands(row.count.into()),
        );
        page.line(&[(Ink::Plain, &text)]);
        let empty = rows[at..].iter().take_while(|row| row.count == 0).count();
        if empty >= LONG_RUN {
            let text = format!("  {:>labels$}", ".".repeat(labels / 2));
            page.line(&[(Ink::Dim, &text)]);
            at += empty - 1;
        } else {
            at += 1;
        }
    }
}

/// A value's share of the bar, rounded half up.
fn length(count: u64, total: u128, bar: usize) -> usize {
    // Both factors are below 2^71 in all: 64 buckets of 2^64 and a bar of 40.
    let half_steps = u128::from(count) * 2 * bar as u128 / total;
    usize::try_from(half_steps.div_ceil(2)).unwrap_or(bar).min(bar)
}

pub(crate) struct Bucket {
    pub(crate) label: String,
    pub(crate) count: u64,
}

/// The rows to show: zero, then the powers of two.
pub(crate) fn rows(histogram: &Histogram) -> Vec<Bucket> {
    let powers = histogram.buckets.iter().enumerate().map(|(k, count)| Bucket {
        label: 1u64.checked_shl(k as u32).map_or_else(String::new, |low| low.to_string()),
        count: *count,
    });
    let zero = Bucket { label: "0".into(), count: histogram.zero };
    let mut rows: Vec<Bucket> = std::iter::once(zero).chain(powers).collect();
    let Some(last) = rows.iter().rposition(|row| row.count > 0) else { return Vec::new() };
    let first = rows.iter().position(|row| row.count > 0).unwrap_or(0);
    rows.truncate(last + 2);
    rows.split_off(first.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Style;
    use proptest::prelude::*;

    fn printed(histogram: &Histogram) -> String {
        let style = Style::default();
        let mut page = Page::new(&style);
        print(&mut page, histogram, "value");
        page.finish()
    }

    /// The bars an article of 2005 shows for these counts.
    #[test]
    fn bars_are_those_of_dtrace() {
        let bars = |counts: &[u64]| {
            let total = counts.iter().sum::<u64>().into();
            counts.iter().map(|n| length(*n, total, 40)).collect::<Vec<_>>()
        };
        assert_eq!(bars(&[3, 1, 8]), [10, 3, 27]);
        assert_eq!(bars(&[7, 1]), [35, 5]);
        assert_eq!(bars(&[8192, 1]), [40, 0]);
        assert_eq!(bars(&[1, 79]), [1, 40]);
    }

    #[test]
    fn rows_reach_one_beyond_what_is_filled() {
        let mut histogram = Histogram::default();
        histogram.add(8192);
        let text = printed(&histogram);
        let labels: Vec<_> =
            text.lines().skip(1).map(|l| l.split('|').next().unwrap().trim()).collect();
        assert_eq!(labels, ["4096", "8192", "16384"]);
        histogram.zero = 3;
        assert_eq!(rows(&histogram).first().unwrap().label, "0");
        histogram.add(u64::MAX);
        assert_eq!(rows(&histogram).last().unwrap().label, "9223372036854775808");
        assert_eq!(printed(&Histogram::default()), "");
    }

    proptest! {
        #[test]
        fn every_count_is_shown_and_no_bar_is_too_long(histogram in iotomy_record::arbitrary::histogram()) {
            let shown: u128 = rows(&histogram).iter().map(|r| u128::from(r.count)).sum();
            let all = histogram.buckets.iter().map(|n| u128::from(*n)).sum::<u128>();
            prop_assert_eq!(shown, all + u128::from(histogram.zero));
            for line in printed(&histogram).lines() {
                prop_assert!(line.matches('@').count() <= 40);
            }
        }
    }
}
