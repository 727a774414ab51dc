use proptest::prelude::*;

use super::{compiled, outcome};
use crate::Outcome;

/// Texts of the language, of every operator.
pub(super) fn expressions() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("bytes".to_owned()),
        Just("errno".to_owned()),
        Just("fd".to_owned()),
        Just("ENOENT".to_owned()),
        Just("sum(bytes)".to_owned()),
        (-3i64..70).prop_map(|number| format!("({number})")),
        any::<i64>().prop_map(|number| format!("({})", number.max(-i64::MAX))),
        any::<u32>().prop_map(|number| number.to_string()),
        prop::sample::select(vec!["a*", "b", "c"]).prop_map(|text| format!("(call == \"{text}\")")),
        prop::sample::select(vec!["/a", "/b*"]).prop_map(|text| format!("(path != \"{text}\")")),
    ];
    leaf.prop_recursive(6, 48, 3, |inner| {
        let operators = vec![
            "*", "/", "%", "+", "-", "<<", ">>", "<", "<=", ">", ">=", "==", "!=", "&", "^", "|",
            "&&", "^^", "||",
        ];
        prop_oneof![
            6 => (inner.clone(), prop::sample::select(operators), inner.clone())
                .prop_map(|(left, operator, right)| format!("({left} {operator} {right})")),
            1 => (prop::sample::select(vec!["-", "+", "!", "~"]), inner.clone())
                .prop_map(|(operator, of)| format!("({operator}{of})")),
            1 => (inner.clone(), inner.clone(), inner)
                .prop_map(|(a, b, c)| format!("({a} ? {b} : {c})")),
        ]
    })
}

pub(super) fn numbers() -> impl Strategy<Value = [i64; 4]> {
    let number = prop_oneof![-2i64..3, any::<i64>(), Just(i64::MIN), 0i64..4096];
    prop::array::uniform4(number)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_instructions_do_what_the_evaluator_does(
        text in expressions(),
        numbers in numbers(),
        matches: u64,
    ) {
        // A constant division by zero is refused.
        if let Ok(condition) = compiled(&text) {
            outcome(&condition, numbers, matches);
        }
    }

    #[test]
    fn what_is_settled_stays_so_whatever_the_rest_is(
        text in expressions(),
        numbers in numbers(),
        known: u8,
        matches: u64,
    ) {
        if let Ok(condition) = compiled(&text) {
            let fact = |fact: u16| (known >> fact & 1 == 1).then_some(numbers[usize::from(fact)]);
            let tests = condition.tests();
            let matching = |test: &crate::StringTest| {
                let bit = tests.iter().position(|one| one == test)?;
                (known >> (4 + bit % 4) & 1 == 1).then_some(matches >> bit & 1 == 1)
            };
            let whole = outcome(&condition, numbers, matches);
            match condition.settled(&fact, &matching) {
                // What comes first may still divide by zero.
                Some(settled) if whole != Outcome::DividedByZero => prop_assert_eq!(settled, whole),
                _ => {}
            }
            let all = condition.settled(&|fact| Some(numbers[usize::from(fact)]), &|test| {
                let bit = tests.iter().position(|one| one == test)?;
                Some(matches >> bit & 1 == 1)
            });
            prop_assert_eq!(all, Some(whole));
        }
    }

    #[test]
    fn a_condition_that_holds_is_not_one_that_nothing_fulfils(
        text in expressions(),
        numbers in numbers(),
        widths in prop::array::uniform4(0i64..300),
        matches: u64,
    ) {
        if let Ok(condition) = compiled(&text)
            && outcome(&condition, numbers, matches) == Outcome::True
        {
            let range = |fact: u16| {
                let (number, width) = (numbers[usize::from(fact)], widths[usize::from(fact)]);
                number.saturating_sub(width / 7)..=number.saturating_add(width / 3)
            };
            prop_assert_eq!(condition.unfulfilled(&range), None);
        }
    }

    #[test]
    fn any_bytes_are_a_condition_or_a_problem_with_a_place(bytes: Vec<u8>) {
        let text = String::from_utf8_lossy(&bytes);
        if let Err(problem) = compiled(&text) {
            prop_assert!(problem.span.start <= text.len());
            prop_assert!(problem.shown_in(&text).lines().count() == 3);
        }
    }

    #[test]
    fn any_words_are_a_condition_or_a_problem_with_a_place(
        words in prop::collection::vec(prop::sample::select(vec![
            "bytes", "call", "path", "ENOENT", "x", "0", "1", "07", "0x", "9K", "5m", "\"a*\"", "\"", "'a'",
            "'", "(", ")", "?", ":", "!", "~", "+", "-", "*", "/", "%", "&", "&&", "|", "||", "^", "^^",
            "<", "<<", "<=", "=", "==", "!=", ",", ".", "\\", "é", "\n", "++", "->", "[", "\u{0}",
        ]), 0..12),
        space in prop::sample::select(vec!["", " "]),
    ) {
        let text = words.join(space);
        match compiled(&text) {
            Ok(condition) => drop(outcome(&condition, [0, 1, -1, 5], 1)),
            Err(problem) => {
                prop_assert!(problem.span.start <= problem.span.end);
                prop_assert!(problem.span.start <= text.len());
                prop_assert!(text.is_char_boundary(problem.span.start));
                prop_assert!(problem.shown_in(&text).lines().count() == 3);
            }
        }
    }
}
