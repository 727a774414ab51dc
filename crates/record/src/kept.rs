//! Facts about kept records that lists and trends need without reading the records.

/// A run in the history.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptRun {
    /// Its number, which no other run ever has.
    pub id: u64,
    /// The name it was given, which other runs may have, too.
    pub name: Option<String>,
    /// `trace`, `race`, `copy`, `limits` or `sweep`.
    pub kind: String,
    /// When it began, RFC 3339.
    pub started: String,
    /// The command or commands that ran.
    pub subject: String,
    /// The iotomy that kept it.
    pub version: String,
    /// The kernel it ran on.
    pub kernel: String,
    /// The name of the machine; empty where its record has none.
    pub machine: String,
    /// The hardware of the machine, in a line.
    pub hardware: String,
    /// The size of its record as JSON.
    pub bytes: u64,
    /// Its first measure.
    pub measure: Option<Measure>,
}

/// Something a run measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Measure {
    /// The subject: a command, `limits`, an experiment.
    pub subject: String,
    /// Which: `wall`, `cpu`, a limit's name, a case's values.
    pub name: String,
    /// The unit: `ns`, `bytes/s`; empty for a count.
    pub unit: String,
    /// The middle.
    pub value: f64,
    /// The measurements it is the middle of, where the record has them; else empty.
    pub samples: Vec<f64>,
    /// How many there were.
    pub runs: u64,
}

/// A measure over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Trend {
    /// The kind of the runs.
    pub kind: String,
    /// The measured subject.
    pub subject: String,
    /// Which of its measures.
    pub measure: String,
    /// The unit.
    pub unit: String,
    /// In the order of time.
    pub points: Vec<Point>,
    /// The first point of each new level.
    pub changes: Vec<usize>,
    /// What the machine of the runs is called.
    pub machine: String,
    /// Runs that are left out: on other machines, or before the oldest.
    pub elsewhere: u64,
    /// Other measures of the same subject.
    pub others: Vec<String>,
}

/// One run of a trend.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The run's number.
    pub id: u64,
    /// Its name.
    pub name: Option<String>,
    /// When it began, RFC 3339.
    pub started: String,
    /// The middle of its measurements.
    pub value: f64,
    /// How many there were.
    pub runs: u64,
    /// The kernel it ran on.
    pub kernel: String,
    /// The iotomy that kept it.
    pub version: String,
}
