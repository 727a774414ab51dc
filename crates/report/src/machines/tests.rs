//! Records of several machines, made for tests, and what a report has of them.

use iotomy_record::store::Record;
use iotomy_record::{
    Call, Comparison, LedgerRow, Machine, Metric, Race, RaceCommand, RaceVerdict, Spread, Times,
    Trace,
};

use crate::{PartError, Source, csv, html, looks, markdown, parts, svg};

fn machine(name: &str) -> Machine {
    Machine {
        name: name.to_owned(),
        kernel: "Linux 6.1".into(),
        cpu: "EPYC".into(),
        cpus: 4,
        virtualization: "kvm".into(),
        ..Machine::default()
    }
}

/// A trace of a command that took so many ms: a tenth of them in calls, and 1 ms blocked.
pub(super) fn trace_of(name: &str, command: &str, wall_ms: u64) -> Record {
    let mut wall_times = Times::default();
    (0..100).for_each(|at| wall_times.add(1_000 + 10 * at));
    let read = Call {
        pid: 1,
        exec: command.to_owned(),
        syscall: "read".into(),
        calls: 100,
        bytes: 4096,
        wall_ns: 900_000,
        wall_times,
        ..Call::default()
    };
    let openat = Call { syscall: "openat".into(), calls: 40, wall_ns: 100_000, ..read.clone() };
    let openat = Call { bytes: 0, wall_times: Times::default(), ..openat };
    let ledger = LedgerRow {
        pid: 1,
        exec: command.to_owned(),
        thread_ns: 3_000_000,
        user_ns: 1_000_000,
        calls_on_cpu_ns: 1_000_000,
        blocked_ns: 1_000_000,
        ..LedgerRow::default()
    };
    Record::Trace(Box::new(Trace {
        schema: Trace::SCHEMA.to_owned(),
        started: "2026-01-02T03:04:05Z".into(),
        command: vec![command.to_owned()],
        wall_ns: wall_ms * 1_000_000,
        machine: machine(name),
        calls: vec![read, openat],
        ledger: vec![ledger],
        ..Trace::default()
    }))
}

/// The trace of a record, changed.
pub(super) fn with_machine(record: Record, change: impl FnOnce(&mut Trace)) -> Record {
    let Record::Trace(mut trace) = record else { panic!("no trace") };
    change(&mut trace);
    Record::Trace(trace)
}

/// A race in which B takes so many times as long as A, with half of an interval.
pub(super) fn race_of(name: &str, ratio: f64, half: f64) -> Record {
    let command = |label: &str, ms: f64| RaceCommand {
        label: label.into(),
        command: format!("run {label}"),
        wall: Spread { runs: 20, median_ns: ms * 1e6, ..Spread::default() },
        cpu: Spread { runs: 20, median_ns: ms * 1e6, ..Spread::default() },
        ..RaceCommand::default()
    };
    Record::Race(Box::new(Race {
        schema: Race::SCHEMA.to_owned(),
        started: "2026-01-02T03:04:05Z".into(),
        machine: machine(name),
        commands: vec![command("A", 10.0), command("B", 10.0 * ratio)],
        comparisons: vec![Comparison {
            base: "A".into(),
            other: "B".into(),
            metric: Metric::Wall,
            ratio,
            ci95: [ratio - half, ratio + half],
            verdict: RaceVerdict::Slower,
            runs: 20,
            more_runs: None,
            mean_ratio: None,
            mean_ci95: None,
        }],
        ..Race::default()
    }))
}

/// Six machines, of which the fourth takes three times as long.
fn six() -> Vec<Record> {
    let each = [10, 11, 10, 31, 10, 11].into_iter().enumerate();
    each.map(|(at, wall)| trace_of(&format!("node{}", at + 1), "make", wall)).collect()
}

fn sources(records: &[Record]) -> Vec<Source<'_>> {
    records.iter().map(|record| Source { name: "run.json", record, bytes: b"{}" }).collect()
}

