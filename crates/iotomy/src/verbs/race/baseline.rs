//! The comparison of a race with a baseline.

use anyhow::{Result, bail};
use iotomy_history::{Candidate, Earlier, Pick, against};
use iotomy_race::{Options, commands};
use iotomy_record::store::{Record, RecordRef};
use iotomy_record::{Against, Race};

use crate::errors::print_error;
use crate::verbs::history;
use crate::verbs::saving::VERSION;
use crate::verbs::this_machine::machine;

/// The baseline, found before anything is run, with something to compare with. The race is not to be kept
/// by the name of its own baseline.
pub(super) fn load(name: &str, saved_as: Option<&str>, options: &Options) -> Result<Earlier> {
    if saved_as == Some(name) {
        bail!(
            "cannot keep the race as {name:?} and compare it with {name:?}: the run would become \
             part of its own baseline; give --save another name"
        );
    }
    let candidate = Candidate {
        kind: "race",
        subjects: commands(options)?,
        machine: machine(),
        id: None,
        is_unjudged: false,
    };
    let earlier = Earlier::load(&history::opened()?, &Pick::from_text(name), &candidate)?;
    match earlier.record() {
        Record::Race(_) => Ok(earlier),
        _ => bail!("cannot race against {name:?}: it is a {}; name a race", earlier.kept.kind),
    }
}

/// The comparison with an earlier race; its failure costs nothing else.
pub(super) fn held(baseline: &Earlier, record: &Race) -> Option<Against> {
    let found = against(baseline, RecordRef::Race(record), VERSION);
    found.map_err(|error| print_error(&anyhow::Error::new(error))).ok()
}
