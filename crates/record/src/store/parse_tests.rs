use proptest::prelude::*;

use super::*;
use crate::arbitrary;
use crate::store::RecordRef;

/// The bytes of a trace's record.
fn written(trace: &Trace) -> Vec<u8> {
    RecordRef::Trace(trace).json().unwrap()
}

/// A record with the fields an early version wrote and no more.
const PLAIN: &str = include_str!("plain.json");

fn refused(text: &str) -> String {
    let error = parse_trace(text.as_bytes()).unwrap_err().to_string();
    assert!(!error.chars().any(char::is_control), "{error:?}");
    assert!(error.chars().count() < 600, "{error:?}");
    error
}

fn with(from: &str, to: &str) -> String {
    assert_eq!(PLAIN.matches(from).count(), 1, "{from}");
    PLAIN.replacen(from, to, 1)
}

#[test]
fn fields_that_older_records_lack_have_defaults() {
    let trace = parse_trace(PLAIN.as_bytes()).unwrap();
    assert_eq!(trace.view, crate::View::default());
    assert!(trace.still_running.is_empty());
    assert!(!trace.observer.times_inflated);
    assert_eq!(trace.calls[0].on_cpu_ns, None);
}

#[test]
fn fields_that_newer_records_add_are_accepted() {
    for place in ["\"schema\":", "\"kernel\":", "\"zero\": 0", "\"syscall\":", "\"cost_ns_per"] {
        let text = PLAIN.replacen(place, &format!("\"new\": [{{\"a\": null}}], {place}"), 1);
        parse_trace(text.as_bytes()).unwrap();
    }
}

#[test]
fn what_is_no_trace_is_called_what_it_is() {
    for (text, says) in [
        ("", "empty"),
        (" \n\t", "empty"),
        ("[]", "begins with `{`"),
        ("\u{7f}ELF", "begins with `{`"),
        ("{\"schema\": \"iotomy.trace/1\"", "ends too early, at line 1, column 27"),
        ("{}", "without a \"schema\""),
        ("{\"schema\": 1}", "at schema (line 1, column 12): invalid type: integer `1`"),
        ("{\"schema\": \"iotomy.race/1\"}", "a race record (iotomy.race/1), not a trace"),
        (
            "{\"schema\": \"iotomy.trace/2\"}",
            "iotomy.trace/2, and this iotomy reads iotomy.trace/1",
        ),
        ("{\"schema\": \"other\"}", "an unknown record (other)"),
        ("{\"schema\": \"\\u001b[31m\"}", r"(\x1b[31m)"),
        ("{\"schema\": \"iotomy.trace/1\", \"schema\": \"iotomy.trace/1\"}", "duplicate field"),
        ("{\"schema\": \"iotomy.trace/1\"}", "missing field `started`"),
        ("{\"schema\" \"iotomy.trace/1\"}", "invalid JSON at line 1, column 11: expected `:`"),
    ] {
        let error = refused(text);
        assert!(error.contains(says), "{text}: {error}");
    }
}

/// A text that is no record of this kind is refused by its first field, whatever follows.
#[test]
fn what_stands_behind_the_schema_is_not_read_to_find_it() {
    let error = refused("{\"schema\": \"iotomy.race/1\", what is no JSON");
    assert!(error.contains("a race record (iotomy.race/1), not a trace"), "{error}");
    let error = refused("{\"schema\": \"iotomy.trace/1\", what is no JSON");
    assert!(error.contains("invalid JSON at line 1, column 30"), "{error}");
    let error = refused("{\"new\": [1, 2], \"schema\": \"iotomy.race/1\"}");
    assert!(error.contains("a race record (iotomy.race/1), not a trace"), "{error}");
    let error = refused("{\"schema\": null, \"new\": 1}");
    assert!(error.contains("schema"), "{error}");
}

