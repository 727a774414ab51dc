//! The saved limits of earlier runs, so that they need not be measured again for each question.
//!
//! They are a record `iotomy.limits/1` in the user's cache, one for each machine and kernel. The
//! one invariant: a saved record that is lost, broken, of another machine or measured with another
//! method than today's is ignored; it never causes an error or a wrong value.

use std::fs;
use std::path::{Path, PathBuf};

use iotomy_record::store::{self, RecordRef, StoreError};
use iotomy_record::{Limit, Limits, Machine, path_text};

use super::cpus;
use super::limit::Scope;
use super::registry::declaration;

/// The directory where limits are saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    folder: PathBuf,
}

/// Why limits could not be saved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeepError {
    /// The directory could not be created.
    #[error(
        "cannot create the directory {path}: {source}; set XDG_CACHE_HOME to another directory"
    )]
    Folder {
        /// The directory.
        path: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file could not be written; the old one is unchanged.
    #[error(transparent)]
    File(#[from] StoreError),
}

/// Returns the limits saved for this machine and kernel, or `None` if there are none that still
/// hold.
pub fn kept(machine: &Machine) -> Option<Limits> {
    Cache::of_user()?.load(machine)
}

impl Cache {
    /// Returns the user's cache: `iotomy` in `XDG_CACHE_HOME` or in `~/.cache`. `None` when neither
    /// is known.
    pub fn of_user() -> Option<Self> {
        let caches = store::user_folder("XDG_CACHE_HOME", ".cache")?;
        Some(Self::in_folder(caches.join("iotomy")))
    }

    /// Uses a given directory.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Returns the file for a machine.
    pub fn file(&self, machine: &Machine) -> PathBuf {
        // A process that is excluded from some CPUs has other limits than one that is not.
        let cpus = cpus::allowed().unwrap_or_default();
        let key = key(machine, &machine_id(Path::new("/")), &cpus);
        self.folder.join(format!("limits-{key:016x}.json"))
    }

    /// Loads the saved limits of a machine that still hold.
    pub fn load(&self, machine: &Machine) -> Option<Limits> {
        let mut found = store::load_trusted_limits(&self.file(machine)).ok()?;
        if !same_machine(&found.machine, machine) {
            return None;
        }
        found.limits.retain(holds);
        (!found.limits.is_empty()).then_some(found)
    }

    /// Saves what `run` measured, and from `before` the limits that `run` did not measure.
    ///
    /// # Errors
    /// Fails if the file cannot be written completely; the old one is unchanged.
    pub fn save(&self, run: &Limits, before: Option<Limits>) -> Result<(), KeepError> {
        let failed = |source| KeepError::Folder { path: path_text(&self.folder), source };
        let trusted = store::trusted_folder(&self.folder);
        trusted.and_then(fs::create_dir_all).map_err(failed)?;
        let mut all = run.clone();
        all.limits.retain(holds);
        let older = before.into_iter().flat_map(|before| before.limits);
        for limit in older {
            if !all.limits.iter().any(|newer| same_limit(newer, &limit)) {
                all.limits.push(limit);
            }
        }
        Ok(RecordRef::Limits(&all).save_to(&self.file(&run.machine), &self.folder)?)
    }
}

/// Whether a saved limit matches what would be measured today.
fn holds(limit: &Limit) -> bool {
    let of = if limit.volume.is_some() { Scope::FileSystem } else { Scope::Machine };
    declaration(&limit.name).is_some_and(|declared| {
        let same = declared.unit.name() == limit.unit && declared.method == limit.method;
        same && declared.scope == of && limit.value.is_some()
    })
}

fn same_limit(a: &Limit, b: &Limit) -> bool {
    let volume = |limit: &Limit| limit.volume.as_ref().map(|volume| volume.id.clone());
    a.name == b.name && volume(a) == volume(b)
}

/// Whether two descriptions are of the same machine, started with the same settings. Memory is left
/// out: a guest's may grow and shrink as it runs. So is the name: the file is of this installation alone.
fn same_machine(a: &Machine, b: &Machine) -> bool {
    let settings =
        |machine: &Machine| Machine { memory_bytes: 0, name: String::new(), ..machine.clone() };
    settings(a) == settings(b)
}

/// Returns the id that distinguishes this installation from others, if the system has one.
fn machine_id(root: &Path) -> String {
    let files = ["etc/machine-id", "var/lib/dbus/machine-id"];
    let text = files.iter().find_map(|file| iotomy_host::kernel_text(root.join(file)).ok());
    text.unwrap_or_default().trim().to_owned()
}

/// A hash that is the same in every version: FNV-1a of 64 bits.
fn key(machine: &Machine, id: &str, cpus: &[usize]) -> u64 {
    let (all, allowed) = (machine.cpus.to_string(), format!("{cpus:?}"));
    let parts = [id, &machine.cpu, &all, &machine.kernel, &allowed];
    parts.join("\0").bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        Machine { kernel: "Linux 6.1".into(), cpu: "x".into(), cpus: 2, ..Machine::default() }
    }

    fn limit(name: &str, value: f64) -> Limit {
        let declared = declaration(name).unwrap();
        Limit {
            name: name.into(),
            unit: declared.unit.name().into(),
            value: Some(value),
            spread: Some(0.0),
            method: declared.method.into(),
            skipped: None,
            measured: None,
            volume: None,
        }
    }

    fn limits(limits: Vec<Limit>) -> Limits {
        Limits {
            schema: Limits::SCHEMA.into(),
            started: "2025-03-01T10:20:30Z".into(),
            machine: machine(),
            limits,
        }
    }

    #[test]
    fn what_was_measured_is_kept_and_what_was_not_stays() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::in_folder(folder.path().join("a/iotomy"));
        assert_eq!(cache.load(&machine()), None);
        cache.save(&limits(vec![limit("syscall", 80.0), limit("fork", 9.0)]), None).unwrap();
        let skipped =
            Limit { value: None, spread: None, skipped: Some("no".into()), ..limit("pipe", 1.0) };
        let second = limits(vec![limit("syscall", 70.0), skipped]);
        cache.save(&second, cache.load(&machine())).unwrap();
        let found = cache.load(&machine()).unwrap();
        let values: Vec<_> = found.limits.iter().map(|l| (l.name.as_str(), l.value)).collect();
        assert_eq!(values, [("syscall", Some(70.0)), ("fork", Some(9.0))]);
        assert_eq!(fs::read_dir(folder.path().join("a/iotomy")).unwrap().count(), 1);
    }

    #[test]
    fn what_does_not_hold_today_is_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::in_folder(folder.path());
        let file = cache.file(&machine());
        for text in ["", "{", "[]", "{\"schema\": \"iotomy.limits/2\"}", "\u{0}"] {
            fs::write(&file, text).unwrap();
            assert_eq!(cache.load(&machine()), None, "{text:?}");
        }
        let otherwise = Limit { method: "otherwise".into(), ..limit("fork", 9.0) };
        let unknown = Limit { name: "unknown".into(), ..limit("fork", 9.0) };
        cache
            .save(&limits(vec![limit("syscall", 80.0)]), Some(limits(vec![otherwise, unknown])))
            .unwrap();
        assert_eq!(cache.load(&machine()).unwrap().limits.len(), 1);
        // Copied from another machine, or started with other mitigations.
        let other = Machine { mitigations: "off".into(), ..machine() };
        assert_eq!(cache.file(&other), file);
        assert_eq!(cache.load(&other), None);
        let grown = Machine { memory_bytes: 7, name: "node1".into(), ..machine() };
        assert!(cache.load(&grown).is_some());
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert_eq!(cache.load(&machine()), None);
        assert!(cache.save(&limits(vec![limit("syscall", 80.0)]), None).is_err());
    }

    #[test]
    fn a_machine_a_kernel_and_an_installation_have_files_of_their_own() {
        let one = key(&machine(), "a", &[0, 1]);
        assert_ne!(one, key(&machine(), "b", &[0, 1]));
        assert_ne!(one, key(&machine(), "a", &[0]));
        assert_ne!(one, key(&Machine { kernel: "Linux 6.2".into(), ..machine() }, "a", &[0, 1]));
        assert_ne!(one, key(&Machine { cpus: 4, ..machine() }, "a", &[0, 1]));
        assert_eq!(one, key(&Machine { clock: "tsc".into(), ..machine() }, "a", &[0, 1]));
    }
}
