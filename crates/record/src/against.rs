//! The comparison of two records: differences of their conditions, and of their measures.

use serde::{Deserialize, Serialize};

use crate::{Machine, RaceVerdict};

/// A record compared with an earlier one. They were not made in turn, so their runs are not paired.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Against {
    /// The earlier one's name, or its number in the history.
    pub baseline: String,
    /// When it was made, RFC 3339; of several sessions the newest.
    pub started: String,
    /// The numbers in the history of the sessions that are the baseline, the newest last; empty in
    /// records of before baselines were of several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<u64>,
    /// Differences in the conditions, and measures that could not be compared.
    pub differences: Vec<Difference>,
    /// One entry a measure that both have.
    pub changes: Vec<Change>,
}

/// Something around two records that is not the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The condition that differs: `kernel`, `cpu`, `iotomy`…
    pub what: String,
    /// Of the earlier record; may be empty.
    pub then: String,
    /// Of the later one; may be empty.
    pub now: String,
    /// Whether it may be the reason for a difference of times, so that there is no verdict.
    pub matters: bool,
}

impl Difference {
    /// The kind of difference between commands. Where one side is empty, only the other record has
    /// the command, and it is compared with nothing.
    pub const COMMAND: &str = "command";
}

/// A measure of two records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// The subject of the measure: a command, a limit, a case.
    pub subject: String,
    /// Which of its measures: `wall`, `cpu`…
    pub measure: String,
    /// The unit: `ns`, `bytes/s`; empty for a count.
    pub unit: String,
    /// The middle of the earlier one; of a baseline of several sessions, of these.
    pub then: f64,
    /// The middle of the later one.
    pub now: f64,
    /// Measurements of the earlier one.
    pub runs_then: u64,
    /// Measurements of the later one.
    pub runs_now: u64,
    /// later ÷ earlier, in the middle; absent where the earlier one is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// Its interval, of 95 %; absent with too few measurements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
    /// The verdict on the later value, more time being slower; absent for counts, which are equal
    /// or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<RaceVerdict>,
    /// Sessions of the baseline; from three on the spread between sessions is known.
    #[serde(default)]
    pub sessions: u64,
    /// The least difference that is called one: 0.01 is 1 %.
    #[serde(default)]
    pub min_effect: f64,
    /// About how many more runs of the later one would decide, where more runs would.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_runs: Option<u64>,
    /// The least and the greatest of the sessions of the baseline, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
}

impl Machine {
    /// The differences between this machine, of an earlier record, and the machine of a later
    /// record. Memory is not compared: a guest's may grow and shrink as it runs.
    pub fn differences(&self, now: &Self) -> Vec<Difference> {
        let number = |number: u32| number.to_string();
        let bytes = crate::numbers::bytes;
        let memory = |machine: &Self| bytes(u128::from(machine.memory_bytes >> 20) << 20);
        let is_named = !self.name.is_empty() && !now.name.is_empty();
        let name = |machine: &Self| if is_named { machine.name.clone() } else { String::new() };
        let rows = [
            ("machine", name(self), name(now), true),
            ("kernel", self.kernel.clone(), now.kernel.clone(), true),
            ("cpu", self.cpu.clone(), now.cpu.clone(), true),
            ("cpus", number(self.cpus), number(now.cpus), true),
            ("memory", memory(self), memory(now), false),
            ("virtualization", self.virtualization.clone(), now.virtualization.clone(), true),
            ("clock", self.clock.clone(), now.clock.clone(), true),
        ];
        let mut found: Vec<Difference> = rows
            .into_iter()
            .filter(|(_, then, now, _)| then != now)
            .map(|(what, then, now, matters)| Difference {
                what: what.to_owned(),
                then,
                now,
                matters,
            })
            .collect();
        found.extend(mitigations(&self.mitigations, &now.mitigations));
        found
    }
}

/// Only the weaknesses whose mitigation differs: the full list is long.
fn mitigations(then: &str, now: &str) -> Option<Difference> {
    if then == now {
        return None;
    }
    let only = |one: &str, other: &str| {
        let others: Vec<&str> = other.split("; ").collect();
        let alone = one.split("; ").filter(|part| !others.contains(part));
        alone.collect::<Vec<_>>().join("; ")
    };
    Some(Difference {
        what: "mitigations".to_owned(),
        then: only(then, now),
        now: only(now, then),
        matters: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_between_machines_is_told_and_memory_does_not_matter() {
        let then = Machine {
            kernel: "Linux 6.1".into(),
            memory_bytes: 2 << 30,
            mitigations: "a: x; b: y".into(),
            ..Machine::default()
        };
        assert!(then.differences(&then).is_empty());
        let now = Machine {
            kernel: "Linux 6.18".into(),
            memory_bytes: 3 << 30,
            mitigations: "a: x; b: z".into(),
            ..Machine::default()
        };
        let found = then.differences(&now);
        let told: Vec<_> = found.iter().map(|d| (d.what.as_str(), d.matters)).collect();
        assert_eq!(told, [("kernel", true), ("memory", false), ("mitigations", true)]);
        assert_eq!((found[2].then.as_str(), found[2].now.as_str()), ("b: y", "b: z"));
        let named = |name: &str| Machine { name: name.into(), ..then.clone() };
        let found = named("node1").differences(&named("node2"));
        assert_eq!((found[0].what.as_str(), found[0].matters, found.len()), ("machine", true, 1));
        // One of before machines had names may be the same.
        assert!(then.differences(&named("node1")).is_empty());
    }
}
