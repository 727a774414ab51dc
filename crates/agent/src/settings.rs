//! What the agent is told: on its command line, and in `agent.toml` (`file`), whose keys are the same options.
//!
//! The command line counts more than the file. What both leave out has a default. The one invariant: others on the network
//! are served by TLS and with a token, or because it is said that neither is wanted.

mod file;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Parser;
use clap::builder::{NonEmptyStringValueParser, PossibleValue, PossibleValuesParser};

use self::file::FileOptions;
use crate::budget::Share;
use crate::otlp::Endpoint;
use crate::service::By;

/// Where metrics are served, unless it is said.
pub const LISTEN: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9979);

/// How many services have labels, unless it is said.
pub const MAX_SERVICES: u32 = 200;

/// The most that may.
const MOST_SERVICES: u32 = 10_000;

/// Seconds between pushes, unless it is said: as OpenTelemetry has it.
pub const OTLP_INTERVAL: u32 = 60;

/// The most that may be between them.
const LONGEST_INTERVAL: u32 = 3_600;

/// Serve metrics of the machine's system calls: the program that `iotomy agent` becomes, whose help explains the options
#[derive(Debug, Clone, Default, Parser)]
#[command(name = "iotomy-agent", version, max_term_width = 100)]
pub struct Args {
    /// The address and port of the metrics
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen)]
    listen: Option<SocketAddr>,

    /// The certificate of the metrics' address, and those above it, in PEM form
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<PathBuf>,

    /// Its private key, in PEM form
    #[arg(long, value_name = "FILE")]
    tls_key: Option<PathBuf>,

    /// The token that who asks for metrics has to send
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// Serve others on the network without TLS and a token
    #[arg(long)]
    allow_plain: bool,

    /// Watch the control groups of such a path, instead of the whole machine
    #[arg(long, value_name = "PATTERN", value_parser = NonEmptyStringValueParser::new())]
    cgroup: Vec<String>,

    /// The variable by which processes are services
    #[arg(long, value_name = "VAR", value_parser = variables())]
    by: Option<String>,

    /// How many services have labels of their own
    #[arg(long, value_name = "N", value_parser = max_services)]
    max_services: Option<u32>,

    /// The most that watching may take of the watched CPU time
    #[arg(long, value_name = "SHARE", value_parser = Share::parse)]
    budget: Option<Share>,

    /// Push the metrics over OTLP to the collector at URL
    #[arg(long, value_name = "URL", value_parser = Endpoint::parse)]
    otlp: Option<Endpoint>,

    /// Seconds between pushes
    #[arg(long, value_name = "SECONDS", value_parser = otlp_interval)]
    otlp_interval: Option<u32>,

    /// Read the options that are not given from FILE
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

/// What the agent is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Where metrics are served.
    pub listen: SocketAddr,
    /// The certificate and the key of TLS.
    pub tls: Option<TlsFiles>,
    /// The token of those that ask.
    pub token_file: Option<PathBuf>,
    /// Patterns of control groups; without any, the machine is watched.
    pub cgroups: Vec<String>,
    /// By what processes are services.
    pub by: By,
    /// How many services have labels of their own.
    pub max_services: u32,
    /// The most that watching may take of the watched CPU time.
    pub budget: Option<Share>,
    /// Where metrics are pushed to.
    pub otlp: Option<Endpoint>,
    /// How often, in seconds.
    pub otlp_interval: u32,
}

/// The files of TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, and those above it.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl Settings {
    /// Those of the command line, of the file that it names, and the defaults.
    ///
    /// # Errors
    /// The file cannot be read, another user could have written it, a line is not valid, an option is given without the one
    /// that it needs, or others on the network would be served without TLS or a token.
    pub fn read(args: &Args) -> Result<Self> {
        let file = args.config.as_deref().map_or_else(|| Ok(FileOptions::default()), file::read)?;
        let by = args.by.as_deref().map(By::parse).transpose().map_err(anyhow::Error::msg)?;
        let otlp = args.otlp.clone().or(file.otlp);
        let otlp_interval = args.otlp_interval.or(file.otlp_interval);
        if otlp.is_none() && otlp_interval.is_some() {
            bail!("otlp-interval is given without otlp: give the URL of a collector, too");
        }
        let certificate = args.tls_cert.clone().or(file.tls_cert);
        let tls = match (certificate, args.tls_key.clone().or(file.tls_key)) {
            (Some(certificate), Some(key)) => Some(TlsFiles { certificate, key }),
            (None, None) => None,
            (Some(_), None) => {
                bail!("tls-cert is given without tls-key: give its private key, too")
            }
            (None, Some(_)) => {
                bail!("tls-key is given without tls-cert: give its certificate, too")
            }
        };
        let settings = Self {
            listen: args.listen.or(file.listen).unwrap_or(LISTEN),
            tls,
            token_file: args.token_file.clone().or(file.token_file),
            cgroups: match args.cgroup.is_empty() {
                true => file.cgroup.unwrap_or_default(),
                false => args.cgroup.clone(),
            },
            by: by.or(file.by).unwrap_or_default(),
            max_services: args.max_services.or(file.max_services).unwrap_or(MAX_SERVICES),
            budget: args.budget.or(file.budget),
            otlp,
            otlp_interval: otlp_interval.unwrap_or(OTLP_INTERVAL),
        };
        if !(args.allow_plain || file.allow_plain) {
            settings.check_who_is_served()?;
        }
        Ok(settings)
    }

    /// Others on the network are served by TLS, and with a token.
    fn check_who_is_served(&self) -> Result<()> {
        let address = self.listen.ip();
        let missing = match (&self.tls, &self.token_file) {
            _ if address.is_loopback() => return Ok(()),
            (Some(_), Some(_)) => return Ok(()),
            (None, None) => "tls-cert, tls-key and token-file",
            (None, Some(_)) => "tls-cert and tls-key",
            (Some(_), None) => "token-file",
        };
        bail!(
            "{address} is not a loopback address, and others on the network could read the metrics: give {missing}, too; \
             or listen on {LISTEN}; or give allow-plain, if a proxy in front has TLS and passwords"
        )
    }
}

fn variables() -> PossibleValuesParser {
    let value = |by: By| PossibleValue::new(by.name()).help(by.summary());
    PossibleValuesParser::new(By::ALL.map(value))
}

/// An address and a port.
fn listen(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| format!("invalid address: expected an IP address and a port, as in {LISTEN}"))
}

fn max_services(text: &str) -> Result<u32, String> {
    number(text, MOST_SERVICES)
}

fn otlp_interval(text: &str) -> Result<u32, String> {
    number(text, LONGEST_INTERVAL)
}

fn number(text: &str, most: u32) -> Result<u32, String> {
    let number = text.parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| format!("expected a number from 1 to {most}"))
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
