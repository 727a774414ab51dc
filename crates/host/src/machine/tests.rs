//! A machine made of files in a temporary directory.

use super::*;

const CLOCK: &str = "sys/devices/system/clocksource/clocksource0";
const GUEST: &str =
    "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nflags\t\t: fpu hypervisor sse\n";

fn fake(files: &[(&str, &str)]) -> (tempfile::TempDir, Root) {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let root = Root(folder.path().to_owned());
    (folder, root)
}

fn virtualization_of(files: &[(&str, &str)]) -> String {
    let (_folder, root) = fake(files);
    describe(&root, String::new()).virtualization
}

#[test]
fn a_whole_machine_is_read() {
    let weak = "sys/devices/system/cpu/vulnerabilities";
    let (_folder, root) = fake(&[
        ("proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nflags\t\t: fpu sse\n"),
        ("proc/meminfo", "MemTotal:       16384 kB\nMemFree:  1 kB\n"),
        ("sys/devices/system/cpu/online", "0-3,8\n"),
        (&format!("{weak}/spectre_v2"), "Mitigation: Retpolines\n"),
        (&format!("{weak}/meltdown"), "Not affected\n"),
        (&format!("{weak}/mds"), "Vulnerable\n"),
        (&format!("{CLOCK}/current_clocksource"), "tsc\n"),
    ]);
    let expected = Machine {
        kernel: "Linux 6.1 x86_64".to_owned(),
        cpu: "Some CPU @ 2 GHz".to_owned(),
        cpus: 5,
        memory_bytes: 16 << 20,
        virtualization: "none".to_owned(),
        mitigations: "mds: Vulnerable; spectre_v2: Mitigation: Retpolines".to_owned(),
        clock: "tsc".to_owned(),
        name: String::new(),
    };
    assert_eq!(describe(&root, "Linux 6.1 x86_64".to_owned()), expected);
}

#[test]
fn an_empty_tree_is_unknown_and_no_error() {
    let (_folder, root) = fake(&[]);
    let machine = describe(&root, "Linux".to_owned());
    assert_eq!(machine.cpu, "unknown");
    assert_eq!((machine.cpus, machine.memory_bytes), (0, 0));
    assert_eq!(machine.virtualization, "unknown");
    assert_eq!(machine.mitigations, "unknown");
    assert_eq!(machine.clock, "unknown");
}

#[test]
fn odd_files_are_unknown_and_no_error() {
    let (_folder, root) = fake(&[
        ("proc/cpuinfo", ":::\nmodel name\nprocessor\t: 0\nprocessor\t: 1\n"),
        ("proc/meminfo", "MemTotal: lots kB\n"),
        ("sys/devices/system/cpu/online", "3-1,x\n"),
        ("sys/devices/system/cpu/vulnerabilities", "a file where a directory should be"),
    ]);
    let machine = describe(&root, String::new());
    assert_eq!((machine.cpu.as_str(), machine.cpus, machine.memory_bytes), ("unknown", 2, 0));
    assert_eq!(machine.mitigations, "unknown");
}

#[test]
fn a_hypervisor_is_named_by_the_best_hint_there_is() {
    let vendor = "sys/class/dmi/id/sys_vendor";
    let clocks = format!("{CLOCK}/available_clocksource");
    let cpu = ("proc/cpuinfo", GUEST);
    assert_eq!(virtualization_of(&[cpu]), "vm");
    assert_eq!(virtualization_of(&[cpu, (&clocks, "tsc kvm-clock \n")]), "kvm");
    assert_eq!(virtualization_of(&[cpu, (vendor, "QEMU\n"), (&clocks, "kvm-clock\n")]), "qemu");
    assert_eq!(virtualization_of(&[cpu, ("sys/hypervisor/type", "xen\n")]), "xen");
}

#[test]
fn the_maker_of_a_bare_machine_is_no_hypervisor() {
    let bare = "processor\t: 0\nflags\t\t: fpu sse\n";
    let made = [("proc/cpuinfo", bare), ("sys/class/dmi/id/sys_vendor", "Amazon EC2\n")];
    assert_eq!(virtualization_of(&made), "none");
}

#[test]
fn a_container_is_named_and_a_mark_left_by_an_image_is_not() {
    let bare = ("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu sse\n");
    let mark = (".dockerenv", "");
    assert_eq!(virtualization_of(&[bare, mark]), "docker");
    assert_eq!(virtualization_of(&[("proc/cpuinfo", GUEST), mark]), "docker in vm");
    assert_eq!(virtualization_of(&[bare, ("run/systemd/container", "lxc\n")]), "lxc");
    assert_eq!(
        virtualization_of(&[bare, ("proc/1/cgroup", "0::/kubepods/besteffort\n")]),
        "kubepods"
    );
    assert_eq!(virtualization_of(&[bare, mark, ("proc/2/comm", "kthreadd\n")]), "none");
}

#[test]
fn this_machine_has_a_kernel_and_memory() {
    let machine = machine();
    assert!(machine.kernel.starts_with("Linux "), "{machine:?}");
    assert!(machine.cpus > 0 && machine.memory_bytes > 0, "{machine:?}");
    println!("{machine:#?}");
}
