//! The cache and the state of a test: directories of its own, with limits that no noise of this machine is in.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use iotomy_limits::kept::Cache;
use iotomy_limits::{Scope, Unit, declarations};
use iotomy_record::{Limit, Limits};
use tempfile::TempDir;

/// Memory so fast that nothing is impossible, in bytes per second.
pub(crate) const FAST: f64 = 1e12;
/// Calls that cost next to nothing, in nanoseconds.
pub(crate) const FAST_CALL: f64 = 100.0;

thread_local! {
    /// Every test has a thread of its own, and the directory goes with it.
    static OWN: TempDir = {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        // Tests run the command as other users, too.
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        know_limits(&folder.path().join("cache"), FAST_CALL, FAST);
        folder
    };
}

/// The directory for `XDG_CACHE_HOME`. Its limits are there: a run in which a finding needs one does not measure it.
pub(crate) fn cache() -> PathBuf {
    OWN.with(|own| own.path().join("cache"))
}

/// The directory for `XDG_STATE_HOME`.
fn state() -> PathBuf {
    OWN.with(|own| own.path().join("state"))
}

/// Gives them to a command.
pub(crate) fn give_to(command: &mut Command) {
    command.env("XDG_CACHE_HOME", cache()).env("XDG_STATE_HOME", state());
}

/// Saves limits of this machine in a directory for `XDG_CACHE_HOME`: each operation takes `ns`, and each ceiling is
/// `bytes` per second.
pub(crate) fn know_limits(cache: &Path, ns: f64, bytes: f64) {
    let started = "2026-01-01T00:00:00Z".to_owned();
    let of_machine = declarations().filter(|declared| declared.scope == Scope::Machine);
    let limits = of_machine.map(|declared| Limit {
        name: declared.name.into(),
        unit: declared.unit.name().into(),
        value: Some(if declared.unit == Unit::Ns { ns } else { bytes }),
        spread: Some(0.0),
        method: declared.method.into(),
        skipped: None,
        measured: Some(started.clone()),
        volume: None,
    });
    let limits = limits.collect();
    let known =
        Limits { schema: Limits::SCHEMA.into(), started, machine: iotomy_host::machine(), limits };
    Cache::in_folder(cache.join("iotomy")).save(&known, None).unwrap();
}
