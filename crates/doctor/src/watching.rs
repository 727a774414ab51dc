//! The facilities that the observers and the anatomy of a command are built on.

use std::fs;

use iotomy_host::privilege::{filtered, not_allowed, privilege, traced};
use iotomy_observe::{FEATURES, Probe, Tracefs, anatomy, probe_rings, refused_features};
use iotomy_record::{numbers, path_text};
use iotomy_sys::errno;
use iotomy_sys::probe::{Refusal, bpf, perf_event, privileges, ptrace};
use libbpf_rs::btf::{Btf, types::Func};

use crate::check::{Check, Context, Outcome, number_in};

#[rustfmt::skip]
pub(crate) static CHECKS: &[Check] = &[
    Check { name: "bpf-maps", purpose: "trace by bpf: its counters", try_it: bpf_maps },
    Check { name: "bpf-programs", purpose: "trace by bpf: its programs", try_it: bpf_programs },
    Check { name: "btf", purpose: "trace by bpf: the kernel's types", try_it: btf },
    Check { name: "ring-operations", purpose: "trace by bpf: what io_uring does", try_it: ring_operations },
    Check { name: "kernel-features", purpose: "trace and anatomy: what they use beyond the base", try_it: kernel_features },
    Check { name: "fentry", purpose: "anatomy: entering a kernel function", try_it: fentry },
    Check { name: "kprobes", purpose: "anatomy: any kernel function", try_it: kprobes },
    Check { name: "tracefs", purpose: "anatomy: the list of tracepoints", try_it: tracefs },
    Check { name: "ptrace-seize", purpose: "trace by ptrace", try_it: try_ptrace },
    Check { name: "pidfd-getfd", purpose: "trace by ptrace: the peers of sockets", try_it: try_pidfd },
    Check { name: "seccomp", purpose: "running a command with denied calls", try_it: seccomp },
    Check { name: "cpu-sampling", purpose: "anatomy: time by kernel function", try_it: sampling },
    Check { name: "anatomy", purpose: "anatomy: everything at once", try_it: all_of_anatomy },
    Check { name: "hardware-counters", purpose: "limits and race: cycles per call", try_it: cycles },
];

const VMLINUX_BTF: &str = "/sys/kernel/btf/vmlinux";
/// Made to be attached to: only the kernel's own tests of BPF call it.
const FENTRY_TARGET: &str = "bpf_fentry_test1";
const KPROBE_PMU: &str = "/sys/bus/event_source/devices/kprobe/type";

fn bpf_remedy(refusal: &Refusal) -> String {
    if not_allowed(refusal) {
        privilege(&["CAP_BPF", "CAP_PERFMON"])
    } else {
        "boot a kernel with CONFIG_BPF_SYSCALL=y and CONFIG_BPF_EVENTS=y".to_owned()
    }
}

fn bpf_maps(_: &Context) -> Outcome {
    match bpf::map_create() {
        Ok(()) => Outcome::ready("a hash map was created"),
        Err(refusal) => Outcome::refused(&refusal, bpf_remedy(&refusal)),
    }
}

fn bpf_programs(_: &Context) -> Outcome {
    match bpf::prog_load() {
        Ok(()) => Outcome::ready("a raw tracepoint program was loaded"),
        Err(refusal) => Outcome::refused(&refusal, bpf_remedy(&refusal)),
    }
}

fn btf(_: &Context) -> Outcome {
    const MAGIC: [u8; 2] = 0xeb9f_u16.to_ne_bytes();
    match fs::read(VMLINUX_BTF) {
        Ok(types) if types.starts_with(&MAGIC) => Outcome::ready(format!(
            "{VMLINUX_BTF}, {}",
            numbers::bytes(types.len() as u128 & !0x3ff)
        )),
        Ok(_) => Outcome::missing(
            format!("{VMLINUX_BTF} does not begin with the BTF magic number"),
            "boot a kernel built by pahole with CONFIG_DEBUG_INFO_BTF=y",
        ),
        Err(source) => Outcome::refused(
            &Refusal::new("read /sys/kernel/btf/vmlinux", source),
            "boot a kernel with CONFIG_DEBUG_INFO_BTF=y (and mount sysfs on /sys)",
        ),
    }
}

