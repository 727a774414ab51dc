//! What the black-box tests have in common: runs of the built command, whose every record is
//! checked against what holds for any; waits for what the kernel says instead of for time; skips
//! that are printed and counted.

#![allow(dead_code, reason = "no test file needs total")]

pub(crate) mod anatomies;
pub(crate) mod attached;
pub(crate) mod browser;
pub(crate) mod caches;
pub(crate) mod cgroups;
pub(crate) mod copying;
pub(crate) mod histories;
pub(crate) mod invariants;
pub(crate) mod labs;
mod over;
pub(crate) mod pages;
mod processes;
pub(crate) mod races;
pub(crate) mod records;
pub(crate) mod rings;
pub(crate) mod sampling;
pub(crate) mod servers;
pub(crate) mod sessions;
pub(crate) mod volume;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

use iotomy_record::{Call, Trace};
pub(crate) use iotomy_test_requirements::{Need, skip};
use nix::sys::signal::Signal;
use tempfile::TempDir;

use self::over::EndedCommand;
pub(crate) use self::processes::*;

pub(crate) const IOTOMY: &str = env!("CARGO_BIN_EXE_iotomy");

/// Runs `test` with every observer that works here, and says which does not.
pub(crate) fn each_observer(test: impl Fn(&str)) {
    if bpf() {
        test("bpf");
    }
    if ptrace() {
        test("ptrace");
    }
}

/// Whether the ptrace observer works here; a test that needs it and finds it does not is skipped.
pub(crate) fn ptrace() -> bool {
    works(Need::Ptrace, &["trace", "-q", "--observer", "ptrace", "true"])
}

/// Whether the bpf observer works here; a test that needs it and finds it does not is skipped.
pub(crate) fn bpf() -> bool {
    works(Need::Bpf, &["trace", "-q", "--observer", "bpf", "true"])
}

/// Whether anatomy works here; a test that needs it and finds it does not is skipped.
pub(crate) fn anatomy() -> bool {
    works(Need::Bpf, &["anatomy", "-q", "true"])
}

/// Whether the command works with these arguments. What is required is not tried: there a test fails by itself, and
/// says by what. A failed trial is printed and made once more, and is forgotten: only a success holds for later tests.
fn works(need: Need, words: &'static [&'static str]) -> bool {
    static WORKED: Mutex<BTreeSet<&[&str]>> = Mutex::new(BTreeSet::new());
    if iotomy_test_requirements::is_required(need) || WORKED.lock().unwrap().contains(words) {
        return true;
    }
    let tried = || {
        let trial = iotomy(words).output().unwrap();
        let stderr = String::from_utf8_lossy(&trial.stderr);
        let failure = format!("iotomy {}: {}: {}", words.join(" "), trial.status, stderr.trim());
        if trial.status.success() { Ok(()) } else { Err(failure) }
    };
    let worked = tried().or_else(|failure| {
        eprintln!("{failure}");
        tried()
    });
    match worked {
        Ok(()) => _ = WORKED.lock().unwrap().insert(words),
        Err(failure) => skip(need, &failure),
    }
    WORKED.lock().unwrap().contains(words)
}

/// The built command with a memory file system of its own, made with `options`, on `folder`, which only
/// it sees. Takes root.
pub(crate) fn on_small_tmpfs(folder: &Path, options: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c"]);
    let script = format!(
        "mount -t tmpfs -o {options} small \"$1\" && shift && exec \"$@\" # the rest is iotomy"
    );
    command.arg(script).arg("sh").arg(folder).arg(IOTOMY);
    command
}

/// Whether this is root; a test that needs it and finds it is not is skipped.
pub(crate) fn root() -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        skip(Need::Root, "not root");
    }
    root
}

/// Whether `program` is there; a test that needs it and finds it is not is skipped.
pub(crate) fn has(program: &str) -> bool {
    has_for(Need::Programs, program)
}

/// The same of a server, or of what runs one.
pub(crate) fn has_server(program: &str) -> bool {
    has_for(Need::Servers, program)
}

fn has_for(need: Need, program: &str) -> bool {
    let is_there = is_there(program);
    if !is_there {
        skip(need, &format!("there is no {program}"));
    }
    is_there
}

/// Whether `program` is there, for a test that does without it, too.
pub(crate) fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH");
    iotomy_sys::launch::find_program(OsStr::new(program), path.as_deref()).is_ok()
}

/// Whether there is a perl with threads.
pub(crate) fn perl_with_threads() -> bool {
    if !has("perl") {
        return false;
    }
    let there = bare("perl", &["-Mthreads", "-e", "1"]).stderr(Stdio::null()).status().unwrap();
    if !there.success() {
        skip(Need::Programs, "this perl has no threads");
    }
    there.success()
}

