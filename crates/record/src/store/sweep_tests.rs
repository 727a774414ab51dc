use proptest::prelude::*;

use super::*;
use crate::arbitrary;
use crate::store::{self, Record, RecordRef};

const PLAIN: &str = r#"{
"schema": "iotomy.sweep/1",
"started": "2025-03-01T10:20:30Z",
"machine": {"kernel": "Linux 6.1.0 x86_64", "cpu": "", "cpus": 2, "memory_bytes": 1, "virtualization": "none", "mitigations": "", "clock": "tsc"},
"experiment": "herd",
"axes": [{"name": "waiter", "unit": "", "values": ["select", "epoll"]}, {"name": "processes", "unit": "", "values": [1, 64]}],
"cases": [
{"params": {"waiter": "select", "processes": 1}, "metric": "connect", "unit": "ns", "samples": [48000.0, 50000.5], "median": 49000.25, "mean": 49000.25, "stddev": 1414.5, "ci95": null, "extra": {"woken": 1.0}, "skipped": null},
{"params": {"waiter": "epoll", "processes": 64}, "metric": "connect", "unit": "ns", "samples": [], "median": null, "mean": null, "stddev": null, "ci95": null, "extra": {}, "skipped": "no room"}
],
"claims": [{"id": "herd-linear", "source": "002", "text": "linear", "verdict": "inconclusive", "evidence": {"r2": 0.5}}]
}"#;

fn refused(from: &str, to: &str) -> String {
    assert_eq!(PLAIN.matches(from).count(), 1, "{from}");
    let error = parse_sweep(PLAIN.replacen(from, to, 1).as_bytes()).unwrap_err().to_string();
    assert!(!error.chars().any(char::is_control), "{error:?}");
    error
}

#[test]
fn fields_added_later_have_defaults() {
    let sweep = parse_sweep(PLAIN.as_bytes()).unwrap();
    assert_eq!((sweep.cases.len(), sweep.run.is_partial), (2, false));
    assert_eq!(sweep.about, crate::ExperimentFacts::default());
    assert!(sweep.cases[0].extra_samples.is_empty() && sweep.claims[0].because.is_empty());
    let text = PLAIN.replacen("\"experiment\"", "\"new\": [1], \"experiment\"", 1);
    assert_eq!(parse_sweep(text.as_bytes()).unwrap(), sweep);
}

#[test]
fn a_raw_record_of_a_bench_is_called_that() {
    let of_a_bench = PLAIN.replacen("\"002\"", "\"targets\"", 1);
    assert!(parse_sweep(of_a_bench.as_bytes()).is_ok(), "as long as it has the order of a sweep");
    let text = of_a_bench.replacen("\"processes\": 1}", "\"processes\": 1, \"calls\": 9}", 1);
    let error = parse_sweep(text.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("the raw record of a bench (herd)"), "{error}");
    assert!(error.contains("`make bench-summary`"), "{error}");
}

