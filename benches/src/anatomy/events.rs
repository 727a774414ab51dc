//! Perf events that interrupt every CPU: those of a running iotomy, and the bench's own, which measure the machine's
//! overhead of an interrupt. All of them can be switched on and off.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use iotomy_record::{Anatomy, store};
use iotomy_sys::perf_event::{Scope, Ticker, open_sampler, set_running};
use libbpf_rs::{Link, Object};
use rustix::process::{
    Pid, PidfdFlags, PidfdGetfdFlags, Signal, kill_process, pidfd_getfd, pidfd_open,
};

use crate::child::guard_of;
use crate::programs::{self, Aligned, attach_to};

/// The longest time a watch may take to start or to end.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);
/// An event whose counter exceeds this many ns or cycles measures time; other events count
/// occurrences.
const AT_WORK: u64 = 1_000_000;
/// More CPUs than any machine has.
const CPUS: u32 = 8_192;

static SAMPLE: &Aligned<[u8]> =
    &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/sample.bpf.o")));

/// Events that are switched on and off together.
pub(crate) struct Events {
    /// One event for each CPU.
    events: Vec<OwnedFd>,
    /// The program attached to each event, if any.
    _program: Option<(Object, Vec<Link>)>,
}

impl Events {
    /// Opens the bench's own events on this many CPUs, disabled and without a program.
    pub(crate) fn bare(cpus: usize, rate: u32) -> Result<Self> {
        let ticker = match open_sampler(Ticker::Cycles, Scope::Cpu(0), rate) {
            Ok(_) => Ticker::Cycles,
            Err(_) => Ticker::CpuClock,
        };
        let open = |cpu| open_sampler(ticker, Scope::Cpu(cpu), rate).ok();
        let events: Vec<OwnedFd> = (0..CPUS).filter_map(open).take(cpus).collect();
        if events.len() < cpus {
            bail!("cannot open a perf event on each CPU");
        }
        Ok(Self { events, _program: None })
    }

    /// Opens the same events with a program that does nothing.
    pub(crate) fn empty(cpus: usize, rate: u32) -> Result<Self> {
        let bare = Self::bare(cpus, rate)?;
        let object = programs::load("sample", SAMPLE)?;
        let links: Result<Vec<Link>> = {
            let mut programs = object.progs_mut();
            let program = programs.next().context("the object has no program")?;
            bare.events.iter().map(|event| attach_to(&program, event)).collect()
        };
        let events = Self { events: bare.events, _program: Some((object, links?)) };
        events.switch(false)?;
        Ok(events)
    }

    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    pub(crate) fn switch(&self, on: bool) -> Result<()> {
        let switched = self.events.iter().try_for_each(|event| set_running(event, on));
        switched.context("cannot switch a perf event")
    }
}

/// A running `iotomy anatomy` whose events can be switched.
pub(crate) struct Watch<'a> {
    iotomy: Child,
    record: &'a Path,
    pub(crate) events: Events,
}

impl<'a> Watch<'a> {
    /// Starts to watch a process at this rate and with further options; returns when samples are being taken.
    pub(crate) fn begin(
        iotomy: &Path,
        pid: u32,
        (rate, options): (u32, &[&str]),
        record: &'a Path,
    ) -> Result<Self> {
        let mut watch = Command::new(iotomy);
        watch.args(["anatomy", "-q", "--rate", &rate.to_string(), "-p", &pid.to_string()]);
        watch.args(options).arg("--json").arg(record);
        let iotomy =
            guard_of(&watch)?.stdin(Stdio::null()).spawn().context("cannot start iotomy")?;
        let mut watch = Self { iotomy, record, events: Events { events: vec![], _program: None } };
        let until = Instant::now() + PATIENCE;
        while watch.events.len() == 0 {
            if Instant::now() > until || watch.iotomy.try_wait()?.is_some() {
                bail!("iotomy did not begin to take samples; `iotomy doctor` says what is missing");
            }
            sleep(PAUSE);
            if !at_work(&watch.iotomy)?.is_empty() {
                // By now the events of all CPUs are open, and the event of the calibration is
                // closed.
                sleep(PAUSE);
                watch.events.events = at_work(&watch.iotomy)?;
            }
        }
        Ok(watch)
    }

    /// Ends the watch and loads its record.
    pub(crate) fn end(mut self) -> Result<Anatomy> {
        self.events.switch(true)?;
        // SIGINT may be ignored here, as in a command that a shell starts with `&`.
        kill_process(Pid::from_child(&self.iotomy), Signal::TERM).context("cannot end iotomy")?;
        let until = Instant::now() + PATIENCE;
        while self.iotomy.try_wait().context("cannot wait for iotomy")?.is_none() {
            if Instant::now() > until {
                bail!("iotomy did not end");
            }
            sleep(PAUSE);
        }
        Ok(store::load_anatomy(self.record)?)
    }
}

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        let _ = self.iotomy.kill();
        let _ = self.iotomy.wait();
    }
}

/// Returns the events with which a process currently takes samples, in the order it opened them: by
/// CPU.
fn at_work(process: &Child) -> Result<Vec<OwnedFd>> {
    let pidfd = pidfd_open(Pid::from_child(process), PidfdFlags::empty());
    let pidfd = pidfd.context("cannot open a pidfd")?;
    let mut events = Vec::new();
    let folder = format!("/proc/{}/fd", process.id());
    for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {folder}"))? {
        let path = entry?.path();
        let is_event =
            fs::read_link(&path).is_ok_and(|to| to.as_os_str() == "anon_inode:[perf_event]");
        let number = path.file_name().and_then(|name| name.to_str()?.parse().ok());
        let Some(number) = number.filter(|_| is_event) else { continue };
        // The descriptor may be closed by now.
        let Ok(event) = pidfd_getfd(&pidfd, number, PidfdGetfdFlags::empty()) else { continue };
        let mut count = [0; 8];
        let is_read = rustix::io::read(&event, &mut count).is_ok_and(|bytes| bytes == count.len());
        if is_read && u64::from_ne_bytes(count) >= AT_WORK {
            events.push((number, event));
        }
    }
    events.sort_by_key(|(number, _)| *number);
    Ok(events.into_iter().map(|(_, event)| event).collect())
}
