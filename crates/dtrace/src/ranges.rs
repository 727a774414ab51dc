//! Conditions that no values of their facts can fulfil, found by the ranges of these.
//!
//! One pass over the steps follows what each register and each fact can be on the way: from a fact's own range,
//! and from the comparisons that decided the way. Where ways meet, a range spans those of both. It is larger than
//! what can be, never smaller: that is the one invariant, which makes a condition never refused that could hold.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use crate::arithmetic::calculated;
use crate::ast::{Binary, Unary};
use crate::error::{Problem, Span};
use crate::form::{Clause, Fact, Register, Step};

/// Signed integers from one to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    lowest: i64,
    highest: i64,
}

impl Range {
    const ALL: Self = Self { lowest: i64::MIN, highest: i64::MAX };
    const TRUTH: Self = Self { lowest: 0, highest: 1 };

    fn point(value: i64) -> Self {
        Self { lowest: value, highest: value }
    }

    /// Wider than 64 bits, a calculation wraps round.
    fn spanning(values: &[i128]) -> Self {
        let ends = values.iter().min().zip(values.iter().max());
        let ends = ends
            .and_then(|(low, high)| Some((i64::try_from(*low).ok()?, i64::try_from(*high).ok()?)));
        ends.map_or(Self::ALL, |(lowest, highest)| Self { lowest, highest })
    }

    fn of_truth(truth: Option<bool>) -> Self {
        truth.map_or(Self::TRUTH, |truth| Self::point(i64::from(truth)))
    }

    fn single(self) -> Option<i64> {
        (self.lowest == self.highest).then_some(self.lowest)
    }

    fn joined(self, other: Self) -> Self {
        Self { lowest: self.lowest.min(other.lowest), highest: self.highest.max(other.highest) }
    }

    /// What is in both; `None` where nothing is.
    fn common(self, other: Self) -> Option<Self> {
        let both = Self {
            lowest: self.lowest.max(other.lowest),
            highest: self.highest.min(other.highest),
        };
        (both.lowest <= both.highest).then_some(both)
    }

    /// Without a value, which can only be taken off an end.
    fn without(self, value: i64) -> Option<Self> {
        match self {
            Self { lowest, highest } if lowest == value && highest == value => None,
            Self { lowest, .. } if lowest == value => Some(Self { lowest: value + 1, ..self }),
            Self { highest, .. } if highest == value => Some(Self { highest: value - 1, ..self }),
            _ => Some(self),
        }
    }

    fn has(self, value: i64) -> bool {
        self.lowest <= value && value <= self.highest
    }

    /// The truth of every value in it, if they have the same.
    fn truth(self) -> Option<bool> {
        match self.has(0) {
            true => self.single().map(|_| false),
            false => Some(true),
        }
    }
}

/// One side of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Side {
    range: Range,
    fact: Option<(u16, &'static str)>,
}

/// A comparison, and the step that makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Comparison {
    step: usize,
    operator: Binary,
    left: Side,
    right: Side,
}

/// What is known of a register.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Value {
    side: Side,
    compared: Option<Comparison>,
}

impl Value {
    fn of(range: Range) -> Self {
        Self { side: Side { range, fact: None }, compared: None }
    }

    fn joined(self, other: Self) -> Self {
        match self == other {
            true => self,
            false => Self::of(self.side.range.joined(other.side.range)),
        }
    }
}

/// What is known where a step is come to.
#[derive(Debug, Clone)]
struct State {
    registers: Vec<Option<Value>>,
    facts: BTreeMap<u16, Range>,
}

impl State {
    fn read(&self, register: Register) -> Value {
        self.registers[usize::from(register)].unwrap_or(Value::of(Range::ALL))
    }

    fn join(&mut self, other: &Self) {
        for (one, other) in self.registers.iter_mut().zip(&other.registers) {
            *one = one.zip(*other).map(|(one, other)| one.joined(other));
        }
        // A fact without an entry has its whole range.
        self.facts.retain(|fact, range| match other.facts.get(fact) {
            Some(other) => {
                *range = range.joined(*other);
                true
            }
            None => false,
        });
    }

    /// With a fact limited further; `None` where no value is left.
    fn limited(mut self, side: Side, to: Range) -> Option<Self> {
        let both = side.range.common(to)?;
        if let Some((fact, _)) = side.fact {
            self.facts.insert(fact, both);
        }
        Some(self)
    }

