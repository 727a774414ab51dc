//! The experiment trait, its declaration, and the operations on a case.
//!
//! An experiment implements [`Experiment`]; the registry lists it, and the runner runs it.

use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use iotomy_host::Skip;
use iotomy_host::folder::Folder;
use iotomy_ports::RunWatch;
use iotomy_record::{AxisValue, SweepAxis, Trace, numbers};

use super::bounds::Needs;
use super::cases::{Params, points};
use super::claims::Cases;
use super::judgement::Judgement;
use super::size::Size;

/// The declaration of an experiment.
#[derive(Debug)]
pub struct ExperimentDeclaration {
    /// Its name, unique among all experiments.
    pub name: &'static str,
    /// One-line summary.
    pub summary: &'static str,
    /// The expected result.
    pub hypothesis: &'static str,
    /// The result that would refute the hypothesis.
    pub refuted_by: &'static str,
    /// What is kept constant, or subtracted.
    pub controls: &'static [&'static str],
    /// What is measured, in a few words.
    pub metric: &'static str,
    /// The unit: `ns`, `bytes/s`, `1/s`.
    pub unit: &'static str,
    /// What else is measured.
    pub extras: &'static [Extra],
    /// The parameters that are varied.
    pub axes: &'static [Axis],
    /// The axis along which tables and charts are drawn.
    pub along: &'static str,
    /// The axis whose values are the columns of a table and the lines of a chart.
    pub lines: &'static str,
    /// The claims that are judged.
    pub claims: &'static [Claim],
    /// How often a case is measured.
    pub sampling: Sampling,
    /// The man pages that describe what the experiment uses.
    pub man: &'static [&'static str],
}

/// A parameter that is varied.
#[derive(Debug)]
pub struct Axis {
    /// Its name, as `-L` accepts it.
    pub name: &'static str,
    /// The unit of its numbers; `bytes`, or empty for counts and names.
    pub unit: &'static str,
    /// A summary in a few words.
    pub summary: &'static str,
    /// The values it accepts.
    pub takes: Takes,
    /// The values of a quick run. With [`Takes::Listed`], an empty list stands for all names, and
    /// with [`Takes::Registered`] for the usual ones, here and in the two fields below.
    pub quick: &'static [Value],
    /// The values of a default run.
    pub default: &'static [Value],
    /// The values of a full run.
    pub full: &'static [Value],
}

/// The values an axis accepts.
#[derive(Debug, Clone, Copy)]
pub enum Takes {
    /// One of these.
    Names(&'static [&'static str]),
    /// One of these, from a registry.
    Listed(fn() -> Vec<&'static str>),
    /// One of a registry's, some of which only run if they are asked for.
    Registered {
        /// The names of all.
        all: fn() -> Vec<&'static str>,
        /// Those that run unless others are asked for.
        usual: fn() -> Vec<&'static str>,
    },
    /// From the first to the second.
    Numbers(u64, u64),
    /// Multiples of the first from the second to the third.
    Multiples(u64, u64, u64),
}

impl Takes {
    /// Returns the accepted names; `None` for numbers.
    pub fn names(self) -> Option<Vec<&'static str>> {
        match self {
            Self::Names(names) => Some(names.to_vec()),
            Self::Listed(list) | Self::Registered { all: list, .. } => Some(list()),
            Self::Numbers(..) | Self::Multiples(..) => None,
        }
    }

    /// Whether a value is of the kind that the axis has: a number, or a name.
    pub(crate) fn is_kind_of(self, value: &AxisValue) -> bool {
        self.names().is_some() == matches!(value, AxisValue::Name(_))
    }

    /// Whether the axis accepts a value.
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

