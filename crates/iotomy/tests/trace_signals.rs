//! Signals and stops: who gets them, and what is left when iotomy is killed.

use crate::support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{ChildStdin, Stdio};
use std::time::{Duration, Instant};

use iotomy_record::Exit;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use support::attached::Attached;
use support::{
    IOTOMY, Tracing, Watching, bare, children, each_observer, has, state, status, until,
};

/// Says every SIGINT it gets, and upon SIGQUIT how many there were.
const COUNTS_INTERRUPTS: &str = r#"
    use POSIX; $| = 1; my ($n, $end) = (0, 0);
    $SIG{INT} = sub { $n++; print "got $n\n" };
    $SIG{QUIT} = sub { $end = 1 };
    $SIG{CONT} = sub { print "goes on\n" };
    # Blocked but where it waits, so that none comes just before the wait.
    sigprocmask(SIG_BLOCK, POSIX::SigSet->new(SIGINT, SIGQUIT, SIGCONT)) or die;
    print "ready\n";
    sigsuspend(POSIX::SigSet->new) while !$end;
    print "total $n\n"; exit 7;
"#;

/// Sleeps for ever and handles no signal; a shell handles some, even where it seems not to.
const SLEEPS: &str = r#"$| = 1; print "$$\n"; sleep 1000 while 1"#;

#[test]
fn signals_to_iotomy_reach_the_command_and_the_report_is_printed() {
    if !has("perl") {
        return;
    }
    each_observer(|observer| {
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGUSR1] {
            let mut watching = Tracing::new(observer, &[], &["perl", "-e", SLEEPS]).start();
            watching.line();
            watching.signal(signal);
            let traced = watching.end();
            let stderr = traced.stderr();
            assert_eq!(traced.code(), 128 + signal as i32, "{observer} {signal}: {stderr}");
            assert_eq!(traced.record().exit, Some(Exit::Signal(signal as i32)));
            assert!(stderr.starts_with("perl ("), "{stderr}");
        }
    });
}

#[test]
fn a_command_that_handles_an_interrupt_goes_on_and_gets_every_one_once() {
    if !has("perl") {
        return;
    }
    each_observer(|observer| {
        let mut watching = Tracing::new(observer, &[], &["perl", "-e", COUNTS_INTERRUPTS]).start();
        assert_eq!(watching.line(), "ready");
        for n in 1..=5 {
            watching.signal(Signal::SIGINT);
            assert_eq!(watching.line(), format!("got {n}"));
        }
        watching.signal(Signal::SIGQUIT);
        assert_eq!(watching.line(), "total 5");
        assert_eq!(watching.end().code(), 7);
    });
}

/// A program on a terminal of its own, by script(1).
struct Terminal {
    child: std::process::Child,
    keys: ChildStdin,
    screen: BufReader<std::process::ChildStdout>,
}

