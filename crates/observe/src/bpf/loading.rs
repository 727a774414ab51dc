//! The one place where an object is loaded: without what the kernel has refused, and with what it refuses now
//! named.

use libbpf_rs::{MapType, Object, OpenObject};

use super::features::{FEATURES, Feature};
use super::parts::Parts;
use super::refusal::{Verdict, forget_messages, refusal, verdict};
use super::refuse::Refusing;
use super::without::{Refused, Without, of_map, of_program};

/// What an object is for, and what it cannot do without.
pub(super) struct Purpose {
    /// As in "cannot load the BPF programs of the samples".
    pub(super) attempt: &'static str,
    pub(super) needs: &'static [&'static str],
}

/// Loads an object.
///
/// # Errors
/// What was refused, with the kernel's answer.
pub(super) fn load(
    mut open: OpenObject,
    purpose: &Purpose,
    without: &Without,
) -> Result<Object, Refused> {
    let attempt = purpose.attempt;
    leave_out(&mut open, without).map_err(|error| refusal(attempt, &error))?;
    let parts = Parts::of(&open);
    if let Some(refused) = Refusing::from_environment().refused(&parts) {
        return Err(named(purpose, without, &parts, refused));
    }
    forget_messages();
    open.load().map_err(|error| match verdict(&error) {
        Some(verdict) => named(purpose, without, &parts, verdict),
        None => refusal(attempt, &error).into(),
    })
}

/// A hash that takes the place of one that drops its oldest rows.
const LRU: &str = "LRU hashes";

/// A hash by tasks' addresses takes its place, which has no more rows than this.
pub(super) const TASK_STORAGE: &str = "task storage";
const MOST_TASKS: u32 = 65_536;

/// The program that frees the rows of tasks in such a hash.
pub(super) const FORGETS: &str = "forget";

fn leave_out(open: &mut OpenObject, without: &Without) -> Result<(), libbpf_rs::Error> {
    let lacking = || FEATURES.iter().filter(|one| without.lacks(one));
    for mut program in open.progs_mut() {
        let (section, name) = (program.section().to_owned(), program.name().to_owned());
        let (section, name) = (section.to_string_lossy(), name.to_string_lossy());
        let is_refused = lacking().any(|one| one.has_program(&section, &name));
        // Where the kernel frees the rows of tasks itself, there is nothing to forget.
        if is_refused || (name == FORGETS && !lacking().any(|one| one.name == TASK_STORAGE)) {
            program.set_autoload(false);
        }
    }
    for mut map in open.maps_mut() {
        let kind = map.map_type() as u32;
        if map.name() == ".rodata.without" {
            map.set_initial_value(&without.bits().to_ne_bytes())?;
        } else if let Some(feature) = lacking().find(|one| one.has_map(kind)) {
            match feature.name {
                LRU => map.set_type(MapType::Hash)?,
                TASK_STORAGE => {
                    map.set_type(MapType::Hash)?;
                    map.set_key_size(size_of::<u64>() as u32)?;
                    map.set_max_entries(MOST_TASKS)?;
                }
                _ => map.set_autocreate(false)?,
            }
        }
    }
    Ok(())
}

/// The refusal in words, and what may be left out.
fn named(purpose: &Purpose, without: &Without, parts: &Parts, verdict: Verdict) -> Refused {
    let Verdict { program, map, helper, answer, reason } = verdict;
    let (what, feature) = match (&program, &map) {
        (Some(program), _) => {
            let section = parts.section(program);
            let feature = of_program(without, section, program, helper);
            (format!("{program} ({section})"), feature)
        }
        (None, Some(map)) => {
            let feature = parts.kind(map).and_then(|kind| of_map(without, kind));
            let kind = feature.map_or_else(String::new, |one| format!(", of {}", one.name));
            (format!("the map {map}{kind}"), feature)
        }
        (None, None) => ("the object".to_owned(), None),
    };
    let reason = reason.map_or_else(|| answer.clone(), |reason| format!("{answer}: {reason}"));
    let is_needed = |one: &&'static Feature| purpose.needs.contains(&one.name);
    Refused {
        text: format!("cannot {}: {what}: {reason}", purpose.attempt),
        feature: feature.filter(|one| !is_needed(one)).map(|one| (one, answer)),
    }
}
