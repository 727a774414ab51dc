//! What a watch is about besides a command: running processes by id, name, cgroup, systemd unit or
//! container, or the whole machine.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::ArgGroup;
use clap::builder::{NonEmptyStringValueParser, OsStringValueParser, TypedValueParser as _};
use iotomy_host::{Cgroup, Cgroups};
use iotomy_observe::{Glob, GlobError, Selection, Target};
use iotomy_record::{Watched, lossless};

use crate::screen::shown;

/// The group of the arguments that name running processes.
pub(super) const RUNNING: &str = "running";

const IDS: [&str; 6] = ["pid", "name", "cgroup", "unit", "container", "all"];

/// The groups of a verb with `TargetArgs` and a `command`.
pub(super) fn groups() -> [ArgGroup; 2] {
    let running = ArgGroup::new(RUNNING).args(IDS).multiple(true);
    let target = ArgGroup::new("target").args(["command"]).args(IDS);
    [running, target.required(true).multiple(true)]
}

/// The processes to watch, where no command is run.
#[derive(Debug, clap::Args)]
pub(crate) struct TargetArgs {
    /// Watch a running process, its descendants and the processes they start, until it ends or
    /// Ctrl-C; several PIDs are separated by commas, or the option is repeated
    #[arg(short, long, value_name = "PID", value_parser = process, value_delimiter = ',')]
    pid: Vec<u32>,

    /// Watch every process with such a name, those that start later included, until Ctrl-C
    ///
    /// A pattern has `*`, `?` and brackets as in a shell. It is compared with the whole of the name
    /// that the kernel has (`comm`, at most 15 characters; as `ps` and `top` show it) and of the
    /// name of the file that the process runs. May be repeated.
    #[arg(long, value_name = "PATTERN", value_parser = OsStringValueParser::new().try_map(pattern))]
    name: Vec<Glob>,

    /// Watch every process in a control group, until Ctrl-C
    ///
    /// PATH is a directory of a cgroup file system, or the path within a hierarchy, of version 1 or
    /// 2. Processes in groups below it are watched too, and those that come later. May be repeated.
    #[arg(long, value_name = "PATH")]
    cgroup: Vec<PathBuf>,

    /// Watch every process of a systemd unit, until Ctrl-C; a name without a suffix is a service's
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    unit: Vec<String>,

    /// Watch every process of a container or Kubernetes pod, until Ctrl-C
    ///
    /// The container is named by its name or the first characters of its id, as docker, podman,
    /// nerdctl or crictl list it; the pod by its name or id. May be repeated.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    container: Vec<String>,

    /// Leave out the processes that the watched ones created or create, unless they are named too
    #[arg(long, requires = RUNNING, conflicts_with = "all")]
    only: bool,

    /// Watch every process on the machine, until Ctrl-C
    #[arg(short, long, conflicts_with_all = ["pid", "name", "cgroup", "unit", "container"])]
    all: bool,
}

/// The control groups that something is restricted to.
#[derive(Debug, clap::Args)]
pub(crate) struct CgroupArgs {
    /// Let probes fire in the processes of a control group only, and of groups below it
    ///
    /// PATH is a directory of a cgroup file system, or the path within a hierarchy, of version 1 or
    /// 2. May be repeated.
    #[arg(long, value_name = "PATH")]
    cgroup: Vec<PathBuf>,

    /// Let probes fire in the processes of a systemd unit only; a name without a suffix is a service's
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    unit: Vec<String>,

    /// Let probes fire in the processes of a container or Kubernetes pod only
    ///
    /// The container is named by its name or the first characters of its id, as docker, podman,
    /// nerdctl or crictl list it; the pod by its name or id. May be repeated.
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    container: Vec<String>,
}

impl CgroupArgs {
    /// Those that were named.
    ///
    /// # Errors
    /// There is no such control group, unit or container, or several.
    pub(super) fn cgroups(&self) -> Result<Vec<Cgroup>> {
        named_cgroups(&self.cgroup, &self.unit, &self.container)
    }
}

