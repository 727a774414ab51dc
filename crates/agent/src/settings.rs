//! What the agent is told: on its command line, and in `agent.toml`, whose keys are the same options.
//!
//! The command line counts more than the file. What both leave out has a default.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Parser;
use clap::builder::{NonEmptyStringValueParser, PossibleValue, PossibleValuesParser};
use iotomy_observe::nearest;
use iotomy_record::path_text;
use iotomy_record::store::{Distrust, open_trusted};
use toml::de::{DeTable, DeValue};

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

/// The largest file that is read.
const MOST_BYTES: u64 = 1 << 20;

/// Serve metrics of the machine's system calls: the program that `iotomy agent` becomes, whose help explains the options
#[derive(Debug, Clone, Default, Parser)]
#[command(name = "iotomy-agent", version, max_term_width = 100)]
pub struct Args {
    /// The address and port of the metrics
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen)]
    listen: Option<SocketAddr>,

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

/// A file's part of the settings.
#[derive(Debug, Default, PartialEq, Eq)]
struct Given {
    listen: Option<SocketAddr>,
    cgroup: Option<Vec<String>>,
    by: Option<By>,
    max_services: Option<u32>,
    budget: Option<Share>,
    otlp: Option<Endpoint>,
    otlp_interval: Option<u32>,
}

/// What is wrong in a file, and in which line, from 1.
type Mistake = (usize, String);

impl Settings {
    /// Those of the command line, of the file that it names, and the defaults.
    ///
    /// # Errors
    /// The file cannot be read, another user could have written it, a line is not valid, or there is an interval of pushes
    /// that go nowhere.
    pub fn read(args: &Args) -> Result<Self> {
        let file = args.config.as_deref().map_or_else(|| Ok(Given::default()), read)?;
        let by = args.by.as_deref().map(By::parse).transpose().map_err(anyhow::Error::msg)?;
        let otlp = args.otlp.clone().or(file.otlp);
        let otlp_interval = args.otlp_interval.or(file.otlp_interval);
        if otlp.is_none() && otlp_interval.is_some() {
            bail!("otlp-interval is given without otlp: give the URL of a collector, too");
        }
        Ok(Self {
            listen: args.listen.or(file.listen).unwrap_or(LISTEN),
            cgroups: match args.cgroup.is_empty() {
                true => file.cgroup.unwrap_or_default(),
                false => args.cgroup.clone(),
            },
            by: by.or(file.by).unwrap_or_default(),
            max_services: args.max_services.or(file.max_services).unwrap_or(MAX_SERVICES),
            budget: args.budget.or(file.budget),
            otlp,
            otlp_interval: otlp_interval.unwrap_or(OTLP_INTERVAL),
        })
    }
}

fn variables() -> PossibleValuesParser {
    let value = |by: By| PossibleValue::new(by.name()).help(by.summary());
    PossibleValuesParser::new(By::ALL.map(value))
}