#[test]
fn a_wrong_value_is_named_with_its_place() {
    for (from, to, says) in [
        ("iotomy.sweep/1", "iotomy.sweep/2", "this iotomy reads iotomy.sweep/1"),
        ("iotomy.sweep/1", "iotomy.race/1", "a race record (iotomy.race/1), not a sweep"),
        ("2025-03-01T10:20:30Z", "today", "at started"),
        ("\"name\": \"waiter\"", "\"name\": \"processes\"", "at axes[1]: duplicate \"processes\""),
        ("\"name\": \"waiter\"", "\"name\": \"\"", "at axes[0]: expected a name"),
        (
            "\"cases\": [",
            "\"machines\": [{\"machine\": {\"kernel\": \"\", \"cpu\": \"\", \"cpus\": 1, \"memory_bytes\": 1, \"virtualization\": \"\", \"mitigations\": \"\", \"clock\": \"\", \"name\": \"a\"}, \"started\": \"2025-03-01T10:20:30Z\", \"claims\": []}], \"cases\": [",
            "at machines: their names are not the values of the axis",
        ),
        (
            "\"cases\": [",
            "\"run\": {\"shard\": {\"index\": 6, \"of\": 5, \"plan_cases\": 9, \"plan\": \"\"}}, \"cases\": [",
            "at run.shard.index: 6 is not from 1 to 5",
        ),
        (
            "\"processes\": 1}",
            "\"processes\": 2}",
            "at cases[0].params: 2 is not a value of the axis",
        ),
        ("\"processes\": 1}", "\"processes\": -1}", "at cases[0].params"),
        ("\"processes\": 1}", "\"processes\": 1, \"processes\": 64}", "duplicate key"),
        ("\"processes\": 1}", "\"processes\": 1, \"x\": 1}", "unknown axis \"x\""),
        ("\"waiter\": \"epoll\", ", "", "at cases[1].params: there is no value of the axis"),
        ("\"median\": 49000.25", "\"median\": null", "at cases[0].median"),
        ("\"mean\": 49000.25", "\"mean\": 1e999", "out of range"),
        ("\"samples\": []", "\"samples\": [1]", "at cases[1].skipped"),
        (
            "\"no room\"",
            "\"no room\", \"visits\": [{\"round\": 1, \"samples\": 3, \"wall_ns\": 9}]",
            "at cases[1].visits: theirs are not all of the samples",
        ),
        ("\"no room\"", "null", "at cases[1].samples: a case has samples, or says why"),
        ("\"ci95\": null, \"extra\": {\"w", "\"ci95\": [2, 1], \"extra\": {\"w", "2 is above 1"),
        ("\"ci95\": null, \"extra\": {\"w", "\"ci95\": [2], \"extra\": {\"w", "at cases[0].ci95"),
        ("\"woken\": 1.0", "\"woken\": 1.0, \"woken\": 2.0", "duplicate key"),
        ("\"inconclusive\"", "\"perhaps\"", "unknown variant `perhaps`"),
        ("\"r2\": 0.5", "\"r2\": 0.5, \"r2\": 0.6", "duplicate key"),
    ] {
        let error = refused(from, to);
        assert!(error.contains(says), "{to}: {error}");
    }
    let twice = PLAIN.replacen("\"epoll\", \"processes\": 64", "\"select\", \"processes\": 1", 1);
    let error = parse_sweep(twice.as_bytes()).unwrap_err().to_string();
    assert_eq!(error, "at cases[1].params: there is another case of these values");
}

#[test]
fn what_was_interrupted_may_have_cases_without_anything() {
    let open = PLAIN.replacen("\"no room\"", "null", 1);
    let partial = open.replacen("\"claims\"", "\"run\": {\"is_partial\": true}, \"claims\"", 1);
    assert!(parse_sweep(partial.as_bytes()).unwrap().run.is_partial);
    assert!(parse_sweep(open.as_bytes()).is_err());
}

#[test]
fn what_no_reader_would_accept_is_not_written() {
    let mut sweep = parse_sweep(PLAIN.as_bytes()).unwrap();
    sweep.cases[0].samples[1] = f64::NAN;
    let folder = tempfile::tempdir().unwrap();
    let error =
        RecordRef::Sweep(&sweep).save_to("x".as_ref(), folder.path()).unwrap_err().to_string();
    assert!(error.contains("cases[0].samples: invalid measurement NaN"), "{error}");
    assert!(!folder.path().join("x").exists());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_sweep_comes_back_as_it_was(sweep in arbitrary::sweep()) {
        let bytes = RecordRef::Sweep(&sweep).json().unwrap();
        prop_assert_eq!(&parse_sweep(&bytes).unwrap(), &sweep);
        let any = store::parse_record(&bytes).unwrap();
        prop_assert_eq!(any, Record::Sweep(Box::new(sweep)));
    }

    #[test]
    fn a_sweep_that_is_cut_or_changed_is_a_sweep_or_an_error(
        sweep in arbitrary::sweep(), at in 0usize..4_000, byte: u8, cut: bool,
    ) {
        let mut bytes = RecordRef::Sweep(&sweep).json().unwrap();
        let at = at.min(bytes.len() - 1);
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        let _ = parse_sweep(&bytes);
    }
}
