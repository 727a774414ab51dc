//! Scrapes, and clients that are none.

use std::fs;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::sync::atomic::{AtomicU64, Ordering};

use iotomy_agent::{CONTENT_TYPE, MOST_CONNECTIONS};
use iotomy_test_requirements::wait::until;

use crate::support::cgroup::Cgroup;
use crate::support::{Agent, Program, Samples, answer};

const GET: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// An agent of a control group of its own.
fn small() -> Option<(Agent, Cgroup)> {
    let cgroup = Cgroup::new("small")?;
    Some((Agent::start(&["--cgroup", &cgroup.path])?, cgroup))
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or(answer)
}

#[test]
fn it_serves_metrics_and_nothing_else() {
    let Some(agent) = Agent::start(&[]) else { return };
    let metrics = agent.ask(GET);
    let (head, body) = metrics.split_once("\r\n\r\n").unwrap();
    assert_eq!(status(head), "200");
    assert!(head.contains(&format!("content-type: {CONTENT_TYPE}\r\n")), "{head}");
    assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{head}");
    assert!(body.ends_with("# EOF\n"));
    let ask = |line: &str| agent.ask(format!("{line}\r\nHost: localhost\r\n\r\n").as_bytes());
    let head = ask("HEAD /metrics HTTP/1.1");
    assert!(status(&head) == "200" && head.ends_with("\r\n\r\n"), "{head}");
    assert!(head.contains(CONTENT_TYPE), "{head}");
    assert_eq!(status(&ask("GET /metrics?format=text HTTP/1.1")), "200");
    assert_eq!(status(&ask("GET /metrics HTTP/1.0")), "200");
    for path in ["/", "/metrics/", "/metrics/../metrics", "//metrics", "/debug"] {
        assert_eq!(status(&ask(&format!("GET {path} HTTP/1.1"))), "404", "{path}");
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "BREW"] {
        let refused = ask(&format!("{method} /metrics HTTP/1.1"));
        assert_eq!(status(&refused), "405", "{method}: {refused}");
        assert!(refused.contains("allow: GET, HEAD\r\n"), "{refused}");
    }
    // One that says that it has sent all, and reads then.
    let mut closing = agent.connect();
    closing.write_all(GET).unwrap();
    closing.shutdown(Shutdown::Write).unwrap();
    assert!(answer(closing, b"").ends_with("# EOF\n"));
}

#[test]
fn garbage_is_refused_and_harms_nobody() {
    let Some(agent) = Agent::start(&[]) else { return };
    let long = [b"GET /metrics HTTP/1.1\r\nx: ", &[b'y'; 100_000][..]].concat();
    let headers = format!("GET /metrics HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(500));
    for garbage in [
        &b"\0\0\0\0\r\n\r\n"[..],
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET\r\n\r\n",
        b"GET /metrics HTTP/9.9\r\n\r\n",
        b"GET /metrics HTTP/1.1\r\ncontent-length: x\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        &[0xff; 50_000],
        &long,
        headers.as_bytes(),
    ] {
        let mut stream = agent.connect();
        let _ = stream.write_all(garbage);
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(!answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
    }
    let samples = agent.scrape();
    assert!(samples.get("iotomy_agent_connections_cut_total") >= 5.0, "{}", samples.text);
    assert_eq!(samples.get("iotomy_agent_connections_refused_total"), 0.0);
}

/// Of more connections than there are places, those beyond them are closed at once, and hold none.
#[test]
fn two_hundred_connections_leave_room_for_a_scrape_when_they_go() {
    let Some((agent, _cgroup)) = small() else { return };
    let before = agent.descriptors_at_rest();
    let idle: Vec<_> = (0..200)
        .map(|_| {
            let mut stream = agent.connect();
            let _ = stream.write_all(b"GET /met");
            stream
        })
        .collect();
    until("those beyond the bound are closed", || agent.descriptors() <= before + MOST_CONNECTIONS);
    drop(idle);
    until("there is room", || status(&agent.ask(GET)) == "200");
    let ended = |samples: &Samples| {
        let of = |what: &str| samples.get(&format!("iotomy_agent_connections_{what}_total"));
        (of("refused") + of("cut") >= 200.0).then_some(())
    };
    agent.until("each was refused or cut off", ended);
    until("all are closed", || agent.descriptors() == before);
}

#[test]
fn clients_that_do_not_finish_their_request_hold_nobody_up_and_are_cut_off() {
    let Some((agent, _cgroup)) = small() else { return };
    let before = agent.descriptors_at_rest();
    let stalled: Vec<_> = (0..20)
        .map(|_| {
            let mut stream = agent.connect();
            stream.write_all(b"GET /met").unwrap();
            stream
        })
        .collect();
    for _ in 0..5 {
        agent.scrape();
    }
    // They have not closed anything.
    until("they are cut off", || agent.descriptors() == before);
    assert_eq!(agent.scrape().get("iotomy_agent_connections_cut_total"), 20.0);
    drop(stalled);
}

#[test]
fn ten_thousand_scrapes_never_go_back_and_leave_nothing() {
    const CLIENTS: u64 = 48;
    const SCRAPES: u64 = 10_000;
    let Some((agent, cgroup)) = small() else { return };
    let dd = Program::unique("dd");
    let resident = || {
        let status = fs::read_to_string(format!("/proc/{}/status", agent.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap()
    };
    agent.scrape();
    let descriptors = agent.descriptors_at_rest();
    let asked = AtomicU64::new(0);
    let at_half = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let mut before = agent.scrape();
                loop {
                    let number = asked.fetch_add(1, Ordering::Relaxed);
                    if number >= SCRAPES {
                        break;
                    }
                    if number == SCRAPES / 2 {
                        at_half.store(resident(), Ordering::Relaxed);
                    }
                    if number.is_multiple_of(100) {
                        cgroup.dd(&dd, 100);
                    }
                    // To read them all takes longer than to make them.
                    if !number.is_multiple_of(8) {
                        assert!(agent.ask(GET).ends_with("# EOF\n"));
                        continue;
                    }
                    let now = agent.scrape();
                    now.assert_not_before(&before);
                    before = now;
                }
            });
        }
    });
    let last = agent.until("all of dd is counted", |samples| {
        (samples.calls(&dd.name, "write") >= SCRAPES).then(|| samples.clone())
    });
    assert_eq!(last.calls(&dd.name, "write"), SCRAPES);
    assert!(last.get("iotomy_agent_scrapes_total") >= (SCRAPES + CLIENTS) as f64);
    assert_eq!(last.get("iotomy_agent_connections_refused_total"), 0.0);
    until("no connection is left", || agent.descriptors() == descriptors);
    // Names that came meanwhile, of other programs, are few.
    let (half, whole) = (at_half.load(Ordering::Relaxed), resident());
    assert!(whole < half + (16 << 10), "{half} kB, then {whole} kB");
}
