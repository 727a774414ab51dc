//! Timers as they are listed, events as they are moved: on a machine that is written down, and on this one.

use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

use iotomy_sys::perf_event::{Scope, Ticker, open_sampler};

use super::*;
use iotomy_needs::{Need, skip};

/// As Linux 6.18 writes it, and 6.1 below.
const LIST: &str = "\
Timer List Version: v0.10
HRTIMER_MAX_CLOCK_BASES: 8
now at 58991086759876 nsecs

cpu: 0
 clock 0:
  .offset:     0 nsecs
active timers:
 #0: <00000000c00d28dd>, perf_swevent_hrtimer, S:01
 # expires at 58991087501000-58991087501000 nsecs [in 741124 to 741124 nsecs]
 #1: <00000000c00d28de>, tick_nohz_handler, S:01
 # expires at 58991088000000-58991088000000 nsecs [in 1240124 to 1240124 nsecs]
 #2: <00000000f1b17fda>, hrtimer_wakeup, S:01
 # expires at 58991110835900-58991110885900 nsecs [in 24076024 to 24126024 nsecs]
  .next_timer     : 59413772000000
cpu: 1
active timers:
 #0: <0000000000000000>, tick_sched_timer, S:01, hrtimer_start_range_ns, swapper/1/0
 # expires at 58991088000000-58991088000000 nsecs [in 1240124 to 1240124 nsecs]
cpu: 2
active timers:
 #0: <00000000c00d28dd>, perf_swevent_hrtimer, S:01
 # expires at 58991087501000-58991087501000 nsecs [in 741124 to 741124 nsecs]
 #1: <00000000c00d28d0>, perf_swevent_hrtimer, S:01
 # expires at 58991087601000-58991087601000 nsecs [in 841124 to 841124 nsecs]
 #2: <00000000c00d28de>, tick_sched_timer, S:01
 # expires at 58991088000000-58991088000000 nsecs [in 1240124 to 1240124 nsecs]

cpu: 3
active timers:
 #0: <00000000c00d28dd>, perf_swevent_hrtimer, S:01
 # expires at 58991087501000-58991087501000 nsecs [in 741124 to 741124 nsecs]

Tick Device: mode:     1
";
const MS: i64 = 1_000_000;

#[test]
fn the_timers_of_a_cpu_are_found() {
    let found = Timers { tick: 58_991_088_000_000, event: 58_991_087_501_000 };
    assert_eq!(timers(LIST, 0), Some(found));
    assert_eq!(timers(LIST, 3), Some(found), "with the tick of another");
}

#[test]
fn a_cpu_without_an_event_or_with_that_of_another_is_left_alone() {
    assert_eq!([1, 2, 4].map(|cpu| timers(LIST, cpu)), [None; 3]);
    assert_eq!(timers("", 0), None);
    assert_eq!(timers("cpu: 0\n #0: <0>, tick_sched_timer\n # expires at soon\n", 0), None);
}

#[test]
fn only_rates_that_meet_the_tick_again_and_again_have_a_pace() {
    let pace = |hz, tick| Pace::of(hz, tick).map(|pace| (pace.period, pace.grid));
    assert_eq!(pace(1_000, 4 * MS), Some((MS, MS)));
    assert_eq!(pace(1_000, MS), Some((MS, MS)));
    assert_eq!(pace(100, MS), Some((10 * MS, MS)));
    assert_eq!(pace(5_000, 4 * MS), Some((MS / 5, MS / 5)));
    assert_eq!(pace(997, 4 * MS), None);
    assert_eq!(pace(1_000, 3_333_333), None);
    assert_eq!(
        (pace(1, MS), pace(0, MS), pace(u32::MAX, MS), pace(1_000, 0)),
        (None, None, None, None)
    );
}

#[test]
fn an_event_rests_until_it_is_in_step() {
    for (hz, tick) in [(1_000, 4 * MS), (1_000, MS), (250, MS), (10_000, 4 * MS), (50_000, 4 * MS)]
    {
        let pace = Pace::of(hz, tick).expect("they meet");
        for late in (-12 * MS..12 * MS).step_by(1_237) {
            let before = Timers { tick: 0, event: late };
            let rest = pace.rest(pace.error(before));
            assert!(rest >= SHORTEST_REST && rest < SHORTEST_REST + pace.grid, "{rest}");
            let after = Timers { tick: 7 * tick, event: late + rest };
            assert_eq!(pace.error(after), 0, "{late} and {rest}");
        }
    }
}

