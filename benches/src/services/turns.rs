//! The runs: blocks in which every observer watches every server once, in random order.

use std::collections::BTreeMap;
use std::fs::File;
use std::process::{Child, Stdio};

use anyhow::{Context, Result, bail};

use crate::child::{Interrupted, Signals, guarded};
use crate::floor::Floor;
use crate::order::Order;
use crate::run::progress;
use crate::scratch::Scratch;
use crate::services::cpu_time::{Clocks, Spent, children};
use crate::services::service::{Running, Service};
use crate::services::watcher::Watcher;

/// Failures after which an observer no longer watches a server.
const PATIENCE: u32 = 2;

/// Every request has an answer. A count can end a little before the last one.
const LEAST_SEEN: f64 = 0.95;

/// The name of a server.
pub(crate) type ServiceName = &'static str;

/// One run; CPU times are in ns per request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sample {
    pub(crate) server: f64,
    /// That of the server, the load generator and the observer.
    pub(crate) all: f64,
    pub(crate) machine: f64,
    /// Requests per second.
    pub(crate) rate: f64,
    /// The observer's count of the calls by which the server answers, per request.
    pub(crate) seen: Option<f64>,
}

/// All measurements: a sample for each block, or none where the observer had no turn or failed.
#[derive(Debug, Default)]
pub(crate) struct Measured {
    pub(crate) samples: BTreeMap<(ServiceName, Watcher), Vec<Option<Sample>>>,
    /// The reason why a server is not measured, or not under an observer.
    pub(crate) skipped: BTreeMap<(ServiceName, Option<Watcher>), String>,
    /// The runs that failed, with the reason of the last one.
    pub(crate) failed: BTreeMap<(ServiceName, Watcher), (u32, String)>,
}

/// The servers and the observers.
pub(crate) struct Turns<'a> {
    signals: &'a Signals,
    iotomy: String,
    folder: &'a Scratch,
    running: Vec<(&'static Service, Box<dyn Running>)>,
    watchers: Vec<Watcher>,
    floors: BTreeMap<Watcher, Floor>,
    other: Other,
    failures: BTreeMap<(ServiceName, Watcher), u32>,
    measured: Measured,
}

/// A process that waits until its standard input closes.
struct Other(Child);

