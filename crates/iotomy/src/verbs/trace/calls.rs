//! `--call`: names and groups to a set of calls.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use iotomy_record::calls::{GROUPS, group};
use iotomy_sys::syscalls::{self, Abi};

/// The help of `--call`, with every group.
pub(super) fn help() -> String {
    let mut help =
        String::from("Count only these system calls and groups, as in read,write,%file\n\nGroups:");
    for group in GROUPS {
        help.push_str(&format!("\n- {:<9} {}", group.name, group.summary));
    }
    help
}

/// The calls that `words` name, themselves or by their group; `None` for all, when there are none.
///
/// # Errors
/// A word that is neither a call nor a group.
pub(super) fn calls(words: &[String]) -> Result<Option<BTreeSet<String>>> {
    let mut calls = BTreeSet::new();
    for word in words {
        if word.starts_with('%') {
            let Some(group) = group(word) else {
                let groups: Vec<&str> = GROUPS.iter().map(|group| group.name).collect();
                bail!("unknown group {word}; the groups are {}", groups.join(", "));
            };
            calls.extend(group.calls.iter().map(|&call| call.to_owned()));
        } else if is_call(word) {
            calls.insert(word.clone());
        } else {
            bail!("unknown system call {word:?}; {}", advice(word));
        }
    }
    Ok((!words.is_empty()).then_some(calls))
}

fn is_call(name: &str) -> bool {
    [Abi::X86_64, Abi::I386].into_iter().any(|abi| syscalls::number(abi, name).is_some())
}

/// Calls whose names contain the word, or are contained in it.
fn advice(word: &str) -> String {
    let known = (0..512).map(|number| syscalls::name(Abi::X86_64, number));
    let alike: Vec<String> = known
        .filter(|name| !name.starts_with("syscall_"))
        .filter(|name| word.len() > 1 && (name.contains(word) || word.contains(name.as_str())))
        .take(6)
        .collect();
    if alike.is_empty() {
        String::from("names are those of man 2, as in --call read,write,%file")
    } else {
        format!("did you mean {}?", alike.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls_of(words: &[&str]) -> Result<Option<BTreeSet<String>>> {
        calls(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn no_word_means_every_call() {
        assert_eq!(calls_of(&[]).unwrap(), None);
    }

    #[test]
    fn groups_and_names_add_up() {
        let set = calls_of(&["getppid", "%poll"]).unwrap().unwrap();
        assert!(set.contains("getppid") && set.contains("epoll_wait") && !set.contains("read"));
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
        assert!(calls_of(&["stat64x"]).unwrap_err().to_string().contains("stat"));
        assert!(calls_of(&["%disk"]).unwrap_err().to_string().contains("%file"));
    }
}
