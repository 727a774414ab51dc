//! What outlives the command of `iotomy trace`.

use crate::support;

use iotomy_record::Exit;
use nix::sys::signal::Signal;
use support::{Tracing, Watching, count_of, each_observer, has, send, state, status, until};

/// Leaves a child behind that, upon a line, makes 23 calls.
const DAEMON: &str = r#"
    $| = 1;
    if (fork) { exit 4 }
    setpgrp; print "$$\n"; open STDOUT, ">/dev/null"; open STDERR, ">/dev/null";
    <STDIN>; getppid for 1..23; sleep 1000 while $ARGV[0];
"#;

#[test]
fn what_outlives_the_command_is_named_and_left_alone() {
    if !has("perl") {
        return;
    }
    each_observer(|observer| {
        let words = ["perl", "-e", DAEMON, "for ever"];
        let mut watching = Tracing::new(observer, &[], &words).start();
        let daemon: u32 = watching.line().parse().unwrap();
        let traced = watching.end();
        assert_eq!(traced.code(), 4, "{observer}");
        let record = traced.record();
        assert_eq!(record.exit, Some(Exit::Code(4)));
        assert_eq!(record.still_running.len(), 1, "{observer}: {:?}", record.still_running);
        assert_eq!(record.still_running[0].pid, daemon);
        assert_eq!(record.still_running[0].exec, "perl");
        let said = format!("still running: perl ({daemon})");
        assert!(traced.stderr().contains(&said), "{}", traced.stderr());
        until("it is free and asleep", || {
            (status(daemon, "TracerPid")? == "0" && state(daemon)? == 'S').then_some(())
        });
        send(daemon, Signal::SIGKILL);
    });
}

#[test]
fn a_command_that_outlives_its_watch_is_said_to_have_ended_since() {
    each_observer(|observer| {
        let traced = support::traced(observer, &["-d", "0.1"], &["sleep", "1"]);
        let (record, said) = (traced.record(), traced.stderr());
        assert_eq!(record.exit, Some(Exit::Code(0)), "{observer}");
        assert!(!said.contains("--wait"), "{observer}: {said}");
        // On a busy machine the command may end first.
        let outlived = !record.still_running.is_empty();
        assert_eq!(said.contains("the watch ended before sleep"), outlived, "{observer}: {said}");
    });
}

#[test]
fn with_wait_all_that_the_command_left_is_watched_to_its_end() {
    if !has("perl") {
        return;
    }
    each_observer(|observer| {
        let mut watching = Tracing::new(observer, &["--wait"], &["perl", "-e", DAEMON]).start();
        let daemon: u32 = watching.line().parse().unwrap();
        until("its parent is gone", || {
            (status(daemon, "PPid")? != parent_of(&watching)).then_some(())
        });
        watching.say("\n");
        let traced = watching.end();
        assert_eq!(traced.code(), 4, "{observer}");
        let record = traced.whole_record();
        assert_eq!(count_of(&record, daemon, "getppid"), 23, "{observer}");
        assert!(state(daemon).is_none_or(|state| state == 'Z'));
    });
}

/// The command's process id, as long as there is one.
fn parent_of(watching: &Watching) -> String {
    support::children(watching.pid()).first().map(u32::to_string).unwrap_or_default()
}

#[test]
fn an_interrupt_ends_the_wait_for_what_the_command_left() {
    if !has("perl") {
        return;
    }
    each_observer(|observer| {
        let words = ["perl", "-e", DAEMON, "for ever"];
        let mut watching = Tracing::new(observer, &["--wait"], &words).start();
        let daemon: u32 = watching.line().parse().unwrap();
        until("the command is gone", || support::children(watching.pid()).is_empty().then_some(()));
        watching.signal(Signal::SIGINT);
        let traced = watching.end();
        assert_eq!(traced.code(), 4, "{observer}: {}", traced.stderr());
        assert_eq!(traced.record().still_running[0].pid, daemon);
        assert!(!matches!(state(daemon), None | Some('Z' | 'X')));
        send(daemon, Signal::SIGKILL);
    });
}
