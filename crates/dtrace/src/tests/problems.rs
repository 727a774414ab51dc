use super::{compiled, scope};
use crate::compile;

/// The part of a text that is wrong, what is said of it, and the advice.
fn problem(text: &str) -> (String, String) {
    let problem = compiled(text).expect_err(text);
    let at = problem.span.clone();
    (text[at.start.min(text.len())..at.end.min(text.len())].to_owned(), problem.to_string())
}

#[test]
fn each_mistake_is_told_at_its_place() {
    for (text, place, said) in [
        ("", "", "expected a value"),
        ("bytes <", "", "expected a value"),
        ("bytes 5", "5", "expected an operator"),
        ("bytes == == 5", "==", "expected a value before it"),
        ("bytes = 5", "=", "compare by =="),
        ("bytes += 5", "+=", "changes nothing"),
        ("(bytes > 5", "(", "left open"),
        ("(bytes 5)", "5", "`)`"),
        ("bytes > 5)", ")", "expected the end"),
        ("1 ? 2", "", "expected `:`"),
        ("byte < 5", "byte", "did you mean `bytes`"),
        ("errno == ENOEN", "ENOEN", "did you mean `ENOENT`"),
        ("zzz == 1", "zzz", "the variables are bytes, errno"),
        ("call == read", "read", "write \"read\""),
        ("call", "call", "call == \"…\""),
        ("call && 1", "call", "`call` is a string"),
        ("call < \"a\"", "call < \"a\"", "strings have no `<`"),
        ("call == path", "call == path", "two variables that are strings"),
        ("\"a\" == \"b\"", "\"a\" == \"b\"", "two texts"),
        ("call == 5", "call == 5", "its text stands in \""),
        ("errno == \"ENOENT\"", "\"ENOENT\"", "without quotes"),
        ("\"a\"", "\"a\"", "a string is not a number"),
        ("-call", "call", "is a string"),
        ("bytes / 0", "0", "division by zero"),
        ("bytes % (2 - 2)", "(2 - 2)", "division by zero"),
        ("bytes < 5x", "x", "unknown unit `x`"),
        ("bytes < 5m", "m", "write ms or M"),
        ("duration > 1.5ms", "1.5ms", "no fractions"),
        ("089 == 1", "089", "octal"),
        ("0x == 1", "0x", "hexadecimal"),
        ("99999999999999999999 > 1", "99999999999999999999", "too large"),
        ("9223372036854775808", "9223372036854775808", "too large"),
        ("9999999T", "9999999T", "too large"),
        ("call == \"read", "\"read", "closing"),
        ("call == \"a\\qb\"", "\\q", "unknown escape"),
        ("call == \"\\777\"", "\\777", "unknown escape"),
        ("call == 'read'", "'read'", "double quotes"),
        ("bytes == 'é'", "'é", "one ASCII character"),
        ("bytes == ''", "''", "one ASCII character"),
        ("call == \"a[b\"", "\"a[b\"", "`[` without `]`"),
        ("call == “read”", "“", "strings stand in \""),
        ("bytes ≥ 5", "≥", "write >="),
        ("bytes; fd", ";", "an expression is expected"),
        ("bytes, fd", ",", "expected the end"),
        ("count > 5", "count", "write count()"),
        ("sum(byte) > 5", "byte", "write sum(bytes)"),
        ("sum() > 5", "sum()", "write sum(bytes)"),
        ("sum(bytes, fd) > 5", "bytes, fd", "write sum(bytes)"),
        ("count(bytes) > 5", "bytes", "write count()"),
        ("cuont() > 5", "cuont", "did you mean `count`"),
        ("quantize(bytes)", "quantize", "the functions are count(), sum(bytes)"),
        ("sum(bytes > 5", "(", "left open"),
        ("sum(bytes 5)", "5", "`,` or `)`"),
        ("sum(\"a) > 5", "\"a) > 5", "closing"),
        ("count() == \"a\"", "\"a\"", "without quotes"),
        ("5(3)", "(", "expected a value before it"),
    ] {
        let (found, message) = problem(text);
        assert!(found == place && message.contains(said), "{text}: {found:?} {message}");
    }
}

#[test]
fn too_much_is_refused() {
    let tests: Vec<String> = (0..65).map(|number| format!("call == \"{number}\"")).collect();
    assert!(compiled(&tests[..64].join(" || ")).is_ok());
    assert!(problem(&tests.join(" || ")).1.contains("more than 64 strings"));
    for text in [
        "(".repeat(100_000),
        "(".repeat(50_000),
        "!".repeat(50_000) + "1",
        "1+".repeat(30_000) + "1",
        "1?".repeat(20_000),
        "1<".repeat(20_000) + "(",
        "a(".repeat(20_000),
        "a(1,".repeat(16_000),
        "x".repeat(60_000),
    ] {
        let message = problem(&text).1;
        assert!(message.len() < 300, "{message}");
    }
    assert!(compiled(&("1+".repeat(200) + "1")).is_ok());
}

#[test]
fn where_nothing_is_added_up_a_function_is_unknown() {
    let none = crate::Scope { aggregations: &[], ..scope() };
    let problem = compile("count() > 5", none).unwrap_err();
    assert_eq!(
        (problem.span.clone(), problem.to_string()),
        (0..5, "unknown function `count`; there are none here".to_owned())
    );
}