/// A machine of which every step is known: its clock goes on by each look at it.
struct Scripted {
    now: Cell<i64>,
    /// ns a look.
    pace: i64,
    /// By CPU.
    events: RefCell<Vec<Event>>,
    /// What a move comes out late by, in ns, time and again.
    slips: Vec<i64>,
    moves: Cell<usize>,
    /// A CPU that nobody can go to.
    closed: Option<u32>,
    at: Cell<Option<u32>>,
}

/// An event of a known machine.
struct Event {
    /// When it is due; while it rests, in how long it would be.
    due: i64,
    rests: bool,
    /// That somebody else's is at work there, too.
    has_company: bool,
}

const TICK: i64 = 4 * MS;
const HZ: u32 = 1_000;
/// Of events, in ns.
const PERIOD: i64 = MS;

impl Scripted {
    /// With events that are due so long after the tick.
    fn with(late: &[i64]) -> Self {
        let event = |late: &i64| Event { due: *late, rests: false, has_company: false };
        Self {
            now: Cell::new(1_000 * TICK + 1),
            pace: 40,
            events: RefCell::new(late.iter().map(event).collect()),
            slips: vec![0],
            moves: Cell::new(0),
            closed: None,
            at: Cell::new(None),
        }
    }

    fn lead(&self) -> usize {
        let in_step = Pace::of(HZ, TICK).expect("they meet").lead(self);
        assert!(self.events.borrow().iter().all(|event| !event.rests), "all run");
        in_step
    }

    /// Whether each event comes with the tick, or a whole number of periods from it.
    fn is_in_step(&self) -> bool {
        let far = |late: i64| (late - AIM).rem_euclid(PERIOD).min((AIM - late).rem_euclid(PERIOD));
        self.late().iter().all(|late| far(*late) <= REACH)
    }

    /// How long after the last moment with the tick, or a whole number of periods from it, events are due.
    fn late(&self) -> Vec<i64> {
        self.events.borrow().iter().map(|event| event.due.rem_euclid(PERIOD)).collect()
    }
}

impl Machine for Scripted {
    fn now(&self) -> i64 {
        self.now.set(self.now.get() + self.pace);
        self.now.get()
    }

    fn timer_list(&self) -> String {
        let now = self.now.get();
        let next = |due: i64, period: i64| now + (due - now).rem_euclid(period);
        let timer = |name: &str, due: i64| {
            format!(" #0: <0>, {name}, S:01\n # expires at {due}-{due} nsecs [in 0 to 0 nsecs]\n")
        };
        let cpu = |(at, event): (usize, &Event)| {
            let mut text = format!("cpu: {at}\n") + &timer("tick_nohz_handler", next(0, TICK));
            for _ in 0..usize::from(!event.rests) + usize::from(event.has_company) {
                text += &timer("perf_swevent_hrtimer", next(event.due, PERIOD));
            }
            text
        };
        self.events.borrow().iter().enumerate().map(cpu).collect()
    }

    fn cpus(&self) -> Vec<u32> {
        (0..self.events.borrow().len() as u32).collect()
    }

    fn go_to(&self, cpu: u32) -> bool {
        let goes = self.closed != Some(cpu);
        if goes {
            self.at.set(Some(cpu));
        }
        goes
    }

    fn set_running(&self, cpu: u32, running: bool) -> bool {
        assert_eq!(self.at.get(), Some(cpu), "from its own CPU");
        let event = &mut self.events.borrow_mut()[cpu as usize];
        assert_eq!(event.rests, running, "it rests once at a time");
        let now = self.now.get();
        if running {
            let slip = self.slips[self.moves.get() % self.slips.len()];
            self.moves.set(self.moves.get() + 1);
            event.due += now + slip;
        } else {
            event.due = (event.due - now).rem_euclid(PERIOD);
        }
        event.rests = !running;
        true
    }
}

#[test]
fn events_are_moved_until_each_comes_just_after_the_tick() {
    for late in (0..PERIOD).step_by(17_239) {
        let machine = Scripted::with(&[late, PERIOD - late, late / 2]);
        assert_eq!(machine.lead(), 3, "{late}");
        assert!(machine.is_in_step(), "{late}: {:?}", machine.late());
    }
}

