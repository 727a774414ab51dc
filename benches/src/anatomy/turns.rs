//! The overhead of samples for the sampled process, measured in turns of one process within one
//! watch: with iotomy's events disabled, with iotomy's events enabled, and with the bench's own
//! events instead, which run no program or an empty one. The bench's own events measure the
//! machine's overhead for the same number of interrupts; the overhead of samples above events
//! without a program is iotomy's own.

use std::path::Path;

use crate::child::Signals;
use crate::order::Order;
use crate::record::{Case, Claim};
use crate::run::progress;
use crate::stats::{Estimate, estimate, median};
use crate::tables::{digits, interval, table};
use crate::targets::{Bound, Target};
use anyhow::Result;
use serde_json::json;

use super::events::{Events, Watch};
use super::work::{Work, Worker};

/// The samples must add less than this, in percent.
const TARGET: f64 = 3.0;
/// iotomy's own share of the target: a third. The rest is for the machine.
const OWN: f64 = 1.0;
/// The duration of a turn in ns: about 15 samples. In a shorter turn one sample more or less matters too much; a longer
/// turn includes more drift.
const TURN_NS: f64 = 15e6;
/// Turns that measure how long one repetition takes.
const TRIALS: u32 = 5;

/// The source of interrupts during a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Rest,
    Timer,
    Empty,
    Samples,
}

const STATES: [State; 4] = [State::Rest, State::Timer, State::Empty, State::Samples];

impl State {
    /// Returns the name of the state in the record.
    fn name(self) -> &'static str {
        match self {
            Self::Rest => "nothing",
            Self::Timer => "a timer event alone",
            Self::Empty => "a timer event with an empty program",
            Self::Samples => "samples",
        }
    }
}

/// The measurements of one kind of work.
pub(crate) struct Measured {
    pub(crate) work: Work,
    rate: u32,
    /// On-CPU ns of one repetition, by state, round by round.
    ns: [Vec<f64>; STATES.len()],
    samples: u64,
    /// The overhead of a sample, from the calibration at the start.
    price_ns: f64,
}

/// Measures all states of one kind of work in this many rounds, in random order.
///
/// # Errors
/// When a watch fails to start, or the work ends.
pub(crate) fn measure(
    (iotomy, rate): (&Path, u32),
    signals: &Signals,
    folder: &Path,
    work: Work,
    (rounds, order): (u32, &mut Order),
) -> Result<Measured> {
    let mut worker = work.start_in_turns(folder)?;
    let record = folder.join("turns.json");
    let watch = Watch::begin(iotomy, worker.pid(), (rate, &[]), &record)?;
    watch.events.switch(false)?;
    let bare = Events::bare(watch.events.len(), rate)?;
    let empty = Events::empty(watch.events.len(), rate)?;
    let times = so_often(&mut worker)?;
    let mut ns: [Vec<f64>; STATES.len()] = Default::default();
    let mut turns: Vec<usize> = (0..STATES.len()).collect();
    for round in 0..rounds {
        progress(&format!("samples, {}: round {} of {rounds}", work.name(), round + 1));
        order.shuffle(&mut turns);
        signals.check()?;
        for at in turns.iter().copied() {
            let state = STATES[at];
            let events = match state {
                State::Rest | State::Timer => &bare,
                State::Empty => &empty,
                State::Samples => &watch.events,
            };
            events.switch(state != State::Rest)?;
            let took = worker.turn(times);
            events.switch(false)?;
            ns[at].push(took? / times as f64);
        }
    }
    let sampling = watch.end()?.sampling;
    let (samples, price_ns) = (sampling.samples, sampling.price_ns_per_sample);
    Ok(Measured { work, rate, ns, samples, price_ns })
}

/// Returns the number of repetitions in a turn.
pub(crate) fn so_often(worker: &mut Worker) -> Result<u64> {
    let mut once_ns = f64::NAN;
    for trial in 0..TRIALS {
        let times = 10_u64.pow(trial);
        once_ns = worker.turn(times)? / times as f64;
    }
    Ok((TURN_NS / once_ns.max(1.0)).max(1.0) as u64)
}

/// Returns the time in µs of one interrupt when `rate` interrupts a second together take this many
/// percent.
pub(crate) fn each_us(percent: f64, rate: u32) -> f64 {
    percent / (100.0 + percent) * 1e6 / f64::from(rate)
}

