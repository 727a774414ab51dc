//! The text of a program, and what its macros stand for.

use std::fs;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail, ensure};
use iotomy_dtrace::form::Form;
use iotomy_dtrace::{Macros, Options, Problem, Scope, compile_with_options};

use super::constants::constants;
use crate::errors::InText;
use crate::screen::path_text;

/// The largest script.
const MOST_BYTES: u64 = 4 << 20;

/// A program, by its text.
pub(super) struct Program {
    name: String,
    text: String,
    arguments: Vec<String>,
}

impl Program {
    /// Reads it from a file, or puts the parts of the command line together.
    ///
    /// # Errors
    /// The file cannot be read, or is not text.
    pub(super) fn read(
        parts: &[String],
        script: Option<&Path>,
        arguments: &[String],
    ) -> Result<Self> {
        let Some(path) = script else {
            let (name, text) = ("-n".to_owned(), parts.join("\n"));
            return Ok(Self { name, text, arguments: arguments.to_vec() });
        };
        let is_standard = path == Path::new("-");
        let name = if is_standard { "standard input".into() } else { path_text(path) };
        let cannot = || format!("cannot read the program {name}");
        let mut bytes = Vec::new();
        match is_standard {
            true => std::io::stdin().take(MOST_BYTES + 1).read_to_end(&mut bytes),
            false => fs::File::open(path)
                .and_then(|file| file.take(MOST_BYTES + 1).read_to_end(&mut bytes)),
        }
        .with_context(cannot)?;
        ensure!(bytes.len() as u64 <= MOST_BYTES, "{}: it is larger than 4 MiB", cannot());
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            anyhow!("{}: its byte {at} is not UTF-8 text", cannot())
        })?;
        Ok(Self { name, text, arguments: arguments.to_vec() })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Compiles it; `target` is the process of `$target`.
    ///
    /// # Errors
    /// What is wrong with it, each at its place.
    pub(super) fn compile(
        &self,
        target: Option<u32>,
        options: &[(String, Option<String>)],
    ) -> Result<Form> {
        for (argument, number) in self.arguments.iter().zip(1..) {
            if !self.names_argument(number) {
                bail!("the program does not use its argument {argument:?}: it has no ${number}");
            }
        }
        let mut arguments = vec![self.name.clone()];
        arguments.extend(self.arguments.iter().cloned());
        let is_default = |(name, value): &(String, Option<String>)| {
            name == "defaultargs" && Options::is_on(value.as_deref())
        };
        let defaults = options.iter().rev().find(|(name, _)| name == "defaultargs");
        let defaults = defaults.is_some_and(is_default);
        let target = target.map(i64::from);
        let macros = Macros { arguments, defaults, target, own: own() };
        let constants = constants();
        let scope = Scope { variables: &[], constants: &constants, aggregations: &[] };
        compile_with_options(&self.text, scope, &macros, options).map_err(|problems| {
            let all: Vec<String> = problems.iter().map(|problem| self.shown(problem)).collect();
            InText(all.join("\n")).into()
        })
    }

    /// Whether `$1` or the like is anywhere in it.
    fn names_argument(&self, number: usize) -> bool {
        let name = format!("${number}");
        let is_digit = |rest: &str| rest.starts_with(|one: char| one.is_ascii_digit());
        self.text.match_indices(&name).any(|(at, _)| !is_digit(&self.text[at + name.len()..]))
    }

    /// A problem at its place.
    pub(super) fn shown(&self, problem: &Problem) -> String {
        problem.shown_at(&self.name, &self.text)
    }
}

/// The macros that are this process's own. A session or group whose leader is in an outer PID namespace is 0, as the
/// kernel says it: the types of rustix have no such number.
fn own() -> Vec<(&'static str, i64)> {
    use nix::unistd::{getegid, geteuid, getgid, getpgrp, getppid, getsid, getuid};
    vec![
        ("pid", i64::from(std::process::id())),
        ("ppid", i64::from(getppid().as_raw())),
        ("pgid", i64::from(getpgrp().as_raw())),
        ("sid", getsid(None).map_or(0, |session| i64::from(session.as_raw()))),
        ("uid", i64::from(getuid().as_raw())),
        ("euid", i64::from(geteuid().as_raw())),
        ("gid", i64::from(getgid().as_raw())),
        ("egid", i64::from(getegid().as_raw())),
    ]
}
