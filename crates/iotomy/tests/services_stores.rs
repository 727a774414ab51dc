//! Counts of `iotomy trace` against the statistics that redis, memcached and PostgreSQL keep of themselves, between two
//! quiet moments.

use crate::support;

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use nix::unistd::User;
use support::servers::{
    Client, Server, Sockets, ended, free_port, successes, until_quiet, watched,
};
use support::{Need, bpf, children, has, has_server, root, skip, until};

const CLIENTS: usize = 3;
const ROUNDS: usize = 100;

/// Whether an answer of redis is whole: a status, or a text of the length that it begins with.
pub(crate) fn is_redis(text: &str) -> bool {
    match text.strip_prefix('$').and_then(|text| text.split_once("\r\n")) {
        Some((length, body)) => length.parse::<usize>().unwrap() + 2 == body.len(),
        None => text.starts_with(['+', '-', ':']) && text.ends_with("\r\n"),
    }
}

/// The number behind `name:` in what redis says of itself.
pub(crate) fn redis_figure(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name}:")));
    line.unwrap_or_else(|| panic!("no {name}: {text}")).parse().unwrap()
}

/// The number of all commands, and of those of a name.
fn redis_commands(text: &str, name: &str) -> u64 {
    let rows = text.lines().filter_map(|line| line.strip_prefix("cmdstat_")?.split_once(":calls="));
    let rows = rows.filter(|(command, _)| name.is_empty() || *command == name);
    rows.map(|(_, rest)| rest.split(',').next().unwrap().parse::<u64>().unwrap()).sum()
}

pub(crate) fn redis(port: u16, folder: &Path) -> Server {
    let mut command = Command::new("redis-server");
    command.args(["--bind", "127.0.0.1", "--save", "", "--port", &port.to_string(), "--dir"]);
    Server::on(port, command.arg(folder))
}

#[test]
fn commands_and_bytes_of_redis_are_those_of_its_own_statistics() {
    if !bpf() || !has_server("redis-server") {
        return;
    }
    let (port, folder) = (free_port(), tempfile::tempdir().unwrap());
    let server = redis(port, folder.path());
    let mut control = Client::to(port);
    let mut clients = [(); CLIENTS].map(|()| Client::to(port));
    let ping = "PING\r\n";
    for client in clients.iter_mut().chain([&mut control]) {
        client.ask(ping, is_redis);
    }

    let watching = watched(&["-p", &server.pid().to_string()], server.pid());
    let (stats, commands) = ("INFO stats\r\n", "INFO commandstats\r\n");
    let before = [stats, commands].map(|info| control.ask(info, is_redis));
    for round in 0..ROUNDS {
        for (number, client) in clients.iter_mut().enumerate() {
            let value = "v".repeat(round * 7 + number);
            assert_eq!(client.ask(&format!("SET k{number} \"{value}\"\r\n"), is_redis), "+OK\r\n");
            assert!(client.ask(&format!("GET k{number}\r\n"), is_redis).contains(&value));
        }
    }
    let after = [commands, stats].map(|info| control.ask(info, is_redis));
    let record = ended(watching, server.pid());

    let made = |name| redis_commands(&after[0], name) - redis_commands(&before[1], name);
    assert_eq!([made("get"), made("set")], [(CLIENTS * ROUNDS) as u64; 2]);
    let grown = |name| redis_figure(&after[1], name) - redis_figure(&before[0], name);
    let sockets = Sockets::of(&record);
    // Each command is answered by a write. What redis says of its commands has that very command only later, and it is
    // asked for its bytes twice.
    assert_eq!(sockets.write_calls, made("") + 3);
    // What redis says of its bytes has the command, and not yet the answer.
    assert_eq!(sockets.read_bytes, grown("total_net_input_bytes") + stats.len() as u64);
    assert_eq!(sockets.write_bytes, grown("total_net_output_bytes") + after[1].len() as u64);
}

