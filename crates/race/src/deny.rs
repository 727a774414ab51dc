//! `--deny [LABEL:]CALL[=ERRNO]`: which command is to do without which call.

use iotomy_sys::syscalls::{self, Abi};
use iotomy_sys::{errno, seccomp};

/// A call that is taken away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    /// From whom; `None` from all.
    pub label: Option<String>,
    /// The call's name and number.
    pub call: (String, u32),
    /// The error's name and number.
    pub errno: (String, u32),
}

impl std::str::FromStr for Denial {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (label, rest) = match text.split_once(':') {
            Some((label, rest)) => (Some(label), rest),
            None => (None, text),
        };
        let (call, error) = rest.split_once('=').unwrap_or((rest, "ENOSYS"));
        let Some(number) = syscalls::number(Abi::X86_64, call) else {
            return Err(format!("unknown system call {call:?}"));
        };
        let Some(value) = errno::number(error).filter(|value| *value < 512) else {
            return Err(format!("unknown error {error:?}; expected a name, as in ENOSYS"));
        };
        Ok(Self {
            label: label.map(str::to_owned),
            call: (call.to_owned(), number),
            errno: (error.to_owned(), value),
        })
    }
}

impl Denial {
    /// Whether command `label` is meant.
    pub fn is_for(&self, label: &str) -> bool {
        self.label.as_ref().is_none_or(|meant| meant == label)
    }

    /// As the record has it.
    pub fn shown(&self) -> String {
        format!("{}={}", self.call.0, self.errno.0)
    }
}

/// The filter that takes these calls away.
///
/// # Errors
/// When there are too many for one filter.
pub(super) fn filter<'a>(
    denials: impl Iterator<Item = &'a Denial>,
) -> Result<seccomp::Filter, String> {
    let calls: Vec<(u32, u32)> = denials.map(|denial| (denial.call.1, denial.errno.1)).collect();
    seccomp::Filter::deny(&calls)
        .ok_or_else(|| format!("a filter denies at most {} calls", seccomp::MOST_DENIED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denials_name_a_call_an_error_and_whose_they_are() {
        let plain: Denial = "copy_file_range".parse().unwrap();
        assert_eq!(plain.shown(), "copy_file_range=ENOSYS");
        assert!(plain.is_for("A") && plain.is_for("B"));
        let whole: Denial = "B:splice=EINVAL".parse().unwrap();
        assert_eq!((whole.shown().as_str(), whole.errno.1), ("splice=EINVAL", 22));
        assert!(whole.is_for("B") && !whole.is_for("A"));
        for text in ["", "no_such_call", "read=EVIL", "read=", "A:", "read=ERESTARTSYS", "read=5"] {
            assert!(text.parse::<Denial>().is_err(), "{text}");
        }
    }
}
