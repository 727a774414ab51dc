//! A new connection for each request to the same peer.

use std::collections::BTreeMap;

use iotomy_record::numbers::{thousands, three_digits};
use iotomy_record::{FileKind, Verdict};
use serde_json::json;

use crate::facts::Fact;
use crate::finding::{FindingDeclaration, Rule, UnnamedFinding};
use crate::run::{Run, total};

pub(crate) static DECLARATION: FindingDeclaration = FindingDeclaration {
    id: "connection-per-request",
    verdict: Verdict::Advice,
    summary: "a program made a new connection to one peer for nearly each request",
    description: "A program connected at least 100 sockets (TCP or UNIX) to one address, and wrote \
        at most four times to each on average: a request or so. Each connection takes a \
        round trip and calls of both sides before the first byte, which one that stays open \
        saves.",
    facts: &[Fact::Files, Fact::Calls(&["connect"])],
    rules: &[Rule::Run(judge)],
};

const MANY: u64 = 100;
/// Connections to a database send a few messages before the request.
const FEW_WRITES: u64 = 4;

/// The connections of one image to one address.
#[derive(Default)]
struct Connections {
    sockets: u64,
    writes: u64,
}

fn judge(run: &Run<'_>) -> Option<UnnamedFinding> {
    let mut by_peer: BTreeMap<(u32, &str, u32, &str, &str), Connections> = BTreeMap::new();
    for file in run.trace.files.iter().filter(|file| file.kind == FileKind::Socket) {
        let Some(socket) = &file.socket else { continue };
        let Some(remote) = &socket.remote else { continue };
        if ["tcp", "unix"].contains(&socket.protocol.as_str()) {
            let key = (file.pid, &*file.exec, file.image, &*socket.protocol, &**remote);
            let all = by_peer.entry(key).or_default();
            all.sockets += 1;
            all.writes = all.writes.saturating_add(file.write_calls);
        }
    }
    let is_many = |key: &(u32, &str, u32, &str, &str), all: &Connections| {
        let rows = run.of_image(key.0, key.1, key.2);
        let connects = rows.calls.iter().copied().filter(|call| call.syscall == "connect");
        let begun = connects.clone().filter_map(|call| call.error_kinds.get("EINPROGRESS"));
        let made = total(connects);
        let made = made
            .calls
            .saturating_sub(made.errors)
            .saturating_add(begun.copied().fold(0, u64::saturating_add));
        all.sockets.min(made) >= MANY && all.writes <= all.sockets.saturating_mul(FEW_WRITES)
    };
    let those = by_peer.into_iter().filter(|(key, all)| is_many(key, all));
    let ((pid, exec, image, protocol, remote), all) = those.max_by_key(|(_, all)| all.sockets)?;
    let name = run.name_of(pid, exec, image);
    let times = match three_digits(all.writes as f64 / all.sockets as f64).as_str() {
        "1" => "once".to_owned(),
        "2" => "twice".to_owned(),
        times => format!("{times} times"),
    };
    let text = format!(
        "{name} made {} connections to {protocol} {remote}, and wrote {times} to each",
        thousands(all.sockets.into()),
    );
    let evidence = [
        ("exec", json!(exec)),
        ("peer", json!(format!("{protocol} {remote}"))),
        ("connections", json!(all.sockets)),
        ("writes", json!(all.writes)),
    ];
    let advice = match run.program_of(pid, exec, image) {
        "nginx" => {
            "keepalive 32 in the upstream, with proxy_http_version 1.1 and proxy_set_header Connection \"\""
        }
        "ab" => "ab -k",
        _ => "use a connection for several requests (HTTP keep-alive, a pool of connections)",
    };
    Some(UnnamedFinding::new(text, evidence).advise(advice))
}
