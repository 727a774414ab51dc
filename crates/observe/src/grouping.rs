//! By which values calls are grouped (`--by`), and the groups.

use std::collections::HashMap;

use iotomy_record::calls::{ALL_RINGS, GROUPS, RING_PREFIX};
use iotomy_record::{Group, Groups, Key, statistic, without_numbers};

use crate::naming::{error_name, plain_name};
use crate::variables::{CallFacts, VARIABLES, fact};

/// Most variables: as many as `struct by_key` of `where.h` has words.
pub(crate) const MOST_KEYS: usize = 4;

/// The variables that calls are grouped by; none for no groups.
#[derive(Debug, Clone, Default)]
pub(crate) struct Grouping {
    /// As the user named them.
    names: Vec<String>,
    facts: Vec<u16>,
}

impl Grouping {
    /// By variables of [`VARIABLES`].
    ///
    /// # Errors
    /// There is no such variable, it is there twice, or there are too many.
    pub(crate) fn new(names: &[String]) -> Result<Self, String> {
        let mut grouping = Self::default();
        for name in names {
            let Some(variable) = VARIABLES.iter().find(|one| one.name == name) else {
                let all: Vec<&str> = VARIABLES.iter().map(|one| one.name).collect();
                return Err(format!("unknown variable {name:?}; there are {}", all.join(", ")));
            };
            if grouping.facts.contains(&variable.fact) {
                return Err(format!("{name:?} is there twice"));
            }
            grouping.names.push(name.clone());
            grouping.facts.push(variable.fact);
        }
        match grouping.facts.len() {
            0..=MOST_KEYS => Ok(grouping),
            count => Err(format!("{count} variables; calls are grouped by {MOST_KEYS} at most")),
        }
    }

    pub(crate) fn is_none(&self) -> bool {
        self.facts.is_empty()
    }

    pub(crate) fn facts(&self) -> &[u16] {
        &self.facts
    }

    /// The keys of a call, or of a ring operation, by its name: one, or one for each of its groups.
    pub(crate) fn keys(&self, name: &str, value: &dyn Fn(u16) -> Key) -> Vec<Vec<Key>> {
        let plain = plain_name(name);
        let key = |group: &str| {
            let values = self.facts.iter().map(|known| match *known {
                fact::CALL => Key::Text(name.to_owned()),
                fact::GROUP => Key::Text(group.to_owned()),
                other => value(other),
            });
            values.collect()
        };
        let groups = GROUPS.iter().filter(|group| group.calls.contains(&plain));
        let groups = groups.map(|group| group.name);
        let of_ring = name.starts_with(RING_PREFIX).then_some(ALL_RINGS);
        let groups: Vec<&str> = groups.chain(of_ring).collect();
        match self.facts.contains(&fact::GROUP) && !groups.is_empty() {
            true => groups.into_iter().map(key).collect(),
            false => vec![key("")],
        }
    }

    /// The value of a call's variable.
    pub(crate) fn value(known: u16, facts: &CallFacts) -> Key {
        let text = |texts: &[String]| Key::Text(texts.first().cloned().unwrap_or_default());
        match known {
            fact::FD => Key::Number(facts.fd),
            fact::ERRNO => error(facts.errno.cast_unsigned()),
            fact::BYTES => Key::Number(lowest(slot(facts.bytes.cast_unsigned()))),
            fact::DURATION => Key::Number(lowest(slot(facts.duration_ns.cast_unsigned()))),
            fact::THREAD => Key::Number(facts.thread),
            fact::PID => Key::Number(facts.pid),
            fact::PATH => text(&facts.paths),
            fact::IMAGE => text(&facts.images),
            fact::THREADNAME => Key::Text(facts.threadname.clone()),
            fact::PEER => Key::Text(facts.peer.clone()),
            fact::TITLE => Key::Text(without_numbers(&facts.title)),
            _ => {
                let below = facts.cgroups.iter().find(|path| *path != "/");
                Key::Text(below.or(facts.cgroups.first()).cloned().unwrap_or_default())
            }
        }
    }
}

/// An error by its name.
pub(crate) fn error(number: u64) -> Key {
    Key::Text(match number {
        0 => "ok".to_owned(),
        number => error_name(u32::try_from(number).unwrap_or(u32::MAX)),
    })
}

