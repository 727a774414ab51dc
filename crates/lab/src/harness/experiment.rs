//! The parts of an experiment: its declaration, and its work on a case.
//!
//! A piece implements [`Experiment`]; the registry lists it, and the runner runs it.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use iotomy_host::Skip;
use iotomy_host::folder::Folder;
use iotomy_record::{AxisValue, SweepAxis, Trace, numbers};

use super::bounds::Needs;
use super::cases::{Params, points};
use super::claims::Cases;
use super::judgement::Judgement;
use super::size::Size;

/// The declaration of an experiment.
#[derive(Debug)]
pub struct Declaration {
    /// Its name, unique among all.
    pub name: &'static str,
    /// A one-line summary.
    pub summary: &'static str,
    /// The expected result.
    pub hypothesis: &'static str,
    /// The result that would refute it.
    pub refuted_by: &'static str,
    /// The controlled variables, and the corrections.
    pub controls: &'static [&'static str],
    /// The metric, in a few words.
    pub metric: &'static str,
    /// In what: `ns`, `bytes/s`, `1/s`.
    pub unit: &'static str,
    /// Measurements besides the metric.
    pub extras: &'static [Extra],
    /// The varied parameters.
    pub axes: &'static [Axis],
    /// The axis tables and charts go along.
    pub along: &'static str,
    /// The axis that is a column of a table and a line of a chart each.
    pub lines: &'static str,
    /// The claims to judge.
    pub claims: &'static [Claim],
    /// How often a case is measured.
    pub sampling: Sampling,
    /// Where what it does is described.
    pub man: &'static [&'static str],
}

/// A varied parameter.
#[derive(Debug)]
pub struct Axis {
    /// Its name, as `-L` takes it.
    pub name: &'static str,
    /// The unit of its numbers; `bytes`, or empty for counts and names.
    pub unit: &'static str,
    /// A summary of a few words.
    pub summary: &'static str,
    /// The values it accepts.
    pub takes: Takes,
    /// The values of a quick run. With [`Takes::Listed`], an empty list stands for all names, here and
    /// in the two below.
    pub quick: &'static [Value],
    /// The values of a usual run.
    pub default: &'static [Value],
    /// The values of a full run.
    pub full: &'static [Value],
}

/// The values that an axis accepts.
#[derive(Debug, Clone, Copy)]
pub enum Takes {
    /// One of these.
    Names(&'static [&'static str]),
    /// One of these, from a registry of pieces.
    Listed(fn() -> Vec<&'static str>),
    /// From the first to the second.
    Numbers(u64, u64),
    /// Multiples of the first from the second to the third.
    Multiples(u64, u64, u64),
}

impl Takes {
    /// The names it may be given; `None` for numbers.
    pub fn names(self) -> Option<Vec<&'static str>> {
        match self {
            Self::Names(names) => Some(names.to_vec()),
            Self::Listed(list) => Some(list()),
            Self::Numbers(..) | Self::Multiples(..) => None,
        }
    }

    /// Whether a value may be given.
    pub fn allows(self, value: &AxisValue) -> bool {
        match (self, value) {
            (Self::Numbers(least, most), AxisValue::Number(n)) => (least..=most).contains(n),
            (Self::Multiples(of, least, most), AxisValue::Number(n)) => {
                (least..=most).contains(n) && n.is_multiple_of(of)
            }
            (_, AxisValue::Name(name)) => {
                self.names().is_some_and(|names| names.contains(&name.as_str()))
            }
            _ => false,
        }
    }
}

/// A value of an axis, as a declaration has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// A count or size.
    N(u64),
    /// A name.
    S(&'static str),
}

impl From<Value> for AxisValue {
    fn from(value: Value) -> Self {
        match value {
            Value::N(number) => Self::Number(number),
            Value::S(name) => Self::Name(name.to_owned()),
        }
    }
}

impl Axis {
    /// The values of a run of this size.
    pub fn values(&self, size: Size) -> Vec<Value> {
        let values = match size {
            Size::Quick => self.quick,
            Size::Default => self.default,
            Size::Full => self.full,
        };
        match self.takes {
            Takes::Listed(list) if values.is_empty() => list().into_iter().map(Value::S).collect(),
            _ => values.to_vec(),
        }
    }

    /// The value a text stands for; `number` reads numbers of this axis' unit.
    ///
    /// # Errors
    /// The accepted values.
    pub fn value(
        &self,
        text: &str,
        number: impl Fn(&str) -> Result<u64, String>,
    ) -> Result<AxisValue, String> {
        match self.takes {
            Takes::Names(_) | Takes::Listed(_) => {
                let names = self.takes.names().unwrap_or_default();
                if names.contains(&text) {
                    return Ok(AxisValue::Name(text.to_owned()));
                }
                Err(format!("invalid {} {text:?}; expected one of {}", self.name, names.join(", ")))
            }
            Takes::Numbers(least, most) => match number(text) {
                Ok(number) if (least..=most).contains(&number) => Ok(AxisValue::Number(number)),
                Ok(_) => Err(format!("{} {text} is not between {least} and {most}", self.name)),
                Err(error) => Err(format!("{}: {error}", self.name)),
            },
            Takes::Multiples(of, least, most) => {
                let number =
                    Self { takes: Takes::Numbers(least, most), ..*self }.value(text, number)?;
                match number {
                    AxisValue::Number(n) if !n.is_multiple_of(of) => {
                        let of = if self.unit == "bytes" {
                            numbers::bytes(of.into())
                        } else {
                            of.to_string()
                        };
                        Err(format!("{} {text} is not a multiple of {of}", self.name))
                    }
                    number => Ok(number),
                }
            }
        }
    }
}

