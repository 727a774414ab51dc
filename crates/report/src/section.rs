//! A record as the parts of a report, before they have a form: the answer, the findings, pictures and
//! tables, and where it all comes from. HTML, SVG, CSV and Markdown are made from this alone.
//!
//! Every text in here is printable; the output format still has to escape it.

use iotomy_record::{Finding, Machine};

use crate::chart::Chart;
use crate::page::Page;
use crate::sheet::{Cell, Field, Sheet};
use crate::{findings, numbers};

/// A record.
#[derive(Debug)]
pub(crate) struct Section {
    /// The kind of record.
    pub(crate) kind: &'static str,
    pub(crate) title: String,
    /// The results, the most important first.
    pub(crate) answers: Vec<Answer>,
    /// The few most important figures.
    pub(crate) tiles: Vec<Tile>,
    pub(crate) findings: Vec<Conclusion>,
    pub(crate) blocks: Vec<Block>,
    /// Machine, kernel, command, version…
    pub(crate) facts: Vec<(&'static str, String)>,
}

/// The facts that give the origin of a part on its own.
const ORIGIN: [&str; 5] = ["command", "experiment", "started", "kernel", "processor"];

impl Section {
    /// Where it comes from, in a line.
    pub(crate) fn origin(&self) -> String {
        origin(&self.facts)
    }

    /// The findings as a table, which a page shows as a list; none without any.
    pub(crate) fn findings_sheet(&self) -> Option<Sheet> {
        let (id, title, one, more) = match self.kind {
            "sweep" => ("claims", "Claims", "claim", "because"),
            _ => ("findings", "Findings", "finding", "try"),
        };
        let heads = [(one, one), ("verdict", "verdict"), ("says", "in words"), (more, more)];
        let fields = heads.map(|(key, head)| Field::text(key, head));
        let mut sheet = Sheet::new(id, title, fields.into());
        for found in &self.findings {
            let more = found.more.as_ref().map_or(String::new(), |(_, text)| text.clone());
            let cells = [found.id.clone(), found.word.to_owned(), found.text.clone(), more];
            sheet.push(cells.map(Cell::text).into());
        }
        sheet.notes.push(self.origin());
        (!sheet.rows.is_empty()).then_some(sheet)
    }
}

/// Where a part with these facts comes from, in a line.
pub(crate) fn origin(facts: &[(&'static str, String)]) -> String {
    let facts = facts.iter().filter(|(key, _)| ORIGIN.contains(key));
    let parts = facts.map(|(key, text)| match *key {
        "experiment" => format!("iotomy lab run {text}"),
        _ => crate::page::elide(text, 80, "…"),
    });
    parts.collect::<Vec<String>>().join(" · ")
}

/// A line of the answer.
#[derive(Debug)]
pub(crate) struct Answer {
    /// `good`, `bad`, `doubt` or `plain`.
    pub(crate) tone: &'static str,
    pub(crate) says: String,
    /// Evidence.
    pub(crate) rest: String,
}

impl Answer {
    pub(crate) fn new(
        tone: &'static str,
        says: impl Into<String>,
        rest: impl Into<String>,
    ) -> Self {
        Self { tone, says: says.into(), rest: rest.into() }
    }
}

/// A figure with its name.
#[derive(Debug)]
pub(crate) struct Tile {
    pub(crate) label: &'static str,
    pub(crate) value: String,
    pub(crate) note: String,
}

/// A finding or a claim.
#[derive(Debug)]
pub(crate) struct Conclusion {
    pub(crate) tone: &'static str,
    /// The verdict.
    pub(crate) word: &'static str,
    pub(crate) id: String,
    pub(crate) text: String,
    /// The advice, or the reason for the verdict.
    pub(crate) more: Option<(&'static str, String)>,
    pub(crate) evidence: Vec<(String, String)>,
}

/// A part of a page.
#[derive(Debug)]
pub(crate) enum Block {
    /// A heading.
    Head(String),
    /// A picture.
    Chart(Chart),
    /// Pictures that are small enough to stand side by side.
    Few(Vec<Chart>),
    /// A table.
    Sheet(Sheet),
    /// Sentences.
    Notes(Vec<String>),
}

/// Evidence that is shown of a finding, at most.
const EVIDENCE: usize = 24;

impl Conclusion {
    /// A finding of a record.
    pub(crate) fn from_finding(page: &Page<'_>, finding: &Finding) -> Self {
        let (_, word, ink) = findings::grade(finding.verdict);
        Self {
            tone: crate::sheet::tone(ink),
            word,
            id: page.name(&finding.id, 60),
            text: page.name(&finding.text, findings::TEXT),
            more: finding.advice.as_ref().map(|try_| ("try", page.name(try_, findings::TEXT))),
            evidence: evidence(page, &finding.evidence),
        }
    }

    /// All of a record, the gravest first.
    pub(crate) fn all(page: &Page<'_>, findings: &[Finding]) -> Vec<Self> {
        let mut sorted: Vec<&Finding> = findings.iter().collect();
        sorted.sort_by_key(|finding| findings::grade(finding.verdict).0);
        sorted.into_iter().map(|finding| Self::from_finding(page, finding)).collect()
    }
}

/// The numbers something rests on, by name.
pub(crate) fn evidence(
    page: &Page<'_>,
    of: &std::collections::BTreeMap<String, serde_json::Value>,
) -> Vec<(String, String)> {
    let shown = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => page.name(text, findings::TEXT),
        serde_json::Value::Number(n) => n.as_u64().map_or_else(
            || n.as_f64().map_or_else(|| n.to_string(), |n| format!("{n:.4}")),
            |n| numbers::thousands(n.into()),
        ),
        other => page.name(&other.to_string(), findings::TEXT),
    };
    of.iter().take(EVIDENCE).map(|(key, value)| (page.name(key, 60), shown(value))).collect()
}

/// Where a record was made.
pub(crate) fn machine_facts(page: &Page<'_>, machine: &Machine) -> Vec<(&'static str, String)> {
    let text = |text: &str| page.name(text, 300);
    let mut facts = vec![("kernel", text(&machine.kernel))];
    if !machine.cpu.is_empty() {
        facts.push(("processor", format!("{} × {}", machine.cpus, text(&machine.cpu))));
    }
    if machine.memory_bytes > 0 {
        facts.push(("memory", numbers::bytes(u128::from(machine.memory_bytes >> 20) << 20)));
    }
    facts.push(("virtualization", text(&machine.virtualization)));
    facts.push(("clock", text(&machine.clock)));
    facts.push(("mitigations", text(&machine.mitigations)));
    facts.retain(|(_, text)| !text.is_empty());
    facts
}