/// An address of this machine alone.
fn listen(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text.parse().map_err(|_| {
        format!("invalid address: expected an IP address and a port, as in {LISTEN}")
    })?;
    match address.ip().is_loopback() {
        true => Ok(address),
        false => Err(format!(
            "{} is not a loopback address, and others on the network could read the metrics: the agent has neither \
             TLS nor passwords; listen on {LISTEN} and put a proxy that has them in front",
            address.ip()
        )),
    }
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

fn read(path: &Path) -> Result<Given> {
    let shown = path_text(path);
    let file = open_trusted(path).map_err(|error| match distrust(&error) {
        Some(reason) => anyhow::anyhow!("cannot follow the configuration {shown}: {reason}"),
        None if error.kind() == ErrorKind::NotFound => anyhow::anyhow!(
            "cannot read the configuration {shown}: {error}; make one (it may be empty), or leave out --config"
        ),
        None => anyhow::Error::new(error).context(format!("cannot read the configuration {shown}")),
    })?;
    let text = content(file).with_context(|| format!("cannot read the configuration {shown}"))?;
    match given(&text) {
        Ok(given) => Ok(given),
        Err((line, what)) => bail!("invalid configuration {shown}: line {line}: {what}"),
    }
}

fn distrust(error: &io::Error) -> Option<String> {
    error.get_ref()?.downcast_ref::<Distrust>().map(ToString::to_string)
}

fn content(file: File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(io::Error::other("it is larger than 1 MiB"));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8 text"))
}

/// The settings in a text.
fn given(text: &str) -> Result<Given, Mistake> {
    let line = |span: Range<usize>| {
        text.get(..span.start).map_or(1, |before| before.matches('\n').count() + 1)
    };
    let table = DeTable::parse(text)
        .map_err(|error| (error.span().map_or(1, line), error.message().replace('\n', ", ")))?;
    let mut given = Given::default();
    for (key, value) in table.get_ref() {
        let name = key.get_ref().as_ref();
        let set = set(&mut given, name, value.get_ref());
        set.map_err(|what| (line(key.span()), what))?;
    }
    Ok(given)
}

/// The keys of a file.
const KEYS: [&str; 7] =
    ["listen", "cgroup", "by", "max-services", "budget", "otlp", "otlp-interval"];

fn set(given: &mut Given, name: &str, value: &DeValue<'_>) -> Result<(), String> {
    let of_name = |what: String| format!("{name}: {what}");
    match name {
        "listen" => given.listen = Some(text(value).and_then(listen).map_err(of_name)?),
        "by" => given.by = Some(text(value).and_then(By::parse).map_err(of_name)?),
        "budget" => given.budget = Some(text(value).and_then(Share::parse).map_err(of_name)?),
        "otlp" => given.otlp = Some(text(value).and_then(Endpoint::parse).map_err(of_name)?),
        "max-services" => {
            let number = integer(value).and_then(|number| max_services(&number));
            given.max_services = Some(number.map_err(of_name)?);
        }
        "otlp-interval" => {
            let number = integer(value).and_then(|number| otlp_interval(&number));
            given.otlp_interval = Some(number.map_err(of_name)?);
        }
        "cgroup" => {
            let patterns: Result<Vec<&str>, String> = match value {
                DeValue::Array(all) => all.iter().map(|one| text(one.get_ref())).collect(),
                one => text(one).map(|one| vec![one]),
            };
            let patterns = patterns.map_err(of_name)?;
            if patterns.iter().any(|one| one.is_empty()) {
                return Err(of_name(String::from("a pattern is empty")));
            }
            given.cgroup = Some(patterns.into_iter().map(str::to_owned).collect());
        }
        _ => {
            let near = nearest(name, KEYS.into_iter());
            let near = near.map_or_else(String::new, |near| format!("; is it {near}?"));
            return Err(format!("there is no option {name:?}{near}"));
        }
    }
    Ok(())
}

fn integer(value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::Integer(number) => Ok(number.to_string()),
        _ => Err(String::from("expected a number")),
    }
}

