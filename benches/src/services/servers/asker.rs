//! A load generator for servers that have none in Debian: clients of one thread, each of which asks again when its answer
//! is complete, as those of redis-benchmark do.
//!
//! It is a part of this program and a process of its own. An answer is complete when it ends as was said.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, poll};

use crate::child::{Signals, die_with_parent, own_path};
use crate::services::service::{Served, TIME, generated};

/// Options of the process that asks.
#[derive(Debug, clap::Args)]
pub(crate) struct AskArgs {
    port: u16,
    clients: u32,
    seconds: u64,
    question: String,
    end: String,
}

/// Has so many clients ask the server on a port for [`TIME`]: a question, and the end of its answer.
///
/// # Errors
/// When the server does not answer, or a signal has arrived.
pub(super) fn ask(
    signals: &Signals,
    folder: &Path,
    port: u16,
    clients: u32,
    (question, end): (&str, &str),
) -> Result<Served> {
    let own = own_path()?.to_str().context("a path is not UTF-8")?.to_owned();
    let numbers = [u64::from(port), u64::from(clients), TIME.as_secs()].map(|n| n.to_string());
    let words = [own, "services".to_owned(), "ask".to_owned()].into_iter().chain(numbers);
    let argv: Vec<String> = words.chain([question, end].map(str::to_owned)).collect();
    generated(signals, folder, &argv, served)
}

/// Parses `12345 requests in 1000000000 ns`.
fn served(text: &str) -> Option<Served> {
    let (requests, ns) = text.trim().strip_suffix(" ns")?.split_once(" requests in ")?;
    let (requests, ns): (f64, f64) = (requests.parse().ok()?, ns.parse().ok()?);
    Some(Served { requests, per_second: requests * 1e9 / ns })
}

/// Asks, and prints how often that was answered.
pub(crate) fn run(args: &AskArgs) -> Result<()> {
    die_with_parent()?;
    let mut clients = Vec::new();
    for _ in 0..args.clients {
        let stream = TcpStream::connect(("127.0.0.1", args.port)).context("cannot connect")?;
        stream.set_nodelay(true).context("cannot send at once")?;
        stream.set_nonblocking(true).context("cannot read without waiting")?;
        clients.push(Client { stream, answer: Vec::new() });
    }
    let (began, length) = (Instant::now(), Duration::from_secs(args.seconds));
    let mut requests = 0u64;
    for client in &mut clients {
        client.ask(&args.question)?;
    }
    while began.elapsed() < length {
        for at in ready(&clients)? {
            if clients[at].has_answer(&args.end)? {
                requests += 1;
                clients[at].ask(&args.question)?;
            }
        }
    }
    println!("{requests} requests in {} ns", began.elapsed().as_nanos());
    Ok(())
}

/// Waits until there is something to read, and returns whose that is.
fn ready(clients: &[Client]) -> Result<Vec<usize>> {
    let mut polled: Vec<PollFd<'_>> = clients
        .iter()
        .map(|client| PollFd::from_borrowed_fd(client.stream.as_fd(), PollFlags::IN))
        .collect();
    match poll(&mut polled, None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error).context("cannot poll the clients"),
    }
    let is_ready = |(at, one): (usize, &PollFd<'_>)| (!one.revents().is_empty()).then_some(at);
    Ok(polled.iter().enumerate().filter_map(is_ready).collect())
}

/// A connection, and what has arrived of an answer.
struct Client {
    stream: TcpStream,
    answer: Vec<u8>,
}

impl Client {
    fn ask(&mut self, question: &str) -> Result<()> {
        self.answer.clear();
        // There is always room for a question: the one before was answered.
        self.stream.write_all(question.as_bytes()).context("cannot ask")
    }

    /// Reads what there is, and returns whether the answer is complete.
    fn has_answer(&mut self, end: &str) -> Result<bool> {
        let mut bytes = [0; 4096];
        match self.stream.read(&mut bytes) {
            Ok(0) => bail!("the server closed a connection"),
            Ok(count) => self.answer.extend_from_slice(&bytes[..count]),
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error).context("cannot read an answer"),
        }
        Ok(self.answer.ends_with(end.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn what_it_reports_is_read() {
        let found = served("500 requests in 250000000 ns\n");
        assert_eq!(found, Some(Served { requests: 500.0, per_second: 2000.0 }));
        assert_eq!(served(""), None);
    }

    #[test]
    fn an_answer_in_pieces_is_one() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        stream.set_nonblocking(true).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let mut clients = [Client { stream, answer: Vec::new() }];
        clients[0].ask("?").unwrap();
        let mut question = [0; 1];
        server.read_exact(&mut question).unwrap();
        assert!(!clients[0].has_answer("END").unwrap());
        server.write_all(b"a value EN").unwrap();
        assert_eq!(ready(&clients).unwrap(), [0]);
        assert!(!clients[0].has_answer("END").unwrap());
        server.write_all(b"D").unwrap();
        ready(&clients).unwrap();
        assert!(clients[0].has_answer("END").unwrap());
        drop(server);
        ready(&clients).unwrap();
        assert!(clients[0].has_answer("END").is_err(), "the server has gone");
    }
}
