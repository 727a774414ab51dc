//! Counts of `iotomy trace` against what web servers say of themselves: nginx by its status page and its log, servers in
//! Go and in Node that count their requests; watched by id, by name and by control group.

use crate::support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::cgroups::{OwnCgroup, hierarchies, unique};
use support::servers::{Client, Server, Sockets, ended, free_port, lines, successes, watched};
use support::{Need, bpf, has_server, root, skip};

const CLIENTS: usize = 3;
const ROUNDS: usize = 50;

/// The directives of an nginx that keeps everything in `folder`.
fn nginx_configuration(folder: &Path, port: u16) -> String {
    let place = folder.display();
    let kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let temporary: String =
        kinds.iter().map(|kind| format!("{kind}_temp_path {place}/{kind};")).collect();
    format!(
        "daemon off; user root; worker_processes 2; pid {place}/pid; error_log {place}/error;
         events {{ worker_connections 64; }}
         http {{
             log_format sizes '$bytes_sent $request_length'; access_log {place}/log sizes;
             {temporary} sendfile on; keepalive_requests 1000000000;
             server {{
                 listen 127.0.0.1:{port}; root {place}/www;
                 location = /status {{ stub_status; }}
             }}
         }}"
    )
}

/// The number of requests on nginx's status page: the third figure of its only line of figures.
pub(crate) fn nginx_requests(status: &str) -> u64 {
    let line = status.lines().nth(2).unwrap();
    line.split_whitespace().nth(2).unwrap().parse().unwrap()
}

/// An nginx with two workers, its files in `place`.
pub(crate) fn nginx(port: u16, place: &Path) -> Server {
    fs::create_dir(place.join("www")).unwrap();
    for (name, length) in [("small", 100), ("large", 300_000)] {
        fs::write(place.join("www").join(name), "x".repeat(length)).unwrap();
    }
    fs::write(place.join("conf"), nginx_configuration(place, port)).unwrap();
    let mut command = Command::new("nginx");
    let error = place.join("error").display().to_string();
    let conf = place.join("conf").display().to_string();
    Server::on(port, command.args(["-e", &error, "-c", &conf]))
        .ended_by(nix::sys::signal::Signal::SIGTERM)
}

#[test]
fn requests_and_bytes_of_nginx_are_those_of_its_status_and_log() {
    if !bpf() || !root() || !has_server("nginx") {
        return;
    }
    let (port, folder) = (free_port(), tempfile::tempdir().unwrap());
    let server = nginx(port, folder.path());
    let mut control = Client::to(port);
    let mut clients = [(); CLIENTS].map(|()| Client::to(port));
    for client in clients.iter_mut().chain([&mut control]) {
        client.get("/small");
    }
    let log = folder.path().join("log");
    let earlier = lines(&log, CLIENTS + 1).len();

    // Its workers are children of the process that is named.
    let watching = watched(&["-p", &server.pid().to_string()], server.pid());
    let before = nginx_requests(&control.get("/status"));
    for round in 0..ROUNDS {
        for client in &mut clients {
            client.get(if round % 5 == 0 { "/large" } else { "/small" });
        }
    }
    let requests = nginx_requests(&control.get("/status")) - before;
    let logged = lines(&log, earlier + CLIENTS * ROUNDS + 2);
    let record = ended(watching, server.pid());

    assert_eq!(requests, (CLIENTS * ROUNDS) as u64 + 1, "with the second look at the status");
    let sum = |field: usize| {
        let figures = logged[earlier..].iter().map(|line| line.split(' ').nth(field).unwrap());
        figures.map(|figure| figure.parse::<u64>().unwrap()).sum::<u64>()
    };
    let sockets = Sockets::of(&record);
    assert_eq!([sockets.write_bytes, sockets.read_bytes], [sum(0), sum(1)]);
    // A line of the log is a write to the file.
    let to_log = record.files.iter().filter(|file| file.path == log.to_str().unwrap());
    assert_eq!(to_log.map(|file| file.write_calls).sum::<u64>(), requests + 1);
    // A small file is sent by one call, a large one by several.
    assert!(successes(&record, "sendfile") >= requests - 1);
}

