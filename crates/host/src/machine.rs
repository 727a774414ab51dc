//! Facts about the machine, as a record stores them.
//!
//! It reads `/proc` and `/sys` and judges nothing. The one invariant: a missing or odd file gives
//! `unknown` (or 0), never an error, because a record without its machine's clock is still a
//! record.

use std::fs;
use std::path::{Path, PathBuf};

use iotomy_record::Machine;

use crate::kernel_text;

const UNKNOWN: &str = "unknown";

/// The machine this process runs on.
pub fn machine() -> Machine {
    let uname = rustix::system::uname();
    let kernel =
        [uname.sysname(), uname.release(), uname.machine()].map(|part| part.to_string_lossy());
    describe(&Root(PathBuf::from("/")), kernel.join(" "))
}

/// The machine this process runs on, with this name, or else with that of the host.
pub fn named_machine(name: Option<&str>) -> Machine {
    Machine { name: name.map_or_else(host_name, str::to_owned), ..machine() }
}

/// The host's name.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Whether this process runs in a container, whose host name is its own.
pub fn is_in_container() -> bool {
    container(&Root(PathBuf::from("/"))).is_some()
}

/// The CPUs that are online, by their numbers.
pub fn online_cpus() -> Vec<u32> {
    let text = Root(PathBuf::from("/")).text("sys/devices/system/cpu/online").unwrap_or_default();
    list(&text)
}

/// A list as `0-3,8`.
fn list(text: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.trim().parse().ok()?..=last.trim().parse().ok()?)
    };
    text.split(',').filter_map(range).flatten().collect()
}

/// The place of `/proc` and `/sys`: the root, or a directory made for a test.
struct Root(PathBuf);

impl Root {
    fn at(&self, path: &str) -> PathBuf {
        self.0.join(path)
    }

    fn has(&self, path: &str) -> bool {
        self.at(path).exists()
    }

    /// The text of a file without the white space around it, unless it is missing or empty.
    fn text(&self, path: &str) -> Option<String> {
        let bytes = fs::read(self.at(path)).ok()?;
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        (!text.is_empty()).then_some(text)
    }
}

fn describe(root: &Root, kernel: String) -> Machine {
    let cpuinfo = root.text("proc/cpuinfo").unwrap_or_default();
    Machine {
        kernel,
        cpu: cpu(&cpuinfo),
        cpus: cpus(root, &cpuinfo),
        memory_bytes: memory_bytes(root),
        virtualization: virtualization(root, &cpuinfo),
        mitigations: mitigations(&root.at("sys/devices/system/cpu/vulnerabilities")),
        clock: root
            .text("sys/devices/system/clocksource/clocksource0/current_clocksource")
            .unwrap_or_else(|| UNKNOWN.to_owned()),
        name: String::new(),
    }
}

/// The value of the first line `key : value`.
fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key && !value.trim().is_empty()).then_some(value.trim())
    })
}

fn cpu(cpuinfo: &str) -> String {
    // x86 and most others; then the keys of some ARM and RISC-V kernels.
    let keys = ["model name", "Model", "Hardware", "uarch", "CPU part"];
    keys.iter().find_map(|key| field(cpuinfo, key)).unwrap_or(UNKNOWN).to_owned()
}

fn cpus(root: &Root, cpuinfo: &str) -> u32 {
    let online = root.text("sys/devices/system/cpu/online").and_then(|list| length(&list));
    online.unwrap_or_else(|| {
        let listed = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
        u32::try_from(listed).unwrap_or(u32::MAX)
    })
}

