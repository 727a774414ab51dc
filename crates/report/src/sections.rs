//! The section that each kind of record makes.

use iotomy_record::Limits;
use iotomy_record::store::Record;

use crate::ceilings;
use crate::section::Section;

/// The parts of each record, in their order.
pub(crate) fn all(records: &[&Record]) -> Vec<Section> {
    records.iter().map(|record| section(record, ceilings_of(record, records), records)).collect()
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
