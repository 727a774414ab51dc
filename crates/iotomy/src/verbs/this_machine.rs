//! The machine that the record of a verb is of, with its name among others.
//!
//! The name is that of `IOTOMY_MACHINE`, or else the host's. In a container the host's name is the container's, which
//! most engines draw anew for each: there, a machine without `IOTOMY_MACHINE` has no name.

use std::env;
use std::os::unix::ffi::OsStrExt;

use iotomy_host::{host_name, is_in_container};
use iotomy_record::{Machine, lossless};

/// Host names that machines have until somebody names them.
const NO_NAMES: [&str; 3] = ["localhost", "localhost.localdomain", "(none)"];

/// This machine.
pub(super) fn machine() -> Machine {
    let host = || match is_in_container() {
        true => String::new(),
        false => host_name(),
    };
    Machine { name: name(given_name(), host), ..iotomy_host::machine() }
}

/// The name that the user gave this machine for all records, if any.
pub(super) fn given_name() -> Option<String> {
    let name = lossless(env::var_os("IOTOMY_MACHINE")?.as_bytes());
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

fn name(given: Option<String>, host: impl FnOnce() -> String) -> String {
    let host = || Some(host()).filter(|name| !NO_NAMES.contains(&name.as_str()));
    given.or_else(host).unwrap_or_default()
}

/// A name that a machine may have: words of records and tables.
pub(super) fn machine_name(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("expected a name".to_owned()),
        name if name.chars().any(char::is_control) => {
            Err("expected a name without control characters".to_owned())
        }
        name => Ok(name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_given_name_goes_before_the_hosts_and_a_host_without_one_has_none() {
        let host = |text: &str| text.to_owned();
        assert_eq!(name(Some("rack7".into()), || host("node1")), "rack7");
        assert_eq!(name(None, || host("node1")), "node1");
        for nobody in NO_NAMES {
            assert_eq!(name(None, || host(nobody)), "");
        }
    }
}
