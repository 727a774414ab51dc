//! Updates of aggregations.

use super::calls::AGGREGATING;
use super::{Compiled, Compiler, Operand, problem, shortened};
use crate::ast::{Expression, Shape};
use crate::error::Span;
use crate::form::{Aggregating, Aggregation, Step};
use crate::names::nearest;
use crate::types::Type;

/// The most aggregations of a program.
const MOST_AGGREGATIONS: usize = 1024;

impl Compiler<'_> {
    /// `@name[keys] = function(arguments)`
    pub(super) fn aggregate(
        &mut self,
        name: &str,
        keys: &[Expression],
        value: &Expression,
        at: &Span,
    ) -> Compiled<Operand> {
        let Shape::Call(function, arguments) = &value.shape else {
            let advice = format!("the functions are {}", AGGREGATING.join(", "));
            return problem(&value.span, "expected an aggregating function", advice);
        };
        let (function, count) = self.aggregating(function, arguments, &value.span)?;
        let aggregation = match self.aggregation(name) {
            Some(known) => {
                let own = &self.form.aggregations[usize::from(known)];
                if own.function != function {
                    let known = own.function.name();
                    let message =
                        format!("`@{name}` is one of {known}(), not of {}()", function.name());
                    let message = match known == function.name() {
                        true => format!("`@{name}` has other bounds of {known}()"),
                        false => message,
                    };
                    return problem(&value.span, message, "take another name");
                }
                known
            }
            None => self.new_aggregation(name, function, keys, at)?,
        };
        let types = self.form.aggregations[usize::from(aggregation)].keys.clone();
        let keys = self.typed_keys(&format!("@{name}"), &types, keys, at)?;
        let mut registers = [None; 2];
        let used: Vec<&Expression> = arguments.iter().take(1).chain(arguments.get(count)).collect();
        for (argument, register) in used.into_iter().zip(&mut registers) {
            let value = self.value(argument)?;
            match value.of.as_integer() {
                Some(_) => *register = Some(value.register),
                None => {
                    let message = format!(
                        "`{}` needs an integer, not {}",
                        function.name(),
                        value.of.with_article()
                    );
                    return problem(&argument.span, message, "a string can be a key");
                }
            }
        }
        let [value_register, times] = registers;
        let step = Step::Aggregate { aggregation, keys, value: value_register, times };
        self.push(step, at.start..value.span.end)?;
        Ok(Operand::of(0, Type::Void))
    }

    pub(super) fn aggregation(&self, name: &str) -> Option<u16> {
        self.form.aggregations.iter().position(|one| one.name == name).map(|at| at as u16)
    }

    fn new_aggregation(
        &mut self,
        name: &str,
        function: Aggregating,
        keys: &[Expression],
        at: &Span,
    ) -> Compiled<u16> {
        if self.form.aggregations.len() >= MOST_AGGREGATIONS {
            return problem(at, "more than 1,024 aggregations", "");
        }
        // Their types; the steps come by the update itself.
        let mark = self.mark();
        let mut types = Vec::new();
        for key in keys {
            types.push(self.recordable(key)?.of);
        }
        self.take_back(mark);
        let own = Aggregation { name: name.to_owned(), function, keys: types };
        self.form.aggregations.push(own);
        Ok((self.form.aggregations.len() - 1) as u16)
    }

    /// The function with its bounds, and how many of its arguments are the value and the bounds.
    fn aggregating(
        &mut self,
        name: &str,
        arguments: &[Expression],
        span: &Span,
    ) -> Compiled<(Aggregating, usize)> {
        let (least, most, shown) = match name {
            "count" => (0, 0, "count()"),
            "sum" | "avg" | "min" | "max" | "stddev" => (1, 1, "sum(value)"),
            "quantize" => (1, 2, "quantize(value[, times])"),
            "lquantize" => (3, 5, "lquantize(value, lower, upper[, step[, times]])"),
            "llquantize" => (5, 6, "llquantize(value, factor, low, high, steps[, times])"),
            _ => {
                let at = span.start..span.start + name.len();
                let advice = match nearest(name, AGGREGATING.into_iter()) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("the functions are {}", AGGREGATING.join(", ")),
                };
                let message = format!("`{}` is not an aggregating function", shortened(name));
                return problem(&at, message, advice);
            }
        };
        if !(least..=most).contains(&arguments.len()) {
            let message = match (least, most) {
                (0, 0) => format!("`{name}` has no arguments"),
                (1, 1) => format!("`{name}` has one argument, not {}", arguments.len()),
                _ => format!("`{name}` has {least} to {most} arguments, not {}", arguments.len()),
            };
            return problem(span, message, format!("as in {shown}"));
        }
        let bounds = arguments.iter().skip(1);
        match name {
            "count" => Ok((Aggregating::Count, usize::MAX)),
            "sum" => Ok((Aggregating::Sum, usize::MAX)),
            "avg" => Ok((Aggregating::Average, usize::MAX)),
            "min" => Ok((Aggregating::Minimum, usize::MAX)),
            "max" => Ok((Aggregating::Maximum, usize::MAX)),
            "stddev" => Ok((Aggregating::StandardDeviation, usize::MAX)),
            "quantize" => Ok((Aggregating::Quantize, 1)),
            "lquantize" => self.linear(&bounds.take(3).collect::<Vec<_>>()).map(|one| (one, 4)),
            _ => self.log_linear(&bounds.take(4).collect::<Vec<_>>()).map(|one| (one, 5)),
        }
    }

    fn bound(&mut self, expression: &Expression) -> Compiled<i64> {
        match self.constant_of(expression)? {
            Some(value) => Ok(value.cast_signed()),
            None => problem(&expression.span, "a bound has to be constant", ""),
        }
    }

    fn linear(&mut self, bounds: &[&Expression]) -> Compiled<Aggregating> {
        let [lower_at, upper_at, step_at @ ..] = bounds else {
            return problem(&(0..0), "lquantize() has two bounds", "");
        };
        let (lower, upper) = (self.bound(lower_at)?, self.bound(upper_at)?);
        let step = match step_at.first() {
            Some(step) => self.bound(step)?,
            None => 1,
        };
        let at = step_at.first().map_or(&upper_at.span, |step| &step.span);
        let (Ok(low), Ok(high)) = (i32::try_from(lower), i32::try_from(upper)) else {
            let both = lower_at.span.start..upper_at.span.end;
            return problem(&both, "bounds of lquantize() have 32 bits", "take quantize()");
        };
        if lower >= upper {
            let both = lower_at.span.start..upper_at.span.end;
            return problem(&both, "the lower bound is not below the upper one", "");
        }
        let Ok(width @ 1..) = u16::try_from(step) else {
            return problem(at, "a step is from 1 to 65,535", "");
        };
        let levels = (upper - lower) / step;
        match levels {
            1..=65_535 => Ok(Aggregating::Linear { lower: low, upper: high, step: width }),
            0 => problem(at, "the step is larger than the whole range", ""),
            _ => problem(at, "more than 65,535 steps", "take a larger step"),
        }
    }

    fn log_linear(&mut self, bounds: &[&Expression]) -> Compiled<Aggregating> {
        let mut values = [0u16; 4];
        for (bound, value) in bounds.iter().zip(&mut values) {
            match u16::try_from(self.bound(bound)?) {
                Ok(one) => *value = one,
                Err(_) => return problem(&bound.span, "a bound is from 0 to 65,535", ""),
            }
        }
        let [factor, low, high, steps] = values;
        let refused = |at: usize, message: &str| match bounds.get(at) {
            Some(bound) => problem(&bound.span, message, "as in llquantize(arg1, 10, 0, 6, 20)"),
            None => problem(&(0..0), message, ""),
        };
        if factor < 2 {
            return refused(0, "the factor is at least 2");
        }
        if low >= high {
            return refused(2, "the high power is not above the low one");
        }
        if steps < factor {
            return refused(3, "the steps are at least as many as the factor");
        }
        if steps % factor != 0 {
            return refused(3, "the factor does not divide the steps");
        }
        if i64::from(factor).checked_pow(u32::from(high) + 1).is_none() {
            return refused(2, "the highest power has more than 63 bits");
        }
        // A power that has more values than steps has to have whole steps.
        let mut power = i64::from(factor).pow(u32::from(low)).saturating_mul(i64::from(factor));
        if power > i64::from(steps) && power % i64::from(steps) != 0 {
            return refused(3, "the steps do not divide the powers evenly");
        }
        while power <= i64::from(steps) {
            power = power.saturating_mul(i64::from(factor));
        }
        if power % i64::from(steps) != 0 {
            return refused(3, "the steps do not divide the powers evenly");
        }
        Ok(Aggregating::LogLinear { factor, low, high, steps })
    }
}
