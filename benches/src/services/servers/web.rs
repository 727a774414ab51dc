//! What web servers share: they are asked by `wrk`.

use std::path::Path;

use anyhow::Result;

use crate::child::Signals;
use crate::servers::Server;
use crate::services::service::{Running, Served, TIME, generated};

/// Clients that ask at the same time.
const CLIENTS: &str = "16";

/// A running web server.
#[derive(Debug)]
pub(super) struct Web {
    pub(super) server: Server,
    /// What is asked for.
    pub(super) url: String,
}

impl Running for Web {
    fn pid(&self) -> u32 {
        self.server.pid()
    }

    fn load(&self, signals: &Signals, folder: &Path) -> Result<Served> {
        let seconds = TIME.as_secs().to_string();
        let words = ["wrk", "-t", "1", "-c", CLIENTS, "-d", &seconds, &self.url];
        generated(signals, folder, &words.map(str::to_owned), wrk)
    }
}

/// Parses `  12345 requests in 1.00s, 1.4MB read`, `Requests/sec:  12345.6`. Answers other than 2xx or 3xx count for
/// nothing, and have a line of their own.
fn wrk(text: &str) -> Option<Served> {
    if text.contains("Non-2xx") {
        return None;
    }
    let line = text.lines().find(|line| line.contains(" requests in "))?;
    let rate = text.lines().find_map(|line| line.strip_prefix("Requests/sec:"))?;
    let requests = line.split_whitespace().next()?.parse().ok()?;
    Some(Served { requests, per_second: rate.trim().parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_wrk_reports_is_read() {
        let text = "Running 1s test @ http://127.0.0.1:1/\n  1 threads and 16 connections\n  \
                    61234 requests in 1.10s, 7.24MB read\nRequests/sec:  55667.12\n";
        assert_eq!(wrk(text), Some(Served { requests: 61234.0, per_second: 55667.12 }));
        assert_eq!(wrk(&format!("{text}  Non-2xx or 3xx responses: 61234\n")), None);
        assert_eq!(wrk("unable to connect"), None);
    }
}
