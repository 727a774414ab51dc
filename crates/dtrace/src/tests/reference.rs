//! What a condition's tree comes to, calculated as it stands: nothing of the compiler is in it.

use proptest::prelude::*;

use super::random::{expressions, numbers};
use super::{compiled, matches, outcome};
use crate::Outcome;
use crate::arithmetic::{DividedByZero, calculated, unary};
use crate::ast::{Binary, Expression, Shape};
use crate::parser::parse;
use crate::pattern::Pattern;

struct Facts<'a> {
    numbers: [i64; 4],
    call: &'a str,
    path: &'a str,
}

impl Facts<'_> {
    fn value(&self, of: &Expression) -> Result<u64, DividedByZero> {
        let truth = |one: u64| u64::from(one != 0);
        Ok(match &of.shape {
            Shape::Integer(number) => number.value,
            Shape::Name(name) => match name.as_str() {
                "bytes" => self.numbers[0].cast_unsigned(),
                "errno" => self.numbers[1].cast_unsigned(),
                "fd" => self.numbers[2].cast_unsigned(),
                "ENOENT" => 2,
                other => panic!("{other} is not a number"),
            },
            Shape::Call(..) => self.numbers[3].cast_unsigned(),
            Shape::Unary(operator, of) => unary(*operator, self.value(of)?),
            Shape::Binary(operator, left, right) => match (operator, &right.shape) {
                (Binary::And, _) if self.value(left)? == 0 => 0,
                (Binary::Or, _) if self.value(left)? != 0 => 1,
                (Binary::And | Binary::Or, _) => truth(self.value(right)?),
                (operator, Shape::Text(text)) => {
                    let is_call = matches!(&left.shape, Shape::Name(name) if name == "call");
                    let string = if is_call { self.call } else { self.path };
                    let is = Pattern::read(&text.pattern()).unwrap().matches(string.as_bytes());
                    u64::from(is == (*operator == Binary::Equal))
                }
                (operator, _) => {
                    calculated(*operator, true, self.value(left)?, self.value(right)?)?
                }
            },
            Shape::Conditional(condition, first, second) => match self.value(condition)? {
                0 => self.value(second)?,
                _ => self.value(first)?,
            },
            other => panic!("{other:?} is not of a condition"),
        })
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn instructions_do_what_the_text_says(
        text in expressions(),
        numbers in numbers(),
        call in prop::sample::select(vec!["a", "abc", "b", "d"]),
        path in prop::sample::select(vec!["/a", "/b", "/bc", ""]),
    ) {
        if let Ok(condition) = compiled(&text) {
            let facts = Facts { numbers, call, path };
            let expected = match facts.value(&parse(&text).unwrap()) {
                Ok(0) => Outcome::False,
                Ok(_) => Outcome::True,
                Err(DividedByZero) => Outcome::DividedByZero,
            };
            prop_assert_eq!(outcome(&condition, numbers, matches(&condition, call, path)), expected);
        }
    }
}
