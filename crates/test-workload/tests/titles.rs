//! Truth of titles that processes set over their arguments: what they are called, in conditions and in groups.

use crate::harness;

use std::collections::BTreeMap;

use harness::{Watched, command, each_observer, subject, truth, watch};
use iotomy_observe::{Filter, Request};
use iotomy_record::Key;

const TITLES: [&str; 3] =
    ["subject: worker 7 on 10.0.0.1(5432)", "subject: worker 8 on 10.0.0.2(5433)", "idle"];

fn titled(way: &str) -> Vec<&str> {
    [&[way, "23"][..], &TITLES].concat()
}

fn watched_by(filter: &dyn Fn() -> Filter, arguments: &[&str], check: impl Fn(&Watched)) {
    each_observer(|observer| {
        let request = Request { filter: filter(), ..command(subject(), arguments) };
        check(&watch(observer, &request));
    });
}

#[test]
fn a_process_is_called_by_its_last_title() {
    truth(&titled("titles"), |watched| {
        assert_eq!(watched.calls("getppid"), 4 * 23);
        let process = &watched.processes[0];
        assert_eq!((&*process.title, process.name()), ("idle", "idle"));
        assert_eq!(process.program(), "iotomy-workload");
    });
    truth(&titled("titled-children"), |watched| {
        let titles: Vec<&str> = watched.processes.iter().map(|one| &*one.title).collect();
        assert_eq!(titles, [&[""][..], &TITLES].concat());
    });
}

#[test]
fn a_process_that_sets_no_title_has_none() {
    for arguments in [&["getppid", "23"][..], &["forks", "3"], &["execs", "3"]] {
        truth(arguments, |watched| {
            assert!(watched.processes.iter().all(|one| one.title.is_empty()), "{watched:#?}");
        });
    }
}

#[test]
fn a_condition_asks_for_the_title_at_the_moment_of_the_call() {
    for (condition, calls) in [
        ("title == \"idle\"", 1),
        ("title == \"subject: worker *\"", 2),
        ("title == \"subject: worker 8 on 10.0.0.2(5433)\"", 1),
        ("title == \"\"", 1),
        ("title != \"\" && title != \"idle\"", 2),
        ("title == \"iotomy-test-workload\"", 0),
    ] {
        let filter = || Filter::new(&format!("call == \"getppid\" && {condition}")).unwrap();
        watched_by(&filter, &titled("titles"), |watched| {
            assert_eq!(watched.calls("getppid"), calls * 23, "{condition}");
        });
    }
}

#[test]
fn a_title_ends_a_watch() {
    let filter = || {
        let counted = Filter::new("call == \"getppid\"").unwrap();
        counted.until("title == \"*worker 8*\"").unwrap()
    };
    watched_by(&filter, &titled("titles"), |watched| {
        assert_eq!(watched.calls("getppid"), 2 * 23 + 1);
        assert!(watched.ended_by.is_some());
    });
}

#[test]
fn calls_are_grouped_by_titles_without_their_numbers() {
    for way in ["titles", "titled-children"] {
        let filter =
            || Filter::new("call == \"getppid\"").unwrap().grouped(&["title".to_owned()]).unwrap();
        watched_by(&filter, &titled(way), |watched| {
            let rows = watched.by.iter().flat_map(|by| &by.rows);
            let groups: BTreeMap<&Key, u64> = rows.map(|row| (&row.key[0], row.calls)).collect();
            let text = |text: &str| Key::Text(text.to_owned());
            let (none, worker, idle) = (text(""), text("subject: worker * on *(*)"), text("idle"));
            let mut expected = BTreeMap::from([(&worker, 2 * 23), (&idle, 23)]);
            if way == "titles" {
                expected.insert(&none, 23);
            }
            assert_eq!(groups, expected, "{way}");
        });
    }
}

#[test]
fn a_title_that_is_no_utf8_is_kept_and_found() {
    use std::os::unix::ffi::OsStringExt;
    each_observer(|observer| {
        let mut request = command(subject(), &["titles", "23"]);
        let iotomy_observe::Target::Command(command) = &mut request.target else { unreachable!() };
        command.argv.push(std::ffi::OsString::from_vec(b"a\xff".to_vec()));
        let filter = Filter::new("call == \"getppid\" && title == \"a\\xff\"").unwrap();
        let watched = watch(observer, &Request { filter, ..request });
        assert_eq!(watched.calls("getppid"), 23);
        assert_eq!(watched.processes[0].title, r"a\xff");
    });
}
