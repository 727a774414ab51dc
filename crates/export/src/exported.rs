//! A record with what its rows share.

use iotomy_record::store::{Record, RecordRef};
use iotomy_record::{Measure, Sampled, Trace};
use sha2::{Digest, Sha256};

/// The partition of records that do not name their machine.
const UNNAMED: &str = "unknown";

/// A record to export.
#[derive(Debug)]
pub struct Exported {
    /// The SHA-256 of its bytes, as `sha256sum` prints it.
    pub run: String,
    /// The record.
    pub record: Record,
    /// The name of the machine that it is of.
    pub machine: String,
    /// The day on which it began, as `2026-11-28`.
    pub date: String,
    /// Its measures, as the history has them.
    pub(crate) measures: Vec<Measure>,
}

impl Exported {
    /// A record of these bytes, of the machine of this name, or else of the one that it names.
    ///
    /// # Errors
    /// Why it has no place in a data set.
    pub fn new(record: Record, bytes: &[u8], machine: Option<&str>) -> Result<Self, String> {
        if let Record::Trace(trace) = &record
            && let Some(sample) = &trace.sample
        {
            let n = sample.n;
            return Err(format!(
                "it counted calls in 1/{n} of the time (--sample), and tables have counts of all of it"
            ));
        }
        let started = record.as_ref().started();
        let date = day(started).ok_or_else(|| {
            format!("its `started` is no RFC 3339 time, and so not of a day: {started:?}")
        })?;
        let date = date.to_owned();
        let machine = match machine {
            Some(name) => name.to_owned(),
            None => named(record.as_ref()),
        };
        let run = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        let measures = iotomy_history::measures(record.as_ref());
        Ok(Self { run, record, machine, date, measures })
    }

    /// An empty record: tables have the same columns for every record.
    pub(crate) fn empty() -> Self {
        let record = Record::Trace(Box::default());
        let (run, machine, date) = Default::default();
        Self { run, record, machine, date, measures: Vec::new() }
    }

    /// The same, lent.
    pub(crate) fn record(&self) -> RecordRef<'_> {
        self.record.as_ref()
    }

    /// Its traces, those in a race with the label of their command.
    pub(crate) fn traces(&self) -> Vec<(Option<&str>, &Trace)> {
        match &self.record {
            Record::Trace(trace) => vec![(None, trace)],
            Record::Anatomy(anatomy) => vec![(None, &anatomy.trace)],
            Record::Race(race) => {
                let traced = |one: &'_ iotomy_record::RaceCommand| one.trace.is_some();
                let commands = race.commands.iter().filter(|one| traced(one));
                commands.filter_map(|one| Some((Some(&*one.label), one.trace.as_ref()?))).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The samples of its commands, with their labels.
    pub(crate) fn sampled(&self) -> Vec<(&str, &Sampled)> {
        let Record::Race(race) = &self.record else { return Vec::new() };
        let sampled = |one: &'_ iotomy_record::RaceCommand| one.sampled.is_some();
        let commands = race.commands.iter().filter(|one| sampled(one));
        commands.filter_map(|one| Some((&*one.label, one.sampled.as_ref()?))).collect()
    }
}

/// The machine that a record names. Not every record has a name.
fn named(record: RecordRef<'_>) -> String {
    let machine = serde_json::to_value(record.machine()).unwrap_or_default();
    let name = machine["name"].as_str().filter(|name| !name.is_empty());
    name.unwrap_or(UNNAMED).to_owned()
}

/// The day of an RFC 3339 time.
fn day(started: &str) -> Option<&str> {
    let (day, time) = started.split_at_checked(10)?;
    let is_of = |at: usize, byte: u8| match at {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    let is_day = day.bytes().enumerate().all(|(at, byte)| is_of(at, byte));
    (is_day && time.starts_with(['T', 't', ' '])).then_some(day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_of_a_day() {
        assert_eq!(day("2026-11-28T14:54:45Z"), Some("2026-11-28"));
        for none in ["", "2026-11-28", "now", "2026/11/28T1", "../../../x/T", "2026-11-2éT"] {
            assert_eq!(day(none), None, "{none}");
        }
    }
}