pub(crate) fn is_memcached(text: &str) -> bool {
    ["END\r\n", "STORED\r\n"].iter().any(|end| text.ends_with(end))
}

pub(crate) fn memcached_figure(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("STAT {name} ")));
    line.unwrap().trim().parse().unwrap()
}

pub(crate) fn memcached(port: u16) -> Server {
    let mut command = Command::new("memcached");
    command.args(["-l", "127.0.0.1", "-p", &port.to_string(), "-U", "0", "-u", "root", "-t", "2"]);
    Server::on(port, &mut command)
}

#[test]
fn commands_and_bytes_of_memcached_are_those_of_its_own_statistics() {
    if !bpf() || !has_server("memcached") {
        return;
    }
    let port = free_port();
    let server = memcached(port);
    let mut control = Client::to(port);
    let mut clients = [(); CLIENTS].map(|()| Client::to(port));
    for client in clients.iter_mut().chain([&mut control]) {
        client.ask("get nothing\r\n", is_memcached);
    }

    let watching = watched(&["-p", &server.pid().to_string()], server.pid());
    let stats = "stats\r\n";
    let before = control.ask(stats, is_memcached);
    for round in 0..ROUNDS {
        for (number, client) in clients.iter_mut().enumerate() {
            let value = "v".repeat(round * 7 + number);
            let set = format!("set k{number} 0 0 {}\r\n{value}\r\n", value.len());
            assert_eq!(client.ask(&set, is_memcached), "STORED\r\n");
            assert!(client.ask(&format!("get k{number}\r\n"), is_memcached).contains(&value));
        }
    }
    // A thread counts what it sent after it sent it, and another one tells the counts.
    until_quiet(server.pid());
    let after = control.ask(stats, is_memcached);
    let record = ended(watching, server.pid());

    let grown = |name| memcached_figure(&after, name) - memcached_figure(&before, name);
    let [gets, sets] = ["cmd_get", "cmd_set"].map(grown);
    assert_eq!([gets, sets], [(CLIENTS * ROUNDS) as u64; 2]);
    let sockets = Sockets::of(&record);
    assert_eq!(sockets.write_calls, gets + sets + 2, "the two are those of the statistics");
    assert_eq!(sockets.read_bytes, grown("bytes_read") + stats.len() as u64);
    assert_eq!(sockets.write_bytes, grown("bytes_written") + after.len() as u64);
}

/// PostgreSQL in a directory of its own, as its own user.
pub(crate) struct Postgres {
    server: Server,
    folder: tempfile::TempDir,
    programs: PathBuf,
}

impl Postgres {
    /// Starts it with an empty database of pgbench; `None` if it is not installed.
    pub(crate) fn start() -> Option<Self> {
        let all = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
        let programs = all.map(|entry| entry.path().join("bin"));
        let programs = programs.filter(|bin| bin.join("postgres").is_file()).max();
        let user = User::from_name("postgres").unwrap();
        let (Some(programs), Some(user)) = (programs, user) else {
            skip(Need::Servers, "there is no PostgreSQL");
            return None;
        };
        // Its socket's path must be short, and its user must be able to go there.
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        chown(folder.path(), Some(user.uid.as_raw()), Some(user.gid.as_raw())).unwrap();
        let place = folder.path().to_str().unwrap();
        let data = folder.path().join("data");
        let initdb = ["-D", data.to_str().unwrap(), "-A", "trust", "-U", "postgres", "-N"];
        Self::run(&mut Self::as_its_user(&programs.join("initdb"), &initdb));
        let options = ["-D", data.to_str().unwrap(), "-k", place, "-c", "listen_addresses="];
        // Its work would come at any time.
        let options = [&options[..], &["-c", "autovacuum=off"]].concat();
        let server = Server::start(&mut Self::as_its_user(&programs.join("postgres"), &options));
        // So that it leaves no shared memory.
        let server = server.ended_by(Signal::SIGQUIT);
        until("it is ready", || {
            let state = fs::read_to_string(data.join("postmaster.pid")).ok()?;
            (state.lines().nth(7)?.trim() == "ready").then_some(())
        });
        let postgres = Self { server, folder, programs };
        postgres.pgbench(&["-i", "-q", "-s", "1"]);
        Some(postgres)
    }

