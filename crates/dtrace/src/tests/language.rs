use super::{compiled, matches, outcome, scope};
use crate::{Outcome, compile_beside};

/// Whether a text holds with 512 bytes, ENOENT, descriptor 3 and 1 ms.
fn holds(text: &str) -> bool {
    let condition = compiled(text).unwrap_or_else(|problem| panic!("{}", problem.shown_in(text)));
    let matches = matches(&condition, "read", "/var/lib/a*b");
    match outcome(&condition, [512, 2, 3, 1_000_000], matches) {
        Outcome::True => true,
        Outcome::False => false,
        Outcome::DividedByZero => panic!("{text}"),
    }
}

#[test]
fn operators_mean_what_they_do_in_c() {
    for text in [
        "1",
        "-1",
        "!0",
        "!!5 == 1",
        "~0 == -1",
        "+7 == 7",
        "- -7 == 7",
        "2 + 3 * 4 == 14",
        "(2 + 3) * 4 == 20",
        "7 - 2 - 1 == 4",
        "100 / 10 / 5 == 2",
        "7 / 2 == 3",
        "-7 / 2 == -3",
        "7 / -2 == -3",
        "-7 / -2 == 3",
        "7 % 3 == 1",
        "-7 % 3 == -1",
        "7 % -3 == 1",
        "-7 % -3 == -1",
        "1 << 4 == 16",
        "-16 >> 2 == -4",
        "1 << 64 == 1",
        "1 << 2 + 1 == 8",
        "5 & 6 == 6",
        "(5 & 6) == 4",
        "(5 | 6) == 7",
        "(5 ^ 6) == 3",
        "6 ^ 3 | 8",
        "1 < 2",
        "2 <= 2",
        "3 > 2",
        "3 >= 3",
        "-1 < 0",
        "1 < 2 == 1",
        "3 > 2 > 0",
        "1 && 2",
        "!(1 && 0)",
        "0 || 2",
        "!(0 || 0)",
        "1 ^^ 0",
        "!(3 ^^ 5)",
        "0 ^^ 4",
        "1 || 0 && 0",
        "1 ^^ 1 || 1",
        "(1 ? 2 : 3) == 2",
        "(0 ? 2 : 3) == 3",
        "0 ? 0 : 0 ? 0 : 1",
        "1 ? 1 : 0 ? 0 : 0",
        "9223372036854775807 + 1 < 0",
        "-9223372036854775807 - 1 < 0",
        "(-9223372036854775807 - 1) / -1 < 0",
        "(-9223372036854775807 - 1) % -1 == 0",
        "1 != 0 && 0 == 0",
        "(1 && 1) + (2 || 0) + (0 ^^ 1) == 3",
        "(bytes > 1) + (fd > 1) == 2",
    ] {
        assert!(holds(text), "{text}");
    }
}

#[test]
fn numbers_are_written_as_in_c_with_units() {
    for text in [
        "0x1ff == 511",
        "0X1F == 31",
        "017 == 15",
        "0 == 00",
        "10u == 10",
        "10ULL == 10",
        "'a' == 97",
        "'\\n' == 10",
        "'\\'' == 39",
        "'\\x41' == 65",
        "'\\101' == 'A'",
        "'\\0' == 0",
        "1us == 1000",
        "1ms == 1000us",
        "2s == 2000ms",
        "5ns == 5",
        "1K == 1024",
        "1KiB == 1k",
        "1M == 1024K",
        "1MiB == 1mib",
        "1G == 1024M",
        "2T == 2048GiB",
        "0x10K == 16384",
        "9223372036854775807 > 0",
    ] {
        assert!(holds(text), "{text}");
    }
}

#[test]
fn variables_constants_and_patterns() {
    for text in [
        "bytes == 512",
        "errno == ENOENT",
        "errno != EAGAIN",
        "duration >= 1ms",
        "fd == 3",
        "call == \"read\"",
        "\"read\" == call",
        "call != \"write\"",
        "call == \"r*\"",
        "call == \"?ead\"",
        "call == \"[a-z]ead\"",
        "path == \"/var/lib/*\"",
        "path == \"/var/lib/a\\*b\"",
        "path != \"/var/lib/a\\*c\"",
        "path == \"/var/lib/a\\x2ab\"",
        "file == path_is(1)",
        "call == \"read\" && bytes <= 512 && path == \"/var/lib/*\"",
        "!(call == \"write\" || errno == 0)",
        "(call == \"read\") + 1 == 2",
        "call == \"read\" ? bytes == 512 : bytes == 0",
    ] {
        if text.contains("path_is") {
            assert!(compiled(text).is_err());
            continue;
        }
        assert!(holds(text), "{text}");
    }
    assert!(!holds("path == \"\""));
}

