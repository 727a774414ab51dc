//! A run in the form that rules use: the traffic through each file, summed over the processes.

use std::collections::{BTreeMap, HashMap};

use iotomy_record::{Call, FileKind, FileUse, LedgerRow, Process, RingOperation, Trace};

use crate::known_limits::KnownLimits;

/// One run and the time it took.
#[derive(Debug)]
pub(crate) struct Run<'a> {
    /// The command's, in a race.
    pub(crate) label: Option<&'a str>,
    /// The watched run.
    pub(crate) trace: &'a Trace,
    /// The time to hold it against: untraced, where there is one.
    pub(crate) wall_ns: f64,
    /// The bytes through each file.
    pub(crate) flows: Vec<Flow<'a>>,
    /// The rows of each program image, so that rules over all images read each row once.
    rows: HashMap<Image<'a>, Rows<'a>>,
    limits: &'a KnownLimits<'a>,
}

/// A program image as every table names it.
type Image<'a> = (u32, &'a str, u32);

/// The rows of the tables for one program image.
#[derive(Debug, Default)]
pub(crate) struct Rows<'a> {
    pub(crate) process: Option<&'a Process>,
    pub(crate) calls: Vec<&'a Call>,
    pub(crate) files: Vec<&'a FileUse>,
    /// Written to all of these.
    pub(crate) write_bytes: u64,
    pub(crate) ledger: Vec<&'a LedgerRow>,
    pub(crate) ring: Vec<&'a RingOperation>,
}

/// A file with all that went through it.
#[derive(Debug, Clone)]
pub(crate) struct Flow<'a> {
    /// The facts about the file.
    pub(crate) file: &'a FileUse,
    pub(crate) read_calls: u64,
    pub(crate) read_bytes: u64,
    pub(crate) write_calls: u64,
    pub(crate) write_bytes: u64,
    pub(crate) mapped_bytes: u64,
}

/// Operations of io_uring that read bytes from a file, pipe or socket.
pub(crate) const RING_READS: [&str; 6] =
    ["read", "readv", "read_fixed", "readv_fixed", "recv", "recvmsg"];
/// Those that write them.
pub(crate) const RING_WRITES: [&str; 8] =
    ["write", "writev", "write_fixed", "writev_fixed", "send", "sendmsg", "send_zc", "sendmsg_zc"];

/// Calls of one name, of all processes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Total {
    pub(crate) calls: u64,
    pub(crate) errors: u64,
    pub(crate) bytes: u64,
    pub(crate) ready: u64,
    pub(crate) asked: u64,
    pub(crate) wall_ns: u64,
    pub(crate) blocked_ns: u64,
    pub(crate) in_flight: u64,
}

impl Total {
    /// Those that ended, and those that did not.
    pub(crate) fn begun(&self) -> u64 {
        self.calls.saturating_add(self.in_flight)
    }
}

/// Where bytes written are gone.
pub(crate) const NULL: &str = "/dev/null";
/// Where bytes read come from nowhere.
pub(crate) const ZERO: &str = "/dev/zero";
/// Less is not worth a word.
pub(crate) const MIB: u64 = 1 << 20;

impl<'a> Run<'a> {
    pub(crate) fn new(
        label: Option<&'a str>,
        trace: &'a Trace,
        wall_ns: f64,
        limits: &'a KnownLimits<'a>,
    ) -> Self {
        Self { label, trace, wall_ns, flows: flows(&trace.files), rows: rows(trace), limits }
    }

    /// The rows of an image.
    pub(crate) fn of_image(&self, pid: u32, exec: &'a str, image: u32) -> &Rows<'a> {
        static NONE: Rows<'static> = Rows {
            process: None,
            calls: Vec::new(),
            files: Vec::new(),
            write_bytes: 0,
            ledger: Vec::new(),
            ring: Vec::new(),
        };
        self.rows.get(&(pid, exec, image)).unwrap_or(&NONE)
    }

