//! memcached, asked by this program's own load generator.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Error, Result, ensure};

use crate::child::Signals;
use crate::run::version;
use crate::servers::{Server, free_port, installed};
use crate::services::service::{Running, SENDMSG, Served, Service};

use super::asker;

/// Clients that ask at the same time.
const CLIENTS: u32 = 20;
/// The size of the value that is asked for, in bytes.
const SIZE: usize = 100;

pub(crate) static SERVICE: Service = Service {
    name: "memcached",
    summary: "memcached with four threads, asked by this bench's own clients, 20 of one thread, for a value of 100 bytes",
    answer: SENDMSG,
    comm: None,
    rare_call: "accept4",
    most: 1.05,
    aim: None,
    versions: || version(Path::new("memcached")).into_iter().collect(),
    start: |_, _| {
        installed(&["memcached"]).map_err(Error::msg)?;
        let (port, mut command) = (free_port()?, Command::new("memcached"));
        command.args(["-l", "127.0.0.1", "-p", &port.to_string(), "-U", "0", "-u", "root"]);
        let server = Server::on(port, command.args(["-t", "4"]))?;
        store_value(port)?;
        Ok(Box::new(Memcached { server, port }))
    },
};

/// A running memcached.
#[derive(Debug)]
struct Memcached {
    server: Server,
    port: u16,
}

impl Running for Memcached {
    fn pid(&self) -> u32 {
        self.server.pid()
    }

    fn load(&self, signals: &Signals, folder: &Path) -> Result<Served> {
        asker::ask(signals, folder, self.port, CLIENTS, ("get key\r\n", "END\r\n"))
    }
}

fn store_value(port: u16) -> Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).context("memcached is gone")?;
    let text = format!("set key 0 0 {SIZE}\r\n{}\r\n", "x".repeat(SIZE));
    stream.write_all(text.as_bytes()).context("cannot ask memcached")?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).context("memcached does not answer")?;
    ensure!(answer == "STORED\r\n", "memcached answered {answer}");
    Ok(())
}
