//! The calls a mover declares are the calls it makes, and the operations those that it submits to a ring, as
//! `iotomy trace` sees them: each mover copies under each observer, and is compared with a run that moves nothing.

use crate::folders;
use crate::support;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use folders::Folder;
use iotomy_movers::{MOVERS, MoverDeclaration, Probe};
use support::copying::content;
use support::{Need, each_observer, skip, traced};

/// Calls that move bytes. Memory is mapped by allocators, threads and rings too, so that a mapping that
/// was not declared cannot be told from theirs.
const MOVING: &str = "read write pread64 pwrite64 readv writev preadv pwritev preadv2 pwritev2 sendto \
    recvfrom sendmsg recvmsg splice tee vmsplice sendfile copy_file_range io_uring_enter fallocate ioctl";

/// Bytes a run moves, and bytes of a block.
const SIZE: usize = 3_000_001;
const BLOCK: usize = 64 * 1024;

/// The blocks of a run, the last of them partial, and its whole MiB with what is behind them.
const BLOCKS: u64 = SIZE.div_ceil(BLOCK) as u64;
const MIBS: u64 = SIZE.div_ceil(1 << 20) as u64;

/// How often a call is made.
#[derive(Debug, Clone, Copy)]
enum Times {
    Exactly(u64),
    AtLeast(u64),
}

use Times::{AtLeast, Exactly};

/// What follows from size and block size. To see that a file has ended takes a read of nothing.
fn due(mover: &str) -> Vec<(&'static str, Times)> {
    match mover {
        "read-write" => vec![("read", Exactly(BLOCKS + 1)), ("write", Exactly(BLOCKS))],
        // Into its own pipe and out again, a MiB a round.
        "splice" => vec![("splice", AtLeast(2 * MIBS + 1)), ("pipe2", Exactly(1))],
        // The end is where reading gives nothing.
        "copy-file-range" => vec![("copy_file_range", AtLeast(1)), ("read", Exactly(1))],
        "sendfile" => vec![("sendfile", AtLeast(1)), ("read", Exactly(1))],
        // A window of 8 MiB.
        "mmap-write" => {
            vec![("mmap", AtLeast(1)), ("write", Exactly(1)), ("read", Exactly(1))]
        }
        "vmsplice" => vec![
            ("vmsplice", AtLeast(BLOCKS)),
            ("read", Exactly(BLOCKS + 1)),
            ("mmap", AtLeast(BLOCKS)),
        ],
        "reflink" => vec![("ioctl", Exactly(1))],
        "fallocate" => vec![("fallocate", Exactly(1))],
        "io-uring" => vec![
            ("io_uring_setup", Exactly(1)),
            ("io_uring_enter", AtLeast(1)),
            ("read", Exactly(1)),
            ("write", Exactly(0)),
        ],
        // Blocks of a MiB, the last of them whole sectors; the rest goes the plain way.
        "direct" => vec![
            ("pread64", Exactly(MIBS)),
            ("pwrite64", AtLeast(MIBS)),
            ("read", Exactly(2)),
            ("write", Exactly(1)),
        ],
        "pipelined" => vec![("read", Exactly(BLOCKS + 1)), ("write", Exactly(BLOCKS))],
        // Ranges of sixteen blocks.
        "parallel" => vec![
            ("copy_file_range", AtLeast(SIZE.div_ceil(16 * BLOCK) as u64)),
            ("read", Exactly(1)),
        ],
        // Without numbers here a mover is held against the calls that it declares.
        _ => vec![],
    }
}

type Counts = BTreeMap<String, u64>;

/// A copy to be looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Run {
    mover: &'static str,
    /// The command line, from the program's name on.
    words: Vec<String>,
}

impl Run {
    /// From and to names in a folder, devices, or standard output.
    fn new(folder: &Path, mover: &'static str, (source, target): (&str, &str)) -> Self {
        let path = |name: &str| match name {
            "source" | "target" | "empty" => folder.join(name).to_str().unwrap().to_owned(),
            other => other.to_owned(),
        };
        let (block, size) = (BLOCK.to_string(), SIZE.to_string());
        let mut words = vec![support::IOTOMY, "copy", "--block-size", &block, "--mover", mover];
        if source.starts_with("/dev/") {
            words.extend(["--count", &size]);
        }
        let (source, target) = (path(source), path(target));
        words.extend([source.as_str(), target.as_str()]);
        Self { mover, words: words.into_iter().map(str::to_owned).collect() }
    }

    /// Whether the mover serves, and is not refused.
    fn works(&self, folder: &Path) -> bool {
        let _ = std::fs::remove_file(folder.join("target"));
        let words: Vec<_> = self.words.iter().map(String::as_str).collect();
        support::iotomy(&words[1..]).output().unwrap().status.success()
    }
}