    fn as_its_user(program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]);
        command.args(["--pdeathsig=QUIT", "--"]).arg(program).args(arguments).current_dir("/");
        command
    }

    fn run(command: &mut Command) -> String {
        let output = command.stdin(Stdio::null()).output().unwrap();
        assert!(output.status.success(), "{command:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// The command line of pgbench.
    pub(crate) fn pgbench_words(&self, arguments: &[&str]) -> Vec<String> {
        let program = self.programs.join("pgbench").display().to_string();
        let place = self.folder.path().to_str().unwrap();
        let words = [&[&*program, "-h", place, "-U", "postgres"], arguments, &["postgres"]];
        words.concat().into_iter().map(str::to_owned).collect()
    }

    /// Runs pgbench, and gives what it prints.
    pub(crate) fn pgbench(&self, arguments: &[&str]) -> String {
        let words = self.pgbench_words(arguments);
        let printed = Self::run(Command::new(&words[0]).args(&words[1..]));
        self.settled();
        printed
    }

    /// Waits until every backend has ended and so has told its counts: each lives as long as its client.
    fn settled(&self) {
        until("the backends have ended", || {
            let backends = children(self.server.pid()).into_iter().filter(|child| {
                let title = fs::read_to_string(format!("/proc/{child}/cmdline"));
                title.is_ok_and(|title| title.starts_with("postgres: postgres "))
            });
            (backends.count() == 0).then_some(())
        });
    }

    fn figure(&self, query: &str) -> u64 {
        let mut command = Command::new(self.programs.join("psql"));
        command.args(["-h", self.folder.path().to_str().unwrap(), "-U", "postgres"]);
        let answer = Self::run(command.args(["-X", "-A", "-t", "-c", query, "postgres"]));
        self.settled();
        answer.trim().parse().unwrap()
    }

    pub(crate) fn commits(&self) -> u64 {
        self.figure("SELECT xact_commit FROM pg_stat_database WHERE datname = 'postgres'")
    }

    pub(crate) fn syncs(&self) -> u64 {
        self.figure("SELECT wal_sync FROM pg_stat_wal")
    }
}

#[test]
fn transactions_and_log_flushes_of_postgres_are_those_of_its_own_statistics() {
    if !bpf() || !root() || !has("setpriv") {
        return;
    }
    let Some(postgres) = Postgres::start() else { return };
    let pid = postgres.pid();
    // The number of answers when clients connect depends on the version, and each look at a statistic is a commit: both
    // are the same in the two runs.
    let [few, many] = ["10", "30"].map(|transactions| {
        let [commits, syncs] = [postgres.commits(), postgres.syncs()];
        let watching = watched(&["-p", &pid.to_string()], pid);
        postgres.pgbench(&["-n", "-c", "8", "-j", "1", "-t", transactions]);
        let record = ended(watching, pid);
        let commits = postgres.commits() - commits;
        let flushed = successes(&record, "fdatasync");
        assert!(flushed > 0);
        // The process that writes the log in the background tells its counts a little later.
        let now = until("all flushes are told", || {
            let now = postgres.syncs() - syncs;
            (now >= flushed).then_some(now)
        });
        assert_eq!(now, flushed);
        (successes(&record, "sendto"), commits)
    });
    let commits = many.1 - few.1;
    assert_eq!(commits, 8 * (30 - 10));
    // A transaction of pgbench has seven statements, each of which is answered by a call.
    assert_eq!(many.0 - few.0, 7 * commits);
}
