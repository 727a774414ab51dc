//! The list of abilities as text: the answer in the first line, then the machine, then a line per
//! ability, none wider than requested.
//!
//! It sees results only and tries nothing. Colour repeats the meaning of a word.

use std::fmt::Write;

use iotomy_doctor::{Outcome, TriedAbility};
use iotomy_record::{Machine, message};
use iotomy_report::Style;

use super::Findings;

const BOLD: &str = "\x1b[1m";
const GREEN: &str = "\x1b[32m";
const YELLOW: &str = "\x1b[33m";
const RESET: &str = "\x1b[0m";

/// The whole list.
pub(super) fn text(found: &Findings, style: &Style) -> String {
    let mut page = Page {
        text: String::new(),
        color: style.color,
        unicode: style.unicode,
        width: style.width,
    };
    page.styled(BOLD, &summary(found));
    page.text.push_str("\n\n");
    machine(&mut page, &found.machine);
    let names = found.abilities.iter().map(|tried| tried.name.len()).max().unwrap_or(0);
    let mut group = "";
    for tried in &found.abilities {
        if tried.group != group {
            group = tried.group;
            page.heading(group);
        }
        ability(&mut page, tried, names);
    }
    page.text
}

fn summary(found: &Findings) -> String {
    let ready = found.abilities.iter().filter(|tried| tried.outcome.is_ready()).count();
    let trace = match found.observer() {
        Some(name) => format!("trace uses {name}"),
        None => "trace has no observer here".to_owned(),
    };
    format!("{ready} of {} capabilities supported on this machine; {trace}", found.abilities.len())
}

fn machine(page: &mut Page, machine: &Machine) {
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
        let _ = write!(page.text, "  {name:<14}  ");
        page.wrapped(18, "", &value);
    }
}

fn ability(page: &mut Page, tried: &TriedAbility, names: usize) {
    /// The longer of both words, so that the next column is aligned.
    const STATE: usize = 5;
    let (style, state) = if tried.outcome.is_ready() { (GREEN, "ready") } else { (YELLOW, "not") };
    page.text.push_str("  ");
    page.styled(style, state);
    let _ = write!(page.text, "{:1$}", "", STATE - state.len());
    let _ = write!(page.text, "  {:<names$}  ", tried.name);
    let indent = 2 + STATE + 2 + names + 2;
    match &tried.outcome {
        Outcome::Ready(detail) => page.wrapped(indent, "", detail),
        Outcome::Missing { reason, remedy } => {
            page.wrapped(indent, "", reason);
            for (label, text) in [("for: ", tried.purpose), ("try: ", remedy)] {
                let _ = write!(page.text, "{:indent$}", "");
                page.wrapped(indent, label, text);
            }
        }
    }
}

/// Text in the making.
struct Page {
    text: String,
    color: bool,
    unicode: bool,
    width: usize,
}

impl Page {
    fn styled(&mut self, style: &str, text: &str) {
        let (before, after) = if self.color { (style, RESET) } else { ("", "") };
        let text = message(text, self.unicode);
        let _ = write!(self.text, "{before}{text}{after}");
    }

    fn heading(&mut self, text: &str) {
        self.text.push('\n');
        self.styled(BOLD, text);
        self.text.push('\n');
    }

    /// Ends the line that is `indent` columns long with `label` and `text`; text that does not fit
    /// continues below, aligned.
    fn wrapped(&mut self, indent: usize, label: &str, text: &str) {
        let indent = indent + label.len();
        self.text.push_str(label);
        // Named directories are part of it.
        let text = message(text, self.unicode);
        for (at, line) in lines(&text, self.width.saturating_sub(indent)).iter().enumerate() {
            if at > 0 {
                let _ = write!(self.text, "\n{:indent$}", "");
            }
            self.text.push_str(line);
        }
        while self.text.ends_with(' ') {
            self.text.pop();
        }
        self.text.push('\n');
    }
}

/// `text` broken at spaces, or inside a word that is too long for a line.
fn lines(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > width {
            lines.push(String::new());
            used = 0;
        }
        for (at, character) in word.chars().enumerate() {
            if used == width {
                lines.push(String::new());
                used = 0;
            }
            if let Some(line) = lines.last_mut() {
                if at == 0 && used > 0 {
                    line.push(' ');
                    used += 1;
                }
                line.push(character);
                used += 1;
            }
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Style = Style { color: false, unicode: true, width: 100 };

    fn tried(name: &'static str, group: &'static str, outcome: Outcome) -> TriedAbility {
        TriedAbility { name, group, purpose: "race: cold runs", outcome }
    }

    fn findings() -> Findings {
        let missing = |reason: &str, remedy: &str| Outcome::Missing {
            reason: reason.to_owned(),
            remedy: remedy.to_owned(),
        };
        Findings {
            started: "2026-01-02T03:04:05.006Z".to_owned(),
            machine: Machine {
                kernel: "Linux 6.1 x86_64".to_owned(),
                cpu: "Some CPU".to_owned(),
                cpus: 2,
                memory_bytes: 3 << 30,
                virtualization: "none".to_owned(),
                mitigations: "unknown".to_owned(),
                clock: "tsc".to_owned(),
            },
            abilities: vec![
                tried("bpf", "observers", missing("bpf: EPERM", "run as root")),
                tried("ptrace", "observers", Outcome::Ready("calls are slowed".to_owned())),
                tried("btf", "watching", missing(&"word ".repeat(30), &"x".repeat(120))),
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
        assert_eq!(text(&findings(), &PLAIN), expected);
    }

    #[test]
    fn color_adds_nothing_but_color() {
        let mut colored = text(&findings(), &Style { color: true, ..PLAIN });
        assert!(colored.contains(GREEN) && colored.contains(YELLOW));
        for style in [BOLD, GREEN, YELLOW, RESET] {
            colored = colored.replace(style, "");
        }
        assert_eq!(colored, text(&findings(), &PLAIN));
    }

    #[test]
    fn no_line_is_wider_than_the_page_and_no_word_is_lost() {
        for width in 1..40 {
            let source = "a bb ccc dddd eeeeeeeeeeeeeeeeeeeeeeeeeeeeeee f é 日本";
            let broken = lines(source, width);
            assert!(broken.iter().all(|line| line.chars().count() <= width), "{broken:?}");
            let letters = |text: &str| text.split_whitespace().collect::<String>();
            assert_eq!(letters(&broken.join(" ")), letters(source));
        }
    }

    #[test]
    fn a_machine_that_tells_nothing_is_unknown() {
        let silent = Findings { machine: Machine::default(), ..findings() };
        let list = text(&silent, &PLAIN);
        assert!(list.contains("processor       unknown\n  memory          unknown\n"), "{list}");
    }

    #[test]
    fn without_an_observer_the_summary_says_so() {
        let mut none = findings();
        none.abilities.retain(|tried| tried.group != "observers");
        assert!(
            text(&none, &PLAIN)
                .starts_with("0 of 1 capabilities supported on this machine; trace has no")
        );
    }
}