impl Terminal {
    fn start(command: &str) -> Self {
        // A shell that stays between would get the keys' signals too, and end of a SIGQUIT.
        let command = format!("exec {command}");
        let mut script = bare("script", &["-qec", &command, "/dev/null"]);
        script.env("TERM", "dumb").env("PS1", "$ ").stderr(Stdio::piped());
        let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let keys = child.stdin.take().unwrap();
        let screen = BufReader::new(child.stdout.take().unwrap());
        Self { child, keys, screen }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Reads on to the first line that has `wanted`.
    fn until_line(&mut self, wanted: &str) -> String {
        let mut seen = Vec::new();
        loop {
            let mut line = Vec::new();
            assert_ne!(self.screen.read_until(b'\n', &mut line).unwrap(), 0, "{seen:?}");
            let line = String::from_utf8_lossy(&line).into_owned();
            if line.contains(wanted) {
                return line;
            }
            seen.push(line);
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn an_interrupt_from_the_terminal_reaches_the_command_once() {
    if !has("script") || !has("perl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("counts.pl");
    fs::write(&program, COUNTS_INTERRUPTS).unwrap();
    each_observer(|observer| {
        let watch = format!("{IOTOMY} trace --observer {observer} perl {}", program.display());
        let mut terminal = Terminal::start(&watch);
        terminal.until_line("ready");
        for n in 1..=5 {
            terminal.press("\x03");
            // One line at most in between: the terminal's echo of the key.
            assert!(terminal.until_line("got ").contains(&format!("got {n}\r")));
        }
        terminal.press("\x1c");
        terminal.until_line("total 5");
        terminal.until_line("exit 7");
        let status = terminal.child.wait().unwrap();
        assert_eq!(status.code(), Some(7), "{observer}");
    });
}

#[test]
fn an_interrupt_from_the_terminal_ends_a_command_that_does_not_handle_it() {
    if !has("script") || !has("perl") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("sleeps.pl");
    fs::write(&program, SLEEPS).unwrap();
    each_observer(|observer| {
        let watch = format!("{IOTOMY} trace --observer {observer} perl {}", program.display());
        let mut terminal = Terminal::start(&watch);
        terminal.until_line("\r");
        terminal.press("\x03");
        terminal.until_line("killed by SIGINT");
        assert_eq!(terminal.child.wait().unwrap().code(), Some(130), "{observer}");
    });
}

#[test]
fn a_shell_can_stop_and_continue_the_job() {
    if !has("script") || !has("perl") || !has("bash") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("counts.pl");
    fs::write(&program, COUNTS_INTERRUPTS).unwrap();
    each_observer(|observer| {
        let mut terminal = Terminal::start("bash --norc --noprofile -i");
        let watch = format!("{IOTOMY} trace -q --observer {observer} perl {}", program.display());
        terminal.press(&format!("{watch}\n"));
        terminal.until_line("ready\r");
        terminal.press("\x1a");
        terminal.until_line("Stopped");
        terminal.press("fg\n");
        // The shell gives the terminal away before it continues the job.
        terminal.until_line("goes on");
        terminal.press("\x1c");
        terminal.until_line("total 0");
        terminal.press("echo status $?\n");
        terminal.until_line("status 7");
        terminal.press("exit\n");
        assert_eq!(terminal.child.wait().unwrap().code(), Some(0), "{observer}");
    });
}

#[test]
fn a_stopped_command_stays_stopped_until_it_is_continued() {
    each_observer(|observer| {
        let script = "echo $$; kill -STOP $$; echo on; exit 6";
        let mut watching = Tracing::new(observer, &[], &["sh", "-c", script]).start();
        let pid: u32 = watching.line().parse().unwrap();
        until("it is stopped", || matches!(state(pid), Some('T' | 't')).then_some(()));
        // Under ptrace, the state is that of a stop at a call, too: one SIGCONT could be too early.
        let (heard, hear) = std::sync::mpsc::channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                while hear.recv_timeout(Duration::from_millis(1)).is_err() {
                    // It may have ended by now.
                    let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGCONT);
                }
            });
            assert_eq!(watching.line(), "on");
            heard.send(()).unwrap();
        });
        let traced = watching.end();
        assert_eq!(traced.code(), 6, "{observer}");
        traced.whole_record();
    });
}

#[test]
fn a_parent_sees_its_child_stop_and_go_on() {
    if !has("perl") {
        return;
    }
    let script = r#"
        use POSIX ":sys_wait_h"; $| = 1;
        my $child = fork;
        if (!$child) { kill STOP => $$; exit 5 }
        waitpid $child, WUNTRACED; print WIFSTOPPED($?) ? "stopped\n" : "ended\n";
        kill CONT => $child;
        waitpid $child, WCONTINUED; print WIFCONTINUED(${^CHILD_STATUS_NATIVE}) ? "goes on\n" : "ended\n";
        waitpid $child, 0 ; print $? >> 8, "\n";
    "#;
    let alone = bare("perl", &["-e", script]).output().unwrap();
    each_observer(|observer| {
        let traced = support::traced(observer, &[], &["perl", "-e", script]);
        let first = |text: &str| text.lines().next().unwrap().to_owned();
        let alone = String::from_utf8(alone.stdout.clone()).unwrap();
        assert_eq!(first(traced.stdout()), first(&alone), "{observer}");
        assert_eq!(traced.stdout().contains('5'), alone.contains('5'), "{observer}");
        traced.whole_record();
    });
}

