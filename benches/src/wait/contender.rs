//! The contenders: processes that make one round for each line of input.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::child::own_path;
use crate::stats::median_or_nan;
use crate::talker::Talker;
use crate::wait::lock_file::locked;
use crate::wait::serve::MIO;

/// The waiter that is compared with the others.
pub(crate) const OURS: &str = "iotomy epoll";

/// Rounds in a turn. One more runs first as warm-up, because other processes have used the caches.
fn rounds_a_turn(events: usize) -> usize {
    if events < 1_000 { 15 } else { 3 }
}

/// A contender.
pub(crate) struct Contender {
    pub(crate) name: String,
    program: OsString,
    arguments: Vec<OsString>,
}

/// The available contenders, their versions, and the missing ones with the reason.
pub(crate) type Lineup = (Vec<Contender>, Vec<String>, Vec<(String, String)>);

/// Returns the contenders.
///
/// # Errors
/// When the peers were not built.
pub(crate) fn contenders(peers: &Path) -> Result<Lineup> {
    let own = own_path()?;
    let served = |name: &str, by: &str| Contender {
        name: name.to_owned(),
        program: own.clone().into(),
        arguments: ["wait", "serve", by].map(OsString::from).into(),
    };
    let ours = [served(OURS, "epoll"), served(MIO, MIO)];
    let output = Command::new(peers).arg("list").output().with_context(|| {
        format!("cannot run {}; `bench prepare wait` builds it", peers.display())
    })?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let built: Vec<(&str, &str)> = text.lines().filter_map(|line| line.split_once(' ')).collect();
    let peer = |(name, _): &(&str, &str)| Contender::of(peers, name);
    let lineup = ours.into_iter().chain(built.iter().map(peer)).collect();
    let is_missing = |name: &&str| built.iter().all(|(one, _)| one != name);
    let reason = "its headers were not here when the peers were built".to_owned();
    let missing = ["libevent", "libuv"].into_iter().filter(is_missing);
    let missing = missing.map(|name| (name.to_owned(), reason.clone())).collect();
    let versions = built.iter().filter(|(_, version)| *version != "-");
    let versions = versions.map(|(name, version)| format!("{name} {version}"));
    let versions = versions.chain(locked(MIO)).collect();
    Ok((lineup, versions, missing))
}

impl Contender {
    /// A loop of a program that is given the loop's name and the number of pairs.
    pub(crate) fn of(program: &Path, name: &str) -> Self {
        Self { name: name.to_owned(), program: program.into(), arguments: vec![name.into()] }
    }

    /// Starts the contender with this many pairs.
    pub(crate) fn start(&self, pairs: usize) -> Result<Running> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).arg(pairs.to_string());
        Talker::start(&self.name, &mut command).map(Running)
    }
}

/// A contender that is ready for rounds.
pub(crate) struct Running(Talker);

impl Running {
    /// Returns the median of a turn's rounds: CPU time and wall time, in ns.
    pub(crate) fn rounds(&mut self, active: usize, writes: usize) -> Result<(f64, f64)> {
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..=rounds_a_turn(active + writes) {
            let answer = self.round(active, writes);
            let [cpu, wall] = answer
                .with_context(|| format!("{} made no round of {active} {writes}", self.0.name()))?;
            if round > 0 {
                times[0].push(cpu);
                times[1].push(wall);
            }
        }
        Ok((median_or_nan(&times[0]), median_or_nan(&times[1])))
    }

    fn round(&mut self, active: usize, writes: usize) -> Result<[f64; 2]> {
        let line = self.0.ask(&format!("{active} {writes}"))?;
        let mut numbers = line.split_whitespace().map(str::parse::<f64>);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(cpu)), Some(Ok(wall))) => Ok([cpu, wall]),
            _ => anyhow::bail!("it answered {line:?}"),
        }
    }
}
