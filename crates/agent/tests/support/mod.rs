//! An agent of a test, scrapes of it, and programs that do a known thing.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};

use iotomy_test_requirements::wait::{until, until_some};
use iotomy_test_requirements::{Need, is_required, skip};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

pub(crate) mod attached;
pub(crate) mod cgroup;
pub(crate) mod collector;
pub(crate) mod pushed;

pub(crate) const AGENT: &str = env!("CARGO_BIN_EXE_iotomy-agent");

/// An agent that runs, ended with the test.
pub(crate) struct Agent {
    child: Child,
    said: Arc<Mutex<String>>,
    pub(crate) address: SocketAddr,
}

/// The command, which ends with the thread that starts it.
pub(crate) fn command(words: &[&str]) -> Command {
    command_by(&["--", AGENT], words)
}

/// The same by more words of `setpriv`.
fn command_by(setpriv: &[&str], words: &[&str]) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]).args(setpriv).args(words);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

impl Agent {
    /// Starts one on any free port, and waits until it serves; `None` where it cannot watch here, which is a skip.
    pub(crate) fn start(words: &[&str]) -> Option<Self> {
        Self::start_by(&["--", AGENT], words)
    }

    /// The same by more words of `setpriv`, which end with the program.
    pub(crate) fn start_by(setpriv: &[&str], words: &[&str]) -> Option<Self> {
        let words = [&["--listen", "127.0.0.1:0"], words].concat();
        let mut child = command_by(setpriv, &words).spawn().unwrap();
        let said = Arc::<Mutex<String>>::default();
        let (stderr, lines) = (child.stderr.take().unwrap(), said.clone());
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                let mut said = lines.lock().unwrap();
                said.push_str(&line);
                said.push('\n');
            }
        });
        let mut agent = Self { child, said, address: SocketAddr::from(([127, 0, 0, 1], 0)) };
        let address = until_some("the agent serves", || {
            let ended = agent.child.try_wait().unwrap();
            let said = agent.said();
            let url = said.lines().find_map(|line| line.split_once("metrics are at "));
            let address = url.and_then(|(_, url)| url.split_once("://"));
            match (address, ended) {
                (Some((_, rest)), _) => Some(Ok(rest.strip_suffix("/metrics").unwrap().to_owned())),
                (None, Some(status)) => Some(Err(status)),
                (None, None) => None,
            }
        });
        match address {
            Ok(address) => agent.address = address.parse().unwrap(),
            Err(status) => {
                let failure = format!("{status}: {}", agent.said());
                assert!(!is_required(Need::Bpf), "{failure}");
                skip(Need::Bpf, &failure);
                return None;
            }
        }
        Some(agent)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// Waits until it has said this.
    pub(crate) fn until_said(&self, text: &str) -> String {
        until_some(&format!("the agent says {text:?}"), || {
            Some(self.said()).filter(|said| said.contains(text))
        })
    }

    pub(crate) fn send(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid().cast_signed()), signal).unwrap();
    }

    /// Waits for its end.
    pub(crate) fn ended(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        (status, self.said())
    }

    pub(crate) fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).unwrap()
    }

    /// The whole answer to these bytes.
    pub(crate) fn ask(&self, request: &[u8]) -> String {
        answer(self.connect(), request)
    }

    pub(crate) fn scrape(&self) -> Samples {
        let answer = self.ask(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK"), "{answer}");
        Samples::parse(body)
    }

    /// Scrapes until this is there.
    pub(crate) fn until<T>(&self, what: &str, answer: impl Fn(&Samples) -> Option<T>) -> T {
        until_some(what, || answer(&self.scrape()))
    }

    /// Scrapes until this is there, and is the same in five scrapes: a look that comes while a thread ends may miss it
    /// once.
    pub(crate) fn settled<T: PartialEq>(&self, answer: impl Fn(&Samples) -> Option<T>) -> T {
        let mut last = (None, 0);
        until_some("the counts stay", || {
            let now = answer(&self.scrape());
            let same = if now.is_some() && now == last.0 { last.1 + 1 } else { 0 };
            last = (now, same);
            if same < 5 { None } else { last.0.take() }
        })
    }

    /// How many descriptors it keeps open: a look at a process or a group has some for a moment.
    pub(crate) fn descriptors(&self) -> usize {
        let is_kept = |to: &String| !to.starts_with("/proc/") && !to.starts_with("/sys/");
        self.opened().iter().filter(|to| is_kept(to)).count()
    }

    /// The same once no connection is open any more: a client has its whole answer before that is closed.
    pub(crate) fn descriptors_at_rest(&self) -> usize {
        let sockets = || self.opened().iter().filter(|to| to.starts_with("socket:")).count();
        // The one where it listens.
        until("no connection is open", || sockets() == 1);
        self.descriptors()
    }

    /// What its descriptors lead to.
    fn opened(&self) -> Vec<String> {
        let entries = fs::read_dir(format!("/proc/{}/fd", self.pid())).unwrap();
        let to = |entry: io::Result<fs::DirEntry>| fs::read_link(entry.ok()?.path()).ok();
        entries.filter_map(to).map(|to| to.to_string_lossy().into_owned()).collect()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What comes until the other side closes; a reset is an end like every other.
pub(crate) fn answer(mut stream: TcpStream, request: &[u8]) -> String {
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let _ = stream.shutdown(Shutdown::Both);
    String::from_utf8(answer).unwrap()
}

/// The samples of a scrape, by name and labels as they are written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Samples {
    pub(crate) text: String,
    values: BTreeMap<String, f64>,
}

impl Samples {
    pub(crate) fn parse(text: &str) -> Self {
        assert!(text.ends_with("\n# EOF\n"), "cut off: {text}");
        let mut values = BTreeMap::new();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (name, value) = line.rsplit_once(' ').unwrap();
            let old = values.insert(name.to_owned(), value.parse().unwrap());
            assert!(old.is_none(), "twice: {name}");
        }
        Self { text: text.to_owned(), values }
    }

    /// The value of a series; 0 where it is not there.
    pub(crate) fn get(&self, series: &str) -> f64 {
        self.values.get(series).copied().unwrap_or(0.0)
    }

    /// Its calls of a service.
    pub(crate) fn calls(&self, service: &str, call: &str) -> u64 {
        self.get(&format!("iotomy_calls_total{{service=\"{service}\",call=\"{call}\"}}")) as u64
    }

    /// Those of a service alone.
    pub(crate) fn of(&self, service: &str) -> Self {
        let label = format!("service=\"{service}\"");
        let is_its = |(name, _): &(&String, &f64)| name.contains(&label);
        let values = self.values.iter().filter(is_its).map(|(name, value)| (name.clone(), *value));
        Self { text: String::new(), values: values.collect() }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.values.iter().map(|(name, value)| (name.as_str(), *value))
    }

    /// Panics where a counter is less than it was.
    pub(crate) fn assert_not_before(&self, earlier: &Self) {
        let is_counter = |name: &str| {
            let name = name.split('{').next().unwrap();
            ["_total", "_bucket", "_sum", "_count"].iter().any(|end| name.ends_with(end))
        };
        for (name, before) in earlier.iter().filter(|(name, _)| is_counter(name)) {
            let now = self.values.get(name);
            assert!(now.is_some_and(|now| *now >= before), "{name}: {before}, then {now:?}");
        }
    }
}

