//! The viewer of the agent's watches: it answers scrapes and pushes, and follows SIGHUP.
//!
//! It outlives a watch: what one has counted is added to the sums, and the next one begins at nothing. Between two watches,
//! scrapes wait.

use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use hyper::body::Bytes;
use iotomy_host::host_name;
use iotomy_observe::{Request, TakeSnapshot, Target, Viewer, ViewerRequest, WatchStart};
use iotomy_record::{IntervalCounts, Intervals, SampledTime};
use nix::sys::signal::Signal;
use rustix::time::{ClockId, clock_gettime};

use crate::access::{Access, Door};
use crate::budget::{Budget, Load};
use crate::desk::{Answer, Desk, Form};
use crate::exposed::{OfBudget, Pushes};
use crate::exposition::Exposition;
use crate::messages::{say, say_error};
use crate::otlp::{self, Origin};
use crate::server::{self, Patience, Server};
use crate::settings::{Args, Settings};
use crate::target::{self, description, target};

/// A look is taken so often where nobody scrapes: what has ended is forgotten by the watch then.
const OFTEN: Duration = Duration::from_secs(10);

/// The same where there is a budget, which decides by what a look has.
const BY_BUDGET: Duration = Duration::from_secs(1);

/// Answers scrapes from the watch that goes on.
pub(crate) struct MetricsView {
    args: Args,
    settings: Settings,
    desk: Arc<Desk>,
    /// Until the server has it.
    listener: Option<TcpListener>,
    door: Arc<Door>,
    origin: Origin,
    exposition: Exposition,
    intervals: Intervals,
    budget: Option<Budget>,
    /// What windows had told until the last look of this watch.
    sampled: SampledTime,
    next: Option<Instant>,
    /// A SIGHUP came.
    is_asked: bool,
    /// The target of the next watch, where the settings have another one.
    pub(crate) next_target: Option<Target>,
    target: Target,
    failed: Option<String>,
}

impl MetricsView {
    pub(crate) fn new(
        args: Args,
        settings: Settings,
        target: Target,
        access: Access,
        listener: TcpListener,
        desk: Desk,
    ) -> Self {
        let exposition = Exposition::new();
        exposition.exposed().own.is_reloaded = true;
        let budget = settings.budget.map(Budget::new);
        Self {
            args,
            settings,
            desk: Arc::new(desk),
            listener: Some(listener),
            door: Arc::new(Door::new(access)),
            origin: Origin { host: iotomy_record::printable(&host_name(), true), port: 0 },
            exposition,
            intervals: Intervals::default(),
            budget,
            sampled: SampledTime::default(),
            next: None,
            is_asked: false,
            next_target: None,
            target,
            failed: None,
        }
    }

    /// The watch that is to be made.
    pub(crate) fn request(&self) -> Request {
        target::request(self.target.clone(), self.budget.as_ref().map(Budget::factor))
    }

    /// Goes on with another target.
    pub(crate) fn turn_to(&mut self, target: Target) {
        self.target = target;
    }

    /// Why the server could not begin.
    pub(crate) fn take_failure(&mut self) -> Option<String> {
        self.failed.take()
    }

    /// Adds what came since the last look.
    fn take(&mut self, look: &mut TakeSnapshot<'_>) -> Result<(), String> {
        if let Some(snapshot) = look()? {
            let counts = self.intervals.since_last(&snapshot);
            let most = self.settings.max_services as usize;
            let factor = snapshot.sampled.as_ref().map_or(1, |sampled| sampled.factor);
            self.exposition.exposed().totals.add(&counts, factor, self.settings.by, most);
            if let Some(sampled) = snapshot.sampled {
                self.take_estimates(sampled, &counts);
            }
        }
        let often = if self.budget.is_some() { BY_BUDGET } else { OFTEN };
        self.next = Instant::now().checked_add(often);
        Ok(())
    }

