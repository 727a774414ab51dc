//! Where the report and the record go, and what is in the record.

use crate::support;

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::process::Stdio;

use serde_json::Value;
use support::{Need, bare, each_observer, has, iotomy, root, skip, traced};

/// Says which of `fields` an object has that it should not, or lacks, or has of another type.
/// A field whose type ends in `?` may be absent.
fn has_fields(value: &Value, place: &str, fields: &str) {
    let object = value.as_object().unwrap_or_else(|| panic!("{place} is no object: {value}"));
    let mut known = Vec::new();
    for field in fields.split_whitespace() {
        let (name, kind) = field.split_once(':').unwrap();
        known.push(name);
        let (kind, optional) = match kind.strip_suffix('?') {
            Some(kind) => (kind, true),
            None => (kind, false),
        };
        let Some(value) = object.get(name) else {
            assert!(optional, "{place} lacks {name}: {value}");
            continue;
        };
        let fits = match kind {
            "u64" => value.is_u64(),
            "i64" => value.is_i64() || value.is_u64(),
            "float" => value.is_number(),
            "bool" => value.is_boolean(),
            "text" => value.is_string(),
            "list" => value.is_array(),
            "object" => value.is_object(),
            "texts" => value.as_array().is_some_and(|list| list.iter().all(Value::is_string)),
            "features" => value.as_array().is_some_and(|list| {
                list.iter().all(|one| {
                    ["feature", "reason", "lost"].iter().all(|name| one[name].is_string())
                })
            }),
            "counts" => value.as_object().is_some_and(|map| map.values().all(Value::is_u64)),
            "log2" => {
                let buckets = value["buckets"].as_array();
                let buckets = buckets.filter(|list| list.iter().all(Value::is_u64));
                value["zero"].is_u64() && buckets.is_some_and(|list| list.len() == 64)
            }
            "times" => {
                let names: Vec<&str> =
                    value.as_object().unwrap().keys().map(|key| &**key).collect();
                let buckets = value["buckets"].as_array().unwrap();
                let pair = |pair: &Value| pair.as_array().is_some_and(|pair| pair.len() == 2);
                names == ["buckets", "max", "p50", "p90", "p99", "p99.9"]
                    && buckets.iter().all(pair)
            }
            kind => panic!("{kind}"),
        };
        assert!(fits, "{place}.{name} is no {kind}: {value}");
    }
    for name in object.keys() {
        assert!(known.contains(&name.as_str()), "{place} has {name}, which nobody documents");
    }
}

#[test]
fn the_record_has_exactly_the_documented_fields() {
    each_observer(|observer| {
        let script = "echo x | cat >/dev/null; ls /nonexistent 2>/dev/null; true";
        let traced = traced(observer, &["-q", "--files"], &["sh", "-c", script]);
        traced.whole_record();
        let record: Value = serde_json::from_slice(&fs::read(traced.json()).unwrap()).unwrap();
        has_fields(
            &record,
            "record",
            "schema:text started:text command:texts wall_ns:u64 exit:object cpu_capacity:object? machine:object \
             observer:object processes:list calls:list files:list paths:list? slowest:list? ended_by:object? interval:object? ring:object? ledger:list findings:list \
             still_running:list? unwatched_children:list? by:object? targets:list? view:object",
        );
        assert_eq!(record["schema"], "iotomy.trace/1");
        assert_eq!(record["exit"], serde_json::json!({"code": 0}));
        is_rfc_3339(record["started"].as_str().unwrap());
        has_fields(
            &record["machine"],
            "machine",
            "kernel:text cpu:text cpus:u64 memory_bytes:u64 virtualization:text mitigations:text \
             clock:text name:text?",
        );
        has_fields(
            &record["observer"],
            "observer",
            "name:text cost_ns_per_call:float cost_ns_low:float cost_ns_high:float lost_events:u64 incomplete_calls:u64 \
             lost_files:u64? lost_paths:u64? sees_rings:bool lost_requests:u64? divided_by_zero:u64? end_divided_by_zero:u64? calls_left_out:u64? cost_left_out_ns_low:float? cost_left_out_ns_high:float? calls_passed:u64? unwatched_ns_low:float? unwatched_ns_high:float? times_inflated:bool fallback:text? untraced_tasks:u64? startup_ns:u64 missing:features?",
        );
        let split = if observer == "bpf" { "" } else { "?" };
        let rows = [
            (
                "processes",
                "pid:u64 ppid:u64 exec:text called:text? binary:text? instances:u64? continued:u64? \
                 before_exec:bool? argv:texts threads:u64 user_ns:u64 system_ns:u64 \
                 minor_faults:u64 major_faults:u64 voluntary_switches:u64 \
                 involuntary_switches:u64 max_rss_bytes:u64 storage_read_bytes:u64?"
                    .to_owned(),
            ),
            (
                "calls",
                format!(
                    "pid:u64 exec:text syscall:text calls:u64 errors:u64 error_kinds:counts \
                     bytes:u64 wall_ns:u64 on_cpu_ns:u64{split} blocked_ns:u64{split} \
                     runnable_ns:u64{split} max_ns:u64 in_flight:u64 open_ns:u64? entered_before:u64? asked:u64? ready:u64? return_log2:log2 \
                     wall_log2:log2 on_cpu_log2:log2{split} blocked_log2:log2{split} \
                     wall_times:times? on_cpu_times:times? blocked_times:times?"
                ),
            ),
            (
                "files",
                "pid:u64 exec:text kind:text path:text read_calls:u64 read_bytes:u64 \
                 write_calls:u64 write_bytes:u64 map_calls:u64 mapped_bytes:u64 file_system:text? \
                 size_bytes:u64? allocated_bytes:u64? cached_bytes:u64? dirty_bytes:u64? socket:object?"
                    .to_owned(),
            ),
            (
                "ledger",
                "pid:u64 exec:text thread_ns:u64 user_ns:u64 calls_on_cpu_ns:u64 blocked_ns:u64 \
                 fault_ns:u64? stopped_ns:u64? runnable_ns:u64 residual_ns:i64"
                    .to_owned(),
            ),
        ];
        for (list, fields) in rows {
            let list_of = record[list].as_array().unwrap();
            assert_eq!(list_of.is_empty(), list == "ledger" && observer != "bpf", "{list}");
            list_of.iter().for_each(|row| has_fields(row, list, &fields));
        }
    });
}

