//! Commands with placeholders, and every combination of their values.

use std::collections::BTreeMap;

/// A placeholder `{name}` and its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axis {
    /// The name between the braces.
    pub name: String,
    /// The values that replace it.
    pub values: Vec<String>,
}

impl std::str::FromStr for Axis {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((name, values)) = text.split_once('=') else {
            return Err("invalid sweep: expected the form name=value,value".to_owned());
        };
        let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || !name.chars().all(is_name) {
            return Err(format!("invalid placeholder {name:?}: expected letters, digits, - and _"));
        }
        let values: Vec<String> = values.split(',').map(str::to_owned).collect();
        if values.iter().any(String::is_empty) {
            return Err(format!("{name} has an empty value"));
        }
        Ok(Self { name: name.to_owned(), values })
    }
}

/// A command with its placeholders filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Filled {
    /// The command.
    pub(super) text: String,
    /// The place of the command it was made from.
    pub(super) from: usize,
    /// The values of the placeholders that are in it.
    pub(super) values: BTreeMap<String, String>,
    /// The values of all placeholders: the same for commands that are to be compared.
    pub(super) point: Vec<String>,
}

/// Every command at every combination of values, the commands of one combination side by side. A
/// command without any placeholder is there once for each combination only if another command has
/// one.
///
/// # Errors
/// When a name is given twice, or is in no command.
pub(super) fn fill(commands: &[String], axes: &[Axis]) -> Result<Vec<Filled>, String> {
    for (at, axis) in axes.iter().enumerate() {
        let name = &axis.name;
        if axes[..at].iter().any(|other| other.name == *name) {
            return Err(format!("-L {name} is given twice"));
        }
        if !commands.iter().any(|text| text.contains(&format!("{{{name}}}"))) {
            return Err(format!("-L {name}: no command has the placeholder {{{name}}}"));
        }
    }
    let mut points: Vec<Vec<String>> = vec![Vec::new()];
    for axis in axes {
        points = points
            .into_iter()
            .flat_map(|point| {
                axis.values.iter().map(move |value| {
                    let mut longer = point.clone();
                    longer.push(value.clone());
                    longer
                })
            })
            .collect();
    }
    let at_point = |point: Vec<String>| {
        commands.iter().enumerate().map(move |(from, command)| {
            let (mut text, mut values) = (command.clone(), BTreeMap::new());
            for (axis, value) in axes.iter().zip(&point) {
                let mark = format!("{{{}}}", axis.name);
                if text.contains(&mark) {
                    text = text.replace(&mark, value);
                    values.insert(axis.name.clone(), value.clone());
                }
            }
            Filled { text, from, values, point: point.clone() }
        })
    };
    Ok(points.into_iter().flat_map(at_point).collect())
}

/// A text with the placeholders filled in as in `one`.
pub(super) fn text_at(text: &str, axes: &[Axis], one: &Filled) -> String {
    axes.iter().zip(&one.point).fold(text.to_owned(), |text, (axis, value)| {
        text.replace(&format!("{{{}}}", axis.name), value)
    })
}

/// Which commands are compared, base first: with several commands those of the same combination
/// of values with the first command's, else all with the first.
pub(super) fn pairs(filled: &[Filled]) -> Vec<(usize, usize)> {
    let several = filled.iter().any(|one| one.from > 0);
    (0..filled.len())
        .filter_map(|other| {
            let same = |base: &&usize| {
                !several
                    || (filled[**base].point == filled[other].point && filled[**base].from == 0)
            };
            let all: Vec<usize> = (0..filled.len()).collect();
            all.iter().find(same).map(|base| (*base, other)).filter(|(base, other)| base != other)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes(texts: &[&str]) -> Vec<Axis> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn every_combination_is_there_and_compared_within_itself() {
        let commands = ["dd bs={bs} x={n}".to_owned(), "cat {n}".to_owned()];
        let filled = fill(&commands, &axes(&["bs=1,2", "n=a,b"])).unwrap();
        let texts: Vec<&str> = filled.iter().map(|one| one.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "dd bs=1 x=a",
                "cat a",
                "dd bs=1 x=b",
                "cat b",
                "dd bs=2 x=a",
                "cat a",
                "dd bs=2 x=b",
                "cat b"
            ]
        );
        assert_eq!(pairs(&filled), [(0, 1), (2, 3), (4, 5), (6, 7)]);
        assert_eq!(filled[1].values.len(), 1);
        assert_eq!(text_at("rm {n}{bs}{x}", &axes(&["bs=1,2", "n=a,b"]), &filled[6]), "rm b2{x}");
        let one = fill(&commands[..1], &axes(&["bs=1,2,3"])).unwrap();
        assert_eq!(pairs(&one), [(0, 1), (0, 2)]);
        assert_eq!(pairs(&fill(&commands, &[]).unwrap()), [(0, 1)]);
        assert_eq!(pairs(&fill(&commands[..1], &[]).unwrap()), []);
    }

    #[test]
    fn sweeps_that_make_no_sense_are_refused() {
        for text in ["bs", "=1", "bs=", "bs=1,,2", "b s=1", "{bs}=1"] {
            assert!(text.parse::<Axis>().is_err(), "{text}");
        }
        let commands = ["dd bs={bs}".to_owned()];
        assert!(fill(&commands, &axes(&["bs=1", "bs=2"])).is_err());
        assert!(fill(&commands, &axes(&["n=1"])).is_err());
    }
}
