//! What is in the directory of a data set, also after an export that was cut short.

use std::fs;

use iotomy_export::{DataSet, ExportError, Exported, TABLES};
use iotomy_record::store::parse_record;

use crate::read_back::files;

/// A race with rows in most tables.
fn bytes() -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples");
    fs::read(format!("{folder}/dd-and-cat.json")).unwrap()
}

fn exported(bytes: &[u8], machine: &str) -> Exported {
    Exported::new(parse_record(bytes).unwrap(), bytes, Some(machine)).unwrap()
}

#[test]
fn a_second_export_changes_no_byte() {
    let folder = tempfile::tempdir().unwrap();
    let data_set = DataSet::new(folder.path());
    let bytes = bytes();
    let contents = || {
        let all = files(folder.path());
        assert!(all.iter().any(|file| file.starts_with("runs/date=2026-11-21/machine=a%2Fb")));
        let read = |file: &std::path::PathBuf| fs::read(folder.path().join(file)).unwrap();
        let contents: Vec<Vec<u8>> = all.iter().map(read).collect();
        (all, contents)
    };
    let count = data_set.add(&exported(&bytes, "a/b")).unwrap();
    let first = contents();
    assert_eq!(data_set.add(&exported(&bytes, "a/b")).unwrap(), count);
    assert!(first == contents());
    data_set.add(&exported(&bytes, "other")).unwrap();
    assert_eq!(files(folder.path()).len(), 2 * first.0.len());
}

#[test]
fn a_record_that_is_not_whole_is_in_no_list_of_runs() {
    let bytes = bytes();
    let whole = tempfile::tempdir().unwrap();
    DataSet::new(whole.path()).add(&exported(&bytes, "m")).unwrap();
    let written = files(whole.path());
    assert!(written.len() > 2, "{written:?}");
    // A file stands where a table's directory would be: the export ends there.
    for table in TABLES.iter().map(|table| table.name) {
        if !written.iter().any(|file| file.starts_with(table)) {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(table), "").unwrap();
        let error = DataSet::new(folder.path()).add(&exported(&bytes, "m")).unwrap_err();
        assert!(matches!(error, ExportError::Folder(..)) && !error.is_of_record(), "{error}");
        assert!(error.to_string().contains(table), "{error}");
        let listed =
            files(folder.path()).into_iter().find(|file| file.starts_with("runs/date=2026-11-21"));
        assert_eq!(listed, None, "{table}");
    }
    assert_eq!(TABLES.last().unwrap().name, "runs");
}

#[test]
fn names_of_machines_that_no_directory_can_have_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let data_set = DataSet::new(folder.path());
    let bytes = bytes();
    for name in ["", &"x".repeat(248), &"/".repeat(83)] {
        let error = data_set.add(&exported(&bytes, name)).unwrap_err();
        assert!(error.is_of_record(), "{error}");
        assert!(error.to_string().contains("--machine"), "{error}");
    }
    assert_eq!(files(folder.path()), Vec::<std::path::PathBuf>::new());
    data_set.add(&exported(&bytes, &"x".repeat(247))).unwrap();
}