#[test]
fn a_move_that_does_not_come_out_is_made_again() {
    let mut machine = Scripted::with(&[400_000, 700_000]);
    // Both the first time, and one of them the second.
    machine.slips = vec![20_000, 300_000, 10_000, 0, 0];
    assert_eq!((machine.lead(), machine.moves.get()), (2, 5));
    assert!(machine.is_in_step(), "{:?}", machine.late());
}

#[test]
fn an_event_that_is_in_step_or_not_alone_is_left_where_it_is() {
    let machine = Scripted::with(&[AIM, 500_000]);
    machine.events.borrow_mut()[1].has_company = true;
    assert_eq!((machine.lead(), machine.moves.get()), (1, 0));
    assert_eq!(machine.late(), [AIM, 500_000]);
}

#[test]
fn events_that_cannot_be_moved_run_as_they_did() {
    let mut machine = Scripted::with(&[300_000, 600_000]);
    machine.closed = Some(0);
    assert_eq!((machine.lead(), machine.late()[0]), (1, 300_000));
}

#[test]
fn where_no_move_comes_out_there_is_an_end_to_them() {
    let mut machine = Scripted::with(&[300_000]);
    machine.slips = vec![100_000];
    assert_eq!((machine.lead(), machine.moves.get()), (0, MOVES as usize));
    // Where all takes long, patience ends first.
    let mut machine = Scripted::with(&[300_000; 64]);
    machine.slips = vec![100_000];
    let began = machine.now.get();
    assert_eq!(machine.lead(), 0);
    let moves = machine.moves.get();
    assert!(moves < 64 * MOVES as usize, "{moves}");
    assert!(machine.now.get() - began < PATIENCE + 3 * PERIOD, "a move beyond it at most");
}

/// Times an event of this machine is tried to be brought in step; in a virtual machine once is enough.
const ATTEMPTS: usize = 30;
/// Only to end a test that hangs.
const HANG: Duration = Duration::from_secs(60);
/// So long others may sample the CPU.
const COMPANY: Duration = Duration::from_secs(10);

/// Lets an event of CPU 0 rest until it is out of step, and returns by how much; nothing where this machine
/// does not tell, or always has others at work on that CPU.
fn out_of_step(events: &[(u32, OwnedFd)], pace: Pace) -> Option<i64> {
    let began = Instant::now();
    while began.elapsed() < COMPANY {
        let Some(found) = timers(&timer_list(), 0) else {
            thread::yield_now();
            continue;
        };
        let error = pace.error(found);
        if error.abs() > 10 * REACH {
            return Some(error);
        }
        set_running(&events[0].1, false).expect("it was just opened");
        thread::sleep(Duration::from_nanos(pace.grid.unsigned_abs() / 2));
        set_running(&events[0].1, true).expect("it was just opened");
    }
    None
}

#[test]
fn an_event_of_this_machine_is_moved_into_step_and_still_runs() {
    let event = open_sampler(Ticker::CpuClock, Scope::Cpu(0), HZ);
    let Ok(event) = event else { return skip(Need::Root, "events of a CPU are not allowed here") };
    let Some(pace) = Pace::of(HZ, tick_ns()) else {
        return skip(Need::Machine, "the tick of this kernel does not fit 1,000 a second");
    };
    if timer_list().is_empty() {
        return skip(Need::Root, "/proc/timer_list cannot be read");
    }
    set_running(&event, true).expect("it was just opened");
    let events = [(0, event)];
    let Some(before) = out_of_step(&events, pace) else {
        return skip(Need::Machine, "others sample CPU 0, or its timers are not told");
    };
    let in_step = (0..ATTEMPTS).any(|_| fall_in(&events, HZ) == 1);
    let after = timers(&timer_list(), 0).map(|found| pace.error(found));
    let count = |event: &OwnedFd| {
        let mut bytes = [0; 8];
        rustix::io::read(event, &mut bytes).expect("events can be read");
        u64::from_ne_bytes(bytes)
    };
    let (counted, began) = (count(&events[0].1), Instant::now());
    while count(&events[0].1) == counted {
        assert!(began.elapsed() < HANG, "it has stopped");
        thread::yield_now();
    }
    match after {
        _ if in_step => {}
        // Nothing else changes where between two ticks it comes.
        Some(after) => {
            assert_ne!(after, before, "it was not moved");
            skip(Need::Machine, "moves do not come out here");
        }
        None => skip(Need::Machine, "others came to sample CPU 0"),
    }
}