/// A program under a name of its own, so that what it does is told from what others do.
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) name: String,
    _folder: tempfile::TempDir,
}

impl Program {
    /// A copy of this one of the machine.
    pub(crate) fn copy_of(program: &str, name: &[u8]) -> Self {
        use std::os::unix::ffi::OsStrExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(std::ffi::OsStr::from_bytes(name));
        fs::copy(Path::new("/usr/bin").join(program).canonicalize().unwrap(), &path).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        Self { path, name: String::from_utf8_lossy(name).into_owned(), _folder: folder }
    }

    /// One called so with this process's number.
    pub(crate) fn unique(program: &str) -> Self {
        Self::copy_of(program, format!("{program}-{}", std::process::id()).as_bytes())
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, words: &[&str]) -> ExitStatus {
        loop {
            match self.command().args(words).status() {
                // Another test's process that was forked a moment ago has it open until its exec.
                Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                    std::thread::yield_now();
                }
                status => return status.unwrap(),
            }
        }
    }

    /// As `dd`: so many reads and writes of one byte, besides those of its start.
    pub(crate) fn dd(&self, count: u64) {
        let count = format!("count={count}");
        let status = self.run(&["if=/dev/zero", "of=/dev/null", "bs=1", "status=none", &count]);
        assert!(status.success());
    }
}
