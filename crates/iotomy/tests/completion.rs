//! What the shells complete, asked of the shells themselves: bash, fish, and zsh on a terminal.

use crate::support;

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::completion_hostile::HOSTILE;
use support::histories::History;
use support::{IOTOMY, Need, bare, has, iotomy, skip};
use tempfile::TempDir;

/// The scripts, and a folder to be in with files to complete.
struct Place {
    folder: TempDir,
    history: History,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let scripts = folder.path().join("scripts");
        let words = ["generate", "completions", scripts.to_str().unwrap()];
        assert!(iotomy(&words).status().unwrap().success());
        // Alone in its folder: what else is built has names that begin so, too.
        let tools = folder.path().join("tools");
        fs::create_dir(&tools).unwrap();
        std::os::unix::fs::symlink(IOTOMY, tools.join("iotomy")).unwrap();
        let files = folder.path().join("files");
        fs::create_dir_all(files.join("folder one")).unwrap();
        for name in ["first.json", "folder.txt"] {
            fs::write(files.join(name), "x").unwrap();
        }
        let history = History::new();
        fs::write(history.path("a"), "x").unwrap();
        for save in ["--save=main", "--save=base line"] {
            assert!(history.run(&["copy", save, "a", "b"]).status.success());
        }
        Self { folder, history }
    }

    fn script(&self, name: &str) -> String {
        self.folder.path().join("scripts").join(name).to_str().unwrap().to_owned()
    }

    /// A shell that finds this iotomy, in the folder with files, with none of the user's settings.
    fn shell(&self, shell: &str, words: &[&str]) -> Command {
        let mut command = bare("timeout", &["-k", "1", "50", shell]);
        command.args(words);
        self.history.surround(&mut command);
        command.current_dir(self.folder.path().join("files"));
        let tools = self.folder.path().join("tools");
        let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
        command.env("PATH", path).env("HOME", self.folder.path()).env("TERM", "xterm");
        command.env_remove("COMP_WORDBREAKS");
        command
    }

    fn completions(&self, shell: &str, words: &[&str]) -> String {
        let output = self.shell(shell, words).output().unwrap();
        assert!(output.status.success(), "{shell} {words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

/// A line that is typed, what must be among the completions of its last word, and what must not.
type CompletionCase<'a> = (&'a str, &'a [&'a str], &'a [&'a str]);

/// What every shell completes, each word whole.
const ASKED: &[CompletionCase<'_>] = &[
    ("iotomy ", &["trace", "lab", "history"], &["complete", "first.json"]),
    ("iotomy trace --q", &["--quiet", "--quantize"], &["--json"]),
    ("iotomy lab run ", &["copy", "null-sink"], &["first.json"]),
    ("iotomy lab run copy nu", &["null-sink"], &["copy"]),
    ("iotomy lab run copy --", &["--quick", "--resume"], &["--mover"]),
    ("iotomy limits --only ", &["syscall", "memory-copy"], &[]),
    ("iotomy limits --only syscall,mem", &["syscall,memory-copy"], &[]),
    ("iotomy trace --by ", &["title", "threadname", "peer"], &["first.json"]),
    ("iotomy trace --by call,titl", &["call,title"], &[]),
    ("iotomy copy --mover ", &["sendfile", "splice"], &[]),
    ("iotomy copy --sparse ", &["auto", "never", "always"], &["first.json"]),
    ("iotomy copy --mover splice f", &["first.json", "folder.txt"], &["--mover"]),
    ("iotomy trace --observer ", &["auto", "bpf", "ptrace"], &[]),
    ("iotomy trace --call copy_f", &["copy_file_range"], &["read"]),
    ("iotomy trace --call read,%f", &["read,%file"], &["read,%io"]),
    ("iotomy trace --call read,%r", &["read,%ring"], &["read,%io"]),
    ("iotomy trace --user roo", &["root"], &["first.json"]),
    ("iotomy trace --json fi", &["first.json"], &["folder.txt"]),
    ("iotomy history show ", &["last", "main", "1", "2"], &["first.json"]),
    ("iotomy history compare --baseline ma", &["main"], &["last"]),
    ("iotomy race --against m", &["main"], &[]),
    ("iotomy trace -- ioto", &["iotomy"], &["first.json"]),
    ("iotomy trace iotomy co", &["copy"], &["trace"]),
    ("iotomy trace -q -- cat fo", &["folder.txt"], &["first.json"]),
    ("iotomy trace -- iotomy limits --only sysc", &["syscall"], &[]),
];