/// The command, with the surroundings every test has: cargo sets a path along which a traced
/// program's loader would look for every library in vain. Its cache and its state are the test's own.
pub(crate) fn iotomy(arguments: &[&str]) -> Command {
    let mut command = Command::new(IOTOMY);
    command.args(arguments).env_remove("LD_LIBRARY_PATH").stdin(Stdio::null());
    surroundings(&mut command);
    command
}

/// The same surroundings for a command that is not watched, to compare with.
pub(crate) fn bare(program: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).env_remove("LD_LIBRARY_PATH").stdin(Stdio::null());
    surroundings(&mut command);
    command
}

fn surroundings(command: &mut Command) {
    // The tests may have been started in the background, where interrupts are ignored.
    iotomy_sys::signals::be_ended_by_signals();
    caches::give_to(command);
    // Whatever the user's locale is, reports have the characters that tests look for.
    command.env("LC_ALL", "C.UTF-8");
    // No test may follow the configuration of the user.
    command.env("IOTOMY_CONFIG", "/dev/null");
    // No test may be kept in the user's history, whatever is configured.
    command.env("IOTOMY_HISTORY", "never");
}

/// A trace that writes its record, to be run.
pub(crate) struct Tracing {
    pub(crate) command: Command,
    pub(crate) folder: TempDir,
}

impl Tracing {
    /// `iotomy trace` with `options`; `words` is the command with its arguments, if there is one.
    pub(crate) fn new(observer: &str, options: &[&str], words: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = iotomy(&["trace", "--observer", observer, "--json"]);
        command.arg(folder.path().join("record.json")).args(options);
        if !words.is_empty() {
            command.arg("--").args(words);
        }
        Self { command, folder }
    }

    pub(crate) fn run(mut self) -> Traced {
        let output = self.command.output().unwrap();
        Traced(EndedCommand { output, folder: self.folder })
    }

    /// Starts it with standard input, output and error as pipes.
    pub(crate) fn start(mut self) -> Watching {
        self.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = self.command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Watching { child: Some(child), output: Box::new(output), folder: Some(self.folder) }
    }
}

/// A trace of a command that ran to its end.
pub(crate) fn traced(observer: &str, options: &[&str], words: &[&str]) -> Traced {
    Tracing::new(observer, options, words).run()
}

/// A trace under way.
pub(crate) struct Watching {
    child: Option<Child>,
    output: Box<dyn BufRead + Send>,
    folder: Option<TempDir>,
}

impl Watching {
    pub(crate) fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// The directory of its record.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.as_ref().unwrap().path()
    }

    /// The next line on standard output, without its end.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Writes to standard input.
    pub(crate) fn say(&mut self, text: &str) {
        let child = self.child.as_mut().unwrap();
        child.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        send(self.pid(), signal);
    }

    /// Ends standard input and waits for the end; standard output is what has not been read yet.
    pub(crate) fn end(mut self) -> Traced {
        let mut child = self.child.take().unwrap();
        drop(child.stdin.take());
        let mut output = child.wait_with_output().unwrap();
        self.output.read_to_end(&mut output.stdout).unwrap();
        Traced(EndedCommand { output, folder: self.folder.take().unwrap() })
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        // A test that failed leaves nothing running, and has the reasons of iotomy in its output.
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let output = child.wait_with_output();
            if std::thread::panicking() {
                eprintln!("iotomy: {output:?}");
            }
        }
    }
}

/// A trace that is over.
pub(crate) struct Traced(EndedCommand);

impl Deref for Traced {
    type Target = EndedCommand;

    fn deref(&self) -> &EndedCommand {
        &self.0
    }
}

impl Traced {
    pub(crate) fn json(&self) -> PathBuf {
        self.folder.path().join("record.json")
    }

    /// The record, checked against what holds for every record.
    pub(crate) fn record(&self) -> Trace {
        let record = iotomy_record::store::load_trace(self.json())
            .unwrap_or_else(|error| panic!("{error}; iotomy said: {}", self.stderr()));
        invariants::check(&record);
        record
    }

    /// The record of a run of which nothing may have been missed.
    pub(crate) fn whole_record(&self) -> Trace {
        let record = self.record();
        assert_eq!(record.observer.lost_events, 0, "{}", self.stderr());
        assert_eq!(record.observer.incomplete_calls, 0, "{:?}", in_flight(&record));
        assert!(record.still_running.is_empty(), "{:?}", record.still_running);
        record
    }
}

fn in_flight(record: &Trace) -> Vec<(&str, &str, u64)> {
    let calls = record.calls.iter().filter(|call| call.in_flight > 0);
    calls.map(|call| (call.exec.as_str(), call.syscall.as_str(), call.in_flight)).collect()
}

