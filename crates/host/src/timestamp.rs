//! Points in time as records write them: RFC 3339, UTC, to the millisecond.
//!
//! It owns the calendar and no clock: the caller has read that.

use std::time::{SystemTime, UNIX_EPOCH};

const MS_PER_DAY: i128 = 86_400_000;

/// `time` as `2026-11-21T09:20:30.007Z`. A time before 1970 counts back; fractions of a millisecond
/// are cut off towards the past.
pub fn rfc3339(time: SystemTime) -> String {
    let ms = match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i128::try_from(since.as_millis()).unwrap_or(i128::MAX),
        Err(before) => {
            let ns = i128::try_from(before.duration().as_nanos()).unwrap_or(i128::MAX);
            (-ns).div_euclid(1_000_000)
        }
    };
    let (year, month, day) = civil(ms.div_euclid(MS_PER_DAY));
    let of_day = ms.rem_euclid(MS_PER_DAY);
    let (hour, minute) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (second, milli) = (of_day / 1_000 % 60, of_day % 1_000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// Year, month and day of the day `days` after 1970-01-01, in the Gregorian calendar run backwards
/// without end: the algorithm `civil_from_days` of Howard Hinnant's "chrono-Compatible Low-Level
/// Date Algorithms". Its years begin in March, so that a leap day is the last.
fn civil(days: i128) -> (i128, i128, i128) {
    const DAYS_PER_ERA: i128 = 146_097;
    const DAYS_FROM_YEAR_0_MARCH_TO_1970: i128 = 719_468;
    let days = days + DAYS_FROM_YEAR_0_MARCH_TO_1970;
    let (era, of_era) = (days.div_euclid(DAYS_PER_ERA), days.rem_euclid(DAYS_PER_ERA));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year + era * 400 + i128::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(seconds: u64, ms: u64) -> String {
        rfc3339(UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_millis(ms))
    }

    #[test]
    fn known_moments_are_written_as_date_1_writes_them() {
        assert_eq!(at(0, 0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(951_782_400, 7), "2000-02-29T00:00:00.007Z");
        assert_eq!(at(1_709_251_199, 999), "2024-02-29T23:59:59.999Z");
        assert_eq!(at(1_709_251_200, 0), "2024-03-01T00:00:00.000Z");
        assert_eq!(at(4_107_542_400, 0), "2100-03-01T00:00:00.000Z");
        assert_eq!(at(253_402_300_799, 0), "9999-12-31T23:59:59.000Z");
    }

    #[test]
    fn times_before_1970_count_back() {
        let before = UNIX_EPOCH - Duration::from_nanos(1);
        assert_eq!(rfc3339(before), "1969-12-31T23:59:59.999Z");
    }

    #[test]
    fn every_day_of_four_centuries_follows_the_one_before() {
        let mut last = civil(-200_000);
        for days in -199_999..=(146_097 - 200_000) {
            let (year, month, day) = civil(days);
            let next_day = (year, month, day) == (last.0, last.1, last.2 + 1);
            let next_month = (year, month, day) == (last.0, last.1 + 1, 1) && last.2 >= 28;
            let next_year =
                (year, month, day) == (last.0 + 1, 1, 1) && (last.1, last.2) == (12, 31);
            assert!(next_day || next_month || next_year, "{last:?} then {year}-{month}-{day}");
            last = (year, month, day);
        }
    }
}
