//! What a process holds in the kernel of BPF, and whether it is gone again.

use std::fs;
use std::path::PathBuf;

use iotomy_test_requirements::wait::until;
use libbpf_rs::query::{LinkInfoIter, MapInfoIter, ProgInfoIter};

/// BPF objects by kind and id.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Attached {
    objects: Vec<(&'static str, String)>,
}

/// How `/proc/PID/fdinfo` names the ids, by kind; a link's has its program's, too.
const KINDS: [(&str, &str); 3] = [("prog", "prog_id:"), ("link", "link_id:"), ("map", "map_id:")];

impl Attached {
    /// What `pid` has open at the moment; nothing of a process that is gone.
    pub(crate) fn to(pid: u32) -> Self {
        let mut attached = Self::default();
        for descriptor in entries(pid) {
            let info = fs::read_to_string(descriptor).unwrap_or_default();
            for (kind, field) in KINDS {
                let id = info.lines().find_map(|line| line.strip_prefix(field));
                attached.objects.extend(id.map(|id| (kind, id.trim().to_owned())));
            }
        }
        attached.objects.sort();
        attached.objects.dedup();
        attached
    }

    pub(crate) fn has(&self, kind: &str) -> bool {
        self.objects.iter().any(|(of, _)| *of == kind)
    }

    /// Waits until the kernel has none of the objects any more, whoever held them.
    pub(crate) fn until_gone(&self) {
        for (kind, id) in &self.objects {
            until(&format!("BPF {kind} {id} is gone"), || is_gone(kind, id));
        }
    }
}

fn entries(pid: u32) -> Vec<PathBuf> {
    let folder = fs::read_dir(format!("/proc/{pid}/fdinfo"));
    folder.map_or_else(|_| Vec::new(), |all| all.flatten().map(|entry| entry.path()).collect())
}

fn is_gone(kind: &str, id: &str) -> bool {
    let id: u32 = id.parse().unwrap();
    !match kind {
        "prog" => ProgInfoIter::default().any(|program| program.id == id),
        "link" => LinkInfoIter::default().any(|link| link.id == id),
        _ => MapInfoIter::default().any(|map| map.id == id),
    }
}