fn ring_operations(_: &Context) -> Outcome {
    match probe_rings() {
        Probe::Ready => Outcome::ready("submissions and completions of requests are seen"),
        Probe::Unsupported { reason, remedy } => Outcome::missing(reason, remedy),
    }
}

fn kernel_features(_: &Context) -> Outcome {
    const REMEDY: &str = "docs/kernels.md has what takes the place of each";
    let refused = match refused_features() {
        Ok(refused) => refused,
        Err(reason) => return Outcome::missing(reason, privilege(&["CAP_BPF", "CAP_PERFMON"])),
    };
    let lost = |lost: &str| if lost.is_empty() { "time".to_owned() } else { lost.to_owned() };
    let each = refused.iter().map(|(feature, answer)| {
        format!("{} ({answer}; lost: {})", feature.name, lost(feature.lost))
    });
    match refused.is_empty() {
        true => Outcome::ready(format!("all {} of docs/kernels.md", FEATURES.len())),
        false => Outcome::missing(
            format!("the kernel refused {}", each.collect::<Vec<_>>().join(", ")),
            REMEDY,
        ),
    }
}

fn fentry(_: &Context) -> Outcome {
    let Some(id) = type_of_function(FENTRY_TARGET) else {
        return Outcome::missing(
            format!("the kernel's BTF has no function {FENTRY_TARGET} to try it on"),
            "boot a kernel with CONFIG_DEBUG_INFO_BTF=y and CONFIG_NET=y",
        );
    };
    match bpf::fentry(id) {
        Ok(()) => Outcome::ready(format!("attached to {FENTRY_TARGET} and detached")),
        Err(refusal) if not_allowed(&refusal) => {
            Outcome::refused(&refusal, privilege(&["CAP_BPF", "CAP_PERFMON"]))
        }
        Err(refusal) => Outcome::refused(
            &refusal,
            "boot a kernel with CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS=y and CONFIG_BPF_JIT=y",
        ),
    }
}

