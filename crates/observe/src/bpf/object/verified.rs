//! The work of the kernel's verifier for an object, which is most of the start-up time.

use std::collections::BTreeSet;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::Object;
use libbpf_rs::libbpf_sys::bpf_insn;
use tempfile::NamedTempFile;

use super::super::kernel_types::CHOSEN;
use super::{Knobs, Session, Shared, Without};
use crate::Selection;
use iotomy_host::Cgroup;
use iotomy_test_requirements::{Need, skip};

/// Instructions it went through, those of branches as often as it took them; programs that were not loaded have none.
pub(in crate::bpf) fn steps(object: &Object) -> u64 {
    steps_of(object, |_| true)
}

/// The same of programs of some names.
fn steps_of(object: &Object, is_one: impl Fn(&str) -> bool) -> u64 {
    let programs = object.progs_mut().filter(|one| is_one(&one.name().to_string_lossy()));
    let steps = programs.map(|program| {
        let name = format!("/proc/self/fdinfo/{}", program.as_fd().as_raw_fd());
        let info = iotomy_host::kernel_text(name).unwrap_or_default();
        let line = info.lines().find_map(|line| line.strip_prefix("verified_insns:"));
        line.map_or(0, |number| number.trim().parse::<u64>().unwrap())
    });
    steps.sum()
}

/// The most stack that functions of a program take that call each other, in bytes, as kernels before
/// Linux 6.13 count it; they allow 512.
pub(in crate::bpf) fn deepest_stack(object: &Object) -> u32 {
    // Those that are not loaded are not linked with what they call.
    let loaded = object.progs_mut().filter(|program| program.as_fd().as_raw_fd() >= 0);
    loaded.map(|program| Code::new(program.insns()).deepest()).max().unwrap_or(0)
}

/// The functions of a program.
struct Code<'i> {
    instructions: &'i [bpf_insn],
    /// The first instruction of each.
    starts: BTreeSet<usize>,
}

impl<'i> Code<'i> {
    fn new(instructions: &'i [bpf_insn]) -> Self {
        let called = (0..instructions.len()).filter_map(|at| called(instructions, at));
        Self { instructions, starts: [0].into_iter().chain(called).collect() }
    }

    fn deepest(&self) -> u32 {
        self.starts.iter().map(|start| self.below(*start)).max().unwrap_or(0)
    }

    /// The stack of a function and of those that it calls.
    fn below(&self, start: usize) -> u32 {
        let end = self.starts.range(start + 1..).next().copied();
        let body = start..end.unwrap_or(self.instructions.len());
        let calls = body.clone().filter_map(|at| called(self.instructions, at));
        let deepest = calls.map(|called| self.below(called)).max().unwrap_or(0);
        let own = own_stack(&self.instructions[body]);
        own.max(1).next_multiple_of(32) + deepest
    }
}

/// The function that an instruction calls, or hands to a helper that does.
fn called(instructions: &[bpf_insn], at: usize) -> Option<usize> {
    const CALL: (u8, u8) = (0x85, 1);
    const ADDRESS: (u8, u8) = (0x18, 4);
    let call = &instructions[at];
    [CALL, ADDRESS]
        .contains(&(call.code, call.src_reg()))
        .then(|| at.checked_add_signed(call.imm as isize + 1))
        .flatten()
}

/// How far below its frame pointer a function looks, or points.
fn own_stack(body: &[bpf_insn]) -> u32 {
    const FRAME: u8 = 10;
    const MOVE: u8 = 0xbf;
    const ADD: u8 = 0x07;
    let below = |offset: i32| u32::try_from(offset.saturating_neg()).unwrap_or(0);
    let accesses = body.iter().map(|one| {
        let base = match one.code & 7 {
            1 => one.src_reg(),
            2 | 3 => one.dst_reg(),
            _ => return 0,
        };
        if base == FRAME { below(i32::from(one.off)) } else { 0 }
    });
    let mut points_into = [false; 16];
    let pointers = body.iter().map(|one| {
        let to = usize::from(one.dst_reg());
        let is_pointer = one.code == ADD && points_into[to];
        if one.code == MOVE {
            points_into[to] = one.src_reg() == FRAME;
        }
        if is_pointer { below(one.imm) } else { 0 }
    });
    accesses.chain(pointers).max().unwrap_or(0)
}

/// The maps of such a session.
pub(in crate::bpf) fn shared() -> Result<Shared, String> {
    Ok(Shared::load(&knobs(false, crate::Filter::default())?, &Without::default())?)
}

