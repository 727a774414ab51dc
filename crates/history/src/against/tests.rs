use iotomy_record::store::{Record, RecordRef};
use iotomy_record::{KeptRun, Machine, RaceCommand, Round, Run, Spread};

use super::*;

/// Chance enough for a test: splitmix64.
struct Chance(u64);

impl Chance {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Around 0, with a deviation of 1: twelve of them, added up.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }

    /// A session of this many runs: all of it shifted by `offset`, each run by `noise` more.
    fn race(&mut self, ms: f64, runs: usize, offset: f64, noise: f64) -> Race {
        let level = ms * (offset * self.normal()).exp();
        let times = (0..runs).map(|_| level * (noise * self.normal()).exp() * 1e6);
        race(&times.map(|ns| ns as u64).collect::<Vec<u64>>())
    }
}

fn race(times: &[u64]) -> Race {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let median_ns = sorted[sorted.len() / 2] as f64;
    let wall = Spread { runs: times.len() as u64, median_ns, ..Spread::default() };
    let run = |(at, ns): (usize, &u64)| Run {
        wall_ns: *ns,
        user_ns: ns / 2,
        round: at as u64,
        ..Run::default()
    };
    Race {
        schema: Race::SCHEMA.into(),
        started: "2026-01-02T03:04:05Z".into(),
        machine: Machine { kernel: "Linux 6.1".into(), cpus: 2, ..Machine::default() },
        commands: vec![RaceCommand {
            label: "A".into(),
            command: "work".into(),
            runs: times.iter().enumerate().map(run).collect(),
            wall,
            cpu: Spread { median_ns: wall.median_ns / 2.0, ..wall },
            ..RaceCommand::default()
        }],
        rounds: vec![Round::default(); times.len()],
        ..Race::default()
    }
}

/// The baseline of these sessions, the newest first.
fn earlier(races: &[Race]) -> Earlier {
    let record = Record::Race(Box::new(races[0].clone()));
    let kept = KeptRun {
        id: 1,
        name: Some("main".into()),
        kind: "race".into(),
        started: "2026-01-02T03:04:05Z".into(),
        subject: "work".into(),
        version: "1".into(),
        kernel: "Linux 6.1".into(),
        machine: String::new(),
        hardware: String::new(),
        bytes: 1,
        measure: None,
    };
    let others: Vec<_> = races[1..].iter().map(|race| measures(RecordRef::Race(race))).collect();
    Earlier::of_record(kept, record, &others)
}

fn wall(baseline: &[Race], now: &Race) -> Change {
    let found = against(&earlier(baseline), RecordRef::Race(now), "1").unwrap();
    found.changes.into_iter().find(|change| change.measure == "wall").unwrap()
}

#[test]
fn a_tenth_more_is_called_slower_and_a_tenth_less_faster() {
    let mut chance = Chance(7);
    for (now, verdict) in [(11.2, RaceVerdict::Slower), (8.8, RaceVerdict::Faster)] {
        let sessions: Vec<Race> = (0..5).map(|_| chance.race(10.0, 20, 0.005, 0.02)).collect();
        let now = chance.race(now, 20, 0.0, 0.02);
        let (of_one, of_all) = (wall(&sessions[..1], &now), wall(&sessions, &now));
        assert_eq!((of_one.verdict, of_one.sessions), (Some(verdict), 1));
        assert_eq!((of_all.verdict, of_all.sessions), (Some(verdict), 5));
        assert_eq!((of_one.min_effect, of_all.min_effect), (0.05, 0.02));
        assert!(of_one.range.is_none() && of_all.range.is_some());
    }
}

