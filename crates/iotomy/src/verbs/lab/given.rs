//! The values that `-L` gives to axes, read as each experiment takes them.

use std::collections::HashSet;

use anyhow::{Result, bail};
use iotomy_lab::Experiment;
use iotomy_race::Axis;
use iotomy_record::AxisValue;

use crate::verbs::copy::sizes::size;

/// The values given for axes: a name may be an axis of several experiments.
pub(super) type AxisArguments = Vec<(String, Vec<String>)>;

/// The values of `-L`, each checked against its experiments.
///
/// # Errors
/// When a name is not an axis of any, or a value not one of its axis.
pub(super) fn given(axes: &[Axis], chosen: &[&'static dyn Experiment]) -> Result<AxisArguments> {
    let mut given: AxisArguments = Vec::new();
    for axis in axes {
        if given.iter().any(|(name, _)| *name == axis.name) {
            bail!("-L {} is given twice", axis.name);
        }
        let has = |one: &&dyn Experiment| {
            one.declaration().axes.iter().any(|declared| declared.name == axis.name)
        };
        if !chosen.iter().any(has) {
            let names: HashSet<&str> =
                chosen.iter().flat_map(|one| one.declaration().axes).map(|one| one.name).collect();
            let mut names: Vec<&str> = names.into_iter().collect();
            names.sort_unstable();
            bail!("-L {}: unknown axis; the axes are {}", axis.name, names.join(", "));
        }
        given.push((axis.name.clone(), axis.values.clone()));
    }
    // An invalid value is reported before anything is run.
    for one in chosen {
        values(*one, &given)?;
    }
    Ok(given)
}

/// The given values for an experiment's axes.
pub(super) fn values(
    experiment: &dyn Experiment,
    given: &AxisArguments,
) -> Result<Vec<(String, Vec<AxisValue>)>> {
    let number = |text: &str| {
        let number = text.parse::<u64>();
        number.map_err(|_| format!("invalid number {text:?}"))
    };
    let mut values = Vec::new();
    for axis in experiment.declaration().axes {
        let Some((_, texts)) = given.iter().find(|(name, _)| name == axis.name) else { continue };
        let mut parsed: Vec<AxisValue> = Vec::new();
        for text in texts {
            let value = match axis.unit {
                "bytes" => axis.value(text, size),
                _ => axis.value(text, number),
            };
            let value = value.map_err(|what| anyhow::anyhow!("-L {what}"))?;
            if !parsed.contains(&value) {
                parsed.push(value);
            }
        }
        values.push((axis.name.to_owned(), parsed));
    }
    Ok(values)
}
