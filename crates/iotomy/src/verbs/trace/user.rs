//! `--user`: whom the command runs as.

use std::ffi::{CString, OsString};

use anyhow::{Context, Result, bail};
use iotomy_sys::launch::Credentials;
use nix::unistd::{Uid, User, getgrouplist};

/// The ids of user `name` and the variables a login would set.
///
/// # Errors
/// There is no such user, or this process may not become another.
pub(super) fn user(name: &str) -> Result<(Credentials, Vec<(OsString, OsString)>)> {
    let found = User::from_name(name).with_context(|| format!("cannot look up user {name:?}"))?;
    let Some(user) = found else {
        bail!("there is no user {name:?}; see `getent passwd`");
    };
    if !Uid::effective().is_root() && Uid::effective() != user.uid {
        bail!("cannot run the command as {name}: only root may; leave --user out or use sudo");
    }
    let text = CString::new(name).with_context(|| format!("{name:?} is no user name"))?;
    let groups = getgrouplist(&text, user.gid)
        .with_context(|| format!("cannot look up the groups of {name}"))?;
    let credentials = Credentials {
        uid: user.uid.as_raw(),
        gid: user.gid.as_raw(),
        groups: groups.into_iter().map(nix::unistd::Gid::as_raw).collect(),
    };
    let environment = vec![
        ("HOME".into(), user.dir.into_os_string()),
        ("USER".into(), name.into()),
        ("LOGNAME".into(), name.into()),
        ("SHELL".into(), user.shell.into_os_string()),
    ];
    Ok((credentials, environment))
}
