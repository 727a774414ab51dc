//! A command string as a program and its arguments, or as a line for a shell.
//!
//! Run directly wherever that means the same, because a shell's start-up would be part of every
//! run; by a shell wherever it might not.

/// How a command string is to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Words {
    /// The program and its arguments.
    Direct(Vec<String>),
    /// It has syntax only a shell understands.
    Shell,
}

/// Commands that a shell runs without a program, or differently from the program of that name.
const BUILT_IN: &[&str] = &[
    "!", "{", "}", ".", ":", "alias", "bg", "break", "case", "cd", "command", "continue", "eval",
    "exec", "exit", "export", "fg", "for", "getopts", "hash", "if", "jobs", "local", "read",
    "readonly", "return", "set", "shift", "source", "times", "trap", "type", "ulimit", "umask",
    "unalias", "unset", "until", "wait", "while",
];

/// The program and its arguments, or the shell and the whole string.
///
/// # Errors
/// When a quotation has no end, or there is nothing in it.
pub fn argv(text: &str) -> Result<Vec<String>, &'static str> {
    Ok(match split(text)? {
        Words::Direct(words) => words,
        Words::Shell => ["sh", "-c", text].map(str::to_owned).to_vec(),
    })
}

/// Splits a command string as a shell would.
///
/// # Errors
/// When a quotation has no end, or there is nothing in it.
pub(super) fn split(text: &str) -> Result<Words, &'static str> {
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted_first = false;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' => words.extend(word.take()),
            '\'' => {
                quoted_first |= words.is_empty();
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some('\'') => break,
                        Some(c) => word.push(c),
                        None => return Err("unterminated '"),
                    }
                }
            }
            '"' => {
                quoted_first |= words.is_empty();
                match double_quoted(&mut chars, word.get_or_insert_default())? {
                    true => {}
                    false => return Ok(Words::Shell),
                }
            }
            '\\' => match chars.next() {
                Some('\n') | None => return Ok(Words::Shell),
                Some(c) => word.get_or_insert_default().push(c),
            },
            '#' | '~' if word.is_none() => return Ok(Words::Shell),
            '|' | '&' | ';' | '<' | '>' | '(' | ')' | '$' | '`' | '\n' | '*' | '?' | '[' => {
                return Ok(Words::Shell);
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    match words.first() {
        None => Err("it contains no command"),
        Some(first) if !quoted_first && (BUILT_IN.contains(&first.as_str()) || assigns(first)) => {
            Ok(Words::Shell)
        }
        Some(_) => Ok(Words::Direct(words)),
    }
}

/// Up to the closing quote; whether all of it means itself.
fn double_quoted(chars: &mut std::str::Chars<'_>, word: &mut String) -> Result<bool, &'static str> {
    let mut plain = true;
    loop {
        match chars.next() {
            None => return Err("unterminated \""),
            Some('"') => return Ok(plain),
            Some('$' | '`') => plain = false,
            Some('\\') => match chars.next() {
                Some(c @ ('$' | '`' | '"' | '\\')) => word.push(c),
                Some('\n') => {}
                Some(c) => word.extend(['\\', c]),
                None => return Err("unterminated \""),
            },
            Some(c) => word.push(c),
        }
    }
}

/// Whether a shell would take the word for `NAME=value`.
fn assigns(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.starts_with(|c: char| c.is_ascii_digit())
            && !name.is_empty()
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn direct(words: &[&str]) -> Result<Words, &'static str> {
        Ok(Words::Direct(words.iter().map(ToString::to_string).collect()))
    }

    #[test]
    fn what_means_the_same_runs_directly() {
        assert_eq!(split("dd if=a of=b"), direct(&["dd", "if=a", "of=b"]));
        assert_eq!(
            split("  grep 'a b' \"c\\\"d\" e\\ f ''"),
            direct(&["grep", "a b", "c\"d", "e f", ""])
        );
        assert_eq!(
            split("awk '{print $1 > \"x\"}' f"),
            direct(&["awk", "{print $1 > \"x\"}", "f"])
        );
        assert_eq!(split("find -exec {} a#b a~b"), direct(&["find", "-exec", "{}", "a#b", "a~b"]));
        assert_eq!(split("'cd' x"), direct(&["cd", "x"]));
    }

    #[test]
    fn what_a_shell_would_change_runs_under_one() {
        for text in [
            "a | b",
            "a > b",
            "a < b",
            "a; b",
            "a && b",
            "a &",
            "(a)",
            "echo $HOME",
            "echo \"$HOME\"",
            "echo `a`",
            "ls *.c",
            "ls ~",
            "cd x",
            "X=1 a",
            "exit 3",
            ": x",
            "a\nb",
            "a # b",
            "! a",
        ] {
            assert_eq!(split(text), Ok(Words::Shell), "{text}");
        }
    }

    #[test]
    fn what_has_no_end_is_refused() {
        assert!(split("echo 'a").is_err());
        assert!(split("echo \"a").is_err());
        assert!(split("").is_err());
        assert!(split("  ").is_err());
    }
}
