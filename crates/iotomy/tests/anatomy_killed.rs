//! What is left of an anatomy that is killed: nothing in the kernel, and the command as it was.

use crate::support;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Stdio};

use nix::sys::signal::Signal;
use support::attached::Attached;
use support::{anatomy, children, has, iotomy, send, state, status, until, until_ended};

/// Reads and writes a file, waits for a line, and says when it has gone on to its end.
const WORKS: &str = r#"
    $| = 1; open(F, "+>", "file"); print F "x" x 9999; print "$$\n";
    my $line = <STDIN>; seek(F, 0, 0); read(F, $line, 99); print "to the end\n"; exit 9;
"#;

/// An `iotomy anatomy` under way, ended with the test.
struct Watch {
    child: Child,
    output: BufReader<ChildStdout>,
    _folder: tempfile::TempDir,
}

impl Watch {
    fn start(options: &[&str], words: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = iotomy(&["anatomy", "-q", "--json", "record.json"]);
        command.args(options).args(words).current_dir(folder.path());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output, _folder: folder }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Kills iotomy, and waits until it and all it had in the kernel are gone.
    fn kill(&mut self) {
        let held = Attached::to(self.child.id());
        assert!(held.has("prog") && held.has("link") && held.has("map"), "{held:?}");
        assert!(held.perf_events > 0, "{held:?}");
        send(self.child.id(), Signal::SIGKILL);
        until_ended(self.child.id());
        held.until_gone();
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_command_goes_on_and_nothing_stays_attached_when_iotomy_is_killed() {
    if !anatomy() || !has("perl") {
        return;
    }
    for options in [&[][..], &["--timeline=2"], &["--user-stacks"]] {
        let mut watch = Watch::start(options, &["--", "perl", "-e", WORKS]);
        let pid: u32 = watch.line().parse().unwrap();
        // What iotomy holds is its own: the command was given none of it.
        assert_eq!(Attached::to(pid), Attached::default());
        watch.kill();
        until("it waits for input", || (state(pid) == Some('S')).then_some(()));
        watch.child.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        assert_eq!(watch.line(), "to the end", "{options:?}");
        until_ended(pid);
    }
}

#[test]
fn a_process_goes_on_and_nothing_stays_attached_when_iotomy_is_killed() {
    if !anatomy() || !has("perl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = format!("chdir '{}';{WORKS}", folder.path().display());
    let (mut subject, pid) = support::BackgroundProcess::ready(&["perl", "-e", &script]);
    let mut watch = Watch::start(&["--timeline"], &["-p", &pid]);
    support::until_polling(watch.child.id());
    watch.kill();
    assert_eq!(status(subject.pid(), "TracerPid").unwrap(), "0");
    subject.say("\n");
    assert_eq!(subject.line(), "to the end");
    assert_eq!(subject.end(), 9);
}

#[test]
fn an_anatomy_killed_at_any_moment_leaves_no_process_and_nothing_attached() {
    if !anatomy() {
        return;
    }
    let began = std::time::Instant::now();
    drop(Watch::start(&[], &["--", "true"]).child.wait());
    let whole = began.elapsed();
    for moment in 0..8u32 {
        let mut watch = Watch::start(&["--timeline=1"], &["--", "sh", "-c", "echo r; echo an"]);
        // No wait for anything: the moment to strike.
        std::thread::sleep(whole * moment / 6);
        let held = Attached::to(watch.child.id());
        let kin = children(watch.child.id());
        watch.child.kill().unwrap();
        watch.child.wait().unwrap();
        // Ends when the last holder of the pipe, a command held too, is gone.
        let said = support::text(&mut watch.output);
        assert!(["", "r\nan\n"].contains(&said.as_str()), "{moment}: {said:?}");
        kin.into_iter().for_each(until_ended);
        held.until_gone();
    }
}
