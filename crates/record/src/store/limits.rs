//! JSON to [`Limits`] and back.

use std::collections::BTreeSet;

use super::RecordError;
use super::parse::{Stored, check_schema, check_time, parse, quoted, wrong};
use crate::{Limit, Limits};

/// The units there are.
const UNITS: [&str; 2] = ["ns", "bytes/s"];

/// Reads limits from the bytes of a JSON record.
///
/// # Errors
/// When they are not a whole `iotomy.limits/1`; the error names the place.
pub fn parse_limits(bytes: &[u8]) -> Result<Limits, RecordError> {
    parse(bytes)
}

impl Stored for Limits {
    const SCHEMA: &'static str = Self::SCHEMA;
    const WANTED: &'static str = "a machine's limits; `iotomy limits --json` makes one";

    fn check(&self) -> Result<(), RecordError> {
        check_schema::<Self>(&self.schema)?;
        check_time("started", &self.started)?;
        let mut met = BTreeSet::new();
        for (at, limit) in self.limits.iter().enumerate() {
            check_limit(at, limit)?;
            if !met.insert((limit.volume.as_ref().map(|volume| &volume.id), &limit.name)) {
                let what = format!("duplicate \"{}\"", quoted(&limit.name));
                return Err(wrong(format!("limits[{at}].name"), what));
            }
        }
        Ok(())
    }
}

fn check_limit(at: usize, limit: &Limit) -> Result<(), RecordError> {
    let path = |field: &str| format!("limits[{at}].{field}");
    if limit.name.is_empty() {
        return Err(wrong(path("name"), "expected a name".to_owned()));
    }
    if !UNITS.contains(&limit.unit.as_str()) {
        let what = format!("invalid unit \"{}\"; expected ns or bytes/s", quoted(&limit.unit));
        return Err(wrong(path("unit"), what));
    }
    match (limit.value, &limit.skipped) {
        (None, Some(_)) => {}
        (Some(value), None) if value.is_finite() && value > 0.0 => {}
        (Some(value), None) => {
            return Err(wrong(
                path("value"),
                format!("invalid limit {value}; expected more than 0"),
            ));
        }
        (_, skipped) => {
            let what = match skipped {
                Some(_) => "a skipped limit has no value",
                None => "a limit has a value, or says why it was skipped",
            };
            return Err(wrong(path("value"), what.to_owned()));
        }
    }
    if limit.spread.is_some() != limit.value.is_some() {
        return Err(wrong(path("spread"), "there is one where there is a value".to_owned()));
    }
    if let Some(spread) = limit.spread.filter(|spread| !spread.is_finite() || *spread < 0.0) {
        return Err(wrong(path("spread"), format!("invalid spread {spread}; expected 0 or more")));
    }
    limit.measured.as_ref().map_or(Ok(()), |time| check_time(&path("measured"), time))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::arbitrary;
    use crate::store::{self, Record, RecordRef};

    const PLAIN: &str = r#"{
"schema": "iotomy.limits/1",
"started": "2025-03-01T10:20:30Z",
"machine": {"kernel": "Linux 6.1.0 x86_64", "cpu": "", "cpus": 2, "memory_bytes": 1, "virtualization": "none", "mitigations": "", "clock": "tsc"},
"limits": [
{"name": "syscall", "unit": "ns", "value": 81.5, "spread": 0.4, "method": "getppid", "skipped": null},
{"name": "fsync", "unit": "ns", "value": null, "spread": null, "method": "fsync", "skipped": "no room"}
]
}
"#;

    #[test]
    fn fields_may_be_lacking_or_new_and_each_limit_stands_on_a_line_of_its_own() {
        let limits = parse_limits(PLAIN.as_bytes()).unwrap();
        assert_eq!(limits.limits[0].measured, None);
        assert_eq!(limits.of_machine("syscall").and_then(|limit| limit.value), Some(81.5));
        assert_eq!(limits.of_machine("fsync"), None);
        let text = String::from_utf8(RecordRef::Limits(&limits).json().unwrap()).unwrap();
        assert!(text.lines().any(|line| PLAIN.contains(line) && line.contains("81.5")), "{text}");
        let newer = PLAIN.replace("\"unit\":", "\"new\": [1], \"unit\":");
        assert_eq!(parse_limits(newer.as_bytes()).unwrap(), limits);
    }

    #[test]
    fn a_wrong_value_is_named_with_its_place() {
        for (from, to, says) in [
            ("81.5", "0", "at limits[0].value: invalid limit 0"),
            ("81.5", "-3", "limits[0].value"),
            ("81.5", "1e999", "out of range"),
            ("81.5", "\"81.5\"", "at limits[0].value"),
            ("81.5", "null", "has a value, or says why"),
            ("\"value\": null", "\"value\": 1", "a skipped limit has no value"),
            ("0.4", "-0.4", "limits[0].spread: invalid spread -0.4"),
            ("0.4", "null", "limits[0].spread"),
            (
                "\"unit\": \"ns\", \"value\": 81",
                "\"unit\": \"ms\", \"value\": 81",
                "invalid unit \"ms\"",
            ),
            ("\"syscall\"", "\"fsync\"", "limits[1].name: duplicate \"fsync\""),
            ("\"syscall\"", "\"\"", "limits[0].name"),
            ("2025-03-01T10:20:30Z", "yesterday", "at started"),
            ("limits/1", "limits/2", "iotomy.limits/2, and this iotomy reads iotomy.limits/1"),
            ("limits/1", "trace/1", "a trace record (iotomy.trace/1), not a machine's limits"),
        ] {
            assert!(PLAIN.contains(from), "{from}");
            let text = PLAIN.replacen(from, to, 1);
            let error = parse_limits(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(says) && !error.contains('\n'), "{to}: {error}");
        }
    }

    #[test]
    fn what_no_reader_would_accept_is_not_written() {
        let mut limits = parse_limits(PLAIN.as_bytes()).unwrap();
        limits.limits[0].value = Some(f64::NAN);
        assert!(
            RecordRef::Limits(&limits)
                .json()
                .unwrap_err()
                .to_string()
                .contains("invalid limit NaN")
        );
    }

    #[test]
    fn a_file_says_itself_what_kind_of_record_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("limits.json");
        let limits = parse_limits(PLAIN.as_bytes()).unwrap();
        RecordRef::Limits(&limits).save_to(&path, folder.path()).unwrap();
        assert_eq!(store::load(&path).unwrap(), Record::Limits(Box::new(limits)));
        let error = store::load_trace(&path).unwrap_err().to_string();
        assert!(error.contains("a limits record (iotomy.limits/1), not a trace"), "{error}");
    }

    proptest! {
        #[test]
        fn a_saved_record_loads_as_it_was(limits in arbitrary::limits()) {
            let bytes = RecordRef::Limits(&limits).json().unwrap();
            prop_assert_eq!(parse_limits(&bytes).unwrap(), limits);
        }

        #[test]
        fn damage_is_an_error_or_a_record_and_never_a_panic(
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..3), 1..8),
        ) {
            let mut bytes = PLAIN.as_bytes().to_vec();
            for (at, byte, how) in damage {
                let at = at.index(bytes.len());
                match how {
                    0 => bytes[at] = byte,
                    1 => bytes.insert(at, byte),
                    _ => _ = bytes.remove(at),
                }
            }
            if let Err(error) = parse_limits(&bytes) {
                prop_assert!(!error.to_string().chars().any(char::is_control));
            }
        }
    }
}