/// The only row of a call in all images of program `exec`.
pub(crate) fn call<'a>(record: &'a Trace, exec: &str, syscall: &str) -> &'a Call {
    let mut found = record.calls.iter().filter(|call| call.exec == exec && call.syscall == syscall);
    let first = found.next().unwrap_or_else(|| panic!("no {syscall} of {exec}: {record:#?}"));
    assert!(found.next().is_none(), "several rows of {syscall} of {exec}");
    first
}

/// How often a call was made, in all images.
pub(crate) fn count(record: &Trace, syscall: &str) -> u64 {
    record.calls.iter().filter(|call| call.syscall == syscall).map(|call| call.calls).sum()
}

/// The same, in the images of one process.
pub(crate) fn count_of(record: &Trace, pid: u32, syscall: &str) -> u64 {
    let rows = record.calls.iter().filter(|call| call.pid == pid && call.syscall == syscall);
    rows.map(|call| call.calls).sum()
}

/// A trace of a running process, interrupted once it watches: how long that takes is a matter of the machine.
pub(crate) fn glimpse(observer: &str, pid: u32, options: &[&str]) -> Traced {
    let process = pid.to_string();
    let options = [&["-p", &process], options].concat();
    let watching = Tracing::new(observer, &options, &[]).start();
    until_watching(&watching, observer, pid);
    watching.signal(Signal::SIGINT);
    watching.end()
}

/// Waits until a process that was to be attached to is watched: until it has a tracer, or iotomy
/// waits for its end.
pub(crate) fn until_watching(watching: &Watching, observer: &str, pid: u32) {
    if observer == "bpf" {
        return until_polling(watching.pid());
    }
    while_it_runs("it is watched", watching.pid(), || {
        // Then the tracer sleeps in wait4, and has read what it wants to know of the process.
        let mut tracers = fs::read_dir(format!("/proc/{}/task", watching.pid())).ok()?.flatten();
        let waits = tracers.any(|task| {
            let call = fs::read_to_string(task.path().join("syscall"));
            call.is_ok_and(|call| call.starts_with("61 "))
        });
        let mut threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
        let has_tracer = |task: fs::DirEntry| {
            let task = task.file_name().into_string().unwrap();
            status(task.parse().unwrap(), "TracerPid").is_none_or(|tracer| tracer != "0")
        };
        (waits && threads.all(has_tracer)).then_some(())
    });
}

/// Waits until iotomy waits for the end of what it watches.
pub(crate) fn until_polling(iotomy: u32) {
    while_it_runs("it watches", iotomy, || is_polling(iotomy).then_some(()));
}

/// Whether a process is in poll or ppoll, or in restart_syscall, as which a poll goes on that was disturbed.
pub(crate) fn is_polling(pid: u32) -> bool {
    let call = fs::read_to_string(format!("/proc/{pid}/syscall")).unwrap_or_default();
    ["7 ", "271 ", "219 "].iter().any(|number| call.starts_with(number))
}

/// Writes an executable file.
pub(crate) fn program(folder: &Path, name: &str, content: &[u8]) -> PathBuf {
    use std::os::unix::fs::OpenOptionsExt;
    let path = folder.join(name);
    // By another process: a descriptor that is open for writing while another test forks would
    // make the file busy.
    let mut options = fs::OpenOptions::new();
    drop(options.write(true).create_new(true).mode(0o755).open(&path).unwrap());
    let mut cat = Command::new("dd");
    cat.args(["status=none", "bs=1M", "iflag=fullblock"])
        .arg(format!("of={}", path.display()))
        .stdin(Stdio::piped());
    let mut cat = cat.spawn().unwrap();
    cat.stdin.take().unwrap().write_all(content).unwrap();
    assert!(cat.wait().unwrap().success());
    path
}

/// A copy of a program that is here, under another name.
pub(crate) fn copy_of_program(program_name: &str, folder: &Path, name: &str) -> PathBuf {
    let path = std::env::var_os("PATH");
    let original = iotomy_sys::launch::find_program(OsStr::new(program_name), path.as_deref());
    program(folder, name, &fs::read(original.unwrap()).unwrap())
}

/// Everything a reader has, as text.
pub(crate) fn text(mut reader: impl Read) -> String {
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    text
}

/// A folder with a copy of the command that every user may run.
pub(crate) fn for_everyone() -> TempDir {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    program(folder.path(), "iotomy", &fs::read(IOTOMY).unwrap());
    folder
}

/// The command as a user who owns nothing runs it, from a folder made by [`for_everyone`].
pub(crate) fn as_nobody(folder: &Path) -> Command {
    let nobody = ["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"];
    let mut command = bare("setpriv", &nobody);
    command.arg(folder.join("iotomy")).current_dir(folder);
    command
}
