//! The values of arguments beyond those in their declaration: names of experiments, limits, calls,
//! processes, runs.

use std::collections::BTreeSet;
use std::fs;

use iotomy_dtrace::Options;
use iotomy_history::{Filter, Store, store_file};
use iotomy_host::Cgroups;
use iotomy_lab::{EXPERIMENTS, Experiment};
use iotomy_limits::declarations;
use iotomy_observe::{VARIABLES, ring_operations};
use iotomy_record::KeptRun;
use iotomy_record::calls::RING_PREFIX;
use iotomy_sys::errno;
use iotomy_sys::syscalls::{self, Abi};

use super::{Add, Candidate};
use crate::verbs::lab::axis_values;
use crate::verbs::trace::groups;

/// The kind of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// An axis of an experiment and its values, as in `size=64M,1G`.
    Axis,
    /// Calls, ring operations and groups of them.
    Calls,
    /// A line for the shell.
    CommandLine,
    /// A running container.
    Container,
    /// An option of a D program.
    DOption,
    /// A call that is taken away, as in `B:splice=EINVAL`.
    Denial,
    Experiment,
    Limit,
    /// A machine that has runs in the history.
    Machine,
    /// A name that a run in the history has.
    Name,
    /// Where output goes: one of these words, or a path.
    Output,
    Process,
    /// A name that processes have.
    ProcessName,
    /// A run in the history: its number, its name, or `last`.
    Run,
    /// A command in the history.
    Subject,
    /// A record: a file, or a run in the history.
    Record,
    /// A running systemd unit.
    Unit,
    User,
    /// A variable of conditions.
    Variable,
}

/// The kinds by verb and argument; without a verb, of every verb that has the argument.
pub(super) const KINDS: &[(&str, &str, Kind)] = &[
    ("", "container", Kind::Container),
    ("anatomy", "name", Kind::ProcessName),
    ("trace", "name", Kind::ProcessName),
    ("", "pid", Kind::Process),
    ("", "unit", Kind::Unit),
    ("", "save", Kind::Name),
    ("", "user", Kind::User),
    ("trace", "by", Kind::Variable),
    ("trace", "calls", Kind::Calls),
    ("race", "against", Kind::Run),
    ("race", "cleanup", Kind::CommandLine),
    ("race", "commands", Kind::CommandLine),
    ("race", "deny", Kind::Denial),
    ("race", "output", Kind::Output),
    ("race", "prepare", Kind::CommandLine),
    ("race", "setup", Kind::CommandLine),
    ("d", "command", Kind::CommandLine),
    ("d", "options", Kind::DOption),
    ("limits", "only", Kind::Limit),
    ("lab list", "names", Kind::Experiment),
    ("lab run", "axes", Kind::Axis),
    ("lab run", "names", Kind::Experiment),
    ("diff", "later", Kind::Record),
    ("diff", "records", Kind::Record),
    ("history list", "machine", Kind::Machine),
    ("history list", "name", Kind::Name),
    ("history list", "subject", Kind::Subject),
    ("history show", "run", Kind::Run),
    ("history diff", "earlier", Kind::Run),
    ("history diff", "later", Kind::Run),
    ("history compare", "baseline", Kind::Run),
    ("history compare", "machine", Kind::Machine),
    ("history compare", "run", Kind::Run),
    ("history trend", "command", Kind::Subject),
    ("history trend", "machine", Kind::Machine),
    ("history name", "name", Kind::Name),
    ("history name", "run", Kind::Run),
    ("history rm", "runs", Kind::Run),
    ("export", "records", Kind::Record),
    ("history export", "run", Kind::Run),
    ("history import", "machine", Kind::Machine),
    ("history import", "name", Kind::Name),
];

/// The kind of an argument of a verb.
pub(super) fn for_argument(verb: &str, argument: &str) -> Option<Kind> {
    let is = |of: &str, id: &str| (of.is_empty() || of == verb) && id == argument;
    KINDS.iter().find(|(of, id, _)| is(of, id)).map(|(.., kind)| *kind)
}

