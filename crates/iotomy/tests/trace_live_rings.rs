//! `trace --live` of a program that uses io_uring: the table of ring operations, and that it is saved.

use crate::support;

use iotomy_record::store::load_trace;
use support::sessions::{LEFT, TerminalSession, tools};
use support::{BackgroundProcess, IOTOMY, Need, bare, bpf, has, rings, skip};

/// Upon a line, submits as many nops as it says.
const NOPS: &str = r"
ring = Ring()
print('ready', flush=True)
for line in sys.stdin:
    for n in range(int(line)): ring.nop()
    print('done', flush=True)
";

#[test]
fn ring_operations_are_shown_and_saved() {
    if !tools() || !bpf() || !has("python3") {
        return;
    }
    let script = [rings::PYTHON, NOPS].concat();
    let (mut subject, said) = BackgroundProcess::ready(&["python3", "-c", &script]);
    if said != "ready" {
        return skip(Need::IoUring, "no ring can be made");
    }
    let mut session = TerminalSession::start(&format!(
        "stty cols 200 rows 30; {IOTOMY} trace --live --json whole -p {}",
        subject.pid()
    ));
    session.until_shown("read");
    assert!(!session.seen().contains("rings"));
    subject.say("23\n");
    assert_eq!(subject.line(), "done");
    session.press("5\x0c");
    session.until_shown("[rings]");
    session.until_shown("ring operation");
    session.until_shown("  nop ");
    // The process has them, too.
    let before = session.seen().len();
    session.press("3\r\x0c");
    session.until("it is open", || {
        let seen = session.seen();
        let after = seen.get(before..)?;
        (after.contains("[calls]") && after.contains("rings")).then_some(())
    });
    session.press("s");
    let saved = session.until("a record is there", || {
        let files = std::fs::read_dir(session.file(".")).unwrap().map(|one| one.unwrap().path());
        let mut records = files.filter(|path| path.extension().is_some_and(|end| end == "json"));
        records.find(|path| load_trace(path).is_ok())
    });
    subject.say("19\n");
    assert_eq!(subject.line(), "done");
    session.press("q");
    session.until("the view is left", || session.seen().contains(LEFT).then_some(()));
    let whole = session.file("whole");
    session.until("the record is written", || load_trace(&whole).ok().map(drop));
    let shown = bare(IOTOMY, &["show", saved.to_str().unwrap()]).output().unwrap();
    let records = [(load_trace(&saved).unwrap(), 23), (load_trace(&whole).unwrap(), 42)];
    session.end(0);
    for (record, due) in records {
        assert_eq!(record.observer.sees_rings, Some(true));
        let [nop] = &record.ring_operations[..] else { panic!("{:#?}", record.ring_operations) };
        assert_eq!(
            (&*nop.op, nop.pid, nop.submitted, nop.completed),
            ("nop", subject.pid(), due, due)
        );
        assert_eq!((nop.inline, nop.wall_times.total(), nop.in_flight), (due, due, 0));
    }
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("ring operation ") && shown.contains("  nop "), "{shown}");
}

#[test]
fn a_view_that_does_not_watch_rings_says_so() {
    if !tools() || !bpf() {
        return;
    }
    let mut session = TerminalSession::start(&format!(
        "stty cols 100 rows 30; {IOTOMY} trace --live --call read -- sleep 1000"
    ));
    session.until_shown("[calls]");
    session.press("5\x0c");
    session.until_shown("ring operations are not watched");
    session.press("\x03");
    session.end(130);
}
