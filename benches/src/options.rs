//! The options that every bench has.

use std::path::{Path, PathBuf};

use clap::Args;

/// How a bench is run, and where what it found is kept.
#[derive(Debug, Clone, Default, Args)]
pub struct Options {
    /// The iotomy to measure
    #[arg(long, value_name = "FILE", default_value = "target/release/iotomy")]
    pub iotomy: PathBuf,

    /// The folder that peers are built in
    #[arg(long, value_name = "FOLDER", default_value = "target/peers")]
    pub peers: PathBuf,

    /// Few runs, and nothing is kept unless --results says where
    #[arg(long)]
    pub quick: bool,

    /// Repeat the order of an earlier run
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,

    /// Keep the tables and the raw record below this folder
    #[arg(long, value_name = "FOLDER")]
    pub results: Option<PathBuf>,

    /// Leave with status 1 when a target is missed
    #[arg(long)]
    pub check: bool,

    /// The day in the name of the folder, where several benches are one run
    #[arg(long, value_name = "DATE", hide = true)]
    pub day: Option<String>,

    /// End when the program that started this one does
    #[arg(long, hide = true)]
    pub end_with_parent: bool,
}

impl Options {
    /// Returns the directory below which to store the results. By default a whole run is stored in `results`, and a
    /// partial run is not stored.
    pub fn below(&self, is_whole: bool) -> Option<PathBuf> {
        let default = || (is_whole && !self.quick).then(|| Path::new("results").to_owned());
        self.results.clone().or_else(default)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_runs_are_kept_unasked() {
        let quick = Options { quick: true, ..Options::default() };
        assert_eq!(Options::default().below(true), Some("results".into()));
        assert_eq!(Options::default().below(false), None);
        assert_eq!(quick.below(true), None);
        let asked = Options { results: Some("there".into()), ..quick };
        assert_eq!(asked.below(false), Some("there".into()));
    }
}
