//! The requirements of tests. A test whose requirement is missing is skipped. The skip is counted, and its reason is
//! printed directly to standard error, because the test harness would hide it. If `IOTOMY_REQUIRE` names the missing
//! requirement, the test fails.
//!
//! `IOTOMY_REQUIRE` is a comma-separated list of [names](Need::name), such as `bpf,root,browser`. An unknown name in it
//! fails every test that reads it. `IOTOMY_SKIPS` is a file to which every skip is appended, one per line, so that the
//! skips of many test programs can be counted.

pub mod guide;
pub mod wait;

use std::fmt;
use std::fs::File;
use std::io::Write;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The variable that lists the requirements that must not be missing.
pub const REQUIRE: &str = "IOTOMY_REQUIRE";

/// The variable that names the file to which skips are appended.
pub const SKIPS: &str = "IOTOMY_SKIPS";

/// A requirement of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// BPF programs that the kernel loads and attaches.
    Bpf,
    /// The ptrace observer.
    Ptrace,
    /// The user root.
    Root,
    /// Chromium and its driver.
    Browser,
    /// A usable `/dev/fuse`.
    Fuse,
    /// Private namespaces: `unshare`, and mounts inside of them.
    Namespaces,
    /// Private mounts and block devices (loop, zram), and file systems created on them.
    Devices,
    /// `io_uring` rings.
    IoUring,
    /// External programs, such as strace, perl or a C compiler.
    Programs,
    /// Servers, and what runs them: redis, memcached, nginx, PostgreSQL, podman, Go, Node.
    Servers,
    /// The command as `make build` links it.
    Build,
    /// A property of this kernel, processor or file system. It cannot be required, because there is
    /// nothing to install or permit.
    Machine,
}

impl Need {
    /// All requirements that `IOTOMY_REQUIRE` can name.
    pub const ALL: [Self; 11] = [
        Self::Bpf,
        Self::Ptrace,
        Self::Root,
        Self::Browser,
        Self::Fuse,
        Self::Namespaces,
        Self::Devices,
        Self::IoUring,
        Self::Programs,
        Self::Servers,
        Self::Build,
    ];

    /// Returns the name in `IOTOMY_REQUIRE`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bpf => "bpf",
            Self::Ptrace => "ptrace",
            Self::Root => "root",
            Self::Browser => "browser",
            Self::Fuse => "fuse",
            Self::Namespaces => "namespaces",
            Self::Devices => "devices",
            Self::IoUring => "io_uring",
            Self::Programs => "programs",
            Self::Servers => "servers",
            Self::Build => "build",
            Self::Machine => "machine",
        }
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Parses a list of requirements.
///
/// # Errors
///
/// When a name in the list is unknown.
pub fn parse(list: &str) -> Result<Vec<Need>, String> {
    let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
    let need = |name: &str| {
        Need::ALL.into_iter().find(|need| need.name() == name).ok_or_else(|| {
            let known = Need::ALL.map(Need::name).join(", ");
            format!("{REQUIRE} names {name:?}, which is unknown; expected names of {known}")
        })
    };
    names.map(need).collect()
}

/// Returns the requirements in `IOTOMY_REQUIRE`.
///
/// # Errors
///
/// When a name in it is unknown.
pub fn required() -> Result<&'static [Need], String> {
    static REQUIRED: OnceLock<Result<Vec<Need>, String>> = OnceLock::new();
    let list = || std::env::var(REQUIRE).unwrap_or_default();
    REQUIRED.get_or_init(|| parse(&list())).as_deref().map_err(Clone::clone)
}

/// Returns whether `IOTOMY_REQUIRE` contains `need`.
///
/// # Panics
///
/// When `IOTOMY_REQUIRE` contains an unknown name.
#[must_use]
pub fn is_required(need: Need) -> bool {
    required().unwrap_or_else(|error| panic!("{error}")).contains(&need)
}

/// Reports that a test, or a part of one, cannot run here because `need` is missing, with the
/// reason.
///
/// # Panics
///
/// When `IOTOMY_REQUIRE` contains `need` or an unknown name.
#[track_caller]
pub fn skip(need: Need, reason: &str) {
    assert!(!is_required(need), "{REQUIRE} names {need}, and it is missing: {reason}");
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed) + 1;
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("?");
    let reason = reason.trim();
    let _ = writeln!(std::io::stderr(), "skip {count}: {test}: {need}: {reason}");
    if let Some(file) = std::env::var_os(SKIPS) {
        let line = format!("{need}\t{test}\t{}\n", reason.replace(['\n', '\t'], " "));
        let kept = File::options().create(true).append(true).open(&file);
        let kept = kept.and_then(|mut file| file.write_all(line.as_bytes()));
        kept.unwrap_or_else(|error| panic!("{SKIPS}: cannot write {}: {error}", file.display()));
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::{Need, REQUIRE, SKIPS, parse, required, skip};

    #[test]
    fn the_names_in_the_environment_are_known() {
        assert_eq!(required().map(|_| ()), Ok(()));
    }

    #[test]
    fn a_list_is_of_known_names_only() {
        assert_eq!(parse(""), Ok(vec![]));
        assert_eq!(parse("bpf, root,browser,"), Ok(vec![Need::Bpf, Need::Root, Need::Browser]));
        for need in Need::ALL {
            assert_eq!(parse(need.name()), Ok(vec![need]));
        }
        for wrong in ["bfp", "BPF", "all", "machine", "bpf root"] {
            let error = parse(&format!("root,{wrong}")).unwrap_err();
            assert!(error.contains(wrong) && error.contains("io_uring, programs"), "{error}");
        }
    }

    /// Not an independent test: the tests below start it, each with a different environment.
    #[test]
    fn skips_if_asked() {
        if std::env::var_os("IOTOMY_NEEDS_ASKED").is_some() {
            skip(Need::Bpf, "there is\nnone");
        }
    }

    /// Returns the output of a test program that skips something.
    fn skipping(require: &str, skips: &std::path::Path) -> std::process::Output {
        let mut tests = Command::new(std::env::current_exe().unwrap());
        tests.args(["--exact", "tests::skips_if_asked"]).env("IOTOMY_NEEDS_ASKED", "1");
        tests.env(REQUIRE, require).env(SKIPS, skips).output().unwrap()
    }

    fn file(name: &str) -> std::path::PathBuf {
        let file = format!("iotomy-test-requirements-{}-{name}", std::process::id());
        std::env::temp_dir().join(file)
    }

    #[test]
    fn a_skip_is_printed_past_the_harness_and_kept() {
        let skips = file("kept");
        for _ in 0..2 {
            let output = skipping("root", &skips);
            assert!(output.status.success(), "{output:?}");
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert_eq!(stderr, "skip 1: tests::skips_if_asked: bpf: there is\nnone\n");
        }
        let kept = std::fs::read_to_string(&skips).unwrap();
        std::fs::remove_file(&skips).unwrap();
        assert_eq!(kept, "bpf\ttests::skips_if_asked\tthere is none\n".repeat(2));
    }

    #[test]
    fn a_skip_for_what_is_required_is_a_failure() {
        for (require, says) in [
            ("root,bpf", "IOTOMY_REQUIRE names bpf, and it is missing: there is"),
            ("roof", "IOTOMY_REQUIRE names \"roof\", which is unknown"),
        ] {
            let skips = file(require);
            let output = skipping(require, &skips);
            assert_eq!(output.status.code(), Some(101), "{output:?}");
            let stdout = String::from_utf8_lossy(&output.stdout);
            assert!(stdout.contains(says), "{stdout}");
            assert!(!skips.exists());
        }
    }
}