fn check(shell: &str, asked: &CompletionCase<'_>, found: &[String]) {
    let (line, expected, absent) = asked;
    let has = |word: &&&str| found.iter().any(|one| one == *word);
    assert!(expected.iter().all(|word| has(&word)), "{shell}: {line:?}: {found:?}");
    assert!(!absent.iter().any(|word| has(&word)), "{shell}: {line:?}: {found:?}");
}

/// Sets what bash sets, splits words as it does, and prints what the function leaves, a line each.
const BASH: &str = r#"
[ -n "$2" ] && source "$2"
source "$1"
complete -p iotomy >/dev/null || exit 1
ask() {
    COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDS=()
    local rest=$1 word
    while [[ $rest ]]; do
        case $rest in
        ' '*) rest=${rest# }; [[ $rest ]] || COMP_WORDS+=(''); continue ;;
        [=:]*) word=${rest%%[^=:]*} ;;
        *) [[ $rest =~ ^([^\\ =:]|\\.)+ ]]; word=${BASH_REMATCH[0]} ;;
        esac
        COMP_WORDS+=("$word") rest=${rest#"$word"}
    done
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
    _iotomy iotomy "${COMP_WORDS[-1]}" 2>/dev/null
    echo "? $1"
    printf '%s\n' "${COMPREPLY[@]}"
}
while IFS= read -r line; do ask "$line"; done <"$3"
"#;

/// The package that other commands' completions come from.
const BASH_COMPLETION: &str = "/usr/share/bash-completion/bash_completion";

/// The answers to lines, in their order.
fn answers(text: &str) -> Vec<Vec<String>> {
    let each = text.split("? iotomy").skip(1);
    each.map(|answer| answer.lines().skip(1).map(|line| line.trim_end().to_owned()).collect())
        .collect()
}

impl Place {
    fn lines(&self, lines: impl Iterator<Item = String>) -> String {
        let file = self.folder.path().join("lines");
        fs::write(&file, lines.map(|line| line + "\n").collect::<String>()).unwrap();
        file.to_str().unwrap().to_owned()
    }

    fn bash(&self, package: &str, lines: &[&str]) -> Vec<Vec<String>> {
        let file = self.lines(lines.iter().map(|line| String::from(*line)));
        let script = self.script("iotomy.bash");
        answers(&self.completions("bash", &["--norc", "-c", BASH, "bash", &script, package, &file]))
    }

    fn fish(&self, lines: &[&str]) -> Vec<Vec<String>> {
        let file = self.lines(lines.iter().map(|line| String::from(*line)));
        let ask = "source $argv[1]; while read -l line; echo \"? $line\"; complete -C $line; end <$argv[2]";
        let words = ["--no-config", "-c", ask, &self.script("iotomy.fish"), &file];
        answers(&self.completions("fish", &words))
    }
}

#[test]
fn bash_completes() {
    if !has("bash") {
        return;
    }
    let place = Place::new();
    let lines: Vec<&str> = ASKED.iter().map(|asked| asked.0).collect();
    for (asked, found) in ASKED.iter().zip(place.bash("", &lines)) {
        // Without the package, the arguments of another command are files.
        if !asked.0.contains(" iotomy ") {
            check("bash", asked, &found);
        }
    }
    // What is behind = or : is a word of its own for bash, and is alone put in.
    let found = place.bash(
        "",
        &[
            "iotomy limits --only=memory-copy-",
            "iotomy trace --json=fi",
            "iotomy race --deny B:copy_f",
            "iotomy race --deny B:splice=EINV",
            "iotomy trace --call read,ring:send_z",
            "iotomy lab run null-sink -L si",
            "iotomy lab run null-sink -L size=64M,25",
            "iotomy history show ba",
            "iotomy history show 'ba",
            "iotomy history show base\\ l",
        ],
    );
    let expected: [&[&str]; 10] = [
        &["memory-copy-all"],
        &["first.json"],
        &["copy_file_range"],
        &["EINVAL"],
        &["send_zc"],
        &["size="],
        &["64M,256M"],
        &["base\\ line"],
        &["base line"],
        &["base\\ line"],
    ];
    assert_eq!(found, expected);
    let own = std::process::id().to_string();
    let found = place.bash("", &["iotomy trace -p ", "iotomy trace -p1"]);
    assert!(found[0].contains(&own), "{own}: {found:?}");
    assert!(found[1].iter().all(|word| word.starts_with("-p1")), "{found:?}");
}

