//! For tests: has what is named in `IOTOMY_REFUSE` be refused, as some kernel may refuse it.
//!
//! The variable has items `KIND=NAME:ERRNO`, separated by commas: `section=iter/task:EPERM`,
//! `program=sample:EINVAL`, `map=27:EPERM` (a type, by its number), `helper=181:EINVAL`, `command=batch:EPERM`,
//! `event=perf:EACCES`. A helper is refused by the kernel itself: it gets a number that no kernel has.

use super::helper_calls::{BEYOND, helper_calls};
use super::parts::Parts;
use super::refusal::Verdict;

const VARIABLE: &str = "IOTOMY_REFUSE";

/// What is refused.
#[derive(Debug, Default)]
pub(super) struct Refusing(Vec<[String; 3]>);

impl Refusing {
    pub(super) fn from_environment() -> Self {
        Self::parse(&std::env::var(VARIABLE).unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let item = |item: &str| {
            let (kind, rest) = item.split_once('=')?;
            let (name, answer) = rest.rsplit_once(':')?;
            Some([kind, name, answer].map(str::to_owned))
        };
        Self(text.split(',').filter_map(item).collect())
    }

    fn answer(&self, kind: &str, name: &str) -> Option<&str> {
        let is_it = |item: &&[String; 3]| item[0] == kind && item[1] == name;
        self.0.iter().find(is_it).map(|[.., answer]| answer.as_str())
    }

    /// The error number for an operation that is no part of an object.
    pub(super) fn operation(&self, kind: &str, name: &str) -> Option<u32> {
        self.answer(kind, name).and_then(iotomy_sys::errno::number)
    }

    /// The first part of an object that is refused: maps are made before programs are loaded.
    pub(super) fn refused(&self, parts: &Parts) -> Option<Verdict> {
        let map = parts.maps.iter().find_map(|(name, kind)| {
            let answer = self.answer("map", &kind.to_string())?.to_owned();
            Some(Verdict { map: Some(name.clone()), answer, ..Verdict::default() })
        });
        map.or_else(|| {
            parts.programs.iter().find_map(|(name, section)| {
                let by_name = self.answer("program", name);
                let answer = by_name.or_else(|| self.answer("section", section))?.to_owned();
                Some(Verdict { program: Some(name.clone()), answer, ..Verdict::default() })
            })
        })
    }

    /// Gives refused helpers numbers that no kernel has.
    pub(super) fn change_helpers(&self, bytes: &mut [u8]) {
        let number = |[kind, name, _]: &[String; 3]| (kind == "helper").then(|| name.parse().ok());
        let refused: Vec<u32> = self.0.iter().filter_map(number).flatten().collect();
        if refused.is_empty() {
            return;
        }
        for (at, helper) in helper_calls(bytes) {
            if refused.contains(&helper) {
                bytes[at..at + 4].copy_from_slice(&(helper + BEYOND).to_ne_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_read_and_others_passed_over() {
        let refusing =
            Refusing::parse("section=iter/task:EPERM,map=27:EINVAL,nonsense,helper=181:EINVAL");
        assert_eq!(refusing.answer("section", "iter/task"), Some("EPERM"));
        assert_eq!(refusing.operation("map", "27"), Some(22));
        assert_eq!(refusing.answer("map", "2"), None);
        let parts = Parts {
            programs: vec![("adopt".to_owned(), "iter/task".to_owned())],
            maps: vec![("deaths".to_owned(), 27), ("calls".to_owned(), 1)],
        };
        let refused = refusing.refused(&parts).unwrap();
        assert_eq!((refused.map.as_deref(), &*refused.answer), (Some("deaths"), "EINVAL"));
        let refusing = Refusing::parse("section=iter/task:EPERM");
        assert_eq!(refusing.refused(&parts).unwrap().program.as_deref(), Some("adopt"));
        assert!(Refusing::parse("").refused(&parts).is_none());
    }
}
