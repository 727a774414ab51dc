//! docs/articles/: its tables and pictures are what the commands in them print of the records that were
//! kept, and every claim of an article is on its page.
//!
//! `make articles`, which runs the first test with `UPDATE=1`, makes them anew.

use crate::support;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::{IOTOMY, bare};

/// A comment that has the command of what follows, up to [`END`]; or, of one with `-o`, of a file.
const BEGIN: &str = "<!-- $ ";
const CLOSE: &str = " -->\n";
const END: &str = "<!-- end -->";

/// A picture has less than this.
const MOST: u64 = 60 << 10;

fn root() -> PathBuf {
    fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")).unwrap()
}

/// The pages, by their path from the root.
fn pages() -> BTreeMap<String, String> {
    let folder = fs::read_dir(root().join("docs/articles")).unwrap();
    let names = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names = names.filter(|name| name.ends_with(".md"));
    names.map(|name| page(format!("docs/articles/{name}"))).collect()
}

fn page(path: String) -> (String, String) {
    let text = fs::read_to_string(root().join(&path)).unwrap();
    (path, text)
}

/// What a command of a page prints, run in the root with the built iotomy.
fn printed(command: &str) -> String {
    let mut path = OsString::from(Path::new(IOTOMY).parent().unwrap());
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut shell: Command = bare("sh", &["-c", command]);
    let output = shell.current_dir(root()).env("PATH", path).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{command}: {output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.is_empty(), "{command} prints nothing");
    text
}

/// The page as its commands make it, and the files that they write.
fn made(page: &str) -> (String, Vec<(String, String)>) {
    let (mut text, mut files, mut rest) = (String::new(), Vec::new(), page);
    while let Some((before, after)) = rest.split_once(BEGIN) {
        let (command, after) = after.split_once(CLOSE).expect("a command is one comment");
        text += &format!("{before}{BEGIN}{command}{CLOSE}");
        rest = after;
        if let Some((_, words)) = command.split_once(" -o ") {
            let file = words.split(' ').next().unwrap();
            let shown = file.strip_prefix("docs").expect("files are in docs/");
            assert!(rest.lines().next().unwrap().contains(&format!("{shown})")), "{command}");
            let said = printed(&command.replace(&format!(" -o {file}"), ""));
            files.push((file.to_owned(), said));
        } else {
            rest = rest.split_once(END).expect("what is printed ends").1;
            text += &format!("\n{}\n{END}", printed(command));
        }
    }
    (text + rest, files)
}

#[test]
fn tables_and_pictures_are_of_the_records_that_were_kept() {
    let is_update = std::env::var_os("UPDATE").is_some();
    let (mut stale, mut drawn) = (Vec::new(), BTreeSet::new());
    // The README has one of them, too.
    for (path, page) in pages().into_iter().chain([page("README.md".to_owned())]) {
        let (text, files) = made(&page);
        drawn.extend(files.iter().map(|(file, _)| file.clone()));
        for (file, text) in files.into_iter().chain([(path, text)]) {
            let file_path = root().join(&file);
            if fs::read_to_string(&file_path).ok().as_ref() == Some(&text) {
                continue;
            }
            if is_update {
                fs::write(file_path, text).unwrap();
            } else {
                stale.push(file);
            }
        }
    }
    assert!(stale.is_empty(), "not of the records that are kept: {stale:?}; `make articles`");
    let kept = fs::read_dir(root().join("docs/pictures")).unwrap();
    for entry in kept.map(Result::unwrap) {
        let file = format!("docs/pictures/{}", entry.file_name().into_string().unwrap());
        assert!(drawn.contains(&file), "who draws {file}?");
        assert!(entry.metadata().unwrap().len() < MOST, "{file} is large");
    }
}

#[test]
fn every_claim_of_an_article_is_on_its_page() {
    let pages = pages();
    let guide = fs::read_to_string(root().join("docs/lab.md")).unwrap();
    let mut claims = 0;
    for row in guide.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let is_article = |word: &str| word.len() == 3 && word.bytes().all(|c| c.is_ascii_digit());
        let [claim, articles, _] = cells[..] else { continue };
        if !articles.split(", ").all(is_article) {
            continue;
        }
        claims += 1;
        for article in articles.split(", ") {
            let lead = format!("Article {article}");
            let page = pages.values().find(|page| page.contains(&lead));
            let page = page.unwrap_or_else(|| panic!("no page says \"{lead}\""));
            let claim = claim.trim_matches('`');
            assert!(page.contains(claim), "{claim} is not on the page of article {article}");
        }
    }
    assert!(claims > 25, "the guide's table of claims was read");
}

#[test]
fn what_the_pages_point_to_is_there() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    for (path, page) in pages() {
        let folder = root().join("docs/articles");
        for link in page.split("](").skip(1).map(|rest| rest.split(')').next().unwrap()) {
            let file = link.split('#').next().unwrap();
            let is_there = link.starts_with("http") || folder.join(file).exists();
            assert!(is_there, "{path}: {link}");
        }
        assert!(readme.contains(&format!("]({path})")), "the README does not name {path}");
    }
}
