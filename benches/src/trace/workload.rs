//! Programs whose CPU time is compared with and without a watch: a loop of calls, a copier, a database, and two servers
//! with their clients.
//!
//! A part of this program starts them, waits for all of them and writes their CPU time to a file. It runs bare or under
//! the watch, which then watches all of them, so the same clock measures both cases.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use nix::sys::resource::{UsageWho, getrusage};

use crate::child::{die_with_parent, own_path};
use crate::servers::{build_go, installed, start_go, start_redis};

/// The workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Workload {
    /// The cheapest call in a loop.
    Getppid,
    /// 8 KiB read and written in turn.
    Dd,
    /// redis-server and redis-benchmark, over the loopback.
    Redis,
    /// An HTTP server in Go and its clients.
    Go,
    /// 100,000 rows written and read in a file.
    Sqlite3,
}

/// The numbers for half a second of work on usual machines.
const GETPPIDS: u64 = 1 << 21;
const BLOCKS: u32 = 200_000;
const REQUESTS: u32 = 40_000;
const CLIENTS: u32 = 20;
const SQL: &str = "PRAGMA synchronous=OFF; PRAGMA cache_size=50; DROP TABLE IF EXISTS t;\
    CREATE TABLE t(id INTEGER PRIMARY KEY, text);\
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<100000)\
    INSERT INTO t SELECT i, hex(i*7919) FROM n;\
    SELECT sum(length(text)) FROM t WHERE id%3=0; SELECT sum(length(text)) FROM t WHERE id%5=0;";

impl Workload {
    pub(crate) const ALL: [Self; 5] =
        [Self::Getppid, Self::Dd, Self::Redis, Self::Go, Self::Sqlite3];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Getppid => "getppid",
            Self::Dd => "dd",
            Self::Redis => "redis",
            Self::Go => "go",
            Self::Sqlite3 => "sqlite3",
        }
    }

    /// Prepares the workload's files in the directory.
    ///
    /// # Errors
    /// When the workload cannot run here; the error is the reason.
    pub(crate) fn prepare(self, folder: &Path) -> Result<(), String> {
        let programs: &[&str] = match self {
            Self::Getppid => &[],
            Self::Dd => &["dd"],
            Self::Redis => &["redis-server", "redis-benchmark"],
            Self::Go => &["go"],
            Self::Sqlite3 => &["sqlite3"],
        };
        installed(programs)?;
        if self == Self::Go {
            build_go(folder)?;
        }
        Ok(())
    }

    /// Returns the command that runs the workload and writes its CPU time to a file in the
    /// directory.
    pub(crate) fn argv(self, folder: &Path) -> Result<Vec<String>> {
        let text = |path: &Path| path.to_str().map(str::to_owned).context("a path is not UTF-8");
        let part = ["trace", "workload", self.name()].map(str::to_owned);
        Ok([vec![text(&own_path()?)?], part.to_vec(), vec![text(folder)?]].concat())
    }
}

/// Returns the CPU time of the workload, in ns.
pub(crate) fn cpu_ns(folder: &Path) -> Result<f64> {
    let text = fs::read_to_string(folder.join("cpu")).context("the workload left no figure")?;
    text.trim().parse().context("the workload's figure")
}

/// Options of a workload.
#[derive(Debug, clap::Args)]
pub(crate) struct WorkloadArgs {
    what: Workload,
    folder: PathBuf,
}

/// Runs the workload.
pub(crate) fn run(args: &WorkloadArgs) -> Result<()> {
    die_with_parent()?;
    match args.what {
        Workload::Getppid => {
            for _ in 0..GETPPIDS {
                std::hint::black_box(rustix::process::getppid());
            }
        }
        Workload::Dd => done(Command::new("dd").args([
            "if=/dev/zero",
            "of=/dev/null",
            "bs=8k",
            "status=none",
            &format!("count={BLOCKS}"),
        ]))?,
        Workload::Redis => redis(&args.folder)?,
        Workload::Go => go(&args.folder.join("server"))?,
        Workload::Sqlite3 => {
            done(Command::new("sqlite3").arg(args.folder.join("rows.db")).arg(SQL))?;
        }
    }
    let who = match args.what {
        Workload::Getppid => UsageWho::RUSAGE_SELF,
        _ => UsageWho::RUSAGE_CHILDREN,
    };
    let usage = getrusage(who).context("getrusage")?;
    let ns = [usage.user_time(), usage.system_time()]
        .map(|time| time.tv_sec() * 1_000_000_000 + time.tv_usec() * 1_000);
    fs::write(args.folder.join("cpu"), (ns[0] + ns[1]).to_string()).context("cannot write")
}

fn done(command: &mut Command) -> Result<()> {
    let status = command.stdout(Stdio::null()).status().with_context(|| format!("{command:?}"))?;
    if !status.success() {
        bail!("{:?} ended with {status}", command.get_program());
    }
    Ok(())
}

fn redis(folder: &Path) -> Result<()> {
    let (server, port) = start_redis(folder)?;
    let [port, requests, clients] = [port.into(), REQUESTS, CLIENTS].map(|n: u32| n.to_string());
    let mut client = Command::new("redis-benchmark");
    done(client.args(["-p", &port, "-q", "-t", "get", "-n", &requests, "-c", &clients]))?;
    drop(server);
    Ok(())
}

fn go(program: &Path) -> Result<()> {
    let (server, address) = start_go(program)?;
    let [requests, clients] = [REQUESTS / 2, CLIENTS].map(|n| n.to_string());
    done(Command::new(program).args(["ask", &address, &requests, &clients]))?;
    drop(server);
    Ok(())
}
