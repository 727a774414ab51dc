//! The functions that the slowest calls were made in, where programs keep no frame pointers.

use crate::support;

use std::path::{Path, PathBuf};

use iotomy_record::{Caller, Trace, WholeCall};
use nix::sys::signal::Signal;
use support::{BackgroundProcess, Tracing, bpf, has, skip, traced, until_watching};
use tempfile::TempDir;

/// As Debian's programs are compiled.
const FLAGS: [&str; 3] = ["-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls"];

/// What every program begins with.
const HEAD: &str = r#"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#define APART __attribute__((noinline))
volatile int sink;
APART int inner(int n) { struct timespec for_a_while = {0, 20000000}; return nanosleep(&for_a_while, 0) + n; }
APART int middle(int n) { char room[n + 100]; memset(room, n, sizeof(room)); return inner(room[5]) + room[n]; }
APART int outer(int n) { int got = middle(n + 1); sink += got; return got + n; }
"#;

const CHAIN: &str = "int main(int arguments, char **words) { return outer(arguments) & 0; }\n";

/// A program of these lines; `None` where none can be compiled.
struct Compiled {
    folder: TempDir,
    program: PathBuf,
}

impl Compiled {
    fn of(text: &str, options: &[&str]) -> Option<Self> {
        if !has("cc") {
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("subject");
        compile(&format!("{HEAD}{text}"), &program, options);
        Some(Self { folder, program })
    }

    fn path(&self) -> &str {
        self.program.to_str().unwrap()
    }

    /// The functions of its sleep.
    fn of_sleep(&self, options: &[&str]) -> Vec<String> {
        let options = [&["--slowest", "1", "--call", "clock_nanosleep"], options].concat();
        let record = traced("bpf", &options, &[self.path()]).record();
        names(&record.slowest[0])
    }
}

fn compile(text: &str, to: &Path, options: &[&str]) {
    let source = to.with_extension("c");
    std::fs::write(&source, text).unwrap();
    let mut compiler = support::bare("cc", &FLAGS);
    compiler.arg(&source).arg("-o").arg(to).args(options);
    assert!(compiler.status().unwrap().success());
}

/// The functions of a call: with a name, that and the last component of the file; `?` where nothing is known.
fn names(call: &WholeCall) -> Vec<String> {
    let name = |caller: &Caller| {
        let file = caller.file.as_deref().map(|path| path.rsplit('/').next().unwrap());
        match (caller.function.as_deref(), file) {
            (None, None) => "?".to_owned(),
            (function, file) => {
                format!("{} {}", function.unwrap_or("-"), file.unwrap_or("-"))
            }
        }
    };
    call.callers.iter().map(name).collect()
}

/// Asserts that the C library's functions are followed by these of the program, and by nothing.
fn assert_ends_with(names: &[String], functions: &[&str]) {
    let first = names.len().saturating_sub(functions.len());
    let expected: Vec<String> = functions.iter().map(|name| format!("{name} subject")).collect();
    assert_eq!(names[first..], expected, "{names:#?}");
    let is_of_library = |name: &String| name.contains(" libc");
    assert!(first > 0 && names[..first].iter().all(is_of_library), "{names:#?}");
}

#[test]
fn a_call_has_all_functions_up_to_main() {
    if !bpf() {
        return;
    }
    let Some(subject) = Compiled::of(CHAIN, &[]) else { return };
    let names = subject.of_sleep(&[]);
    assert_ends_with(&names, &["inner", "middle", "outer", "main"]);
    assert!(names[0].contains("nanosleep libc"), "{names:#?}");
    let text = traced("bpf", &["--slowest", "1", "--call", "clock_nanosleep"], &[subject.path()]);
    let text = text.stderr().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("< inner (subject) < middle < outer < main"), "{text}");
}

#[test]
fn the_wrappers_of_the_c_library_hide_nobody() {
    if !bpf() {
        return;
    }
    let text = "int main(void) { return usleep(20000); }\n";
    let Some(subject) = Compiled::of(text, &[]) else { return };
    let names = subject.of_sleep(&[]);
    assert_ends_with(&names, &["main"]);
    // usleep calls nanosleep, which calls clock_nanosleep.
    assert!(names.len() >= 3 && names[names.len() - 2] == "usleep libc.so.6", "{names:#?}");
}

#[test]
fn a_program_that_is_linked_statically_has_its_functions() {
    if !bpf() {
        return;
    }
    for options in [&["-static", "-no-pie"], &["-static-pie", "-fPIE"]] {
        let Some(subject) = Compiled::of(CHAIN, options) else { return };
        let names = subject.of_sleep(&[]);
        let own = ["inner", "middle", "outer", "main"].map(|name| format!("{name} subject"));
        assert!(names.ends_with(&own), "{options:?}: {names:#?}");
        assert!(names.len() < 9 && !names.contains(&"?".to_owned()), "{options:?}: {names:#?}");
    }
}

