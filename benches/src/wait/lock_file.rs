//! The versions of this program's dependencies, from Cargo.lock.

/// Returns the version of a crate that this program was built with.
pub(crate) fn locked(name: &str) -> Option<String> {
    const LOCK: &str = include_str!("../../../Cargo.lock");
    let of = LOCK.split(&format!("name = \"{name}\"\nversion = \"")).nth(1)?;
    Some(format!("{name} {}", of.split('"').next()?))
}
