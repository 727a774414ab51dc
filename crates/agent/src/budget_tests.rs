//! Tests of the budget: a scripted machine whose calls count in the part of the time that the budget chooses.

use iotomy_observe::Range;
use iotomy_stats::order::Random;
use proptest::prelude::*;

use super::*;

/// Overheads of a call: at most 1,000 ns where it counts, 200 ns where it does not, 500 ns a switch.
fn price() -> Price {
    let fixed = |high: f64| Range { low: 0.0, high };
    Price {
        call: fixed(1_000.0),
        switch: fixed(500.0),
        passed: fixed(200.0),
        bare_call_ns: 0.0,
        ..Price::default()
    }
}

fn share(text: &str) -> Share {
    Share::parse(text).unwrap()
}

fn budget(text: &str) -> Budget {
    let mut budget = Budget::new(share(text));
    budget.begin(price());
    budget
}

/// A CPU that is busy, with so many calls a second.
fn busy(calls: u64) -> Load {
    Load { elapsed_ns: 1_000_000_000, calls, switches: 0, cpu_ns: 1_000_000_000 }
}

/// Goes on with such a load for so many seconds; what was said.
fn run(budget: &mut Budget, seconds: u32, load: Load) -> Vec<String> {
    (0..seconds).filter_map(|_| budget.step(load)).collect()
}

/// The overhead of such a load by the price, without any model of it.
fn takes(load: Load, factor: u32) -> f64 {
    let counted = load.calls as f64 / f64::from(factor);
    let ns = 1_000.0 * counted + 200.0 * (load.calls as f64 - counted);
    (ns + 500.0 * load.switches as f64) / load.cpu_ns as f64
}

#[test]
fn a_share_is_a_percentage_above_none_and_up_to_all() {
    for (text, ratio, shown) in [
        ("1%", 0.01, "1 %"),
        ("0.5%", 0.005, "0.5 %"),
        ("2 %", 0.02, "2 %"),
        ("100%", 1.0, "100 %"),
        ("0.0001%", 0.000_001, "0.0001 %"),
    ] {
        let share = share(text);
        assert_eq!((share.ratio(), share.to_string()), (ratio, shown.to_owned()));
    }
    for text in ["1", "0.01", "", "%", "one%", "1%%", "1 percent", "nan%x"] {
        assert_eq!(
            Share::parse(text),
            Err(String::from("invalid percentage: expected something like 1%")),
            "{text}"
        );
    }
    for text in ["0%", "-1%", "100.1%", "0.00001%", "nan%", "inf%"] {
        assert_eq!(
            Share::parse(text),
            Err(String::from("invalid percentage: expected 0.0001% to 100%")),
            "{text}"
        );
    }
}

#[test]
fn all_calls_count_while_that_is_within_the_budget() {
    let mut budget = budget("1%");
    assert!(run(&mut budget, 100, busy(9_000)).is_empty());
    assert_eq!(budget.factor(), 1);
    assert!((budget.overhead() - 0.009).abs() < 1e-6, "{}", budget.overhead());
    // Whatever comes, where the budget is all.
    let mut all = self::budget("100%");
    assert!(run(&mut all, 100, busy(900_000)).is_empty());
    assert_eq!(all.factor(), 1);
}

#[test]
fn a_load_that_exceeds_the_budget_is_counted_in_the_largest_part_that_does_not() {
    let mut budget = budget("1%");
    // 2.5 % if all count, 0.5 % if none does: 1 % if a quarter does.
    let load = busy(24_900);
    assert!(run(&mut budget, 60, load).is_empty());
    assert_eq!(budget.factor(), 4);
    assert!(takes(load, 4) <= 0.01 && takes(load, 2) > 0.01);
    assert!((budget.overhead() - takes(load, 4)).abs() < 1e-6, "{}", budget.overhead());
    // It stays.
    for _ in 0..600 {
        assert_eq!(budget.step(load), None);
        assert_eq!(budget.factor(), 4);
    }
}

#[test]
fn when_the_load_goes_all_calls_count_again() {
    let mut budget = budget("1%");
    run(&mut budget, 60, busy(40_000));
    assert!(budget.factor() > 4, "{}", budget.factor());
    run(&mut budget, 120, busy(1_000));
    assert_eq!(budget.factor(), 1);
    // A machine that does nothing leaves it as it is.
    run(&mut budget, 60, busy(40_000));
    let factor = budget.factor();
    let nothing = Load { elapsed_ns: 1_000_000_000, ..Load::default() };
    run(&mut budget, 3, nothing);
    assert_eq!(budget.factor(), factor);
    run(&mut budget, 120, Load { calls: 10, cpu_ns: 10_000_000, ..nothing });
    assert_eq!(budget.factor(), 1);
}