#[test]
fn a_handler_of_a_signal_is_followed_by_what_it_has_interrupted() {
    const HANDLER: &str = r#"
APART void handler(int signal) { sink += outer(signal); }
APART int trigger(int n) { int got = kill(getpid(), SIGUSR1); sink += got; return got + n; }
int main(int arguments, char **words) { signal(SIGUSR1, handler); return trigger(arguments) & 0; }
"#;
    if !bpf() {
        return;
    }
    let Some(subject) = Compiled::of(HANDLER, &[]) else { return };
    let names = subject.of_sleep(&[]);
    let (handler, interrupted) = names.split_at(names.len() - 4);
    assert_ends_with(handler, &["inner", "middle", "outer", "handler"]);
    assert!(interrupted[0].starts_with("[signal] libc"), "{names:#?}");
    assert_ends_with(&interrupted[1..], &["trigger", "main"]);
    assert_eq!(interrupted[1], "kill libc.so.6");
}

#[test]
fn a_thread_has_its_functions_from_its_beginning_on() {
    const THREAD: &str = r#"
APART void *work(void *n) { sink += outer(*(int *)n); return 0; }
int main(int arguments, char **words)
{
	pthread_t thread;
	pthread_create(&thread, 0, work, &arguments);
	return pthread_join(thread, 0);
}
"#;
    if !bpf() {
        return;
    }
    let Some(subject) = Compiled::of(THREAD, &["-pthread"]) else { return };
    let names = subject.of_sleep(&[]);
    let begins = names.iter().rposition(|name| name.ends_with(" subject")).unwrap() + 1;
    let (own, library) = names.split_at(begins);
    assert_ends_with(own, &["inner", "middle", "outer", "work"]);
    assert!(!library.is_empty() && library.len() <= 2, "{names:#?}");
    assert!(library.iter().all(|name| name.contains(" libc")), "{names:#?}");
}

