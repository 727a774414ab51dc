//! The options of `iotomy lab run`.

use std::path::PathBuf;
use std::time::Duration;

use iotomy_lab::Share;
use iotomy_race::Axis;

use crate::screen::OutputStyle;
use crate::verbs::saving::SaveArgs;
use crate::verbs::this_machine::machine_name;
use crate::verbs::trace::seconds;

/// Run experiments and judge their claims on this machine
#[derive(Debug, clap::Args)]
pub(super) struct RunArgs {
    /// Experiments, as `iotomy lab list` names them
    #[arg(value_name = "NAME", required_unless_present_any = ["all", "resume"], conflicts_with = "all")]
    pub(super) names: Vec<String>,

    /// Run every experiment
    #[arg(long)]
    pub(super) all: bool,

    /// Give an axis these values, as in size=64M,1G; repeatable
    #[arg(short = 'L', long = "axis", value_name = "AXIS=V,…", conflicts_with = "resume")]
    pub(super) axes: Vec<Axis>,

    /// Use few values: done in 20 s, enough to see the shape
    #[arg(long, conflicts_with_all = ["full", "resume"])]
    pub(super) quick: bool,

    /// Use the values of the article, however long they take
    #[arg(long, conflicts_with = "resume")]
    pub(super) full: bool,

    /// Time limit for measuring each experiment; the watched runs afterwards take up to a fifth of
    /// it more, or 5 s [default: 11 with --quick, none with --full, else 130]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, conflicts_with = "resume")]
    pub(super) max_time: Option<Duration>,

    /// Resume interrupted runs of these experiments, or without names all of them; a completed run
    /// is shown again, not repeated
    #[arg(long)]
    pub(super) resume: bool,

    /// Repeat the random order of an earlier run
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    pub(super) seed: Option<u64>,

    /// Run one of N shares of the cases, as in 2/5: `iotomy lab merge` joins their records. Run again, it
    /// resumes, or says that it is complete
    #[arg(long, value_name = "I/N", requires = "json", conflicts_with = "resume")]
    pub(super) shard: Option<Share>,

    /// The name of this machine in the record [default: IOTOMY_MACHINE, or the host's name]
    #[arg(long, value_name = "NAME", value_parser = machine_name)]
    pub(super) machine: Option<String>,

    /// A directory on the file system to use [default: /var/tmp; with --resume, that of the
    /// interrupted run]
    #[arg(long, value_name = "DIR")]
    pub(super) path: Option<PathBuf>,

    /// Write the record to FILE, or the records of several experiments to NAME.json in this
    /// directory (NAME-I-of-N.json of shards); `-` is standard output
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,

    #[command(flatten)]
    pub(super) save: SaveArgs,

    /// Print no report and no progress
    #[arg(short, long)]
    pub(super) quiet: bool,

    #[command(flatten)]
    pub(super) looks: OutputStyle,
}