/// A value of an axis in a declaration.
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
            Takes::Listed(list) | Takes::Registered { usual: list, .. } if values.is_empty() => {
                list().into_iter().map(Value::S).collect()
            }
            _ => values.to_vec(),
        }
    }

    /// Parses a value; `number` parses numbers of this axis' unit.
    ///
    /// # Errors
    /// Fails with the values that are allowed.
    pub fn value(
        &self,
        text: &str,
        number: impl Fn(&str) -> Result<u64, String>,
    ) -> Result<AxisValue, String> {
        match self.takes {
            Takes::Names(_) | Takes::Listed(_) | Takes::Registered { .. } => {
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

/// A quantity measured besides the metric.
#[derive(Debug)]
pub struct Extra {
    /// Its key in the record.
    pub name: &'static str,
    /// The unit; empty for a count.
    pub unit: &'static str,
    /// A summary in a few words.
    pub summary: &'static str,
    /// How the values of several samples are combined.
    pub fold: Fold,
}

/// How several values are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fold {
    /// For counts: the mean.
    Mean,
    /// For times: the median.
    Median,
    /// For times of few runs: the minimum, because other load only adds to it.
    Least,
}

/// A claim, and the test that decides it.
#[derive(Debug)]
pub struct Claim {
    /// Its id, unique among all claims.
    pub id: &'static str,
    /// The numbers of the articles that make the claim.
    pub source: &'static str,
    /// The claim, in a sentence.
    pub text: &'static str,
    /// Decides the claim, from the cases alone.
    pub judge: fn(&Cases<'_>) -> Judgement,
}

/// How often a case is measured.
#[derive(Debug, Clone, Copy)]
pub struct Sampling {
    /// Samples per visit; the cases are visited in a new random order each round.
    pub a_visit: usize,
    /// Minimum number of samples for a result.
    pub least: usize,
    /// Number of samples that is enough in any case.
    pub most: usize,
    /// Half the width of the median's interval, relative to the median, at which a case is done.
    pub tight: f64,
}

/// One measurement of a case.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sample {
    /// The value of the metric.
    pub value: f64,
    /// The value of each extra measured with it.
    pub extra: Vec<(&'static str, f64)>,
}

/// An experiment.
pub trait Experiment: Sync {
    /// Returns the declaration of the experiment.
    fn declaration(&self) -> &'static ExperimentDeclaration;

    /// Returns the combinations of these values to consider; by default all of them.
    fn combinations(&self, axes: &[SweepAxis]) -> Vec<Params> {
        points(axes)
    }

    /// Returns the reasons why a combination makes no sense and is not a case; empty for a case.
    fn no_case(&self, _case: &Params) -> Vec<&'static str> {
        Vec::new()
    }

    /// Returns the cases that these values make: the combinations that make sense.
    fn cases(&self, axes: &[SweepAxis]) -> Vec<Params> {
        let all = self.combinations(axes).into_iter();
        all.filter(|one| self.no_case(one).is_empty()).collect()
    }

    /// Tests whether a case works here, without lasting side effects.
    ///
    /// # Errors
    /// Fails with the reason if the case does not work.
    fn probe(&self, case: &Params) -> Result<(), Skip>;

    /// The resources a case needs.
    fn needs(&self, case: &Params) -> Needs;

    /// Sets up what the cases share.
    ///
    /// # Errors
    /// Fails with the reason if no case can be measured.
    fn prepare(
        &self,
        cases: &[Params],
        folder: &Folder,
    ) -> Result<Box<dyn PreparedExperiment>, Skip>;
}

/// An experiment ready to run. Dropping it takes down what was set up.
pub trait PreparedExperiment {
    /// Sets how long the next operation may wait for others: processes, answers, silence. An
    /// operation that takes longer is given up and fails with [`iotomy_record::Case::NO_TIME`].
    fn wait_at_most(&mut self, _left: Option<Duration>) {}

    /// Whether a case needs a watch that is told which threads are blocked.
    fn needs_run_watch(&self, _case: &Params) -> bool {
        false
    }

    /// Hands such a watch in before the visit of a case that needs it, or the reason why there is
    /// none.
    fn take_run_watch(&mut self, _watch: Result<Box<dyn RunWatch>, String>) {}

    /// Sets up a case, measures it, passes each sample to `keep` until `keep` breaks off, and takes
    /// the case down again.
    ///
    /// # Errors
    /// Fails with the reason if the case could not be measured, or not to the end.
    fn visit(
        &mut self,
        case: &Params,
        keep: &mut dyn FnMut(Sample) -> ControlFlow<()>,
    ) -> Result<(), Skip>;

    /// Returns the extras of the case that are counted rather than timed, from watched runs. An
    /// extra that occurs several times has several samples.
    ///
    /// # Errors
    /// Fails with the reason if the case could not be watched.
    fn watch(
        &mut self,
        _case: &Params,
        _watch: &mut dyn Watch,
    ) -> Result<Vec<(&'static str, f64)>, Skip> {
        Ok(Vec::new())
    }
}

/// An observer of cases, passed to the runner from outside.
pub trait Watch {
    /// Runs this program with these arguments and watches it to its end.
    ///
    /// # Errors
    /// Fails with the reason if it could not be watched.
    fn iotomy(&mut self, arguments: &[OsString]) -> Result<Trace, String>;

    /// Runs and watches another program in the same way.
    ///
    /// # Errors
    /// Fails with the reason if it could not be watched.
    fn program(&mut self, program: &Path, arguments: &[OsString]) -> Result<Trace, String>;

    /// Counts in the kernel how often the current children of this process are woken, until the
    /// returned value is dropped.
    ///
    /// # Errors
    /// Fails with the reason if the wake-ups cannot be counted.
    fn wakeups(&mut self) -> Result<Box<dyn Wakeups>, String>;

    /// Makes a watch that the kernel tells which threads of this process are blocked, for a
    /// completion port.
    ///
    /// # Errors
    /// Fails with the reason if the kernel cannot be asked.
    fn run_watch(&mut self) -> Result<Box<dyn RunWatch>, String>;
}

/// A running count of wake-ups.
pub trait Wakeups {
    /// Returns the number of wake-ups so far.
    ///
    /// # Errors
    /// Fails if the count is incomplete.
    fn so_far(&self) -> Result<u64, String>;
}
