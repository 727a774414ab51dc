//! A damaged history: it is set aside as it is, what was to be kept is kept, and the user is told.

use crate::support;

use std::fs;
use std::process::Output;

use support::histories::{History, PAGE, damaged, limits, names, noise};

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_newer_history_is_refused_and_left_as_it_is() {
    let history = History::new();
    for day in 0..6 {
        history.keep(day, 80.0 + f64::from(day), Some("main"));
    }
    let whole = fs::read(history.file()).unwrap();
    // The version stands at byte 60 of the file.
    let mut newer = whole.clone();
    newer[63] = 4;
    fs::write(history.file(), &newer).unwrap();
    for words in
        [&["history", "list"][..], &["history", "rm", "1"], &["race", "--against", "main", "true"]]
    {
        let refused = history.refuses(words);
        assert!(
            refused.contains("has version 4, and this iotomy supports 3; use a newer"),
            "{words:?}: {refused}"
        );
    }
    let run = history.run(&["trace", "-q", "--save", "false"]);
    assert_eq!(run.status.code(), Some(1), "{run:?}");
    assert!(stderr(&run).contains("use a newer iotomy"), "{run:?}");
    assert_eq!(fs::read(history.file()).unwrap(), newer);
    assert_eq!(names(&history.path("data/iotomy")), ["history.db"]);
}

#[test]
fn a_damaged_history_is_set_aside_for_the_run_that_is_kept_next() {
    let history = History::new();
    for day in 0..3 {
        history.keep(day, 80.0, Some("main"));
    }
    // Its head is gone.
    let head = damaged(&fs::read(history.file()).unwrap(), 0);
    fs::write(history.file(), &head).unwrap();
    for words in [&["history", "list"][..], &["history", "rm", "1"]] {
        let refused = history.refuses(words);
        assert!(refused.contains("is damaged: file is not a database; `sqlite3 /"), "{refused}");
        assert!(refused.contains("history.db .recover` prints what can be read"), "{refused}");
        assert_eq!(names(&history.path("data/iotomy")), ["history.db"]);
    }
    let run = history.run(&["trace", "-q", "--save", "false"]);
    assert_eq!(run.status.code(), Some(1), "{run:?}");
    let stderr = stderr(&run);
    assert!(
        stderr.starts_with("iotomy: the history was damaged (file is not a database) and is /")
    );
    assert!(
        stderr.contains("history.db.damaged-1 .recover` prints what can be read of it"),
        "{stderr}"
    );
    assert_eq!(names(&history.path("data/iotomy")), ["history.db", "history.db.damaged-1"]);
    assert!(fs::read(history.path("data/iotomy/history.db.damaged-1")).unwrap() == head);
    let listed = history.says(&["history", "list"]);
    assert!(listed.lines().count() == 2 && listed.contains("  1  false  trace  "), "{listed}");
}

#[test]
fn a_run_is_kept_whatever_page_is_damaged_and_what_is_set_aside_is_as_it_was() {
    let history = History::new();
    let record = |day| limits(day, 80.0, "6.1").replace("getppid", &noise(3_000));
    for day in 0..8 {
        fs::write(history.path("record.json"), record(day)).unwrap();
        history.says(&["history", "import", "--name", "main", "record.json"]);
    }
    let folder = history.path("data/iotomy");
    let whole = fs::read(history.file()).unwrap();
    fs::write(history.path("record.json"), record(9)).unwrap();
    let mut set_aside = 0;
    for page in 0..whole.len() / PAGE {
        let bytes = damaged(&whole, page);
        fs::remove_dir_all(&folder).unwrap();
        fs::create_dir(&folder).unwrap();
        fs::write(history.file(), &bytes).unwrap();
        let run = history.run(&["history", "import", "--name", "main", "record.json"]);
        assert!(run.status.success(), "{page}: {run:?}");
        let kept = history.says(&["history", "export", "last"]);
        assert_eq!(kept, fs::read_to_string(history.path("record.json")).unwrap(), "{page}");
        let aside = folder.join("history.db.damaged-1");
        assert_eq!(stderr(&run).contains("damaged-1 .recover`"), aside.exists(), "{page}: {run:?}");
        if aside.exists() {
            assert!(fs::read(aside).unwrap() == bytes, "{page}");
            set_aside += 1;
        }
    }
    // The head, and pages that lead to the others; a page of one record is in nobody's way.
    assert!((2..whole.len() / PAGE).contains(&set_aside), "{set_aside}");
}

#[test]
fn what_is_no_file_is_refused_and_stays_where_it_is() {
    let history = History::new();
    fs::create_dir_all(history.file()).unwrap();
    history.limits("limits.json", 1, 80.0);
    let refused = history.refuses(&["history", "import", "limits.json"]);
    assert!(refused.contains("cannot open the history /"), "{refused}");
    assert_eq!(names(&history.path("data/iotomy")), ["history.db"]);
}
