//! The record of a D program: what is in it, how it is written, shown, drawn and kept.

use crate::support;

use std::fs;
use std::process::Output;

use serde_json::Value;
use support::{bpf, iotomy};

const PROGRAM: &str = "syscall::write:return /pid == $target/ { @[probefunc, arg1] = count(); @sizes = quantize(arg1); }
                       END { @two = sum(20); normalize(@two, 10); printa(\"%@d\\n\", @two); }";
const WRITES: &str = "dd if=/dev/zero of=/dev/null bs=8k count=23 status=none";

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn a_record_has_each_key_and_bucket_and_what_was_printed() {
    if !bpf() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let words = ["d", "-q", "-n", PROGRAM, "-c", WRITES, "--json", "r.json", "--csv", "r.csv"];
    let run = iotomy(&words).current_dir(folder.path()).output().unwrap();
    assert!(run.status.success(), "{run:?}");
    let record: Value =
        serde_json::from_slice(&fs::read(folder.path().join("r.json")).unwrap()).unwrap();
    assert_eq!(record["schema"], "iotomy.d/1");
    assert_eq!((&record["exit"]["code"], &record["script"]), (&0.into(), &"-n".into()));
    assert_eq!(record["command"][0], "dd");
    assert_eq!(record["output"], "2\n");
    let rows = serde_json::json!([
        {"name": "", "kind": "count", "keys": ["write", 8192], "value": 23},
        {"name": "sizes", "kind": "quantize", "buckets": [{"low": 8192, "high": 16383, "count": 23}]},
        {"name": "two", "kind": "sum", "value": 20, "normal": 10, "printed": true},
    ]);
    assert_eq!(record["aggregations"], rows);
    let csv = fs::read_to_string(folder.path().join("r.csv")).unwrap();
    let lines = [
        "aggregation,function,key1,key2,low,high,value",
        ",count,write,8192,,,23",
        "sizes,quantize,,,8192,16383,23",
        "two,sum,,,,,2",
    ];
    assert_eq!(csv, lines.join("\n") + "\n");
    // Shown, each once: what was printed, then the rest.
    let shown = iotomy(&["show", "r.json"]).current_dir(folder.path()).output().unwrap();
    let text = stdout(&shown);
    assert!(shown.status.success() && text.contains("8192"), "{text}");
    assert!(!text.contains("\n  @two"), "{text}");
    // And drawn.
    let mut report = iotomy(&["report", "--list", "r.json"]);
    let listed = stdout(&report.current_dir(folder.path()).output().unwrap());
    assert!(listed.contains("distribution-2-1  picture  @sizes quantize"), "{listed}");
}

#[test]
fn a_record_on_standard_output_is_alone_there() {
    if !bpf() {
        return;
    }
    let program = "BEGIN { printf(\"a line\\n\"); @[\"x\"] = sum(-3); exit(4); }";
    let run = iotomy(&["d", "-q", "-n", program, "--json", "-"]).output().unwrap();
    assert_eq!(run.status.code(), Some(4), "{run:?}");
    let record: Value = serde_json::from_slice(&run.stdout).unwrap();
    assert_eq!((&record["output"], &record["status"]), (&"a line\n".into(), &4.into()));
    let run = iotomy(&["d", "-q", "-n", program, "--csv", "-"]).output().unwrap();
    assert_eq!(stdout(&run).lines().last(), Some(",sum,x,,,-3"));
}

#[test]
fn losses_and_errors_are_part_of_the_record() {
    if !bpf() {
        return;
    }
    let program = "#pragma D option aggsize=4k
                   syscall::write:return /pid == $target/ { @[self->n++] = count(); }
                   BEGIN { trace(1 / self->n); }";
    let writes = "dd if=/dev/zero of=/dev/null bs=1 count=5000 status=none";
    let words = ["d", "-q", "-n", program, "-c", writes, "--json", "-"];
    let run = iotomy(&words).output().unwrap();
    let record: Value = serde_json::from_slice(&run.stdout).unwrap();
    let kept = record["aggregations"].as_array().unwrap().len() as u64;
    assert_eq!(record["drops"]["keys of aggregations"].as_u64(), Some(5000 - kept), "{record}");
    assert_eq!(record["faults"]["division by zero"], 1);
}

#[test]
fn a_run_is_kept_and_compared_with_one_before_it() {
    if !bpf() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for count in [23, 29] {
        let program = "syscall::write:return /pid == $target/ { @ = count(); }";
        let writes = format!("dd if=/dev/zero of=/dev/null bs=8k count={count} status=none");
        let mut command = iotomy(&["d", "-q", "-n", program, "-c", &writes, "--save=writes"]);
        let run = command.env("XDG_DATA_HOME", folder.path()).output().unwrap();
        assert!(run.status.success(), "{run:?}");
    }
    let mut command = iotomy(&["history", "diff", "1", "2"]);
    let compared = command.env("XDG_DATA_HOME", folder.path()).output().unwrap();
    let text = stdout(&compared);
    assert!(text.contains("@ count") && text.contains("23") && text.contains("29"), "{compared:?}");
}
