//! JSON to [`Sweep`] and back.

use std::collections::BTreeSet;

use super::RecordError;
use super::parse::{Stored, check_schema, check_time, parse, quoted, wrong};
use crate::{AxisValue, Case, ExperimentFacts, Sweep, SweepRun};

/// Reads a sweep from the bytes of a JSON record.
///
/// # Errors
/// When they are not a whole `iotomy.sweep/1`; the error names the place.
pub fn parse_sweep(bytes: &[u8]) -> Result<Sweep, RecordError> {
    parse(bytes)
}

impl Stored for Sweep {
    const SCHEMA: &'static str = Self::SCHEMA;
    const WANTED: &'static str = "a sweep; `iotomy lab run --json` makes one";

    fn check(&self) -> Result<(), RecordError> {
        check_schema::<Self>(&self.schema)?;
        self.check_order().map_err(|wrong| match self.is_of_a_bench() {
            true => RecordError::OfABench { experiment: quoted(&self.experiment) },
            false => wrong,
        })
    }
}

impl Sweep {
    /// A bench says nothing of itself nor of how it was run, and has targets: claims that are of no article.
    fn is_of_a_bench(&self) -> bool {
        // One or several, as in "000, 003".
        let is_number =
            |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b',' | b' '));
        self.about == ExperimentFacts::default()
            && self.run == SweepRun::default()
            && (self.claims.is_empty() || self.claims.iter().any(|claim| !is_number(&claim.source)))
    }

    fn check_order(&self) -> Result<(), RecordError> {
        check_time("started", &self.started)?;
        check_once("axes", self.axes.iter().map(|axis| &axis.name))?;
        check_once("claims", self.claims.iter().map(|claim| &claim.id))?;
        self.check_machines()?;
        let mut met = BTreeSet::new();
        for (at, case) in self.cases.iter().enumerate() {
            self.check_params(at, case)?;
            self.check_figures(at, case)?;
            if !met.insert(&case.params) {
                let what = "there is another case of these values".to_owned();
                return Err(wrong(format!("cases[{at}].params"), what));
            }
        }
        Ok(())
    }

    /// Several machines have names of their own, which are the values of their axis.
    fn check_machines(&self) -> Result<(), RecordError> {
        check_once("machines", self.machines.iter().map(|one| &one.machine.name))?;
        for (at, one) in self.machines.iter().enumerate() {
            check_time(&format!("machines[{at}].started"), &one.started)?;
            check_once(
                &format!("machines[{at}].claims"),
                one.claims.iter().map(|claim| &claim.id),
            )?;
        }
        let names = self.machines.iter().map(|one| AxisValue::Name(one.machine.name.clone()));
        let axis = self.axes.iter().find(|axis| axis.name == Self::MACHINE);
        if !self.machines.is_empty()
            && axis.is_none_or(|axis| !axis.values.iter().cloned().eq(names))
        {
            let what = "their names are not the values of the axis \"machine\"".to_owned();
            return Err(wrong("machines".to_owned(), what));
        }
        if let Some(shard) = &self.run.shard
            && !(1..=shard.of).contains(&shard.index)
        {
            let what = format!("{} is not from 1 to {}", shard.index, shard.of);
            return Err(wrong("run.shard.index".to_owned(), what));
        }
        Ok(())
    }

    fn check_params(&self, at: usize, case: &Case) -> Result<(), RecordError> {
        let path = || format!("cases[{at}].params");
        for (name, value) in &case.params {
            let axis = self.axes.iter().find(|axis| axis.name == *name);
            let Some(axis) = axis else {
                return Err(wrong(path(), format!("unknown axis \"{}\"", quoted(name))));
            };
            if !axis.values.contains(value) {
                let (name, value) = (quoted(name), quoted(&value.to_string()));
                return Err(wrong(
                    path(),
                    format!("{value} is not a value of the axis \"{name}\""),
                ));
            }
        }
        match self.axes.iter().find(|axis| !case.params.contains_key(&axis.name)) {
            None => Ok(()),
            Some(axis) => {
                Err(wrong(path(), format!("there is no value of the axis \"{}\"", axis.name)))
            }
        }
    }

    fn check_figures(&self, at: usize, case: &Case) -> Result<(), RecordError> {
        let path = |field: &str| format!("cases[{at}].{field}");
        let is_measured = !case.samples.is_empty();
        if is_measured && case.skipped.is_some() {
            return Err(wrong(path("skipped"), "a skipped case has no samples".to_owned()));
        }
        if !is_measured && case.skipped.is_none() && !self.run.is_partial {
            let what = "a case has samples, or says why it was skipped";
            return Err(wrong(path("samples"), what.to_owned()));
        }
        let figures = [("median", case.median), ("mean", case.mean), ("stddev", case.stddev)];
        for (field, figure) in figures {
            if figure.is_some() != is_measured {
                return Err(wrong(path(field), "there is one where there are samples".to_owned()));
            }
            finite(|| path(field), figure)?;
        }
        let of_visits = case.visits.iter().try_fold(0_u64, |all, of| all.checked_add(of.samples));
        if !case.visits.is_empty() && of_visits != Some(case.samples.len() as u64) {
            return Err(wrong(path("visits"), "theirs are not all of the samples".to_owned()));
        }
        if let Some([low, high]) = case.ci95
            && low > high
        {
            return Err(wrong(path("ci95"), format!("{low} is above {high}")));
        }
        finite(|| path("ci95"), case.ci95.into_iter().flatten())?;
        finite(|| path("min"), case.min)?;
        finite(|| path("samples"), case.samples.iter().copied())?;
        finite(|| path("extra"), case.extra.values().copied())?;
        finite(|| path("extra_samples"), case.extra_samples.values().flatten().copied())
    }
}

/// Whether no name is empty or stands twice.
fn check_once<'a>(path: &str, names: impl Iterator<Item = &'a String>) -> Result<(), RecordError> {
    let mut met = BTreeSet::new();
    for (at, name) in names.enumerate() {
        if name.is_empty() {
            return Err(wrong(format!("{path}[{at}]"), "expected a name".to_owned()));
        }
        if !met.insert(name) {
            return Err(wrong(format!("{path}[{at}]"), format!("duplicate \"{}\"", quoted(name))));
        }
    }
    Ok(())
}

fn finite(
    path: impl FnOnce() -> String,
    numbers: impl IntoIterator<Item = f64>,
) -> Result<(), RecordError> {
    match numbers.into_iter().find(|number| !number.is_finite()) {
        None => Ok(()),
        Some(number) => Err(wrong(path(), format!("invalid measurement {number}"))),
    }
}

#[cfg(test)]
#[path = "sweep_tests.rs"]
mod tests;
