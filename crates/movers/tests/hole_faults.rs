//! Faults injected into the calls around holes, from outside: nothing is lost or reported wrong, and
//! what is refused is done another way.

use crate::support;

use std::path::Path;
use std::process::{Command, Stdio};

use iotomy_test_requirements::{Need, skip};

use support::carry_report::CarryReport;
use support::folders::{self, Folder};
use support::layouts::{self, Data, Hole, Region, Zeros};
use support::{carry, difference};

/// Holes between data, and one at the end.
const PARTS: [Region; 7] = [
    Data(262_144),
    Hole(1 << 20),
    Data(262_144),
    Zeros(12_288),
    Hole(12_288),
    Data(100_000),
    Hole((1 << 20) + 1234),
];

/// Where the last block of data ends.
const LAST_DATA: usize =
    (262_144 + (1 << 20) + 262_144 + 12_288 + 12_288 + 100_000usize).next_multiple_of(4096);

/// What a target holds that is no new file: more than the source has.
const OLD: usize = 3 << 20;

/// The movers that are chosen between files, and the call each moves extents by.
const CHOSEN: [(&str, &str); 3] =
    [("read-write", "write"), ("copy-file-range", "copy_file_range"), ("sendfile", "sendfile")];

#[derive(Debug, Clone, Copy)]
struct Fault<'a> {
    mover: &'a str,
    sparse: &'a str,
    /// What a target holds already, in bytes.
    old: usize,
    /// The file whose calls are disturbed.
    on: &'a str,
    /// As strace has it after `inject=`.
    inject: &'a [&'a str],
}

struct InjectedCopies {
    folder: Folder,
    all: Vec<u8>,
}

impl InjectedCopies {
    /// `None` where nothing can be injected.
    fn new() -> Option<Self> {
        if Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_err() {
            skip(Need::Programs, "no strace");
            return None;
        }
        let folder = folders::here();
        let all = layouts::make(&folder.path().join("source"), &PARTS);
        Some(Self { folder, all })
    }

    /// Runs a mover with a fault and checks what holds whatever happened.
    fn run(&self, fault: Fault<'_>) -> CarryReport {
        let folder = self.folder.path();
        let (source, target) = (folder.join("source"), folder.join("target"));
        std::fs::write(&target, vec![0xEE; fault.old]).unwrap();
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-o", "/dev/null", "-P"]).arg(folder.join(fault.on));
        let calls: Vec<_> =
            fault.inject.iter().map(|inject| inject.split(':').next().unwrap()).collect();
        strace.arg("-e").arg(format!("trace={}", calls.join(",")));
        for inject in fault.inject {
            strace.arg("-e").arg(format!("inject={inject}"));
        }
        strace.arg(carry()).arg(fault.mover).args([&source, &target]).args(["-", fault.sparse]);
        let output = strace.stdin(Stdio::null()).output().unwrap();
        let line = String::from_utf8(output.stderr).unwrap();
        let told = CarryReport::parse(&line).unwrap_or_else(|| panic!("{fault:?}: {line}"));
        self.check(fault, &told, &target);
        told
    }

    fn check(&self, fault: Fault<'_>, told: &CarryReport, target: &Path) {
        let label = format!("{fault:?}: {told:?}");
        let arrived = std::fs::read(target).unwrap();
        assert!(told.moved <= arrived.len().min(self.all.len()), "{label}");
        assert_eq!(difference(&arrived[..told.moved], &self.all[..told.moved]), None, "{label}");
        assert_eq!(arrived.len(), fault.old.max(told.moved), "{label}: length");
        // Zeros may have been written or punched, and not been counted, behind what was moved.
        let behind = fault.old.min(arrived.len()).max(self.all.len().min(arrived.len()));
        assert!(arrived[behind..].iter().all(|byte| *byte == 0xEE), "{label}: behind");
        assert_eq!(told.lost, 0, "{label}");
        if !fault.inject[0].starts_with("lseek") {
            let moved = Some(told.moved);
            assert_eq!((told.source_at, told.target_at), (moved, moved), "{label}: positions");
        }
        if told.outcome == "done" {
            assert_eq!(told.moved, self.all.len(), "{label}");
        }
        // Holes are in no figure, unless zeros are read for them or written.
        let [referenced, copied, touched] = told.traffic;
        assert!(referenced.max(touched).max(copied / 2) <= told.moved, "{label}: figures");
        let by_hand = fault.mover == "read-write";
        assert!(!by_hand || (copied / 2 <= touched && touched <= copied), "{label}: figures");
    }
}

#[test]
fn a_file_system_that_knows_no_holes_is_copied_plainly() {
    let Some(bench) = InjectedCopies::new() else { return };
    for errno in ["EINVAL", "ENODEV", "EOPNOTSUPP", "ENOSYS"] {
        for old in [0, OLD] {
            for (mover, _) in CHOSEN {
                // SEEK_HOLE of the first look, then SEEK_DATA and SEEK_HOLE of the walk.
                for when in [2, 5, 6] {
                    let inject = format!("lseek:error={errno}:when={when}");
                    let inject = &[inject.as_str()];
                    let fault = Fault { mover, sparse: "auto", old, on: "source", inject };
                    assert_eq!(bench.run(fault).outcome, "done", "{fault:?}");
                }
            }
        }
    }
}

#[test]
fn a_seek_that_fails_is_told_and_what_was_moved_with_it() {
    let Some(bench) = InjectedCopies::new() else { return };
    let mut failed = 0;
    for sparse in ["auto", "always"] {
        for on in ["source", "target"] {
            for old in [0, OLD] {
                for when in 1..20 {
                    let inject = format!("lseek:error=EIO:when={when}");
                    let inject = &[inject.as_str()];
                    let fault = Fault { mover: "read-write", sparse, old, on, inject };
                    let told = bench.run(fault);
                    if told.outcome == "failed" {
                        assert_eq!(told.errno, 5, "{fault:?}");
                        failed += 1;
                    }
                }
            }
        }
    }
    println!("{failed} runs failed");
    assert!(failed > 20);
}