/// `floor(log2(value)) + 1`, and 0 for 0.
fn slot(value: u64) -> u64 {
    u64::from(u64::BITS - value.leading_zeros())
}

/// The lowest value of a slot.
pub(crate) fn lowest(slot: u64) -> i64 {
    if slot == 0 { 0 } else { 1i64.checked_shl((slot - 1) as u32).unwrap_or(i64::MAX) }
}

/// The groups so far.
#[derive(Debug, Default)]
pub(crate) struct GroupBook {
    rows: HashMap<Vec<Key>, Group>,
    lost_calls: u64,
}

impl GroupBook {
    /// Adds calls of a key, unless there is room for so many only.
    pub(crate) fn add(&mut self, key: Vec<Key>, calls: &Group, room: u32) {
        if self.rows.len() >= room as usize && !self.rows.contains_key(&key) {
            return self.lose(calls.calls);
        }
        statistic::add(self.rows.entry(key).or_default(), calls);
    }

    pub(crate) fn lose(&mut self, calls: u64) {
        self.lost_calls = self.lost_calls.saturating_add(calls);
    }

    /// For the record; `None` where nothing was to be grouped.
    pub(crate) fn into_groups(self, by: &Grouping) -> Option<Groups> {
        let mut rows: Vec<Group> =
            self.rows.into_iter().map(|(key, row)| Group { key, ..row }).collect();
        rows.sort_by(|a, b| b.wall_ns.cmp(&a.wall_ns).then_with(|| a.key.cmp(&b.key)));
        let lost_calls = self.lost_calls;
        (!by.is_none()).then(|| Groups { by: by.names.clone(), rows, lost_calls })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(names: &[&str]) -> Result<Grouping, String> {
        Grouping::new(&names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_call_has_a_key_for_each_of_its_groups() {
        let facts = CallFacts { bytes: 700, errno: 2, ..CallFacts::default() };
        let keys = |names: &[&str], call| {
            by(names).unwrap().keys(call, &|one| Grouping::value(one, &facts))
        };
        let text = |text: &str| Key::Text(text.to_owned());
        assert_eq!(keys(&["call", "bytes"], "read"), [[text("read"), Key::Number(512)]]);
        assert_eq!(
            keys(&["errno", "group"], "recvfrom"),
            [[text("ENOENT"), text("%io")], [text("ENOENT"), text("%net")]]
        );
        let facts = CallFacts { title: "worker 7: 10.0.0.1".to_owned(), ..CallFacts::default() };
        let titled = by(&["title"]).unwrap().keys("read", &|one| Grouping::value(one, &facts));
        assert_eq!(titled, [[text("worker *: *")]]);
        assert_eq!(keys(&["group"], "getpid"), [[text("")]]);
        let of_ring = keys(&["call", "group"], "ring:read");
        assert_eq!(of_ring, [[text("ring:read"), text("%ring")]]);
    }

    #[test]
    fn slots_are_powers_of_two() {
        for (value, low) in [(0, 0), (1, 1), (2, 2), (3, 2), (1023, 512), (1024, 1024)] {
            assert_eq!(lowest(slot(value)), low);
        }
        assert_eq!(lowest(slot(i64::MAX as u64)), 1 << 62);
    }

    #[test]
    fn what_is_no_variable_is_refused() {
        assert!(by(&["byte"]).unwrap_err().contains("there are call, group"));
        assert!(by(&["thread", "tid"]).unwrap_err().contains("twice"));
        assert!(by(&["call", "fd", "path", "errno", "bytes"]).unwrap_err().contains("4 at most"));
    }

    #[test]
    fn a_book_without_room_counts_what_it_loses() {
        let mut book = GroupBook::default();
        let three = Group { calls: 3, ..Group::default() };
        for key in [1, 2, 1] {
            book.add(vec![Key::Number(key)], &three, 1);
        }
        let groups = book.into_groups(&by(&["fd"]).unwrap()).unwrap();
        assert_eq!((groups.rows.len(), groups.rows[0].calls, groups.lost_calls), (1, 6, 3));
    }
}