/// The number of runs looked up in a history.
const RUNS: u64 = 200;

impl Kind {
    /// Whether it names commands, processes or users.
    pub(super) fn is_subject(self) -> bool {
        matches!(
            self,
            Self::CommandLine
                | Self::Container
                | Self::Process
                | Self::ProcessName
                | Self::Unit
                | Self::User
        )
    }

    /// The candidates for a word: the additions of the shell, the number of bytes of the word that
    /// stay, and the values that may follow them.
    pub(super) fn candidates(
        self,
        word: &str,
        positionals: &[String],
    ) -> (Add, usize, Vec<Candidate>) {
        let behind = |separators: &[char]| word.rfind(separators).map_or(0, |at| at + 1);
        match self {
            Self::Axis => match word.split_once('=') {
                None => (Add::Nothing, 0, axes(positionals)),
                Some((axis, _)) => {
                    let is_axis = |one: &&iotomy_lab::Axis| one.name == axis;
                    let values = declared_axes(positionals).filter(is_axis).flat_map(axis_values);
                    let values: BTreeSet<String> = values.collect();
                    (Add::Nothing, behind(&['=', ',']), plain(values))
                }
            },
            Self::Calls => {
                let groups = groups().map(|(name, says)| Candidate(name.into(), says.into()));
                let operations = ring_operations().map(|name| format!("{RING_PREFIX}{name}"));
                (Add::Nothing, 0, groups.chain(calls()).chain(plain(operations)).collect())
            }
            Self::CommandLine => (Add::Commands, 0, Vec::new()),
            Self::DOption => (Add::Nothing, 0, plain(Options::NAMES.map(String::from))),
            Self::Container => (Add::Nothing, 0, containers()),
            Self::Denial if word.contains('=') => {
                let names = (1..512).filter_map(errno::name).map(str::to_owned);
                (Add::Nothing, behind(&['=']), plain(names))
            }
            Self::Denial => (Add::Nothing, behind(&[':']), calls().collect()),
            Self::Experiment => {
                let each = EXPERIMENTS.iter().map(|one| one.declaration());
                let each = each.filter(|one| !positionals.iter().any(|name| name == one.name));
                let each = each.map(|one| Candidate(one.name.into(), one.summary.into()));
                (Add::Nothing, 0, each.collect())
            }
            Self::Limit => {
                let each = declarations().map(|one| Candidate(one.name.into(), one.summary.into()));
                (Add::Nothing, 0, each.collect())
            }
            Self::Machine => (Add::Nothing, 0, machines()),
            Self::Name => (Add::Nothing, 0, names(&runs())),
            Self::Output => {
                let words = ["null", "pipe", "file", "inherit"];
                (Add::Files, 0, plain(words.map(str::to_owned)))
            }
            Self::Process => (Add::Nothing, behind(&[',']), processes()),
            Self::ProcessName => (Add::Nothing, 0, plain(process_names())),
            Self::Run | Self::Record => {
                let runs = runs();
                let numbers =
                    runs.iter().map(|run| Candidate(run.id.to_string(), description(run)));
                let last =
                    runs.first().map(|run| Candidate(String::from("last"), description(run)));
                let add = if self == Self::Record { Add::Files } else { Add::Nothing };
                (add, 0, last.into_iter().chain(names(&runs)).chain(numbers).collect())
            }
            Self::Subject => {
                let subjects: BTreeSet<String> =
                    runs().into_iter().map(|run| run.subject).collect();
                (Add::Nothing, 0, plain(subjects))
            }
            Self::Unit => (Add::Nothing, 0, plain(Cgroups::of_this_machine().units())),
            Self::User => (Add::Users, 0, Vec::new()),
            Self::Variable => {
                let each =
                    VARIABLES.iter().map(|one| Candidate(one.name.into(), one.summary.into()));
                (Add::Nothing, 0, each.collect())
            }
        }
    }
}

fn plain(values: impl IntoIterator<Item = String>) -> Vec<Candidate> {
    values.into_iter().map(|value| Candidate(value, String::new())).collect()
}