/// Control groups by their paths, systemd units, and containers.
fn named_cgroups(
    paths: &[PathBuf],
    units: &[String],
    containers: &[String],
) -> Result<Vec<Cgroup>> {
    let mut found = Vec::new();
    if paths.is_empty() && units.is_empty() && containers.is_empty() {
        return Ok(found);
    }
    let cgroups = Cgroups::of_this_machine();
    for path in paths {
        found.push(cgroups.at(path)?);
    }
    for unit in units {
        found.push(cgroups.unit(unit)?);
    }
    for container in containers {
        found.extend(cgroups.container(container)?);
    }
    Ok(found)
}

/// A pattern for names, which may have any bytes.
fn pattern(text: OsString) -> Result<Glob, GlobError> {
    Glob::of_bytes(text.as_bytes(), lossless(text.as_bytes()))
}

/// The id of a process.
pub(super) fn process(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(pid) if (1..=i32::MAX.cast_unsigned()).contains(&pid) => Ok(pid),
        _ => Err(String::from("expected a process ID; find it with `pgrep NAME`")),
    }
}

impl TargetArgs {
    /// Whether the whole machine is watched.
    pub(super) fn is_machine(&self) -> bool {
        self.all
    }

    /// Whether just the named processes are watched.
    pub(super) fn is_only(&self) -> bool {
        self.only
    }

    /// The target, unless it is a command.
    ///
    /// # Errors
    /// There is no such control group, unit or container, or several.
    pub(super) fn target(&self) -> Result<Option<Target>> {
        if self.all {
            return Ok(Some(Target::Machine));
        }
        if self.watched().is_empty() {
            return Ok(None);
        }
        let selection = Selection {
            processes: self.pid.clone(),
            names: self.name.clone(),
            cgroups: named_cgroups(&self.cgroup, &self.unit, &self.container)?,
            only: self.only,
        };
        Ok(Some(Target::Running(selection)))
    }

    /// As the record has it.
    pub(super) fn watched(&self) -> Vec<Watched> {
        let kinds: [(&str, Vec<String>); 5] = [
            ("process", self.pid.iter().map(u32::to_string).collect()),
            ("name", self.name.iter().map(Glob::to_string).collect()),
            (
                "cgroup",
                self.cgroup.iter().map(|path| lossless(path.as_os_str().as_bytes())).collect(),
            ),
            ("unit", self.unit.clone()),
            ("container", self.container.clone()),
        ];
        let one = |kind: &str, name| Watched { kind: kind.to_owned(), name };
        kinds
            .into_iter()
            .flat_map(|(kind, names)| names.into_iter().map(move |n| one(kind, n)))
            .collect()
    }

    /// The target in words.
    pub(super) fn description(&self) -> String {
        if self.all {
            return String::from("the whole machine");
        }
        let watched = self.watched();
        let mut words: Vec<String> =
            watched.iter().take(FEW).map(|one| format!("{} {}", one.kind, one.name)).collect();
        if watched.len() > FEW {
            words.push(format!("{} more", watched.len() - FEW));
        }
        shown(&words.join(", "))
    }

    /// Says, before a watch without a command, what it finds and how it ends: the user sees nothing
    /// until then.
    pub(super) fn announce(&self, target: &Target, duration: Option<Duration>) {
        let mut stderr = std::io::stderr();
        let Target::Running(selection) = target else {
            return self.say_how_to_end("the machine", duration);
        };
        let now = selection.running().len();
        let whom = match (now, &*self.watched()) {
            (1, [one]) if one.kind == "process" => self.description(),
            (1, _) => format!("{}, 1 process now", self.description()),
            _ => format!("{}, {now} processes now", self.description()),
        };
        let others_may_come = !selection.names.is_empty() || !selection.cgroups.is_empty();
        if now == 0 && others_may_come {
            let whom = self.description();
            let _ = writeln!(
                stderr,
                "iotomy: no process is running yet of {whom}; those that start are watched"
            );
        }
        self.say_how_to_end(&whom, duration);
    }

    fn say_how_to_end(&self, whom: &str, duration: Option<Duration>) {
        let mut stderr = std::io::stderr();
        if !stderr.is_terminal() {
            return;
        }
        let end = duration.map_or_else(String::new, |d| format!(" or {} s", d.as_secs_f64()));
        let _ =
            writeln!(stderr, "iotomy: watching {whom}; Ctrl-C{end} ends it and shows the report");
    }
}

/// Targets that are listed.
const FEW: usize = 4;