/// A session with everything that can be requested, but for the details of calls.
pub(in crate::bpf) fn session(shared: Option<&Shared>) -> Result<Session, String> {
    session_of(false, crate::Filter::default(), shared)
}

fn session_of(
    details: bool,
    filter: crate::Filter,
    shared: Option<&Shared>,
) -> Result<Session, String> {
    Ok(Session::load(&knobs(details, filter)?, shared, &Without::default())?)
}

fn knobs(details: bool, filter: crate::Filter) -> Result<Knobs, String> {
    Ok(Knobs {
        by_file: true,
        by_path: details,
        by_peer: details,
        by_thread: true,
        slowest: if details { 100 } else { 0 },
        whole_machine: true,
        wanted: None,
        passed: None,
        rings: Some(crate::ring_names::transfers(|_| true)),
        transfers: [[0x21; 512]; 2],
        paths: [[0x2121; 512]; 2],
        descriptors: [[1; 512]; 2],
        filter,
        sampled: false,
        rows: 16,
        looked_at: false,
        has_companions: true,
        selection: Selection {
            names: vec!["*".parse().map_err(|error| format!("{error}"))?],
            cgroups: vec![Cgroup { directory: "/".into(), path: "/".into(), hierarchy: 0, id: 1 }],
            ..Selection::process(1)
        },
    })
}

/// They were once 72,000, and 38,000: the loop over a path was verified iteration by iteration, and every use of a
/// function with branches by itself.
#[test]
fn the_verifier_passes_the_programs_in_few_steps() {
    let none = crate::Filter::default;
    let all = "call == \"read\" || path == \"/a*\" && image == \"b\" || threadname == \"c\" \
               && cgroup == \"/d\" || peer == \"tcp *\" || title == \"e: *\" || fd / bytes == errno % duration || pid == thread";
    let all = || crate::Filter::new(all).unwrap();
    let ends =
        all().until("call == \"read\" || path == \"/a*\" && sum(bytes) / count() > 7").unwrap();
    for (details, filter, most, most_of_rings) in [
        (false, none(), 30_000, 13_000),
        // Connections, and what a condition may ask of a request, are followed through, too.
        (true, none(), 62_000, 16_000),
        (true, all(), 200_000, 120_000),
        (true, ends, 230_000, 130_000),
    ] {
        let session = match session_of(details, filter, None) {
            Ok(session) => session,
            Err(reason) => return skip(Need::Bpf, &reason),
        };
        let is_of_rings = |name: &str| name.starts_with("ring_");
        let steps = steps_of(&session.object, |name| !is_of_rings(name));
        assert!((1_000..most).contains(&steps), "{steps}");
        let steps = steps_of(&session.object, is_of_rings);
        assert!((1_000..most_of_rings).contains(&steps), "{steps} of io_uring's programs");
        let stack = deepest_stack(&session.object);
        assert!((128..=512).contains(&stack), "{stack} bytes of stack");
    }
}

/// Those that take the place of two of them where a part of the time is counted.
#[test]
fn the_programs_of_a_part_of_the_time_pass_in_as_few_steps() {
    let knobs = knobs(false, crate::Filter::default()).unwrap();
    // Nothing else is counted beside them.
    let knobs =
        Knobs { sampled: true, by_file: false, by_thread: false, has_companions: false, ..knobs };
    let session = match Session::load(&knobs, None, &Without::default()).map_err(String::from) {
        Ok(session) => session,
        Err(reason) => return skip(Need::Bpf, &reason),
    };
    let is_loaded = |name: &str| steps_of(&session.object, |one| one == name) > 0;
    let names = ["sys_enter", "sys_exit", "sampled_enter", "sampled_exit"];
    assert_eq!(names.map(is_loaded), [false, false, true, true]);
    let steps = steps_of(&session.object, |name| !name.starts_with("ring_"));
    assert!((1_000..30_000).contains(&steps), "{steps}");
    let stack = deepest_stack(&session.object);
    assert!((128..=512).contains(&stack), "{stack} bytes of stack");
}

/// The types of this kernel with other names for those of io_uring, as if it were built without it.
fn types_without_rings() -> Option<NamedTempFile> {
    const OF_RINGS: [&str; 7] = [
        "io_kiocb",
        "io_ring_ctx",
        "io_worker",
        "io_connect",
        "io_accept",
        "io_wq_work",
        "io_open",
    ];
    let mut types = std::fs::read("/sys/kernel/btf/vmlinux").ok()?;
    let mut renamed = 0;
    let mut start = 0;
    while let Some(length) = types[start..].iter().position(|byte| *byte == 0) {
        let name = &types[start..start + length];
        let is_of_rings = name.starts_with(b"btf_trace_io_uring_")
            || OF_RINGS.iter().any(|one| one.as_bytes() == name);
        if is_of_rings {
            types[start] = b'X';
            renamed += 1;
        }
        start += length + 1;
    }
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(&types).unwrap();
    (renamed > OF_RINGS.len()).then_some(file)
}