const GO: &str = r#"
package main

import ("fmt"; "net"; "net/http"; "sync/atomic")

func main() {
    var requests atomic.Int64
    listener, err := net.Listen("tcp", "127.0.0.1:0")
    if err != nil { panic(err) }
    fmt.Println(listener.Addr().(*net.TCPAddr).Port)
    panic(http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
        n := requests.Add(1)
        if r.URL.Path == "/count" { fmt.Fprint(w, n) } else { fmt.Fprint(w, "an answer") }
    })))
}
"#;

pub(crate) const NODE: &str = r#"
let requests = 0;
const server = require("http").createServer((request, response) => {
    requests += 1;
    response.end(request.url === "/count" ? String(requests) : "an answer");
});
server.keepAliveTimeout = 0;
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
"#;

/// Watches a server in each way, and compares the answers and bytes with what it and its clients count. It was started
/// by the name that it has.
fn agrees(server: &Server, port: u16, name: &str) {
    let cgroup = match hierarchies().first() {
        Some(mount) => OwnCgroup::below(mount).unwrap(),
        None => return skip(Need::Machine, "no control group can be made here"),
    };
    cgroup.add(server.pid());
    let (pid, group) = (server.pid().to_string(), cgroup.0.to_str().unwrap());
    for way in [["-p", &pid], ["--name", name], ["--cgroup", group]] {
        let mut clients = [(); CLIENTS].map(|()| Client::to(port));
        let mut control = Client::to(port);
        for client in clients.iter_mut().chain([&mut control]) {
            client.get("/");
            (client.sent, client.received) = (0, 0);
        }
        let watching = watched(&way, server.pid());
        let before: u64 = control.get("/count").parse().unwrap();
        for _ in 0..ROUNDS {
            for client in &mut clients {
                client.get("/");
            }
        }
        let requests = control.get("/count").parse::<u64>().unwrap() - before;
        let record = ended(watching, server.pid());
        assert_eq!(requests, (CLIENTS * ROUNDS) as u64 + 1, "with the second look at the count");
        let all = || clients.iter().chain([&control]);
        let expected = Sockets {
            read_bytes: all().map(|client| client.sent).sum(),
            write_bytes: all().map(|client| client.received).sum(),
            write_calls: requests + 1,
        };
        assert_eq!(Sockets::of(&record), expected, "{way:?}");
    }
}

/// A link by which a program runs under a name that no other process has.
fn link(folder: &Path, program: &Path) -> (PathBuf, String) {
    let name = unique("web");
    let link = folder.join(&name);
    symlink(program, &link).unwrap();
    (link, name)
}

/// Builds the server in Go in a folder.
pub(crate) fn go_program(folder: &Path) -> PathBuf {
    let (source, program) = (folder.join("server.go"), folder.join("server"));
    fs::write(&source, GO).unwrap();
    let mut go = Command::new("go");
    if std::env::var_os("HOME").is_none() {
        go.env("GOCACHE", folder.join("cache"));
    }
    let built = go.args(["build", "-o"]).arg(&program).arg(&source).output().unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    program
}

#[test]
fn requests_of_a_server_in_go_are_those_that_it_counts() {
    if !bpf() || !root() || !has_server("go") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = go_program(folder.path());
    let (link, name) = link(folder.path(), &program);
    let (server, port) = Server::that_says_its_port(&mut Command::new(link));
    agrees(&server, port, &name);
}

#[test]
fn requests_of_a_server_in_node_are_those_that_it_counts() {
    if !bpf() || !root() || !has_server("node") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let node =
        iotomy_sys::launch::find_program("node".as_ref(), std::env::var_os("PATH").as_deref());
    let (link, name) = link(folder.path(), &fs::canonicalize(node.unwrap()).unwrap());
    let (server, port) = Server::that_says_its_port(Command::new(link).args(["-e", NODE]));
    agrees(&server, port, &name);
}