impl Measured {
    fn samples(&self, state: State) -> &[f64] {
        &self.ns[STATES.iter().position(|other| *other == state).unwrap_or(0)]
    }

    /// Returns the time added in this state relative to the idle state, in percent, round by round.
    fn added_percent(&self, state: State) -> Vec<f64> {
        let pairs = self.samples(State::Rest).iter().zip(self.samples(state));
        pairs.map(|(without, with)| (with / without - 1.0) * 100.0).collect()
    }

    /// Returns the time added relative to events without a program, in percent.
    fn own_percent(&self) -> Vec<f64> {
        let timer = self.added_percent(State::Timer);
        self.added_percent(State::Samples).iter().zip(timer).map(|(all, its)| all - its).collect()
    }

    /// Returns the figures for the record.
    pub(crate) fn cases(&self) -> Vec<Case> {
        let rest = self.samples(State::Rest);
        let on = self.work.name();
        let mut cases = Vec::new();
        for state in &STATES[1..] {
            let part = format!("{}, {on}", state.name());
            for (side, samples) in [("without", rest), ("with", self.samples(*state))] {
                let params = [("part", part.as_str()), ("side", side), ("on", on)];
                cases.push(Case::new(&params, "on-cpu", "ns each", samples));
            }
        }
        let params = [("part", "price by calibration"), ("side", "with"), ("on", on)];
        cases.push(Case::new(&params, "price of a sample", "ns", &[self.price_ns]));
        cases
    }

    /// Returns the names of the components in [`Self::cases`].
    pub(crate) fn parts(work: Work) -> impl Iterator<Item = String> {
        STATES[1..].iter().map(move |state| format!("{}, {}", state.name(), work.name()))
    }

    /// Returns the targets for samples of this work.
    pub(crate) fn claims(&self) -> [Claim; 2] {
        let added = self.added_percent(State::Samples);
        let verdict = match estimate(&added) {
            Some(Estimate { high, .. }) if high < TARGET => "holds",
            Some(Estimate { low, .. }) if low > TARGET => "fails",
            _ => "inconclusive",
        };
        let (rate, work, word) = (self.rate, self.work.name(), self.work.word());
        let all = Claim {
            id: format!("sampling-price-{word}"),
            source: "docs/anatomy.md",
            text: format!(
                "{rate} samples a second add less than {TARGET} % to the time on a CPU: {work}"
            ),
            verdict,
            evidence: json!({
                "added_percent": added,
                "timer_alone_percent": self.added_percent(State::Timer),
                "samples": self.samples,
            }),
        };
        // A negative figure is noise.
        let least = |found: Estimate| Estimate {
            median: found.median.max(0.0),
            low: found.low.max(0.0),
            high: found.high.max(0.0),
        };
        let own = estimate(&self.own_percent()).map(least);
        let own = own.ok_or_else(|| "not measured".to_owned());
        let text = format!(
            "of that, what samples add to the machine's own price of a timer event: {work}"
        );
        let name = format!("own-price-{word}");
        let own = Target::new(&name, text, Bound::at_most(OWN, "%"), own);
        [all, own.claim()]
    }
}

/// Formats a table of the measurements and the text below it.
pub(crate) fn text(all: &[Measured]) -> String {
    let heads = [
        "samples of",
        "rounds",
        "without: ns",
        "more: %",
        "a timer event alone: %",
        "with an empty program: %",
        "iotomy's programs: %",
        "a sample: µs",
        "by calibration: µs",
        "a timer event: µs",
    ];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    let percent =
        |figures: &[f64]| estimate(figures).map_or(String::new(), |found| interval(found, 2));
    for one in all {
        let us = |state| {
            median(&one.added_percent(state))
                .map_or(String::new(), |p| digits(each_us(p, one.rate), 1))
        };
        rows.push(vec![
            one.work.name().to_owned(),
            one.samples(State::Rest).len().to_string(),
            digits(median(one.samples(State::Rest)).unwrap_or(0.0), 0),
            percent(&one.added_percent(State::Samples)),
            percent(&one.added_percent(State::Timer)),
            percent(&one.added_percent(State::Empty)),
            percent(&one.own_percent()),
            us(State::Samples),
            digits(one.price_ns / 1e3, 1),
            us(State::Timer),
        ]);
    }
    table(&rows, 1)
}
