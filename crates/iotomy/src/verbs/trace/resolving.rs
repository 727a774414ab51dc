//! The names of remote addresses (`--resolve`), by the system's own `getent`: a static program cannot
//! load the machine's resolver. Asked after the watch, so that nothing of it is measured.
//!
//! The one limit: all questions together have a few seconds. What is not answered by then stays an
//! address.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::net::{IpAddr, SocketAddr};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use iotomy_record::{Trace, lossless};
use iotomy_sys::launch::helper;

/// For all questions.
const PATIENCE: Duration = Duration::from_secs(5);

/// Most addresses that are asked for, and at once.
const MOST: usize = 256;
const AT_ONCE: usize = 16;

/// Most bytes of an answer: a name has 253.
const ANSWER: u64 = 4096;

/// Makes the command that answers as getent(1) does.
type Resolver<'a> = dyn Fn() -> io::Result<Command> + 'a;

/// A question under way.
struct Question {
    address: IpAddr,
    child: Child,
}

/// Adds the names to the record. Returns how many addresses were not answered in time, or not asked for.
pub(super) fn resolve(record: &mut Trace) -> usize {
    let mut left = addresses(record);
    let unasked = left.len().saturating_sub(MOST);
    left.truncate(MOST);
    let (names, unanswered) = ask(&|| helper("getent"), left, PATIENCE);
    record.host_names = names;
    unanswered + unasked
}

/// The remote addresses, each once: those of most bytes first, and then those of which only requests are known.
fn addresses(record: &Trace) -> Vec<IpAddr> {
    let of_files = record.files.iter().filter_map(|file| file.socket.as_ref());
    let of_connections = record.connections.iter().map(|one| &one.ends);
    let of_requests = record.requests.iter().map(|one| &one.ends);
    let all = of_files.chain(of_connections).chain(of_requests);
    let remote = all.filter(|socket| !socket.is_unix());
    let remote = remote.filter_map(|socket| address(socket.remote.as_deref()?));
    let mut seen = BTreeSet::new();
    remote.filter(|one| !one.is_unspecified() && seen.insert(*one)).collect()
}

/// Of a host, with or without a port.
fn address(text: &str) -> Option<IpAddr> {
    text.parse().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|both| both.ip()))
}

fn ask(
    resolver: &Resolver<'_>,
    mut left: Vec<IpAddr>,
    patience: Duration,
) -> (BTreeMap<String, String>, usize) {
    let until = Instant::now() + patience;
    left.reverse();
    let mut names = BTreeMap::new();
    let mut asked: Vec<Question> = Vec::new();
    while !(left.is_empty() && asked.is_empty()) && Instant::now() < until {
        while asked.len() < AT_ONCE
            && let Some(address) = left.pop()
        {
            asked.extend(begin(resolver, address));
        }
        asked.retain_mut(|question| match question.child.try_wait() {
            Ok(None) => true,
            Ok(Some(_)) => {
                names.extend(answer(question));
                false
            }
            Err(_) => false,
        });
        std::thread::sleep(Duration::from_millis(2));
    }
    let unanswered = left.len() + asked.len();
    for question in &mut asked {
        // It may have ended meanwhile.
        let _ = question.child.kill();
        let _ = question.child.wait();
    }
    (names, unanswered)
}

fn begin(resolver: &Resolver<'_>, address: IpAddr) -> Option<Question> {
    let mut command = resolver().ok()?;
    command.args(["hosts", "--", &address.to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    Some(Question { address, child: command.spawn().ok()? })
}

/// The name in an answer such as `127.0.0.1  localhost other`.
fn answer(question: &mut Question) -> Option<(String, String)> {
    let mut line = Vec::new();
    question.child.stdout.take()?.take(ANSWER).read_to_end(&mut line).ok()?;
    let line = line.split(|byte| *byte == b'\n').next()?;
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let name = words.nth(1)?;
    Some((question.address.to_string(), lossless(name.get(..255).unwrap_or(name))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_with_and_without_a_port() {
        for (text, expected) in [
            ("127.0.0.1:80", Some("127.0.0.1")),
            ("[::1]:80", Some("::1")),
            ("::1", Some("::1")),
            ("10.0.0.1", Some("10.0.0.1")),
            ("/run/x", None),
        ] {
            assert_eq!(address(text), expected.map(|one| one.parse().unwrap()), "{text}");
        }
    }

    /// A resolver that does this.
    fn shell(script: &'static str) -> impl Fn() -> io::Result<Command> {
        move || {
            let mut command = Command::new("sh");
            command.args(["-c", script, "resolver"]);
            Ok(command)
        }
    }

    #[test]
    fn names_are_taken_as_they_come_and_those_without_an_answer_stay() {
        let script =
            r#"case $3 in 10.0.0.1) printf '10.0.0.1\tdb\033[2J.example db\n';; *) exit 2;; esac"#;
        let asked = ["10.0.0.1", "10.0.0.2"].map(|one| one.parse().unwrap()).to_vec();
        let (names, unanswered) = ask(&shell(script), asked, Duration::from_secs(600));
        let expected = [("10.0.0.1".to_owned(), lossless(b"db\x1b[2J.example"))];
        assert_eq!((names, unanswered), (expected.into(), 0));
    }

    #[test]
    fn a_resolver_that_hangs_is_not_waited_for() {
        let asked: Vec<IpAddr> =
            (0..40).map(|at| format!("10.0.0.{at}").parse().unwrap()).collect();
        let (names, unanswered) = ask(&shell("exec sleep 600"), asked, Duration::from_millis(50));
        assert_eq!((names.len(), unanswered), (0, 40));
    }
}
