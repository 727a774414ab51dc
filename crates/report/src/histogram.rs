//! Distributions as small pictures: a bar a power of two, in parts where several have a share in it.

use iotomy_record::Histogram;

use crate::chart::{Drawing, LETTER, series_class};
use crate::numbers::{share, thousands};
use crate::quantize::{self, Bucket};

/// The size of one of them.
pub(crate) const SMALL: f64 = 372.0;
const FLOOR: f64 = 132.0;
const TOP: f64 = 20.0;

/// The source of the values in a bar.
pub(crate) struct BarSegment<'a> {
    /// Its name; empty where it is the only one.
    pub(crate) label: &'a str,
    pub(crate) histogram: &'a Histogram,
}

/// Draws distributions on top of each other, with a text alternative. None without values.
///
/// `shown` formats the least value of a bar, `many` names the counted things.
pub(crate) fn draw(
    parts: &[BarSegment<'_>],
    shown: impl Fn(&str) -> String,
    many: &str,
) -> Option<(Drawing, Vec<String>)> {
    let mut whole = Histogram::default();
    parts.iter().for_each(|part| whole.merge(part.histogram));
    let rows = quantize::rows(&whole);
    let total: u128 = rows.iter().map(|row| u128::from(row.count)).sum();
    let most = rows.iter().map(|row| row.count).max().filter(|most| *most > 0)?;
    let mut drawing = Drawing::new(SMALL, FLOOR + 26.0);
    let bars = Bars { step: (SMALL - 24.0) / rows.len() as f64, most };
    let every = (9.0 * LETTER / bars.step).ceil().max(1.0) as usize;
    let tell = |lead: &str, label: &str, count: u64| {
        let n = thousands(count.into());
        format!("{lead}from {}: {n} {many}, {}", shown(label), share(i128::from(count), total))
    };
    let mut says = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let x = bars.x(at);
        if row.count > 0 {
            let tip = tell("", &row.label, row.count);
            let high = bars.high(row.count).max(2.0);
            if parts.len() == 1 {
                drawing.rect([bars.left(at), FLOOR - high, bars.thick(), high], "t-call", &tip);
            }
            if row.count == most {
                let count = thousands(row.count.into());
                drawing.text(x + bars.step / 2.0, FLOOR - high - 5.0, "mid num", &count);
            }
            says.push(tip);
        }
        let label = shown(&row.label);
        if at % every == every / 2 && !label.is_empty() {
            drawing.line([x, FLOOR, x, FLOOR + 4.0], "axis");
            let x = x.clamp(4.0 * LETTER, SMALL - 4.0 * LETTER);
            drawing.text(x, FLOOR + 17.0, "mid dim", &label);
        }
    }
    if parts.len() > 1 {
        let tip = |part: &BarSegment<'_>, label: &str, count| {
            tell(&format!("{}, ", part.label), label, count)
        };
        bars.stacked(&mut drawing, parts, &rows, tip);
    }
    drawing.line([12.0, FLOOR, SMALL - 12.0, FLOOR], "axis");
    Some((drawing, says))
}

/// Where bars stand, and how high they are.
struct Bars {
    step: f64,
    most: u64,
}

impl Bars {
    fn x(&self, at: usize) -> f64 {
        12.0 + self.step * at as f64
    }

    fn thick(&self) -> f64 {
        (self.step - 3.0).clamp(1.5, 46.0)
    }

    fn left(&self, at: usize) -> f64 {
        self.x(at) + (self.step - self.thick()) / 2.0
    }

    fn high(&self, count: u64) -> f64 {
        count as f64 / self.most as f64 * (FLOOR - TOP)
    }

    /// The parts of each bar on top of each other.
    fn stacked(
        &self,
        drawing: &mut Drawing,
        parts: &[BarSegment<'_>],
        rows: &[Bucket],
        tip: impl Fn(&BarSegment<'_>, &str, u64) -> String,
    ) {
        let mut below = vec![0.0; rows.len()];
        for (series, part) in parts.iter().enumerate() {
            drawing.group(series, |drawing| {
                for (at, row) in rows.iter().enumerate() {
                    let count = count_of(part.histogram, &row.label);
                    if count > 0 {
                        let high = self.high(count);
                        let place = [self.left(at), FLOOR - below[at] - high, self.thick(), high];
                        let tip = tip(part, &row.label, count);
                        drawing.rect(place, &series_class(series), &tip);
                        below[at] += high;
                    }
                }
            });
        }
    }
}

/// Values in the bar that begins at a value.
fn count_of(histogram: &Histogram, label: &str) -> u64 {
    match label.parse::<u64>() {
        Ok(0) => histogram.zero,
        Ok(low) => histogram.buckets[low.ilog2() as usize],
        Err(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drawn(parts: &[&Histogram]) -> Option<(Drawing, Vec<String>)> {
        let parts: Vec<BarSegment<'_>> =
            parts.iter().map(|histogram| BarSegment { label: "x", histogram }).collect();
        draw(&parts, str::to_owned, "calls")
    }

    #[test]
    fn parts_stand_on_each_other() {
        let (mut a, mut b) = (Histogram::default(), Histogram::default());
        a.add_slot(13, 3);
        b.add_slot(13, 1);
        let (drawing, says) = drawn(&[&a, &b]).unwrap();
        assert_eq!(says, ["from 4096: 4 calls, 100.0 %"]);
        assert_eq!(drawing.points, 2);
        // Of the 112 units a whole bar has three quarters, and the rest on top of them.
        assert!(drawing.body.contains("y=\"48\" width=\"46\" height=\"84\" class=\"s0 point\""));
        assert!(drawing.body.contains("y=\"20\" width=\"46\" height=\"28\" class=\"s1 point\""));
        assert!(drawn(&[&Histogram::default()]).is_none());
    }

    proptest! {
        #[test]
        fn every_bar_has_its_parts(a in iotomy_record::arbitrary::histogram()) {
            if let Some((drawing, says)) = drawn(&[&a, &Histogram::default()]) {
                prop_assert_eq!(drawing.points, says.len());
            }
        }
    }
}
