//! That the manuals are whole and true.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser;

use super::*;

/// Every command with its name, hidden ones apart.
fn commands() -> Vec<(String, Command)> {
    fn add(command: &Command, name: &str, all: &mut Vec<(String, Command)>) {
        all.push((name.to_owned(), command.clone()));
        for lower in command.get_subcommands().filter(|lower| !lower.is_hide_set()) {
            add(lower, &below(name, lower), all);
        }
    }
    let mut root = Cli::command().disable_help_subcommand(true);
    root.build();
    let mut all = Vec::new();
    add(&root, "", &mut all);
    all
}

#[test]
fn every_verb_declares_its_status_and_examples() {
    for (name, _) in commands() {
        let manual = manual(&name).unwrap_or_else(|| panic!("{name} has no manual"));
        assert!(!manual.examples.is_empty() && !manual.status.is_empty(), "{name}");
        assert!(manual.status.iter().any(|(status, _)| *status == "2"), "{name}");
        assert!(manual.examples.iter().all(|(_, says)| says.ends_with(':')), "{name}");
        let facts = facts(ENVIRONMENT, &name, &Cli::command());
        let said = manual.status.iter().chain(&facts).all(|(_, says)| says.ends_with('.'));
        assert!(said, "{name}");
    }
}

/// The words of a line, as a shell splits it, up to a pipe or the next command.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut is_quoted) = (vec![String::new()], false);
    for sign in line.split(" | ").next().unwrap().chars() {
        match sign {
            ';' if !is_quoted => break,
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(String::new()),
            sign => words.last_mut().unwrap().push(sign),
        }
    }
    words
}

#[test]
fn every_example_is_a_command_line_that_is_understood() {
    for (name, _) in commands() {
        let mut names_itself = false;
        for line in manual(&name).unwrap().examples.iter().flat_map(|(lines, _)| lines.lines()) {
            for line in line.split(" | ").filter(|line| line.starts_with("iotomy ")) {
                let words = words(line);
                let parsed = Cli::try_parse_from(&words);
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
                names_itself |= words[1..].join(" ").starts_with(&name);
            }
        }
        assert!(names_itself, "{name}");
    }
}

#[test]
fn an_example_can_be_pasted_whatever_the_width() {
    let line = "iotomy trace --until 'call == \"a b\"' --json f --unit nginx";
    let broken =
        "  iotomy trace --until \\\n      'call == \"a b\"' --json f \\\n      --unit nginx";
    assert_eq!(continued(line, 2, 33), broken);
    for (name, _) in commands() {
        for line in manual(&name).unwrap().examples.iter().flat_map(|(lines, _)| lines.lines()) {
            for width in [58, 78, 98] {
                let text = continued(line, 6, width);
                assert_eq!(text.trim_start().replace(" \\\n          ", " "), line);
                for one in text.lines() {
                    let alone = one.trim().trim_end_matches(" \\");
                    let is_word = !continued(alone, 0, 1).contains('\n');
                    assert!(is_word || one.chars().count() <= width, "{one}");
                }
            }
        }
    }
}

/// The sources of the product, without their tests.
fn sources(folder: &Path, all: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            // The declarations here are compared with the other sources.
            if !path.ends_with("src/help") {
                sources(&path, all);
            }
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let text = text.split("#[cfg(test)]\nmod ").next().unwrap().to_owned();
            all.push((path, text));
        }
    }
}

/// The quoted texts that look like the name of a variable.
fn variables(text: &str) -> Vec<&str> {
    let is_name = |part: &&str| {
        part.len() > 1 && part.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
    };
    let parts: Vec<&str> = text.split('"').collect();
    // The name of an option's value is none.
    let is_read = |pair: &&[&str]| !pair[0].ends_with("value_name = ") && is_name(&pair[1]);
    parts.windows(2).filter(is_read).map(|pair| pair[1]).collect()
}

#[test]
fn every_variable_that_is_read_is_in_the_environment() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut all = Vec::new();
    for entry in fs::read_dir(crates).unwrap() {
        let folder = entry.unwrap().path();
        // Those are for tests alone.
        if !["fault-fs", "test-requirements", "test-workload"]
            .iter()
            .any(|name| folder.ends_with(name))
        {
            sources(&folder.join("src"), &mut all);
        }
    }
    let reads = |text: &str| {
        ["env::var", "env::vars", "user_folder(", "getenv"].iter().any(|call| text.contains(call))
    };
    let said: Vec<&str> = ENVIRONMENT.iter().flat_map(|one| one.name.split(", ")).collect();
    let also = ENVIRONMENT.iter().map(|one| one.says).collect::<String>();
    let mut count = 0;
    for (path, text) in all.iter().filter(|(_, text)| reads(text)) {
        for name in variables(text) {
            // Keys of login.defs(5), and the beginning of names.
            if name.starts_with("ENV_") || name == "LC_" {
                continue;
            }
            assert!(said.contains(&name) || also.contains(name), "{name}, of {}", path.display());
            count += 1;
        }
    }
    assert!(count > 15, "{count}");
    // Variables that no source reads must not be listed.
    let everything: String = all.iter().map(|(_, text)| text.as_str()).collect();
    for name in said.iter().filter(|name| **name != "LC_*") {
        assert!(everything.contains(&format!("\"{name}\"")), "{name}");
    }
}

#[test]
fn a_long_text_is_wrapped_between_words() {
    assert_eq!(wrapped("one two three", 2, 9), "  one two\n  three\n");
    assert_eq!(wrapped("", 1, 9), " \n");
}
