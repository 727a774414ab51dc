//! Files that are read as UTF-8, and paths that are printed as it.
//!
//! Names of programs, threads, files, mount points and control groups are bytes. A file in which one of them
//! stands, and that is read as UTF-8, cannot be read at all for one name that is none: so nothing of `/proc`,
//! `/sys` or a user's is. `iotomy_host::kernel_text` reads it whatever there is. For the same reason no path is printed
//! by `display`, which has one sign for all bytes that are none: `iotomy_record::path_text` writes each.

use std::collections::BTreeSet;
use std::path::Path;

use crate::tree::Tree;

/// The function and the method that take nothing but UTF-8.
const NAME: &str = "read_to_string";

/// The method that prints nothing but UTF-8.
const PRINTS: &str = "display";

/// Crates that are tools of tests, benches and this workspace, and read what they have written.
const EXEMPT: [&str; 5] = ["benches", "fault-fs", "layers", "test-requirements", "test-workload"];

/// Files that may, and why.
const ALLOWED: [(&str, &str); 5] = [
    ("crates/iotomy/src/config.rs", "TOML is UTF-8, and the error says what is not"),
    ("crates/lab/src/harness/lock.rs", "the lock has a number, or is new"),
    ("crates/lab/src/wait/line.rs", "from a process of the lab's own"),
    ("crates/sys/src/caches.rs", "a size; below the crate with `kernel_text`"),
    ("crates/sys/src/orphans.rs", "numbers of processes; below the crate with `kernel_text`"),
];

/// What to do about a complaint.
pub(crate) const REMEDY: &str = "Read it with `iotomy_host::kernel_text`, or as bytes; `ALLOWED` of \
     crates/layers/src/texts.rs has the files where only UTF-8 is right.";

/// Whether a crate's files are looked at.
pub(crate) fn is_checked(crate_name: &str) -> bool {
    !EXEMPT.contains(&crate_name)
}

/// The files of a crate that read UTF-8, by their paths below the workspace.
pub(crate) fn readers(tree: &Tree, root: &Path) -> BTreeSet<String> {
    with_word(tree, root, NAME)
}

/// A line for each file of a crate that prints paths as UTF-8.
pub(crate) fn printers(tree: &Tree, root: &Path) -> Vec<String> {
    let line = |file| format!("{file} prints a path as UTF-8 ({PRINTS}); write it by `path_text`");
    with_word(tree, root, PRINTS).into_iter().map(line).collect()
}

fn with_word(tree: &Tree, root: &Path, word: &str) -> BTreeSet<String> {
    let modules = tree.modules.iter().filter(|module| module.words.contains(word));
    let path = |file: &Path| file.strip_prefix(root).unwrap_or(file).display().to_string();
    modules.map(|module| path(&tree.files[module.file])).collect()
}

/// A line for each reader that is not allowed, and for each that is and does not read.
pub(crate) fn complaints(readers: &BTreeSet<String>) -> Vec<String> {
    let is_allowed = |file: &str| ALLOWED.iter().any(|(allowed, _)| *allowed == file);
    let strange = readers.iter().filter(|file| !is_allowed(file));
    let strange = strange.map(|file| format!("{file} reads a file as UTF-8 ({NAME})"));
    let idle = ALLOWED.iter().filter(|(file, _)| !readers.contains(*file));
    let idle = idle.map(|(file, _)| format!("{file} does not need to be allowed {NAME} any more"));
    strange.chain(idle).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn readers_of(text: &str) -> BTreeSet<String> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("lib.rs"), text).unwrap();
        readers(&Tree::read(&folder.path().join("lib.rs")).unwrap(), folder.path())
    }

    #[test]
    fn every_way_to_read_utf8_is_found() {
        for text in [
            "fn f() { std::fs::read_to_string(\"/proc/x\"); }",
            "use std::fs; fn f() { fs::read_to_string(\"/proc/x\") }",
            "use std::fs::read_to_string as read; fn f() { read(\"/proc/x\") }",
            "use std::fs::{read_to_string}; fn f() { Some(\"x\").map(read_to_string) }",
            "fn f(file: &mut File) { file.read_to_string(&mut text) }",
            "fn f() { println!(\"{}\", file.read_to_string(&mut text)) }",
            "mod inner { impl X { fn f() { io::read_to_string(from) } } }",
        ] {
            assert_eq!(readers_of(text).len(), 1, "{text}");
        }
    }

    #[test]
    fn a_path_that_is_displayed_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lib.rs");
        let printers_of = |text: &str| {
            fs::write(&file, text).unwrap();
            printers(&Tree::read(&file).unwrap(), folder.path())
        };
        for text in [
            "fn f() { println!(\"{}\", path.display()) }",
            "fn f() { paths.iter().map(Path::display) }",
            "#[derive(Error)] enum E { #[error(\"{}\", .0.display())] One(PathBuf) }",
        ] {
            assert_eq!(printers_of(text).len(), 1, "{text}");
        }
        assert!(printers_of("fn f() { path_text(path) } // display").is_empty());
    }

    #[test]
    fn bytes_and_tests_are_let_be() {
        for text in [
            "fn f() { std::fs::read(\"/proc/x\"); kernel_text(\"read_to_string\") }",
            "#[cfg(test)] mod tests { fn f() { std::fs::read_to_string(\"x\") } }",
            "/// `read_to_string`\nfn f() {}",
        ] {
            assert!(readers_of(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn a_file_that_no_longer_reads_is_not_allowed_to() {
        let all: BTreeSet<String> = ALLOWED.iter().map(|(file, _)| String::from(*file)).collect();
        assert!(complaints(&all).is_empty());
        let mut other = all.clone();
        let gone = other.pop_first().unwrap();
        other.insert("crates/x/src/y.rs".to_owned());
        let found = complaints(&other);
        assert!(found.len() == 2 && found[0].starts_with("crates/x/src/y.rs reads"), "{found:?}");
        assert!(found[1].starts_with(&gone), "{found:?}");
    }
}
