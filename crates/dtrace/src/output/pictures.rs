//! Distributions as pictures.

use super::rows::log_linear_starts;
use crate::form::Aggregating;
use crate::machine::aggregate::{ZERO_BIN, quantize_value};

/// The characters of the longest bar.
const WIDTH: usize = 40;

/// A distribution's heading and its bins, a line each; the counts are divided by `normal`.
pub(super) fn picture(function: Aggregating, bins: &[i64], normal: i64) -> String {
    let (first, last) = shown(function, bins);
    let mut text = format!(
        "\n{:>16} {:>41} {:<9}\n",
        "value", "------------- Distribution -------------", "count"
    );
    let counts = &bins[first..=last];
    let total: f64 = counts.iter().map(|count| (*count as f64).abs()).sum();
    let has_positive = counts.iter().any(|count| *count > 0);
    let has_negative = counts.iter().any(|count| *count < 0);
    let labels = labels(function, bins.len());
    for (bin, count) in counts.iter().enumerate() {
        let label = &labels[first + bin];
        let value = count.checked_div(normal).unwrap_or(*count);
        let bar = bar(*count, total, has_positive, has_negative);
        text.push_str(&format!("{label:>16} {bar} {value:<9}\n"));
    }
    text
}

/// A bar, and the line that it stands at.
fn bar(count: i64, total: f64, has_positive: bool, has_negative: bool) -> String {
    let width = if has_positive && has_negative { WIDTH / 2 } else { WIDTH };
    let length = match total > 0.0 {
        true => ((count as f64).abs() * width as f64 / total + 0.5) as usize,
        false => 0,
    };
    let length = length.min(width);
    let (ats, blanks) = ("@".repeat(length), " ".repeat(width - length));
    match (has_positive, has_negative) {
        (_, false) => format!("|{ats}{blanks}"),
        (false, true) => format!("{blanks}{ats}|"),
        (true, true) if count > 0 => format!("{:width$}|{ats}{blanks}", ""),
        (true, true) => format!("{blanks}{ats}|{:width$}", ""),
    }
}

/// The first and the last bin of the picture: one more than has values, on either side.
fn shown(function: Aggregating, bins: &[i64]) -> (usize, usize) {
    let end = bins.len().saturating_sub(1);
    let first = bins.iter().position(|count| *count != 0);
    let last = bins.iter().rposition(|count| *count != 0);
    match (first, last) {
        (Some(first), Some(last)) => (first.saturating_sub(1), (last + 1).min(end)),
        _ => match function {
            Aggregating::Quantize => (ZERO_BIN - 1, ZERO_BIN + 1),
            Aggregating::Linear { .. } => (0, end.min(2)),
            _ => (0, end.min(1)),
        },
    }
}

/// What stands before each bin.
fn labels(function: Aggregating, bins: usize) -> Vec<String> {
    match function {
        Aggregating::Linear { lower, step, .. } => {
            let at = |bin: usize| i64::from(lower) + (bin as i64 - 1) * i64::from(step);
            let label = |bin: usize| match bin {
                0 => format!("< {lower}"),
                bin if bin + 1 == bins => format!(">= {}", at(bin)),
                bin => at(bin).to_string(),
            };
            (0..bins).map(label).collect()
        }
        Aggregating::LogLinear { factor, low, high, steps } => {
            let starts = log_linear_starts([factor, low, high, steps], bins);
            let mut labels = vec![format!("< {}", starts[0])];
            labels.extend(starts.iter().map(i64::to_string));
            if let (Some(last), Some(start)) = (labels.last_mut(), starts.last()) {
                *last = format!(">= {start}");
            }
            labels.resize(bins, String::new());
            labels
        }
        _ => (0..bins).map(|bin| quantize_value(bin).to_string()).collect(),
    }
}
