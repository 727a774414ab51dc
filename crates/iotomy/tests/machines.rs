//! Records of many machines: in one page of `iotomy report`, and in one history.

use crate::support;
use crate::support::histories::History;
use crate::support::pages::Page;
use crate::support::traced;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use support::iotomy;

/// A record as one of another machine, with its wall time so many times as long.
fn moved(record: &Path, to: &Path, name: &str, times: f64) -> PathBuf {
    let mut json: Value = serde_json::from_slice(&fs::read(record).unwrap()).unwrap();
    json["machine"]["name"] = name.into();
    let wall = json["wall_ns"].as_u64().unwrap() as f64;
    json["wall_ns"] = ((wall * times) as u64).into();
    let path = to.join(format!("{name}.json"));
    fs::write(&path, serde_json::to_vec(&json).unwrap()).unwrap();
    path
}

/// Traces of one command on six machines, of which the fourth takes ten times as long.
fn six(folder: &Path) -> Vec<PathBuf> {
    let traced =
        traced("auto", &["-q"], &["sh", "-c", "head -c 100000 /dev/zero | cat > /dev/null"]);
    let machine = |at: u32| {
        let times = if at == 4 { 10.0 } else { 1.0 + 0.001 * f64::from(at) };
        moved(&traced.json(), folder, &format!("node{at}"), times)
    };
    (1..=6).map(machine).collect()
}

fn report(records: &[PathBuf], words: &[&str]) -> String {
    let output = iotomy(&[&["report"], words].concat()).args(records).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_page_of_six_machines_has_them_in_one_picture_with_the_outlier_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let records = six(folder.path());
    let page = report(&records, &["-o", "-"]);
    assert!(page.contains("<p class=\"kind\">machines</p>") && page.contains("6 machines: sh -c"));
    assert!(page.contains("node4 is an outlier"));
    assert_eq!(page.matches(" is an outlier").count(), 1);
    assert_eq!(page.matches(" (outlier)</figcaption>").count(), 1);
    let table = report(&records, &["--csv"]);
    let head = table.lines().next().unwrap();
    assert!(head.starts_with("machine,outlier,kernel,processor,wall_ns,"), "{head}");
    let machines: Vec<&str> = table.lines().filter_map(|line| line.split(',').next()).collect();
    assert_eq!(machines, ["machine", "node1", "node2", "node3", "node4", "node5", "node6"]);
    let outliers: Vec<&str> =
        table.lines().skip(1).filter_map(|line| line.split(',').nth(1)).collect();
    assert_eq!(outliers, ["", "", "", "wall", "", ""]);
    let text = report(&records, &["--markdown"]);
    assert!(
        text.starts_with("# machines · 6 machines: sh -c") && text.contains("| node4 | wall | ")
    );
    let list = report(&records, &["--list"]);
    assert!(list.lines().next().unwrap().starts_with("machines/machines "), "{list}");
    assert!(list.contains("machines/machine-6 ") && list.contains("\n6/calls "), "{list}");
    assert!(report(&records, &["--svg"]).contains("wall of each machine"));
    // The same machine twice is one, and one machine alone has no such picture.
    let twice = [records[0].clone(), records[0].clone()];
    assert!(!report(&twice, &["-o", "-"]).contains("<p class=\"kind\">machines</p>"));
}

#[test]
fn a_page_of_machines_fits_its_windows_and_its_pictures_have_a_mark_a_figure() {
    let folder = tempfile::tempdir().unwrap();
    let records = six(folder.path());
    let records: Vec<&Path> = records.iter().map(PathBuf::as_path).collect();
    let Some(mut page) = Page::from_records(&records) else { return };
    assert_eq!(page.points("machines-overview"), 6);
    let marks = page.points("machines-machine-1");
    assert!(marks > 0 && marks == page.points("machines-machine-4"));
    assert_eq!(
        page.browser.count("return document.querySelectorAll('.few figure').length >= 6 ? 1 : 0"),
        1
    );
    page.has_no_text_over_text();
    page.keeps_pictures("machines");
    page.fits_its_windows();
    page.prints("machines");
}