/// What is missing is known by the kernel's types when the programs are loaded, and by its tracepoints then.
#[test]
fn a_kernel_without_io_uring_has_everything_else_observed() {
    let Some(types) = types_without_rings() else {
        return skip(Need::IoUring, "this kernel's types have none of io_uring's");
    };
    CHOSEN.set(Some(types.path().to_owned()));
    let every = || crate::Filter::new("path == \"/a\" && peer == \"b\" && bytes > 1").unwrap();
    let ends = || every().until("sum(bytes) > 7").unwrap();
    for (details, filter) in [
        (false, crate::Filter::default()),
        (true, crate::Filter::default()),
        (true, every()),
        (true, ends()),
    ] {
        let loaded = session_of(details, filter, None).and_then(|mut session| {
            session.attach()?;
            Ok((session.sees_rings(), session.unseen_end().is_some(), session.links.len()))
        });
        match loaded {
            Ok((sees_rings, is_said, links)) => {
                assert_eq!((sees_rings, is_said), (false, true));
                assert!(links > 6, "{links}");
            }
            // What needs privilege fails with this kernel's own types, too.
            Err(reason) => {
                CHOSEN.set(None);
                assert!(session(None).is_err(), "{reason}");
                return skip(Need::Bpf, &reason);
            }
        }
    }
    let probed = crate::probe_rings();
    CHOSEN.set(None);
    let crate::Probe::Unsupported { reason, remedy } = probed else { panic!("{probed:?}") };
    assert!(reason.contains("io_uring_submit_req") && remedy.contains("CONFIG_IO_URING"));
}

/// Of the programs for several forms of a tracepoint, one is for this kernel's.
#[test]
fn each_end_of_a_ring_request_is_attached_in_one_form() {
    let mut session = match session(None) {
        Ok(session) => session,
        Err(reason) => return skip(Need::Bpf, &reason),
    };
    session.attach().unwrap();
    if !session.sees_rings() {
        return skip(Need::IoUring, "this kernel does not have io_uring's tracepoints");
    }
    for end in ["ring_submit", "ring_complete"] {
        let links = session.links.iter().map(|(name, _)| name);
        let attached: Vec<_> = links.filter(|name| name.starts_with(end)).collect();
        assert_eq!(attached.len(), 1, "{attached:?}");
    }
}

/// The verifier searches all types of the kernel for each such load, which steps do not show (`UNTRUSTED`, fields.bpf.h).
#[test]
fn pointers_are_loaded_from_tasks_that_the_verifier_does_not_trust() {
    /// What helpers take only if the verifier trusts it.
    const TASKS: [&str; 2] = ["group_leader", "real_parent"];
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/src/bpf");
    let types = iotomy_host::kernel_text(format!("{directory}/types.bpf.h")).unwrap();
    let (_, task) = types.split_once("\nstruct task_struct {").unwrap();
    let (task, _) = task.split_once("\n}").unwrap();
    let pointers: Vec<&str> = task
        .lines()
        .filter_map(|line| line.trim().strip_suffix(';')?.split_once('*').map(|(_, name)| name))
        .filter(|name| !TASKS.contains(name))
        .collect();
    assert!(pointers.contains(&"bpf_storage") && pointers.contains(&"mm"), "{pointers:?}");

    let mut read = 0;
    for file in std::fs::read_dir(directory).unwrap() {
        let path = file.unwrap().path();
        let is_c = path.extension().is_some_and(|ending| ending == "c" || ending == "h");
        if !is_c {
            continue;
        }
        read += 1;
        for line in iotomy_host::kernel_text(&path).unwrap().lines() {
            for task in ["task", "prev", "next", "child", "parent", "leader"] {
                let loads = |field: &&&str| {
                    let load = format!("{task}->{field}");
                    line.match_indices(&load).any(|(at, _)| {
                        let goes_on = |c: char| c.is_alphanumeric() || c == '_';
                        !line[at + load.len()..].starts_with(goes_on)
                            && !line[..at].ends_with(|c| goes_on(c) || ['>', '.', '&'].contains(&c))
                    })
                };
                let trusted = pointers.iter().find(loads);
                assert_eq!(trusted, None, "{}: {line}", path.display());
            }
        }
    }
    assert!(read > 20, "{read}");
}
