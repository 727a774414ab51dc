//! Numbers as people read them: thousands separated, three digits where more is noise.
//!
//! Sums of a record's `u64`s are kept in `u128` and `i128`, which no record can overflow.

/// An integer with its thousands separated: `16,444`.
pub fn thousands(n: u128) -> String {
    group(&n.to_string())
}

fn group(digits: &str) -> String {
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A value of 0 or more with at most three significant digits, whole ones without a fraction.
pub fn three_digits(x: f64) -> String {
    if x.fract() == 0.0 && x >= 0.0 { thousands(x as u128) } else { figure(x) }
}

/// A value of 0 or more with three significant digits, which align better in a column.
pub fn figure(x: f64) -> String {
    if !x.is_finite() || x <= 0.0 {
        "0".into()
    } else if x >= 99.95 {
        // The cast saturates, beyond any figure that means something.
        thousands(x.round() as u128)
    } else if x >= 9.995 {
        format!("{x:.1}")
    } else {
        format!("{x:.2}")
    }
}

/// A value with `decimals` decimals and its thousands separated; exact zero is a bare `0`.
pub fn fixed(x: f64, decimals: usize) -> String {
    if x == 0.0 || !x.is_finite() {
        return "0".into();
    }
    let text = format!("{:.*}", decimals, x.abs());
    let (whole, fraction) = text.split_at(text.find('.').unwrap_or(text.len()));
    // A number that rounds to zero has no sign.
    let sign =
        if x < 0.0 && text.bytes().any(|b| b.is_ascii_digit() && b != b'0') { "-" } else { "" };
    format!("{sign}{}{fraction}", group(whole))
}

/// The decimals a column needs so that its largest value has three digits or a little more.
pub fn decimals_for(largest: f64) -> usize {
    match largest {
        x if x >= 10_000.0 => 0,
        x if x >= 10.0 => 1,
        x if x >= 1.0 => 2,
        _ => 3,
    }
}

/// A size in the unit that suits it: `832 B`, `8.25 KiB`, `64 MiB`.
pub fn bytes(n: u128) -> String {
    const UNITS: [&str; 9] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"];
    in_units(n as f64, 1024.0, &UNITS)
}

/// A time in the unit that suits it: `210 ns`, `3.4 ms`, `1.25 s`.
pub fn duration(ns: f64) -> String {
    in_units(ns, 1000.0, &["ns", "µs", "ms", "s"])
}

/// A range of times in the unit that suits its upper end: `0.31 … 1.24 µs`; one time where both ends read alike.
pub fn duration_range([low, high]: [f64; 2]) -> String {
    let upper = duration(high);
    let Some((figure_of_high, unit)) = upper.split_once(' ') else { return upper };
    let size = match unit {
        "s" => 1e9,
        "ms" => 1e6,
        "µs" => 1e3,
        _ => 1.0,
    };
    match three_digits(low / size) {
        figure_of_low if figure_of_low == figure_of_high => upper,
        figure_of_low => format!("{figure_of_low} … {upper}"),
    }
}

fn in_units(mut x: f64, step: f64, units: &[&str]) -> String {
    let mut unit = 0;
    // Half a digit below the step rounds up to it, so it belongs to the next unit already.
    while x >= step - 0.5 && unit + 1 < units.len() {
        x /= step;
        unit += 1;
    }
    format!("{} {}", three_digits(x), units[unit])
}

/// `part` of `whole` in per cent with one decimal; empty when there is no whole.
pub fn percent(part: i128, whole: u128) -> String {
    if whole == 0 {
        return String::new();
    }
    let text = fixed(part as f64 / whole as f64 * 100.0, 1);
    if text == "0" { "0.0".into() } else { text }
}

/// The same with its unit: `53.4 %`.
pub fn share(part: i128, whole: u128) -> String {
    let percent = percent(part, whole);
    if percent.is_empty() { percent } else { format!("{percent} %") }
}

/// `one` or `many` behind its number: `1 call`, `2 calls`.
pub fn counted(n: u128, one: &str, many: &str) -> String {
    format!("{} {}", thousands(n), if n == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        for (n, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(thousands(n), text);
        }
        assert_eq!(thousands(u64::MAX.into()), "18,446,744,073,709,551,615");
    }

    #[test]
    fn three_digits_are_kept() {
        for (x, text) in [
            (0.0, "0"),
            (0.054, "0.05"),
            (8.0, "8"),
            (8.25, "8.25"),
            (9.996, "10.0"),
            (61.04, "61.0"),
            (99.96, "100"),
            (1204.4, "1,204"),
            (f64::NAN, "0"),
            (-1.0, "0"),
        ] {
            assert_eq!(three_digits(x), text);
        }
    }

    #[test]
    fn a_range_has_one_unit() {
        assert_eq!(duration_range([210.0, 440.0]), "210 … 440 ns");
        assert_eq!(duration_range([310.0, 1_240.0]), "0.31 … 1.24 µs");
        assert_eq!(duration_range([12_400.0, 12_400.0]), "12.4 µs");
        assert_eq!(duration_range([0.0, 0.0]), "0 ns");
    }

    #[test]
    fn units_change_where_the_digits_would() {
        assert_eq!(bytes(832), "832 B");
        assert_eq!(bytes(1023), "1,023 B");
        assert_eq!(bytes(8192), "8 KiB");
        assert_eq!(bytes(1_048_575), "1.00 MiB");
        assert_eq!(bytes(u128::MAX), "281,474,976,710,656 YiB");
        assert_eq!(duration(210.4), "210 ns");
        assert_eq!(duration(999.7), "1.00 µs");
        assert_eq!(duration(184e6), "184 ms");
        assert_eq!(duration(7.2e12), "7,200 s");
    }

    #[test]
    fn columns_show_zero_apart_from_almost_zero() {
        assert_eq!(fixed(0.0, 1), "0");
        assert_eq!(fixed(-0.0, 1), "0");
        assert_eq!(fixed(0.01, 1), "0.0");
        assert_eq!(fixed(-0.01, 1), "0.0");
        assert_eq!(fixed(-1234.56, 1), "-1,234.6");
        assert_eq!(share(1, 3), "33.3 %");
        assert_eq!(share(-1, 3), "-33.3 %");
        assert_eq!(share(0, 3), "0.0 %");
        assert_eq!(share(1, 0), "");
    }
}
