//! The probes of this machine: system calls, by the names that programs have for them, processes and timers.

use std::collections::BTreeMap;
use std::time::Duration;

use iotomy_dtrace::form::Form;
use iotomy_dtrace::{Probe, ProbePattern, Span, nearest};
use iotomy_sys::syscalls::{self, Abi};

use super::points::{POINTS, Point};
use crate::naming::choice_name;

/// Numbers of a table of calls; those of the 32-bit kind stand behind it.
const NUMBERS: u32 = 512;

/// What Solaris calls a call that Linux has under another name: Linux's, and Solaris's.
const ALIASES: [(&str, &str); 20] = [
    ("mmap", "mmap64"),
    ("execve", "exece"),
    ("exit_group", "rexit"),
    ("exit", "lwp_exit"),
    ("clone", "fork1"),
    ("clone", "forksys"),
    ("stat", "xstat"),
    ("stat", "stat64"),
    ("lstat", "lxstat"),
    ("lstat", "lstat64"),
    ("fstat", "fxstat"),
    ("fstat", "fstat64"),
    ("newfstatat", "fstatat"),
    ("newfstatat", "fstatat64"),
    ("open", "open64"),
    ("openat", "openat64"),
    ("creat", "creat64"),
    ("lseek", "llseek"),
    ("pread64", "pread"),
    ("pwrite64", "pwrite"),
];

/// The kernel's timers of a CPU come no sooner.
const SHORTEST_PROFILE: Duration = Duration::from_micros(10);

/// What fires, and by which other names.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) probe: Probe,
    pub(super) aliases: Vec<Probe>,
}

impl Known {
    pub(super) fn plain(probe: Probe) -> Self {
        Self { probe, aliases: Vec::new() }
    }

    /// Whether a clause is for it. Other names are for patterns that name them as they are.
    pub(super) fn is_of(&self, form: &Form, clause: usize) -> bool {
        form.clauses[clause].probes.iter().any(|pattern| self.is_named_by(pattern))
    }

    /// Whether a description is of it.
    fn is_named_by(&self, pattern: &ProbePattern) -> bool {
        let by_alias = |one: &Probe| pattern.function() == one.function && pattern.matches(one);
        pattern.matches(&self.probe) || self.aliases.iter().any(by_alias)
    }
}

/// The probes of this machine that a program has clauses for.
#[derive(Debug, Default)]
pub(super) struct Machine {
    pub(super) probes: Vec<Known>,
    /// How many there are, those not wanted included.
    pub(super) known: u32,
    /// By the number of a call: the probe of its entry, and of its return in the upper half, as
    /// places in `probes` and one.
    pub(super) calls: Vec<u32>,
    /// By the number of a point, the place of its probe in `probes` and one; 0: it has none.
    pub(super) points: Vec<u32>,
    /// Timers that user space has, by their places in `probes`.
    pub(super) ticks: Vec<(usize, Duration)>,
    /// Timers of each CPU.
    pub(super) profiles: Vec<(usize, Duration)>,
}

/// The probes of this machine that a program has clauses for, or all but the timers.
pub fn probes(form: Option<&Form>) -> Vec<Probe> {
    let language = ["BEGIN", "END", "ERROR"].map(Probe::of_language);
    let is_named = |known: &Known| {
        form.is_none_or(|form| (0..form.clauses.len()).any(|clause| known.is_of(form, clause)))
    };
    let language = language.into_iter().map(Known::plain).filter(is_named);
    let mut machine = Machine::default();
    let none = Form::default();
    machine.look_up(form.unwrap_or(&none), &is_named);
    language.chain(machine.probes).map(|known| known.probe).collect()
}

impl Machine {
    /// Looks up what a program's clauses are for.
    ///
    /// # Errors
    /// A description that no probe matches.
    pub(super) fn of(form: &Form) -> Result<Self, Unmatched> {
        let mut machine = Self::default();
        machine.look_up(form, &|known| {
            (0..form.clauses.len()).any(|clause| known.is_of(form, clause))
        });
        machine.assert_all_match(form)?;
        Ok(machine)
    }

    fn look_up(&mut self, form: &Form, is_named: &dyn Fn(&Known) -> bool) {
        self.calls = vec![0; 2 * NUMBERS as usize];
        let mut known: BTreeMap<(String, bool), u32> = BTreeMap::new();
        for at in 0..2 * NUMBERS {
            let (abi, number) = match at {
                0..NUMBERS => (Abi::X86_64, at),
                _ => (Abi::I386, at - NUMBERS),
            };
            let function = choice_name(&syscalls::name(abi, number)).to_owned();
            for (is_return, name) in [(false, "entry"), (true, "return")] {
                let number = match known.get(&(function.clone(), is_return)) {
                    Some(number) => *number,
                    None => {
                        let number = self.add(of_call(&function, name), is_named);
                        known.insert((function.clone(), is_return), number);
                        number
                    }
                };
                self.calls[at as usize] |= number << if is_return { 16 } else { 0 };
            }
        }
        self.points =
            POINTS.iter().map(|point| self.add(Known::plain(point.probe()), is_named)).collect();
        self.timers(form, is_named);
    }

    /// The place and one of a probe; 0: it is not wanted.
    fn add(&mut self, mut known: Known, is_named: &dyn Fn(&Known) -> bool) -> u32 {
        // Behind those of the language; those that are not wanted count, so that an id is always the same probe's.
        known.probe.id = self.known + 4;
        self.known += 1;
        if !is_named(&known) {
            return 0;
        }
        self.probes.push(known);
        self.probes.len() as u32
    }

