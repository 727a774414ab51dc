//! Records of many machines in one picture: those of the same kind and command are put together, with a row a machine, and
//! the machines that are apart from the others are named.
//!
//! It adds to the sections of the records and takes from them only what is too much to be read: with many machines, those
//! that are as the others have their answers and their findings.

mod charts;
mod figures;
mod group;
mod table;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use iotomy_record::store::Record;
use iotomy_stats::outliers::FEWEST;

use self::figures::{Figure, RATIO, figures};
use self::group::{Group, groups};
use crate::numbers::{counted, thousands};
use crate::page::Page;
use crate::section::{Answer, Block, Section, Tile};
use crate::sheet::wide_style;

/// Records of groups up to which each of them has all its parts on the page.
const WHOLE: usize = 8;

/// Outliers whose differences are told, and differences of each.
const TOLD: usize = 12;
const DIFFERENCES: usize = 4;

/// Ratios of a race that have a picture.
const OVERVIEWS: usize = 4;

/// What many machines make of a report.
#[derive(Debug, Default)]
pub(crate) struct Machines {
    /// A section a group.
    pub(crate) sections: Vec<Section>,
    /// What the machine of a record in a group is called, by the place of the record.
    pub(crate) titles: BTreeMap<usize, String>,
    /// The places of the records of which the page has only what they say.
    pub(crate) brief: BTreeSet<usize>,
}

impl Machines {
    /// What these records make.
    pub(crate) fn from_records(records: &[&Record]) -> Self {
        let mut made = Self::default();
        for group in groups(records) {
            let figures = figures(&group, records);
            let mut whole = WHOLE;
            for (at, member) in group.members.iter().enumerate() {
                let is_outlier = figures.iter().any(|figure| figure.apart[at]);
                for place in &member.records {
                    made.titles.insert(*place, member.title.clone());
                    if is_outlier && whole > 0 {
                        whole -= 1;
                    } else {
                        made.brief.insert(*place);
                    }
                }
            }
            made.sections.push(section(&group, &figures));
        }
        if made.titles.len() <= WHOLE {
            made.brief.clear();
        }
        made
    }
}

fn section(group: &Group, figures: &[Figure]) -> Section {
    let style = wide_style();
    let page = Page::new(&style);
    let count = counted(group.members.len() as u128, "machine", "machines");
    let records: usize = group.members.iter().map(|member| member.records.len()).sum();
    Section {
        kind: "machines",
        title: format!("{count}: {}", page.name(&group.subject, 160)),
        answers: answers(&page, group, figures),
        tiles: tiles(&page, group, figures),
        findings: Vec::new(),
        blocks: blocks(&page, group, figures),
        facts: vec![
            ("records", format!("{} of {}", thousands(records as u128), group.kind)),
            ("machines", titles(&page, group, |_| true)),
        ],
    }
}

fn titles(page: &Page<'_>, group: &Group, is_wanted: impl Fn(usize) -> bool) -> String {
    let wanted = group.members.iter().enumerate().filter(|(at, _)| is_wanted(*at));
    let names: Vec<String> = wanted.map(|(_, member)| page.name(&member.title, 100)).collect();
    names.join(", ")
}

