//! Control groups that are selected, as the programs look for them (`cgroup_membership.bpf.h`).

use iotomy_host::Cgroup;

/// `struct cgroup_place`.
const PLACE_BYTES: usize = 256;

/// Rows for each control group: it may be made anew.
const TIMES: usize = 64;

/// The size of a table of selected control groups.
pub(super) fn rows(table: &str, cgroups: &[Cgroup]) -> Option<usize> {
    match table {
        "selected_cgroups" => Some(TIMES * cgroups.len()),
        "selected_places" => Some(cgroups.len()),
        _ => None,
    }
}

/// Tells the programs which are selected: `put` has a table know a key.
///
/// # Errors
/// That of `put`.
pub(super) fn select(
    cgroups: &[Cgroup],
    put: impl Fn(&str, &[u8]) -> Result<(), String>,
) -> Result<(), String> {
    for Cgroup { path, hierarchy, id, .. } in cgroups {
        put("selected_cgroups", &[id.to_ne_bytes(), u64::from(*hierarchy).to_ne_bytes()].concat())?;
        let mut place = [0; PLACE_BYTES];
        place[..4].copy_from_slice(&hierarchy.to_ne_bytes());
        // One of a longer path is not known again when it is made anew; with its end's zero.
        if path.len() < PLACE_BYTES - 4 {
            place[4..][..path.len()].copy_from_slice(path.as_bytes());
            put("selected_places", &place)?;
        }
    }
    Ok(())
}
