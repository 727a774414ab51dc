//! What the objects use of a kernel, read from themselves.

use std::collections::BTreeSet;

use super::embedded::{Embedded, embedded};
use super::helper_calls::helper_calls;
use super::parts::Parts;

static OBJECTS: [Embedded; 11] = [
    embedded!("shared"),
    embedded!("trace"),
    embedded!("trace_details"),
    embedded!("trace_where"),
    embedded!("anatomy"),
    embedded!("block"),
    embedded!("exchanges"),
    embedded!("wakeups"),
    embedded!("running"),
    embedded!("d"),
    embedded!("d_details"),
];

/// Each object with what it uses, as `IOTOMY_REFUSE` names it: the sections of its programs, the types of its maps,
/// the helpers it calls.
///
/// # Errors
/// An object cannot be opened, as where the kernel tells nothing of its types.
pub fn uses() -> Result<Vec<(&'static str, BTreeSet<String>)>, String> {
    let uses_of = |embedded: &'static Embedded| {
        let unpacked = embedded.unpack()?;
        let open = unpacked.open()?;
        let Parts { programs, maps } = Parts::of(&open);
        let sections = programs.iter().map(|(_, section)| format!("section={section}"));
        let maps = maps.iter().map(|(_, kind)| format!("map={kind}"));
        let helpers = helper_calls(&unpacked.bytes);
        let helpers = helpers.iter().map(|(_, number)| format!("helper={number}"));
        Ok((embedded.name, sections.chain(maps).chain(helpers).collect()))
    };
    OBJECTS.iter().map(uses_of).collect()
}