/// Goes on for a while and says so at its end.
const LONG: &str = r#"
    $| = 1; print "$$\n"; my $n = 0; getppid while $n++ < 100_000; print "through\n"; <STDIN>;
    print "to the end\n";
"#;

#[test]
fn a_command_goes_on_to_its_end_when_iotomy_is_killed() {
    if !has("perl") {
        return;
    }
    each_observer(|observer| {
        let words = ["perl", "-e", LONG];
        let mut watching = Tracing::new(observer, &["-q"], &words).start();
        let pid: u32 = watching.line().parse().unwrap();
        let held = Attached::to(watching.pid());
        assert_eq!(held == Attached::default(), observer != "bpf", "{held:?}");
        assert_eq!(Attached::to(pid), Attached::default(), "it is iotomy's own");
        let mut orphan = watching.kill();
        assert_eq!(orphan.line(), "through", "{observer}");
        until("it waits for input", || (state(pid) == Some('S')).then_some(()));
        assert_eq!(status(pid, "TracerPid").unwrap(), "0", "{observer}");
        orphan.say("\n");
        assert_eq!(orphan.line(), "to the end", "{observer}");
        held.until_gone();
    });
}

#[test]
fn iotomy_killed_at_any_moment_leaves_nothing_held_nor_stopped() {
    each_observer(|observer| {
        // How long a whole run takes here, so that the moments cover it.
        let began = Instant::now();
        Tracing::new(observer, &["-q"], &["true"]).run();
        let whole = began.elapsed();
        let mut ran = 0;
        for moment in 0..40u32 {
            let mut tracing = Tracing::new(observer, &["-q"], &["sh", "-c", "echo r; echo an"]);
            let mut child = tracing.command.stdout(Stdio::piped()).spawn().unwrap();
            // No wait for anything: the moment to strike.
            std::thread::sleep(whole * moment / 40);
            let held = Attached::to(child.id());
            let kin = children(child.id());
            child.kill().unwrap();
            child.wait().unwrap();
            // Ends when the last holder of the pipe, a command held or stopped too, is gone.
            let mut said = String::new();
            child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
            assert!(["", "r\nan\n"].contains(&said.as_str()), "{observer} {moment}: {said:?}");
            ran += u32::from(!said.is_empty());
            kin.into_iter().for_each(support::until_ended);
            held.until_gone();
        }
        assert!(ran < 40, "{observer}: every kill came too late");
    });
}

#[test]
fn a_signal_at_any_moment_ends_the_command_and_is_what_iotomy_ends_with() {
    each_observer(|observer| {
        let began = Instant::now();
        Tracing::new(observer, &["-q"], &["true"]).run();
        let whole = began.elapsed();
        for moment in 0..16u32 {
            let mut tracing = Tracing::new(observer, &["-q"], &["sleep", "1000"]);
            let mut child = tracing.command.stderr(Stdio::piped()).spawn().unwrap();
            // No wait for anything: the moment to strike.
            std::thread::sleep(whole * moment / 16);
            support::send(child.id(), Signal::SIGTERM);
            let stderr = support::text(child.stderr.take().unwrap());
            let status = child.wait().unwrap();
            // It came before signals are held back, or after.
            let ended = status.code() == Some(143) || status.signal() == Some(15);
            assert!(ended, "{observer} {moment}: {status}: {stderr}");
        }
    });
}

/// What iotomy left when it was killed.
struct Orphan(Watching);

impl Orphan {
    fn line(&mut self) -> String {
        self.0.line()
    }

    fn say(&mut self, text: &str) {
        self.0.say(text);
    }
}

trait Kill {
    fn kill(self) -> Orphan;
}

impl Kill for Watching {
    fn kill(self) -> Orphan {
        self.signal(Signal::SIGKILL);
        let pid = self.pid();
        until("iotomy is dead", || matches!(state(pid), None | Some('Z')).then_some(()));
        Orphan(self)
    }
}