#[test]
fn imports_from_many_machines_are_kept_apart_and_a_record_only_once() {
    let history = History::new();
    let mut files = Vec::new();
    for (name, level) in [("node1", 80.0), ("node2", 160.0)] {
        for day in 1..=4 {
            let file = format!("{name}-{day}.json");
            let mut json: Value = serde_json::from_str(&support::histories::limits(
                day,
                level + f64::from(day) * 0.01,
                "6.1",
            ))
            .unwrap();
            json["machine"]["name"] = name.into();
            fs::write(history.path(&file), serde_json::to_vec(&json).unwrap()).unwrap();
            files.push(file);
        }
    }
    let words: Vec<&str> = ["history", "import", "--name", "main"]
        .into_iter()
        .chain(files.iter().map(String::as_str))
        .collect();
    assert_eq!(history.says(&words).lines().last(), Some("node2-4.json: run 8"));
    let again = history.says(&["history", "import", "node1-2.json"]);
    assert_eq!(again, "node1-2.json: run 2, kept before\n");
    let list = history.says(&["history", "list"]);
    assert!(
        list.lines().count() == 9 && list.lines().next().unwrap().contains("machine"),
        "{list}"
    );
    let one = history.says(&["history", "list", "--machine", "node2"]);
    assert!(one.lines().count() == 5 && !one.contains("node1"), "{one}");
    let trend = history.says(&["history", "trend", "limits"]);
    assert!(trend.starts_with("limits · syscall · 8 runs on 2 machines (limits)\n"), "{trend}");
    assert!(
        trend.contains("\nnode1 · 4 runs\n") && trend.contains("\nnode2 · 4 runs\n"),
        "{trend}"
    );
    assert!(
        !trend.contains("step change: "),
        "the machines differ, and no machine has changed: {trend}"
    );
    let one = history.says(&["history", "trend", "limits", "--machine", "node1"]);
    assert!(one.starts_with("limits · syscall · 4 runs (limits)\n"), "{one}");
    // A slow day of node1 is judged by node1, although node2 was always slower.
    let mut json: Value =
        serde_json::from_str(&support::histories::limits(9, 120.0, "6.1")).unwrap();
    json["machine"]["name"] = "node1".into();
    fs::write(history.path("slow.json"), serde_json::to_vec(&json).unwrap()).unwrap();
    history.says(&["history", "import", "slow.json"]);
    json["machine"]["name"] = "node2".into();
    json["limits"][0]["value"] = 160.02.into();
    fs::write(history.path("same.json"), serde_json::to_vec(&json).unwrap()).unwrap();
    history.says(&["history", "import", "same.json"]);
    let compare = ["history", "compare", "--baseline", "main", "--check"];
    let newest = history.run(&compare);
    assert!(newest.status.success(), "node2 is as ever: {newest:?}");
    let slower = history.run(&[&compare[..], &["--machine", "node1"]].concat());
    assert_eq!(slower.status.code(), Some(1), "{slower:?}");
    let unknown = history.refuses(&["history", "trend", "limits", "--machine", "rack7"]);
    assert!(
        unknown.contains("no run of the machine \"rack7\" is kept; known: \"node1\", \"node2\""),
        "{unknown}"
    );
    let both = history.refuses(&["history", "list", "--machine", "node"]);
    assert!(both.contains("several machines are called \"node\""), "{both}");
}

#[test]
fn a_record_names_its_machine_as_the_variable_says() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.json");
    let named = |name: &str| {
        let mut command = iotomy(&["trace", "-q", "--json"]);
        command.arg(&file).args(["--", "true"]).env("IOTOMY_MACHINE", name);
        assert!(command.status().unwrap().success());
        let json: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        json["machine"]["name"].as_str().map(str::to_owned)
    };
    assert_eq!(named("rack7").as_deref(), Some("rack7"));
    // An empty one is none: the host's, if it says anything.
    assert_ne!(named("").as_deref(), Some(""));
}
