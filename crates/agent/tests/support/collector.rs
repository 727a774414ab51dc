//! A collector of a test: it answers pushes as it is told, and keeps those that it took.

use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use iotomy_test_requirements::wait::until_some;

use super::pushed::Pushed;

/// What it does with a push.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// Reads it, and sends these bytes.
    Bytes(Vec<u8>),
    /// Closes before it has read anything.
    Close,
    /// Reads it, and answers nothing until the other side goes.
    Stall,
}

impl Reply {
    pub(crate) fn status(status: u16, headers: &str) -> Self {
        let head = format!("HTTP/1.1 {status} Status\r\ncontent-length: 0\r\n{headers}\r\n");
        Self::Bytes(head.into_bytes())
    }
}

/// A push as it came.
#[derive(Debug, Clone)]
pub(crate) struct Push {
    pub(crate) at: Instant,
    /// The request line and the headers, in lower case.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

#[derive(Default)]
struct State {
    /// What it does with the next ones; then it takes them.
    replies: VecDeque<Reply>,
    pushes: Vec<Push>,
}

/// A collector that listens until the test ends.
#[derive(Clone)]
pub(crate) struct Collector {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Collector {
    /// One that replies so at first, and takes all that comes then.
    pub(crate) fn replying(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::at("127.0.0.1:0", replies)
    }

    /// The same at an address.
    pub(crate) fn at(address: &str, replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let state = State { replies: replies.into_iter().collect(), pushes: Vec::new() };
        let collector =
            Self { address: listener.local_addr().unwrap(), state: Arc::new(Mutex::new(state)) };
        let state = collector.state.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let reply = state.lock().unwrap().replies.pop_front();
                let state = state.clone();
                std::thread::spawn(move || {
                    serve(stream, reply.unwrap_or_else(|| Reply::status(200, "")), &state);
                });
            }
        });
        collector
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Those that came so far, whatever became of them.
    pub(crate) fn pushes(&self) -> Vec<Push> {
        self.state.lock().unwrap().pushes.clone()
    }

    /// Waits for a push with this.
    pub(crate) fn until<T>(&self, what: &str, answer: impl Fn(&Pushed) -> Option<T>) -> T {
        let mut seen = 0;
        until_some(what, || {
            let new = self.state.lock().unwrap().pushes[seen..].to_vec();
            seen += new.len();
            new.iter().find_map(|one| answer(&Pushed::decode(&one.body)))
        })
    }

    /// Waits until so many have come.
    pub(crate) fn until_came(&self, count: usize) -> Vec<Push> {
        until_some(&format!("{count} pushes came"), || {
            let state = self.state.lock().unwrap();
            (state.pushes.len() >= count).then(|| state.pushes.clone())
        })
    }
}

fn serve(stream: TcpStream, reply: Reply, state: &Mutex<State>) {
    if matches!(reply, Reply::Close) {
        let push = Push { at: Instant::now(), head: String::new(), body: Vec::new() };
        return state.lock().unwrap().pushes.push(push);
    }
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return; // the agent has ended
        }
        if line == "\r\n" {
            break;
        }
        head.push_str(&line.to_lowercase());
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    if reader.read_exact(&mut body).is_err() {
        return;
    }
    state.lock().unwrap().pushes.push(Push { at: Instant::now(), head, body });
    let mut stream = reader.into_inner();
    match reply {
        Reply::Bytes(bytes) => _ = stream.write_all(&bytes),
        // Until the agent gives it up.
        Reply::Stall => _ = stream.read(&mut [0; 1]),
        Reply::Close => {}
    }
}

impl Pushed {
    pub(crate) fn calls(&self, service: &str, call: &str) -> u64 {
        let series = format!("iotomy_calls_total{{service=\"{service}\",call=\"{call}\"}}");
        self.values.get(&series).copied().unwrap_or(0.0) as u64
    }

    /// Those of a service alone.
    pub(crate) fn of(&self, service: &str) -> BTreeMap<String, f64> {
        let label = format!("service=\"{service}\"");
        let its = self.values.iter().filter(|(name, _)| name.contains(&label));
        its.map(|(name, value)| (name.clone(), *value)).collect()
    }
}