fn text<'v>(value: &'v DeValue<'_>) -> Result<&'v str, String> {
    match value {
        DeValue::String(text) => Ok(text),
        _ => Err(String::from("expected a text in quotes")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn args(words: &[&str]) -> Args {
        Args::try_parse_from([&["iotomy-agent"], words].concat()).unwrap()
    }

    #[test]
    fn the_command_line_counts_more_than_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("agent.toml");
        let named = ["--config", file.to_str().unwrap()];
        fs::write(
            &file,
            "listen = '[::1]:0'\nby = 'title'\ncgroup = ['/a/*', '/b']\nmax-services = 7\n\
             budget = '0.5%'\notlp = 'http://[::1]:4318'\notlp-interval = 5\n",
        )
        .unwrap();
        let of_file = Settings {
            listen: "[::1]:0".parse().unwrap(),
            cgroups: vec!["/a/*".into(), "/b".into()],
            by: By::Title,
            max_services: 7,
            budget: Share::parse("0.5%").ok(),
            otlp: Endpoint::parse("http://[::1]:4318").ok(),
            otlp_interval: 5,
        };
        assert_eq!(Settings::read(&args(&named)).unwrap(), of_file);
        let given = ["--listen", "127.0.0.1:1", "--cgroup", "/c", "--by", "image"];
        let otlp = ["--otlp", "http://a", "--otlp-interval", "6"];
        let more = ["--max-services", "9", "--budget", "100%"];
        let all = [&named[..], &given, &more, &otlp].concat();
        let given = Settings {
            listen: "127.0.0.1:1".parse().unwrap(),
            cgroups: vec!["/c".into()],
            by: By::Image,
            max_services: 9,
            budget: Share::parse("100%").ok(),
            otlp: Endpoint::parse("http://a").ok(),
            otlp_interval: 6,
        };
        assert_eq!(Settings::read(&args(&all)).unwrap(), given);
        fs::write(&file, "").unwrap();
        let usual = Settings {
            listen: LISTEN,
            cgroups: Vec::new(),
            by: By::Image,
            max_services: MAX_SERVICES,
            budget: None,
            otlp: None,
            otlp_interval: OTLP_INTERVAL,
        };
        assert_eq!(Settings::read(&args(&named)).unwrap(), usual);
        assert_eq!(Settings::read(&args(&[])).unwrap(), usual);
        let error = Settings::read(&args(&["--otlp-interval", "5"])).unwrap_err().to_string();
        assert!(error.starts_with("otlp-interval is given without otlp"), "{error}");
        fs::write(&file, "otlp-interval = 5\n").unwrap();
        assert!(Settings::read(&args(&named)).is_err());
        assert!(Settings::read(&args(&[&named[..], &["--otlp", "http://a"]].concat())).is_ok());
    }

    #[test]
    fn a_mistake_in_a_file_is_told_with_its_line() {
        for (text, line, what) in [
            ("\nmax-service = 7", 2, "there is no option \"max-service\"; is it max-services?"),
            ("colour = 1", 1, "there is no option \"colour\""),
            ("budget = 1", 1, "budget: expected a text in quotes"),
            ("budget = '1'", 1, "budget: invalid percentage: expected something like 1%"),
            ("budget = '0%'", 1, "budget: invalid percentage: expected 0.0001% to 100%"),
            ("by = 'image'\n\nlisten = 1", 3, "listen: expected a text in quotes"),
            ("listen = '0.0.0.0:1'", 1, "listen: 0.0.0.0 is not a loopback address"),
            ("listen = 'localhost:1'", 1, "listen: invalid address"),
            ("by = 'pid'", 1, "by: invalid variable"),
            ("max-services = 0", 1, "max-services: expected a number from 1 to 10000"),
            ("max-services = '7'", 1, "max-services: expected a number"),
            ("otlp = 'https://a'", 1, "otlp: https is not supported"),
            ("otlp = 4318", 1, "otlp: expected a text in quotes"),
            ("otlp-interval = 0", 1, "otlp-interval: expected a number from 1 to 3600"),
            ("otlp-interval = 1.5", 1, "otlp-interval: expected a number"),
            ("cgroup = ['/a', 1]", 1, "cgroup: expected a text in quotes"),
            ("cgroup = ['']", 1, "cgroup: a pattern is empty"),
            ("by = 'image'\nby = 'title'", 2, "duplicate key"),
            ("a\nb", 1, "key"),
        ] {
            let (at, error) = given(text).unwrap_err();
            assert!(error.contains(what), "{text}: {error}");
            assert_eq!(at, line, "{text}: {error}");
        }
    }

    #[test]
    fn a_file_that_others_can_write_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("agent.toml");
        let read = || {
            let args = args(&["--config", file.to_str().unwrap()]);
            Settings::read(&args).unwrap_err().to_string()
        };
        assert!(read().contains("make one (it may be empty), or leave out --config"));
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, PermissionsExt::from_mode(0o666)).unwrap();
        assert!(read().starts_with("cannot follow the configuration "), "{}", read());
        fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
        fs::write(&file, b"by = '\xff'").unwrap();
        let args = args(&["--config", file.to_str().unwrap()]);
        let error = iotomy_record::one_line(Settings::read(&args).unwrap_err().as_ref());
        assert!(error.ends_with("it is not UTF-8 text"), "{error}");
    }

    #[test]
    fn no_other_machine_is_served() {
        for refused in ["0.0.0.0:9979", "[::]:9979", "10.0.0.1:80", "[::ffff:10.0.0.1]:80"] {
            assert!(listen(refused).unwrap_err().contains("neither TLS nor passwords"));
        }
        for taken in ["127.0.0.1:9979", "127.8.8.8:1", "[::1]:0"] {
            assert_eq!(listen(taken).unwrap().to_string(), taken);
        }
    }
}
