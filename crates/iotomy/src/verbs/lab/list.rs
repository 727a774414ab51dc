//! `iotomy lab list`: the declarations of the experiments.

use std::process::ExitCode;

use anyhow::Result;
use iotomy_lab::{Axis, EXPERIMENTS, ExperimentDeclaration, Size, Takes, Value};
use iotomy_report::hanging;

use crate::manual::{DONE, FAILED, Manual};
use crate::pager;
use crate::screen::shown_lines;

/// Columns of a line.
const WIDTH: usize = 98;

pub(super) const MANUAL: Manual = Manual {
    examples: &[
        ("iotomy lab list", "List the experiments, with their axes and claims:"),
        ("iotomy lab list null-sink", "Describe one in full:"),
    ],
    status: &[DONE, FAILED],
    see_also: &["iotomy-lab-run(1)"],
};

/// List the experiments, or describe some in full
#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// Experiments to describe: hypothesis, controls, values and claims
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

pub(super) fn run(args: &ListArgs) -> Result<ExitCode> {
    let named = super::named(&args.names)?;
    let text = if named.is_empty() {
        EXPERIMENTS.iter().map(|one| short(one.declaration())).collect::<String>()
    } else {
        let each: Vec<String> = named.iter().map(|one| long(one.declaration())).collect();
        each.join("\n")
    };
    pager::print(&shown_lines(&text))?;
    Ok(ExitCode::SUCCESS)
}

/// Its name and line, its axes and its claims.
fn short(declared: &ExperimentDeclaration) -> String {
    let widest = EXPERIMENTS.iter().map(|one| one.declaration().name.len()).max().unwrap_or(0);
    let mut text = String::new();
    let lead = format!("{:<widest$}  ", declared.name);
    put(&mut text, &lead, declared.summary);
    let axes: Vec<&str> = declared.axes.iter().map(|axis| axis.name).collect();
    put(&mut text, &format!("{:widest$}  axes    ", ""), &axes.join(", "));
    let claims: Vec<&str> = declared.claims.iter().map(|claim| claim.id).collect();
    put(&mut text, &format!("{:widest$}  claims  ", ""), &claims.join(", "));
    text
}

fn long(declared: &ExperimentDeclaration) -> String {
    let mut text = String::new();
    put(&mut text, &format!("{} · ", declared.name), declared.summary);
    for (lead, said) in [
        ("  expected    ", declared.hypothesis),
        ("  refuted by  ", declared.refuted_by),
        ("  measured    ", declared.metric),
    ] {
        put(&mut text, lead, said);
    }
    for (at, control) in declared.controls.iter().enumerate() {
        put(&mut text, if at == 0 { "  controls    " } else { "              " }, control);
    }
    put(&mut text, "  man pages   ", &declared.man.join(", "));
    for axis in declared.axes {
        put(&mut text, &format!("\n  -L {}=  ", axis.name), axis.summary);
        let takes = match axis.takes {
            Takes::Names(_) | Takes::Listed(_) | Takes::Registered { .. } => {
                axis.takes.names().unwrap_or_default().join(", ")
            }
            Takes::Numbers(least, most) => {
                let ends = [least, most].map(|end| value(axis, Value::N(end)));
                format!("{} to {}", ends[0], ends[1])
            }
            Takes::Multiples(of, least, most) => {
                let [of, least, most] = [of, least, most].map(|end| value(axis, Value::N(end)));
                format!("multiples of {of} from {least} to {most}")
            }
        };
        put(&mut text, "      takes    ", &takes);
        for size in [Size::Quick, Size::Default, Size::Full] {
            let values: Vec<String> =
                axis.values(size).into_iter().map(|one| value(axis, one)).collect();
            put(&mut text, &format!("      {:<7}  ", size.name()), &values.join(", "));
        }
    }
    text.push('\n');
    for claim in declared.claims {
        put(&mut text, &format!("  {} ({})  ", claim.id, claim.source), claim.text);
    }
    text
}

/// The values an axis takes, as the command line takes them: all names, or the numbers of every size.
pub(crate) fn axis_values(axis: &Axis) -> Vec<String> {
    if let Some(names) = axis.takes.names() {
        return names.into_iter().map(str::to_owned).collect();
    }
    let sizes = [Size::Quick, Size::Default, Size::Full];
    let values = sizes.into_iter().flat_map(|size| axis.values(size));
    values.map(|one| value(axis, one)).collect()
}

/// A value in the form of the command line.
fn value(axis: &Axis, value: Value) -> String {
    match value {
        Value::S(name) => name.to_owned(),
        Value::N(number) if axis.unit == "bytes" => {
            let units = [(1 << 40, "T"), (1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")];
            match units.iter().find(|(size, _)| number >= *size && number.is_multiple_of(*size)) {
                Some((size, unit)) => format!("{}{unit}", number / size),
                None => number.to_string(),
            }
        }
        Value::N(number) => number.to_string(),
    }
}

/// A text behind its lead, wrapped.
fn put(text: &mut String, lead: &str, said: &str) {
    let indent = lead.trim_start_matches('\n').chars().count().min(24);
    text.push_str(&hanging(lead, said, indent, WIDTH));
}
