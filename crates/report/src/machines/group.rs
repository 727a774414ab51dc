//! Records of several machines that are of the same: one kind, and one command or other subject.
//!
//! A machine is told from others by its name, processor, number of CPUs and hypervisor; one without a name by these and its
//! kernel. Several records of a machine are one row, and the same record twice counts once.

use std::collections::BTreeMap;

use iotomy_record::measures::subject;
use iotomy_record::store::{Record, RecordRef};
use iotomy_record::{Machine, natural};

/// Records that are put into one picture.
#[derive(Debug)]
pub(super) struct Group {
    /// `trace`, `race`…
    pub(super) kind: &'static str,
    /// What they are of.
    pub(super) subject: String,
    /// Two machines at least, by their titles.
    pub(super) members: Vec<Member>,
}

/// A machine of a group.
#[derive(Debug)]
pub(super) struct Member {
    /// What it is called among the others: unique in the group.
    pub(super) title: String,
    /// As its newest record has it.
    pub(super) machine: Machine,
    /// The places of its records among all, those that are there twice only once; the oldest first.
    pub(super) records: Vec<usize>,
}

/// The groups of these records, in the order in which each begins. Records of one machine alone are in none.
pub(super) fn groups(records: &[&Record]) -> Vec<Group> {
    let mut kinds: Vec<(&'static str, String, Vec<usize>)> = Vec::new();
    for (at, record) in records.iter().enumerate() {
        let Some(kind) = kind(record.as_ref()) else { continue };
        let subject = subject(record.as_ref());
        match kinds.iter_mut().find(|one| (one.0, &one.1) == (kind, &subject)) {
            Some(found) => found.2.push(at),
            None => kinds.push((kind, subject, vec![at])),
        }
    }
    let each = kinds.into_iter().map(|(kind, subject, places)| Group {
        kind,
        subject,
        members: members(records, &places),
    });
    each.filter(|group| group.members.len() > 1).collect()
}

/// The kind of a record that has figures to be put beside those of others. Experiments have an axis of machines of their
/// own, by `lab merge`.
fn kind(record: RecordRef<'_>) -> Option<&'static str> {
    match record {
        RecordRef::Trace(_) => Some("trace"),
        RecordRef::Anatomy(_) => Some("anatomy"),
        RecordRef::Race(_) => Some("race"),
        RecordRef::Copy(_) => Some("copy"),
        RecordRef::Limits(_) => Some("limits"),
        RecordRef::D(_) => Some("d"),
        RecordRef::Sweep(_) => None,
    }
}

fn members(records: &[&Record], places: &[usize]) -> Vec<Member> {
    let mut machines: BTreeMap<(String, String, String), Vec<usize>> = BTreeMap::new();
    for at in places {
        let of_machine = machines.entry(identity(records[*at].as_ref().machine())).or_default();
        // Two that began at once are rare, and are compared whole.
        let started = |at: usize| records[at].as_ref().started();
        let is_again =
            |other: &usize| started(*other) == started(*at) && records[*other] == records[*at];
        if !of_machine.iter().any(is_again) {
            of_machine.push(*at);
        }
    }
    let mut members: Vec<Member> = machines
        .into_values()
        .map(|mut places| {
            places.sort_by_key(|at| (records[*at].as_ref().started(), *at));
            let newest = records[places[places.len() - 1]].as_ref();
            Member {
                title: newest.machine().title(),
                machine: newest.machine().clone(),
                records: places,
            }
        })
        .collect();
    tell_apart(&mut members);
    members.sort_by_key(|member| natural(&member.title));
    members
}

fn identity(machine: &Machine) -> (String, String, String) {
    let kernel = if machine.name.is_empty() { machine.kernel.clone() } else { String::new() };
    (machine.name.clone(), machine.hardware(), kernel)
}

/// Gives machines of one title their hardware behind it.
fn tell_apart(members: &mut [Member]) {
    let titles: Vec<String> = members.iter().map(|member| member.title.clone()).collect();
    for member in members {
        if titles.iter().filter(|title| **title == member.title).count() > 1 {
            member.title = format!("{} ({})", member.title, member.machine.hardware());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{trace_of, with_machine};
    use super::*;

    fn titles(records: &[Record]) -> Vec<Vec<String>> {
        let records: Vec<&Record> = records.iter().collect();
        let titles = |group: &Group| group.members.iter().map(|one| one.title.clone()).collect();
        groups(&records).iter().map(titles).collect()
    }

    #[test]
    fn records_of_one_command_on_several_machines_are_a_group_in_the_order_of_names() {
        let records = [
            trace_of("node10", "make", 10),
            trace_of("node9", "make", 10),
            trace_of("node9", "other", 10),
            trace_of("node1", "make", 10),
        ];
        assert_eq!(titles(&records), [["node1", "node9", "node10"]]);
        assert!(titles(&records[..1]).is_empty());
    }

    #[test]
    fn several_records_of_a_machine_are_one_row_and_a_record_twice_counts_once() {
        let again = |started: &str| {
            with_machine(trace_of("node1", "make", 10), |trace| trace.started = started.to_owned())
        };
        let records = [
            again("2026-01-02T00:00:00Z"),
            again("2026-01-01T00:00:00Z"),
            again("2026-01-02T00:00:00Z"),
            trace_of("node2", "make", 10),
        ];
        let records: Vec<&Record> = records.iter().collect();
        let found = groups(&records);
        assert_eq!(found[0].members[0].records, [1, 0]);
    }

    #[test]
    fn one_name_with_two_processors_is_two_machines_and_another_kernel_is_the_same() {
        let other = |change: fn(&mut Machine)| {
            with_machine(trace_of("node1", "make", 10), |trace| change(&mut trace.machine))
        };
        let records =
            [other(|one| one.kernel = "Linux 6.18".into()), trace_of("node1", "make", 10)];
        assert!(titles(&records).is_empty());
        let records = [other(|one| one.cpus = 64), trace_of("node1", "make", 10)];
        assert_eq!(titles(&records), [["node1 (4 x EPYC · kvm)", "node1 (64 x EPYC · kvm)"]]);
    }

    #[test]
    fn machines_without_names_are_told_apart_by_processor_and_kernel() {
        let other = |change: fn(&mut Machine)| {
            with_machine(trace_of("", "make", 10), |trace| change(&mut trace.machine))
        };
        let records = [
            other(|one| one.kernel = "Linux 6.18".into()),
            trace_of("", "make", 10),
            other(|one| one.cpu = "Xeon".into()),
        ];
        let wanted = ["4 x EPYC, Linux 6.1", "4 x EPYC, Linux 6.18", "4 x Xeon, Linux 6.1"];
        assert_eq!(titles(&records), [wanted]);
    }
}
