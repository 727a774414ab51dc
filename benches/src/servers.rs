//! Servers that benches start: on ports and in directories of their own.
//!
//! A server ends when its value is dropped, and through its guard when this program is killed.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::child::guard_of;

/// A server that needs longer to start is considered failed.
const PATIENCE: Duration = Duration::from_secs(20);
const GO_SOURCE: &str = include_str!("servers/server.go");

/// A server that is killed and reaped when this value is dropped.
#[derive(Debug)]
pub(crate) struct Server(Child);

impl Server {
    /// Wraps a child that is a server.
    pub(crate) fn new(child: Child) -> Self {
        Self(child)
    }

    /// Starts a server that listens on this port of the loopback, and waits until it does.
    ///
    /// # Errors
    /// When it ends first, or does not listen in time.
    pub(crate) fn on(port: u16, command: &Command) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let mut command = guard_of(command)?;
        let child = command.stdout(Stdio::null()).spawn();
        let mut server = Self(child.with_context(|| format!("cannot run {name}"))?);
        server.until_ready(&name, || TcpStream::connect(("127.0.0.1", port)).is_ok())?;
        Ok(server)
    }

    /// Starts a server that chooses its port and prints its address in a line, and returns it with the address.
    ///
    /// # Errors
    /// When it prints none.
    pub(crate) fn that_says_its_address(command: &Command) -> Result<(Self, String)> {
        let mut command = guard_of(command)?;
        let mut child = command.stdout(Stdio::piped()).spawn().context("cannot run the server")?;
        let out = child.stdout.take();
        let server = Self(child);
        let mut address = String::new();
        let mut out = BufReader::new(out.context("the server has no output")?);
        out.read_line(&mut address).context("cannot read the server's address")?;
        if address.trim().is_empty() {
            bail!("the server printed no address");
        }
        Ok((server, address.trim().to_owned()))
    }

    /// Returns its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Waits until `is_ready` holds.
    ///
    /// # Errors
    /// When the server ends first, or does not become ready in time.
    pub(crate) fn until_ready(&mut self, name: &str, is_ready: impl Fn() -> bool) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        while !is_ready() {
            if let Some(status) = self.0.try_wait().context("cannot wait for a server")? {
                bail!("{name} ended with {status}");
            }
            if Instant::now() > until {
                bail!("{name} does not listen");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the path of a program, as a shell would find it.
pub(crate) fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Checks that programs are installed.
///
/// # Errors
/// The name of one that is not.
pub(crate) fn installed(programs: &[&str]) -> Result<(), String> {
    match programs.iter().find(|program| in_path(program).is_none()) {
        Some(program) => Err(format!("{program} is not installed")),
        None => Ok(()),
    }
}

/// Compiles the HTTP server in Go and returns its path.
///
/// # Errors
/// The reason why it cannot be compiled.
pub(crate) fn build_go(folder: &Path) -> Result<PathBuf, String> {
    installed(&["go"])?;
    let (source, program) = (folder.join("server.go"), folder.join("server"));
    fs::write(&source, GO_SOURCE).map_err(|e| format!("cannot write the server: {e}"))?;
    let mut go = Command::new("go");
    go.args(["build", "-o"]).arg(&program).arg(source);
    let built = go.output().map_err(|e| format!("cannot run go: {e}"))?;
    if !built.status.success() {
        return Err(format!("go: {}", String::from_utf8_lossy(&built.stderr).trim()));
    }
    Ok(program)
}

/// Starts the HTTP server in Go and returns it with its address.
pub(crate) fn start_go(program: &Path) -> Result<(Server, String)> {
    Server::that_says_its_address(Command::new(program).arg("serve"))
}

/// A free port that the kernel gives to no client: who asks for a port of clients until a server listens there can be
/// connected to itself.
pub(crate) fn free_port() -> Result<u16> {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")?;
    let first_of_clients = range.split_whitespace().next().and_then(|port| port.parse().ok());
    let first_of_clients: u16 = first_of_clients.context("the range of ports has no first one")?;
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    (1024..first_of_clients).rev().find(is_free).context("no free port")
}

/// Starts redis-server, without files, and returns it with its port.
pub(crate) fn start_redis(folder: &Path) -> Result<(Server, u16)> {
    let port = free_port()?;
    let mut command = Command::new("redis-server");
    command.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
    command.args(["--appendonly", "no", "--dir"]).arg(folder);
    Ok((Server::on(port, &command)?, port))
}