fn answers(page: &Page<'_>, group: &Group, figures: &[Figure]) -> Vec<Answer> {
    let is_outlier = |at: usize| figures.iter().any(|figure| figure.apart[at]);
    let outliers: Vec<usize> = (0..group.members.len()).filter(|at| is_outlier(*at)).collect();
    let says = match outliers.len() {
        _ if group.members.len() < FEWEST => {
            format!("{} side by side", counted(group.members.len() as u128, "machine", "machines"))
        }
        0 => "no machine is an outlier".to_owned(),
        n => {
            let of = thousands(group.members.len() as u128);
            format!("{} of {of}", counted(n as u128, "outlier", "outliers"))
        }
    };
    let mut answers = vec![Answer::new("plain", says, conditions(page, group))];
    for at in outliers.iter().take(TOLD) {
        let mut differences = table::differences(page, figures, *at);
        let more = differences.len().saturating_sub(DIFFERENCES);
        differences.truncate(DIFFERENCES);
        if more > 0 {
            differences.push(format!("{more} more"));
        }
        let title = page.name(&group.members[*at].title, 100);
        answers.push(Answer::new(
            "doubt",
            format!("{title} is an outlier"),
            differences.join("; "),
        ));
    }
    if outliers.len() > TOLD {
        let rest = &outliers[TOLD..];
        let names = titles(page, group, |at| rest.contains(&at));
        answers.push(Answer::new("doubt", "outliers, too", names));
    }
    answers
}

/// What may be the reason of a difference: how many kernels and processors there are.
fn conditions(page: &Page<'_>, group: &Group) -> String {
    let distinct = |of: fn(&iotomy_record::Machine) -> String| -> Vec<String> {
        let all: BTreeSet<String> = group.members.iter().map(|one| of(&one.machine)).collect();
        all.into_iter().filter(|text| !text.is_empty()).collect()
    };
    let said = |texts: Vec<String>, many: &str| match texts.as_slice() {
        [] => None,
        [only] => Some(page.name(only, 100)),
        several => Some(format!("{} {many}", several.len())),
    };
    let parts = [
        said(distinct(|machine| machine.kernel.clone()), "kernels"),
        said(distinct(|machine| format!("{} × {}", machine.cpus, machine.cpu)), "processors"),
    ];
    parts.into_iter().flatten().collect::<Vec<String>>().join(" · ")
}

/// The most important figures: the median of all machines, and how far they go.
fn tiles(page: &Page<'_>, group: &Group, figures: &[Figure]) -> Vec<Tile> {
    let mut tiles = vec![Tile {
        label: "machines",
        value: thousands(group.members.len() as u128),
        note: String::new(),
    }];
    if let Some(first) = figures.first() {
        let known = || first.values.iter().flatten().map(|one| one.value);
        let low = known().fold(f64::INFINITY, f64::min);
        let high = known().fold(f64::NEG_INFINITY, f64::max);
        tiles.push(Tile {
            label: "median of all",
            value: charts::shown(first, first.median),
            note: page.name(&first.name, 60),
        });
        tiles.push(Tile {
            label: "from least to most",
            value: format!("{} … {}", charts::shown(first, low), charts::shown(first, high)),
            note: page.name(&first.name, 60),
        });
    }
    tiles
}

fn blocks(page: &Page<'_>, group: &Group, figures: &[Figure]) -> Vec<Block> {
    let mut blocks = vec![Block::Sheet(table::sheet(page, group, figures))];
    let is_ratio = |one: &Figure| one.unit == RATIO && one.name.ends_with(" wall");
    let overviews: Vec<&Figure> = match group.kind {
        "race" if figures.iter().any(is_ratio) => {
            figures.iter().filter(|one| is_ratio(one)).take(OVERVIEWS).collect()
        }
        // Of many limits, the first is no more than the others.
        "limits" => Vec::new(),
        _ => figures.iter().take(1).collect(),
    };
    for (at, figure) in overviews.into_iter().enumerate() {
        let id = if at == 0 { "overview".to_owned() } else { format!("overview-{}", at + 1) };
        blocks.extend(charts::overview(page, group, figure, &id).map(Block::Chart));
    }
    let multiples = charts::multiples(page, group, figures);
    if !multiples.is_empty() {
        let has_outlier = figures.iter().any(|figure| figure.apart.contains(&true));
        blocks.push(Block::Head("Each machine, over the median of all".into()));
        blocks.push(Block::Notes(vec![charts::how_to_read(multiples.len(), group, has_outlier)]));
        blocks.push(Block::Few(multiples));
    }
    blocks
}