    /// The same where a value is true, or is not; `None` where it cannot be.
    fn decided(self, value: Value, is: bool) -> Option<Self> {
        if value.side.range.truth().is_some_and(|truth| truth != is) {
            return None;
        }
        let Some(Comparison { operator, left, right, .. }) = value.compared else {
            let to = if is { value.side.range.without(0)? } else { Range::point(0) };
            return self.limited(value.side, to);
        };
        let operator = if is { operator } else { opposite(operator) };
        self.limited(left, beside(operator, left.range, right.range)?)?
            .limited(right, beside(mirrored(operator), right.range, left.range)?)
    }
}

/// What a side can be for a comparison to hold.
fn beside(operator: Binary, own: Range, other: Range) -> Option<Range> {
    let upto = |highest| Range { highest, ..Range::ALL };
    let from = |lowest| Range { lowest, ..Range::ALL };
    match operator {
        Binary::Less => other.highest.checked_sub(1).map(upto),
        Binary::LessOrEqual => Some(upto(other.highest)),
        Binary::Greater => other.lowest.checked_add(1).map(from),
        Binary::GreaterOrEqual => Some(from(other.lowest)),
        Binary::Equal => Some(other),
        _ => match other.single() {
            Some(value) => own.without(value),
            None => Some(own),
        },
    }
}

fn opposite(operator: Binary) -> Binary {
    match operator {
        Binary::Less => Binary::GreaterOrEqual,
        Binary::LessOrEqual => Binary::Greater,
        Binary::Greater => Binary::LessOrEqual,
        Binary::GreaterOrEqual => Binary::Less,
        Binary::Equal => Binary::NotEqual,
        _ => Binary::Equal,
    }
}

fn mirrored(operator: Binary) -> Binary {
    match operator {
        Binary::Less => Binary::Greater,
        Binary::LessOrEqual => Binary::GreaterOrEqual,
        Binary::Greater => Binary::Less,
        Binary::GreaterOrEqual => Binary::LessOrEqual,
        same => same,
    }
}

fn is_comparison(operator: Binary) -> bool {
    use Binary::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
    matches!(operator, Less | LessOrEqual | Greater | GreaterOrEqual | Equal | NotEqual)
}

fn unary(operator: Unary, of: Range) -> Range {
    let (low, high) = (i128::from(of.lowest), i128::from(of.highest));
    match operator {
        Unary::Negative => Range::spanning(&[-low, -high]),
        Unary::Positive => of,
        Unary::Not => Range::of_truth(of.truth().map(|truth| !truth)),
        Unary::Complement => Range { lowest: !of.highest, highest: !of.lowest },
    }
}

fn binary(operator: Binary, one: Range, other: Range) -> Range {
    if let Some((one, other)) = one.single().zip(other.single()) {
        let value = calculated(operator, true, one.cast_unsigned(), other.cast_unsigned());
        return value.map_or(Range::ALL, |value| Range::point(value.cast_signed()));
    }
    let corners = |of: fn(i128, i128) -> i128| {
        let (low, high) = (i128::from(one.lowest), i128::from(one.highest));
        let others = [i128::from(other.lowest), i128::from(other.highest)];
        Range::spanning(&others.map(|other| [of(low, other), of(high, other)]).concat())
    };
    let is_natural = one.lowest >= 0 && other.lowest >= 0;
    let natural = |highest| Range { lowest: 0, highest };
    match operator {
        Binary::Multiply => corners(|a, b| a * b),
        Binary::Add => corners(|a, b| a + b),
        Binary::Subtract => corners(|a, b| a - b),
        Binary::Divide if other.lowest > 0 => corners(|a, b| a / b),
        Binary::Remainder if is_natural && other.highest > 0 => {
            natural(one.highest.min(other.highest - 1))
        }
        Binary::BitAnd if is_natural => natural(one.highest.min(other.highest)),
        Binary::BitAnd if one.lowest >= 0 => natural(one.highest),
        Binary::BitAnd if other.lowest >= 0 => natural(other.highest),
        Binary::Less => {
            let never = one.lowest >= other.highest;
            Range::of_truth(if one.highest < other.lowest {
                Some(true)
            } else {
                never.then_some(false)
            })
        }
        Binary::LessOrEqual => {
            let never = one.lowest > other.highest;
            Range::of_truth(if one.highest <= other.lowest {
                Some(true)
            } else {
                never.then_some(false)
            })
        }
        Binary::Greater => binary(Binary::Less, other, one),
        Binary::GreaterOrEqual => binary(Binary::LessOrEqual, other, one),
        Binary::Equal => Range::of_truth(one.common(other).is_none().then_some(false)),
        Binary::NotEqual => Range::of_truth(one.common(other).is_none().then_some(true)),
        Binary::And | Binary::Or | Binary::Xor => Range::TRUTH,
        _ => Range::ALL,
    }
}

