//! Probes of processes, the scheduler, block requests and statistics, at points of the kernel.

use iotomy_dtrace::Probe;

/// A point where a program of the kernel's side fires a probe.
pub(super) struct Point {
    provider: &'static str,
    name: &'static str,
    /// The program of `d_points.bpf.h`, `d_sched.bpf.h`, `d_io.bpf.h` or `d_counts.bpf.h`.
    pub(super) programs: &'static [&'static str],
    /// It is in the object with what few programs need.
    pub(super) is_detail: bool,
}

const fn point(
    provider: &'static str,
    name: &'static str,
    programs: &'static [&'static str],
) -> Point {
    Point { provider, name, programs, is_detail: false }
}

const fn detail(
    provider: &'static str,
    name: &'static str,
    programs: &'static [&'static str],
) -> Point {
    Point { provider, name, programs, is_detail: true }
}

const CALLS: &[&str] = &["counted_calls"];
const PAGES: &[&str] = &["counted_pages"];

/// By number, as `enum point` of `d.h` has them.
pub(super) const POINTS: [Point; 35] = [
    point("proc", "create", &["created"]),
    point("proc", "lwp-create", &["created"]),
    point("proc", "exec-success", &["executed"]),
    point("proc", "start", &["started"]),
    point("proc", "lwp-start", &["started"]),
    point("proc", "exit", &["over"]),
    point("proc", "lwp-exit", &["over"]),
    point("proc", "signal-send", &["signalled"]),
    point("sched", "on-cpu", &["switched"]),
    point("sched", "off-cpu", &["switched"]),
    point("sched", "sleep", &["switched"]),
    point("sched", "preempt", &["switched"]),
    point("sched", "wakeup", &["woken"]),
    detail("io", "start", &["bio_begins"]),
    detail("io", "done", &["bio_begins", "bio_ends", "request_ends"]),
    detail("io", "wait-start", &["waited"]),
    detail("io", "wait-done", &["waited"]),
    detail("sysinfo", "sysread", CALLS),
    detail("sysinfo", "syswrite", CALLS),
    detail("sysinfo", "readch", &["counted_bytes"]),
    detail("sysinfo", "writech", &["counted_bytes"]),
    detail("sysinfo", "sysexec", CALLS),
    detail("sysinfo", "sysfork", CALLS),
    detail("sysinfo", "sysvfork", CALLS),
    detail("sysinfo", "sema", CALLS),
    detail("sysinfo", "msg", CALLS),
    detail("sysinfo", "pswitch", &["counted_switches"]),
    detail("sysinfo", "inv_swtch", &["counted_switches"]),
    detail("vminfo", "as_fault", &["counted_faults"]),
    detail("vminfo", "prot_fault", &["counted_faults"]),
    detail("vminfo", "kernel_asflt", &["counted_kernel_faults"]),
    detail("vminfo", "pgin", PAGES),
    detail("vminfo", "pgpgin", PAGES),
    detail("vminfo", "pgout", PAGES),
    detail("vminfo", "pgpgout", PAGES),
];

impl Point {
    /// Whether it is a probe's.
    pub(super) fn is(&self, probe: &Probe) -> bool {
        probe.provider == self.provider && probe.name == self.name
    }

    /// Whether it fires with the scheduler's lock held, where older kernels' storage of tasks allocates nothing, or for a
    /// thread that is not the current one.
    pub(super) fn is_locked(&self) -> bool {
        const LOCKED: [&str; 4] = ["switched", "woken", "waited", "counted_switches"];
        self.programs.iter().any(|program| LOCKED.contains(program))
    }

    pub(super) fn probe(&self) -> Probe {
        let (provider, name) = (self.provider.to_owned(), self.name.to_owned());
        Probe { provider, name, ..Probe::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_have_the_numbers_that_the_programs_have_for_them() {
        let header = include_str!("../d.h");
        let (_, points) = header.split_once("enum point {").unwrap();
        let (points, _) = points.split_once("};").unwrap();
        let names: Vec<&str> =
            points.lines().filter_map(|line| line.trim().strip_suffix(',')).collect();
        let of = |point: &Point| {
            let name = point.name.replace('-', "_").to_uppercase();
            if point.provider == "io" {
                format!("POINT_IO_{name}")
            } else {
                format!("POINT_{name}")
            }
        };
        assert_eq!(names, POINTS.iter().map(of).collect::<Vec<_>>());
    }
}
