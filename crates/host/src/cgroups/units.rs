//! systemd units: each has a control group of its name, somewhere below its slice.

use std::collections::BTreeSet;
use std::path::Path;

use super::mounts::Mount;
use super::{Cgroup, CgroupError, search};

/// The kinds of units that have a control group.
const SUFFIXES: [&str; 6] = [".service", ".scope", ".slice", ".socket", ".mount", ".swap"];

pub(super) fn all(mounts: &[Mount]) -> BTreeSet<String> {
    let name = |directory: &Path| Some(directory.file_name()?.to_str()?.to_owned());
    let is_unit = |name: &String| SUFFIXES.iter().any(|suffix| name.ends_with(suffix));
    let found =
        search(by_systemd(mounts), &|directory| name(directory).as_ref().is_some_and(is_unit));
    let names = found.iter().filter_map(|(_, directory)| name(directory));
    names.filter(|name| !name.ends_with(".slice")).collect()
}

/// The hierarchies of systemd: the controllers' own repeat what these say.
fn by_systemd(mounts: &[Mount]) -> &[Mount] {
    let behind = mounts.partition_point(|mount| mount.hierarchy == 0) + 1;
    &mounts[..behind.min(mounts.len())]
}

pub(super) fn find(
    mounts: &[Mount],
    name: &str,
    what: &dyn Fn() -> String,
) -> Result<Cgroup, CgroupError> {
    let unit = match SUFFIXES.iter().any(|suffix| name.ends_with(suffix)) {
        true => name.to_owned(),
        false => format!("{name}.service"),
    };
    let is_it = |directory: &Path| directory.file_name().is_some_and(|own| *own == *unit);
    let found = search(by_systemd(mounts), &is_it);
    match &*found {
        [(mount, directory)] => mount.cgroup(directory, what),
        [] => Err(CgroupError::Unknown {
            what: what(),
            reason: format!("no cgroup is called {unit}"),
            remedy: "a unit has one only while it runs: see `systemctl status`",
        }),
        several => Err(CgroupError::Several {
            what: what(),
            several: several.iter().map(|(_, directory)| directory.clone()).collect(),
        }),
    }
}