    /// Adds the errors of estimates, and has the budget decide by the load.
    fn take_estimates(&mut self, now: SampledTime, counts: &IntervalCounts) {
        {
            let totals = &mut self.exposition.exposed().totals;
            for (call, variance) in &now.variances {
                let before = self.sampled.variances.iter().find(|(one, _)| one == call);
                totals.add_variance(call, variance - before.map_or(0.0, |(_, before)| *before));
            }
        }
        let on_cpu =
            counts.ledger.iter().map(|row| row.user_ns.saturating_add(row.calls_on_cpu_ns));
        let load = Load {
            elapsed_ns: counts.wall_ns,
            calls: now.calls.saturating_sub(self.sampled.calls),
            switches: now.waits.saturating_sub(self.sampled.waits),
            cpu_ns: on_cpu.fold(0, u64::saturating_add),
        };
        self.sampled = now;
        let said = self.budget.as_mut().and_then(|budget| budget.step(load));
        said.into_iter().for_each(|text| say(&text));
    }

    /// The agent's own numbers as they are now, with so many scrapes more.
    fn note_own(&mut self, scrapes: usize) {
        let own = &mut self.exposition.exposed().own;
        own.scrapes += scrapes as u64;
        own.refused = server::read(&self.desk.refused);
        own.cut = server::read(&self.desk.cut);
        own.unauthorized = server::read(&self.desk.unauthorized);
        own.expiry = self.door.access().expiry();
        let pushes = &self.desk.pushes;
        own.pushes = Pushes {
            taken: server::read(&pushes.taken),
            failed: server::read(&pushes.failed),
            refused: server::read(&pushes.refused),
            rejected_points: server::read(&pushes.rejected_points),
        };
        own.cpu = cpu_time();
        own.budget = self.budget.as_ref().map(|budget| OfBudget {
            ratio: budget.share().ratio(),
            overhead: budget.overhead(),
            factor: budget.factor(),
        });
    }

    /// The metrics as they are now.
    fn answer(&mut self, form: Form) -> Answer {
        match form {
            Form::Text => match self.exposition.text() {
                Ok(text) => Ok(Bytes::from(text)),
                Err(error) => Err(format!("cannot write the metrics: {error}")),
            },
            Form::Otlp => {
                Ok(otlp::message(&self.exposition.exposed(), &self.origin, since_epoch()))
            }
        }
    }

    /// Pushes what was counted until the end of the last watch.
    pub(crate) fn push_last(&mut self) {
        let Some(endpoint) = self.settings.otlp.clone() else { return };
        self.note_own(0);
        if let Ok(message) = self.answer(Form::Otlp) {
            otlp::push_last(&endpoint, message);
        }
    }

    /// Follows the configuration as it is now.
    fn reload(&mut self) {
        let reloaded = self.reread();
        self.exposition.exposed().own.is_reloaded = reloaded.is_ok();
        match reloaded {
            Ok(()) => say("SIGHUP: the configuration was read again"),
            Err(error) => {
                let stays = match self.door.access().has_files() {
                    true => {
                        "SIGHUP: the configuration stays as it was, and so do the certificate and the token"
                    }
                    false => "SIGHUP: the configuration stays as it was",
                };
                say_error(&error.context(stays));
            }
        }
    }

    fn reread(&mut self) -> anyhow::Result<()> {
        let new = Settings::read(&self.args)?;
        let (old, fixed) = (&self.settings, "takes a restart of the agent");
        if new.listen != old.listen {
            anyhow::bail!("listen: to change {} to {} {fixed}", old.listen, new.listen);
        }
        if (&new.otlp, new.otlp_interval) != (&old.otlp, old.otlp_interval) {
            anyhow::bail!("otlp and otlp-interval: to change them {fixed}");
        }
        if new.by != old.by {
            anyhow::bail!("by: to change {} to {} {fixed}", old.by.name(), new.by.name());
        }
        // Also where the files and patterns are the same: there may be others by such names by now.
        let access = Access::read(&new)?;
        let found = target(&new)?;
        self.door.set(access);
        // Other programs count where it may be a part of the time.
        let is_other =
            is_other(&self.target, &found) || new.budget.is_some() != old.budget.is_some();
        self.next_target = is_other.then_some(found);
        self.budget = match (self.budget.take(), new.budget) {
            (Some(mut budget), Some(share)) => {
                budget.set_share(share);
                Some(budget)
            }
            (_, share) => share.map(Budget::new),
        };
        self.settings = new;
        Ok(())
    }

    fn begin_to_serve(&mut self, listener: TcpListener) -> std::io::Result<SocketAddr> {
        let address = listener.local_addr()?;
        self.origin.port = address.port();
        let every = Duration::from_secs(self.settings.otlp_interval.into());
        let pushed = self.settings.otlp.clone().map(|endpoint| (endpoint, every));
        let (desk, door) = (self.desk.clone(), self.door.clone());
        Server { listener, desk, door, patience: Patience::USUAL, pushed }.start()?;
        Ok(address)
    }
}

