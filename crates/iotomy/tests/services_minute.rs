//! A minute of load on each of eight servers, half of it watched: what is counted is what clients and the server count, to
//! the byte, and nothing is lost. `make test-services` runs these, and prints what the watch cost.

use crate::{services_stores, services_web, support};

use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use iotomy_record::{Role, Trace};
use support::servers::{Client, Server, Sockets, ended, free_port, successes, watched};
use support::{Tracing, bpf, has, has_server, root, until};

/// Connections, each with a thread of its own that asks as fast as it is answered.
const CLIENTS: usize = 8;

/// Half of a round is watched.
const ROUNDS: usize = 6;
const HALF: Duration = Duration::from_secs(5);

/// What the clients have seen.
#[derive(Default)]
struct Seen {
    requests: u64,
    sent: u64,
    received: u64,
    took: Vec<Duration>,
    rate: f64,
}

impl Seen {
    fn quantile_us(&mut self, of: f64) -> f64 {
        self.took.sort_unstable();
        let at = ((self.took.len() - 1) as f64 * of) as usize;
        self.took[at].as_secs_f64() * 1e6
    }
}

/// Asks by every client for a while.
fn load(clients: &mut [Client], ask: impl Fn(&mut Client, u64) + Sync) -> Seen {
    let (is_over, began) = (AtomicBool::new(false), Instant::now());
    let mut seen = Seen::default();
    let one = |client: &mut Client| {
        (client.sent, client.received) = (0, 0);
        let mut took = Vec::new();
        while !is_over.load(Ordering::Relaxed) {
            let asked = Instant::now();
            ask(client, took.len() as u64);
            took.push(asked.elapsed());
        }
        (took, client.sent, client.received)
    };
    thread::scope(|scope| {
        let start = |client| scope.spawn(|| one(client));
        let all: Vec<_> = clients.iter_mut().map(start).collect();
        thread::sleep(HALF);
        is_over.store(true, Ordering::Relaxed);
        for client in all {
            let (took, sent, received) = client.join().unwrap();
            seen.requests += took.len() as u64;
            seen.took.extend(took);
            seen.sent += sent;
            seen.received += received;
        }
    });
    seen.rate = seen.requests as f64 / began.elapsed().as_secs_f64();
    seen
}

/// The requests that were served.
fn served(record: &Trace) -> u64 {
    let rows = record.requests.iter().filter(|row| row.ends.role == Some(Role::Accept));
    rows.map(|row| row.requests).sum()
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

/// That nothing found no room.
fn lost_nothing(record: &Trace) {
    let observer = &record.observer;
    let lost = [
        observer.lost_events,
        observer.lost_files,
        observer.lost_connections,
        observer.lost_exchanges,
        observer.unclear_connections,
    ];
    assert_eq!(lost, [0; 5]);
}

/// How a server waits for requests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    /// For all connections by one call.
    ForMany,
    /// In a read of each: those that are under way when a watch begins are incomplete for it.
    InReads,
}

