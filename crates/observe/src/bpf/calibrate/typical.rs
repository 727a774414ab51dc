//! The arithmetic of a calibration: the typical time of a round of each kind, and what watching adds to it.

use crate::price::{Price, Range};

/// Rounds of every kind, made within a millisecond: their times in ns.
#[derive(Debug, Clone, Default)]
pub(super) struct Block {
    /// The most that the same work took before and after the rounds.
    pub(super) pace: f64,
    /// The least that it took between them.
    pub(super) least_pace: f64,
    /// A call.
    pub(super) tight: f64,
    /// A write and a read, through one pair of descriptors after another.
    pub(super) warm: f64,
    /// The same, each of the two calls with cold caches.
    pub(super) cold: Vec<f64>,
    /// A message to another thread by a socket and its answer: a write and a read on both sides, and two switches.
    pub(super) talk: f64,
    pub(super) cold_talk: Vec<f64>,
    /// A call that is given a path.
    pub(super) path: f64,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Rounds {
    pub(super) blocks: Vec<Block>,
}

/// The same work takes more than that part longer while a CPU that shares the core is busy.
const CALM: f64 = 1.08;
/// So much longer take calls beside a busy CPU: 1.35 to 1.45 on the machines tried, whatever it does.
const BESIDE_A_BUSY_CPU: f64 = 1.4;

impl Rounds {
    pub(super) fn are_complete(&self) -> bool {
        !self.blocks.is_empty()
    }

    fn least_pace(&self) -> f64 {
        self.blocks.iter().map(|block| block.least_pace).fold(f64::INFINITY, f64::min)
    }

    /// The median rounds, as they would be on a core that no other CPU shares, where the work takes `least_pace`.
    fn typical(&self, least_pace: f64) -> Typical {
        let blocks: Vec<Typical> =
            self.blocks.iter().map(|block| block.typical(least_pace)).collect();
        Typical::median(&blocks)
    }
}

impl Block {
    /// Its own rounds, the median ones where each gave a time.
    fn typical(&self, least_pace: f64) -> Typical {
        let slowed = match self.pace <= CALM * least_pace {
            true => 1.0,
            false => BESIDE_A_BUSY_CPU,
        };
        let each = |times: &[f64]| median(times.iter().copied());
        Typical {
            tight: self.tight,
            warm: self.warm,
            cold: each(&self.cold),
            talk: self.talk,
            cold_talk: each(&self.cold_talk),
            path: self.path,
        }
        .map(|time| time / slowed)
    }
}

/// A round of each kind: its time, or what that differs by.
#[derive(Debug, Clone, Copy)]
struct Typical {
    tight: f64,
    warm: f64,
    cold: f64,
    talk: f64,
    cold_talk: f64,
    path: f64,
}

impl Typical {
    fn times(self) -> [f64; 6] {
        [self.tight, self.warm, self.cold, self.talk, self.cold_talk, self.path]
    }

    fn of([tight, warm, cold, talk, cold_talk, path]: [f64; 6]) -> Self {
        Self { tight, warm, cold, talk, cold_talk, path }
    }

    fn map(self, to: impl Fn(f64) -> f64) -> Self {
        Self::of(self.times().map(to))
    }

    fn with(self, other: Self, to: impl Fn(f64, f64) -> f64) -> Self {
        let (one, other) = (self.times(), other.times());
        Self::of(std::array::from_fn(|kind| to(one[kind], other[kind])))
    }

