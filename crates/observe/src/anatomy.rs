//! Where inside calls, and outside, the time goes: a watch by the `bpf` observer that is sampled.
//!
//! The samples come as numbers (`Raw`); here they get names, layers, and their part of the times
//! the trace has exactly. The order matters: the kernel's names are read while the watch's programs are
//! still loaded, a file's when the watch is over.
//!
//! The flow of `iotomy anatomy`:
//!
//! 1. The `bpf` observer watches as for `trace`. A *companion* (`bpf/companion.rs`) loads programs of its own
//!    beside it (`anatomy.bpf.c`), which read the trace's threads through the same map. That map is made first
//!    (`shared.bpf.c`), so that all objects load at the same time, one per thread.
//! 2. A perf event interrupts every CPU at the sampling frequency. A sample of a watched thread counts by image,
//!    call and kernel stack, or by its place in a mapped file. Mappings are remembered until they change. What a
//!    thread sleeps in is noted at its switch; how long is what the trace has booked. In threads of io_uring's, and
//!    where a ring's requests are issued, the operation of the request is noted (`issues.bpf.h`). With
//!    `--user-stacks` the user stack is noted, too, and a thread (`side_band.rs`) learns from the kernel what is
//!    mapped, forked and executed; `mappings.rs` turns addresses into places in files.
//! 3. When the watch is over, addresses get names (the kernel's from the program `name_address` while the programs
//!    are still loaded, then those of the mapped files' own tables), stacks get their layer from `layers.txt`, and
//!    layers their part of the trace's exact times.

mod chains;
pub(crate) mod kernel;
mod layers;
pub(crate) mod mappings;
mod parts;
pub(crate) mod samples;
pub(crate) mod side_band;
pub(crate) mod user;

use std::collections::HashMap;

use iotomy_record::{BlockIo, DissectedCall, Sampling, SlowestCalls, Stack, StackKind, Trace};

use self::chains::Chains;
use self::kernel::KernelSymbols;
use self::layers::{Layers, UNKNOWN};
use self::parts::Named;
pub use self::samples::SampleSettings;
use self::samples::{Callers, Location, Operation, Place, SampleGroup};
use self::side_band::MappedBefore;
use self::user::UserSymbols;
pub use crate::bpf::block::MOST_TIMELINES;
use crate::bpf::{self, block::Block, sampler::Sampler};
use crate::{ObserveError, Probe, Request, Target};

/// The result of a sampled watch, besides its [`Trace`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Dissection {
    /// How it was sampled.
    pub sampling: Sampling,
    /// A row a program image and call, in layers.
    pub calls: Vec<DissectedCall>,
    /// The samples, stack by stack.
    pub stacks: Vec<Stack>,
    /// The work of the block layer, if that could be watched.
    pub block: Option<BlockIo>,
    /// Why it could not.
    pub block_refused: Option<String>,
    /// The slowest calls, where timelines were requested.
    pub timelines: Option<SlowestCalls>,
}

fn remedy(reason: &str) -> String {
    let usual = bpf::usual_remedy(reason);
    let usual = format!(
        "anatomy needs the bpf observer: {usual}; `iotomy trace` counts and times calls without it"
    );
    bpf::remedy(reason, &usual)
}

fn unsupported(reason: String) -> ObserveError {
    ObserveError::Unsupported { observer: "bpf", remedy: remedy(&reason), reason }
}

/// Watches as the `bpf` observer does, takes samples, and notes the reasons of sleeps, the work of
/// the block layer, and further requested data.
///
/// # Errors
/// As [`crate::Observer::watch`]; also when samples, the kernel's symbols, or requested timelines are
/// unavailable. A command is not started then.
pub fn watch(
    request: &Request,
    asked: SampleSettings,
) -> Result<(Trace, Dissection), ObserveError> {
    let mapped = match &request.target {
        Target::Command(_) => MappedBefore::Nothing,
        // Of a thread, its process has the mappings.
        Target::Running(selection) if !selection.is_open_ended() => {
            MappedBefore::By(selection.resolved()?)
        }
        Target::Running(_) | Target::Machine => MappedBefore::ByAll,
    };
    let mut sampler = Sampler::new(asked, request.filter.restricts(), mapped);
    let mut block = Block::new(asked.timelines, request.filter.restricts());
    let observation = bpf::watch(request, &mut [&mut sampler, &mut block], None);
    let observation = observation.map_err(|error| match error {
        ObserveError::Unsupported { reason, .. } => unsupported(reason),
        other => other,
    })?;
    let mut dissection = dissect(sampler, &observation, request);
    match block.into_found() {
        Ok(found) => {
            dissection.block = Some(found.block);
            dissection.timelines = found.timelines;
        }
        Err(reason) => dissection.block_refused = Some(reason),
    }
    Ok((observation, dissection))
}

/// Tries whether a watch can be sampled here.
pub fn probe() -> Probe {
    // A rate at which nothing is moved to meet the tick.
    let asked = SampleSettings { hz: 997, ..SampleSettings::default() };
    let mut sampler = Sampler::new(asked, false, MappedBefore::Nothing);
    match bpf::probe_with(&mut [&mut sampler]) {
        Ok(()) => Probe::Ready,
        Err(reason) => Probe::Unsupported { remedy: remedy(&reason), reason },
    }
}

