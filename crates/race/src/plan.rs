//! The request for a race, as its record stores it.

use std::os::unix::ffi::OsStrExt;

use iotomy_record::{RacePlan, lossless};
use iotomy_stats::sequential::ALPHA;

use super::Options;
use super::outputs::Output;

/// The plan for these options, with this number of untimed runs first.
pub(super) fn plan(options: &Options, warmup: u64) -> RacePlan {
    RacePlan {
        min_effect: options.min_effect,
        warmup,
        runs: options.runs,
        max_time_ns: options.max_time.and_then(|time| u64::try_from(time.as_nanos()).ok()),
        seed: options.seed,
        output: match &options.output {
            Output::Null => "null".to_owned(),
            Output::Pipe => "pipe".to_owned(),
            Output::File => "file".to_owned(),
            Output::Inherit => "inherit".to_owned(),
            Output::Path(path) => lossless(path.as_os_str().as_bytes()),
        },
        cache: options.cache.name().to_owned(),
        drop_caches: options.drop_caches,
        prepare: options.prepare.clone(),
        setup: options.setup.clone(),
        cleanup: options.cleanup.clone(),
        ignore_failure: options.ignore_failure,
        redo: options.redo,
        shared_error: Some(ALPHA),
    }
}