/// Loads a server with and without a watch in turn, and then with two. `counted` asks it for its own count of requests, of
/// which that question is one.
fn minute(
    name: &str,
    (server, waits): (&Server, Waits),
    port: u16,
    ask: impl Fn(&mut Client, u64) + Sync,
    counted: impl Fn(&mut Client) -> u64,
) {
    let mut clients: Vec<Client> = (0..CLIENTS).map(|_| Client::to(port)).collect();
    let mut control = Client::to(port);
    counted(&mut control);
    load(&mut clients, &ask);
    let pid = server.pid().to_string();
    let (mut bare, mut seen, mut printed) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        bare.push(load(&mut clients, &ask));
        let watching = watched(&["--requests", "--peers", "-p", &pid], server.pid());
        (control.asked, control.sent, control.received) = (0, 0, 0);
        let before = counted(&mut control);
        let before_sent = control.sent;
        let one = load(&mut clients, &ask);
        let after = counted(&mut control);
        let record = ended(watching, server.pid());
        lost_nothing(&record);
        assert_eq!(after - before, one.requests + 1, "{name}");
        let sockets = Sockets::of(&record);
        // Bytes of calls that were under way.
        let incomplete = match waits {
            Waits::ForMany => 0,
            Waits::InReads => {
                CLIENTS as u64 * one.sent / one.requests + (control.sent - before_sent)
            }
        };
        assert_eq!(sockets.read_bytes, one.sent + control.sent - incomplete, "{name}");
        assert_eq!(served(&record), one.requests + control.asked, "{name}");
        assert_eq!(sockets.write_bytes, one.received + control.received, "{name}");
        printed.push(record.observer.cost_ns_high);
        seen.push(one);
    }
    let watches = [(); 2].map(|()| watched(&["-p", &pid], server.pid()));
    load(&mut clients, &ask);
    let [one, other] = watches.map(|watching| ended(watching, server.pid()));
    assert!(Sockets::of(&one).read_bytes > 0, "{name}");
    assert_eq!(Sockets::of(&one), Sockets::of(&other), "{name}");
    report(name, &mut bare, &mut seen, &printed);
}

fn report(name: &str, bare: &mut [Seen], watched: &mut [Seen], printed: &[f64]) {
    let ratios = bare.iter().zip(&*watched).map(|(bare, watched)| watched.rate / bare.rate);
    let ratio = median(ratios.collect());
    let all =
        |of: &mut [Seen], at: f64| median(of.iter_mut().map(|one| one.quantile_us(at)).collect());
    let [p50, p99] = [0.5, 0.99].map(|at| (all(bare, at), all(watched, at)));
    let requests: u64 = watched.iter().map(|one| one.requests).sum();
    println!(
        "{name}: {requests} requests watched; throughput × {ratio:.3}; p50 {:.0} → {:.0} µs, p99 {:.0} → {:.0} µs; overhead printed: at most {:.0} ns a call",
        p50.0,
        p50.1,
        p99.0,
        p99.1,
        median(printed.to_vec())
    );
}

/// A server of HTTP that says how many requests it had at `/count`.
fn web(name: &str, server: (&Server, Waits), port: u16) {
    let counted = |client: &mut Client| client.get("/count").parse().unwrap();
    minute(name, server, port, |client, _| _ = client.get("/"), counted);
}

#[test]
#[ignore = "a minute: make test-services"]
fn redis() {
    if !bpf() || !has_server("redis-server") {
        return;
    }
    let (port, folder) = (free_port(), tempfile::tempdir().unwrap());
    let server = services_stores::redis(port, folder.path());
    let ask = |client: &mut Client, at: u64| {
        let request = if at.is_multiple_of(2) { "SET k \"a value\"\r\n" } else { "GET k\r\n" };
        client.ask(request, services_stores::is_redis);
    };
    let counted = |client: &mut Client| {
        let text = client.ask("INFO stats\r\n", services_stores::is_redis);
        services_stores::redis_figure(&text, "total_commands_processed")
    };
    minute("redis", (&server, Waits::ForMany), port, ask, counted);
}

#[test]
#[ignore = "a minute: make test-services"]
fn memcached() {
    if !bpf() || !has_server("memcached") {
        return;
    }
    let port = free_port();
    let server = services_stores::memcached(port);
    let ask =
        |client: &mut Client, _| _ = client.ask("get nothing\r\n", services_stores::is_memcached);
    // The question itself is no such command.
    let counted = |client: &mut Client| {
        let text = client.ask("stats\r\n", services_stores::is_memcached);
        client.ask("get nothing\r\n", services_stores::is_memcached);
        services_stores::memcached_figure(&text, "cmd_get")
    };
    minute("memcached", (&server, Waits::ForMany), port, ask, counted);
}