#[test]
fn bash_puts_a_candidate_in_as_a_text_of_the_quotation_that_is_open() {
    if !has("bash") {
        return;
    }
    let place = Place::new();
    let tools = place.folder.path().join("tools");
    fs::remove_file(tools.join("iotomy")).unwrap();
    fs::write(place.folder.path().join("answer"), format!("values\n\n{}\n", HOSTILE.join("\n")))
        .unwrap();
    let answer = format!("#!/bin/sh\ncat '{}/answer'\n", place.folder.path().display());
    support::program(&tools, "iotomy", answer.as_bytes());
    // What is in front of the quotation stays as it is typed.
    for before in ["", "'", "\"", "''\"", "\"\"'"] {
        let line = format!("iotomy trace --name {before}p");
        let found = place.bash("", &[&line]).remove(0);
        let quote = before.chars().last().map(String::from).unwrap_or_default();
        let mut expected = HOSTILE.to_vec();
        // In double quotes, it is history whatever stands before it.
        expected.retain(|name| quote != "\"" || !name.contains('!'));
        let put_in = |text: &String| {
            let end = if text.ends_with(&quote) { "" } else { &quote };
            let shell = format!("printf %s {quote}{text}{end}");
            place.completions("bash", &["--norc", "-c", &shell])
        };
        assert_eq!(found.iter().map(put_in).collect::<Vec<_>>(), expected, "{before}: {found:?}");
        assert!(!place.folder.path().join("files/ran").exists());
    }
    // With escapes of its own, nothing is put in.
    assert_eq!(place.bash("", &["iotomy trace --name $'p"]), [[""]]);
}

#[test]
fn bash_completes_other_commands_by_their_own_completion() {
    if !has("bash") {
        return;
    }
    if !Path::new(BASH_COMPLETION).exists() {
        return skip(Need::Programs, "there is no bash-completion");
    }
    let place = Place::new();
    let lines: Vec<&str> = ASKED.iter().map(|asked| asked.0).collect();
    for (asked, found) in ASKED.iter().zip(place.bash(BASH_COMPLETION, &lines)) {
        check("bash", asked, &found);
    }
}

#[test]
fn fish_completes() {
    if !has("fish") {
        return;
    }
    let place = Place::new();
    let lines: Vec<&str> = ASKED.iter().map(|asked| asked.0).collect();
    for (asked, found) in ASKED.iter().zip(place.fish(&lines)) {
        let words: Vec<String> =
            found.iter().map(|line| line.split('\t').next().unwrap().to_owned()).collect();
        check("fish", asked, &words);
    }
    let found = place.fish(&[
        "iotomy limits --only=memory-copy-",
        "iotomy trace --json=fi",
        "iotomy race --deny B:copy_f",
        "iotomy lab run null-sink -L size=64M,25",
        "iotomy history show ba",
        "iotomy trace -p ",
        "iotomy lab run nu",
    ]);
    let words = |at: usize| found[at].iter().map(|line| line.split('\t').next().unwrap());
    for (at, expected) in [
        "--only=memory-copy-all",
        "--json=first.json",
        "B:copy_file_range",
        "size=64M,256M",
        "base line",
    ]
    .into_iter()
    .enumerate()
    {
        assert!(words(at).eq([expected]), "{found:?}");
    }
    // The name of a process stands beside its number, and what an experiment is beside its name.
    let own = format!("{}\t", std::process::id());
    let line = found[5].iter().find(|line| line.starts_with(&own));
    assert!(line.is_some_and(|line| line.contains("completion")), "{found:?}");
    assert!(found[6][0].len() > "null-sink\t".len(), "{found:?}");
}

