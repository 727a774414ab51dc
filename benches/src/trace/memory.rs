//! The memory of iotomy while it watches 1,000 simultaneous processes: that of the process, and
//! that of its maps and programs in the kernel.
//!
//! The memory of the process is the high-water mark, which only rises; that of the maps is the
//! kernel's figure for the descriptors. Both are read repeatedly until the process has ended, and
//! the result is the largest sum of a single reading: the maps are emptied while the record is made
//! from them, so the two maxima never coincide. The kernel does not count the elements of task
//! storage. They are computed instead: one element of the map's value size plus a header for each
//! live process.

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

/// Number of simultaneous processes.
pub(crate) const PROCESSES: usize = 1_000;
/// The sizes of `struct bpf_local_storage_elem` and its `struct bpf_local_storage`, rounded up to
/// their slabs.
const STORAGE_HEADERS: u64 = 512;
/// `BPF_MAP_TYPE_TASK_STORAGE`.
const TASK_STORAGE: u64 = 29;

/// The memory figures in bytes, and the counts of the record.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Memory {
    /// The high-water mark of the process while the crowd lives.
    pub(crate) process_alive: u64,
    /// The high-water mark of the process until its end.
    pub(crate) process: u64,
    pub(crate) maps: u64,
    pub(crate) task_storage: u64,
    pub(crate) programs: u64,
    /// The largest sum of a single reading.
    pub(crate) peak: u64,
    /// The number of processes in the record, and the number of different calls of the median
    /// process.
    pub(crate) seen_processes: u64,
    pub(crate) seen_calls: u64,
}

impl Memory {
    /// Returns the memory in use while the crowd lives.
    fn alive(&self) -> u64 {
        self.process_alive + self.maps + self.task_storage + self.programs
    }
}

/// Runs a crowd under iotomy and measures iotomy's memory.
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

/// Returns `VmHWM` of a process that has not ended.
fn high_water(folder: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("{folder}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Returns the memory of the maps and programs behind the descriptors of a process, each counted
/// once.
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
            // The crowd's parent is watched as well.
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
    /// Size of an element, where `bytes` excludes elements.
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
