//! The modules that draw a table or a headline name the functions that compute its numbers.

#![expect(clippy::unwrap_used, reason = "a failed step of a test is a failed test")]

use std::fs;
use std::path::{Path, PathBuf};

fn modules(directory: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            modules(&path, all);
        } else if path.extension().is_some_and(|end| end == "rs") {
            all.push(path);
        }
    }
}

/// The pairs of a function and its file in a module's header.
fn named(text: &str) -> Vec<(String, String)> {
    let header: Vec<&str> = text.lines().take_while(|line| line.starts_with("//!")).collect();
    let header = header.join(" ");
    let Some((_, names)) = header.split_once("Computed by ") else { return Vec::new() };
    let quoted: Vec<&str> = names.split('`').skip(1).step_by(2).collect();
    quoted.chunks_exact(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned())).collect()
}

#[test]
fn every_function_that_a_header_names_is_in_the_file_it_names() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = Vec::new();
    modules(&root.join("src"), &mut all);
    let mut count = 0;
    for module in &all {
        for (function, file) in named(&fs::read_to_string(module).unwrap()) {
            let place = root.join("../..").join(&file);
            let source =
                fs::read_to_string(&place).unwrap_or_else(|error| panic!("{file}: {error}"));
            let is_there = source.contains(&format!(" {function}("))
                || source.contains(&format!("PROG({function},"));
            assert!(is_there, "{}: {function} is not in {file}", module.display());
            count += 1;
        }
    }
    assert!(count >= 19, "{count}");
}