/// Types each line and a tab to an interactive zsh on a terminal of its own, and prints the line that comes
/// of it, behind what is listed.
const ZSH: &str = r#"
zmodload zsh/zpty
zpty shell zsh -f -i
shell() { zpty -w shell "$1" }
shell "PS1= PS2= RPS1=; unsetopt zle_bracketed_paste prompt_cr prompt_sp; stty -echo rows 2000 cols 200"
shell "fpath=(${(q)1:h} \$fpath); autoload -Uz compinit; compinit -u -D"
shell "zstyle ':completion:*' list-prompt ''; LISTMAX=0; setopt no_beep no_always_last_prompt no_list_ambiguous"
shell "show() { print -r -- \"{{\$BUFFER}}\"; BUFFER=; zle -I; zle redisplay }; zle -N show; bindkey '^X' show"
shell "print -r -- re''ady"
local text
zpty -r shell text '*ready*' || exit 1
while IFS= read -r line; do
    zpty -w -n shell "$line"$'\t\x18'
    zpty -r shell text '*{{*}}*' || exit 1
    print -r -- "? iotomy"
    print -r -- "$text"
done <$2
zpty -d shell
"#;

#[test]
fn zsh_completes() {
    if !has("zsh") {
        return;
    }
    let place = Place::new();
    // What is unique is put in; of the rest, there is a list.
    let unique = [
        ("iotomy tra", "iotomy trace "),
        ("iotomy trace --quan", "iotomy trace --quantize "),
        ("iotomy lab run nu", "iotomy lab run null-sink "),
        ("iotomy limits --only memory-copy-", "iotomy limits --only memory-copy-all "),
        (
            "iotomy limits --only=syscall,memory-copy-",
            "iotomy limits --only=syscall,memory-copy-all ",
        ),
        ("iotomy copy --mover sendf", "iotomy copy --mover sendfile "),
        ("iotomy trace --call copy_f", "iotomy trace --call copy_file_range "),
        ("iotomy trace --call read,%fi", "iotomy trace --call read,%file "),
        ("iotomy trace --user roo", "iotomy trace --user root "),
        ("iotomy trace --json fi", "iotomy trace --json first.json "),
        ("iotomy trace --json=fi", "iotomy trace --json=first.json "),
        ("iotomy race --deny B:copy_f", "iotomy race --deny B:copy_file_range "),
        ("iotomy lab run null-sink -L si", "iotomy lab run null-sink -L size="),
        ("iotomy lab run null-sink -L size=64M,25", "iotomy lab run null-sink -L size=64M,256M "),
        ("iotomy history show ma", "iotomy history show main "),
        ("iotomy history show ba", "iotomy history show base\\ line "),
        ("iotomy trace -q -- cat folder.", "iotomy trace -q -- cat folder.txt "),
        ("iotomy trace -- iotomy lab ru", "iotomy trace -- iotomy lab run "),
        ("iotomy trace -- iotom", "iotomy trace -- iotomy "),
    ];
    let listed = [
        ("iotomy lab run ", vec!["null-sink", "copy"]),
        ("iotomy history show ", vec!["main", "last"]),
        ("iotomy trace --observer ", vec!["ptrace", "bpf"]),
        ("iotomy trace -p ", vec!["completion"]),
    ];
    let lines =
        unique.iter().map(|(typed, _)| *typed).chain(listed.iter().map(|(typed, _)| *typed));
    let file = place.lines(lines.map(str::to_owned));
    let script = place.script("_iotomy");
    let text = place.completions("zsh", &["-f", "-c", ZSH, "zsh", &script, &file]);
    let answers: Vec<&str> = text.split("? iotomy\n").skip(1).collect();
    assert_eq!(answers.len(), unique.len() + listed.len(), "{text}");
    for ((typed, expected), answer) in unique.iter().zip(&answers) {
        let line = answer.split("{{").nth(1).and_then(|rest| rest.split("}}").next());
        assert_eq!(line, Some(*expected), "{typed}: {answer:?}");
    }
    for ((typed, expected), answer) in listed.iter().zip(&answers[unique.len()..]) {
        assert!(expected.iter().all(|word| answer.contains(word)), "{typed}: {answer:?}");
    }
}