impl Other {
    fn start() -> Result<Self> {
        let null =
            File::options().write(true).open("/dev/null").context("cannot open /dev/null")?;
        let mut command = guarded(&["cat".to_owned()], null)?;
        Ok(Self(command.stdin(Stdio::piped()).spawn().context("cannot start cat")?))
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl<'a> Turns<'a> {
    /// Starts the servers, and finds out which observers can watch.
    pub(crate) fn prepare(
        signals: &'a Signals,
        iotomy: &str,
        folder: &'a Scratch,
        services: &[&'static Service],
        watchers: &[Watcher],
    ) -> Result<Self> {
        let mut measured = Measured::default();
        let mut running: Vec<(&'static Service, Box<dyn Running>)> = Vec::new();
        for service in services {
            match (service.start)(signals, folder.path()) {
                Ok(server) => running.push((*service, server)),
                Err(error) if error.is::<Interrupted>() => return Err(error),
                Err(error) => {
                    measured.skipped.insert((service.name, None), format!("{error:#}"));
                }
            }
        }
        let mut floors = BTreeMap::new();
        for watcher in watchers {
            let mut reason = watcher.version().and_then(Result::err);
            match watcher.floor() {
                Some(Ok(floor)) => _ = floors.insert(*watcher, floor),
                Some(Err(error)) => reason = Some(format!("{error:#}")),
                None => {}
            }
            for (service, _) in running.iter().filter(|_| reason.is_some()) {
                let skipped = (service.name, Some(*watcher));
                measured.skipped.insert(skipped, reason.clone().unwrap_or_default());
            }
        }
        let mut turns = Self {
            signals,
            iotomy: iotomy.to_owned(),
            folder,
            running,
            watchers: watchers.to_vec(),
            floors,
            other: Other::start()?,
            failures: BTreeMap::new(),
            measured,
        };
        // The first run warms up.
        for at in 0..turns.running.len() {
            turns.run(at, Watcher::Bare)?;
        }
        Ok(turns)
    }

    /// Makes one block of runs.
    pub(crate) fn block(&mut self, order: &mut Order, block: u32, blocks: u32) -> Result<()> {
        let mut servers: Vec<usize> = (0..self.running.len()).collect();
        order.shuffle(&mut servers);
        for at in servers {
            let service = self.running[at].0.name;
            let mut watchers = self.watchers.clone();
            order.shuffle(&mut watchers);
            for watcher in watchers {
                if self.measured.skipped.contains_key(&(service, Some(watcher))) {
                    continue;
                }
                let about = format!("block {} of {blocks}: ", block + 1);
                progress(&format!("{about}{service}, {}", watcher.name()));
                let is_out = watcher.is_seldom() && block % 2 == 1;
                let sample = if is_out { None } else { self.sample(at, watcher)? };
                self.measured.samples.entry((service, watcher)).or_default().push(sample);
            }
        }
        Ok(())
    }

    /// Ends the servers and returns the measurements.
    pub(crate) fn end(self) -> Measured {
        self.measured
    }

    fn sample(&mut self, at: usize, watcher: Watcher) -> Result<Option<Sample>> {
        let service = self.running[at].0.name;
        let run = self.run(at, watcher);
        self.signals.check()?;
        match run {
            Ok(sample) => {
                self.failures.remove(&(service, watcher));
                Ok(Some(sample))
            }
            Err(error) if error.is::<Interrupted>() || watcher == Watcher::Bare => {
                Err(error.context(format!("{service}, {}", watcher.name())))
            }
            Err(error) => {
                let failures = self.failures.entry((service, watcher)).or_default();
                *failures += 1;
                if *failures >= PATIENCE {
                    let reason = format!("failed: {error:#}");
                    self.measured.skipped.insert((service, Some(watcher)), reason);
                }
                let failed = self.measured.failed.entry((service, watcher)).or_default();
                *failed = (failed.0 + 1, format!("{error:#}"));
                Ok(None)
            }
        }
    }

    fn run(&mut self, at: usize, watcher: Watcher) -> Result<Sample> {
        let ((service, server), folder) = (&self.running[at], self.folder.path());
        let watched = if watcher.watches_other() { self.other.0.id() } else { server.pid() };
        let floor = self.floors.get_mut(&watcher).map(Floor::attach).transpose()?;
        let attached = watcher.attach(self.signals, &self.iotomy, service, watched, folder)?;
        let observer = attached.as_ref().map(crate::services::watcher::Attached::pid);
        let workers = children(server.pid());
        let before = Clocks::read(server.pid(), observer)?;
        let served = server.load(self.signals, folder)?;
        // Backends end by themselves when their client has gone.
        let has_settled = || children(server.pid()).iter().all(|child| workers.contains(child));
        let settled = self.signals.until(has_settled)?;
        let after = Clocks::read(server.pid(), observer)?;
        if let Some(attached) = attached {
            attached.end(self.signals)?;
        }
        drop(floor);
        if !settled {
            bail!("its processes did not end");
        }
        let is_seen = observer.is_some() && !watcher.watches_other();
        let seen = is_seen.then(|| watcher.seen(service, folder)).transpose();
        let seen = seen.map_err(anyhow::Error::msg)?.map(|calls| calls as f64 / served.requests);
        // An observer that does not count would win. perf does not follow the backends of a postmaster.
        if let Some(seen) = seen.filter(|seen| *seen < LEAST_SEEN) {
            bail!("it saw {seen:.2} answers a request");
        }
        let seen = seen.filter(|_| watcher.counts_answers());
        let Spent { server, all, machine } = after.since(&before);
        let [server, all, machine] = [server, all, machine].map(|ns| ns / served.requests);
        Ok(Sample { server, all, machine, rate: served.per_second, seen })
    }
}
