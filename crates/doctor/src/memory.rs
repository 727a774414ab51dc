//! Kinds of pages, and the page cache.

use std::fs::OpenOptions;

use iotomy_host::privilege::{in_user_namespace, is_root, not_allowed, privilege};
use iotomy_record::numbers;
use iotomy_sys::probe::memory::Mapping;
use iotomy_sys::probe::{Refusal, limits};
use rustix::process::{Resource, getrlimit};

use crate::check::{Check, Context, Outcome, refusal_text};

#[rustfmt::skip]
pub(crate) static CHECKS: &[Check] = &[
    Check { name: "huge-pages", purpose: "limits and movers: buffers in huge pages", try_it: huge_pages },
    Check { name: "transparent-huge-pages", purpose: "limits: huge pages by madvise", try_it: transparent },
    Check { name: "locked-memory", purpose: "rings with registered buffers", try_it: locked },
    Check { name: "drop-caches", purpose: "race and lab: cold runs", try_it: drop_caches },
];

fn huge_page_bytes() -> Option<usize> {
    let meminfo = iotomy_host::kernel_text("/proc/meminfo").ok()?;
    let line = meminfo.lines().find_map(|line| line.strip_prefix("Hugepagesize:"))?;
    line.trim_end_matches("kB").trim().parse::<usize>().ok()?.checked_mul(1024)
}

fn huge_pages(_: &Context) -> Outcome {
    let Some(bytes) = huge_page_bytes() else {
        return Outcome::missing(
            "/proc/meminfo has no Hugepagesize",
            "boot a kernel with CONFIG_HUGETLBFS=y",
        );
    };
    match Mapping::huge(bytes) {
        Ok(_) => Outcome::ready(format!("a page of {}", numbers::bytes(bytes as u128))),
        Err(refusal) => Outcome::missing(
            format!("{}; no huge page is free", refusal_text(&refusal)),
            "sysctl vm.nr_hugepages=64",
        ),
    }
}

fn transparent(_: &Context) -> Outcome {
    const SETTING: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
    let Ok(setting) = iotomy_host::kernel_text(SETTING) else {
        return Outcome::missing(
            format!("{SETTING} is absent"),
            "boot a kernel with CONFIG_TRANSPARENT_HUGEPAGE=y",
        );
    };
    let chosen = setting.split(['[', ']']).nth(1).unwrap_or("unknown").to_owned();
    match huge_by_advice() {
        Ok(true) => Outcome::ready(format!("on advice (the setting is {chosen})")),
        Ok(false) if chosen == "never" => {
            Outcome::missing(format!("{SETTING} is never"), format!("echo madvise > {SETTING}"))
        }
        Ok(false) => Outcome::missing(
            format!("advised (the setting is {chosen}), but the kernel mapped a small page"),
            "compact free memory: echo 1 > /proc/sys/vm/compact_memory",
        ),
        Err(refusal) => Outcome::refused(&refusal, format!("echo madvise > {SETTING}")),
    }
}

/// Whether a page touched in memory with the advice is a huge one.
fn huge_by_advice() -> Result<bool, Refusal> {
    // Four times the usual size: the middle is in a whole huge page wherever the memory begins.
    let bytes = 4 * huge_page_bytes().unwrap_or(2 << 20);
    let mut memory = Mapping::ordinary(bytes)?;
    memory.advise_huge()?;
    memory.touch_middle();
    let maps = iotomy_host::kernel_text("/proc/self/smaps")
        .map_err(|e| Refusal::new("read /proc/self/smaps", e))?;
    Ok(huge_bytes_at(&maps, memory.address()) > 0)
}

/// `AnonHugePages` of the mapping that holds `address`, in the unit of the file.
fn huge_bytes_at(maps: &str, address: usize) -> u64 {
    let mut inside = false;
    for line in maps.lines() {
        let first = line.split(' ').next().unwrap_or_default();
        if let Some((from, to)) = first.split_once('-')
            && let (Ok(from), Ok(to)) =
                (usize::from_str_radix(from, 16), usize::from_str_radix(to, 16))
        {
            inside = (from..to).contains(&address);
        } else if inside && let Some(value) = line.strip_prefix("AnonHugePages:") {
            return value.trim_end_matches("kB").trim().parse().unwrap_or(0);
        }
    }
    0
}

fn locked(_: &Context) -> Outcome {
    /// The memory that a ring with 64 buffers of 1 MiB registers.
    const WANTED: usize = 64 << 20;
    let limit = getrlimit(Resource::Memlock);
    let text = |limit: Option<u64>| match limit {
        Some(bytes) => numbers::bytes(bytes.into()),
        None => "unlimited".to_owned(),
    };
    let limits = format!("soft {}, hard {}", text(limit.current), text(limit.maximum));
    match limits::lock_memory(WANTED) {
        Ok(()) => {
            Outcome::ready(format!("{} locked (limits: {limits})", numbers::bytes(WANTED as u128)))
        }
        Err(refusal) => Outcome::missing(
            format!(
                "{} for {} (limits: {limits})",
                refusal_text(&refusal),
                numbers::bytes(WANTED as u128)
            ),
            format!("ulimit -l 65536 (or LimitMEMLOCK=64M), or {}", privilege(&["CAP_IPC_LOCK"])),
        ),
    }
}

fn drop_caches(_: &Context) -> Outcome {
    const FILE: &str = "/proc/sys/vm/drop_caches";
    // Opening does nothing; only a number written would drop anything.
    match OpenOptions::new().write(true).open(FILE) {
        Ok(_) => Outcome::ready(format!("{FILE} can be written")),
        Err(source) => {
            let refusal = Refusal::new("open /proc/sys/vm/drop_caches", source);
            let remedy = match not_allowed(&refusal) {
                true if in_user_namespace() => "run as root, outside of this user namespace",
                true if !is_root() => {
                    "run as root (elsewhere, a file's own pages can be dropped by posix_fadvise)"
                }
                _ => "mount /proc writable in this container (docker: --privileged)",
            };
            Outcome::refused(&refusal, remedy)
        }
    }
}