#[test]
fn holes_that_cannot_be_punched_are_written_as_zeros() {
    let Some(bench) = InjectedCopies::new() else { return };
    for errno in ["EOPNOTSUPP", "ENODEV", "EINVAL", "EPERM", "ENOSPC", "EIO", "EINTR"] {
        for (mover, sparse) in [
            ("copy-file-range", "auto"),
            ("sendfile", "auto"),
            ("read-write", "auto"),
            ("read-write", "always"),
        ] {
            for when in ["1", "2", "1+"] {
                if (errno, when) == ("EINTR", "1+") {
                    continue;
                }
                let inject = format!("fallocate:error={errno}:when={when}");
                let inject = &[inject.as_str()];
                let fault = Fault { mover, sparse, old: OLD, on: "target", inject };
                assert_eq!(bench.run(fault).outcome, "done", "{fault:?}");
            }
        }
    }
}

#[test]
fn a_file_that_cannot_be_extended_is_written_to_its_end() {
    let Some(bench) = InjectedCopies::new() else { return };
    for (mover, sparse) in [("copy-file-range", "auto"), ("read-write", "always")] {
        for errno in ["EINVAL", "EFBIG", "EPERM", "EINTR"] {
            let inject = format!("ftruncate:error={errno}:when=1");
            let inject = &[inject.as_str()];
            let fault = Fault { mover, sparse, old: 0, on: "target", inject };
            assert_eq!(bench.run(fault).outcome, "done", "{fault:?}");
        }
    }
    // And when that fails too, the hole does not count.
    let inject = &["ftruncate:error=EFBIG", "write:error=ENOSPC"];
    let fault = Fault { mover: "copy-file-range", sparse: "auto", old: 0, on: "target", inject };
    let told = bench.run(fault);
    assert_eq!((told.outcome.as_str(), told.errno, told.moved), ("failed", 28, LAST_DATA));
}

#[test]
fn a_failure_in_a_later_extent_counts_what_is_before_it() {
    let Some(bench) = InjectedCopies::new() else { return };
    for errno in ["ENOSPC", "EIO"] {
        for old in [0, OLD] {
            for (mover, call) in CHOSEN {
                for (sparse, whens) in [("auto", 1..12), ("always", 1..12)] {
                    if sparse == "always" && mover != "read-write" {
                        continue;
                    }
                    let mut failed = 0;
                    for when in whens {
                        let inject = format!("{call}:error={errno}:when={when}");
                        let inject = &[inject.as_str()];
                        let fault = Fault { mover, sparse, old, on: "target", inject };
                        let told = bench.run(fault);
                        if told.outcome == "failed" {
                            let expected = if errno == "EIO" { 5 } else { 28 };
                            assert_eq!(told.errno, expected, "{fault:?}");
                            failed += 1;
                        }
                    }
                    assert!(failed > 2, "{mover}, {sparse}: {failed} failed");
                }
            }
        }
    }
    // The hole in front of the extent that fails counts only where the file can be extended.
    let both = ["copy_file_range:error=ENOSPC:when=2", "ftruncate:error=EIO", "write:error=ENOSPC"];
    for (inject, moved) in [(&both[..1], 262_144 + (1 << 20)), (&both[..], 262_144)] {
        let (mover, sparse) = ("copy-file-range", "auto");
        let told = bench.run(Fault { mover, sparse, old: 0, on: "target", inject });
        assert_eq!((told.outcome.as_str(), told.errno, told.moved), ("failed", 28, moved));
    }
}

#[test]
fn a_refusal_is_one_only_of_the_first_extent_and_an_error_of_any_other() {
    let Some(bench) = InjectedCopies::new() else { return };
    // What is before the second extent, and before the third.
    let second = 262_144 + (1 << 20);
    let third = second + 262_144 + 12_288 + 12_288;
    for (errno, number) in [("ENOSYS", 38), ("EXDEV", 18), ("EINVAL", 22), ("EPERM", 1)] {
        for (mover, call) in &CHOSEN[1..] {
            for (when, moved) in [(1, None), (2, Some(second)), (3, Some(third))] {
                let inject = format!("{call}:error={errno}:when={when}");
                let inject = &[inject.as_str()];
                for old in [0, OLD] {
                    let fault = Fault { mover, sparse: "auto", old, on: "target", inject };
                    let told = bench.run(fault);
                    match moved {
                        None => assert_eq!(told.outcome, "refused", "{fault:?}"),
                        Some(moved) => {
                            let is = (told.outcome.as_str(), told.errno, told.moved);
                            assert_eq!(is, ("failed", number, moved), "{fault:?}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_refusal_of_the_first_data_leaves_what_was_in_front_of_it_alone() {
    let Some(bench) = InjectedCopies::new() else { return };
    let source = bench.folder.path().join("source");
    let all = layouts::make(&source, &[Hole(1 << 20), Data(262_144), Hole(4096), Data(4096)]);
    let bench = InjectedCopies { folder: bench.folder, all };
    for (mover, call) in &CHOSEN[1..] {
        let inject = format!("{call}:error=EXDEV:when=1");
        let inject = &[inject.as_str()];
        let fault = Fault { mover, sparse: "auto", old: OLD, on: "target", inject };
        assert_eq!(bench.run(fault).outcome, "refused", "{fault:?}");
        let is = std::fs::read(bench.folder.path().join("target")).unwrap();
        assert_eq!(difference(&is, &[0xEE; OLD]), None, "{fault:?}");
    }
}