#[test]
#[ignore = "a minute: make test-services"]
fn nginx() {
    if !bpf() || !root() || !has_server("nginx") {
        return;
    }
    let (port, folder) = (free_port(), tempfile::tempdir().unwrap());
    let server = services_web::nginx(port, folder.path());
    let counted = |client: &mut Client| services_web::nginx_requests(&client.get("/status"));
    minute("nginx", (&server, Waits::ForMany), port, |client, _| _ = client.get("/small"), counted);
}

#[test]
#[ignore = "a minute: make test-services"]
fn go() {
    if !bpf() || !root() || !has_server("go") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = services_web::go_program(folder.path());
    let (server, port) = Server::that_says_its_port(&mut Command::new(program));
    web("Go", (&server, Waits::ForMany), port);
}

#[test]
#[ignore = "a minute: make test-services"]
fn node() {
    if !bpf() || !root() || !has_server("node") {
        return;
    }
    let (server, port) =
        Server::that_says_its_port(Command::new("node").args(["-e", services_web::NODE]));
    web("Node", (&server, Waits::ForMany), port);
}

const JAVA: &str = r#"
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;

public class Server {
    public static void main(String[] args) throws Exception {
        AtomicLong requests = new AtomicLong();
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        server.setExecutor(Executors.newFixedThreadPool(4));
        server.createContext("/", exchange -> {
            long n = requests.incrementAndGet();
            String path = exchange.getRequestURI().getPath();
            byte[] answer = (path.equals("/count") ? Long.toString(n) : "an answer").getBytes();
            exchange.sendResponseHeaders(200, answer.length);
            exchange.getResponseBody().write(answer);
            exchange.close();
        });
        server.start();
        System.out.println(server.getAddress().getPort());
    }
}
"#;

#[test]
#[ignore = "a minute: make test-services"]
fn java() {
    if !bpf() || !root() || !has("javac") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("Server.java");
    fs::write(&source, JAVA).unwrap();
    let built = Command::new("javac").arg("-d").arg(folder.path()).arg(&source).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let mut command = Command::new("java");
    let (server, port) =
        Server::that_says_its_port(command.arg("-cp").arg(folder.path()).arg("Server"));
    web("Java", (&server, Waits::ForMany), port);
}

const PYTHON: &str = r#"
import http.server, itertools, sys
requests = itertools.count(1)
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        n = next(requests)
        answer = (str(n) if self.path == "/count" else "an answer").encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
    def log_message(self, *words):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"#;

#[test]
#[ignore = "a minute: make test-services"]
fn python() {
    if !bpf() || !root() || !has("python3") {
        return;
    }
    let (server, port) = Server::that_says_its_port(Command::new("python3").args(["-c", PYTHON]));
    web("Python", (&server, Waits::InReads), port);
}

/// Calls by two threads, so many each.
const CALLS: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
static void *calls(void *times)
{
    for (long left = (long)times; left; left--)
        syscall(SYS_getppid);
    return NULL;
}
int main(int count, char **words)
{
    long times = atol(words[1]);
    pthread_t other;
    pthread_create(&other, NULL, calls, (void *)times);
    calls((void *)times);
    pthread_join(other, NULL);
    return 0;
}
"#;