/// The calls of this machine's ABI.
fn calls() -> impl Iterator<Item = Candidate> {
    let names = (0..1024).map(|number| syscalls::name(Abi::X86_64, number));
    let known = names.filter(|name| !name.starts_with("syscall_"));
    known.map(|name| Candidate(name, String::new()))
}

/// The axes of the experiments named, or of all.
fn declared_axes(names: &[String]) -> impl Iterator<Item = &'static iotomy_lab::Axis> {
    let is_named = |one: &&&dyn Experiment| {
        names.is_empty() || names.iter().any(|name| name == one.declaration().name)
    };
    EXPERIMENTS.iter().filter(is_named).flat_map(|one| one.declaration().axes)
}

fn axes(names: &[String]) -> Vec<Candidate> {
    let mut axes: Vec<Candidate> = Vec::new();
    for axis in declared_axes(names) {
        let name = format!("{}=", axis.name);
        if axes.iter().all(|known| known.0 != name) {
            axes.push(Candidate(name, axis.summary.to_owned()));
        }
    }
    axes
}

/// The processes that run a program, by number.
fn processes() -> Vec<Candidate> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let numbers: BTreeSet<u32> = numbers.filter(|pid| *pid != std::process::id()).collect();
    let line = |pid: u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).ok().filter(|line| !line.is_empty())?;
        let text = String::from_utf8_lossy(&line).replace('\0', " ");
        // The name of the program first, as the list may be narrow.
        let (path, rest) = text.trim_end().split_once(' ').unwrap_or((text.trim_end(), ""));
        let name = path.strip_prefix('/').and_then(|path| path.rsplit('/').next()).unwrap_or(path);
        let text = iotomy_record::printable(format!("{name} {rest}").trim_end(), true);
        Some(Candidate(pid.to_string(), text.chars().take(60).collect()))
    };
    numbers.into_iter().filter_map(line).collect()
}

/// The names of processes that run a program.
fn process_names() -> BTreeSet<String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let programs = entries.filter(|entry| fs::read_link(entry.path().join("exe")).is_ok());
    let names = programs.filter_map(|entry| fs::read(entry.path().join("comm")).ok());
    // One that is no text cannot be typed by a candidate.
    let names = names.filter_map(|name| String::from_utf8(name).ok());
    names.map(|name| name.strip_suffix('\n').unwrap_or(&name).to_owned()).collect()
}

/// The containers that run, by as much of their ids as the engines list.
fn containers() -> Vec<Candidate> {
    let ids = Cgroups::of_this_machine().containers().into_iter();
    ids.map(|id| Candidate(id.chars().take(12).collect(), String::new())).collect()
}

/// The runs kept last, the newest first.
fn runs() -> Vec<KeptRun> {
    let store = store_file().and_then(|path| Store::open(&path).ok().flatten());
    let filter = Filter { last: Some(RUNS), ..Filter::default() };
    let mut runs = store.and_then(|store| store.list(&filter).ok()).unwrap_or_default();
    runs.sort_by_key(|run| std::cmp::Reverse(run.id));
    runs
}

fn machines() -> Vec<Candidate> {
    let store = store_file().and_then(|path| Store::open(&path).ok().flatten());
    let machines = store.and_then(|store| store.machines().ok()).unwrap_or_default();
    machines.into_iter().map(|one| Candidate(one.title(), one.hardware)).collect()
}

fn names(runs: &[KeptRun]) -> Vec<Candidate> {
    let mut names: Vec<Candidate> = Vec::new();
    for run in runs {
        if let Some(name) = run.name.as_ref().filter(|name| names.iter().all(|one| one.0 != **name))
        {
            names.push(Candidate(name.clone(), format!("run {}, {}", run.id, description(run))));
        }
    }
    names
}

/// A run in a line.
fn description(run: &KeptRun) -> String {
    let subject = iotomy_record::printable(&run.subject, true);
    format!("{} of {}, {subject}", run.kind, run.started)
}
