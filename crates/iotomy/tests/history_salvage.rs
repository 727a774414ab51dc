//! A damaged history: what is saved of it, what is told, and what a kill in the middle leaves.

#![expect(clippy::unwrap_used, reason = "a failed step of a test is a failed test")]

mod support;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use support::IOTOMY;
use support::histories::{History, PAGE, damaged, limits, names, noise};

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_newer_history_is_refused_and_a_damaged_one_salvaged() {
    let history = History::new();
    for day in 0..6 {
        history.keep(day, 80.0 + f64::from(day), Some("main"));
    }
    let whole = fs::read(history.file()).unwrap();
    // The version stands at byte 60 of the file.
    let mut newer = whole.clone();
    newer[63] = 2;
    fs::write(history.file(), &newer).unwrap();
    for words in [
        &["history", "list"][..],
        &["history", "rm", "1"],
        &["race", "--against", "main", "true"],
        &["history", "salvage"],
    ] {
        let refused = history.refuses(words);
        assert!(
            refused.contains("is of version 2, and this iotomy knows 1; use a newer"),
            "{words:?}: {refused}"
        );
    }
    let run = history.run(&["trace", "-q", "--save", "false"]);
    assert_eq!(run.status.code(), Some(1), "{run:?}");
    assert!(stderr(&run).contains("use a newer iotomy"), "{run:?}");
    assert_eq!(fs::read(history.file()).unwrap(), newer);
    assert_eq!(names(&history.path("data/iotomy")), ["history.db"]);
    // Its head is gone.
    fs::write(history.file(), damaged(&whole, 0)).unwrap();
    let refused = history.refuses(&["history", "list"]);
    assert!(refused.contains("is damaged: file is not a database; `iotomy history salvage`"));
    let output = history.run(&["history", "salvage"]);
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(text.starts_with("0 runs are saved; the damaged history is /"), "{output:?}");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(
        stderr(&output).contains("nothing could be saved: no run can be read in /"),
        "{output:?}"
    );
    assert_eq!(names(&history.path("data/iotomy")), ["history.db", "history.db.damaged-1"]);
}

#[test]
fn what_is_no_file_is_refused_and_stays_where_it_is() {
    let history = History::new();
    fs::create_dir_all(history.file()).unwrap();
    let refused = history.refuses(&["history", "salvage"]);
    assert!(refused.contains("cannot open the history /"), "{refused}");
    assert_eq!(names(&history.path("data/iotomy")), ["history.db"]);
}

#[test]
fn salvage_tells_what_became_of_every_run_whatever_page_is_damaged() {
    let history = History::new();
    for day in 0..8 {
        // Two of them fill a page.
        let json = limits(day, 80.0, "6.1").replace("getppid", &noise(3_000));
        fs::write(history.path("record.json"), json).unwrap();
        history.says(&["history", "import", "record.json"]);
    }
    history.says(&["history", "rm", "3", "6"]);
    let records: Vec<String> = (1..=8)
        .map(|run: u32| {
            String::from_utf8(history.run(&["history", "export", &run.to_string()]).stdout).unwrap()
        })
        .collect();
    let whole = fs::read(history.file()).unwrap();
    let (mut all_saved, mut some_lost, mut none_saved) = (0, 0, 0);
    for page in 1..whole.len() / PAGE {
        fs::write(history.file(), damaged(&whole, page)).unwrap();
        let output = history.run(&["history", "salvage"]);
        let (text, said) = (String::from_utf8(output.stdout.clone()).unwrap(), stderr(&output));
        let saved: usize =
            text.split(' ').next().unwrap().parse().unwrap_or_else(|_| panic!("{page}: {text}"));
        let status = if saved == 0 { 2 } else { 0 };
        assert_eq!(output.status.code(), Some(status), "{page}: {output:?}");
        assert_eq!(said.contains("iotomy: nothing could be saved: "), saved == 0, "{page}: {said}");
        let told: Vec<usize> = said
            .lines()
            .filter_map(|line| line.split_once("run "))
            .flat_map(|(_, runs)| {
                runs.split(", ").filter_map(|run| run.parse().ok()).collect::<Vec<usize>>()
            })
            .collect();
        let lost = said.lines().find(|line| line.starts_with("iotomy: lost: ")).unwrap_or_default();
        assert!(!lost.split([' ', ',']).any(|run| run == "3" || run == "6"), "{page}: {said}");
        let listed = history.says(&["history", "list", "--last", "0"]);
        assert_eq!(
            listed.lines().count(),
            if saved == 0 { 1 } else { saved + 1 },
            "{page}: {listed}"
        );
        for (run, record) in (1..).zip(&records).filter(|(run, _)| ![3, 6].contains(run)) {
            let exported = history.run(&["history", "export", &run.to_string()]);
            match exported.status.success() {
                true => assert_eq!(exported.stdout, record.as_bytes(), "{page}: {run}"),
                false => {
                    assert!(told.contains(&run) || said.contains('…'), "{page}: {run}: {said}")
                }
            }
        }
        all_saved += u32::from(saved == 6);
        some_lost += u32::from((1..6).contains(&saved));
        none_saved += u32::from(saved == 0);
        fs::remove_file(history.file()).unwrap();
    }
    // A page of an index, one of the records, and the one that leads to them.
    assert!(
        all_saved > 0 && some_lost > 0 && none_saved > 0,
        "{all_saved} {some_lost} {none_saved}"
    );
}