/// What a process has in memory.
fn resident_kib(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// As many calls as a service makes in a week of 1,650 calls a second, in thousands of intervals.
#[test]
#[ignore = "minutes: make test-services"]
fn a_billion_calls_are_counted_in_memory_that_does_not_grow() {
    const EACH: u64 = 500_000_000;
    if !bpf() || !has("cc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    fs::write(file("calls.c"), CALLS).unwrap();
    let mut compiler = support::bare("cc", &["-O2", "-pthread"]);
    let built = compiler.arg(file("calls.c")).arg("-o").arg(file("calls")).status();
    assert!(built.unwrap().success());
    let words = ["trace", "-q", "--observer", "bpf", "-i", "0.05", "--json"];
    let mut watching = support::iotomy(&words);
    watching.arg(file("intervals")).arg("--").arg(file("calls")).arg(EACH.to_string());
    let mut watching = watching.spawn().unwrap();
    let mut resident = Vec::new();
    let status = loop {
        if let Some(status) = watching.try_wait().unwrap() {
            break status;
        }
        resident.extend(resident_kib(watching.id()));
        thread::sleep(Duration::from_millis(200));
    };
    assert!(status.success());
    let lines = fs::read_to_string(file("intervals")).unwrap();
    let (mut calls, mut times, mut wall_ns, mut number) = (0, 0, 0, 0);
    for line in lines.lines() {
        let record: Trace = serde_json::from_str(line).unwrap();
        lost_nothing(&record);
        for call in record.calls.iter().filter(|call| call.syscall == "getppid") {
            calls += call.calls;
            times += call.wall_times.total();
            wall_ns += call.wall_ns;
        }
        number += 1;
    }
    assert_eq!((calls, times), (2 * EACH, 2 * EACH));
    assert!(wall_ns > 2 * EACH, "{wall_ns}");
    // Once the first tenth is over, it has all it needs.
    let begins = resident[resident.len() / 10];
    let most = resident[resident.len() / 10..].iter().max().unwrap();
    assert!(*most <= begins + 4096, "{begins} KiB, later {most} KiB");
    println!("{calls} calls in {number} intervals: {begins} KiB, later {most} KiB at most");
}

/// The number behind a text that pgbench prints.
fn pgbench_figure(text: &str, behind: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(behind));
    let line = line.unwrap_or_else(|| panic!("no {behind}: {text}"));
    line.trim().split([' ', '/']).next().unwrap().parse().unwrap()
}

/// Its clients are processes that come with the load: the one watch is of the server, the other one of them.
#[test]
#[ignore = "a minute: make test-services"]
fn postgres() {
    if !bpf() || !root() || !has("setpriv") {
        return;
    }
    let Some(postgres) = services_stores::Postgres::start() else { return };
    let seconds = HALF.as_secs().to_string();
    let load = ["-n", "-c", "8", "-j", "2", "-T", &seconds];
    let mut ratios = Vec::new();
    let mut transactions = 0;
    // A transaction has seven statements, each of which is answered by a call; answers to clients that connect come on top.
    let answers = |load: &[&str]| {
        let watching = watched(&["-p", &postgres.pid().to_string()], postgres.pid());
        let text = postgres.pgbench(load);
        let record = ended(watching, postgres.pid());
        lost_nothing(&record);
        let made = pgbench_figure(&text, "number of transactions actually processed: ") as u64;
        (text, made, successes(&record, "sendto") - 7 * made, successes(&record, "fdatasync"))
    };
    let (_, made, to_connect, _) = answers(&["-n", "-c", "8", "-j", "2", "-t", "1"]);
    assert_eq!(made, 8);
    for _ in 0..ROUNDS {
        let bare = pgbench_figure(&postgres.pgbench(&load), "tps = ");
        let syncs = postgres.syncs();
        let (text, made, beside, synced) = answers(&load);
        assert_eq!(beside, to_connect, "{made} transactions");
        // The process that writes the log in the background tells its counts a little later.
        let now = until("all flushes are told", || {
            let now = postgres.syncs() - syncs;
            (now >= synced).then_some(now)
        });
        assert_eq!(now, synced);
        ratios.push(pgbench_figure(&text, "tps = ") / bare);
        transactions += made;
    }
    let watching = watched(&["-p", &postgres.pid().to_string()], postgres.pid());
    let words = postgres.pgbench_words(&load);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let client = Tracing::new("bpf", &["--files"], &words).run();
    let served = Sockets::of(&ended(watching, postgres.pid()));
    let asked = Sockets::of(&client.record());
    assert_eq!((served.read_bytes, served.write_bytes), (asked.write_bytes, asked.read_bytes));
    println!("PostgreSQL: {transactions} transactions watched; throughput × {:.3}", median(ratios));
}
