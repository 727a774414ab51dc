//! Probes of processes, at points of the kernel.

use iotomy_d::Probe;

/// A point where a program of the kernel's side fires a probe.
pub(super) struct Point {
    provider: &'static str,
    name: &'static str,
    /// The program of `d_points.bpf.h`.
    pub(super) program: &'static str,
}

/// By number, as `enum point` of `d.h` has them.
pub(super) const POINTS: [Point; 8] = [
    Point { provider: "proc", name: "create", program: "created" },
    Point { provider: "proc", name: "lwp-create", program: "created" },
    Point { provider: "proc", name: "exec-success", program: "executed" },
    Point { provider: "proc", name: "start", program: "started" },
    Point { provider: "proc", name: "lwp-start", program: "started" },
    Point { provider: "proc", name: "exit", program: "over" },
    Point { provider: "proc", name: "lwp-exit", program: "over" },
    Point { provider: "proc", name: "signal-send", program: "signalled" },
];

impl Point {
    pub(super) fn probe(&self) -> Probe {
        let (provider, name) = (self.provider.to_owned(), self.name.to_owned());
        Probe { provider, name, ..Probe::default() }
    }
}