impl Viewer for MetricsView {
    fn begin(&mut self, outset: &WatchStart) {
        self.intervals = Intervals::default();
        self.sampled = SampledTime::default();
        if let (Some(budget), Some(price)) = (&mut self.budget, outset.price) {
            budget.begin(price);
        }
        {
            let own = &mut self.exposition.exposed().own;
            own.watches += 1;
            own.overhead_ns = outset.cost_range_ns;
        }
        for one in &outset.missing {
            let (what, why) = (&one.feature, &one.reason);
            say(&format!("{what}: the kernel refused it ({why}); not counted: {}", one.lost));
        }
        say(&format!("watching {}", description(&self.target)));
        let Some(listener) = self.listener.take() else { return };
        self.exposition.exposed().own.began = since_epoch();
        match self.begin_to_serve(listener) {
            Ok(address) => {
                let scheme = if self.door.access().tls().is_some() { "https" } else { "http" };
                say(&format!("metrics are at {scheme}://{address}{}", server::PATH));
            }
            Err(error) => self.failed = Some(format!("cannot serve metrics: {error}")),
        }
        if let Some(endpoint) = &self.settings.otlp {
            let every = self.settings.otlp_interval;
            say(&format!("metrics are pushed to {endpoint} every {every} s"));
        }
    }

    fn wakers(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.desk.as_fd()]
    }

    fn deadline(&self) -> Option<Instant> {
        if self.failed.is_some() { Some(Instant::now()) } else { self.next }
    }

    fn update(&mut self, look: Option<&mut TakeSnapshot<'_>>) -> ViewerRequest {
        let Some(look) = look else { return ViewerRequest::GoOn };
        if self.failed.is_some() {
            return ViewerRequest::End;
        }
        let waiting = self.desk.take();
        let is_due = self.next.is_none_or(|next| Instant::now() >= next);
        if is_due || !waiting.is_empty() {
            let taken = self.take(look);
            if let (Err(reason), true) = (&taken, waiting.is_empty()) {
                self.next = Instant::now().checked_add(OFTEN);
                say(&format!("cannot read the counts: {reason}"));
            }
            let scrapes = waiting.iter().filter(|(form, _)| *form == Form::Text).count();
            if taken.is_ok() && !waiting.is_empty() {
                self.note_own(scrapes);
            }
            let mut answers: [Option<Answer>; 2] = [None, None];
            for (form, one) in waiting {
                let answer = answers[form as usize].get_or_insert_with(|| match &taken {
                    Ok(()) => self.answer(form),
                    Err(reason) => Err(format!("cannot read the counts: {reason}")),
                });
                // One that has left needs none.
                let _ = one.send(answer.clone());
            }
        }
        if std::mem::take(&mut self.is_asked) {
            self.reload();
            if self.next_target.is_some() {
                return ViewerRequest::End;
            }
        }
        ViewerRequest::GoOn
    }

    fn end(&mut self, look: &mut TakeSnapshot<'_>) {
        if let Err(reason) = self.take(look) {
            say(&format!("cannot read the counts at the end of a watch: {reason}"));
        }
        self.next = None;
    }

    fn sample(&self) -> Option<u32> {
        self.budget.as_ref().map(Budget::factor)
    }

    fn end_sample(&mut self, look: &mut TakeSnapshot<'_>) -> bool {
        let taken = self.take(look);
        if let Err(reason) = &taken {
            say(&format!("cannot read the counts: {reason}"));
        }
        taken.is_ok()
    }

    fn takes_signal(&mut self, signal: i32) -> bool {
        let is_asked = signal == Signal::SIGHUP as i32;
        self.is_asked |= is_asked;
        is_asked
    }
}

/// Whether two targets are different processes.
fn is_other(a: &Target, b: &Target) -> bool {
    match (a, b) {
        (Target::Machine, Target::Machine) => false,
        (Target::Running(a), Target::Running(b)) => a.cgroups != b.cgroups,
        _ => true,
    }
}

/// Now.
fn since_epoch() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

/// Of this process, all threads.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(time.tv_sec.unsigned_abs(), nanos)
}