/// How many numbers a list like `0-3,8,10-11` names.
fn length(list: &str) -> Option<u32> {
    list.split(',').try_fold(0u32, |total, part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse::<u32>().ok()?, last.trim().parse::<u32>().ok()?);
        total.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

fn memory_bytes(root: &Root) -> u64 {
    let meminfo = root.text("proc/meminfo").unwrap_or_default();
    field(&meminfo, "MemTotal")
        .and_then(|value| value.trim_end_matches("kB").trim().parse::<u64>().ok())
        .map_or(0, |kib| kib.saturating_mul(1024))
}

/// The hypervisor and the container, from inside out: `none`, `kvm`, `docker`, `docker in kvm`.
fn virtualization(root: &Root, cpuinfo: &str) -> String {
    match (container(root), hypervisor(root, cpuinfo)) {
        (None, None) if cpuinfo.is_empty() => UNKNOWN.to_owned(),
        (None, None) => "none".to_owned(),
        (None, Some(hypervisor)) => hypervisor,
        (Some(container), None) => container,
        (Some(container), Some(hypervisor)) => format!("{container} in {hypervisor}"),
    }
}

fn hypervisor(root: &Root, cpuinfo: &str) -> Option<String> {
    /// A word of the machine's maker or model, and the hypervisor that uses it.
    const MAKERS: &[(&str, &str)] = &[
        ("amazon ec2", "kvm (amazon ec2)"),
        ("google", "kvm (google)"),
        ("qemu", "qemu"),
        ("kvm", "kvm"),
        ("vmware", "vmware"),
        ("virtualbox", "virtualbox"),
        ("innotek", "virtualbox"),
        ("xen", "xen"),
        ("bochs", "bochs"),
        ("parallels", "parallels"),
        ("bhyve", "bhyve"),
        ("virtual machine", "hyper-v"),
    ];
    if let Some(named) = root.text("sys/hypervisor/type") {
        return Some(named);
    }
    let flags = field(cpuinfo, "flags");
    if flags.is_some_and(|all| !all.split(' ').any(|flag| flag == "hypervisor")) {
        // A processor that lists its flags without this one is not a guest, whoever made the board:
        // the makers above rent out bare machines, too.
        return None;
    }
    let made = ["sys_vendor", "product_name", "board_vendor", "bios_vendor"]
        .map(|name| root.text(&format!("sys/class/dmi/id/{name}")).unwrap_or_default())
        .join(" ")
        .to_lowercase();
    if let Some((_, name)) = MAKERS.iter().find(|(word, _)| made.contains(word)) {
        return Some((*name).to_owned());
    }
    let clocks = root
        .text("sys/devices/system/clocksource/clocksource0/available_clocksource")
        .unwrap_or_default();
    let by_clock = [("kvm-clock", "kvm"), ("hyperv", "hyper-v"), ("xen", "xen")];
    if let Some((_, name)) = by_clock.iter().find(|(word, _)| clocks.contains(word)) {
        return Some((*name).to_owned());
    }
    flags.map(|_| "vm".to_owned())
}

fn container(root: &Root) -> Option<String> {
    if root.text("proc/2/comm").as_deref() == Some("kthreadd") {
        // The kernel's own threads are visible: these are the machine's processes. A mark such as
        // /.dockerenv is then left over from the image the machine was made of.
        return None;
    }
    if let Some(named) = root.text("run/systemd/container") {
        return Some(named);
    }
    let marks = [(".dockerenv", "docker"), ("run/.containerenv", "podman")];
    if let Some((_, name)) = marks.iter().find(|(mark, _)| root.has(mark)) {
        return Some((*name).to_owned());
    }
    let groups = root.text("proc/1/cgroup").unwrap_or_default();
    let words = ["kubepods", "docker", "containerd", "lxc", "libpod", "podman"];
    words.iter().find(|word| groups.contains(*word)).map(|word| (*word).to_owned())
}

/// `name: text; …` of the weaknesses the processor has, in the order of their names.
fn mitigations(folder: &Path) -> String {
    let Ok(entries) = fs::read_dir(folder) else {
        return UNKNOWN.to_owned();
    };
    let mut affected: Vec<String> = entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let text = kernel_text(entry.path()).ok()?;
            let text = text.trim();
            let name = entry.file_name().to_string_lossy().into_owned();
            (!text.is_empty() && text != "Not affected").then(|| format!("{name}: {text}"))
        })
        .collect();
    affected.sort();
    if affected.is_empty() { "none needed".to_owned() } else { affected.join("; ") }
}

#[cfg(test)]
#[path = "machine/tests.rs"]
mod tests;
