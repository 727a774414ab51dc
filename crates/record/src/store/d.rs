//! JSON to [`DRun`] and back.

use super::RecordError;
use super::parse::{Stored, check_schema, check_time, parse, wrong};
use crate::DRun;

impl Stored for DRun {
    const SCHEMA: &'static str = Self::SCHEMA;
    const WANTED: &'static str = "a run of a D program; `iotomy d --json` makes one";

    fn check(&self) -> Result<(), RecordError> {
        check_schema::<Self>(&self.schema)?;
        check_time("started", &self.started)?;
        for (at, row) in self.aggregations.iter().enumerate() {
            let path = |field: &str| format!("aggregations[{at}].{field}");
            if row.kind.is_empty() {
                return Err(wrong(path("kind"), "expected a function, as count".to_owned()));
            }
            if row.value.is_some() && !row.buckets.is_empty() {
                let what = "a value has no buckets".to_owned();
                return Err(wrong(path("buckets"), what));
            }
            if row.normal == Some(0) {
                return Err(wrong(path("normal"), "nothing is divided by 0".to_owned()));
            }
            let mut last = None;
            for bucket in &row.buckets {
                let (low, high) = (bucket.low.unwrap_or(i64::MIN), bucket.high.unwrap_or(i64::MAX));
                if low > high || last.is_some_and(|last| low <= last) {
                    let what = format!("the bucket from {low} to {high} is not behind the others");
                    return Err(wrong(path("buckets"), what));
                }
                last = Some(high);
            }
        }
        Ok(())
    }
}

/// Reads the record of a D program's run from the bytes of its JSON.
///
/// # Errors
/// When they are not a whole `iotomy.d/1`; the error names the place.
pub fn parse_d(bytes: &[u8]) -> Result<DRun, RecordError> {
    parse(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::{Record, RecordRef, parse_record};
    use crate::{DKey, arbitrary};

    const PLAIN: &str = r#"{
"schema": "iotomy.d/1",
"started": "2026-01-02T03:04:05Z",
"machine": {"kernel": "Linux 6.1.0 x86_64", "cpu": "", "cpus": 2, "memory_bytes": 1, "virtualization": "none", "mitigations": "", "clock": "tsc"},
"script": "-n",
"program": "BEGIN { @[1] = count(); }",
"wall_ns": 12,
"aggregations": [
{"name": "", "kind": "count", "keys": [1, "x", 18446744073709551615], "value": 7},
{"name": "b", "kind": "quantize", "buckets": [{"low": 0, "high": 0, "count": 1}, {"low": 4, "high": 7, "count": 3}]}
],
"output": ""
}
"#;

    #[test]
    fn keys_keep_what_they_are_and_each_row_stands_on_a_line_of_its_own() {
        let run = parse_d(PLAIN.as_bytes()).unwrap();
        let keys =
            [DKey::Integer(1), DKey::Text("x".to_owned()), DKey::Unsigned(u64::MAX)].to_vec();
        assert_eq!(run.aggregations[0].keys, keys);
        assert!(run.aggregations[1].is_distribution());
        let text = String::from_utf8(RecordRef::D(&run).json().unwrap()).unwrap();
        assert!(text.lines().any(|line| PLAIN.contains(line) && line.contains("count")), "{text}");
        let newer = PLAIN.replace("\"wall_ns\":", "\"new\": [1], \"wall_ns\":");
        assert_eq!(parse_d(newer.as_bytes()).unwrap(), run);
    }

    #[test]
    fn a_wrong_value_is_named_with_its_place() {
        for (from, to, says) in [
            ("\"count\", \"keys\"", "\"\", \"keys\"", "at aggregations[0].kind"),
            ("\"value\": 7", "\"value\": 7, \"normal\": 0", "aggregations[0].normal"),
            ("\"quantize\",", "\"quantize\", \"value\": 1,", "aggregations[1].buckets"),
            ("\"low\": 4", "\"low\": 0", "from 0 to 7 is not behind the others"),
            ("\"low\": 4", "\"low\": 9", "aggregations[1].buckets"),
            ("\"x\"", "{}", "at aggregations[0].keys[1]"),
            ("2026-01-02T", "then ", "at started"),
            ("d/1", "d/2", "iotomy.d/2, and this iotomy reads iotomy.d/1"),
        ] {
            assert!(PLAIN.contains(from), "{from}");
            let error = parse_d(PLAIN.replacen(from, to, 1).as_bytes()).unwrap_err().to_string();
            assert!(error.contains(says) && !error.contains('\n'), "{to}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_run_comes_back_as_it_was(run in arbitrary::d()) {
            let bytes = RecordRef::D(&run).json().unwrap();
            prop_assert_eq!(&parse_d(&bytes).unwrap(), &run);
            prop_assert_eq!(parse_record(&bytes).unwrap(), Record::D(Box::new(run)));
        }
    }
}