fn dissect(sampler: Sampler, observation: &Trace, request: &Request) -> Dissection {
    let Some((mut raw, symbols)) = sampler.into_raw() else {
        return Dissection::default();
    };
    raw.leave_out(|call| request.wants(call));
    let lost_stacks = raw.seen.iter().filter(|seen| matches!(seen.found, Location::Collided));
    let samples = raw.seen.iter().filter(|seen| !seen.blocked);
    let mut sampling = Sampling {
        event: raw.event.to_owned(),
        hz: raw.hz,
        samples: samples.map(|seen| seen.times).sum::<u64>() + raw.lost,
        others: raw.others,
        left_out: raw.left_out.values().map(|one| one.samples).sum(),
        lost: raw.lost,
        lost_stacks: lost_stacks.map(|seen| seen.times).sum(),
        lost_sleeps: raw.lost_sleeps,
        lost_names: raw.lost_names,
        price_ns_per_sample: raw.price_ns,
        user_stacks: None,
    };
    let mut naming = Naming::new(symbols, &raw.stacks, raw.callers.as_ref());
    let named = raw.seen.into_iter().map(|seen| naming.one(seen)).collect();
    sampling.user_stacks = naming.chains.map(|chains| chains.told);
    let (calls, stacks) =
        parts::split(&observation.calls, &observation.ledger, &raw.left_out, named);
    Dissection { sampling, calls, stacks, ..Dissection::default() }
}

/// The number of innermost functions of a sleep that belong to the switch to another task, and to
/// the program that observed it.
fn asleep_since(frames: &[String]) -> usize {
    frames.iter().position(|frame| frame == "__schedule").unwrap_or(0)
}

/// Whether a thread that submits requests issues the one it has submitted last: one it goes on with
/// later is issued elsewhere. The innermost function comes first.
fn issues_submitted(frames: &[String]) -> bool {
    let mut outward = frames.iter().skip_while(|frame| *frame != "io_issue_sqe");
    outward.any(|frame| frame == "io_submit_sqes")
}

/// Numbers to names.
struct Naming<'a> {
    kernel: KernelSymbols,
    user: UserSymbols,
    layers: Layers,
    stacks: &'a HashMap<i32, Vec<u64>>,
    chains: Option<Chains<'a>>,
}

impl<'a> Naming<'a> {
    fn new(
        kernel: KernelSymbols,
        stacks: &'a HashMap<i32, Vec<u64>>,
        callers: Option<&'a Callers>,
    ) -> Self {
        let chains = callers.map(Chains::new);
        Self { kernel, user: UserSymbols::default(), layers: Layers::new(), stacks, chains }
    }

    fn one(&mut self, seen: SampleGroup) -> Named {
        let (layer, mut frames) = match &seen.found {
            Location::Kernel(id) => {
                let mut frames = self.kernel_frames(*id);
                if seen.blocked {
                    frames.drain(..asleep_since(&frames));
                }
                let names = || frames.iter().map(String::as_str);
                let layer = if seen.blocked {
                    self.layers.asleep(names())
                } else {
                    self.layers.layer_of(names())
                };
                (layer.to_owned(), frames)
            }
            Location::User(place) => self.user_frames(place),
            Location::Collided | Location::Nothing => (UNKNOWN.to_owned(), Vec::new()),
        };
        let reason =
            seen.blocked.then(|| self.layers.wait(frames.iter().map(String::as_str)).to_owned());
        let found = match &seen.found {
            Location::User(_) => frames.first().cloned(),
            _ => None,
        };
        let user = match &mut self.chains {
            Some(chains) => chains.functions(&seen, found, &mut self.user),
            None => Vec::new(),
        };
        let operation = match seen.operation {
            Operation::Certain(name) => Some(name),
            Operation::IfIssued(name) if issues_submitted(&frames) => Some(name),
            Operation::IfIssued(_) | Operation::Nothing => None,
        };
        frames.reverse();
        let stack = Stack {
            pid: seen.pid,
            exec: seen.exec,
            image: seen.image,
            syscall: operation.or_else(|| seen.call.clone()),
            kind: if seen.blocked { StackKind::Blocked } else { StackKind::OnCpu },
            layer,
            reason,
            samples: seen.times,
            ns: seen.ns,
            user,
            frames,
        };
        Named { stack, call: seen.call }
    }

    /// The innermost first.
    fn kernel_frames(&self, id: i32) -> Vec<String> {
        let addresses = self.stacks.get(&id).map(Vec::as_slice).unwrap_or_default();
        let name = |(depth, address): (usize, &u64)| {
            let inside = kernel::inside(depth, *address);
            self.kernel.name(inside).map_or_else(|| format!("{address:#x}"), str::to_owned)
        };
        addresses.iter().enumerate().map(name).collect()
    }

    fn user_frames(&mut self, place: &Place) -> (String, Vec<String>) {
        match place {
            Place::Vdso => ("vDSO".to_owned(), vec!["[vdso]".to_owned()]),
            Place::Memory => ("generated code".to_owned(), vec!["[memory]".to_owned()]),
            Place::File { path: None, .. } => (UNKNOWN.to_owned(), Vec::new()),
            Place::File { path: Some(path), inode, offset } => {
                let file = crate::naming::basename(path).to_owned();
                let function = self.user.name(path, *inode, *offset);
                // The innermost first, as in the kernel.
                let frames = function.into_iter().chain([file]).collect();
                (user::layer(path), frames)
            }
        }
    }
}
