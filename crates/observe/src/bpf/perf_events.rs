//! The events that interrupt the CPUs, and the programs that these run.

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, OwnedFd};
use std::thread;

use iotomy_sys::errno;
use iotomy_sys::perf_event::{Scope, Ticker, open_sampler};
use libbpf_rs::{Link, PerfEventOpts, ProgramMut};

use super::refusal::refusal;
use super::refuse::Refusing;

/// Lets an event run a program as long as the link is there, which is told the cookie.
pub(super) fn attach_event(
    program: &ProgramMut<'_>,
    event: OwnedFd,
    cookie: u64,
) -> Result<Link, String> {
    // The link closes the descriptor.
    let event = ManuallyDrop::new(event);
    let options = PerfEventOpts { cookie, ..PerfEventOpts::default() };
    program.attach_perf_event_with_opts(event.as_raw_fd(), options).map_err(|error| {
        drop(ManuallyDrop::into_inner(event));
        refusal(&format!("attach {:?}", program.name()), &error)
    })
}

/// Links of events, which are detached together: the kernel waits for grace periods with each of them, some 30 ms on
/// Linux 6.12 and later, and hardly longer for many at once.
#[derive(Default)]
pub(super) struct EventLinks(Vec<Link>);

/// Threads that detach a link each.
const AT_ONCE: usize = 64;

impl EventLinks {
    pub(super) fn push(&mut self, link: Link) {
        self.0.push(link);
    }

    pub(super) fn pop(&mut self) {
        self.0.pop();
    }

    pub(super) fn clear(&mut self) {
        while !self.0.is_empty() {
            let some = self.0.split_off(self.0.len().saturating_sub(AT_ONCE));
            thread::scope(|scope| {
                for link in some {
                    let detach = thread::Builder::new().name("detach".to_owned());
                    // Without a thread it is dropped here.
                    let _ = detach.spawn_scoped(scope, move || drop(link));
                }
            });
        }
    }
}

impl Drop for EventLinks {
    fn drop(&mut self) {
        self.clear();
    }
}

/// An event for each CPU, of the processor's cycles where it can count them.
pub(super) fn open_events(hz: u32) -> Result<(Ticker, Vec<OwnedFd>), NoEvents> {
    let open = |ticker| -> io::Result<Vec<OwnedFd>> {
        if let Some(number) = Refusing::from_environment().operation("event", "perf") {
            return Err(io::Error::from_raw_os_error(number.cast_signed()));
        }
        online().into_iter().map(|cpu| open_sampler(ticker, Scope::Cpu(cpu), hz)).collect()
    };
    if let Ok(events) = open(Ticker::Cycles) {
        return Ok((Ticker::Cycles, events));
    }
    let events = open(Ticker::CpuClock).map_err(|error| {
        let most = iotomy_host::kernel_text("/proc/sys/kernel/perf_event_max_sample_rate");
        let most = most.ok().and_then(|text| text.trim().parse::<u32>().ok());
        match most.filter(|most| *most < hz) {
            Some(most) => NoEvents::TooOften(format!(
                "cannot sample {hz} times a second: the kernel allows {most} \
                 (kernel.perf_event_max_sample_rate)"
            )),
            None => NoEvents::Refused(format!(
                "perf_event_open on each CPU: {}",
                errno::message(&error)
            )),
        }
    })?;
    Ok((Ticker::CpuClock, events))
}

/// Why nothing interrupts the CPUs.
pub(super) enum NoEvents {
    /// The user asked for more samples than the kernel allows.
    TooOften(String),
    /// The kernel refuses any.
    Refused(String),
}

/// The CPUs that run, as `0-3,6` has them.
pub(super) fn online() -> Vec<u32> {
    let text = iotomy_host::kernel_text("/sys/devices/system/cpu/online").unwrap_or_default();
    cpus(text.trim()).unwrap_or_else(|| vec![0])
}

fn cpus(list: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?);
    }
    Some(cpus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read() {
        assert_eq!(cpus("0-2,6"), Some(vec![0, 1, 2, 6]));
        assert_eq!(cpus("0"), Some(vec![0]));
        assert_eq!(cpus(""), None);
    }
}