#[test]
fn a_budget_that_does_not_suffice_is_said_once_with_what_watching_takes() {
    let mut budget = budget("1%");
    // 2 % even if none counts.
    let load = busy(100_000);
    let said = run(&mut budget, 600, load);
    assert_eq!(budget.factor(), MOST);
    let [text] = &said[..] else { panic!("{said:?}") };
    assert!(text.starts_with("the budget of 1 % does not suffice: watching takes up to 2.1 % "));
    assert!(text.contains("in 1/128 of the time") && text.contains("raise --budget"), "{text}");
    // Nor is it hidden.
    assert!(budget.overhead() > 0.02, "{}", budget.overhead());
    // Another budget may be said not to suffice, too.
    budget.set_share(share("1%"));
    assert!(run(&mut budget, 600, load).is_empty());
    budget.set_share(share("0.5%"));
    assert_eq!(run(&mut budget, 600, load).len(), 1);
    budget.set_share(share("5%"));
    assert!(run(&mut budget, 600, load).is_empty());
    assert!(takes(load, budget.factor()) <= 0.05 && budget.factor() < MOST);
}

#[test]
fn a_moment_of_load_is_not_said_not_to_suffice() {
    let mut budget = budget("1%");
    assert!(run(&mut budget, 3, busy(100_000)).is_empty());
    assert!(run(&mut budget, 120, busy(1_000)).is_empty());
    assert_eq!(budget.factor(), 1);
}

#[test]
fn switches_are_part_of_it() {
    let mut budget = budget("1%");
    run(&mut budget, 60, Load { switches: 15_000, ..busy(9_000) });
    assert!(budget.factor() > 1 && budget.overhead() > 0.0075, "{budget:?}");
}

#[test]
fn looks_that_come_soon_after_each_other_are_one_step() {
    let mut budget = budget("1%");
    let short = Load { elapsed_ns: 10_000_000, calls: 1_000, switches: 0, cpu_ns: 10_000_000 };
    run(&mut budget, 89, short);
    assert_eq!((budget.factor(), budget.overhead()), (1, 0.0));
    run(&mut budget, 1, short);
    assert_eq!(budget.factor(), MOST);
    // A watch that begins goes on with the same part.
    budget.begin(price());
    assert_eq!(budget.factor(), MOST);
}

proptest! {
    /// Whatever the load: what is chosen is within the budget, or nothing is. In the long run it stays.
    #[test]
    fn a_steady_load_comes_to_a_part_that_stays_and_is_the_largest_but_for_the_margin(
        calls in 1u64..200_000,
        switches in 0u64..20_000,
        percent in 0.1f64..5.0,
        before in 0u64..200_000,
    ) {
        let text = format!("{percent:.2}%");
        let (mut budget, ratio) = (budget(&text), share(&text).ratio());
        run(&mut budget, 30, busy(before));
        let load = Load { switches, ..busy(calls) };
        run(&mut budget, 300, load);
        let factor = budget.factor();
        prop_assert!(factor.is_power_of_two() && factor <= MOST);
        prop_assert!(factor == MOST || takes(load, factor) <= ratio * 1.001);
        if factor > 1 {
            // Of twice as much, it was not enough by the margin.
            prop_assert!(takes(load, factor / 2) > ENOUGH * ratio * 0.999);
        }
        run(&mut budget, 60, load);
        prop_assert_eq!(budget.factor(), factor);
    }

    /// As windows see it: now and then, by chance, and scaled.
    #[test]
    fn what_windows_see_by_chance_makes_it_change_seldom(seed in any::<u64>()) {
        let mut random = Random::new(seed);
        let mut budget = budget("1%");
        let (mut changes, mut before) = (0, 1);
        for second in 0..600u32 {
            let factor = budget.factor();
            let periods = |seconds: u32| seconds * 100 / factor;
            // Some 20,000 calls a second: 0.8 % in a quarter of the time, 1.2 % in half of it.
            let windows = periods(second + 1) - periods(second);
            let seen: f64 = (0..windows).map(|_| 200.0 * (0.5 + random.unit())).sum();
            budget.step(busy((f64::from(factor) * seen) as u64));
            changes += u32::from(second >= 60 && budget.factor() != before);
            before = budget.factor();
        }
        prop_assert!(changes <= 12, "{changes}");
        prop_assert!(budget.factor() >= 4);
    }
}