#[test]
fn a_library_that_calls_back_is_between_its_caller_and_the_program() {
    const LIBRARY: &str = "int sink;\nint through(int (*call)(int)) { int got = call(3); sink += got; return got + 1; }\n";
    const PROGRAM: &str =
        "int through(int (*call)(int));\nint main(void) { return through(inner) & 0; }\n";
    if !bpf() || !has("cc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("libthrough.so");
    compile(LIBRARY, &library, &["-shared", "-fPIC"]);
    let options = [library.to_str().unwrap(), "-Wl,-rpath", folder.path().to_str().unwrap()];
    let Some(subject) = Compiled::of(PROGRAM, &options) else { return };
    let names = subject.of_sleep(&[]);
    assert!(
        names.ends_with(
            &["inner subject", "through libthrough.so", "main subject"].map(str::to_owned)
        ),
        "{names:#?}"
    );
}

#[test]
fn a_program_whose_file_was_deleted_has_its_functions_while_it_runs() {
    const ASKED: &str = r#"
int main(void)
{
	setvbuf(stdout, 0, _IONBF, 0);
	puts("ready");
	while (getchar() != EOF)
		printf("%d\n", outer(2) & 0);
}
"#;
    if !bpf() {
        return;
    }
    let Some(subject) = Compiled::of(ASKED, &[]) else { return };
    let (mut running, _) = BackgroundProcess::ready(&[subject.path()]);
    std::fs::remove_file(&subject.program).unwrap();
    let pid = running.pid().to_string();
    let options = ["--slowest", "1", "--call", "clock_nanosleep", "-p", &pid];
    let watching = Tracing::new("bpf", &options, &[]).start();
    until_watching(&watching, "bpf", running.pid());
    running.say("x");
    running.line();
    watching.signal(Signal::SIGINT);
    let record = watching.end().record();
    assert_ends_with(&names(&record.slowest[0]), &["inner", "middle", "outer", "main"]);
    drop(subject.folder);
}

#[test]
fn the_kernels_code_in_a_process_is_no_end() {
    const CLOCK: &str = r#"
APART int look(int n)
{
	struct timespec now;
	int got = clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return got + n + (now.tv_nsec & 0);
}
int main(int arguments, char **words) { int got = look(arguments); sink += got; return 0; }
"#;
    if !bpf() {
        return;
    }
    let Some(subject) = Compiled::of(CLOCK, &[]) else { return };
    let options = ["--slowest", "1", "--call", "clock_gettime"];
    let record = traced("bpf", &options, &[subject.path()]).record();
    let Some(call) = record.slowest.first() else { panic!("the clock was read without a call") };
    let names = names(call);
    if !names[0].ends_with("[vdso]") {
        return skip(support::Need::Machine, &format!("the call is the C library's: {names:?}"));
    }
    let names: Vec<String> =
        names.into_iter().skip_while(|name| name.ends_with("[vdso]")).collect();
    assert_ends_with(&names, &["look", "main"]);
}

#[test]
fn functions_without_tables_are_found_by_their_frame_pointers() {
    if !bpf() {
        return;
    }
    let options = ["-fno-asynchronous-unwind-tables", "-fno-omit-frame-pointer"];
    let Some(subject) = Compiled::of(CHAIN, &options) else { return };
    assert_ends_with(&subject.of_sleep(&[]), &["inner", "middle", "outer", "main"]);
}

#[test]
fn functions_with_neither_leave_a_gap() {
    if !bpf() {
        return;
    }
    let Some(subject) = Compiled::of(CHAIN, &["-fno-asynchronous-unwind-tables"]) else { return };
    let names = subject.of_sleep(&[]);
    let own: Vec<&String> = names.iter().skip_while(|name| *name != "inner subject").collect();
    assert!(own.len() > 1 && own[1] == "?", "{names:#?}");
    // Whatever is beyond is one of those that have called.
    let known = ["middle subject", "outer subject", "main subject", "?"];
    assert!(own[1..].iter().all(|name| known.contains(&name.as_str())), "{names:#?}");
}

#[test]
fn a_stack_that_is_longer_than_what_is_copied_is_said_to_go_on() {
    const DEEP: &str = r#"
APART int deep(int n) { char room[32768]; memset(room, n, sizeof(room)); return middle(room[n]) + room[n + 1]; }
int main(int arguments, char **words) { int got = deep(arguments); sink += got; return 0; }
"#;
    if !bpf() {
        return;
    }
    let Some(subject) = Compiled::of(DEEP, &[]) else { return };
    let names = subject.of_sleep(&[]);
    let (last, rest) = names.split_last().unwrap();
    assert_eq!(last, "?", "{names:#?}");
    assert_ends_with(rest, &["inner", "middle", "deep"]);
}

#[test]
fn the_call_that_ends_the_watch_and_those_of_intervals_have_their_functions() {
    const LOOP: &str = r#"
int main(int arguments, char **words)
{
	for (int i = 0; i < 40; i++)
		sink += outer(arguments);
	return 0;
}
"#;
    const OWN: [&str; 4] = ["inner", "middle", "outer", "main"];
    if !bpf() {
        return;
    }
    let Some(subject) = Compiled::of(LOOP, &[]) else { return };
    let until = ["--until", "call == \"clock_nanosleep\""];
    let record = traced("bpf", &until, &[subject.path()]).record();
    assert_ends_with(&names(&record.ended_by.unwrap().call), &OWN);

    let words = ["trace", "-i", "0.1", "--slowest", "3", "--call", "clock_nanosleep"];
    let words = [&words[..], &["--json", "-", "--", subject.path()]].concat();
    let output = support::iotomy(&words).output().unwrap();
    let lines = String::from_utf8(output.stdout).unwrap();
    let records = lines.lines().map(|line| serde_json::from_str::<Trace>(line).unwrap());
    let calls: Vec<WholeCall> = records.flat_map(|record| record.slowest).collect();
    assert!(!calls.is_empty());
    for call in &calls {
        assert_ends_with(&names(call), &OWN);
    }

    let ring = ["--ring", "60", "--slowest", "100", "--call", "clock_nanosleep"];
    let stretch = traced("bpf", &ring, &[subject.path()]);
    let record = iotomy_record::store::load_trace(stretch.json()).unwrap();
    assert_eq!(record.slowest.len(), 40);
    for call in &record.slowest {
        assert_ends_with(&names(call), &OWN);
    }
}

#[test]
fn an_interpreter_is_walked_through_or_said_to_be_unknown() {
    if !bpf() || !has("python3") {
        return;
    }
    let script = "import time\ndef within(): time.sleep(0.05)\nwithin()";
    let options = ["--slowest", "1", "--call", "clock_nanosleep,select,pselect6"];
    let record = traced("bpf", &options, &["python3", "-c", script]).record();
    let names = names(&record.slowest[0]);
    assert!(names[0].contains(" libc"), "{names:#?}");
    // Nothing but the C library, the interpreter and its libraries is run.
    let is_known = |name: &String| name == "?" || name.contains(" libc") || name.contains("python");
    assert!(names.len() > 2 && names.iter().all(is_known), "{names:#?}");
}

#[test]
fn without_the_helper_that_loops_callers_are_those_of_frame_pointers() {
    if !bpf() {
        return;
    }
    let options = ["-fno-omit-frame-pointer"];
    let Some(subject) = Compiled::of(CHAIN, &options) else { return };
    let options = ["--slowest", "1", "--call", "clock_nanosleep"];
    let mut tracing = Tracing::new("bpf", &options, &[subject.path()]);
    tracing.command.env("IOTOMY_REFUSE", "helper=181:EINVAL");
    let record = tracing.run().record();
    let names = names(&record.slowest[0]);
    assert!(names[0].contains(" libc"), "{names:#?}");
    let own = ["middle", "outer", "main"].map(|name| format!("{name} subject"));
    assert!(names.ends_with(&own), "{names:#?}");
}
