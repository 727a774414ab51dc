//! A PostgreSQL server in a directory of its own, as a user that is not root.
//!
//! The invariant: whatever ends this program, the server shuts down at once and leaves no shared memory. SIGKILL would
//! leave some, so the signal that it receives at its parent's death is SIGQUIT.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Gid, Pid, Uid, User, setgid, setgroups, setuid};

use crate::child::{Signals, go_first, part, unblock_signals};
use crate::run::version;
use crate::servers::{Server, in_path, installed};
use crate::services::service::{Running, SENDTO, Served, Service, TIME, generated, last_line};

/// The scale of pgbench: a database of 75 MB.
const SCALE: &str = "5";
/// Clients that ask at the same time.
const CLIENTS: &str = "8";
/// A server that does not end sooner is killed.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) static SERVICE: Service = Service {
    name: "postgres",
    summary: "PostgreSQL with a database of `pgbench -s 5` in a temporary directory, asked by `pgbench -c 8`",
    answer: SENDTO,
    comm: Some("postgres"),
    rare_call: "fdatasync",
    most: 1.05,
    aim: None,
    versions: || {
        let server = programs().map(|folder| folder.join("postgres"));
        server.iter().flat_map(|server| version(server)).collect()
    },
    start: |signals, folder| {
        installed(&["pgbench"]).map_err(Error::msg)?;
        Ok(Box::new(Postgres::start(signals, folder)?))
    },
};

/// A running server; it is shut down when this value is dropped.
#[derive(Debug)]
struct Postgres {
    server: Server,
    /// The directory of its socket.
    folder: PathBuf,
}

/// Options of the helper that becomes a command of another user.
#[derive(Debug, clap::Args)]
pub(crate) struct AsUserArgs {
    user: u32,
    group: u32,
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    argv: Vec<OsString>,
}

/// Becomes the command, as another user, and requests a SIGQUIT at its parent's death.
pub(crate) fn as_user(args: &AsUserArgs) -> Result<()> {
    let [program, arguments @ ..] = &args.argv[..] else { bail!("no command") };
    unblock_signals()?;
    go_first();
    let group = Gid::from_raw(args.group);
    setgroups(&[group]).context("cannot leave root's groups")?;
    setgid(group).context("cannot change the group")?;
    setuid(Uid::from_raw(args.user)).context("cannot change the user")?;
    // After the change of user, which clears it.
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::QUIT))
        .context("cannot ask for a signal at the parent's death")?;
    Err(Command::new(program).args(arguments).exec())
        .with_context(|| format!("cannot run {}", program.display()))
}

/// Returns the directory of the newest server's programs.
///
/// # Errors
/// The reason why there is none.
fn programs() -> Result<PathBuf, String> {
    let version = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let all = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = all.map(|entry| entry.path()).max_by_key(version).map(|path| path.join("bin"));
    let folder = newest.or_else(|| in_path("postgres").and_then(|p| Some(p.parent()?.to_owned())));
    folder
        .filter(|folder| folder.join("postgres").is_file())
        .ok_or_else(|| "postgres is not installed".to_owned())
}