    /// The name that users know an image by.
    pub(crate) fn name_of(&self, pid: u32, exec: &'a str, image: u32) -> &'a str {
        self.of_image(pid, exec, image).process.map_or(exec, Process::name)
    }

    /// The name of its program, whatever title it has set.
    pub(crate) fn program_of(&self, pid: u32, exec: &'a str, image: u32) -> &'a str {
        self.of_image(pid, exec, image).process.map_or(exec, Process::program)
    }

    /// A limit of the machine; a missing one is recorded, so ask last.
    pub(crate) fn limit(&self, name: &'static str) -> Option<f64> {
        self.limits.limit(name)
    }

    /// The known limits.
    pub(crate) fn known_limits(&self) -> &KnownLimits<'a> {
        self.limits
    }

    /// All calls of these names.
    pub(crate) fn total(&self, names: &[&str]) -> Total {
        total(self.trace.calls.iter().filter(|call| names.contains(&call.syscall.as_str())))
    }

    /// The bytes written to the null device.
    pub(crate) fn discarded_bytes(&self) -> u64 {
        let null = |flow: &&Flow<'_>| flow.file.kind == FileKind::Char && flow.file.path == NULL;
        self.flows.iter().filter(null).map(|flow| flow.write_bytes).sum()
    }

    /// The time of all threads; 0 where it is not known.
    pub(crate) fn thread_ns(&self) -> u64 {
        self.of_ledger(|row| row.thread_ns)
    }

    /// The time of all threads on CPUs, those of io_uring among them.
    pub(crate) fn on_cpu_ns(&self) -> u64 {
        let own = self.of_ledger(|row| row.user_ns.saturating_add(row.calls_on_cpu_ns));
        own.saturating_add(self.ring_threads_ns())
    }

    /// The time on CPUs of the threads that io_uring made.
    pub(crate) fn ring_threads_ns(&self) -> u64 {
        self.of_ledger(|row| row.worker_ns)
    }

    /// The time of all threads in run queues.
    pub(crate) fn runnable_ns(&self) -> u64 {
        self.of_ledger(|row| row.runnable_ns)
    }

    /// The unknown part of the time of all threads.
    pub(crate) fn residual_ns(&self) -> u64 {
        self.of_ledger(|row| u64::try_from(row.residual_ns).unwrap_or(0))
    }

    fn of_ledger(&self, part: impl Fn(&LedgerRow) -> u64) -> u64 {
        self.trace.ledger.iter().map(part).fold(0, u64::saturating_add)
    }

    /// The bytes that the threads fetched from storage; `None` where they were not counted.
    pub(crate) fn storage_read_bytes(&self) -> Option<u64> {
        let mut counted = self.trace.processes.iter().map(|image| image.storage_read_bytes);
        counted.try_fold(0, |sum: u64, of_image| Some(sum.saturating_add(of_image?)))
    }

    /// All requests to io_uring by these operations.
    pub(crate) fn requested(&self, operations: &[&str]) -> Total {
        requested(self.trace.ring_operations.iter(), operations)
    }
}

impl Rows<'_> {
    /// All requests to io_uring by these operations.
    pub(crate) fn requested(&self, operations: &[&str]) -> Total {
        requested(self.ring.iter().copied(), operations)
    }

    /// Of the requests to io_uring, those that `part` counts.
    pub(crate) fn requests(&self, part: impl Fn(&RingOperation) -> u64) -> u64 {
        self.ring.iter().map(|row| part(row)).fold(0, u64::saturating_add)
    }

    /// The run queue delay as a share of an image's time, which is not a measure of its requests.
    pub(crate) fn waiting_share(&self) -> f64 {
        let (waiting, all) = self.ledger.iter().fold((0.0, 0.0), |(waiting, all), row| {
            (waiting + row.runnable_ns as f64, all + row.thread_ns as f64)
        });
        if all > 0.0 { (waiting / all).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// The CPU time of the threads that io_uring made in the process.
    pub(crate) fn ring_threads_ns(&self) -> u64 {
        self.ledger.iter().map(|row| row.worker_ns).fold(0, u64::saturating_add)
    }

    /// All calls of these names.
    pub(crate) fn total(&self, names: &[&str]) -> Total {
        let calls = self.calls.iter().copied();
        total(calls.filter(|call| names.contains(&call.syscall.as_str())))
    }
}

impl Flow<'_> {
    pub(crate) fn is(&self, kind: FileKind) -> bool {
        self.file.kind == kind
    }

    /// On a file system whose files are always in memory, or are generated when read.
    pub(crate) fn is_without_device(&self) -> bool {
        let in_memory = ["tmpfs", "ramfs", "hugetlbfs"];
        let on = self.file.file_system.as_deref();
        is_made_up(self.file) || on.is_some_and(|on| in_memory.contains(&on))
    }
}

/// On a file system whose files are not stored bytes (procfs, sysfs and their kin), or on an unknown
/// one: return values and sizes are the kernel's choice there.
pub(crate) fn is_made_up(file: &FileUse) -> bool {
    let made_up = ["proc", "sysfs", "cgroup2"];
    file.file_system.as_deref().is_none_or(|on| made_up.contains(&on) || on.starts_with("0x"))
}

pub(crate) fn total<'c>(calls: impl Iterator<Item = &'c Call>) -> Total {
    calls.fold(Total::default(), |sum, call| Total {
        calls: sum.calls.saturating_add(call.calls),
        errors: sum.errors.saturating_add(call.errors),
        bytes: sum.bytes.saturating_add(call.bytes),
        ready: sum.ready.saturating_add(call.ready.unwrap_or(0)),
        asked: sum.asked.saturating_add(call.asked.unwrap_or(0)),
        blocked_ns: sum.blocked_ns.saturating_add(call.blocked_ns.unwrap_or(0)),
        wall_ns: sum.wall_ns.saturating_add(call.wall_ns),
        in_flight: sum.in_flight.saturating_add(call.in_flight),
    })
}