/// A measurement besides the metric.
#[derive(Debug)]
pub struct Extra {
    /// Its key in the record.
    pub name: &'static str,
    /// In what; empty for a count.
    pub unit: &'static str,
    /// A summary of a few words.
    pub summary: &'static str,
    /// How the values of several samples become one.
    pub fold: Fold,
}

/// How several values become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fold {
    /// For counts: the sum over the number.
    Mean,
    /// For times: the middle.
    Median,
    /// For times of few runs: the least, as others at work only add to it.
    Least,
}

/// A claim, and the test that decides it.
#[derive(Debug)]
pub struct Claim {
    /// Its id, unique among all.
    pub id: &'static str,
    /// The numbers of the articles that make it.
    pub source: &'static str,
    /// The claim, in a sentence.
    pub text: &'static str,
    /// Decides it, from nothing but the cases.
    pub judge: fn(&Cases<'_>) -> Judgement,
}

/// How often a case is measured.
#[derive(Debug, Clone, Copy)]
pub struct Sampling {
    /// Samples a visit; the cases are visited in a new random order each round.
    pub a_visit: usize,
    /// Samples below which nothing is said.
    pub least: usize,
    /// Samples that are enough whatever they say.
    pub most: usize,
    /// Half of the interval of the median, as a share of it, at which a case is done.
    pub tight: f64,
}

/// One measurement of a case.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sample {
    /// Of the metric.
    pub value: f64,
    /// Of each extra that is measured with it.
    pub extra: Vec<(&'static str, f64)>,
}

/// An experiment.
pub trait Experiment: Sync {
    /// Its declaration.
    fn declaration(&self) -> &'static Declaration;

    /// The combinations of these values that are looked at: all, where nothing else is said.
    fn combinations(&self, axes: &[SweepAxis]) -> Vec<Params> {
        points(axes)
    }

    /// Why a combination makes no sense at all, and is no case; nothing where it is one.
    fn no_case(&self, _case: &Params) -> Vec<&'static str> {
        Vec::new()
    }

    /// The cases these values make: their combinations that make sense.
    fn cases(&self, axes: &[SweepAxis]) -> Vec<Params> {
        let all = self.combinations(axes).into_iter();
        all.filter(|one| self.no_case(one).is_empty()).collect()
    }

    /// Whether a case works here, found by trying, without side effects that last.
    ///
    /// # Errors
    /// Why it does not.
    fn probe(&self, case: &Params) -> Result<(), Skip>;

    /// The needs of a case.
    fn needs(&self, case: &Params) -> Needs;

    /// Sets up what the cases share.
    ///
    /// # Errors
    /// Why none of them can be measured.
    fn prepare(
        &self,
        cases: &[Params],
        folder: &Folder,
    ) -> Result<Box<dyn PreparedExperiment>, Skip>;
}

/// An experiment ready to be run. Dropping it takes down what was set up.
pub trait PreparedExperiment {
    /// Limits how long the next operation may wait for others: processes, answers, silence. A
    /// longer wait is given up with [`iotomy_record::Case::NO_TIME`].
    fn wait_at_most(&mut self, _left: Option<Duration>) {}

    /// Sets up a case, measures it and hands each sample to `keep` until that breaks off; takes the
    /// case down again.
    ///
    /// # Errors
    /// Why it could not be measured, or not further.
    fn visit(
        &mut self,
        case: &Params,
        keep: &mut dyn FnMut(Sample) -> ControlFlow<()>,
    ) -> Result<(), Skip>;

    /// Counts that are not timed: extras of the case, from watched runs. A name that occurs several
    /// times has several samples.
    ///
    /// # Errors
    /// Why it could not be.
    fn watch(
        &mut self,
        _case: &Params,
        _watch: &mut dyn Watch,
    ) -> Result<Vec<(&'static str, f64)>, Skip> {
        Ok(Vec::new())
    }
}

/// The observers for a case, which the caller of the runner provides.
pub trait Watch {
    /// Runs this very program with these arguments and watches it to its end.
    ///
    /// # Errors
    /// Why it could not be watched.
    fn iotomy(&mut self, arguments: &[OsString]) -> Result<Trace, String>;

    /// The same with another program.
    ///
    /// # Errors
    /// Why it could not be watched.
    fn program(&mut self, program: &Path, arguments: &[OsString]) -> Result<Trace, String>;

    /// Counts in the kernel how often the children that this process has now are woken, until what it
    /// gives is dropped.
    ///
    /// # Errors
    /// Why they cannot be counted.
    fn wakeups(&mut self) -> Result<Box<dyn Wakeups>, String>;
}

/// A count of wake-ups that goes on.
pub trait Wakeups {
    /// How many there were so far.
    ///
    /// # Errors
    /// When the count is not whole.
    fn so_far(&self) -> Result<u64, String>;
}