    /// The median of each kind.
    fn median(all: &[Self]) -> Self {
        Self::of(std::array::from_fn(|kind| median(all.iter().map(|one| one.times()[kind]))))
    }
}

/// Blocks that two teams made in turn.
#[derive(Debug, Default)]
pub(super) struct Turns {
    pub(super) unwatched: Rounds,
    pub(super) watched: Rounds,
}

impl Turns {
    /// What the watched rounds took longer than their neighbours.
    fn added(&self, least_pace: f64) -> Typical {
        let pairs = self.watched.blocks.iter().zip(&self.unwatched.blocks);
        let of = |(watched, unwatched): (&Block, &Block)| {
            let [watched, unwatched] = [watched, unwatched].map(|one| one.typical(least_pace));
            watched.with(unwatched, |one, other| one - other)
        };
        Typical::median(&pairs.map(of).collect::<Vec<_>>())
    }
}

/// The rounds with nothing attached, made twice; those of a team that is not watched and of one that is, in turn; and
/// those where its calls are let pass.
#[derive(Debug)]
pub(super) struct Phases {
    pub(super) bare: [Rounds; 2],
    pub(super) counted: Turns,
    pub(super) passed: Option<Turns>,
    /// Whether paths are watched.
    pub(super) paths: bool,
}

/// The ends of a range are widened: two calibrations of one machine differ by a tenth, and beside a busy CPU every call takes
/// longer.
const AT_LEAST: f64 = 0.9;
const AT_MOST: f64 = BESIDE_A_BUSY_CPU;

impl Phases {
    /// What the rounds took longer than the bare ones.
    pub(super) fn price(&self) -> Price {
        let turns = || std::iter::once(&self.counted).chain(&self.passed);
        let all = self.bare.iter().chain(turns().flat_map(|one| [&one.unwatched, &one.watched]));
        let pace = all.map(Rounds::least_pace).fold(f64::INFINITY, f64::min);
        let [one, other] = self.bare.each_ref().map(|rounds| rounds.typical(pace));
        // The lesser times, as something else may have watched the calls for a moment.
        let bare = one.with(other, f64::min);
        let mut unwatched: Vec<Block> = Vec::new();
        unwatched.extend(turns().flat_map(|one| one.unwatched.blocks.iter().cloned()));
        let unwatched = Rounds { blocks: unwatched }.typical(pace);
        // None is less than nothing: where it seems so, something else watched the bare ones, or slowed them.
        let unwatched =
            unwatched.with(bare, |one, other| (one - other).max(0.0)).with_modelled_talks();
        let more = |turns: &Turns| unwatched.with(turns.added(pace), |one, other| one + other);
        // A call that is let pass has what an unwatched one has, and one that is counted has what both have.
        let of_unwatched = unwatched.call();
        let passed = self.passed.as_ref().map(|turns| more(turns).call().at_least(of_unwatched));
        let watched = more(&self.counted);
        let call = watched.call().at_least(passed.unwrap_or(of_unwatched));
        let path = if self.paths { watched.path(call) } else { Range::default() };
        Price {
            call,
            switch: watched.switch(),
            path,
            passed: passed.unwrap_or(call),
            unwatched: of_unwatched,
            bare_call_ns: bare.tight,
        }
    }
}

/// Of rounds, what they took longer than bare ones.
impl Typical {
    /// Messages take so long that their times before and after programs are attached differ by more than these add: a
    /// switch of a thread that is not watched passes one program, and a call two.
    fn with_modelled_talks(self) -> Self {
        let [warm, cold] = [self.warm, self.cold].map(|round| round / 2.0);
        let (talk, cold_talk) = (5.0 * warm, cold + 3.0 * warm + cold);
        Self { talk, cold_talk, ..self }
    }

    fn call(self) -> Range {
        let (warm, cold) = (self.warm / 2.0, self.cold / 2.0);
        Range::between(AT_LEAST * self.tight.min(warm), AT_MOST * cold.max(warm))
    }

    fn switch(self) -> Range {
        let (warm, cold) = (self.warm / 2.0, self.cold / 2.0);
        let switch = self.talk / 2.0 - 2.0 * warm;
        // Three of the four calls find what the first has brought into the caches.
        let cold_switch = (self.cold_talk - cold - 3.0 * warm) / 2.0;
        Range::between(AT_LEAST * switch, AT_MOST * cold_switch)
    }

