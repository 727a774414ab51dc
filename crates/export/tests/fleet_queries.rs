//! The queries of docs/export.md, by DuckDB, against the records.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use iotomy_export::{DataSet, Exported};
use iotomy_record::store::{Record, parse_record};
use iotomy_record::{Exchange, Role, Trace};
use iotomy_test_requirements::{Need, skip};
use serde_json::Value;

/// Prints the rows of each query, as JSON.
const ASK: &str = "
import duckdb, json, sys
print(json.dumps([duckdb.sql(query).fetchall() for query in sys.argv[1:]], default=str))
";

/// The Python that has DuckDB, as `scripts/setup fleet` makes it in the target directory.
fn python() -> Option<PathBuf> {
    let test = std::env::current_exe().unwrap();
    let python = test.ancestors().nth(3).unwrap().join("fleet/bin/python3");
    if !python.exists() {
        skip(Need::Programs, "no DuckDB: scripts/setup fleet");
        return None;
    }
    Some(python)
}

/// The blocks of SQL in the guide.
fn queries() -> Vec<String> {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/export.md");
    let text = fs::read_to_string(guide).unwrap();
    let blocks = text.split("```sql\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

fn ask(python: &Path, folder: &Path, queries: &[String]) -> Vec<Vec<Value>> {
    let mut command = Command::new(python);
    let output = command.args(["-c", ASK]).args(queries).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
#[ignore = "needs DuckDB: make test-fleet"]
fn duckdb_answers_the_queries_of_the_guide_as_the_records_do() {
    let Some(python) = python() else { return };
    let folder = tempfile::tempdir().unwrap();
    let data_set = DataSet::new(&folder.path().join("fleet"));
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut traces = Vec::new();
    for (example, machine) in [
        ("docs/examples/dd-and-cat.json", "a b/c"),
        ("docs/examples/fio-workers.json", "other"),
        ("crates/export/tests/records/redis.json", "other"),
        ("results/2026-11-22-epyc-2cpu-linux-6.18/lab/null-sink.json", "other"),
    ] {
        let bytes = fs::read(format!("{root}/{example}")).unwrap();
        let record = parse_record(&bytes).unwrap();
        match &record {
            Record::Anatomy(anatomy) => traces.push((machine, anatomy.trace.clone())),
            Record::Race(race) => {
                let of_race = race.commands.iter().filter_map(|one| one.trace.clone());
                traces.extend(of_race.map(|trace| (machine, trace)));
            }
            Record::Trace(trace) => traces.push((machine, (**trace).clone())),
            _ => {}
        }
        data_set.add(&Exported::new(record, &bytes, Some(machine)).unwrap()).unwrap();
    }
    let queries = queries();
    assert_eq!(queries.len(), 7);
    let answers = ask(&python, folder.path(), &queries);
    let [time, distribution, errors, requests, connections, claims, measures] = &answers[..] else {
        panic!()
    };

    let calls = || traces.iter().flat_map(|(at, one)| one.calls.iter().map(move |call| (at, call)));
    assert!(!time.is_empty());
    for row in time {
        let of = calls().filter(|(at, call)| row[0] == **at && row[1] == call.syscall.as_str());
        let of: Vec<_> = of.map(|(_, call)| call).collect();
        let count: u64 = of.iter().map(|call| call.calls).sum();
        let wall_ns: u64 = of.iter().map(|call| call.wall_ns).sum();
        assert!(!of.is_empty(), "{row}");
        assert_eq!(row[2], count, "{row}");
        assert!((row[3].as_f64().unwrap() - wall_ns as f64 / 1e9).abs() < 1e-6, "{row}");
    }
    assert!(!distribution.is_empty());
    for row in distribution {
        let bucket = usize::try_from(row[1].as_u64().unwrap()).unwrap();
        let of = calls().filter(|(_, call)| row[0] == call.syscall.as_str());
        let count: u64 = of.map(|(_, call)| call.wall_log2.buckets[bucket]).sum();
        assert!(row[2] == count && count > 0, "{row}: {count}");
    }
    assert!(!errors.is_empty());
    for row in errors {
        let name = row[3].as_str().unwrap();
        let of = calls().filter(|(at, call)| {
            row[0] == **at && row[1] == call.exec.as_str() && row[2] == call.syscall.as_str()
        });
        let count: u64 = of.filter_map(|(_, call)| call.error_kinds.get(name)).sum();
        assert!(row[4] == count && count > 0, "{row}: {count}");
    }
    check_requests(requests, &traces);
    check_connections(connections, &traces);
    assert!(!claims.is_empty() && claims.iter().all(|row| row[2] == 1), "{claims:?}");
    assert!(measures.iter().any(|row| row[1] == "a b/c" && row[5] == "ns"), "{measures:?}");
}

fn check_requests(rows: &[Value], traces: &[(&str, Trace)]) {
    assert!(!rows.is_empty());
    let all = || traces.iter().flat_map(|(at, one)| one.requests.iter().map(move |row| (at, row)));
    for row in rows {
        let of = all().filter(|(at, one)| {
            let is_served = one.ends.role == Some(Role::Accept);
            is_served
                && (row[0] == **at && row[1] == one.exec.as_str())
                && row[2].as_str() == one.ends.local.as_deref()
        });
        let of: Vec<_> = of.map(|(_, one)| one).collect();
        let count: u64 = of.iter().map(|one| one.requests).sum();
        assert!(row[3] == count && count > 0, "{row}: {count}");
        let parts: [fn(&Exchange) -> u64; 4] =
            [|one| one.wall_ns, |one| one.unread_ns, |one| one.on_cpu_ns, |one| one.peer_ns];
        for (part, cell) in parts.iter().zip(4..) {
            let ns: u64 = of.iter().map(|one| part(one)).sum();
            let mean_us = ns as f64 / count as f64 / 1e3;
            assert!((row[cell].as_f64().unwrap() - mean_us).abs() < 1e-6, "{row}: {mean_us}");
        }
        let worst = of.iter().map(|one| one.wall_times.quantile(0.99)).max().unwrap();
        assert!((row[8].as_f64().unwrap() - worst as f64 / 1e3).abs() < 1e-6, "{row}: {worst}");
    }
}

fn check_connections(rows: &[Value], traces: &[(&str, Trace)]) {
    let all =
        || traces.iter().flat_map(|(at, one)| one.connections.iter().map(move |row| (at, row)));
    let mut refused = 0;
    for row in rows {
        let of = all().filter(|(at, one)| {
            let is_made = one.ends.role == Some(Role::Connect);
            is_made
                && (row[0] == **at && row[1] == one.exec.as_str())
                && row[2].as_str() == one.ends.remote.as_deref()
        });
        let of: Vec<_> = of.map(|(_, one)| one).collect();
        assert_eq!(row[3], of.iter().map(|one| one.opened).sum::<u64>(), "{row}");
        let failed: u64 = of.iter().map(|one| one.failed()).sum();
        assert_eq!(row[4], failed, "{row}");
        refused += failed;
        let tcp: Vec<_> = of.iter().filter_map(|one| one.tcp.as_ref()).collect();
        let segments: u64 = tcp.iter().map(|one| one.segments).sum();
        let retransmits: u64 = tcp.iter().map(|one| one.retransmits).sum();
        let share = (segments > 0).then(|| retransmits as f64 / segments as f64);
        assert_eq!(row[5].as_f64(), share, "{row}");
    }
    assert!(refused > 0, "{rows:?}");
    assert!(rows.iter().any(|row| row[5].is_number()), "{rows:?}");
}