    fn timers(&mut self, form: &Form, is_named: &dyn Fn(&Known) -> bool) {
        for pattern in form.clauses.iter().flat_map(|clause| &clause.probes) {
            let name = pattern.name();
            let tick = name.strip_prefix("tick-").and_then(interval);
            let profile = name.strip_prefix("profile-").and_then(interval);
            let profile = profile.filter(|interval| *interval >= SHORTEST_PROFILE);
            let Some(interval) = tick.or(profile) else { continue };
            if self.probes.iter().any(|known| known.probe.name == name) {
                continue;
            }
            let (provider, name) = ("profile".to_owned(), name.to_owned());
            let probe = Probe { provider, name, ..Probe::default() };
            let number = self.add(Known::plain(probe), is_named) as usize;
            if let Some(at) = number.checked_sub(1) {
                let timers = if tick.is_some() { &mut self.ticks } else { &mut self.profiles };
                timers.push((at, interval));
            }
        }
    }

    fn assert_all_match(&self, form: &Form) -> Result<(), Unmatched> {
        if form.options.zdefs {
            return Ok(());
        }
        for clause in &form.clauses {
            for pattern in &clause.probes {
                let language = ["BEGIN", "END", "ERROR"].map(Probe::of_language);
                let matches = |known: &Known| known.is_named_by(pattern);
                if !language.iter().any(|one| pattern.matches(one))
                    && !self.probes.iter().any(matches)
                {
                    return Err(Unmatched::of(pattern));
                }
            }
        }
        Ok(())
    }
}

/// A description that no probe of this machine matches.
#[derive(Debug, Clone)]
pub struct Unmatched {
    /// As it is written.
    pub description: String,
    /// Its place in the text.
    pub place: Span,
    /// What to write.
    pub advice: String,
}

impl Unmatched {
    fn of(pattern: &ProbePattern) -> Self {
        let is_of_calls = matches!(pattern.provider(), "" | "syscall");
        let names = || (0..NUMBERS).map(|number| syscalls::name(Abi::X86_64, number));
        let names: Vec<String> = if is_of_calls { names().collect() } else { Vec::new() };
        let points = POINTS.iter().map(Point::probe);
        let points: Vec<Probe> =
            points.filter(|probe| probe.provider == pattern.provider()).collect();
        let points: Vec<&str> = points.iter().map(|probe| &*probe.name).collect();
        let advice = match nearest(pattern.function(), names.iter().map(String::as_str)) {
            Some(near) if near != pattern.function() => format!("did you mean `{near}`?"),
            _ if is_of_calls => "`iotomy d -l` lists the probes".to_owned(),
            _ if pattern.name().starts_with("profile-") => {
                format!("the shortest interval is {} µs", SHORTEST_PROFILE.as_micros())
            }
            _ if without(pattern).is_some() => without(pattern).unwrap_or_default().to_owned(),
            _ if !points.is_empty() => match nearest(pattern.name(), points.iter().copied()) {
                Some(near) if near != pattern.name() => format!("did you mean `{near}`?"),
                _ => format!("the probes of {} are {}", pattern.provider(), points.join(", ")),
            },
            _ => "the probes here are those of syscall, proc, sched, io, sysinfo, vminfo, tick-, profile-, BEGIN, END and ERROR"
                .to_owned(),
        };
        Self { description: pattern.to_string(), place: pattern.place(), advice }
    }
}

/// What there is in place of a probe that Linux does not tell of.
fn without(pattern: &ProbePattern) -> Option<&'static str> {
    Some(match (pattern.provider(), pattern.name()) {
        ("sched", "enqueue") => "take sched:::wakeup",
        ("sched", "dequeue" | "remain-cpu" | "surrender" | "tick" | "change-pri") => {
            "take sched:::on-cpu, off-cpu, sleep, preempt or wakeup"
        }
        ("proc", "exec" | "exec-failure") => "take syscall::exec*:entry and :return",
        ("proc", "signal-handle" | "signal-clear" | "signal-discard") => "take proc:::signal-send",
        ("vminfo", "maj_fault") => "iotomy trace counts page faults that read from a device",
        _ => return None,
    })
}

/// The probe of a call's entry or return.
fn of_call(function: &str, name: &str) -> Known {
    let probe = |function: &str| Probe {
        provider: "syscall".to_owned(),
        module: String::new(),
        function: function.to_owned(),
        name: name.to_owned(),
        id: 0,
    };
    let aliases = ALIASES.iter().filter(|(here, _)| *here == function);
    let aliases = aliases.map(|(_, there)| probe(there)).collect();
    Known { probe: probe(function), aliases }
}

/// `1s`, `10ms`, `97hz`, and without a unit times a second.
fn interval(rate: &str) -> Option<Duration> {
    let digits = rate.find(|one: char| !one.is_ascii_digit()).unwrap_or(rate.len());
    let (number, unit) = rate.split_at(digits);
    let number: u64 = number.parse().ok().filter(|number| *number > 0)?;
    let each = match unit.to_ascii_lowercase().as_str() {
        "" | "hz" => return Some(Duration::from_nanos(1_000_000_000 / number)),
        "ns" | "nsec" => 1,
        "us" | "usec" => 1_000,
        "ms" | "msec" => 1_000_000,
        "s" | "sec" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" | "hour" => 3_600_000_000_000,
        "d" | "day" => 86_400_000_000_000,
        _ => return None,
    };
    number.checked_mul(each).map(Duration::from_nanos)
}