#[test]
fn ten_times_as_slow_is_slower_whatever_the_sessions_of_the_baseline_are() {
    let mut chance = Chance(9);
    for sessions in [1, 2, 3, 30] {
        for runs in [1, 5, 20] {
            let baseline: Vec<Race> =
                (0..sessions).map(|_| chance.race(10.0, 20, 0.05, 0.05)).collect();
            let change = wall(&baseline, &chance.race(100.0, runs, 0.05, 0.05));
            assert_eq!(change.verdict, Some(RaceVerdict::Slower), "{sessions} {runs}: {change:?}");
        }
    }
    // A baseline that contains a tenfold session.
    let mixed: Vec<Race> =
        [10.0, 100.0, 10.0, 11.0].iter().map(|ms| chance.race(*ms, 20, 0.0, 0.02)).collect();
    assert_eq!(wall(&mixed, &chance.race(470.0, 20, 0.0, 0.02)).verdict, Some(RaceVerdict::Slower));
    let like_one_of_them = wall(&mixed, &chance.race(100.0, 20, 0.0, 0.02));
    assert_eq!(like_one_of_them.verdict, Some(RaceVerdict::Undecided));
    let [low, high] = like_one_of_them.range.unwrap();
    assert!(low < 11e6 && high > 90e6, "{low} {high}");
}

#[test]
fn one_run_each_says_nothing_and_tells_how_many_would() {
    let change = wall(&[race(&[10_000_000])], &race(&[100_000_000]));
    assert_eq!((change.verdict, change.ci95), (Some(RaceVerdict::Undecided), None));
    let change = wall(&[race(&[10_000_000; 4])], &race(&[11_000_000]));
    assert_eq!((change.verdict, change.more_runs), (Some(RaceVerdict::Undecided), Some(3)));
}

#[test]
fn where_the_machine_differs_there_is_a_ratio_and_no_verdict() {
    let (then, mut now) = (race(&[10_000_000; 20]), race(&[20_000_000; 20]));
    assert_eq!(wall(std::slice::from_ref(&then), &now).verdict, Some(RaceVerdict::Slower));
    now.machine.kernel = "Linux 6.18".into();
    let found = against(&earlier(std::slice::from_ref(&then)), RecordRef::Race(&now), "2").unwrap();
    let told: Vec<_> = found.differences.iter().map(|d| (d.what.as_str(), d.matters)).collect();
    assert_eq!(told, [("kernel", true), ("iotomy", false)]);
    assert_eq!(found.changes[0].verdict, Some(RaceVerdict::Undecided));
    let ratio = found.changes[0].ratio.unwrap();
    assert!((ratio - 2.0).abs() < 1e-9, "{ratio}");
}

#[test]
fn other_conditions_and_impossible_numbers_leave_no_verdict_either() {
    let (then, mut now) = (race(&[10_000_000; 20]), race(&[20_000_000; 20]));
    now.plan.cache = "cold".into();
    assert_eq!(wall(std::slice::from_ref(&then), &now).verdict, Some(RaceVerdict::Undecided));
    now = race(&[20_000_000; 20]);
    now.findings.push(iotomy_record::Finding {
        id: "impossible-rate".into(),
        verdict: Verdict::Impossible,
        text: String::new(),
        evidence: [("contender".to_owned(), "A".into())].into(),
        advice: None,
    });
    assert_eq!(wall(std::slice::from_ref(&then), &now).verdict, Some(RaceVerdict::Undecided));
}

#[test]
fn one_command_each_is_compared_whatever_they_are_called_and_of_several_the_same() {
    let then = race(&[10_000_000; 20]);
    let mut now = race(&[20_000_000; 20]);
    now.commands[0].command = "work --more".into();
    let found = against(&earlier(std::slice::from_ref(&then)), RecordRef::Race(&now), "1").unwrap();
    assert_eq!((found.changes.len(), found.differences.len()), (2, 1));
    assert!(!found.differences[0].matters && found.differences[0].now == "work --more");
    let mut two = now.clone();
    two.commands.push(then.commands[0].clone());
    let found = against(&earlier(std::slice::from_ref(&then)), RecordRef::Race(&two), "1").unwrap();
    assert_eq!(found.changes[0].subject, "work");
    assert_eq!(found.differences[0].now, "work --more");
    two.commands.remove(1);
    two.commands.push(two.commands[0].clone());
    two.commands[1].command = "other".into();
    assert!(against(&earlier(std::slice::from_ref(&then)), RecordRef::Race(&two), "1").is_err());
}
