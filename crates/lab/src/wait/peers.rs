//! Rounds with other event libraries, made by separate programs: `wait-peers` and `wait-peers-mio`,
//! which `make bench-wait` builds. They are looked up in `PATH`; iotomy itself is linked with none
//! of these libraries.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use iotomy_host::Skip;
use iotomy_sys::launch::find_program;
use iotomy_sys::signals::ignore_keys_as_given;

/// The supported libraries.
pub(super) const NAMES: [&str; 3] = ["libevent", "libuv", MIO];

/// Those of them that keep a record of every descriptor.
pub(super) const WITH_BOOKS: [&str; 2] = ["libevent", "libuv"];

/// A thin layer over epoll that leaves this to the kernel and its users.
pub(super) const MIO: &str = "mio";

/// Returns the program that makes a library's rounds.
fn program(name: &str) -> &'static str {
    if name == MIO { "wait-peers-mio" } else { "wait-peers" }
}

/// Returns the program by its absolute path. Relative directories in `PATH` are ignored, because
/// they depend on where iotomy is started. It ignores the keys that iotomy was told to ignore.
fn command(program: &str) -> io::Result<Command> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    let path = std::env::join_paths(folders).unwrap_or_default();
    let mut command = Command::new(find_program(program.as_ref(), Some(&path))?);
    ignore_keys_as_given(&mut command);
    Ok(command)
}

/// Checks that the program exists and supports this library.
pub(super) fn probe(name: &str) -> Result<(), Skip> {
    let program = program(name);
    let listed =
        command(program).and_then(|mut command| command.arg("list").stdin(Stdio::null()).output());
    let listed = listed.map_err(|error| {
        let what = format!("cannot run {program} for the rounds of {name}: {error}");
        Skip(format!("{what}; build it with make bench-wait, and add target/peers to PATH"))
    })?;
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    let is_there = |line: &str| line.split(' ').next() == Some(name);
    match text.lines().any(is_there) {
        true => Ok(()),
        false => Err(Skip(format!("{program} was built without {name}; install its headers"))),
    }
}

/// The running program; it ends when its standard input does, so with iotomy at the latest.
pub(super) struct Peer {
    program: &'static str,
    child: Child,
    into: Option<ChildStdin>,
    out: BufReader<ChildStdout>,
}

impl Peer {
    pub(super) fn start(name: &str, pairs: u64) -> Result<Self, Skip> {
        let program = program(name);
        let pairs = pairs.to_string();
        let child = command(program).and_then(|mut command| {
            command.args([name, &pairs]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()
        });
        let mut child = child.map_err(|e| Skip(format!("cannot run {program}: {e}")))?;
        let out = child.stdout.take().map(BufReader::new);
        let (into, out) = child.stdin.take().zip(out).expect("both were asked to be pipes");
        Ok(Self { program, child, into: Some(into), out })
    }

    /// Makes a round; returns its CPU time and wall time, in ns.
    pub(super) fn round(&mut self, (active, writes): (usize, usize)) -> Result<(f64, f64), Skip> {
        let mut line = String::new();
        let into = self.into.as_mut().expect("closed by its end only");
        let asked =
            writeln!(into, "{active} {writes}").and_then(|()| self.out.read_line(&mut line));
        let mut numbers = line.split_whitespace().map(str::parse::<f64>);
        match (asked, numbers.next(), numbers.next()) {
            (Ok(_), Some(Ok(cpu)), Some(Ok(wall))) => Ok((cpu, wall)),
            (Err(error), ..) => Err(Skip(format!("{} ended: {error}", self.program))),
            _ => Err(Skip(format!("{} answered {line:?}", self.program))),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.into = None;
        // The program ends by itself.
        let _ = self.child.wait();
    }
}
