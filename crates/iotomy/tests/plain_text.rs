//! What a terminal gets: no escapes where nothing says that it takes them, no characters that the locale
//! does not have, and nothing of a name that a terminal would act upon.

use crate::support;

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::{Command, Stdio};

use iotomy_record::printable;
use support::{IOTOMY, bare, has, iotomy};

/// Runs `line` of a shell on a terminal with this TERM; what the terminal got.
fn on_terminal(folder: &Path, term: Option<&str>, line: &str) -> String {
    let mut script = bare("script", &["-qec", line, "/dev/null"]);
    script.current_dir(folder).env_remove("NO_COLOR").env_remove("TERM");
    if let Some(term) = term {
        script.env("TERM", term);
    }
    let output = script.stderr(Stdio::null()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_terminal_that_nobody_named_gets_no_escapes() {
    if !has("script") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("source"), "some bytes").unwrap();
    for words in [
        "doctor",
        "trace -- true",
        "limits --only syscall --refresh",
        "race --no-trace -r 2 true true",
        "copy --progress=always source target",
        "copy --explain source target",
        "lab list wait",
        "history list",
        "--help",
        "copy --help",
        "copy --no-such-option",
        "copy /nope target",
    ] {
        for term in [None, Some(""), Some("dumb")] {
            let seen = on_terminal(folder.path(), term, &format!("{IOTOMY} {words}"));
            assert!(!seen.is_empty() && !seen.contains('\x1b'), "{term:?} {words}: {seen:?}");
        }
    }
    // There is something to leave out.
    for words in ["doctor", "trace -- true", "copy --help"] {
        let seen = on_terminal(folder.path(), Some("xterm"), &format!("{IOTOMY} {words}"));
        assert!(seen.contains('\x1b'), "{words}: {seen:?}");
    }
}

#[test]
fn a_live_view_is_refused_where_nobody_named_the_terminal() {
    if !has("script") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let line = format!("{IOTOMY} trace --live -- true; echo status $?");
    let seen = on_terminal(folder.path(), None, &line);
    assert!(seen.contains("TERM is dumb or not set") && seen.contains("status 2"), "{seen:?}");
}

/// The command with these variables of the locale, and none of the others.
fn in_locale(locale: &[(&str, &str)], folder: &Path, words: &[&str]) -> Command {
    let mut command = iotomy(words);
    for variable in ["LC_ALL", "LC_CTYPE", "LANG"] {
        command.env_remove(variable);
    }
    command.envs(locale.iter().copied()).current_dir(folder);
    command
}

#[test]
fn a_locale_without_utf8_gets_ascii() {
    const UTF8: &str = "C.UTF-8";
    let folder = tempfile::tempdir().unwrap();
    let race = ["race", "--no-trace", "-r", "3", "-w", "0", "true", "sleep 0.02"];
    let commands: [&[&str]; 14] = [
        &["trace", "-o", "report.txt", "--json", "trace.json", "--", "ls", "."],
        &["trace", "--quantize", "wall,return", "--", "ls", "."],
        &["show", "trace.json"],
        &race,
        &["limits", "--only", "syscall"],
        &["doctor"],
        &["lab", "list"],
        &["lab", "list", "wait", "herd"],
        &["trace", "--help"],
        &["copy", "--help"],
        &["race"],
        &["trace", "--", "/there-is-no-\u{fc}"],
        &["copy", "--\u{fc}"],
        &["history", "list"],
    ];
    type Locale<'a> = &'a [(&'a str, &'a str)];
    let ascii: [Locale<'_>; 5] = [
        &[],
        &[("LANG", "C")],
        &[("LANG", "en_US.ISO-8859-1")],
        &[("LC_CTYPE", "POSIX"), ("LANG", UTF8)],
        &[("LC_ALL", "C"), ("LC_CTYPE", UTF8), ("LANG", UTF8)],
    ];
    for locale in ascii {
        for words in commands {
            let output = in_locale(locale, folder.path(), words).output().unwrap();
            let shown = [output.stdout, output.stderr].concat();
            let text = String::from_utf8_lossy(&shown);
            assert!(text.is_ascii(), "{locale:?} {words:?}: {text}");
            assert!(!shown.is_empty() || words.contains(&"-o"), "{locale:?} {words:?}");
        }
        let report = std::fs::read_to_string(folder.path().join("report.txt")).unwrap();
        assert!(report.is_ascii() && report.contains("wall"), "{locale:?}: {report}");
    }
    let rich: [Locale<'_>; 3] = [
        &[("LANG", "en_US.utf8")],
        &[("LC_CTYPE", UTF8), ("LANG", "C")],
        &[("LC_ALL", UTF8), ("LC_CTYPE", "C"), ("LANG", "C")],
    ];
    for locale in rich {
        let words = ["trace", "-o", "-", "--", "ls"];
        let output = in_locale(locale, folder.path(), &words).output().unwrap();
        assert!(String::from_utf8_lossy(&output.stdout).contains(" · "), "{locale:?}: {output:?}");
        // It can be asked for all the same, and an empty variable says nothing.
        let words = ["trace", "--ascii", "-o", "-", "--", "ls"];
        let empty = [locale, &[("LC_ALL", "")]].concat();
        let output = in_locale(&empty, folder.path(), &words).output().unwrap();
        assert!(output.stdout.iter().all(u8::is_ascii), "{locale:?}: {output:?}");
    }
    // The record is JSON, which is UTF-8 whatever the locale is.
    let odd = folder.path().join("\u{fc}");
    std::os::unix::fs::symlink("/bin/true", &odd).unwrap();
    let words = ["trace", "-q", "--json", "-", "--", odd.to_str().unwrap()];
    let output = in_locale(&[("LC_ALL", "C")], folder.path(), &words).output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains('\u{fc}'));
}

