//! The subject's rings under each observer that sees rings.

use std::collections::{BTreeMap, BTreeSet};

use iotomy_observe::{Filter, Request};
use iotomy_record::{Exit, FileKind, RingOperation};
use iotomy_sys::nop_ring::NopRing;

use super::{Need, Watched, command, each_observer, skip, subject, watch};

pub(crate) const N: u64 = 23;

/// The operations of the subject's rings, summed over its processes.
pub(crate) struct Rings {
    pub(crate) watched: Watched,
    pub(crate) sums: BTreeMap<String, RingOperation>,
}

impl Rings {
    pub(crate) fn of(&self, op: &str) -> &RingOperation {
        self.sums.get(op).unwrap_or_else(|| panic!("no {op} in {:?}", self.sums.keys()))
    }
}

/// Watches the subject's rings with each observer that sees rings here, and checks each result.
pub(crate) fn rings(way: &str, check: impl Fn(&Rings)) {
    rings_of(None, way, check);
}

/// The same where some operations are chosen.
pub(crate) fn rings_of(chosen: Option<&[&str]>, way: &str, check: impl Fn(&Rings)) {
    let operations = chosen.map(|all| all.iter().map(|&one| one.to_owned()).collect());
    rings_by(&Request { ring_operations: operations, ..command("", &[]) }, way, |rings| {
        assert_eq!(rings.watched.observer.lost_requests, 0, "{:#?}", rings.sums);
        check(rings);
    });
}

/// The same with a condition, and without any call.
pub(crate) fn rings_where(condition: &str, way: &str, check: impl Fn(&Rings)) {
    let filter = Filter::new(condition).unwrap();
    let chosen = Request { filter, calls: Some(BTreeSet::new()), ..command("", &[]) };
    rings_by(&chosen, way, check);
}

/// The same with what this request chooses, whatever its target.
pub(crate) fn rings_by(chosen: &Request, way: &str, check: impl Fn(&Rings)) {
    if let Err(e) = NopRing::entered() {
        return skip(Need::IoUring, &format!("no ring: {e}"));
    }
    each_observer(|observer| {
        let request = command(subject(), &["rings", way, &N.to_string()]);
        let watched = watch(observer, &Request { target: request.target, ..chosen.clone() });
        assert_eq!(watched.exit, Some(Exit::Code(0)), "{watched:?}");
        let sees = watched.observer.sees_rings;
        if sees != Some(true) {
            assert_eq!((sees, watched.ring_operations.len()), (Some(false), 0));
            if observer.declaration().name == "bpf" {
                skip(Need::IoUring, "this kernel does not have io_uring's tracepoints");
            }
            return;
        }
        assert_eq!(watched.observer.lost_events, 0, "{:#?}", watched.ring_operations);
        let mut sums: BTreeMap<String, RingOperation> = BTreeMap::new();
        for row in &watched.ring_operations {
            sums.entry(row.op.clone()).or_default().merge(row);
            assert_eq!(row.completed, row.inline + row.polled + row.worker + row.sqpoll);
            assert_eq!(row.submitted, row.completed + row.in_flight, "{row:?}");
            assert_eq!(row.errors, row.error_kinds.values().sum::<u64>());
            assert_eq!(row.wall_times.total(), row.wall_log2.total());
        }
        check(&Rings { watched, sums });
    });
}

/// Reads and writes of the file that the subject's requests are for.
pub(crate) fn file(watched: &Watched, kind: FileKind) -> [u64; 4] {
    // A file without a name has its number in place of it.
    let is_it = |path: &str| kind != FileKind::File || path.contains("/#");
    let files = watched.files.iter();
    let used = files.filter(|file| file.kind == kind && is_it(&file.path));
    used.fold([0; 4], |sum, file| {
        let more = [file.read_calls, file.read_bytes, file.write_calls, file.write_bytes];
        std::array::from_fn(|at| sum[at] + more[at])
    })
}
