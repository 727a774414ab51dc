//! Timer events of a CPU in step with the kernel's tick, so that one interrupt serves both.
//!
//! A busy CPU is interrupted by the tick anyway, and the kernel runs every timer that is due then. An
//! event whose period divides the tick's, or is so many ticks, meets it again and again once it has met
//! it. Both have their next moment in `/proc/timer_list`; an event that rests goes on later by as
//! long as it rested, and that is how it is moved.
//!
//! The invariant: whatever cannot be read or does not come out, each event runs, as it did before.

use std::fs;
use std::os::fd::OwnedFd;
use std::thread;

use iotomy_sys::perf_event::set_running;
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, Timespec, clock_getres, clock_gettime};

/// So long after the tick an event is wanted, in ns.
const AIM: i64 = 1_000;
/// So far from there it may be, in ns: before the tick's interrupt is over, and not long before it comes.
const REACH: i64 = 4_000;
/// Most times each event is moved; in a virtual machine about every second move comes out.
const MOVES: u32 = 8;
/// None is moved later than this, in ns: where CPUs are busy or many, each move takes its time.
const PATIENCE: i64 = 100_000_000;
/// No event rests for less, in ns: more than its switch takes.
const SHORTEST_REST: i64 = 30_000;
/// Longest period that is worth it, in ns: events more seldom cost next to nothing.
const LONGEST_PERIOD: i64 = 10_000_000;

/// Moves events, each with its CPU, that interrupt `hz` times a second until they are in step with the tick; returns how
/// many are. It takes a period or two for each move.
#[must_use]
pub fn fall_in(events: &[(u32, OwnedFd)], hz: u32) -> usize {
    let Some(pace) = Pace::of(hz, tick_ns()) else { return 0 };
    // A thread of its own, since it goes from CPU to CPU.
    thread::scope(|scope| {
        let led = thread::Builder::new().spawn_scoped(scope, || pace.lead(&Here { events }));
        led.ok().and_then(|led| led.join().ok()).unwrap_or(0)
    })
}

/// How two clocks meet, in ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pace {
    /// From an event to the next.
    period: i64,
    /// From a moment at which it is in step to the next such moment.
    grid: i64,
}

impl Pace {
    /// None where the two do not meet again and again.
    fn of(hz: u32, tick: i64) -> Option<Self> {
        // As the kernel makes a period of a rate.
        let period = 1_000_000_000_i64.checked_div(i64::from(hz))?;
        let meets = period > 0 && tick > 0 && (period % tick == 0 || tick % period == 0);
        (meets && period <= LONGEST_PERIOD).then(|| Self { period, grid: period.min(tick) })
    }

    /// How far an event is from where it is wanted.
    fn error(self, timers: Timers) -> i64 {
        let late = (timers.event - timers.tick - AIM).rem_euclid(self.grid);
        if late > self.grid / 2 { late - self.grid } else { late }
    }

    /// How long it must rest for that.
    fn rest(self, error: i64) -> i64 {
        let rest = (-error).rem_euclid(self.grid);
        let short = (SHORTEST_REST - rest).max(0);
        rest + (short + self.grid - 1) / self.grid * self.grid
    }

    /// Brings all events in step, or as many as will be; returns how many are.
    fn lead(self, on: &impl Machine) -> usize {
        let end = on.now() + PATIENCE;
        for _ in 0..MOVES {
            let list = on.timer_list();
            let astray = |cpu: &u32| {
                timers(&list, *cpu).is_some_and(|timers| self.error(timers).abs() > REACH)
            };
            let astray: Vec<u32> = on.cpus().into_iter().filter(astray).collect();
            if astray.is_empty() || on.now() > end {
                break;
            }
            for cpu in astray {
                if on.now() > end {
                    break;
                }
                if let Some(timers) = timers(&list, cpu) {
                    self.shift(on, cpu, timers);
                }
            }
        }
        let list = on.timer_list();
        let found = on.cpus().into_iter().filter_map(|cpu| timers(&list, cpu));
        found.filter(|timers| self.error(*timers).abs() <= REACH).count()
    }

