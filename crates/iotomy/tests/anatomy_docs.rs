//! The examples of docs/anatomy.md and docs/block-io.md: they are what iotomy prints of the records that
//! were kept.

use crate::support;

use std::path::PathBuf;

use support::iotomy;

const GUIDE: &str = include_str!("../../../docs/anatomy.md");

const BLOCK_IO: &str = include_str!("../../../docs/block-io.md");

fn example(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples").join(name)
}

fn kept() -> PathBuf {
    example("dd-to-disk.json")
}

#[test]
fn the_example_is_what_is_printed_of_the_record_that_was_kept() {
    let block = GUIDE.split("```").find(|block| block.contains("\n$ iotomy anatomy ")).unwrap();
    let (command, report) = block.trim_start().split_once('\n').unwrap();
    let shown = iotomy(&["show", kept().to_str().unwrap()]).output().unwrap();
    assert!(shown.status.success(), "{shown:?}");
    assert_eq!(report, String::from_utf8(shown.stdout).unwrap());
    let record = iotomy_record::store::load_anatomy(kept()).unwrap();
    assert!(command.ends_with(&record.trace.command.join(" ")), "{command}");
}

/// The parts of the guide to block I/O are parts of what is printed of two records.
#[test]
fn the_parts_of_the_guide_to_block_io_are_printed_of_the_records_that_were_kept() {
    let blocks: Vec<&str> = BLOCK_IO.split("```").skip(1).step_by(2).collect();
    assert_eq!(blocks.len(), 3, "one of requests, one of a call's timeline, one of a request's");
    for (name, blocks) in [("dd-and-sync.json", &blocks[..2]), ("fio-timeline.json", &blocks[2..])]
    {
        let kept = example(name);
        let shown = iotomy(&["show", kept.to_str().unwrap()]).output().unwrap();
        assert!(shown.status.success(), "{shown:?}");
        let shown = String::from_utf8(shown.stdout).unwrap();
        for block in blocks {
            assert!(shown.contains(block.trim_start_matches('\n')), "{block}\n{shown}");
        }
        let record = iotomy_record::store::load_anatomy(kept).unwrap();
        let command =
            format!("`iotomy anatomy --timeline=1 -- {}`", record.trace.command.join(" "));
        assert!(BLOCK_IO.contains(&command), "{command}");
    }
}

#[test]
fn the_parts_of_the_example_of_ring_operations_are_printed_of_the_record_that_was_kept() {
    let kept = example("fio-workers.json");
    let shown = iotomy(&["show", kept.to_str().unwrap()]).output().unwrap();
    assert!(shown.status.success(), "{shown:?}");
    let shown = String::from_utf8(shown.stdout).unwrap();
    let section = GUIDE.split("\n## Ring operations\n").nth(1).unwrap();
    let (command, parts) = section.split("```\n").nth(1).unwrap().split_once("\n…\n").unwrap();
    for part in parts.split("…\n") {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    let record = iotomy_record::store::load_anatomy(kept).unwrap();
    assert_eq!(command, format!("$ iotomy anatomy -- {}", record.trace.command.join(" ")));
}

#[test]
fn every_layer_of_the_table_of_rules_is_in_the_guide() {
    let rules = include_str!("../../observe/src/anatomy/layers.txt");
    let layers = rules.split("\n[layers]\n").nth(1).unwrap().split("[waits]").next().unwrap();
    for line in layers.lines().filter(|line| !line.is_empty()) {
        let layer = line.split(": ").next().unwrap();
        let shown =
            if layer.starts_with("file system") { "`file system (ext4)`…" } else { layer };
        assert!(GUIDE.contains(shown), "{layer}");
    }
    for line in rules.split("\n[waits]\n").nth(1).unwrap().lines().filter(|line| !line.is_empty()) {
        let reason = line.split(": ").next().unwrap();
        assert!(GUIDE.contains(&format!("`{reason}`")), "{reason}");
    }
}
