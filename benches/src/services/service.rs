//! The servers, and the load generators that ask them.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::child::{Signals, guarded};
use crate::run::version;
use crate::servers::{Server, build_go, installed, start_go, start_redis};
use crate::services::postgres::{self, Postgres};

/// Clients that ask at the same time.
const WEB_CLIENTS: &str = "16";
const REDIS_CLIENTS: &str = "20";
const SQL_CLIENTS: &str = "8";
/// The length of a run.
const TIME: Duration = Duration::from_secs(1);

/// A kind of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Service {
    /// An HTTP server in Go under wrk.
    Go,
    /// redis-server under redis-benchmark.
    Redis,
    /// PostgreSQL under pgbench.
    Postgres,
}

/// A running server.
#[derive(Debug)]
pub(crate) enum Running {
    Go(Server, String),
    Redis(Redis),
    Postgres(Postgres),
}

/// A running redis-server.
#[derive(Debug)]
pub(crate) struct Redis {
    server: Server,
    port: u16,
}

/// What a load generator reports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Served {
    pub(crate) requests: f64,
    pub(crate) per_second: f64,
}

impl Service {
    pub(crate) const ALL: [Self; 3] = [Self::Go, Self::Redis, Self::Postgres];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Go => "go",
            Self::Redis => "redis",
            Self::Postgres => "postgres",
        }
    }

    /// Returns the server's kernel name, and the call by which it answers: its name and number.
    pub(crate) fn answers_by(self) -> (&'static str, &'static str, u32) {
        match self {
            Self::Go => ("server", "write", 1),
            Self::Redis => ("redis-server", "write", 1),
            Self::Postgres => ("postgres", "sendto", 44),
        }
    }

    /// Starts the server.
    ///
    /// # Errors
    /// The reason why it cannot be started.
    pub(crate) fn start(self, signals: &Signals, folder: &Path) -> Result<Running> {
        let programs: &[&str] = match self {
            Self::Go => &["wrk"],
            Self::Redis => &["redis-server", "redis-benchmark"],
            Self::Postgres => &["pgbench"],
        };
        installed(programs).map_err(anyhow::Error::msg)?;
        Ok(match self {
            Self::Go => {
                let program: PathBuf = build_go(folder).map_err(anyhow::Error::msg)?;
                let (server, address) = start_go(&program)?;
                Running::Go(server, address)
            }
            Self::Redis => {
                let (server, port) = start_redis(folder)?;
                Running::Redis(Redis { server, port })
            }
            Self::Postgres => Running::Postgres(Postgres::start(signals, folder)?),
        })
    }

    /// Returns the versions of the server and of the load generator.
    pub(crate) fn versions(self) -> Vec<String> {
        let of = |program: &Path| version(program).into_iter();
        match self {
            // `go --version` and `wrk --version` are errors; the Go server is of this repository.
            Self::Go => Vec::new(),
            Self::Redis => of(Path::new("redis-server")).collect(),
            Self::Postgres => {
                let server = postgres::programs().map(|folder| folder.join("postgres"));
                server.iter().flat_map(|server| of(server)).collect()
            }
        }
    }
}