impl Postgres {
    /// Makes a database for pgbench below `scratch`, and starts the server.
    fn start(signals: &Signals, scratch: &Path) -> Result<Self> {
        let programs = programs().map_err(anyhow::Error::msg)?;
        let folder = scratch.join("postgres");
        fs::create_dir(&folder).context("cannot make a folder")?;
        let named = |name| User::from_name(name).ok().flatten();
        let user = named("postgres").or_else(|| named("nobody")).context("there is no user")?;
        let (uid, gid) = (user.uid.as_raw(), user.gid.as_raw());
        chown(&folder, Some(uid), Some(gid)).context("cannot give a folder away")?;
        fs::set_permissions(scratch, fs::Permissions::from_mode(0o711))
            .context("cannot open the temporary folder")?;
        let log = folder.join("log");
        let command = |program: &str, arguments: &[&str]| {
            let mut command = part("services", "as-user")?;
            command.args([uid, gid].map(|id| id.to_string())).arg(programs.join(program));
            command.args(arguments).stdin(Stdio::null()).current_dir(&folder);
            let log = File::options().append(true).create(true).open(&log);
            let log = log.context("cannot create a log")?;
            command.stdout(log.try_clone()?).stderr(log);
            Ok::<Command, anyhow::Error>(command)
        };
        let run = |mut command: Command| {
            let mut child = command.spawn().context("cannot start a program of PostgreSQL")?;
            let status = signals.wait(&mut child)?;
            if !status.success() {
                bail!("{status}; {}", last_line(&log));
            }
            Ok(())
        };
        let place = folder.to_str().context("a path is not UTF-8")?;
        run(command("initdb", &["-D", "data", "-A", "trust", "-U", "postgres", "--no-sync"])?)
            .context("initdb failed")?;
        let mut server = vec!["-D", "data", "-k", place, "-c", "listen_addresses="];
        // Its work would be in some runs and not in others.
        server.extend(["-c", "autovacuum=off", "-c", "max_wal_size=4GB"]);
        // In its directory, not below /dev/shm.
        server.extend(["-c", "dynamic_shared_memory_type=mmap"]);
        let child = command("postgres", &server)?.spawn().context("cannot start postgres")?;
        let server = Server::new(child);
        let mut running = Self { server, folder: folder.clone() };
        let is_ready = || {
            let state = fs::read_to_string(folder.join("data/postmaster.pid")).unwrap_or_default();
            state.lines().nth(7).is_some_and(|line| line.trim() == "ready")
        };
        let ready = running.server.until_ready("postgres", is_ready);
        ready.with_context(|| last_line(&log))?;
        let pgbench = ["-i", "-q", "-h", place, "-U", "postgres", "-s", SCALE, "postgres"];
        let mut fill = part("services", "as-user")?;
        fill.args([uid, gid].map(|id| id.to_string())).arg("pgbench").args(pgbench);
        fill.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        run(fill).context("pgbench -i failed")?;
        Ok(running)
    }
}

impl Running for Postgres {
    fn pid(&self) -> u32 {
        self.server.pid()
    }

    fn load(&self, signals: &Signals, folder: &Path) -> Result<Served> {
        let (place, seconds) = (self.folder.to_str(), TIME.as_secs().to_string());
        let place = place.context("a path is not UTF-8")?;
        let words = ["pgbench", "-n", "-h", place, "-U", "postgres", "-c", CLIENTS];
        let more = ["-j", "1", "-T", &seconds, "postgres"];
        let argv: Vec<String> = words.into_iter().chain(more).map(str::to_owned).collect();
        generated(signals, folder, &argv, pgbench)
    }
}

/// Parses `number of transactions actually processed: 1234`, `tps = 123.4 (without initial connection time)`.
fn pgbench(text: &str) -> Option<Served> {
    let after = |start: &str| text.lines().find_map(|line| line.strip_prefix(start));
    let requests = after("number of transactions actually processed: ")?.split('/').next()?;
    let per_second = after("tps = ")?.split(' ').next()?.parse().ok()?;
    Some(Served { requests: requests.trim().parse().ok()?, per_second })
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let pid = Pid::from_raw(self.server.pid().cast_signed());
        let _ = kill(pid, Signal::SIGQUIT);
        let until = Instant::now() + PATIENCE;
        // An error means that it has ended; it is reaped when the server is dropped.
        while is_alive(self.server.pid()) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

fn is_alive(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pgbench_reports_is_read() {
        let text = "number of transactions actually processed: 1234\nlatency average = 4 ms\n\
                    tps = 1230.5 (without initial connection time)\n";
        assert_eq!(pgbench(text), Some(Served { requests: 1234.0, per_second: 1230.5 }));
        assert_eq!(pgbench("pgbench: error"), None);
    }
}
