//! `trace --live`: what `s` saves, and what Enter opens.

use crate::support;

use std::fs;
use std::path::PathBuf;

use iotomy_record::store::load_trace;
use support::sessions::{BUSY, LEFT, TerminalSession, tools};
use support::{BackgroundProcess, IOTOMY, bare, count, each_observer};

/// A process that makes calls without end.
fn busy() -> BackgroundProcess {
    BackgroundProcess::ready(&["perl", "-e", "$| = 1; print qq(on\n); getppid while 1"]).0
}

/// The records in the session's directory, by name.
fn saved(session: &TerminalSession) -> Vec<PathBuf> {
    let files = fs::read_dir(session.file(".")).unwrap().map(|entry| entry.unwrap().path());
    let is_record = |path: &PathBuf| path.extension().is_some_and(|end| end == "json");
    let mut found: Vec<_> = files.filter(is_record).collect();
    found.sort();
    found
}

#[test]
fn s_saves_a_record_that_the_other_verbs_read_and_a_second_one_beside_it() {
    if !tools() {
        return;
    }
    let subject = busy();
    each_observer(|observer| {
        for (columns, rows) in [(80, 24), (40, 10)] {
            let mut session = TerminalSession::start(&format!(
                "stty cols {columns} rows {rows}; {IOTOMY} trace --live --observer {observer} -p {}",
                subject.pid()
            ));
            session.until_shown("getppid");
            // Both in one second, or in two: each has a file of its own.
            session.press("ss\x0c");
            session.until_shown("saved iotomy-");
            session.until("there are two", || (saved(&session).len() == 2).then_some(()));
            let files = saved(&session);
            session.press("q");
            session.until("the view is left", || session.seen().contains(LEFT).then_some(()));
            let record = load_trace(&files[0]).unwrap();
            assert!(count(&record, "getppid") > 0, "{observer}: {record:?}");
            assert_eq!(record.observer.name, observer);
            assert!(record.processes.iter().any(|one| one.pid == subject.pid()));
            assert!(record.wall_ns > 0 && record.interval.is_none());
            let names: Vec<&str> = files.iter().map(|path| path.to_str().unwrap()).collect();
            let page = session.file("page.html");
            let page = page.to_str().unwrap();
            for words in [
                &["report", "-o", page, names[0]][..],
                &["diff", names[0], names[1]],
                &["show", names[0]],
            ] {
                let ran = bare(IOTOMY, words).output().unwrap();
                assert!(ran.status.success(), "{words:?}: {ran:?}");
            }
            session.end(0);
        }
    });
}

#[test]
fn s_replaces_no_file_and_follows_no_link() {
    if !tools() {
        return;
    }
    // Every name of the next minutes is taken by a link to a file that is not there.
    let links = r#"perl -MPOSIX -e 'for (0..300) { symlink("target", strftime("iotomy-%Y%m%d-%H%M%S.json", gmtime(time + $_))) }'"#;
    let mut session = TerminalSession::start(&format!("{links}; {IOTOMY} trace --live {BUSY}"));
    session.until_shown("getppid");
    session.press("s\x0c");
    session.until_shown("-2.json");
    assert!(!session.file("target").exists());
    let made: Vec<_> = saved(&session).into_iter().filter(|path| !path.is_symlink()).collect();
    assert_eq!(made.len(), 1, "{made:?}");
    assert!(count(&load_trace(&made[0]).unwrap(), "getppid") > 0);
    session.press("\x03");
    session.end(130);
}

#[test]
fn s_says_why_it_cannot_save_and_the_view_goes_on() {
    if !tools() {
        return;
    }
    // Nobody can make a file there, not even root.
    let mut session =
        TerminalSession::start(&format!("(cd /proc/self && exec {IOTOMY} trace --live {BUSY})"));
    session.until_shown("getppid");
    session.press("s\x0c");
    session.until_shown("cannot save in the current directory");
    session.press("3\x0c");
    session.until_shown("[processes]");
    session.press("\x03");
    session.end(130);
}

#[test]
fn enter_opens_a_process_and_escape_closes_it() {
    if !tools() {
        return;
    }
    let subject = busy();
    each_observer(|observer| {
        let mut session = TerminalSession::start(&format!(
            "{IOTOMY} trace --live --observer {observer} -p {}",
            subject.pid()
        ));
        session.until_shown("getppid");
        session.press("3\r\x0c");
        let name = format!("perl ({})", subject.pid());
        session.until("it is open", || {
            let seen = session.seen();
            let after = seen.split_once(&name)?.1;
            after.contains("[calls]").then_some(())
        });
        let before = session.seen().len();
        session.press("\x1b\x0c");
        session.until("it is closed", || {
            session.seen().get(before..).unwrap_or_default().contains("[processes]").then_some(())
        });
        session.press("q");
        session.end(0);
    });
}
