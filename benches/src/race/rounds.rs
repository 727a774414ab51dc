//! The races: every racer once per round, in random order.

use std::path::Path;

use anyhow::{Context, Result};

use crate::child::Signals;
use crate::order::Order;
use crate::race::neighbour::Watch;
use crate::race::tool::{Tool, ToolRace, race};
use crate::run::progress;
use crate::stats::median;

/// The pair to race, and its surroundings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    /// A command against itself on a machine left alone.
    SameQuiet,
    /// A command against itself, while a neighbour occupies a CPU from half-way on.
    SameNeighbour,
    /// A command against one with 3 % more work.
    MoreQuiet,
}

impl Field {
    pub(crate) const ALL: [Self; 3] = [Self::SameQuiet, Self::SameNeighbour, Self::MoreQuiet];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::SameQuiet => "against itself, quiet",
            Self::SameNeighbour => "against itself, a neighbour arriving midway",
            Self::MoreQuiet => "against 3 % more work, quiet",
        }
    }

    /// Returns the work of the second command, given `units` for the first.
    pub(crate) fn other(self, units: u64) -> u64 {
        match self {
            Self::SameQuiet | Self::SameNeighbour => units,
            Self::MoreQuiet => units + units * 3 / 100,
        }
    }
}

/// The races of one tool in one field.
#[derive(Debug)]
pub(crate) struct Lane {
    pub(crate) field: Field,
    pub(crate) tool: Tool,
    pub(crate) races: Vec<ToolRace>,
    /// Runs of the load in each race, including untimed ones.
    runs: Vec<f64>,
}

/// The environment of the rounds.
pub(crate) struct Rounds<'a> {
    pub(crate) signals: &'a Signals,
    pub(crate) iotomy: &'a str,
    pub(crate) load: &'a str,
    pub(crate) folder: &'a Path,
    pub(crate) units: u64,
    pub(crate) races: u32,
    /// One in this many rounds includes the slow racers; 0: none does.
    pub(crate) slow_every: u32,
}

impl Rounds<'_> {
    /// Runs all races.
    pub(crate) fn run(&self, order: &mut Order) -> Result<Vec<Lane>> {
        let fifo = self.folder.join("runs");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).context("cannot make a FIFO")?;
        let mut lanes: Vec<Lane> = Field::ALL
            .into_iter()
            .flat_map(|field| Tool::ALL.map(|tool| (field, tool)))
            .map(|(field, tool)| Lane { field, tool, races: Vec::new(), runs: Vec::new() })
            .collect();
        // The middle of a race is only known after some races without a neighbour.
        for fields in [&[Field::SameQuiet, Field::MoreQuiet][..], &[Field::SameNeighbour]] {
            for round in 0..self.races {
                progress(&format!("{}: {} of {}", fields[0].name(), round + 1, self.races));
                self.round(round, fields, &mut lanes, &fifo, order)?;
            }
        }
        lanes.retain(|lane| !lane.races.is_empty());
        Ok(lanes)
    }

    fn round(
        &self,
        round: u32,
        fields: &[Field],
        lanes: &mut [Lane],
        fifo: &Path,
        order: &mut Order,
    ) -> Result<()> {
        let slow = self.slow_every > 0 && round.is_multiple_of(self.slow_every);
        let mut due: Vec<usize> = (0..lanes.len())
            .filter(|at| fields.contains(&lanes[*at].field) && (slow || !lanes[*at].tool.is_slow()))
            .collect();
        order.shuffle(&mut due);
        for at in due {
            let (field, tool) = (lanes[at].field, lanes[at].tool);
            let after = (field == Field::SameNeighbour).then(|| midway(lanes, tool));
            let command = |units: u64| format!("{} {units} {}", self.load, fifo.display());
            let commands = [self.units, field.other(self.units)].map(command);
            let watch = Watch::begin(fifo, after)?;
            let raced = race(tool, self.iotomy, &commands, self.folder, self.signals);
            lanes[at].runs.push(watch.end()? as f64);
            lanes[at].races.push(raced?);
        }
        Ok(())
    }
}

/// Returns half the number of runs that a racer makes of a command against itself without a
/// neighbour.
fn midway(lanes: &[Lane], tool: Tool) -> u64 {
    let quiet = lanes.iter().find(|lane| lane.tool == tool && lane.field == Field::SameQuiet);
    let runs = quiet.and_then(|lane| median(&lane.runs)).unwrap_or(0.0);
    (runs / 2.0) as u64
}
