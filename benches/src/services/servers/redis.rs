//! redis-server, which keeps nothing in files.

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Error, Result, bail};

use crate::child::{Signals, guarded};
use crate::run::version;
use crate::servers::{Server, installed, start_redis};
use crate::services::service::{Running, Served, Service, TIME, WRITE, last_line};

/// Clients that ask at the same time.
const CLIENTS: &str = "20";

pub(crate) static SERVICE: Service = Service {
    name: "redis",
    summary: "redis-server, asked by `redis-benchmark -t get` with 20 clients",
    answer: WRITE,
    comm: None,
    // Of its timer, which looks at its memory.
    rare_call: "openat",
    most: 1.12,
    aim: Some(1.05),
    versions: || version(Path::new("redis-server")).into_iter().collect(),
    start: |_, folder| {
        installed(&["redis-server", "redis-benchmark"]).map_err(Error::msg)?;
        let (server, port) = start_redis(folder)?;
        Ok(Box::new(Redis { server, port }))
    },
};

/// A running redis-server.
#[derive(Debug)]
struct Redis {
    server: Server,
    port: u16,
}

impl Running for Redis {
    fn pid(&self) -> u32 {
        self.server.pid()
    }

    fn load(&self, signals: &Signals, folder: &Path) -> Result<Served> {
        let (port, errors) = (self.port.to_string(), folder.join("load-errors"));
        let words = ["redis-benchmark", "-p", &port, "-q", "-t", "get", "-c", CLIENTS, "-n"];
        let argv: Vec<String> =
            words.into_iter().chain(["1000000000"]).map(str::to_owned).collect();
        let mut command = guarded(&argv, File::create(&errors).context("cannot create a file")?)?;
        let mut child = command.spawn().context("cannot start redis-benchmark")?;
        // It makes a number of requests, however long that takes: it is ended, and redis has counted.
        let (before, began) = (self.gets()?, Instant::now());
        let ended = signals.wait_for(&mut child, TIME)?;
        let (after, took) = (self.gets()?, began.elapsed());
        if let Some(status) = ended {
            bail!("redis-benchmark ended with {status}; its last line: {}", last_line(&errors));
        }
        let requests = after - before;
        Ok(Served { requests, per_second: requests / took.as_secs_f64() })
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_commands_is_read() {
        assert_eq!(gets("# Commandstats\r\ncmdstat_get:calls=12,usec=3\r\n"), 12.0);
        assert_eq!(gets("# Commandstats\r\ncmdstat_info:calls=1,usec=3\r\n"), 0.0);
    }
}
