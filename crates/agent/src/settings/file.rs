//! `agent.toml`: the same options as the command line's, by their names.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use iotomy_observe::nearest;
use iotomy_record::path_text;
use toml::de::{DeTable, DeValue};

use super::{listen, max_services, otlp_interval};
use crate::budget::Share;
use crate::otlp::Endpoint;
use crate::service::By;
use crate::trusted;

/// A file's part of the settings.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FileOptions {
    pub(super) listen: Option<SocketAddr>,
    pub(super) tls_cert: Option<PathBuf>,
    pub(super) tls_key: Option<PathBuf>,
    pub(super) token_file: Option<PathBuf>,
    pub(super) allow_plain: bool,
    pub(super) cgroup: Option<Vec<String>>,
    pub(super) by: Option<By>,
    pub(super) max_services: Option<u32>,
    pub(super) budget: Option<Share>,
    pub(super) otlp: Option<Endpoint>,
    pub(super) otlp_interval: Option<u32>,
}

/// What is wrong in a file, and in which line, from 1.
type Mistake = (usize, String);

/// The options in a file. Those of them that name files do so from its directory.
///
/// # Errors
/// It cannot be read, another user could have written it, or a line is not valid.
pub(super) fn read(path: &Path) -> Result<FileOptions> {
    let shown = path_text(path);
    let bytes = trusted::read(path).map_err(|error| match trusted::distrust(&error) {
        Some(reason) => anyhow!("cannot follow the configuration {shown}: {reason}"),
        None if error.kind() == ErrorKind::NotFound => anyhow!(
            "cannot read the configuration {shown}: {error}; make one (it may be empty), or leave out --config"
        ),
        None => anyhow::Error::new(error).context(format!("cannot read the configuration {shown}")),
    })?;
    let text = String::from_utf8(bytes).map_err(|_| anyhow!("it is not UTF-8 text"));
    let text = text.with_context(|| format!("cannot read the configuration {shown}"))?;
    let mut options = match options(&text) {
        Ok(options) => options,
        Err((line, what)) => bail!("invalid configuration {shown}: line {line}: {what}"),
    };
    let folder = path.parent().unwrap_or(Path::new(""));
    let FileOptions { tls_cert, tls_key, token_file, .. } = &mut options;
    for named in [tls_cert, tls_key, token_file].into_iter().flatten() {
        *named = folder.join(&*named);
    }
    Ok(options)
}

/// The options in a text.
pub(super) fn options(text: &str) -> Result<FileOptions, Mistake> {
    let line = |span: Range<usize>| {
        text.get(..span.start).map_or(1, |before| before.matches('\n').count() + 1)
    };
    let table = DeTable::parse(text)
        .map_err(|error| (error.span().map_or(1, line), error.message().replace('\n', ", ")))?;
    let mut options = FileOptions::default();
    for (key, value) in table.get_ref() {
        let name = key.get_ref().as_ref();
        let set = set(&mut options, name, value.get_ref());
        set.map_err(|what| (line(key.span()), what))?;
    }
    Ok(options)
}

/// The keys of a file.
const KEYS: [&str; 11] = [
    "listen",
    "tls-cert",
    "tls-key",
    "token-file",
    "allow-plain",
    "cgroup",
    "by",
    "max-services",
    "budget",
    "otlp",
    "otlp-interval",
];

fn set(options: &mut FileOptions, name: &str, value: &DeValue<'_>) -> Result<(), String> {
    let of_name = |what: String| format!("{name}: {what}");
    match name {
        "listen" => options.listen = Some(text(value).and_then(listen).map_err(of_name)?),
        "tls-cert" => options.tls_cert = Some(path(value).map_err(of_name)?),
        "tls-key" => options.tls_key = Some(path(value).map_err(of_name)?),
        "token-file" => options.token_file = Some(path(value).map_err(of_name)?),
        "allow-plain" => options.allow_plain = boolean(value).map_err(of_name)?,
        "by" => options.by = Some(text(value).and_then(By::parse).map_err(of_name)?),
        "budget" => options.budget = Some(text(value).and_then(Share::parse).map_err(of_name)?),
        "otlp" => options.otlp = Some(text(value).and_then(Endpoint::parse).map_err(of_name)?),
        "max-services" => {
            let number = integer(value).and_then(|number| max_services(&number));
            options.max_services = Some(number.map_err(of_name)?);
        }
        "otlp-interval" => {
            let number = integer(value).and_then(|number| otlp_interval(&number));
            options.otlp_interval = Some(number.map_err(of_name)?);
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
            options.cgroup = Some(patterns.into_iter().map(str::to_owned).collect());
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

fn path(value: &DeValue<'_>) -> Result<PathBuf, String> {
    match text(value)? {
        "" => Err(String::from("a path is empty")),
        path => Ok(PathBuf::from(path)),
    }
}

fn boolean(value: &DeValue<'_>) -> Result<bool, String> {
    match value {
        DeValue::Boolean(value) => Ok(*value),
        _ => Err(String::from("expected true or false")),
    }
}
