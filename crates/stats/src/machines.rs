//! Simulated machines: the measurements of sessions on them, as logarithms.

use crate::median;
use crate::order::Random;
use crate::sessions::LeveledSession;

/// A machine, by its effect on times.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Machine {
    /// Runs differ by 1 %, sessions by 0.5 %.
    Quiet,
    /// Runs differ by 1 %, and drift up or down by up to 5 % within a session; sessions wander by 2 %, and
    /// each has seven tenths of how far the one before was off.
    Drifting,
    /// Runs differ by 2 %, sessions by 1 %; bursts of some runs, a fifth in total, take half as
    /// long again.
    Bursty,
    /// Runs differ by 2 %, sessions by a factor of two (one standard deviation): more than the intervals of a
    /// comparison allow for.
    Wild,
}

pub(crate) const MACHINES: [(&str, Machine); 4] = [
    ("quiet", Machine::Quiet),
    ("drifting", Machine::Drifting),
    ("bursty", Machine::Bursty),
    ("wild", Machine::Wild),
];

/// Sessions of a machine, one after the other.
pub(crate) struct Sessions<'a> {
    machine: Machine,
    random: &'a mut Random,
    wander: f64,
}

impl<'a> Sessions<'a> {
    pub(crate) fn new(machine: Machine, random: &'a mut Random) -> Self {
        let wander = random.normal();
        Self { machine, random, wander }
    }

    /// The next session, with this many runs, at a level.
    pub(crate) fn next(&mut self, level: f64, runs: usize) -> LeveledSession {
        let random = &mut *self.random;
        self.wander = 0.7 * self.wander + 0.51f64.sqrt() * random.normal();
        let (noise, offset, drift) = match self.machine {
            Machine::Quiet => (0.01, 0.005 * random.normal(), 0.0),
            Machine::Drifting => (0.01, 0.02 * self.wander, 0.1 * (random.unit() - 0.5)),
            Machine::Bursty => (0.02, 0.01 * random.normal(), 0.0),
            Machine::Wild => (0.02, std::f64::consts::LN_2 * random.normal(), 0.0),
        };
        let mut is_burst = random.unit() < 0.2;
        let samples: Vec<f64> = (0..runs)
            .map(|at| {
                let turn = if is_burst { 0.4 } else { 0.1 };
                is_burst ^= random.unit() < turn;
                let burst = if is_burst && self.machine == Machine::Bursty { 0.4 } else { 0.0 };
                let place = (at as f64 + 0.5) / runs as f64 - 0.5;
                level + offset + drift * place + burst + noise * random.normal()
            })
            .collect();
        LeveledSession { level: median(&samples).unwrap_or(level), samples }
    }
}

/// Holds shares in percent against the table of this name in the guide, as far as they may differ where
/// logarithms are rounded otherwise; prints the table.
pub(crate) fn held_to_the_guide(name: &str, rows: &[(String, [f64; 4])], may_differ: f64) {
    let guide = include_str!("../../../docs/history.md");
    let start = format!("<!-- simulated: {name} -->");
    let table =
        guide.split_once(&start).and_then(|(_, rest)| rest.split_once("<!-- /simulated -->"));
    let table = table.map_or("", |(table, _)| table);
    let mut missing = Vec::new();
    for (row, shares) in rows {
        let cells = shares.map(|share| format!("{share:.1}")).join(" | ");
        let line = format!("| {row} | {cells} |");
        println!("{line}");
        let told = table.lines().find_map(|line| line.strip_prefix(&format!("| {row} |")));
        let told: Vec<f64> = told
            .into_iter()
            .flat_map(|rest| rest.split('|'))
            .filter_map(|cell| cell.trim().parse().ok())
            .collect();
        let is_near = |(told, share): (&f64, &f64)| (told - share).abs() <= may_differ;
        if told.len() != shares.len() || !told.iter().zip(shares).all(is_near) {
            missing.push(line);
        }
    }
    assert!(missing.is_empty(), "docs/history.md says otherwise:\n{}", missing.join("\n"));
}
