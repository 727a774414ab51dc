//! What is watched: the machine, or control groups.

use anyhow::{Context, Result};
use iotomy_host::{Cgroup, Cgroups};
use iotomy_observe::{Glob, Request, Selection, Target};
use iotomy_record::{bytes_of, path_text};
use std::path::Path;

use crate::settings::Settings;

/// The target of the settings, as the machine is now.
///
/// # Errors
/// There is no control group by one of the patterns.
pub(crate) fn target(settings: &Settings) -> Result<Target> {
    if settings.cgroups.is_empty() {
        return Ok(Target::Machine);
    }
    let all = Cgroups::of_this_machine();
    let mut cgroups: Vec<Cgroup> = Vec::new();
    for pattern in &settings.cgroups {
        for found in found(&all, pattern)? {
            if !cgroups.contains(&found) {
                cgroups.push(found);
            }
        }
    }
    Ok(Target::Running(Selection { cgroups, ..Selection::default() }))
}

/// The control groups of a pattern; without a sign of patterns in it, the one at this path.
fn found(all: &Cgroups, pattern: &str) -> Result<Vec<Cgroup>> {
    if !pattern.contains(['*', '?', '[']) {
        return Ok(vec![all.at(Path::new(pattern))?]);
    }
    let within = format!("/{}", pattern.trim_start_matches('/'));
    let glob = Glob::of_bytes(&bytes_of(&within), within.clone())
        .with_context(|| format!("invalid pattern of control groups {}", path_text(pattern)))?;
    Ok(all.matching(pattern, &|path| glob.matches(path))?)
}

/// The request of a watch that may go on for ever: it forgets what has ended. `sample`: the part of the time in which calls
/// count, if that may be a part.
pub(crate) fn request(target: Target, sample: Option<u32>) -> Request {
    let no_rings = Some(std::collections::BTreeSet::new());
    Request { forgets: true, ring_operations: no_rings, sample, ..Request::new(target) }
}

/// What is watched, in words.
pub(crate) fn description(target: &Target) -> String {
    match target {
        Target::Running(selection) => match &*selection.cgroups {
            [one] => format!("the control group {}", one.path),
            several => format!("{} control groups", several.len()),
        },
        Target::Machine | Target::Command(_) => String::from("the machine"),
    }
}