fn page(records: &[Record]) -> String {
    let mut page = Vec::new();
    html(&sources(records), &mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    looks::is_only_ours(&page);
    page
}

#[test]
fn a_page_of_six_machines_begins_with_them_and_names_the_outlier_alone() {
    let page = page(&six());
    let body = page.split("<main").nth(1).unwrap();
    let (machines, records) = body.split_once("id=\"r1\"").unwrap();
    assert!(machines.contains("6 machines: make"));
    assert!(machines.contains("node4 is an outlier"));
    assert_eq!(machines.matches(" is an outlier").count(), 1);
    assert!(machines.contains("wall 31 ms, 2.95 × the median (10.5 ms)"), "{machines}");
    assert_eq!(machines.matches("(outlier)</figcaption>").count(), 1);
    assert!(machines.contains("node4 (outlier)</figcaption>"));
    for at in 1..=6 {
        assert!(machines.contains(&format!("id=\"machines-machine-{at}\"")));
        assert!(page.contains(&format!("href=\"#r{at}\"><small>trace</small>node{at}</a>")));
        assert!(records.contains(&format!("<p class=\"kind\">trace · node{at}</p>")));
    }
    // Each record has all its parts.
    assert_eq!(records.matches("id=\"r6-calls\"").count(), 1);
    // No two things of a page have one id.
    let ids: Vec<&str> =
        page.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    let distinct: std::collections::BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(ids.len(), distinct.len());
}

#[test]
fn of_many_machines_only_outliers_have_all_parts_and_every_record_can_be_had() {
    let mut records = six();
    records.extend((7..=20).map(|at| trace_of(&format!("node{at}"), "make", 10)));
    let page = page(&records);
    assert!(page.contains("id=\"r4-calls\"") && !page.contains("id=\"r5-calls\""));
    assert_eq!(page.matches("Download the").count(), 20);
    assert_eq!(page.matches("of many machines, only outliers have them here").count(), 19);
    let text = markdown(&sources(&records), None).unwrap();
    assert_eq!(text.matches("\n## System calls").count() + text.matches("\n## Calls").count(), 1);
    assert!(csv(&sources(&records), Some("5/calls")).unwrap().contains("read"));
}

#[test]
fn four_machines_are_side_by_side_and_no_outlier_is_said() {
    let page = page(&six()[..4]);
    assert!(page.contains("4 machines side by side") && !page.contains("is an outlier"));
    assert!(page.contains("outliers are looked for from 5 machines on"));
}

#[test]
fn one_machine_has_no_picture_of_machines() {
    let twice = [trace_of("node1", "make", 10), trace_of("node1", "other", 10)];
    assert!(!page(&twice).contains("data-kind=\"machines\""));
    assert!(parts(&sources(&twice)).iter().all(|part| !part.name.starts_with("machines")));
}

#[test]
fn the_first_table_of_many_machines_has_the_machine_as_a_column() {
    let records = six();
    let table = csv(&sources(&records), None).unwrap();
    let head = "machine,outlier,kernel,processor,wall_ns,user_ns,in_calls_ns,blocked_ns,run_queue_delay_ns,calls,errors,bytes,\
                read_ns,p50_of_read_ns,p99_of_read_ns,openat_ns";
    assert_eq!(table.lines().next(), Some(head));
    assert_eq!(table.lines().count(), 7);
    let row = table.lines().nth(4).unwrap();
    assert!(row.starts_with("node4,wall,Linux 6.1,4 × EPYC,31000000,"), "{row}");
    assert_eq!(table.lines().filter(|line| line.contains(",,Linux 6.1,")).count(), 5, "{table}");
    let text = markdown(&sources(&records), None).unwrap();
    assert!(text.starts_with("# machines · 6 machines: make\n"), "{text}");
    assert!(text.contains("# trace · node4 · make"));
    assert_eq!(csv(&sources(&records), Some("machines/machines")), Ok(table));
    // The parts of the records keep their names.
    assert!(csv(&sources(&records), Some("2/calls")).unwrap().starts_with("call"));
    assert!(matches!(csv(&sources(&records), Some("calls")), Err(PartError::Unknown { .. })));
    assert!(svg(&sources(&records), None).unwrap().contains("wall of each machine"));
}

#[test]
fn races_have_their_ratios_with_intervals_a_row_a_machine() {
    let mut records: Vec<Record> =
        (1..=6).map(|at| race_of(&format!("node{at}"), 1.4 + 0.01 * f64::from(at), 0.02)).collect();
    records[1] = race_of("node2", 0.8, 0.02);
    let table = csv(&sources(&records), None).unwrap();
    let head = "machine,outlier,kernel,processor,B_A_wall,B_A_wall_low,B_A_wall_high,A_wall_ns,A_cpu_ns,B_wall_ns,B_cpu_ns";
    assert_eq!(table.lines().next(), Some(head));
    assert!(table.lines().nth(2).unwrap().contains(",Linux 6.1,4 × EPYC,0.8,0.78,0.82"));
    let page = page(&records);
    assert!(page.contains("node2 is an outlier") && page.matches(" is an outlier").count() == 1);
    assert!(page.contains("95 % CI: 0.78 … 0.82"), "the interval is drawn");
}

#[test]
fn groups_of_several_commands_have_a_section_each() {
    let mut records = six();
    records.extend((1..=3).map(|at| trace_of(&format!("node{at}"), "true", 1)));
    let names: Vec<String> = parts(&sources(&records)).into_iter().map(|part| part.name).collect();
    assert_eq!(names[0], "machines/machines");
    assert!(names.contains(&"machines-2/overview".to_owned()), "{names:?}");
    assert!(page(&records).contains("3 machines: true"));
}

#[test]
fn hostile_names_of_machines_are_words_in_every_form() {
    let hostile = "<img src=x onerror=alert(1)>\u{1b}[31m";
    let mut records = six();
    records[3] = with_machine(records[3].clone(), |trace| {
        trace.machine.name = hostile.into();
        trace.machine.kernel = "=1+1".into();
    });
    let page = page(&records);
    assert!(!page.contains("<img") && !page.contains('\u{1b}'));
    let sources = sources(&records);
    let table = csv(&sources, None).unwrap();
    assert!(table.contains("'=1+1") && !table.contains('\u{1b}'), "{table}");
    assert!(!markdown(&sources, None).unwrap().contains("<img"));
    // Nor do the labels of commands.
    let mut races = [race_of("node1", 1.5, 0.1), race_of("node2", 1.5, 0.1)];
    for race in &mut races {
        let Record::Race(race) = race else { panic!("no race") };
        race.commands[1].label = hostile.into();
        race.comparisons[0].other = hostile.into();
    }
    assert!(!self::page(&races).contains("<img"));
    for part in parts(&sources).iter().filter(|part| part.kind == crate::PartKind::Chart) {
        looks::is_only_ours(&svg(&sources, Some(&part.name)).unwrap());
    }
}
