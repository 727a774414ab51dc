//! Names of processes are others' texts: zsh and fish, on terminals of their own, put them into a line as texts,
//! also where a quotation is open, and run nothing of them. What bash does is in `completion`.

use crate::support;

use std::fs;
use std::path::Path;

use support::sessions::{TerminalSession, tools};
use support::{has, iotomy, program};

/// Names that a process of another user could have, each of which runs a command, or becomes another text, where it
/// is taken for shell's language.
pub(crate) const HOSTILE: &[&str] = &[
    "p; touch ran;",
    "p'; touch ran; '",
    "p\"; touch ran; \"",
    "p$(touch ran)",
    "p`touch ran`",
    "p\\'; touch ran; #",
    "p\\\"; touch ran; #",
    "p\\$(touch ran)",
    "p&touch ran",
    "p|touch ran",
    "p'$(touch ran)'",
    "p\"$(touch ran)\"",
    "p!!",
    "p{a,b}",
    "p*",
    "p#\u{e9}`touch ran`",
];

/// Those that are more than texts to zsh or fish.
const MORE: &[&str] = &["p(touch ran)", "p<(touch ran)", "p\\n", "p:a", "p  $HOME"];

/// In place of iotomy: completes the text of the file `answer`, and leaves the words it is run with in `words`.
const STUB: &str = r#"#!/bin/sh
cd "$STUB_FOLDER" || exit
[ "$1" = complete ] && exec cat answer
printf '%s\0' "$@" >words.new
mv words.new words
"#;

/// With each prompt the file `ready`; with Ctrl-X the line as it stands in the file `line`.
const ZSHRC: &str = r#"
PS1= PS2= RPS1=
unsetopt zle_bracketed_paste prompt_cr prompt_sp
fpath=($STUB_FOLDER $fpath)
autoload -Uz compinit && compinit -u -D
setopt no_beep
precmd() { : >$STUB_FOLDER/ready }
keep() { print -r -- "$BUFFER" >$STUB_FOLDER/line.new; mv $STUB_FOLDER/line.new $STUB_FOLDER/line }
zle -N keep
bindkey '^X' keep
"#;
const FISH: &str = r#"
source $STUB_FOLDER/iotomy.fish
function fish_prompt; echo >$STUB_FOLDER/ready; end
bind \cx "commandline >$STUB_FOLDER/line.new; mv $STUB_FOLDER/line.new $STUB_FOLDER/line"
"#;

fn puts_names_in_as_texts(shell: &str) {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let generated = iotomy(&["generate", "completions"]).arg(folder.path()).status().unwrap();
    assert!(generated.success());
    fs::create_dir(place("tools")).unwrap();
    program(&place("tools"), "iotomy", STUB.as_bytes());
    fs::write(place(".zshrc"), ZSHRC).unwrap();
    fs::write(place("config"), FISH).unwrap();
    let at = folder.path().display();
    let begun = match shell {
        "zsh" => format!("ZDOTDIR={at} zsh -d -i"),
        _ => format!("fish --no-config --private --init-command 'source {at}/config'"),
    };
    let mut session = TerminalSession::start(&format!(
        "env -i PATH={at}/tools:$PATH HOME={at} TERM=xterm LANG=C.UTF-8 STUB_FOLDER={at} {begun}"
    ));
    for quotation in ["", "'", "\""] {
        for name in HOSTILE.iter().chain(MORE) {
            taken(&session, &place("ready"));
            fs::write(place("answer"), format!("values\n\n{name}\n")).unwrap();
            session.press(&format!("iotomy trace --name {quotation}p\t\x18"));
            let line = taken(&session, &place("line"));
            session.press("\r");
            let words = taken(&session, &place("words"));
            let words: Vec<&str> = words.trim_end_matches('\0').split('\0').collect();
            assert_eq!(words, ["trace", "--name", *name], "{shell} {quotation}: {line}");
            assert!(!session.file("ran").exists(), "{shell} {quotation}: {line}");
        }
    }
}

/// Waits for a file, takes it away, and returns what it holds.
fn taken(session: &TerminalSession, path: &Path) -> String {
    session.until(&format!("{} is there", path.display()), || path.exists().then_some(()));
    let text = fs::read_to_string(path).unwrap();
    fs::remove_file(path).unwrap();
    text
}

#[test]
fn zsh_puts_a_name_in_as_a_text_of_the_quotation_that_is_open() {
    if tools() && has("zsh") {
        puts_names_in_as_texts("zsh");
    }
}

#[test]
fn fish_puts_a_name_in_as_a_text_of_the_quotation_that_is_open() {
    if tools() && has("fish") {
        puts_names_in_as_texts("fish");
    }
}
