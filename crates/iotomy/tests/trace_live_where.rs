//! `trace --live` with `--where` and `--by`: the view and what it saves have only the calls that count.

use crate::support;

use std::collections::BTreeSet;
use std::fs;

use iotomy_record::store::load_trace;
use support::sessions::{LEFT, TerminalSession, tools};
use support::{BackgroundProcess, IOTOMY, each_observer};

/// Makes short and long writes without end.
const WRITES: &str = r#"
    $| = 1; print qq(on\n); open my $null, ">", "/dev/null" or die;
    while (1) { syswrite $null, "x" x 10; syswrite $null, "x" x 1000; getppid }
"#;

#[test]
fn only_the_calls_for_which_the_condition_holds_are_shown_and_saved() {
    if !tools() {
        return;
    }
    let (subject, _) = BackgroundProcess::ready(&["perl", "-e", WRITES]);
    each_observer(|observer| {
        let mut session = TerminalSession::start(&format!(
            "{IOTOMY} trace --live --where 'bytes > 500' --by call,bytes --json whole \
             --observer {observer} -p {}",
            subject.pid()
        ));
        session.until_shown("write");
        session.press("s");
        let saved = session.until("a record is there", || {
            let entries = fs::read_dir(session.file(".")).unwrap().map(|entry| entry.unwrap());
            let mut paths = entries.map(|entry| entry.path());
            paths.find(|path| {
                path.extension().is_some_and(|end| end == "json") && load_trace(path).is_ok()
            })
        });
        session.press("q");
        session.until("the view is left", || session.seen().contains(LEFT).then_some(()));
        let whole = session.file("whole");
        session.until("the record is written", || load_trace(&whole).ok().map(drop));
        let records = [load_trace(&saved).unwrap(), load_trace(&whole).unwrap()];
        let seen = session.end(0);
        for record in &records {
            assert_eq!(record.view.r#where, "bytes > 500");
            let names: BTreeSet<&str> = record.calls.iter().map(|row| &*row.syscall).collect();
            assert_eq!(names, BTreeSet::from(["write"]), "{observer}");
            for row in &record.calls {
                // One that is saved is of a moment: a call may have been counted half.
                let off = row.bytes.abs_diff(row.calls * 1000);
                assert!(off <= 1000 && (off == 0 || record == &records[0]), "{observer}: {row:?}");
            }
        }
        let groups = records[1].by.as_ref().unwrap();
        assert_eq!(groups.rows.len(), 1, "{groups:?}");
        let after = seen.rsplit_once(LEFT).unwrap().1;
        assert!(after.contains("512 … 1,023"), "{after}");
    });
}