/// `2026-11-21T09:55:02.600Z`, whatever the digits.
fn is_rfc_3339(time: &str) {
    let shape: String = time.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    assert_eq!(shape, "0000-00-00T00:00:00.000Z");
}

#[test]
fn a_dash_is_standard_output() {
    each_observer(|observer| {
        let base = ["trace", "--observer", observer];
        let words = ["sh", "-c", "echo from the command"];
        let output =
            iotomy(&[&base[..], &["-q", "--json", "-"], &words].concat()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let json = text.strip_prefix("from the command\n").unwrap();
        assert_eq!(serde_json::from_str::<Value>(json).unwrap()["schema"], "iotomy.trace/1");
        assert!(json.ends_with("}\n") && output.stderr.is_empty());
        let output = iotomy(&[&base[..], &["-o", "-"], &words].concat()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.starts_with("from the command\nsh ("), "{text}");
        assert!(output.stderr.is_empty());
    });
}

#[test]
fn a_record_that_cannot_be_written_costs_neither_the_run_nor_the_report() {
    each_observer(|observer| {
        for (code, said) in [(0, 2), (3, 3)] {
            let script = format!("echo ran; exit {code}");
            let words =
                ["trace", "--observer", observer, "--json", "/dev/full", "sh", "-c", &script];
            let output = iotomy(&words).output().unwrap();
            let error = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(said), "{observer}: {error}");
            assert_eq!(output.stdout, b"ran\n");
            assert!(error.starts_with("sh ("), "{error}");
            let last = error.lines().last().unwrap();
            assert!(last.starts_with("iotomy: cannot write to /dev/full: No space"), "{last}");
        }
        assert!(fs::metadata("/dev/full").unwrap().file_type().is_char_device());
    });
}

#[test]
fn a_report_that_cannot_be_written_costs_no_record() {
    each_observer(|observer| {
        let traced = traced(observer, &["-o", "/dev/full"], &["true"]);
        assert_eq!(traced.code(), 2);
        assert!(traced.stderr().starts_with("iotomy: cannot write to /dev/full: No space"));
        assert_eq!(traced.stderr().lines().count(), 1);
        traced.whole_record();
    });
}

#[test]
fn a_full_file_system_leaves_the_old_file_whole() {
    if !root() || !has("unshare") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().display();
    // Room for the old file, and not for a record.
    let script = format!(
        "mount -t tmpfs -o size=8k none {place} && printf old > {place}/record.json || exit 99
         {} trace -q --json {place}/record.json sh -c 'true' 2> {place}/../$$.said; code=$?
         cat {place}/../$$.said; rm {place}/../$$.said
         echo; echo $code; cat {place}/record.json; echo; ls -A {place}",
        support::IOTOMY
    );
    let output = bare("unshare", &["-m", "sh", "-c", &script]).output().unwrap();
    if output.status.code() == Some(99) || !output.stderr.is_empty() {
        skip(
            Need::Namespaces,
            &format!("no private tmpfs: {}", String::from_utf8_lossy(&output.stderr)),
        );
        return;
    }
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("iotomy: cannot write"), "{text}");
    assert!(text.contains("No space left") && text.contains("free some space"), "{text}");
    assert!(text.ends_with("\n2\nold\nrecord.json\n"), "{text}");
}

