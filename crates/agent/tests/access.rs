//! TLS and the token: who gets the metrics, and who does not.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use iotomy_test_requirements::wait::until;
use nix::sys::signal::Signal;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::support::cgroup::Cgroup;
use crate::support::{Agent, Samples, command};

const RIGHT: &str = "0123456789abcdef0123456789abcdef";

/// The agent's files: its certificate, which clients trust, its key and its token.
struct Files {
    folder: tempfile::TempDir,
    certificate: CertificateDer<'static>,
}

impl Files {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut files = Self { folder, certificate: Vec::new().into() };
        files.write_certificate(2100);
        files.write("token", RIGHT);
        files
    }

    /// Another one, which ends with such a year.
    fn write_certificate(&mut self, until: i32) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([String::from("localhost")]).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(until, 1, 1);
        let certificate = params.self_signed(&key).unwrap();
        self.write("cert.pem", &certificate.pem());
        self.write("key.pem", &key.serialize_pem());
        self.certificate = certificate.der().clone();
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    }

    /// The options that name them.
    fn words(&self) -> Vec<String> {
        let named =
            [("--tls-cert", "cert.pem"), ("--tls-key", "key.pem"), ("--token-file", "token")];
        let word = |(option, name): (&str, &str)| {
            [option.to_owned(), self.folder.path().join(name).to_str().unwrap().to_owned()]
        };
        named.into_iter().flat_map(word).collect()
    }

    /// An agent of a control group of its own.
    fn agent(&self) -> Option<(Agent, Cgroup)> {
        let cgroup = Cgroup::new("access")?;
        let words = self.words();
        let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
        words.extend(["--cgroup", &cgroup.path]);
        Some((Agent::start(&words)?, cgroup))
    }

    /// The answer to a request with such a line in its head, by TLS; an error where the agent's certificate is not the one
    /// here.
    fn ask(&self, agent: &Agent, line: &str) -> std::io::Result<String> {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("localhost").unwrap();
        let session = ClientConnection::new(Arc::new(config), name).unwrap();
        let mut stream = StreamOwned::new(session, agent.connect());
        write!(stream, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n{line}\r\n")?;
        let mut answer = String::new();
        // To the end that TLS has: without it, this is an error.
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    }

    fn scrape(&self, agent: &Agent, token: &str) -> Samples {
        let answer = self.ask(agent, &format!("Authorization: Bearer {token}\r\n")).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
        Samples::parse(body)
    }
}

#[test]
fn who_has_the_token_gets_the_metrics_by_tls_and_nobody_else_does() {
    let files = Files::new();
    let Some((agent, _cgroup)) = files.agent() else { return };
    assert!(agent.said().contains("metrics are at https://"), "{}", agent.said());
    for (line, challenge) in [
        ("", "www-authenticate: Bearer realm=\"iotomy-agent\"\r\n"),
        ("Authorization: Basic YTpi\r\n", "www-authenticate: Bearer realm=\"iotomy-agent\"\r\n"),
        ("Authorization: Bearer 0123456789abcdef\r\n", "error=\"invalid_token\""),
    ] {
        let answer = files.ask(&agent, line).unwrap();
        assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
        assert!(answer.contains(challenge) && !answer.contains("iotomy_"), "{answer}");
    }
    let samples = files.scrape(&agent, RIGHT);
    assert_eq!(samples.get("iotomy_agent_requests_unauthorized_total"), 3.0);
    assert_eq!(samples.get("iotomy_agent_scrapes_total"), 1.0);
    // The first moment of 2100.
    let expiry = samples.get("iotomy_agent_tls_certificate_expiry_time_seconds");
    assert_eq!(expiry, 4_102_444_800.0);
    assert!(!agent.said().contains(RIGHT));
}

#[test]
fn whoever_speaks_no_tls_is_told_or_cut_off_and_harms_nobody() {
    let files = Files::new();
    let Some((agent, _cgroup)) = files.agent() else { return };
    let answer = agent.ask(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    assert!(answer.ends_with("this port speaks TLS: ask by https://...\n"), "{answer}");
    // The first record of TLS, and garbage behind it; one that says nothing has 5 seconds for it.
    let mut garbage = agent.connect();
    garbage.write_all(&[[22, 3, 1, 0, 200].as_slice(), &[0xff; 200]].concat()).unwrap();
    let silent: TcpStream = agent.connect();
    until("both are cut off", || {
        files.scrape(&agent, RIGHT).get("iotomy_agent_connections_cut_total") == 3.0
    });
    drop((garbage, silent));
}

#[test]
fn a_certificate_and_a_token_are_read_again_at_sighup() {
    let mut files = Files::new();
    let Some((agent, _cgroup)) = files.agent() else { return };
    let first = files.certificate.clone();
    const OTHER: &str = "another token than before";
    files.write("token", &OTHER.replace(' ', "-"));
    files.write_certificate(2090);
    let second = std::mem::replace(&mut files.certificate, first);
    // Nothing is read before it is said.
    files.scrape(&agent, RIGHT);
    agent.send(Signal::SIGHUP);
    agent.until_said("SIGHUP: the configuration was read again");
    assert!(files.ask(&agent, "").is_err(), "it has the certificate of before");
    files.certificate = second;
    assert!(
        files.ask(&agent, &format!("Authorization: Bearer {RIGHT}\r\n")).unwrap().contains(" 401 ")
    );
    files.scrape(&agent, &OTHER.replace(' ', "-"));
    // What is wrong changes neither.
    files.write("key.pem", &KeyPair::generate().unwrap().serialize_pem());
    files.write("token", RIGHT);
    agent.send(Signal::SIGHUP);
    let said = agent.until_said("is not that of the certificate");
    let stays =
        "SIGHUP: the configuration stays as it was, and so do the certificate and the token: ";
    assert!(said.contains(stays), "{said}");
    let samples = files.scrape(&agent, &OTHER.replace(' ', "-"));
    assert_eq!(samples.get("iotomy_agent_config_last_reload_successful"), 0.0);
}

#[test]
fn files_that_would_serve_nobody_are_refused_at_the_start() {
    let mut files = Files::new();
    files.write_certificate(2021);
    let words = files.words();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let output = command(&words).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.starts_with("iotomy: cannot use the certificate "), "{stderr}");
    assert!(stderr.ends_with(": it expired at 2021-01-01T00:00:00.000Z\n"), "{stderr}");
}
