//! [`DoctorRun`] as text: the answer in the first line, then the machine, then a line per check.

use iotomy_record::{DoctorRun, Machine, TriedCheck};

use crate::Style;
use crate::page::{Ink, Page};

/// The record as the text a terminal shows, ending in a line break.
pub fn doctor(record: &DoctorRun, style: &Style) -> String {
    let mut page = Page::new(style);
    page.wrapped(&[], Ink::Bold, &summary(record));
    page.blank();
    machine(&mut page, &record.machine);
    let names = record.checks.iter().map(|tried| tried.name.len()).max().unwrap_or(0);
    let mut group = "";
    for tried in &record.checks {
        if tried.group != group {
            group = tried.group;
            page.blank();
            page.line(&[(Ink::Bold, group)]);
        }
        check(&mut page, tried, names);
    }
    page.finish()
}

fn summary(record: &DoctorRun) -> String {
    let ready = record.checks.iter().filter(|tried| tried.ready).count();
    let trace = match record.observer() {
        Some(name) => format!("trace uses {name}"),
        None => "trace has no observer here".to_owned(),
    };
    format!("{ready} of {} capabilities supported on this machine; {trace}", record.checks.len())
}

fn machine(page: &mut Page<'_>, machine: &Machine) {
    // The record has 0 for facts that the kernel did not report.
    let known = |number: u64, text: String| if number == 0 { "unknown".to_owned() } else { text };
    let mib = machine.memory_bytes >> 20;
    let rows = [
        ("kernel", machine.kernel.clone()),
        ("processor", known(machine.cpus.into(), format!("{} x {}", machine.cpus, machine.cpu))),
        ("memory", known(mib, format!("{mib} MiB"))),
        ("virtualization", machine.virtualization.clone()),
        ("clock", machine.clock.clone()),
        ("mitigations", machine.mitigations.clone()),
    ];
    for (name, value) in rows {
        let value = page.sentence(&value);
        page.hanging(&[(Ink::Plain, &format!("  {name:<14}  "))], Ink::Plain, &value);
    }
}

fn check(page: &mut Page<'_>, tried: &TriedCheck, names: usize) {
    let (ink, state) = if tried.ready { (Ink::Green, "ready") } else { (Ink::Yellow, "not") };
    // The longer of both words, so that the next column is aligned.
    let name = format!("{:1$}  {2:<names$}  ", "", "ready".len() - state.len(), tried.name);
    let lead = [(Ink::Plain, "  "), (ink, state), (Ink::Plain, &name)];
    let said = tried.detail.as_deref().or(tried.reason.as_deref()).unwrap_or_default();
    // Named directories are part of it.
    let said = page.sentence(said);
    page.hanging(&lead, Ink::Plain, &said);
    if let Some(remedy) = &tried.remedy {
        let indent = 2 + "ready".len() + 2 + names + 2;
        for (label, text) in [("for: ", tried.purpose), ("try: ", remedy)] {
            let (lead, text) = (format!("{:indent$}{label}", ""), page.sentence(text));
            page.hanging(&[(Ink::Plain, &lead)], Ink::Plain, &text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::looks::{is_only_coloured, keeps_to};

    const PLAIN: Style = Style { color: false, unicode: true, width: 100, table_width: 0 };

    fn ready(name: &'static str, group: &'static str, detail: &str) -> TriedCheck {
        let (purpose, detail) = ("race: cold runs", Some(detail.to_owned()));
        TriedCheck { name, group, purpose, ready: true, detail, reason: None, remedy: None }
    }

    fn missing(name: &'static str, group: &'static str, [reason, remedy]: [&str; 2]) -> TriedCheck {
        let [reason, remedy] = [reason, remedy].map(|text| Some(text.to_owned()));
        TriedCheck { ready: false, detail: None, reason, remedy, ..ready(name, group, "") }
    }

    fn record() -> DoctorRun {
        DoctorRun {
            schema: DoctorRun::SCHEMA,
            started: "2026-01-02T03:04:05.006Z".to_owned(),
            machine: Machine {
                kernel: "Linux 6.1 x86_64".to_owned(),
                cpu: "Some CPU".to_owned(),
                cpus: 2,
                memory_bytes: 3 << 30,
                virtualization: "none".to_owned(),
                mitigations: "unknown".to_owned(),
                clock: "tsc".to_owned(),
                name: String::new(),
            },
            checks: vec![
                missing("bpf", "observers", ["bpf: EPERM", "run as root"]),
                ready("ptrace", "observers", "calls are slowed"),
                missing("btf", "watching", [&"word ".repeat(30), &"x".repeat(120)]),
            ],
        }
    }

    #[test]
    fn the_answer_comes_first_and_remedies_stand_below_their_reasons() {
        let expected = format!(
            "1 of 3 capabilities supported on this machine; trace uses ptrace

  kernel          Linux 6.1 x86_64
  processor       2 x Some CPU
  memory          3072 MiB
  virtualization  none
  clock           tsc
  mitigations     unknown

observers
  not    bpf     bpf: EPERM
                 for: race: cold runs
                 try: run as root
  ready  ptrace  calls are slowed

watching
  not    btf     {}
                 {}
                 for: race: cold runs
                 try: {}
                      {}
",
            ["word"; 16].join(" "),
            ["word"; 14].join(" "),
            "x".repeat(78),
            "x".repeat(42),
        );
        assert_eq!(doctor(&record(), &PLAIN), expected);
    }

    #[test]
    fn a_list_keeps_to_its_width_and_colour_adds_nothing() {
        is_only_coloured(|style| doctor(&record(), style));
        for (width, unicode) in [(60, false), (61, true), (100, true)] {
            keeps_to(width, unicode, |style| doctor(&record(), style));
        }
    }

    #[test]
    fn a_machine_that_tells_nothing_is_unknown() {
        let silent = DoctorRun { machine: Machine::default(), ..record() };
        let list = doctor(&silent, &PLAIN);
        assert!(list.contains("processor       unknown\n  memory          unknown\n"), "{list}");
    }

    #[test]
    fn without_an_observer_the_summary_says_so() {
        let mut none = record();
        none.checks.retain(|tried| tried.group != "observers");
        assert!(
            doctor(&none, &PLAIN)
                .starts_with("0 of 1 capabilities supported on this machine; trace has no")
        );
    }
}
