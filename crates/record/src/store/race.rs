//! JSON to [`Race`] and back.

use std::collections::HashSet;

use super::RecordError;
use super::anatomy::check_price;
use super::parse::{Stored, check_schema, check_time, parse, quoted, wrong};
use crate::{Race, Spread};

/// Reads a race from the bytes of a JSON record.
///
/// # Errors
/// When they are not a whole `iotomy.race/1`; the error names the place.
pub fn parse_race(bytes: &[u8]) -> Result<Race, RecordError> {
    parse(bytes)
}

impl Stored for Race {
    const SCHEMA: &'static str = Self::SCHEMA;
    const WANTED: &'static str = "a race; `iotomy race --json` makes one";

    fn check(&self) -> Result<(), RecordError> {
        check_schema::<Self>(&self.schema)?;
        check_time("started", &self.started)?;
        for command in &self.commands {
            command.trace.as_ref().map_or(Ok(()), Stored::check)?;
            if let Some(sampled) = &command.sampled {
                check_price("contenders.sampled.price_ns_per_sample", &sampled.sampling)?;
            }
            for Spread { median_ns, ci95, min_ns, max_ns, mean_ns, stddev_ns, .. } in
                [command.wall, command.cpu]
            {
                let [low, high] = ci95.unwrap_or_default();
                finite("contenders", &[median_ns, low, high, min_ns, max_ns, mean_ns, stddev_ns])?;
            }
        }
        for comparison in &self.comparisons {
            let [mean_low, mean_high] = comparison.mean_ci95.unwrap_or_default();
            let mean = comparison.mean_ratio.unwrap_or_default();
            let [low, high] = comparison.ci95;
            finite("comparisons", &[comparison.ratio, low, high, mean, mean_low, mean_high])?;
        }
        finite("plan.min_effect", &[self.plan.min_effect])?;
        finite("harness.call_ns", &[self.harness.call_ns.unwrap_or_default()])?;
        finite("harness.fault_ns", &[self.harness.fault_ns.unwrap_or_default()])?;
        if let Some(against) = &self.against {
            check_time("against.started", &against.started)?;
            for change in &against.changes {
                let [low, high] = change.ci95.unwrap_or_default();
                let ratio = change.ratio.unwrap_or_default();
                let least = change.min_effect;
                finite("against.changes", &[change.then, change.now, ratio, low, high, least])?;
            }
        }
        let labels: HashSet<&str> = self.commands.iter().map(|one| one.label.as_str()).collect();
        for label in &self.order {
            if !labels.contains(label.as_str()) {
                let what = format!("no command has the label \"{}\"", quoted(label));
                return Err(wrong("order", what));
            }
        }
        Ok(())
    }
}

fn finite(path: &'static str, numbers: &[f64]) -> Result<(), RecordError> {
    match numbers.iter().find(|number| !number.is_finite() || **number < 0.0) {
        None => Ok(()),
        Some(number) => {
            let what = format!("invalid number {number}; expected 0 or more");
            Err(wrong(path, what))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arbitrary;
    use crate::store::{Record, RecordRef, parse_record};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_race_comes_back_as_it_was(race in arbitrary::race()) {
            let bytes = RecordRef::Race(&race).json().unwrap();
            prop_assert_eq!(&parse_race(&bytes).unwrap(), &race);
            prop_assert_eq!(parse_record(&bytes).unwrap(), Record::Race(Box::new(race)));
        }

        #[test]
        fn a_race_that_is_cut_or_changed_is_a_race_or_an_error(
            race in arbitrary::race(), at in 0usize..4_000, byte: u8, cut: bool,
        ) {
            let mut bytes = RecordRef::Race(&race).json().unwrap();
            let at = at.min(bytes.len() - 1);
            if cut { bytes.truncate(at) } else { bytes[at] = byte }
            let _ = parse_race(&bytes);
        }
    }

    #[test]
    fn an_order_of_strangers_is_refused() {
        let text = "{\"schema\": \"iotomy.race/1\", \"started\": \"2025-03-01T10:20:30Z\", \"machine\": \
            {\"kernel\": \"\", \"cpu\": \"\", \"cpus\": 1, \"memory_bytes\": 1, \"virtualization\": \"\", \
            \"mitigations\": \"\", \"clock\": \"\"}, \"contenders\": [], \"order\": [\"Z\"], \
            \"comparisons\": [], \"attributions\": [], \"findings\": []}";
        let error = parse_race(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(error, "at order: no command has the label \"Z\"");
        assert!(parse_race(text.replace("[\"Z\"]", "[]").as_bytes()).is_ok());
    }
}
