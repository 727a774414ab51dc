//! The sections of a report: those of many machines, and the one that each record makes.

use iotomy_record::Limits;
use iotomy_record::store::Record;

use crate::ceilings;
use crate::machines::Machines;
use crate::section::Section;

/// A section, and where it stands.
#[derive(Debug)]
pub(crate) struct PlacedSection {
    pub(crate) section: Section,
    /// What begins the names of its parts where there are several: `2` of the second record, `machines` of many machines.
    pub(crate) name: String,
    /// The place of its record; none where it is of many.
    pub(crate) record: Option<usize>,
    /// What its machine is called, where there are records of others.
    pub(crate) machine: Option<String>,
    /// Whether only its answers and findings are shown, as those of others are as they are.
    pub(crate) is_brief: bool,
}

impl PlacedSection {
    /// Its kind, and its machine where that tells it from others.
    pub(crate) fn kind(&self) -> String {
        let machine = self.machine.as_ref().map(|machine| format!(" · {machine}"));
        format!("{}{}", self.section.kind, machine.unwrap_or_default())
    }
}

/// The sections of these records: first those of many machines, then one a record, in their order.
pub(crate) fn all(records: &[&Record]) -> Vec<PlacedSection> {
    let machines = Machines::from_records(records);
    let of_groups = machines.sections.into_iter().enumerate().map(|(at, section)| PlacedSection {
        name: if at == 0 { "machines".to_owned() } else { format!("machines-{}", at + 1) },
        section,
        record: None,
        machine: None,
        is_brief: false,
    });
    let of_records = records.iter().enumerate().map(|(at, record)| PlacedSection {
        name: (at + 1).to_string(),
        section: section(record, ceilings_of(record, records), records),
        record: Some(at),
        machine: machines.titles.get(&at).cloned(),
        is_brief: machines.brief.contains(&at),
    });
    of_groups.chain(of_records).collect()
}

/// The limits among the records that belong to the machine of this one.
fn ceilings_of<'r>(record: &Record, all: &[&'r Record]) -> Option<&'r Limits> {
    if matches!(record, Record::Limits(_)) {
        return None;
    }
    let machine = record.as_ref().machine();
    all.iter().find_map(|other| match other {
        Record::Limits(limits) if ceilings::are_of(limits, machine) => Some(&**limits),
        _ => None,
    })
}

/// The parts of a record. Limits of the same machine, where there are some, are held beside its results.
fn section(record: &Record, ceilings: Option<&Limits>, all: &[&Record]) -> Section {
    match record {
        Record::Trace(trace) => crate::trace::section(trace, ceilings),
        Record::Race(race) => crate::race::section(race, ceilings),
        Record::Sweep(sweep) => crate::sweep::section(sweep),
        Record::Limits(limits) => crate::limits::section(limits, all),
        Record::Copy(copy) => crate::copy::section(copy, ceilings),
        Record::D(run) => crate::d::section(run),
        Record::Anatomy(anatomy) => crate::anatomy::section(anatomy, ceilings, all),
    }
}
