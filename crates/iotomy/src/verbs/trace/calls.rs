//! `--call`: names and groups to a set of calls, and one of ring operations.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use iotomy_observe::{
    call_advice, is_call, is_ring_operation, nearest, nearest_call, ring_operations,
};
use iotomy_record::calls::{ALL_RINGS, GROUPS, RING_PREFIX, group};
use iotomy_sys::syscalls::{self, Abi};

/// The help of `--call`, with every group.
pub(super) fn help() -> String {
    let mut help = String::from(
        "Count only these system calls, ring operations and groups, as in read,%file,ring:send_zc\n\n\
         Groups:",
    );
    for (name, summary) in groups() {
        help.push_str(&format!("\n- {name:<9} {summary}"));
    }
    help
}

/// All groups, with a summary of each.
pub(in crate::verbs) fn groups() -> impl Iterator<Item = (&'static str, &'static str)> {
    let groups = GROUPS.iter().map(|group| (group.name, group.summary));
    groups.chain([(ALL_RINGS, "all operations of io_uring; ring:NAME is one of them")])
}

/// What is counted; `None` for all.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    pub(super) calls: Option<BTreeSet<String>>,
    pub(super) ring_operations: Option<BTreeSet<String>>,
}

/// The calls and ring operations that `words` name, themselves or by their group; all, when there are none.
///
/// # Errors
/// A word names neither a call nor a ring operation nor a group.
pub(super) fn chosen(words: &[String]) -> Result<Chosen> {
    if words.is_empty() {
        return Ok(Chosen::default());
    }
    let mut calls = BTreeSet::new();
    let mut operations = Some(BTreeSet::new());
    for word in words {
        if word == ALL_RINGS {
            operations = None;
        } else if let Some(operation) = word.strip_prefix(RING_PREFIX) {
            if !is_ring_operation(operation) {
                let known: Vec<&str> = ring_operations().collect();
                let near = nearest(operation, ring_operations());
                let near = near.map_or_else(String::new, |near| {
                    format!("; did you mean {RING_PREFIX}{near}?")
                });
                bail!(
                    "unknown ring operation {operation:?}; the operations are {}{near}",
                    known.join(", ")
                );
            }
            operations.iter_mut().for_each(|all| _ = all.insert(operation.to_owned()));
        } else if word.starts_with('%') {
            let Some(group) = group(word) else {
                let groups: Vec<&str> = groups().map(|(name, _)| name).collect();
                let near = nearest(word, groups.iter().copied());
                let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
                bail!("unknown group {word}; the groups are {}{near}", groups.join(", "));
            };
            calls.extend(group.calls.iter().map(|&call| call.to_owned()));
        } else if is_call(word) {
            calls.insert(word.clone());
        } else {
            bail!("unknown system call {word:?}; {}", advice(word));
        }
    }
    Ok(Chosen { calls: Some(calls), ring_operations: operations })
}

/// Calls whose names contain the word, or are contained in it.
fn advice(word: &str) -> String {
    if is_ring_operation(word) {
        return format!("did you mean {RING_PREFIX}{word}?");
    }
    if let Some(advice) = call_advice(word) {
        return advice;
    }
    let known = (0..512).map(|number| syscalls::name(Abi::X86_64, number));
    let alike: Vec<String> = known
        .filter(|name| !name.starts_with("syscall_"))
        .filter(|name| word.len() > 1 && (name.contains(word) || word.contains(name.as_str())))
        .take(6)
        .collect();
    if let Some(near) = nearest_call(word) {
        format!("did you mean {near}?")
    } else if alike.is_empty() {
        String::from("names are those of man 2, as in --call read,write,%file")
    } else {
        format!("did you mean {}?", alike.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen_by(words: &[&str]) -> Result<Chosen> {
        chosen(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
    }

    fn refused(word: &str) -> String {
        chosen_by(&["read", word]).unwrap_err().to_string()
    }

    #[test]
    fn no_word_means_everything() {
        let all = chosen_by(&[]).unwrap();
        assert_eq!((all.calls, all.ring_operations), (None, None));
    }

    #[test]
    fn groups_and_names_add_up() {
        let words = ["getppid", "%poll", "syscall_500", "syscall_other"];
        let Chosen { calls, ring_operations } = chosen_by(&words).unwrap();
        let set = calls.unwrap();
        assert!(set.contains("syscall_500") && set.contains("syscall_other"));
        assert!(set.contains("getppid") && set.contains("epoll_wait") && !set.contains("read"));
        assert_eq!(ring_operations, Some(BTreeSet::new()));
    }

    #[test]
    fn ring_operations_are_no_calls() {
        let Chosen { calls, ring_operations } =
            chosen_by(&["ring:read", "write", "ring:op_99"]).unwrap();
        assert_eq!(calls.unwrap().iter().collect::<Vec<_>>(), ["write"]);
        assert_eq!(ring_operations.unwrap().iter().collect::<Vec<_>>(), ["op_99", "read"]);
        for words in [["%ring", "ring:read"], ["ring:read", "%ring"]] {
            let all = chosen_by(&words).unwrap();
            assert_eq!((all.calls, all.ring_operations), (Some(BTreeSet::new()), None));
        }
    }

    #[test]
    fn every_call_of_every_group_exists() {
        for group in GROUPS {
            for call in group.calls {
                assert!(is_call(call) || ["recv", "send", "shutdown"].contains(call), "{call}");
            }
        }
    }

    #[test]
    fn an_unknown_word_is_answered_with_what_there_is() {
        assert!(refused("stat64x").contains("stat"));
        assert!(refused("%disk").contains("%file, ") && refused("%disk").contains("%ring"));
        let operations = refused("ring:reed");
        assert!(
            operations
                .starts_with("unknown ring operation \"reed\"; the operations are nop, readv, ")
        );
        assert!(refused("syscall_999").ends_with("from 511 on, are syscall_other"));
        assert!(refused("ring:").contains("send_zc"));
        assert!(refused("send_zc").ends_with("did you mean ring:send_zc?"));
        assert!(refused("raed").ends_with("did you mean read?"));
        assert!(refused("ring:reed").ends_with("; did you mean ring:read?"));
        assert!(refused("%flie").ends_with("; did you mean %file?"));
    }
}
