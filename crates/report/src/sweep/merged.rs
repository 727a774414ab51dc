//! Shards, and records that were merged from those of shards or machines: which they are, the machines,
//! and the verdicts of each.

use iotomy_record::{Claim, ClaimVerdict, Sweep, SweepMachine};

use super::{NAME, volume};
use crate::numbers::{counted, thousands};
use crate::page::{Ink, Page};
use crate::sheet::{Cell, Field, Sheet};

/// Machines whose verdicts and facts are printed, at most.
const MACHINES: usize = 8;

/// The parts of the headline.
pub(super) fn parts(record: &Sweep) -> Vec<String> {
    let run = &record.run;
    let mut parts = Vec::new();
    if let Some(shard) = &run.shard {
        parts.push(format!(
            "shard {} of {}, of {} in all",
            thousands(shard.index.into()),
            thousands(shard.of.into()),
            counted(shard.plan_cases.into(), "case", "cases")
        ));
    }
    if !run.shards.is_empty() {
        let shards = counted(run.shards.len() as u128, "shard", "shards");
        parts.push(format!("merged from {shards}"));
    }
    if !record.machines.is_empty() {
        parts.push(machines(record));
    }
    parts
}

/// How many machines there are.
pub(super) fn machines(record: &Sweep) -> String {
    counted(record.machines.len() as u128, "machine", "machines")
}

/// Says why a shard has no verdicts.
pub(super) fn print_share(page: &mut Page<'_>, record: &Sweep) {
    let Some(shard) = &record.run.shard else { return };
    let of = thousands(shard.of.into());
    let text = format!("claims are judged when the {of} shards are merged: iotomy lab merge");
    page.wrapped(&[(Ink::Plain, "  ")], Ink::Dim, &text);
}

/// The verdicts of the machines on a claim.
pub(super) fn print_verdicts(page: &mut Page<'_>, record: &Sweep, claim: &str, indent: usize) {
    let lead = " ".repeat(indent);
    let judged = record.machines.iter().filter_map(|one| Some((one, of(one, claim)?)));
    for (machine, claim) in judged.take(MACHINES) {
        let name = page.name(&machine.machine.name, NAME);
        let ink = match claim.verdict {
            ClaimVerdict::Holds => Ink::Green,
            ClaimVerdict::Fails => Ink::Red,
            ClaimVerdict::Inconclusive => Ink::Yellow,
        };
        let because = page.sentence(&claim.because);
        let verdict = claim.verdict.name();
        let lead = [
            (Ink::Plain, lead.as_str()),
            (Ink::Plain, name.as_str()),
            (Ink::Plain, " "),
            (ink, verdict),
            (Ink::Plain, ": "),
        ];
        page.wrapped(&lead, Ink::Dim, &because);
    }
    more(page, record, &lead);
}

/// The machines, a line each.
pub(super) fn print_machines(page: &mut Page<'_>, record: &Sweep) {
    for one in record.machines.iter().take(MACHINES) {
        let facts = facts(page, one).join(" · ");
        let name = page.name(&one.machine.name, NAME);
        let lead = [(Ink::Dim, "  "), (Ink::Dim, name.as_str()), (Ink::Dim, ": ")];
        page.wrapped(&lead, Ink::Dim, &facts);
    }
    more(page, record, "  ");
}

fn more(page: &mut Page<'_>, record: &Sweep, lead: &str) {
    let more = record.machines.len().saturating_sub(MACHINES);
    if more > 0 {
        let more = counted(more as u128, "more machine", "more machines");
        page.wrapped(&[(Ink::Plain, lead)], Ink::Dim, &format!("{more}: iotomy report has all"));
    }
}

fn of<'a>(machine: &'a SweepMachine, claim: &str) -> Option<&'a Claim> {
    machine.claims.iter().find(|one| one.id == claim)
}

/// A machine in a few words.
fn facts(page: &Page<'_>, one: &SweepMachine) -> Vec<String> {
    let mut facts = vec![page.name(&one.machine.kernel, 60)];
    if !one.machine.cpu.is_empty() {
        facts.push(format!("{} x {}", one.machine.cpus, page.name(&one.machine.cpu, 60)));
    }
    facts.extend(one.volume.as_ref().map(|of| volume(page, of)));
    facts.retain(|fact| !fact.is_empty());
    facts
}

/// A row for each claim and machine.
pub(super) fn verdicts(page: &Page<'_>, record: &Sweep) -> Option<Sheet> {
    let fields = vec![
        Field::text("claim", "claim"),
        Field::text("machine", "machine"),
        Field::text("verdict", "verdict"),
        Field::text("because", "because"),
    ];
    let mut sheet = Sheet::new("claims-by-machine", "Claims on each machine", fields);
    for claim in &record.claims {
        for machine in &record.machines {
            let Some(found) = of(machine, &claim.id) else { continue };
            sheet.push(vec![
                Cell::text(page.name(&claim.id, 60)),
                Cell::text(page.name(&machine.machine.name, 60)),
                Cell::text(found.verdict.name()),
                Cell::text(page.name(&found.because, 2_000)),
            ]);
        }
    }
    (!sheet.rows.is_empty()).then_some(sheet)
}

/// A row for each machine.
pub(super) fn machine_sheet(page: &Page<'_>, record: &Sweep) -> Option<Sheet> {
    let fields = vec![
        Field::text("machine", "machine"),
        Field::text("started", "started"),
        Field::text("facts", "facts"),
        Field::number("cases", "cases", ""),
    ];
    let mut sheet = Sheet::new("machines", "Machines", fields);
    for one in &record.machines {
        let name = &one.machine.name;
        let is_its = |value: &iotomy_record::AxisValue| matches!(value, iotomy_record::AxisValue::Name(of) if of == name);
        let cases = record.cases.iter().filter(|case| {
            case.params.get(Sweep::MACHINE).is_some_and(is_its) && !case.samples.is_empty()
        });
        sheet.push(vec![
            Cell::text(page.name(name, 60)),
            Cell::text(page.name(&one.started, 60)),
            Cell::text(facts(page, one).join(" · ")),
            Cell::count(cases.count() as u128),
        ]);
    }
    sheet.folded = true;
    (!sheet.rows.is_empty()).then_some(sheet)
}
