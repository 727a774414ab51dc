//! `--user`: the user that the command runs as, and its environment. Users are looked up by
//! `getent` and `id`, which use the machine's NSS modules; the C library would load them into this
//! process, which is linked statically.
//!
//! The environment is that of a login, as with `su -`: root's own variables, from secrets to
//! directories of programs, are not passed to another user.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use anyhow::{Context, Result, bail, ensure};
use iotomy_sys::launch::{Command, Credentials, helper};
use nix::unistd::Uid;

use crate::verbs::target::RUNNING;

/// Whom the command runs as.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct UserArgs {
    /// Run the command as this user in a login environment: HOME, SHELL, USER, LOGNAME and PATH are
    /// the user's, variables of the terminal and the locale stay, all others are dropped
    #[arg(long, value_name = "NAME", conflicts_with = RUNNING, requires = "command")]
    user: Option<String>,

    /// Run the command of --user in the current environment, unchanged
    #[arg(long, requires = "user")]
    preserve_environment: bool,
}

/// Variables that describe the user's terminal and language.
const KEPT: [&str; 6] = ["TERM", "COLORTERM", "NO_COLOR", "LANG", "LANGUAGE", "TZ"];

/// And those that begin so.
const KEPT_BEGINNING: &str = "LC_";

/// The file that login(1) and su(1) read.
const LOGIN_DEFS: &str = "/etc/login.defs";

/// A line of passwd(5).
struct User {
    uid: u32,
    gid: u32,
    home: OsString,
    shell: OsString,
}

impl UserArgs {
    /// Gives the command the user's ids and environment; without a user it stays as it is.
    ///
    /// # Errors
    /// There is no such user, or this process may not become another.
    pub(super) fn apply_to(&self, command: &mut Command) -> Result<()> {
        let Some(name) = &self.user else { return Ok(()) };
        let (credentials, user) = looked_up(name)?;
        if !self.preserve_environment {
            let defs = iotomy_host::kernel_text(LOGIN_DEFS).unwrap_or_default();
            command.clears_environment = true;
            command.environment = environment(name, &user, &defs, std::env::vars_os());
        }
        command.credentials = Some(credentials);
        Ok(())
    }
}

/// The ids of user `name`, and the line of passwd(5).
fn looked_up(name: &str) -> Result<(Credentials, User)> {
    let line = output("getent", &["passwd", "--", name])?.unwrap_or_default();
    let Some(user) = User::parse(&line, name) else {
        bail!("there is no user {name:?}; see `getent passwd`");
    };
    if !Uid::effective().is_root() && Uid::effective().as_raw() != user.uid {
        bail!("cannot run the command as {name}: only root may; leave out --user or use sudo");
    }
    let groups = output("id", &["-G", "--", name])?
        .and_then(|line| numbers(&line))
        .with_context(|| format!("cannot look up the groups of {name}: `id -G {name}` fails"))?;
    Ok((Credentials { uid: user.uid, gid: user.gid, groups }, user))
}

/// The environment of a login of the user, with those variables of `own` that describe where that
/// user sits.
fn environment(
    name: &str,
    user: &User,
    login_defs: &str,
    own: impl Iterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let is_kept = |(name, _): &(OsString, OsString)| {
        let name = name.to_str();
        name.is_some_and(|name| KEPT.contains(&name) || name.starts_with(KEPT_BEGINNING))
    };
    let shell = if user.shell.is_empty() { OsString::from("/bin/sh") } else { user.shell.clone() };
    let mut variables = vec![
        ("HOME".into(), user.home.clone()),
        ("SHELL".into(), shell),
        ("USER".into(), name.into()),
        ("LOGNAME".into(), name.into()),
        ("PATH".into(), path(login_defs, user.uid == 0).into()),
    ];
    variables.extend(own.filter(is_kept));
    variables
}

/// `ENV_PATH` or `ENV_SUPATH` of login.defs(5), or the default of su(1).
fn path(login_defs: &str, is_root: bool) -> String {
    let (wanted, usual) = match is_root {
        true => (
            ["ENV_SUPATH", "ENV_ROOTPATH"].as_slice(),
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        ),
        false => (["ENV_PATH"].as_slice(), "/usr/local/bin:/usr/bin:/bin"),
    };
    let value = |line: &str| {
        let (key, value) = line.trim().split_once(char::is_whitespace)?;
        let value = value.trim().trim_matches('"');
        // Both forms are taken: `ENV_PATH PATH=/bin` and `ENV_PATH /bin`.
        let value = value.strip_prefix("PATH=").unwrap_or(value);
        (wanted.contains(&key) && !value.is_empty()).then(|| value.to_owned())
    };
    login_defs.lines().find_map(value).unwrap_or_else(|| usual.to_owned())
}

/// The output of a command, unless its status says that there is none.
fn output(program: &str, words: &[&str]) -> Result<Option<Vec<u8>>> {
    let run = helper(program).and_then(|mut command| command.args(words).output());
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
    fn a_path_is_that_of_login_defs_or_the_usual_one() {
        let defs = "# ENV_PATH PATH=/no\nENV_SUPATH\tPATH=/sbin:/bin\nENV_PATH \"/bin:/games\"\n";
        assert_eq!(path(defs, true), "/sbin:/bin");
        assert_eq!(path(defs, false), "/bin:/games");
        assert_eq!(path("ENV_PATH PATH=\n", false), "/usr/local/bin:/usr/bin:/bin");
        assert!(path("", true).contains("/usr/sbin"));
    }

    #[test]
    fn of_an_environment_the_terminal_and_the_language_stay() {
        let user = User { uid: 5, gid: 60, home: "/g".into(), shell: "".into() };
        let own =
            ["TERM=vt100", "LC_ALL=C", "LD_PRELOAD=x", "HOME=/root", "AWS_SECRET=y", "PATH=."];
        let own = own.iter().map(|line| line.split_once('=').unwrap());
        let own = own.map(|(name, value)| (name.into(), value.into()));
        let all = environment("games", &user, "ENV_PATH /b", own);
        let lines: Vec<String> = all
            .iter()
            .map(|(name, value)| format!("{}={}", name.display(), value.display()))
            .collect();
        let login = ["HOME=/g", "SHELL=/bin/sh", "USER=games", "LOGNAME=games", "PATH=/b"];
        assert_eq!(lines[..5], login);
        assert_eq!(lines[5..], ["TERM=vt100", "LC_ALL=C"]);
    }

    #[test]
    fn groups_are_numbers_or_none() {
        assert_eq!(numbers(b"0 4 27\n"), Some(vec![0, 4, 27]));
        assert_eq!(numbers(b"0 none\n"), None);
    }
}