/// Texts that move the cursor, change colours, hide or reorder: C0, DEL, C1 as characters and as raw bytes,
/// overrides of direction, characters without room.
const HOSTILE: [&[u8]; 8] = [
    b"\x1b[31mred",
    b"\x07\x08\x7f\r",
    b"line\nline",
    "\u{9b}31mred".as_bytes(),
    b"\x9b31mred",
    "\u{202e}gpj\u{2066}".as_bytes(),
    "\u{200b}\u{feff}".as_bytes(),
    b"\xff\xfe",
];

#[test]
fn nothing_of_a_command_line_is_acted_upon_by_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let no_word: &[u8] = b"";
    // Each has the hostile text somewhere: as an option, a value, a verb, a name of a file or a program.
    let places: [(&[&str], &[u8]); 28] = [
        (&[], no_word),
        (&["copy"], b"--"),
        (&["trace"], b"--"),
        (&["race"], b"-"),
        (&["lab", "run"], b"--"),
        (&["lab"], no_word),
        (&["history"], no_word),
        (&["trace", "--"], no_word),
        (&["anatomy", "--"], no_word),
        (&["trace", "-p"], no_word),
        (&["trace", "--observer", "ptrace", "--name"], no_word),
        (&["trace", "--cgroup"], no_word),
        (&["trace", "--unit"], no_word),
        (&["trace", "--container"], no_word),
        (&["trace", "--observer"], no_word),
        (&["trace", "--call"], no_word),
        (&["trace", "--user"], no_word),
        (&["trace", "--json"], b"/nope/"),
        (&["race", "-L"], no_word),
        (&["race", "--no-trace", "-r", "1", "-w", "0", "true"], b"/nope/"),
        (&["copy", "x"], b"/nope/"),
        (&["copy", "--mover"], no_word),
        (&["show"], b"/nope/"),
        (&["report"], b"/nope/"),
        (&["limits", "--only"], no_word),
        (&["lab", "run"], no_word),
        (&["doctor", "--path"], no_word),
        (&["history", "show"], no_word),
    ];
    for (words, lead) in places {
        for hostile in HOSTILE {
            let last = OsString::from_vec([lead, hostile].concat());
            let mut command = iotomy(words);
            let output = command.arg(&last).current_dir(folder.path()).output().unwrap();
            let shown = [output.stdout.as_slice(), &output.stderr].concat();
            let text = String::from_utf8(shown).unwrap();
            assert!(text.contains("iotomy: "), "{words:?} {last:?}: {text}");
            for line in text.lines() {
                assert_eq!(printable(line, true), line, "{words:?} {last:?}");
            }
            assert!(
                matches!(output.status.code(), Some(2 | 127)),
                "{words:?} {last:?}: {output:?}"
            );
        }
    }
}

/// All tables that have names.
const ALL: [&str; 9] =
    ["--files", "--peers", "--paths", "--threads", "--slowest", "9", "--by", "call,path", "--json"];

#[test]
fn nothing_of_the_names_in_a_report_is_acted_upon_by_the_terminal() {
    // Those that are text in one name, and the raw bytes in another.
    let (text, raw): (Vec<&[u8]>, Vec<&[u8]>) =
        HOSTILE.iter().partition(|bytes| std::str::from_utf8(bytes).is_ok());
    for hostile in [text.concat(), raw.concat()] {
        let folder = tempfile::tempdir().unwrap();
        let hostile = OsStr::from_bytes(&hostile);
        let program = folder.path().join(hostile);
        // By another process: a descriptor that is open for writing while another test forks would make it busy.
        assert!(bare("cp", &["/bin/cat"]).arg(&program).status().unwrap().success());
        let file = folder.path().join(OsStr::from_bytes(&[hostile.as_bytes(), b".txt"].concat()));
        std::fs::write(&file, "bytes").unwrap();
        let record = folder.path().join("record.json");
        for (verb, options) in [
            ("trace", &ALL[..]),
            ("anatomy", &["--json"]),
            ("race", &["-r", "1", "-w", "0", "--json"]),
        ] {
            let mut command = iotomy(&[verb]);
            command.args(options).arg(&record).current_dir(folder.path());
            if verb == "race" {
                command.arg("true").arg("cat *.txt; true");
            } else {
                command.arg("--").arg(&program).arg(&file);
            }
            let output = command.stdout(Stdio::piped()).output().unwrap();
            let shown = iotomy(&["show"]).arg(&record).output().unwrap();
            let compared = iotomy(&["diff", "--all"]).arg(&record).arg(&record).output().unwrap();
            for text in [&output.stderr, &shown.stdout, &shown.stderr, &compared.stdout] {
                let text = String::from_utf8(text.clone()).unwrap();
                for line in text.lines() {
                    assert_eq!(printable(line, true), line, "{verb} {hostile:?}");
                }
            }
        }
    }
}
