//! The work of the kernel's verifier for an object, which is most of the start-up time.

use std::os::fd::{AsFd, AsRawFd};

use libbpf_rs::Object;

use super::{Knobs, Session, Shared};
use crate::Selection;
use iotomy_host::Cgroup;
use iotomy_needs::{Need, skip};

/// Instructions it went through, those of branches as often as it took them; programs that were not loaded have none.
pub(in crate::bpf) fn steps(object: &Object) -> u64 {
    let steps = object.progs_mut().map(|program| {
        let name = format!("/proc/self/fdinfo/{}", program.as_fd().as_raw_fd());
        let info = std::fs::read_to_string(name).unwrap_or_default();
        let line = info.lines().find_map(|line| line.strip_prefix("verified_insns:"));
        line.map_or(0, |number| number.trim().parse::<u64>().unwrap())
    });
    steps.sum()
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
    let knobs = Knobs {
        by_file: true,
        by_path: details,
        by_thread: true,
        slowest: if details { 100 } else { 0 },
        whole_machine: true,
        wanted: None,
        transfers: [[0x21; 512]; 2],
        paths: [[0x2121; 512]; 2],
        descriptors: [[1; 512]; 2],
        filter,
        rows: 16,
        looked_at: false,
        selection: Selection {
            names: vec!["*".parse().map_err(|error| format!("{error}"))?],
            cgroups: vec![Cgroup { directory: "/".into(), path: "/".into(), hierarchy: 0, id: 1 }],
            ..Selection::process(1)
        },
    };
    Session::load(&knobs, shared)
}

/// They were once 72,000: the loop over a path was verified iteration by iteration.
#[test]
fn the_verifier_passes_the_programs_in_few_steps() {
    let none = crate::Filter::default;
    let all = "call == \"a\" || path == \"/a*\" && image == \"b\" || threadname == \"c\" \
               && cgroup == \"/d\" || fd / bytes == errno % duration || pid == thread";
    let all = || crate::Filter::new(all).unwrap();
    for (details, filter, most) in
        [(false, none(), 40_000), (true, none(), 80_000), (true, all(), 200_000)]
    {
        let session = match session_of(details, filter, None) {
            Ok(session) => session,
            Err(reason) => return skip(Need::Bpf, &reason),
        };
        let steps = steps(&session.object);
        assert!((1_000..most).contains(&steps), "{steps}");
    }
}