    /// Has an event rest for a while, on its own CPU: from another the kernel would have to interrupt
    /// that one, which takes its time.
    fn shift(self, on: &impl Machine, cpu: u32, timers: Timers) {
        if !on.go_to(cpu) {
            return;
        }
        // Neither just before it is due nor while it is handled.
        while !(self.period / 8..self.period / 2)
            .contains(&(on.now() - timers.event).rem_euclid(self.period))
        {}
        let until = on.now() + self.rest(self.error(timers));
        if !on.set_running(cpu, false) {
            return;
        }
        while on.now() < until {}
        // What could be stopped a moment ago can be started.
        let _ = on.set_running(cpu, true);
    }
}

/// What moving events takes: a clock, the kernel's list of timers, and an event on each of some CPUs.
trait Machine {
    /// In ns of the monotonic clock.
    fn now(&self) -> i64;
    /// As `/proc/timer_list` has it.
    fn timer_list(&self) -> String;
    /// Those that have an event.
    fn cpus(&self) -> Vec<u32>;
    /// From here on this thread runs on that CPU; false where it cannot.
    fn go_to(&self, cpu: u32) -> bool;
    /// Has the event of a CPU rest, or go on; false where it does not.
    fn set_running(&self, cpu: u32, running: bool) -> bool;
}

/// This machine, with its events.
struct Here<'a> {
    events: &'a [(u32, OwnedFd)],
}

impl Machine for Here<'_> {
    fn now(&self) -> i64 {
        ns(clock_gettime(ClockId::Monotonic))
    }

    fn timer_list(&self) -> String {
        timer_list()
    }

    fn cpus(&self) -> Vec<u32> {
        self.events.iter().map(|(cpu, _)| *cpu).collect()
    }

    fn go_to(&self, cpu: u32) -> bool {
        let mut only = CpuSet::new();
        let Some(at) = usize::try_from(cpu).ok().filter(|at| *at < CpuSet::MAX_CPU) else {
            return false;
        };
        only.set(at);
        sched_setaffinity(None, &only).is_ok()
    }

    fn set_running(&self, cpu: u32, running: bool) -> bool {
        let event = self.events.iter().find(|(its, _)| *its == cpu);
        event.is_some_and(|(_, event)| set_running(event, running).is_ok())
    }
}

/// When two timers of a CPU are due next, or were lately, in ns of the monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Timers {
    tick: i64,
    event: i64,
}

/// Those of a CPU; none unless it has exactly one event, which then is ours. An idle CPU has no tick;
/// when it comes back it is on the grid of the others.
fn timers(list: &str, cpu: u32) -> Option<Timers> {
    let (mut of, mut name) = (None, "");
    let (mut tick, mut anyones, mut event) = (None, None, None);
    for line in list.lines() {
        if let Some(next) = cpu_of(line) {
            of = Some(next);
        } else if line.starts_with(" #") && !line.starts_with(" # ") {
            name = line.split(", ").nth(1).unwrap_or("");
        } else if let Some(rest) = line.trim_start().strip_prefix("# expires at ") {
            let due = rest.split('-').next()?.parse().ok();
            match name {
                // Its name since Linux 6.9, and before.
                "tick_nohz_handler" | "tick_sched_timer" if of == Some(cpu) => tick = due,
                "tick_nohz_handler" | "tick_sched_timer" => anyones = due,
                "perf_swevent_hrtimer" if of == Some(cpu) && event.is_some() => return None,
                "perf_swevent_hrtimer" if of == Some(cpu) => event = due,
                _ => {}
            }
        }
    }
    Some(Timers { tick: tick.or(anyones)?, event: event? })
}

/// The CPU whose timers are listed below a line.
fn cpu_of(line: &str) -> Option<u32> {
    line.strip_prefix("cpu: ")?.trim().parse().ok()
}

/// Root's alone; empty for others.
fn timer_list() -> String {
    fs::read_to_string("/proc/timer_list").unwrap_or_default()
}

/// The period of the tick: the coarse clock goes with it.
fn tick_ns() -> i64 {
    ns(clock_getres(ClockId::MonotonicCoarse))
}

fn ns(time: Timespec) -> i64 {
    time.tv_sec.saturating_mul(1_000_000_000).saturating_add(time.tv_nsec)
}

#[cfg(test)]
mod tests;