#[test]
fn a_string_is_compared_once_however_often_it_is_written() {
    let condition =
        compiled("path == \"a\" || file == \"a\" || path != \"a\" || call == \"a\"").unwrap();
    assert_eq!(condition.tests().len(), 2);
    assert!(condition.uses(0x101) && condition.uses(0x100) && !condition.uses(0));
    assert!(compiled("bytes").unwrap().uses(0));
}

#[test]
fn a_division_by_zero_is_an_outcome_unless_it_is_not_come_to() {
    let with = |text: &str| outcome(&compiled(text).unwrap(), [0, 0, 5, 1], 0);
    assert_eq!(with("fd / bytes"), Outcome::DividedByZero);
    assert_eq!(with("fd % bytes == 0 || 1"), Outcome::DividedByZero);
    assert_eq!(with("bytes && fd / bytes"), Outcome::False);
    assert_eq!(with("bytes == 0 || fd / bytes"), Outcome::True);
    assert_eq!(with("bytes ? fd / bytes : 1"), Outcome::True);
    assert_eq!(with("!(fd % bytes)"), Outcome::DividedByZero);
}

#[test]
fn what_is_known_settles_a_condition() {
    let settled = |text: &str| {
        let condition = compiled(text).unwrap();
        condition.settled(&|fact| (fact == 0).then_some(0), &|test| {
            (test.fact == 0x100).then(|| test.pattern.matches(b"read"))
        })
    };
    assert_eq!(settled("call == \"write\" && fd == 3"), Some(Outcome::False));
    assert_eq!(settled("fd == 3 && call == \"write\""), Some(Outcome::False));
    assert_eq!(settled("call == \"read\" && fd == 3"), None);
    assert_eq!(settled("call == \"read\" || fd == 3"), Some(Outcome::True));
    assert_eq!(settled("fd == 3 ? call == \"read\" : call == \"r*\""), Some(Outcome::True));
    assert_eq!(settled("fd ? 1 / bytes : 1"), None);
    assert_eq!(settled("fd && 1 / bytes"), None);
    assert_eq!(settled("1 / bytes"), Some(Outcome::DividedByZero));
    assert_eq!(settled("path == \"x\""), None);
}

#[test]
fn values_that_need_many_registers_are_calculated_in_few_or_refused() {
    // Nested to the right: the deeper side comes first.
    let right = (0..30).fold("bytes".to_owned(), |text, _| format!("fd + ({text})"));
    assert_eq!(compiled(&right).unwrap().emit(5, 4096).map(|_| ()), Ok(()));
    // Balanced, it needs a register more with each power of two.
    let balanced =
        |levels| (0..levels).fold("fd".to_owned(), |text, _| format!("({text} - {text})"));
    assert!(holds(&format!("{} == 0", balanced(6))));
    let many = compiled(&balanced(8)).unwrap().emit(5, 1 << 15);
    assert_eq!(many.unwrap_err(), crate::EmitError::TooDeep);
    let error = compiled(&right).unwrap().emit(5, 30).unwrap_err();
    assert!(error.to_string().contains("of at most 30"), "{error}");
}

#[test]
fn what_is_added_up_is_a_number() {
    for text in ["count() == 3", "sum( bytes ) / count() == 333333", "-sum(bytes) < 0 && count()"] {
        assert!(holds(text), "{text}");
    }
}

#[test]
fn two_conditions_read_one_word_of_matches() {
    let first = compiled("call == \"a\" || path == \"/*\"").unwrap();
    let text = "path == \"/*\" && file == \"/b\"";
    let second = compile_beside(text, scope(), first.tests()).unwrap();
    assert_eq!(second.tests()[..2], *first.tests());
    assert_eq!(second.tests().len(), 3);
    assert_eq!(outcome(&second, [0; 4], 0b110), Outcome::True);
    assert_eq!(outcome(&second, [0; 4], 0b101), Outcome::False);
}
