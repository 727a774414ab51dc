//! `iotomy agent`: metrics of the machine for Prometheus and OpenTelemetry.
//!
//! The command needs no HTTP server, so `iotomy-agent` has it (`crates/agent`). It takes this process's place, and so its
//! status and signals are its own. This verb owns the options; the program judges their values.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::builder::{NonEmptyStringValueParser, PossibleValue, PossibleValuesParser};
use iotomy_observe::VARIABLES;

use super::program;
use crate::manual::{FAILED, Fact, Manual};

/// The name of the program.
const PROGRAM: &str = "iotomy-agent";

const ENDED: Fact = ("0", "SIGTERM or SIGINT ended it.");

pub(crate) const MANUAL: Manual = Manual {
    examples: &[
        ("iotomy agent", "Serve the metrics of the machine at http://127.0.0.1:9979/metrics:"),
        ("iotomy agent --cgroup '/system.slice/*'", "Watch the services of systemd alone:"),
        (
            "iotomy agent --by title --max-services 50",
            "Tell processes apart by their titles, and give 50 of them labels of their own:",
        ),
        (
            "iotomy agent --budget 1%",
            "Take 1 % of the CPU time at most, and count a part of the time where that asks for it:",
        ),
        (
            "iotomy agent --otlp http://127.0.0.1:4318",
            "Push the metrics to a collector of OpenTelemetry on this machine, too:",
        ),
        (
            "iotomy agent --listen 0.0.0.0:9979 --tls-cert cert.pem --tls-key key.pem --token-file token",
            "Serve the network, by TLS and to those that send the token:",
        ),
        ("iotomy agent --config /etc/iotomy/agent.toml", "Take the options from a file:"),
        ("curl -s http://127.0.0.1:9979/metrics | grep iotomy_calls_total", "Look at the metrics:"),
    ],
    status: &[ENDED, FAILED],
    see_also: &["iotomy-trace(1)", "prometheus(1)", "systemd.exec(5)"],
};

/// The variables that a service can be, of those of `iotomy trace --by`.
const BY: [&str; 2] = ["image", "title"];

/// Serve metrics of the machine's system calls to Prometheus, or push them over OTLP
///
/// Watches every process until SIGTERM or Ctrl-C, and answers each scrape with the counts so far: calls, errors, bytes and
/// times by service and call, and the time of threads by state. SIGHUP reads --config again. docs/agent.md lists the
/// metrics, with alerts and a dashboard.
#[derive(Debug, clap::Args)]
pub(crate) struct AgentArgs {
    /// The address and port of the metrics; one beyond the loopback interface needs TLS and a token; port 0 is any free one
    /// [default: 127.0.0.1:9979]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = NonEmptyStringValueParser::new())]
    listen: Option<String>,

    /// Serve by TLS with the certificate in FILE, and those above it, in PEM form; read again at SIGHUP
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,

    /// The private key of --tls-cert, in PEM form
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,

    /// Answer only requests that send the token in FILE, as `Authorization: Bearer TOKEN`; read again at SIGHUP
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// Serve other addresses than loopback ones without TLS and a token, behind a proxy that has them
    #[arg(long)]
    allow_plain: bool,

    /// Watch the control groups of such a path, and those below, instead of the whole machine
    ///
    /// PATTERN is a path as `iotomy trace --cgroup` takes it, or has `*`, `?` and brackets for any part of one. It means
    /// the groups that are there at the start, and again at each SIGHUP. May be repeated.
    #[arg(long, value_name = "PATTERN", value_parser = NonEmptyStringValueParser::new())]
    cgroup: Vec<String>,

    /// The variable by which processes are services, the label of most metrics [default: image]
    #[arg(long, value_name = "VAR", value_parser = variables())]
    by: Option<String>,

    /// How many services have labels of their own: the first that come; the others are added up as `other`
    /// [default: 200]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    max_services: Option<u32>,

    /// The most that watching may take of the watched CPU time, as in 1%: where counting every call takes more, calls count
    /// in a random part of the time and are scaled to all of it
    ///
    /// `iotomy_agent_sample_factor` says how many calls one that is counted stands for, `iotomy_calls_variance_total` how far
    /// the estimates may be off, and `iotomy_agent_overhead_ratio` what watching takes. Without it, all calls count.
    #[arg(long, value_name = "SHARE", value_parser = NonEmptyStringValueParser::new())]
    budget: Option<String>,

    /// Push the metrics over OTLP, too: to URL/v1/metrics of a collector of OpenTelemetry, by HTTP without encryption
    #[arg(long, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    otlp: Option<String>,

    /// The time between pushes, in seconds [default: 60]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..=3_600))]
    otlp_interval: Option<u32>,

    /// Read the options that are not given from FILE, whose keys are their names; again at SIGHUP
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

fn variables() -> PossibleValuesParser {
    let values = BY.into_iter().map(|name| {
        let declared = VARIABLES.iter().find(|one| one.name == name);
        PossibleValue::new(name).help(declared.map_or("", |one| one.summary))
    });
    PossibleValuesParser::new(values)
}

/// Becomes the program that serves them.
pub(crate) fn run(args: AgentArgs) -> Result<ExitCode> {
    let mut words: Vec<OsString> = Vec::new();
    let mut give = |option: &str, value: OsString| words.extend([option.into(), value]);
    for (option, value) in [
        ("--listen", args.listen.map(OsString::from)),
        ("--tls-cert", args.tls_cert.map(OsString::from)),
        ("--tls-key", args.tls_key.map(OsString::from)),
        ("--token-file", args.token_file.map(OsString::from)),
        ("--by", args.by.map(OsString::from)),
        ("--max-services", args.max_services.map(|most| most.to_string().into())),
        ("--budget", args.budget.map(OsString::from)),
        ("--otlp", args.otlp.map(OsString::from)),
        ("--otlp-interval", args.otlp_interval.map(|seconds| seconds.to_string().into())),
        ("--config", args.config.map(OsString::from)),
    ] {
        value.into_iter().for_each(|value| give(option, value));
    }
    args.cgroup.into_iter().for_each(|pattern| give("--cgroup", pattern.into()));
    words.extend(args.allow_plain.then(|| "--allow-plain".into()));
    program::become_program(PROGRAM, "build-agent", words)
}
