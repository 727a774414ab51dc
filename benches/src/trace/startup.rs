//! The time of iotomy from its start to the command's first call, plus the time from the command's
//! end to the end of the report: the wall time of `iotomy trace -- true`, and of
//! `iotomy anatomy -- true`, minus that of `true`, in rounds.

use anyhow::{Context, Result};
use iotomy_record::store;

use crate::child::Signals;
use crate::order::Order;
use crate::scratch::Scratch;

/// The three runs of a round.
#[derive(Debug, Clone, Copy)]
enum Run {
    Bare,
    Traced,
    Anatomy,
}

/// The measured rounds, in ns.
#[derive(Debug, Default)]
pub(crate) struct Startup {
    pub(crate) bare: Vec<f64>,
    pub(crate) traced: Vec<f64>,
    /// The wall time of `iotomy anatomy -- true`.
    pub(crate) anatomy: Vec<f64>,
    /// The part of the traced runs before the command was released: load, attach and calibrate.
    pub(crate) before_command: Vec<f64>,
}

impl Startup {
    /// Returns the traced wall time minus the bare one, round by round.
    pub(crate) fn added(&self) -> Vec<f64> {
        self.traced.iter().zip(&self.bare).map(|(traced, bare)| traced - bare).collect()
    }

    /// Returns the wall time of an anatomy minus the bare one, round by round.
    pub(crate) fn added_by_anatomy(&self) -> Vec<f64> {
        self.anatomy.iter().zip(&self.bare).map(|(anatomy, bare)| anatomy - bare).collect()
    }
}

/// Measures `rounds` rounds of the three runs, each in random order. The report is written to the null device.
pub(crate) fn measure(
    signals: &Signals,
    iotomy: &str,
    folder: &Scratch,
    order: &mut Order,
    rounds: u32,
) -> Result<Startup> {
    let record = folder.path().join("startup.json");
    let json = record.to_string_lossy().into_owned();
    let bare = ["true"].map(str::to_owned);
    let traced = [iotomy, "trace", "--observer=bpf", "--json", &json, "--", "true"];
    let traced = traced.map(str::to_owned);
    let anatomy = [iotomy, "anatomy", "--", "true"].map(str::to_owned);
    let mut startup = Startup::default();
    let mut due = [Run::Bare, Run::Traced, Run::Anatomy];
    for _ in 0..rounds {
        order.shuffle(&mut due);
        for run in due {
            match run {
                Run::Bare => startup.bare.push(signals.wall_ns(&bare)?),
                Run::Anatomy => startup.anatomy.push(signals.wall_ns(&anatomy)?),
                Run::Traced => {
                    startup.traced.push(signals.wall_ns(&traced)?);
                    let seen =
                        store::load_trace(&record).context("cannot read the record of `true`")?;
                    startup.before_command.push(seen.observer.startup_ns as f64);
                }
            }
        }
    }
    Ok(startup)
}