impl Running {
    pub(crate) fn service(&self) -> Service {
        match self {
            Self::Go(..) => Service::Go,
            Self::Redis(_) => Service::Redis,
            Self::Postgres(_) => Service::Postgres,
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        match self {
            Self::Go(server, _) => server.pid(),
            Self::Redis(redis) => redis.server.pid(),
            Self::Postgres(server) => server.pid(),
        }
    }

    /// Runs the load generator and returns what it reports.
    ///
    /// # Errors
    /// When it fails, or a signal has arrived.
    pub(crate) fn load(&self, signals: &Signals, folder: &Path) -> Result<Served> {
        let (output, errors) = (folder.join("load"), folder.join("load-errors"));
        let create = |path: &Path| File::create(path).context("cannot create a file");
        let argv = self.generator()?;
        let mut command = guarded(&argv, create(&errors)?)?;
        command.stdout(create(&output)?);
        let mut child = command.spawn().with_context(|| format!("cannot start {}", argv[0]))?;
        if let Self::Redis(server) = self {
            // It makes a number of requests, however long that takes: it is ended, and redis has counted.
            let (before, began) = (server.gets()?, Instant::now());
            let ended = signals.wait_for(&mut child, TIME)?;
            let (after, took) = (server.gets()?, began.elapsed());
            if let Some(status) = ended {
                bail!("{} ended with {status} and said: {}", argv[0], last_line(&errors));
            }
            let requests = after - before;
            return Ok(Served { requests, per_second: requests / took.as_secs_f64() });
        }
        let status = signals.wait(&mut child)?;
        let text = fs::read_to_string(&output).context("cannot read a report")?;
        let served = if matches!(self, Self::Go(..)) { wrk(&text) } else { pgbench(&text) };
        match served.filter(|served| status.success() && served.requests > 0.0) {
            Some(served) => Ok(served),
            None => bail!("{} ended with {status} and said: {}", argv[0], last_line(&errors)),
        }
    }

    fn generator(&self) -> Result<Vec<String>> {
        let seconds = TIME.as_secs().to_string();
        let words: Vec<String> = match self {
            Self::Go(_, address) => {
                let url = format!("http://{address}/");
                let words = ["wrk", "-t", "1", "-c", WEB_CLIENTS, "-d", &seconds, &url];
                words.map(str::to_owned).to_vec()
            }
            Self::Redis(server) => {
                let port = server.port.to_string();
                let words = ["redis-benchmark", "-p", &port, "-q", "-t", "get", "-c"];
                let more = [REDIS_CLIENTS, "-n", "1000000000"];
                words.into_iter().chain(more).map(str::to_owned).collect()
            }
            Self::Postgres(server) => {
                let folder = server.folder.to_str().context("a path is not UTF-8")?;
                let words = ["pgbench", "-n", "-h", folder, "-U", "postgres", "-c", SQL_CLIENTS];
                let more = ["-j", "1", "-T", &seconds, "postgres"];
                words.into_iter().chain(more).map(str::to_owned).collect()
            }
        };
        Ok(words)
    }
}

fn last_line(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().rfind(|line| !line.is_empty()).unwrap_or("nothing").to_owned()
}

impl Redis {
    /// Asks for the number of GET commands so far.
    fn gets(&self) -> Result<f64> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).context("redis is gone")?;
        stream.write_all(b"INFO commandstats\r\nQUIT\r\n").context("cannot ask redis")?;
        let mut text = String::new();
        stream.read_to_string(&mut text).context("redis does not answer")?;
        Ok(gets(&text))
    }
}

/// Parses `cmdstat_get:calls=12345,usec=…`, which is absent before the first one.
fn gets(text: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix("cmdstat_get:calls="));
    line.and_then(|line| line.split(',').next()?.parse().ok()).unwrap_or(0.0)
}

/// Parses `  12345 requests in 1.00s, 1.4MB read`, `Requests/sec:  12345.6`.
fn wrk(text: &str) -> Option<Served> {
    let line = text.lines().find(|line| line.contains(" requests in "))?;
    let rate = text.lines().find_map(|line| line.strip_prefix("Requests/sec:"))?;
    let requests = line.split_whitespace().next()?.parse().ok()?;
    Some(Served { requests, per_second: rate.trim().parse().ok()? })
}

/// Parses `number of transactions actually processed: 1234`, `tps = 123.4 (without initial connection time)`.
fn pgbench(text: &str) -> Option<Served> {
    let after = |start: &str| text.lines().find_map(|line| line.strip_prefix(start));
    let requests = after("number of transactions actually processed: ")?.split('/').next()?;
    let per_second = after("tps = ")?.split(' ').next()?.parse().ok()?;
    Some(Served { requests: requests.trim().parse().ok()?, per_second })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_load_generators_report_is_read() {
        let text = "Running 1s test @ http://127.0.0.1:1/\n  1 threads and 16 connections\n  \
                    61234 requests in 1.10s, 7.24MB read\nRequests/sec:  55667.12\n";
        let served = |requests, per_second| Some(Served { requests, per_second });
        assert_eq!(wrk(text), served(61234.0, 55667.12));
        assert_eq!(gets("# Commandstats\r\ncmdstat_get:calls=12,usec=3\r\n"), 12.0);
        assert_eq!(gets("# Commandstats\r\ncmdstat_info:calls=1,usec=3\r\n"), 0.0);
        let text = "number of transactions actually processed: 1234\nlatency average = 4 ms\n\
                    tps = 1230.5 (without initial connection time)\n";
        assert_eq!(pgbench(text), served(1234.0, 1230.5));
        assert_eq!(pgbench("pgbench: error"), None);
    }
}