/// The calls of each of these runs, by name, of one trace of them all: to begin one can take a second.
fn calls(observer: &str, folder: &Path, runs: &[Run]) -> Vec<Counts> {
    let target = folder.join("target");
    let mut script = String::new();
    for run in runs {
        let words: Vec<_> = run.words.iter().map(|word| format!("'{word}'")).collect();
        script += &format!("rm -f '{}'; {} | cat >/dev/null\n", target.display(), words.join(" "));
    }
    let record = traced(observer, &["-q", "--each"], &["sh", "-c", &script]).whole_record();
    let of = |run: &Run| {
        let mut made = record.processes.iter().filter(|process| process.argv == run.words);
        let process = made.next().unwrap_or_else(|| panic!("{run:?} was not seen"));
        assert!(made.next().is_none(), "{run:?} was seen twice");
        let mut counts = Counts::new();
        let rows = record.calls.iter().filter(|call| call.pid == process.pid);
        for call in rows.filter(|call| call.exec == process.exec) {
            *counts.entry(call.syscall.clone()).or_default() += call.calls;
        }
        for row in record.ring_operations.iter().filter(|row| row.pid == process.pid) {
            *counts.entry(format!("ring:{}", row.op)).or_default() += row.submitted;
        }
        counts
    };
    runs.iter().map(of).collect()
}

/// How much more often each call was made than by a run that moves nothing.
fn more(counts: &Counts, nothing: &Counts, call: &str) -> u64 {
    let of = |counts: &Counts| counts.get(call).copied().unwrap_or(0);
    of(counts).saturating_sub(of(nothing))
}

fn check(declaration: &MoverDeclaration, counts: &Counts, nothing: &Counts, label: &str) {
    let declared = declaration.calls;
    let of_rings = counts.keys().map(String::as_str).filter(|name| name.starts_with("ring:"));
    for call in MOVING.split(' ').chain(of_rings) {
        let times = more(counts, nothing, call);
        assert!(
            times == 0 || declared.contains(&call),
            "{label} makes {call} {times} times and does not declare it"
        );
    }
    if let Some(first) = declared.first() {
        assert!(more(counts, nothing, first) > 0, "{label} makes no {first}");
    }
    for (call, times) in due(declaration.name) {
        assert!(
            declared.contains(&call) || matches!(times, Exactly(0)),
            "{label} does not declare {call}, which it makes"
        );
        let is = more(counts, nothing, call);
        let holds = match times {
            Exactly(due) => is == due,
            AtLeast(due) => is >= due,
        };
        assert!(holds, "{label} makes {call} {is} times, and {times:?} are due");
    }
}

/// Looks at every mover that serves a pair in this folder, and adds it to `looked_at`.
fn look_at_all(observer: &str, folder: &Folder, looked_at: &mut BTreeSet<&'static str>) {
    let path = folder.path();
    std::fs::write(path.join("source"), content(SIZE)).unwrap();
    std::fs::write(path.join("empty"), "").unwrap();
    // Runs, and for each the one that moves nothing on the same pair.
    let (mut runs, mut nothing) = (Vec::new(), Vec::new());
    for pair in [("source", "target"), ("source", "-"), ("/dev/zero", "target")] {
        for mover in MOVERS.iter().map(|mover| mover.declaration().name) {
            let run = Run::new(path, mover, pair);
            // A pair is enough, and the first that serves is the most usual one.
            if !looked_at.contains(mover) && run.works(path) {
                looked_at.insert(mover);
                runs.push(run);
                // The one that moves nothing walks over the size, and over none just the same.
                let source = if mover == "null" { "empty" } else { pair.0 };
                nothing.push(Run::new(path, "null", (source, pair.1)));
            }
        }
    }
    let mut all = runs.clone();
    for run in &nothing {
        if !all.contains(run) {
            all.push(run.clone());
        }
    }
    let counts = calls(observer, path, &all);
    let of = |run: &Run| &counts[all.iter().position(|other| other == run).unwrap()];
    for (run, nothing) in runs.iter().zip(&nothing) {
        let label = format!("{} on {} under {observer}", run.mover, folder.name);
        let mover = iotomy_movers::mover(run.mover).unwrap();
        check(mover.declaration(), of(run), of(nothing), &label);
    }
}

#[test]
fn every_mover_makes_the_calls_it_declares_as_a_trace_of_it_shows() {
    let sharing = ["btrfs", "xfs"].into_iter().find_map(|kind| {
        let folder = folders::image(kind);
        folder.map_err(|reason| skip(Need::Devices, &format!("no extents shared: {reason}"))).ok()
    });
    each_observer(|observer| {
        let mut looked_at = BTreeSet::new();
        look_at_all(observer, &folders::here(), &mut looked_at);
        if let Some(folder) = &sharing {
            look_at_all(observer, folder, &mut looked_at);
        }
        for mover in MOVERS {
            let name = mover.declaration().name;
            // What the machine or the file systems here cannot do, nobody can look at.
            let cannot = mover.probe() != Probe::Ready
                || (name == "reflink" && sharing.is_none())
                || name == "direct" && !takes_direct(&folders::here());
            if cannot && !looked_at.contains(name) {
                skip(Need::Machine, &format!("{name} does not work here"));
            } else {
                assert!(looked_at.contains(name), "{name} was never looked at by {observer}");
            }
        }
    });
}

/// Whether files there can be opened past the page cache.
fn takes_direct(folder: &Folder) -> bool {
    use std::os::unix::fs::OpenOptionsExt;
    let path = folder.path().join("file");
    std::fs::write(&path, "x").unwrap();
    let flags = rustix::fs::OFlags::DIRECT.bits().cast_signed();
    std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path).is_ok()
}
