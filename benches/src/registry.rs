//! The benches, in the order in which they are run.

use std::ffi::OsString;
use std::path::Path;

use crate::summary::kept::Raw;
use crate::summary::{Row, anatomy, copy, files, race, report, trace, wait};

/// A text made of records, their rows, and a link to them.
pub type Block = fn(&[Raw], &[Row], &str) -> String;

/// A bench.
pub struct Bench {
    /// Its name, and that of its folder in the run's.
    pub name: &'static str,
    /// What it asks.
    pub title: &'static str,
    /// How long it takes, about, on two CPUs.
    pub minutes: u32,
    /// What it is told of the command that is measured and of the folder that peers are built in.
    pub arguments: fn(&Path, &Path) -> Vec<OsString>,
    /// What one of its raw records says.
    pub rows: fn(&Raw) -> Vec<Row>,
    /// What the rows of all its records say together.
    pub overall: fn(&[Row]) -> Vec<Row>,
    /// Its text for readers who want no more.
    pub block: Option<Block>,
}

/// Every bench.
pub static BENCHES: [Bench; 7] = [
    Bench {
        name: "trace",
        title: "what it costs to be observed",
        minutes: 10,
        arguments: |iotomy, _| told(&[("--iotomy", iotomy)]),
        rows: trace::rows,
        overall: nothing,
        block: Some(|raws, _, link| trace::block(raws, link)),
    },
    Bench {
        name: "race",
        title: "how often racers are wrong",
        minutes: 10,
        arguments: |iotomy, _| told(&[("--iotomy", iotomy)]),
        rows: race::rows,
        overall: nothing,
        block: Some(|raws, _, link| race::block(raws, link)),
    },
    Bench {
        name: "copy",
        title: "how fast bytes are copied",
        minutes: 12,
        arguments: |iotomy, peers| {
            told(&[("--iotomy", iotomy), ("--uutils", &peers.join("bin/coreutils"))])
        },
        rows: copy::rows,
        overall: copy::overall,
        block: Some(|_, rows, link| copy::block(rows, link)),
    },
    Bench {
        name: "wait",
        title: "what waiting costs",
        minutes: 3,
        arguments: |_, peers| told(&[("--peers", &peers.join("wait-peers"))]),
        rows: wait::rows,
        overall: nothing,
        block: Some(|raws, _, link| wait::block(raws, link)),
    },
    Bench {
        name: "files",
        title: "what small files cost",
        minutes: 3,
        arguments: |_, peers| told(&[("--peers", peers)]),
        rows: files::rows,
        overall: nothing,
        block: None,
    },
    Bench {
        name: "anatomy",
        title: "what anatomy costs",
        minutes: 3,
        arguments: |iotomy, _| told(&[("--iotomy", iotomy)]),
        rows: anatomy::rows,
        overall: nothing,
        block: None,
    },
    Bench {
        name: "report",
        title: "how long a page takes",
        minutes: 1,
        arguments: |iotomy, _| told(&[("--iotomy", iotomy)]),
        rows: report::rows,
        overall: nothing,
        block: Some(|raws, _, link| report::block(raws, link)),
    },
];

impl Bench {
    /// The name of its program.
    pub fn program(&self) -> String {
        format!("bench-{}", self.name)
    }
}

/// How long some of them take, bench by bench.
pub fn durations<'a>(benches: impl Iterator<Item = &'a Bench> + Clone) -> String {
    let each: Vec<String> =
        benches.clone().map(|bench| format!("{} {}", bench.name, bench.minutes)).collect();
    let all: u32 = benches.map(|bench| bench.minutes).sum();
    format!("some {all} minutes in all ({})", each.join(", "))
}

fn told(options: &[(&str, &Path)]) -> Vec<OsString> {
    options.iter().flat_map(|(name, path)| [OsString::from(name), path.into()]).collect()
}

fn nothing(_: &[Row]) -> Vec<Row> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_how_long_is_said_beforehand() {
        let text = durations(BENCHES.iter().filter(|bench| ["copy", "wait"].contains(&bench.name)));
        assert_eq!(text, "some 15 minutes in all (copy 12, wait 3)");
    }
}