#[test]
fn a_watch_that_is_killed_leaves_the_process_as_it_was() {
    if !has("perl") {
        return;
    }
    each_observer(|observer| {
        let (mut subject, _) = support::BackgroundProcess::ready(&["perl", "-e", LONG]);
        assert_eq!(subject.line(), "through");
        let pid = subject.pid().to_string();
        let watching = Tracing::new(observer, &["-q", "-p", &pid], &[]).start();
        support::until_watching(&watching, observer, subject.pid());
        let _orphan = watching.kill();
        until("it is free", || {
            (status(subject.pid(), "TracerPid")? == "0" && state(subject.pid())? == 'S')
                .then_some(())
        });
        subject.say("\n");
        assert_eq!(subject.line(), "to the end", "{observer}");
        assert_eq!(subject.end(), 0);
    });
}

#[test]
fn a_command_watched_for_a_while_is_waited_for_and_gets_signals_after_that() {
    if !has("perl") {
        return;
    }
    each_observer(|observer| {
        let options = ["-d", "0.05"];
        let mut watching = Tracing::new(observer, &options, &["perl", "-e", SLEEPS]).start();
        let pid: u32 = watching.line().parse().unwrap();
        // The watch is over when nothing traces it or no program is left.
        until("the watch has ended", || match observer {
            "bpf" => (!Attached::to(watching.pid()).has("link")).then_some(()),
            _ => (status(pid, "TracerPid")? == "0").then_some(()),
        });
        // Let go in the middle of a call, it may be on its way back into it.
        until("it sleeps again", || (state(pid) == Some('S')).then_some(()));
        watching.signal(Signal::SIGTERM);
        let traced = watching.end();
        assert_eq!(traced.code(), 143, "{observer}");
        let record = traced.record();
        assert!(record.wall_ns > 0);
        assert_eq!(record.exit, Some(Exit::Signal(15)));
    });
}

/// A shell without job control has its background commands ignore the keys of the terminal, which all of them get.
#[test]
fn a_key_that_is_to_be_ignored_is_let_pass() {
    if !has("script") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("watches.sh");
    each_observer(|observer| {
        let watch = format!("{IOTOMY} trace --observer {observer} -p $$ -i 0.1 -q --json -");
        // The first wait ends by the key.
        let lines =
            ["trap 'echo pressed' INT", "$1 &", "wait", "read line", "kill -INT $!", "wait $!"];
        let text = format!("{}\necho status $?\n", lines.join("\n").replace("$1", &watch));
        fs::write(&script, text).unwrap();
        let mut terminal = Terminal::start(&format!("sh {}", script.display()));
        // It watches once there is an interval.
        terminal.until_line("\"schema\"");
        terminal.press("\x03");
        terminal.until_line("pressed");
        // One that was under way, and the one in which the watch ended, if it did.
        for _ in 0..3 {
            terminal.until_line("\"schema\"");
        }
        terminal.press("\n");
        terminal.until_line("status 0");
        assert_eq!(terminal.child.wait().unwrap().code(), Some(0), "{observer}");
    });
}

/// A shell without job control has its background commands ignore the keys of the terminal; kill(1) is meant.
#[test]
fn a_watch_in_the_background_of_a_script_ends_by_an_interrupt() {
    each_observer(|observer| {
        let script = "\"$@\" -p $$ & echo $!; wait $!; echo status $?";
        let mut shell = bare("sh", &[]);
        shell.args([
            "-c",
            script,
            "sh",
            env!("CARGO_BIN_EXE_iotomy"),
            "trace",
            "--observer",
            observer,
        ]);
        shell.args(["-i", "0.1", "-q", "--json", "-"]).stdout(std::process::Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        let lines = std::io::BufReader::new(shell.stdout.take().unwrap());
        let mut lines = std::io::BufRead::lines(lines).map(Result::unwrap);
        let pid: i32 = lines.next().unwrap().parse().unwrap();
        // It watches once there is an interval.
        assert!(lines.next().unwrap().starts_with('{'));
        kill(Pid::from_raw(pid), Signal::SIGINT).unwrap();
        assert_eq!(lines.last().unwrap(), "status 0", "{observer}");
        assert!(shell.wait().unwrap().success());
    });
}
