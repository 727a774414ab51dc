//! `--user`: whom the command runs as. Users are looked up by `getent` and `id`, which ask what the
//! machine has for that; the C library would load it into this process, which is linked statically.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use iotomy_sys::launch::Credentials;
use nix::unistd::Uid;

/// A line of passwd(5).
struct User {
    uid: u32,
    gid: u32,
    home: OsString,
    shell: OsString,
}

/// The ids of user `name` and the variables a login would set.
///
/// # Errors
/// There is no such user, or this process may not become another.
pub(super) fn user(name: &str) -> Result<(Credentials, Vec<(OsString, OsString)>)> {
    let line = output("getent", &["passwd", "--", name])?.unwrap_or_default();
    let Some(user) = User::parse(&line, name) else {
        bail!("there is no user {name:?}; see `getent passwd`");
    };
    if !Uid::effective().is_root() && Uid::effective().as_raw() != user.uid {
        bail!("cannot run the command as {name}: only root may; leave --user out or use sudo");
    }
    let groups = output("id", &["-G", "--", name])?
        .and_then(|line| numbers(&line))
        .with_context(|| format!("cannot look up the groups of {name}: `id -G {name}` fails"))?;
    let credentials = Credentials { uid: user.uid, gid: user.gid, groups };
    let environment = vec![
        ("HOME".into(), user.home),
        ("USER".into(), name.into()),
        ("LOGNAME".into(), name.into()),
        ("SHELL".into(), user.shell),
    ];
    Ok((credentials, environment))
}

/// What a command prints, unless it says by its status that there is nothing.
fn output(program: &str, words: &[&str]) -> Result<Option<Vec<u8>>> {
    let run = Command::new(program).args(words).output();
    let run = run.with_context(|| format!("cannot look up the user: cannot run {program}"))?;
    ensure!(run.status.code().is_some(), "cannot look up the user: {program}: {}", run.status);
    Ok(run.status.success().then_some(run.stdout))
}

impl User {
    /// `None` for the line of another: getent(1) takes a number for a user id.
    fn parse(line: &[u8], name: &str) -> Option<Self> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let fields: Vec<&[u8]> = line.split(|byte| *byte == b':').collect();
        let [found, _, uid, gid, _, home, shell] = *fields else { return None };
        let number = |field| OsStr::from_bytes(field).to_str()?.parse().ok();
        let text = |field: &[u8]| OsString::from_vec(field.to_vec());
        (found == name.as_bytes()).then_some(())?;
        Some(Self { uid: number(uid)?, gid: number(gid)?, home: text(home), shell: text(shell) })
    }
}

fn numbers(line: &[u8]) -> Option<Vec<u32>> {
    std::str::from_utf8(line).ok()?.split_whitespace().map(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_passwd_is_that_of_its_user_alone() {
        let line = b"games:x:5:60:games:/usr/games:/usr/sbin/nologin\n";
        let user = User::parse(line, "games").unwrap();
        assert_eq!((user.uid, user.gid), (5, 60));
        assert_eq!((user.home, user.shell), ("/usr/games".into(), "/usr/sbin/nologin".into()));
        assert!(User::parse(line, "5").is_none());
        for damaged in ["", "games:x:5:60", "games:x:five:60:games:/:/bin/sh"] {
            assert!(User::parse(damaged.as_bytes(), "games").is_none(), "{damaged}");
        }
    }

    #[test]
    fn groups_are_numbers_or_none() {
        assert_eq!(numbers(b"0 4 27\n"), Some(vec![0, 4, 27]));
        assert_eq!(numbers(b"0 none\n"), None);
    }
}