/// Runs the command until it makes the call of this number among `calls`, on `path` if there is one, and
/// kills it there. Whether it came so far.
fn killed(history: &History, words: &[&str], calls: &str, on: Option<&str>, when: u32) -> bool {
    let mut command = Command::new("strace");
    command.args(["-f", "-qqq", "-o", "/dev/null", "-e", &format!("trace={calls}")]);
    command.args(["-e", &format!("inject={calls}:signal=KILL:when={when}")]);
    if let Some(path) = on {
        command.arg("-P").arg(history.path(path));
    }
    command.arg(IOTOMY).args(words).env_remove("LD_LIBRARY_PATH");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    history.surround(&mut command);
    command.status().unwrap().code().is_none()
}

/// A history one run of which is only in what was written ahead.
fn written_ahead(history: &History) -> [(PathBuf, Vec<u8>); 2] {
    let record = |day: u32| limits(day, 80.0, "6.1").replace("getppid", &noise(3_000));
    for day in 0..6 {
        fs::write(history.path("record.json"), record(day)).unwrap();
        history.says(&["history", "import", "record.json"]);
    }
    let file = "data/iotomy/history.db";
    assert!(killed(history, &["history", "import", "record.json"], "pwrite64", Some(file), 1));
    let ahead = history.path("data/iotomy/history.db-wal");
    let files = [history.file(), ahead].map(|file| (file.clone(), fs::read(file).unwrap()));
    assert!(!files[1].1.is_empty());
    files
}

#[test]
fn a_salvage_that_is_killed_leaves_the_old_history_or_the_new_one() {
    if !support::has("strace") {
        return;
    }
    let history = History::new();
    let mut files = written_ahead(&history);
    let folder = history.path("data/iotomy");
    let lay = |files: &[(PathBuf, Vec<u8>)]| {
        fs::remove_dir_all(&folder).unwrap();
        fs::create_dir(&folder).unwrap();
        files.iter().for_each(|(file, bytes)| fs::write(file, bytes).unwrap());
    };
    let kept = || -> Vec<Option<Vec<u8>>> {
        let run = |run: u32| history.run(&["history", "export", &run.to_string()]);
        (1..=7).map(run).map(|made| made.status.success().then_some(made.stdout)).collect()
    };
    // A page of records, which takes some of them away and not the one that was written ahead.
    let whole = files[0].1.clone();
    let wanted = (1..whole.len() / PAGE).find_map(|page| {
        files[0].1 = damaged(&whole, page);
        lay(&files);
        let saved = history.run(&["history", "salvage"]).status.success().then(&kept)?;
        (saved[6].is_some() && saved.iter().any(Option::is_none)).then_some(saved)
    });
    let wanted = wanted.unwrap();
    let calls = "/^(link|linkat|unlink|unlinkat|rename|renameat|renameat2)$";
    let mut kills = 0;
    loop {
        lay(&files);
        if !killed(&history, &["history", "salvage"], calls, None, kills + 1) {
            break;
        }
        kills += 1;
        assert!(history.file().exists(), "kill {kills}");
        let list = history.run(&["history", "list"]);
        assert!(!String::from_utf8_lossy(&list.stdout).contains("nothing is kept"), "kill {kills}");
        // As the list may have changed it.
        lay(&files);
        assert!(killed(&history, &["history", "salvage"], calls, None, kills));
        let again = history.run(&["history", "salvage"]);
        assert!(again.status.success(), "kill {kills}: {again:?}");
        assert!(kept() == wanted, "kill {kills}: {again:?}");
        let left = ["history.db", "history.db.damaged-1", "history.db.damaged-1-wal"];
        assert_eq!(names(&folder), left, "kill {kills}: {again:?}");
        for (name, (_, bytes)) in left[1..].iter().zip(&files) {
            assert!(fs::read(folder.join(name)).unwrap() == *bytes, "kill {kills}: {name}");
        }
    }
    // The names of the old one, its two files and the new one.
    assert!(kills >= 4, "{kills}");
}

#[test]
fn a_history_that_is_missing_beside_a_damaged_one_is_told_and_made_of_it() {
    let history = History::new();
    for day in 0..3 {
        history.keep(day, 80.0, Some("main"));
    }
    let (folder, record) = (history.path("data/iotomy"), history.says(&["history", "export", "2"]));
    let aside = folder.join("history.db.damaged-1");
    fs::rename(history.file(), &aside).unwrap();
    for words in [&["history", "list"][..], &["history", "show", "last"]] {
        let refused = history.refuses(words);
        assert!(refused.contains("but a damaged one that was set aside, /"), "{refused}");
    }
    let salvaged = history.run(&["history", "salvage"]);
    assert!(
        salvaged.status.success() && salvaged.stdout.starts_with(b"3 runs are saved"),
        "{salvaged:?}"
    );
    assert!(
        stderr(&salvaged).contains("the damaged history had been set aside before"),
        "{salvaged:?}"
    );
    assert_eq!(history.says(&["history", "export", "2"]), record);
    // Whoever wants none of it is not kept from a new one.
    fs::remove_file(history.file()).unwrap();
    history.limits("limits.json", 1, 80.0);
    let begun = history.run(&["history", "import", "limits.json"]);
    assert!(begun.status.success(), "{begun:?}");
    assert!(
        stderr(&begun).starts_with("iotomy: a new history is begun: there is no history /"),
        "{begun:?}"
    );
}
