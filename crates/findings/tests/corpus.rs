//! Findings of runs of foreign programs. Each firing in `corpus/index.json` was checked by hand when the run was
//! recorded (scripts/record-corpus), and the index says how; any other firing, or one that is missing, is a mistake.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use iotomy_findings::{FINDINGS, Judgement};
use iotomy_record::store::{Record, parse_limits, parse_record};
use iotomy_record::{Finding, Limits};

/// One entry of the index: what was run, and the findings that must be made, each with how it was checked.
pub(crate) struct Entry {
    pub(crate) name: String,
    findings: BTreeMap<String, String>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

pub(crate) fn unpacked(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let file = File::open(folder().join(format!("{name}.json.gz"))).unwrap();
    GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
    bytes
}

pub(crate) fn index() -> Vec<Entry> {
    let text = fs::read_to_string(folder().join("index.json")).unwrap();
    let index: serde_json::Value = serde_json::from_str(&text).unwrap();
    let entries = index.as_object().unwrap().iter();
    entries
        .map(|(name, entry)| {
            assert!(entry["run"].as_str().is_some_and(|run| !run.is_empty()), "{name}: no run");
            let findings = entry["findings"].as_object().unwrap().iter();
            let findings = findings.map(|(id, how)| (id.clone(), how.as_str().unwrap().to_owned()));
            Entry { name: name.clone(), findings: findings.collect() }
        })
        .collect()
}

pub(crate) fn judged(record: &Record, limits: &Limits) -> Judgement {
    match record {
        Record::Trace(record) => iotomy_findings::trace(record, Some(limits)),
        Record::Anatomy(record) => iotomy_findings::anatomy(record, Some(limits)),
        Record::Race(record) => iotomy_findings::race(record, Some(limits)),
        Record::Copy(record) => iotomy_findings::copy(record, Some(limits)),
        _ => panic!("a record of a kind that is not judged"),
    }
}

/// The id of a finding; of a command's, with its label in front.
pub(crate) fn key(finding: &Finding) -> String {
    match finding.evidence.get("contender").and_then(|label| label.as_str()) {
        Some(label) => format!("{label}: {}", finding.id),
        None => finding.id.clone(),
    }
}

#[test]
fn every_firing_is_one_that_was_checked_by_hand_and_none_is_missing() {
    let limits = parse_limits(&unpacked("limits")).unwrap();
    let mut mistakes = Vec::new();
    for entry in index() {
        let record = parse_record(&unpacked(&entry.name)).unwrap();
        let found = judged(&record, &limits);
        assert!(found.missing.is_empty(), "{}: {:?} was not measured", entry.name, found.missing);
        let keys: BTreeSet<String> = found.findings.iter().map(key).collect();
        for finding in &found.findings {
            if !entry.findings.contains_key(&key(finding)) {
                mistakes.push(format!("{}: {}: {}", entry.name, key(finding), finding.text));
            }
        }
        for missing in entry.findings.keys().filter(|key| !keys.contains(*key)) {
            mistakes.push(format!("{}: {missing} is missing", entry.name));
        }
    }
    assert!(mistakes.is_empty(), "\n{}", mistakes.join("\n"));
}

#[test]
fn every_finding_fires_in_the_corpus_and_each_firing_says_how_it_was_checked() {
    let index = index();
    let firings = index.iter().flat_map(|entry| &entry.findings);
    let seen: BTreeSet<&str> =
        firings.clone().map(|(key, _)| key.rsplit(": ").next().unwrap_or(key)).collect();
    let unseen: Vec<&str> =
        FINDINGS.iter().map(|declared| declared.id).filter(|id| !seen.contains(id)).collect();
    assert!(unseen.is_empty(), "fire in no record: {unseen:?}");
    for (key, how) in firings {
        assert!(how.split_whitespace().count() >= 4, "{key}: how was it checked? {how}");
    }
}

#[test]
fn the_corpus_has_every_record_in_its_index_and_enough_of_them() {
    let index = index();
    let named: BTreeSet<String> = index.into_iter().map(|entry| entry.name).collect();
    let files = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name());
    let files: BTreeSet<String> = files
        .filter_map(|name| name.to_str()?.strip_suffix(".json.gz").map(str::to_owned))
        .filter(|name| name != "limits")
        .collect();
    assert_eq!(named, files);
    let is_trace = |name: &&String| matches!(parse_record(&unpacked(name)), Ok(Record::Trace(_)));
    assert!(named.iter().filter(is_trace).count() >= 30);
}