#[test]
fn a_wrong_value_is_named_with_its_place() {
    for (from, to, says) in [
        (
            "\"cost_ns_per_call\": 210.5",
            "\"cost_ns_per_call\": -1",
            "observer.cost_ns_per_call: invalid cost -1",
        ),
        ("\"cost_ns_per_call\": 210.5", "\"cost_ns_per_call\": 1e999", "out of range"),
        ("\"cost_ns_per_call\": 210.5", "\"cost_ns_per_call\": null", "observer.cost_ns_per_call"),
        ("\"calls\": 8192", "\"calls\": -1", "at calls[0].calls (line 13,"),
        ("\"calls\": 8192", "\"calls\": 1.5", "at calls[0].calls"),
        ("\"calls\": 8192", "\"calls\": 99999999999999999999", "at calls[0].calls"),
        ("\"buckets\": [7", "\"buckets\": [7, 7", "return_log2.buckets"),
        ("\"buckets\": [7, 0", "\"buckets\": [7", "64 buckets"),
        ("{\"ENOENT\": 2}", "{\"ENOENT\": 2, \"ENOENT\": 1}", "duplicate key \"ENOENT\""),
        ("{\"code\": 0}", "{\"signal\": 9, \"code\": 0}", "at exit"),
        ("{\"code\": 0}", "{\"vanished\": 1}", "unknown variant"),
        ("2025-03-01T10:20:30Z", "yesterday", "at started: invalid time \"yesterday\""),
        ("2025-03-01T10:20:30Z", "2025-13-01T10:20:30Z", "at started"),
        ("2025-03-01T10:20:30Z", "\\n", r#"invalid time "\n""#),
        ("\"findings\": []", "\"findings\": []} x", "trailing characters"),
    ] {
        let error = refused(&with(from, to));
        assert!(error.contains(says), "{to}: {error}");
    }
}

#[test]
fn a_time_of_any_zone_and_precision_is_one() {
    for good in
        ["2025-03-01T10:20:30.123456789Z", "1970-01-01t00:00:00z", "2025-12-31T23:59:60+05:45"]
    {
        assert!(is_rfc3339(good), "{good}");
    }
    for bad in [
        "",
        "2025-03-01",
        "2025-03-01T10:20:30",
        "2025-03-01T10:20:30.Z",
        "2025-03-01T10:20:30+1:00",
        "2025-03-01T10:20:30Zé",
    ] {
        assert!(!is_rfc3339(bad), "{bad}");
    }
}

#[test]
fn absurd_nesting_is_refused() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = format!("{}1{}", open.repeat(200_000), close.repeat(200_000));
        // In a field that is read, in one that is not, and unclosed.
        let finding = format!(
            "{{\"id\":\"x\",\"verdict\":\"note\",\"text\":\"\",\"evidence\":{{\"x\":{deep}}}}}"
        );
        let error = refused(&with("\"findings\": []", &format!("\"findings\": [{finding}]")));
        assert!(error.contains("recursion limit"), "{error}");
        parse_trace(
            with("\"findings\": []", &format!("\"findings\": [], \"new\": {deep}")).as_bytes(),
        )
        .unwrap();
        refused(&format!("{{\"schema\": {deep}"));
    }
}

#[test]
fn a_record_that_no_reader_would_accept_is_not_written() {
    let mut trace = parse_trace(PLAIN.as_bytes()).unwrap();
    trace.observer.cost_ns_per_call = f64::NAN;
    let folder = tempfile::tempdir().unwrap();
    let error = RecordRef::Trace(&trace).save_to("x".as_ref(), folder.path()).unwrap_err();
    assert!(error.to_string().contains("invalid cost NaN"), "{error}");
    assert!(!folder.path().join("x").exists());
}

#[test]
fn each_row_stands_on_a_line_of_its_own() {
    let trace = parse_trace(PLAIN.as_bytes()).unwrap();
    let text = String::from_utf8(written(&trace)).unwrap();
    assert!(text.starts_with("{\n\"schema\": \"iotomy.trace/1\",\n"), "{text}");
    assert!(text.ends_with("}\n"));
    let calls = text.lines().filter(|line| line.contains("\"syscall\"")).count();
    assert_eq!(calls, trace.calls.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_saved_record_loads_as_it_was(trace in arbitrary::trace()) {
        let bytes = written(&trace);
        prop_assert_eq!(parse_trace(&bytes).unwrap(), trace);
    }

    #[test]
    fn no_prefix_of_a_record_is_a_record(trace in arbitrary::trace(), at in any::<prop::sample::Index>()) {
        let bytes = written(&trace);
        let cut = at.index(bytes.len() - 2);
        prop_assert!(parse_trace(&bytes[..cut]).is_err());
    }
}

proptest! {
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
        if let Err(error) = parse_trace(&bytes) {
            prop_assert!(!error.to_string().chars().any(char::is_control));
        }
    }

    #[test]
    fn noise_is_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(parse_trace(&bytes).is_err());
    }
}

#[test]
fn a_text_that_would_become_many_times_its_size_is_refused() {
    // 24 bytes of memory for three of text.
    let words =
        |count: usize| with("\"command\": [", &format!("\"command\": [{}", "\"\",".repeat(count)));
    let error = match parse_trace(words(2_000_000).as_bytes()) {
        Err(error) => error.to_string(),
        Ok(trace) => format!("read: {} words", trace.command.len()),
    };
    assert!(error.contains("at command ") && error.contains("MiB of memory"), "{error}");
    assert_eq!(parse_trace(words(1_000).as_bytes()).unwrap().command.len(), 1_003);
}