#[test]
fn a_link_is_written_through_and_the_rest_of_the_folder_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (link, real) = (folder.path().join("link"), folder.path().join("real"));
    fs::write(&real, "old").unwrap();
    symlink("real", &link).unwrap();
    let words = ["trace", "-q", "--json", link.to_str().unwrap(), "true"];
    assert!(iotomy(&words).status().unwrap().success());
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&real).unwrap().contains("iotomy.trace/1"));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_fifo_is_written_through() {
    if !has("mkfifo") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    assert!(bare("mkfifo", &[fifo.to_str().unwrap()]).status().unwrap().success());
    let mut command = iotomy(&["trace", "-q", "--json", fifo.to_str().unwrap(), "true"]);
    let mut child = command.spawn().unwrap();
    let text = fs::read_to_string(&fifo).unwrap();
    assert!(child.wait().unwrap().success() && text.contains("iotomy.trace/1"));
    assert!(fs::symlink_metadata(&fifo).unwrap().file_type().is_fifo());
}

#[test]
fn a_relative_path_is_meant_from_where_iotomy_was_started() {
    each_observer(|observer| {
        let folder = tempfile::tempdir().unwrap();
        let options = ["--json", "record.json", "-o", "report.txt", "sh", "-c", "cd /; true"];
        let mut command = iotomy(&["trace", "--observer", observer]);
        let output = command.args(options).current_dir(folder.path()).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        let report = fs::read_to_string(folder.path().join("report.txt")).unwrap();
        assert!(report.starts_with("sh (") && !report.contains('\x1b'), "{report}");
        assert!(folder.path().join("record.json").exists());
        let made = fs::metadata(folder.path().join("record.json")).unwrap();
        assert_eq!(made.mode() & 0o111, 0);
    });
}

#[test]
fn two_outputs_to_one_path_are_refused_before_anything_is_run() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a"), "old").unwrap();
    symlink("a", folder.path().join("b")).unwrap();
    for (json, text) in [("a", "a"), ("a", "./a"), ("a", "b"), ("new", "../new"), ("-", "-")] {
        let text = match text.strip_prefix("../") {
            Some(name) => folder.path().join(name).to_str().unwrap().to_owned(),
            None => text.to_owned(),
        };
        let mut command = iotomy(&["trace", "--json", json, "-o", &text, "echo", "ran"]);
        let output = command.current_dir(folder.path()).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{json} {text}");
        assert!(error.starts_with("iotomy: --json and --output"), "{error}");
    }
    assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"old");
}

#[test]
fn quiet_prints_nothing_and_a_report_without_a_reader_is_no_failure() {
    each_observer(|observer| {
        let traced = traced(observer, &["-q"], &["true"]);
        assert!(traced.code() == 0 && traced.stderr().is_empty());
        let folder = tempfile::tempdir().unwrap();
        let report = folder.path().join("report");
        let traced = self::traced(observer, &["-q", "-o", report.to_str().unwrap()], &["true"]);
        assert!(traced.code() == 0 && traced.stderr().is_empty());
        assert!(fs::read_to_string(report).unwrap().starts_with("true ("), "a file is no noise");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = iotomy(&["trace", "--observer", observer, "sh", "-c", "exit 3"]);
        let status = command.stderr(writer).stdout(Stdio::null()).status().unwrap();
        assert_eq!(status.code(), Some(3), "{observer}");
    });
}

#[test]
fn colour_and_ascii_are_as_asked_for() {
    let report = |options: &[&str]| {
        let words = [&["trace"][..], options, &["true"]].concat();
        String::from_utf8(iotomy(&words).output().unwrap().stderr).unwrap()
    };
    assert!(!report(&[]).contains('\x1b'), "no colour into a pipe");
    assert!(report(&["--color", "always"]).contains('\x1b'));
    assert!(report(&["--color", "always", "--ascii"]).is_ascii());
    assert!(!report(&["--ascii"]).contains('\x1b'));
}

#[test]
fn file_names_and_arguments_with_escape_sequences_are_shown_and_not_sent() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a\x1b[31mred\nline\u{202e}");
    fs::write(&path, "x").unwrap();
    each_observer(|observer| {
        let traced = traced(observer, &["--files"], &["cat", path.to_str().unwrap()]);
        let report = traced.stderr();
        assert!(!report.contains('\x1b') && !report.contains('\u{202e}'), "{report}");
        assert!(report.contains(r"\x1b[31mred\nline"), "{report}");
        let record = traced.whole_record();
        assert!(record.files.iter().any(|file| file.path == path.to_str().unwrap()), "{observer}");
    });
}