    /// What a call has more if it is given a path; with cold caches as much more as other calls.
    fn path(self, call: Range) -> Range {
        let more = AT_LEAST * (self.path - self.tight).max(0.0);
        Range::between(more, more * (call.high / call.low.max(1.0)).max(1.0))
    }
}

fn median(times: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = times.collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.get(middle) {
        Some(upper) if sorted.len().is_multiple_of(2) => f64::midpoint(sorted[middle - 1], *upper),
        Some(middle) => *middle,
        None => f64::NAN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of which most take these times, and some were disturbed or lucky; and as many beside a busy CPU.
    fn rounds(times: [f64; 5]) -> Rounds {
        let block = |pace: f64, part: f64| {
            let [tight, warm, cold, talk, cold_talk] = times.map(|ns| part * ns);
            let path = 3.0 * tight;
            let [cold, cold_talk] = [cold, cold_talk].map(|ns| vec![ns, 90.0 * ns, ns]);
            Block { pace, least_pace: pace, tight, warm, cold, talk, cold_talk, path }
        };
        let parts = [1.0, 90.0, 1.0, 0.1, 1.0];
        let calm = parts.map(|part| block(1_000.0 + 0.1 * part, part));
        let busy = parts.map(|part| block(1_500.0 + part, BESIDE_A_BUSY_CPU * part));
        Rounds { blocks: [calm, busy].concat() }
    }

    /// But for what is lost by scaling.
    fn assert_ends(range: Range, ends: [f64; 2]) {
        for (one, other) in range.ends().into_iter().zip(ends) {
            assert!((one / other - 1.0).abs() < 1e-9, "{range:?} {ends:?}");
        }
    }

    const BARE: [f64; 5] = [80.0, 1_500.0, 4_000.0, 4_000.0, 9_000.0];

    const UNWATCHED: [f64; 5] =
        [BARE[0] + 100.0, BARE[1] + 240.0, BARE[2] + 600.0, BARE[3], BARE[4]];

    /// The messages of the unwatched ones take as long as they are modelled.
    fn turns(watched: [f64; 5]) -> Turns {
        let mut unwatched = UNWATCHED;
        unwatched[3] += 5.0 * 120.0;
        unwatched[4] += 2.0 * 300.0 + 3.0 * 120.0;
        Turns { unwatched: rounds(unwatched), watched: rounds(watched) }
    }

    fn phases_of(watched: [f64; 5], passed: Option<[f64; 5]>) -> Phases {
        Phases {
            bare: [rounds(BARE.map(|ns| 3.0 * ns)), rounds(BARE)],
            counted: turns(watched),
            passed: passed.map(turns),
            paths: false,
        }
    }

    fn phases(watched: [f64; 5], passed: Option<[f64; 5]>) -> Price {
        phases_of(watched, passed).price()
    }

    #[test]
    fn what_is_added_to_typical_rounds_is_shared_out_among_their_calls_and_switches() {
        // 200 a tight call, 250 a warm one, 600 a cold one; a switch 300, or 700 with cold caches.
        let price = phases(
            [
                280.0,
                2_000.0,
                5_200.0,
                4_000.0 + 4.0 * 250.0 + 600.0,
                9_000.0 + 600.0 + 3.0 * 250.0 + 1_400.0,
            ],
            Some([BARE[0] + 120.0, BARE[1] + 260.0, BARE[2] + 800.0, BARE[3], BARE[4]]),
        );
        assert_ends(price.call, [AT_LEAST * 200.0, AT_MOST * 600.0]);
        assert_ends(price.switch, [AT_LEAST * 300.0, AT_MOST * 700.0]);
        assert_ends(price.passed, [AT_LEAST * 120.0, AT_MOST * 400.0]);
        assert_ends(price.unwatched, [AT_LEAST * 100.0, AT_MOST * 300.0]);
        assert_eq!(price.bare_call_ns, 80.0);
    }

    #[test]
    fn calls_left_out_cost_as_much_as_others_where_they_are_not_let_pass() {
        let price = phases([280.0, 2_000.0, 5_200.0, 5_600.0, 12_100.0], None);
        assert_eq!(price.passed, price.call);
    }

    #[test]
    fn a_disturbed_calibration_makes_no_overhead_negative_and_none_a_single_number() {
        let price = phases([70.0, 1_400.0, 3_000.0, 1_000.0, 2.0], None);
        for range in [price.call, price.switch, price.passed, price.unwatched] {
            let [low, high] = range.ends();
            assert!(0.0 <= low && low < high, "{range:?}");
        }
    }

    #[test]
    fn no_call_has_less_overhead_than_one_that_is_not_watched() {
        let disturbed = [BARE[0] + 1.0, BARE[1], BARE[2] + 2.0, BARE[3], BARE[4]];
        let price = phases(disturbed, Some(disturbed));
        assert_ends(price.unwatched, [AT_LEAST * 100.0, AT_MOST * 300.0]);
        assert_eq!(price.passed, price.unwatched);
        assert_eq!(price.call, price.unwatched);
    }

    #[test]
    fn bare_calls_that_something_else_watched_take_nothing_from_what_a_watched_one_has_more_than_others()
     {
        let watched = [280.0, 2_000.0, 5_200.0, 5_600.0, 12_100.0];
        let slow = [rounds(BARE.map(|ns| 3.0 * ns)), rounds(BARE.map(|ns| 4.0 * ns))];
        let price = Phases { bare: slow, ..phases_of(watched, None) }.price();
        assert_ends(price.call, [AT_LEAST * 100.0, AT_MOST * 300.0]);
        assert_eq!(price.unwatched.ends(), [0.0, 1.0]);
    }

    #[test]
    fn the_median_is_the_middle_or_the_mean_of_two() {
        assert_eq!(median([5.0, 1.0, 3.0].into_iter()), 3.0);
        assert_eq!(median([5.0, 1.0, 3.0, 4.0].into_iter()), 3.5);
    }

    #[test]
    fn a_machine_on_which_messages_take_longer_for_a_while_changes_no_switch() {
        let watched = [280.0, 2_000.0, 5_200.0, 5_600.0, 12_100.0];
        let mut phases = phases_of(watched, None);
        let before = phases.price();
        for rounds in [&mut phases.counted.unwatched, &mut phases.counted.watched] {
            for block in &mut rounds.blocks {
                let part = if block.pace > 1_300.0 { BESIDE_A_BUSY_CPU } else { 1.0 };
                block.talk += 700.0 * part;
                block.cold_talk.iter_mut().for_each(|time| *time += 700.0 * part);
            }
        }
        assert_ends(phases.price().switch, before.switch.ends());
    }

    #[test]
    fn a_busy_cpu_beside_some_of_the_rounds_changes_nothing() {
        let watched = [280.0, 2_000.0, 5_200.0, 5_600.0, 12_100.0];
        let whole = phases(watched, None);
        let mut phases = phases_of(watched, None);
        phases.counted.watched.blocks.retain(|block| block.pace > 1_300.0);
        phases.counted.unwatched.blocks.retain(|block| block.pace < 1_300.0);
        phases.paths = true;
        assert_ends(phases.price().call, whole.call.ends());
        // 200 a tight call, and 3 times as many with a path; none where paths are not watched.
        let times = phases.price().call.high / phases.price().call.low;
        assert_ends(phases.price().path, [AT_LEAST * 400.0, AT_LEAST * 400.0 * times]);
        assert_eq!(whole.path, Range::default());
    }
}