/// The number of a kernel function's type. The library's own complaints are not printed.
fn type_of_function(name: &str) -> Option<u32> {
    let before = libbpf_rs::get_print();
    libbpf_rs::set_print(None);
    let id = Btf::from_vmlinux()
        .ok()
        .and_then(|types| types.type_by_name::<Func<'_>>(name).map(|found| found.type_id()))
        .map(u32::from);
    libbpf_rs::set_print(before);
    id
}

fn kprobes(_: &Context) -> Outcome {
    let kind = number_in(KPROBE_PMU).and_then(|kind| u32::try_from(kind).ok());
    let Some(kind) = kind else {
        return Outcome::missing(
            format!("{KPROBE_PMU} is absent"),
            "boot a kernel with CONFIG_KPROBE_EVENTS=y",
        );
    };
    match perf_event::kprobe(kind, c"vfs_fsync_range") {
        Ok(()) => Outcome::ready("set on vfs_fsync_range and removed"),
        Err(refusal) if not_allowed(&refusal) => {
            Outcome::refused(&refusal, privilege(&["CAP_PERFMON"]))
        }
        Err(refusal) => {
            Outcome::refused(&refusal, "boot a kernel with CONFIG_KPROBES=y and without lockdown")
        }
    }
}

fn tracefs(_: &Context) -> Outcome {
    let tracefs = match Tracefs::open() {
        Ok(tracefs) => tracefs,
        Err(refusal) if not_allowed(&refusal) => {
            return Outcome::refused(&refusal, privilege(&["CAP_SYS_ADMIN"]));
        }
        Err(refusal) if errno::name(refusal.errno().unsigned_abs()) == Some("ENOSYS") => {
            return Outcome::refused(&refusal, "mount -t tracefs tracefs /sys/kernel/tracing");
        }
        Err(refusal) => return Outcome::refused(&refusal, "boot a kernel with CONFIG_FTRACE=y"),
    };
    match tracefs.read("available_events") {
        Ok(events) => {
            let events = numbers::thousands(events.lines().count() as u128);
            let place = tracefs
                .place()
                .map_or_else(|| "mounted for this process alone".to_owned(), path_text);
            Outcome::ready(format!("{place}, {events} tracepoints"))
        }
        Err(source) => {
            let refusal = Refusal::new("read available_events", source);
            Outcome::refused(&refusal, privilege(&["CAP_DAC_OVERRIDE"]))
        }
    }
}

fn try_ptrace(_: &Context) -> Outcome {
    match ptrace::seize_child() {
        Ok(()) => Outcome::ready("a child was seized and stopped, and its call read"),
        Err(refusal) if not_allowed(&refusal) => {
            let scope = number_in("/proc/sys/kernel/yama/ptrace_scope").unwrap_or(0);
            let remedy = if traced() {
                "run iotomy without a tracer: a process has at most one".to_owned()
            } else if scope > 1 {
                format!("sysctl kernel.yama.ptrace_scope=1 (it is {scope})")
            } else {
                "allow ptrace in this container's seccomp profile (docker: --cap-add SYS_PTRACE)"
                    .to_owned()
            };
            Outcome::refused(&refusal, remedy)
        }
        Err(refusal) => Outcome::refused(
            &refusal,
            "boot a kernel of 5.3 or later with CONFIG_HAVE_ARCH_TRACEHOOK, or trace by bpf",
        ),
    }
}

fn try_pidfd(_: &Context) -> Outcome {
    match ptrace::copy_descriptor() {
        Ok(()) => Outcome::ready("a descriptor was copied"),
        Err(refusal) if not_allowed(&refusal) => Outcome::refused(
            &refusal,
            "allow pidfd_getfd in this container's seccomp profile (docker: --cap-add SYS_PTRACE)",
        ),
        Err(refusal) => {
            Outcome::refused(&refusal, "boot a kernel of 5.6 or later, or trace by bpf")
        }
    }
}

fn seccomp(_: &Context) -> Outcome {
    match privileges::seccomp_filter() {
        Ok(()) if filtered() => Outcome::ready("a filter was set; iotomy itself runs under one"),
        Ok(()) => Outcome::ready("a filter was set; iotomy itself runs under none"),
        Err(refusal) => Outcome::refused(&refusal, "boot a kernel with CONFIG_SECCOMP_FILTER=y"),
    }
}

fn perf_remedy(refusal: &Refusal) -> String {
    if not_allowed(refusal) {
        let now = number_in("/proc/sys/kernel/perf_event_paranoid")
            .map_or(String::new(), |level| format!(" (it is {level})"));
        format!("sysctl kernel.perf_event_paranoid=1{now}, or {}", privilege(&["CAP_PERFMON"]))
    } else {
        "boot a kernel with CONFIG_PERF_EVENTS=y".to_owned()
    }
}

fn sampling(_: &Context) -> Outcome {
    match perf_event::sample_cpu_clock() {
        Ok(()) => Outcome::ready("by the CPU clock, with kernel call chains"),
        Err(refusal) => Outcome::refused(&refusal, perf_remedy(&refusal)),
    }
}

fn all_of_anatomy(_: &Context) -> Outcome {
    match anatomy::probe() {
        Probe::Ready => Outcome::ready("samples with stacks, sleeps, the kernel's symbols"),
        Probe::Unsupported { reason, remedy } => Outcome::missing(reason, remedy),
    }
}

fn cycles(_: &Context) -> Outcome {
    const GUEST: &str = "give this virtual machine a PMU (qemu: -cpu host,pmu=on; most rented \
                         ones: a bare-metal instance)";
    match perf_event::count_cycles() {
        Ok(0) => Outcome::missing("opened, but no cycle was counted", GUEST),
        Ok(_) => Outcome::ready("cycles of this thread were counted"),
        Err(refusal) if not_allowed(&refusal) => Outcome::refused(&refusal, perf_remedy(&refusal)),
        Err(refusal) => Outcome::refused(&refusal, GUEST),
    }
}
