//! The memory of iotomy when it watches 1,000 processes that live at the same time: its own, and
//! that of its maps and programs in the kernel.
//!
//! Its own is the high-water mark, which only rises; the maps' is what the kernel says of the
//! descriptors. Both are read again and again until the process is gone, and the figure is the
//! largest sum of one reading: the maps are emptied while the record is made of them, so the two
//! largest figures never meet. The kernel does not count the elements of task storage: they are
//! computed, one of the map's value size and a header for each process while it lives.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use iotomy_record::store;

use crate::child::{Signals, guarded, own_path};
use crate::scratch::Scratch;
use crate::stats;

/// How many processes live at the same time.
pub(crate) const PROCESSES: usize = 1_000;
/// `struct bpf_local_storage_elem` and its `struct bpf_local_storage`, rounded up to their slabs.
const STORAGE_HEADERS: u64 = 512;
/// `BPF_MAP_TYPE_TASK_STORAGE`.
const TASK_STORAGE: u64 = 29;

/// Bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Memory {
    /// The high-water mark of the process while the crowd lives.
    pub(crate) process_alive: u64,
    /// And until its end.
    pub(crate) process: u64,
    pub(crate) maps: u64,
    pub(crate) task_storage: u64,
    pub(crate) programs: u64,
    /// The largest sum at any time.
    pub(crate) peak: u64,
    /// Processes and different calls (the median process's) of the record.
    pub(crate) seen_processes: u64,
    pub(crate) seen_calls: u64,
}

impl Memory {
    /// The memory in use while the crowd lives.
    fn alive(&self) -> u64 {
        self.process_alive + self.maps + self.task_storage + self.programs
    }
}

/// Has a crowd watched.
pub(crate) fn measure(signals: &Signals, iotomy: &str, folder: &Scratch) -> Result<Memory> {
    let own = own_path()?.to_string_lossy().into_owned();
    let record = folder.path().join("crowd.json");
    let json = record.to_string_lossy().into_owned();
    let processes = format!("--processes={PROCESSES}");
    let argv = [
        iotomy,
        "trace",
        "--observer=bpf",
        "--json",
        &json,
        "--",
        &own,
        "trace",
        "crowd",
        &processes,
    ]
    .map(str::to_owned);
    let errors = folder.path().join("errors");
    let mut command =
        guarded(&argv, File::create(&errors).context("cannot create a temporary file")?)?;
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().context("cannot start iotomy")?;
    let memory = watch(signals, &mut child);
    if memory.is_err() {
        let _ = child.kill();
    }
    let status = child.wait().context("cannot wait for iotomy")?;
    let mut memory = memory?;
    if !status.success() {
        bail!("iotomy ended with {status}: {}", fs::read_to_string(&errors).unwrap_or_default());
    }
    let trace = store::load_trace(&record).context("cannot read the record of the crowd")?;
    let mut calls: BTreeMap<u32, u64> = BTreeMap::new();
    for row in &trace.calls {
        *calls.entry(row.pid).or_default() += 1;
    }
    memory.seen_processes = calls.len() as u64;
    let calls: Vec<f64> = calls.values().map(|calls| *calls as f64).collect();
    memory.seen_calls = stats::median(&calls).unwrap_or_default() as u64;
    Ok(memory)
}

fn watch(signals: &Signals, child: &mut Child) -> Result<Memory> {
    let folder = format!("/proc/{}", child.id());
    let out = child.stdout.take().context("iotomy has no standard output")?;
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line).context("cannot hear of the crowd")?;
    if line.trim() != "ready" {
        bail!("the crowd did not gather");
    }
    let mut memory = of_descriptors(&folder)?;
    memory.process_alive = high_water(&folder).context("cannot tell the memory of iotomy")?;
    memory.process = memory.process_alive;
    memory.peak = memory.alive();
    drop(child.stdin.take());
    while child.try_wait().context("cannot wait for iotomy")?.is_none() {
        signals.check()?;
        memory.process = memory.process.max(high_water(&folder).unwrap_or(0));
        let kernel = of_descriptors(&folder).map_or(0, |held| held.maps + held.programs);
        memory.peak = memory.peak.max(memory.process + kernel);
        std::thread::sleep(Duration::from_micros(500));
    }
    Ok(memory)
}

/// `VmHWM` of a process that has not ended.
fn high_water(folder: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("{folder}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// The memory of the maps and programs behind the descriptors of a process, each once.
fn of_descriptors(folder: &str) -> Result<Memory> {
    let mut memory = Memory::default();
    let mut known: Vec<(bool, u64)> = Vec::new();
    let entries = fs::read_dir(format!("{folder}/fdinfo"));
    for entry in entries.context("cannot read the descriptors of iotomy")? {
        let text = fs::read_to_string(entry?.path()).unwrap_or_default();
        let Some(held) = BpfObject::read(&text) else { continue };
        if known.contains(&held.identity) {
            continue;
        }
        known.push(held.identity);
        *(if held.identity.0 { &mut memory.maps } else { &mut memory.programs }) += held.bytes;
        if held.element_bytes > 0 {
            // The crowd's parent is watched, too.
            memory.task_storage = held.element_bytes * (PROCESSES as u64 + 1);
        }
    }
    if memory.maps == 0 {
        bail!("iotomy holds no BPF map, or the kernel does not say what they take");
    }
    Ok(memory)
}

/// A map or a program behind a descriptor.
#[derive(Debug, PartialEq)]
struct BpfObject {
    /// Whether it is a map, and its id.
    identity: (bool, u64),
    bytes: u64,
    /// Of an element that `bytes` leaves out.
    element_bytes: u64,
}

impl BpfObject {
    fn read(fdinfo: &str) -> Option<Self> {
        let field = |name: &str| {
            let line =
                fdinfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            line.trim().parse::<u64>().ok()
        };
        let identity = match field("map_id") {
            Some(id) => (true, id),
            None => (false, field("prog_id")?),
        };
        let element_bytes = match field("map_type") {
            Some(TASK_STORAGE) => field("value_size")? + STORAGE_HEADERS,
            _ => 0,
        };
        Some(Self { identity, bytes: field("memlock")?, element_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_and_programs_are_read_from_fdinfo() {
        let map =
            "pos:\t0\nmap_type:\t29\nkey_size:\t4\nvalue_size:\t300\nmemlock:\t4096\nmap_id:\t7\n";
        let held = BpfObject { identity: (true, 7), bytes: 4096, element_bytes: 812 };
        assert_eq!(BpfObject::read(map), Some(held));
        let program = "pos:\t0\nprog_type:\t26\nprog_jited:\t1\nmemlock:\t8192\nprog_id:\t9\n";
        let held = BpfObject { identity: (false, 9), bytes: 8192, element_bytes: 0 };
        assert_eq!(BpfObject::read(program), Some(held));
        assert_eq!(BpfObject::read("pos:\t0\nflags:\t02\n"), None);
    }
}