/// What is wrong with a condition that no values of these ranges can fulfil; `None` if there may be some.
pub(crate) fn unfulfilled(
    clause: &Clause,
    range: &dyn Fn(u16) -> RangeInclusive<i64>,
) -> Option<Problem> {
    let leads_to_end = leads_to_end(clause);
    let mut states: Vec<Option<State>> = vec![None; clause.steps.len() + 1];
    let registers = vec![None; usize::from(clause.registers)];
    states[0] = Some(State { registers, facts: BTreeMap::new() });
    // The comparison on whose account the way to the end is barred, the last one of several.
    let mut barred: Option<(Span, [Option<Side>; 2])> = None;
    for (at, step) in clause.steps.iter().enumerate() {
        let Some(mut state) = states[at].take() else { continue };
        let arrive =
            |states: &mut Vec<Option<State>>, to: usize, state: State| match &mut states[to] {
                Some(there) => there.join(&state),
                place @ None => *place = Some(state),
            };
        let (to, value) = match step {
            Step::Integer { to, value } => (to, Value::of(Range::point(value.cast_signed()))),
            Step::Fact { to, fact: Fact::Word(fact, name, ..), .. } => {
                let whole = || {
                    let (lowest, highest) = range(*fact).into_inner();
                    Range { lowest, highest }
                };
                let range = state.facts.get(fact).copied().unwrap_or_else(whole);
                (to, Value { side: Side { range, fact: Some((*fact, name)) }, compared: None })
            }
            Step::Fact { to, .. } => (to, Value::of(Range::TRUTH)),
            Step::Move { to, from } => (to, state.read(*from)),
            Step::Unary { to, operator, from } => {
                (to, Value::of(unary(*operator, state.read(*from).side.range)))
            }
            Step::Binary { to, operator, signed, left, right } => {
                let (left, right) = (state.read(*left).side, state.read(*right).side);
                let divides = matches!(operator, Binary::Divide | Binary::Remainder);
                if divides && right.range == Range::point(0) {
                    continue;
                }
                if !signed {
                    (to, Value::of(Range::ALL))
                } else {
                    let of = Value::of(binary(*operator, left.range, right.range));
                    let comparison = Comparison { step: at, operator: *operator, left, right };
                    (to, Value { compared: is_comparison(*operator).then_some(comparison), ..of })
                }
            }
            Step::Jump { to } => {
                arrive(&mut states, *to as usize, state);
                continue;
            }
            Step::JumpIf { value, is, to } => {
                let value = state.read(*value);
                for (to, is) in [(*to as usize, *is), (at + 1, !is)] {
                    match state.clone().decided(value, is) {
                        Some(state) => arrive(&mut states, to, state),
                        None if leads_to_end[to] => {
                            let place = value.compared.map_or(at, |of| of.step);
                            let sides = match value.compared {
                                Some(of) => [Some(of.left), Some(of.right)],
                                None => [Some(value.side), None],
                            };
                            barred = Some((clause.places[place].clone(), sides));
                        }
                        None => {}
                    }
                }
                continue;
            }
            // The last one: the condition may hold.
            _ => return None,
        };
        state.registers[usize::from(*to)] = Some(value);
        arrive(&mut states, at + 1, state);
    }
    let (span, sides) = barred?;
    let sides = sides.into_iter().flatten();
    let known = sides.filter_map(|side| Some(in_words(side.fact?.1, side.range)));
    let advice = known.collect::<Vec<_>>().join(", ");
    Some(Problem::new(span, "no values can fulfil this", advice))
}

/// Of each step, whether a way leads from it to the last one, the condition's truth.
fn leads_to_end(clause: &Clause) -> Vec<bool> {
    let mut leads = vec![false; clause.steps.len() + 1];
    for (at, step) in clause.steps.iter().enumerate().rev() {
        leads[at] = match step {
            Step::Jump { to } => leads[*to as usize],
            Step::JumpIf { to, .. } => leads[*to as usize] || leads[at + 1],
            Step::Integer { .. }
            | Step::Fact { .. }
            | Step::Move { .. }
            | Step::Unary { .. }
            | Step::Binary { .. } => leads[at + 1],
            _ => true,
        };
    }
    leads
}

fn in_words(name: &str, range: Range) -> String {
    match range {
        Range { lowest, highest } if lowest == highest => format!("{name} is {lowest} here"),
        Range { lowest, highest: i64::MAX } => format!("{name} is {lowest} or more"),
        Range { lowest: i64::MIN, highest } => format!("{name} is {highest} or less"),
        Range { lowest, highest } => format!("{name} is from {lowest} to {highest}"),
    }
}
