//! The variables and files that iotomy reads or writes, each with the verbs that do.

use clap::Command;

use crate::manual::{Fact, below};

/// A variable or a file.
pub(super) struct EnvironmentFact {
    pub(super) name: &'static str,
    pub(super) says: &'static str,
    /// Whether the verb of this name, with these options, has to do with it.
    is_of: fn(&str, &Command) -> bool,
}

/// The variables that are read. A test holds them against the sources.
pub(super) const ENVIRONMENT: &[EnvironmentFact] = &[
    EnvironmentFact {
        name: "IOTOMY_CONFIG",
        says: "A configuration to read in place of the user's config.toml.",
        is_of: |_, _| true,
    },
    EnvironmentFact {
        name: "IOTOMY_HISTORY",
        says: "`always` keeps every run in the history, `never` only those with --save. It overrides the \
               configuration.",
        is_of: |_, verb| has(verb, "save"),
    },
    EnvironmentFact {
        name: "IOTOMY_MACHINE",
        says: "The name of this machine in records, instead of the host's. In a container, records name no \
               machine without it.",
        is_of: |name, verb| has(verb, "save") || ["d", "doctor"].contains(&name),
    },
    EnvironmentFact {
        name: "IOTOMY_REFUSE",
        says: "For tests: parts of the BPF programs that are refused as a kernel would refuse them \
               (docs/kernels.md).",
        is_of: |name, _| ["trace", "anatomy", "d"].contains(&name),
    },
    EnvironmentFact {
        name: "IOTOMY_PAGER, PAGER",
        says: "The first of them that is set is the pager, with its options, of what is longer than the \
               terminal; if it is empty or `cat`, there is none. Without either it is less(1).",
        is_of: pages,
    },
    EnvironmentFact {
        name: "COLUMNS",
        says: "Where the output is not a terminal, the columns that a table may take if it needs more than \
               100.",
        is_of: |_, verb| has(verb, "color"),
    },
    EnvironmentFact {
        name: "LESS",
        says: "If it is not set, less(1) has the options -FRX.",
        is_of: pages,
    },
    EnvironmentFact {
        name: "NO_COLOR",
        says: "If it is set and not empty, no report is coloured, unless by --color=always.",
        is_of: |_, verb| has(verb, "color"),
    },
    EnvironmentFact {
        name: "TERM",
        says: "If it is `dumb`, empty or not set, nothing is coloured, unless by --color=always, and no \
               progress is shown.",
        is_of: |_, verb| has(verb, "color") || has(verb, "progress"),
    },
    EnvironmentFact {
        name: "LC_ALL, LC_CTYPE, LANG",
        says: "The first of them that is set and not empty names the locale. Output is ASCII, unless its \
               encoding is UTF-8.",
        is_of: |_, _| true,
    },
    EnvironmentFact {
        name: "PATH",
        says: "The directories in which commands are looked up.",
        is_of: |name, verb| {
            runs_commands(name, verb) || ["lab run", "ports"].contains(&name) || has(verb, "open")
        },
    },
    EnvironmentFact {
        name: "LD_PRELOAD",
        says: "Libraries that the command loads behind that of event ports.",
        is_of: |name, _| name == "ports",
    },
    EnvironmentFact {
        name: "COLORTERM, LANG, LANGUAGE, LC_*, NO_COLOR, TERM, TZ",
        says: "The command of --user has them as they are; HOME, LOGNAME, PATH, SHELL and USER are those of \
               a login, and it has no others.",
        is_of: |_, verb| has(verb, "user"),
    },
    EnvironmentFact {
        name: "XDG_CACHE_HOME",
        says: "The directory of iotomy/limits-*.json; without it, ~/.cache.",
        is_of: takes_limits,
    },
    EnvironmentFact {
        name: "XDG_CONFIG_HOME",
        says: "The directory of iotomy/config.toml; without it, ~/.config.",
        is_of: |_, _| true,
    },
    EnvironmentFact {
        name: "XDG_DATA_HOME",
        says: "The directory of iotomy/history.db; without it, ~/.local/share.",
        is_of: has_history,
    },
    EnvironmentFact {
        name: "XDG_STATE_HOME",
        says: "The directory of iotomy/lab-*.json; without it, ~/.local/state.",
        is_of: |name, _| name == "lab run",
    },
    EnvironmentFact {
        name: "HOME",
        says: "The home directory, `~` above. It is used only if it exists.",
        is_of: |name, verb| {
            takes_limits(name, verb) || has_history(name, verb) || name == "lab run"
        },
    },
];

/// The files that are read or written without being named.
pub(super) const FILES: &[EnvironmentFact] = &[
    EnvironmentFact {
        name: "$XDG_DATA_HOME/iotomy/history.db",
        says: "The history: every run that was kept. Only its owner may read it.",
        is_of: has_history,
    },
    EnvironmentFact {
        name: "$XDG_CONFIG_HOME/iotomy/config.toml",
        says: "The user's defaults for options: a table per verb, with its long options as keys. \
               `history.always = true` keeps every run in the history.",
        is_of: |_, _| true,
    },
    EnvironmentFact {
        name: "/etc/iotomy/config.toml",
        says: "The defaults of the system, where the user's file and the command line have none.",
        is_of: |_, _| true,
    },
    EnvironmentFact {
        name: "$XDG_CACHE_HOME/iotomy/limits-*.json",
        says: "The limits of each machine and kernel, kept by `iotomy limits` and where a finding needed \
               one.",
        is_of: takes_limits,
    },
    EnvironmentFact {
        name: "$XDG_STATE_HOME/iotomy/lab-*.json",
        says: "What an interrupted run of an experiment had measured, for --resume.",
        is_of: |name, _| name == "lab run",
    },
    EnvironmentFact {
        name: "/etc/login.defs",
        says: "The PATH of the command of --user.",
        is_of: |_, verb| has(verb, "user"),
    },
];

/// Those that a verb has to do with, or a verb below it.
pub(super) fn facts(all: &[EnvironmentFact], name: &str, verb: &Command) -> Vec<Fact> {
    all.iter().filter(|one| is_of(one, name, verb)).map(|one| (one.name, one.says)).collect()
}

fn is_of(one: &EnvironmentFact, name: &str, verb: &Command) -> bool {
    (one.is_of)(name, verb)
        || verb.get_subcommands().any(|lower| is_of(one, &below(name, lower), lower))
}

fn has(verb: &Command, option: &str) -> bool {
    verb.get_arguments().any(|argument| argument.get_id() == option)
}

fn pages(name: &str, verb: &Command) -> bool {
    const VERBS: [&str; 4] = ["diff", "doctor", "lab list", "show"];
    VERBS.contains(&name)
        || (name.starts_with("history ") && has(verb, "color"))
        || has(verb, "list")
}

fn runs_commands(name: &str, _: &Command) -> bool {
    ["trace", "anatomy", "race"].contains(&name)
}

fn takes_limits(name: &str, verb: &Command) -> bool {
    runs_commands(name, verb) || ["copy", "limits"].contains(&name)
}

fn has_history(name: &str, verb: &Command) -> bool {
    has(verb, "save") || name.starts_with("history ") || name == "export"
}
