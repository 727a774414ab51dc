//! Programs as a whole: any text is a program or has problems at their places, what is printed reads
//! as the same, and whatever was compiled runs to its end.

use proptest::prelude::*;

use super::VARIABLES;
use super::generated::{WORDS, mutated, programs};
use crate::form::{Clause, Step};
use crate::parser::clauses::parse_program;
use crate::program::print::printed;
use crate::script::run;
use crate::{Macros, Scope, compile_program};

const SCRIPT: &str = "
user 0x1000 \"/etc/passwd\"
kernel 0x2000 01 02 03 04 05 06 07 08 09 00
parent 11 10
set pid=10 tid=10 execname=cat arg0=0x1000 arg1=-1 arg2=512 bytes=7 timestamp=5
stack 0x10 0x20
fire syscall::read:entry
set timestamp+=1000 arg0=0x2000 arg1=0
fire syscall::read:return errno=2
fire profile:::tick-1s tid=11 pid=11
fire io:::start args[0]->b_bcount=4096
fire syscall::write:entry arg0=0 arg1=7 fds[3].fi_name=x
";

fn scope() -> Scope<'static> {
    Scope { variables: &VARIABLES, constants: &[("ENOENT", 2)], aggregations: &[] }
}

fn macros() -> Macros {
    Macros {
        arguments: vec!["script.d".to_owned(), "7".to_owned(), "read".to_owned()],
        target: Some(10),
        own: vec![("pid", 5)],
        defaults: false,
    }
}

/// Compiles and runs a text; what is wrong has to have a place that can be shown.
pub(super) fn check(text: &str) -> Result<bool, TestCaseError> {
    match compile_program(text, scope(), &macros()) {
        Ok(form) => {
            for clause in &form.clauses {
                prop_assert_eq!(clause.steps.len(), clause.places.len());
                prop_assert!(ends(clause), "{:?}", clause);
            }
            let run = run(&form, text, SCRIPT);
            prop_assert!(run.is_ok(), "{:?}", run);
            Ok(true)
        }
        Err(problems) => {
            prop_assert!(!problems.is_empty() && problems.len() <= 20);
            for problem in problems {
                prop_assert!(problem.span.start <= problem.span.end, "{:?}", problem);
                prop_assert!(problem.span.start <= text.len(), "{:?}", problem);
                prop_assert!(!problem.message.is_empty());
                prop_assert!(problem.message.len() < 400, "{}", problem.message);
                let shown = problem.shown_at("script.d", text);
                prop_assert_eq!(shown.lines().count(), 3, "{}", shown);
            }
            Ok(false)
        }
    }
}

/// Whether a clause comes to its end, whatever its values: all jumps go forward and none too far.
fn ends(clause: &Clause) -> bool {
    clause.steps.iter().enumerate().all(|(at, step)| match step {
        Step::Jump { to } | Step::JumpIf { to, .. } => {
            *to as usize > at && *to as usize <= clause.steps.len()
        }
        _ => true,
    })
}

proptest! {
    // `PROPTEST_CASES=1000000 cargo test --release -p iotomy-dtrace --lib programs::` is the long run.
    #![proptest_config(ProptestConfig::default())]

    #[test]
    fn generated_programs_compile_and_run_to_their_end(text in programs()) {
        // A constant division by zero is a problem, as it has to be.
        if let Err(problems) = compile_program(&text, scope(), &macros()) {
            for problem in &problems {
                prop_assert!(problem.message.contains("division by zero"), "{}", problem.shown_in(&text));
            }
        }
        check(&text)?;
    }

    #[test]
    fn what_is_printed_reads_as_the_same(text in programs()) {
        let (tree, problems) = parse_program(&text, &macros());
        prop_assert!(problems.is_empty());
        let again = printed(&tree);
        let (tree, problems) = parse_program(&again, &macros());
        prop_assert!(problems.is_empty(), "{}\n{:?}", again, problems);
        prop_assert_eq!(&printed(&tree), &again);
        let forms = [&text, &again].map(|text| {
            compile_program(text, scope(), &macros()).map(crate::form::Form::without_places)
        });
        match &forms {
            [Ok(one), Ok(other)] => prop_assert_eq!(one, other),
            [one, other] => prop_assert_eq!(one.is_err(), other.is_err()),
        }
    }

    #[test]
    fn a_changed_program_is_one_or_has_problems(text in mutated()) {
        check(&text)?;
    }

    #[test]
    fn any_words_are_a_program_or_have_problems(
        words in prop::collection::vec(prop::sample::select(WORDS.to_vec()), 0..40),
        space in prop::sample::select(vec!["", " "]),
    ) {
        check(&words.join(space))?;
    }

    #[test]
    fn any_bytes_are_a_program_or_have_problems(bytes: Vec<u8>) {
        check(&String::from_utf8_lossy(&bytes))?;
    }
}

#[test]
fn too_much_is_refused() {
    let deep = |part: &str, count: usize| format!("BEGIN {{ x = {}; }}", part.repeat(count));
    let mut inlines = "inline int i0 = arg0 + arg1;\n".to_owned();
    for number in 1..30 {
        inlines += &format!("inline int i{number} = i{0} + i{0};\n", number - 1);
    }
    for text in [
        deep("(", 100_000),
        deep("!", 100_000),
        deep("(int)", 50_000),
        deep("++", 50_000),
        deep("a[", 50_000),
        deep("*", 50_000),
        deep("sizeof ", 50_000),
        deep("x = ", 50_000),
        deep("1 + ", 50_000) + "1",
        deep("x->", 50_000),
        deep("@a[", 50_000),
        deep("1, ", 50_000),
        "/".repeat(100_000),
        "{".repeat(100_000),
        "BEGIN {".repeat(50_000),
        "BEGIN,".repeat(100_000),
        "#pragma D option quiet\n".repeat(40_000) + "{",
        format!("BEGIN {{ trace({}); }}", "x".repeat(900_000)),
        inlines + "BEGIN { trace(i29); }",
        "BEGIN { x = 1; }\n".repeat(5_000),
        format!("BEGIN {{ {} }}", "x++; ".repeat(20_000)),
        (0..50_000).fold("enum {".to_owned(), |text, number| text + &format!(" A{number},")) + "};",
        "a".repeat(2_000_000),
    ] {
        let problems = compile_program(&text, scope(), &macros()).unwrap_err();
        assert!(problems.len() <= 20);
        assert!(problems.iter().all(|problem| problem.to_string().len() < 500));
    }
}