/// As of calls: those that ended, and the time in which they were in flight as that in which calls are blocked.
fn requested<'r>(rows: impl Iterator<Item = &'r RingOperation>, operations: &[&str]) -> Total {
    let those = rows.filter(|row| operations.contains(&row.op.as_str()));
    those.fold(Total::default(), |sum, row| Total {
        calls: sum.calls.saturating_add(row.completed),
        errors: sum.errors.saturating_add(row.errors),
        bytes: sum.bytes.saturating_add(row.bytes),
        blocked_ns: sum.blocked_ns.saturating_add(row.wall_ns),
        in_flight: sum.in_flight.saturating_add(row.in_flight),
        ..sum
    })
}

fn rows(trace: &Trace) -> HashMap<Image<'_>, Rows<'_>> {
    let mut rows: HashMap<Image<'_>, Rows<'_>> = HashMap::new();
    for one in &trace.processes {
        rows.entry((one.pid, &one.exec, one.image)).or_default().process.get_or_insert(one);
    }
    for one in &trace.calls {
        rows.entry((one.pid, &one.exec, one.image)).or_default().calls.push(one);
    }
    for one in &trace.files {
        let of_image = rows.entry((one.pid, &one.exec, one.image)).or_default();
        of_image.files.push(one);
        of_image.write_bytes = of_image.write_bytes.saturating_add(one.write_bytes);
    }
    for one in &trace.ledger {
        rows.entry((one.pid, &one.exec, one.image)).or_default().ledger.push(one);
    }
    for one in &trace.ring_operations {
        rows.entry((one.pid, &one.exec, one.image)).or_default().ring.push(one);
    }
    rows
}

fn flows(files: &[FileUse]) -> Vec<Flow<'_>> {
    let mut by_file: BTreeMap<(FileKind, &str), Flow<'_>> = BTreeMap::new();
    for file in files {
        let flow = by_file.entry((file.kind, &file.path)).or_insert(Flow {
            file,
            read_calls: 0,
            read_bytes: 0,
            write_calls: 0,
            write_bytes: 0,
            mapped_bytes: 0,
        });
        flow.read_calls = flow.read_calls.saturating_add(file.read_calls);
        flow.read_bytes = flow.read_bytes.saturating_add(file.read_bytes);
        flow.write_calls = flow.write_calls.saturating_add(file.write_calls);
        flow.write_bytes = flow.write_bytes.saturating_add(file.write_bytes);
        flow.mapped_bytes = flow.mapped_bytes.saturating_add(file.mapped_bytes);
        // One of the images that used it knows the dirty pages at the end.
        if flow.file.dirty_bytes.is_none() && file.dirty_bytes.is_some() {
            flow.file = file;
        }
    }
    by_file.into_values().collect()
}

/// A loader touches the pages of libraries when they are called.
pub(crate) fn is_library(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.ends_with(".so") || name.contains(".so.")
}

/// A rate in bytes a second as people read it: `11.2 GB/s`.
pub(crate) fn rate(bytes_per_second: f64) -> String {
    let units = ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"];
    let mut value = bytes_per_second;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{} {}", iotomy_record::numbers::three_digits(value), units[unit])
}
