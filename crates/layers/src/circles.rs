//! Import cycles: files of a crate that import each other, directly or indirectly.
//!
//! Two kinds are refused. Between files of different directories, every import counts; a module
//! (`x.rs`) and its submodules (`x/…`) are one directory. Between single files, imports between a
//! module and the modules below it are left out, so that the rest are cycles between siblings.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use crate::names::{Imports, imports};
use crate::tree::Tree;

/// The advice for a cycle.
pub(crate) const REMEDY: &str = "Move what both sides need into a file that imports neither. Where one side is a \
     list of pieces, keep the list and what the pieces implement in two files.";

/// Describes each cycle, with the imports between its files.
pub(crate) fn complaints(tree: &Tree, root: &Path) -> Vec<String> {
    let imports = imports(tree);
    let mut sideways = imports.clone();
    sideways.retain(|(from, to), _| !tree.is_below(*from, *to) && !tree.is_below(*to, *from));
    let is_between_folders =
        |from: usize, to: usize| folder(&tree.files[from]) != folder(&tree.files[to]);
    let mut all = BTreeSet::new();
    for circle in circles(tree.files.len(), &imports) {
        all.extend(complaint(tree, root, &imports, &circle, is_between_folders));
    }
    for circle in circles(tree.files.len(), &sideways) {
        all.extend(complaint(tree, root, &sideways, &circle, |_, _| true));
    }
    all.into_iter().collect()
}

/// Returns the sets of files in which each file imports all others, directly or indirectly.
fn circles(files: usize, imports: &Imports) -> Vec<BTreeSet<usize>> {
    let reached: Vec<BTreeSet<usize>> =
        (0..files).map(|file| reached_from(file, imports)).collect();
    let mut all: Vec<BTreeSet<usize>> = Vec::new();
    for file in 0..files {
        if reached[file].contains(&file) && !all.iter().any(|circle| circle.contains(&file)) {
            let both_ways = |other: &&usize| reached[**other].contains(&file);
            all.push(reached[file].iter().filter(both_ways).copied().collect());
        }
    }
    all
}

/// Returns the direct and indirect imports of a file.
fn reached_from(file: usize, imports: &Imports) -> BTreeSet<usize> {
    let (mut reached, mut next) = (BTreeSet::new(), vec![file]);
    while let Some(from) = next.pop() {
        for (_, to) in imports.keys().filter(|(importer, _)| *importer == from) {
            if reached.insert(*to) {
                next.push(*to);
            }
        }
    }
    reached
}

/// Returns the directory of a file: that of its submodules, if it exists.
fn folder(file: &Path) -> PathBuf {
    let own = file.with_extension("");
    if own.is_dir() { own } else { file.with_file_name("") }
}

/// Describes a cycle by its shortest path through an import that counts, if there is one. Longer
/// paths disappear together with it, or are reported once it is removed.
fn complaint(
    tree: &Tree,
    root: &Path,
    imports: &Imports,
    circle: &BTreeSet<usize>,
    counts: impl Fn(usize, usize) -> bool,
) -> Option<String> {
    let inside = |(from, to): &&(usize, usize)| circle.contains(from) && circle.contains(to);
    let ties = imports.keys().filter(inside).filter(|(from, to)| counts(*from, *to));
    let shortest =
        ties.map(|(from, to)| shortest_path(*to, *from, imports)).min_by_key(Vec::len)?;
    let name = |file: usize| {
        let path = &tree.files[file];
        path.strip_prefix(root).unwrap_or(path).display().to_string()
    };
    let mut text = format!("{} files import each other in a circle", circle.len());
    if circle.len() > shortest.len() {
        text.push_str("; the shortest way round");
    }
    text.push_str(":\n");
    for (from, to) in shortest.iter().zip(shortest.iter().cycle().skip(1)) {
        let names: Vec<&str> = imports[&(*from, *to)].iter().map(String::as_str).collect();
        text.push_str(&format!(
            "  {} takes {} from {}\n",
            name(*from),
            names.join(", "),
            name(*to)
        ));
    }
    Some(text)
}

/// Returns the files on the shortest import path from one file to another, both ends included.
fn shortest_path(from: usize, to: usize, imports: &Imports) -> Vec<usize> {
    let (mut came_from, mut at) = (BTreeMap::from([(from, from)]), VecDeque::from([from]));
    while let Some(file) = at.pop_front().filter(|file| *file != to) {
        for (_, next) in imports.keys().filter(|(importer, _)| *importer == file) {
            if !came_from.contains_key(next) {
                came_from.insert(*next, file);
                at.push_back(*next);
            }
        }
    }
    let mut files = vec![to];
    while let Some(before) = files.last().and_then(|file| came_from.get(file))
        && files.last() != Some(&from)
    {
        files.push(*before);
    }
    files.reverse();
    files
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Returns the complaints about a crate of these files.
    fn complaints_of(files: &[(&str, &str)]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        complaints(&Tree::read(&folder.path().join("lib.rs")).unwrap(), folder.path())
    }

    /// Returns the complaints about a crate with these contents of `a.rs` and `b/c.rs`.
    fn complaints_between(a: &str, c: &str) -> Vec<String> {
        let rest = [("lib.rs", "mod a; mod b;"), ("b.rs", "pub mod c; pub use c::C;")];
        complaints_of(&[&rest[..], &[("a.rs", a), ("b/c.rs", c)]].concat())
    }

    #[test]
    fn files_that_import_one_way_are_no_circle() {
        let a = "use crate::b::c::C; use crate::b; fn f() -> b::C { crate::b::c::g() }";
        assert!(complaints_between(a, "pub struct C; pub fn g() {}").is_empty());
    }

    #[test]
    fn a_circle_names_the_files_and_what_ties_them() {
        let found = complaints_between(
            "use crate::b::C; pub fn f() {}",
            "use crate::a; pub struct C; fn g() { a::f() }",
        );
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("2 files import each other in a circle:\n"), "{}", found[0]);
        assert!(found[0].contains("a.rs takes C from b/c.rs\n"), "{}", found[0]);
        assert!(found[0].contains("b/c.rs takes f from a.rs\n"), "{}", found[0]);
    }

    #[test]
    fn every_form_of_import_counts() {
        for form in [
            "use super::super::a::f;",
            "use crate::a::{self, f as other};",
            "use crate::a::*; fn g() { f() }",
            "mod inside { fn g() { super::super::super::a::f() } }",
            "fn g() { use crate::a as z; z::f() }",
            "fn g() { println!(\"{}\", crate::a::f()) }",
            "#[arg(value_parser = crate::a::f)] struct S;",
            "use crate::facade::f;",
            "use crate::a::E; fn g() { E::One }",
        ] {
            let found = complaints_of(&[
                ("lib.rs", "mod a; mod b; mod facade { pub use crate::a::*; }"),
                ("a.rs", "use crate::b::c::C; pub fn f() {} pub enum E { One }"),
                ("b.rs", "pub mod c;"),
                ("b/c.rs", &format!("pub struct C; {form}")),
            ]);
            assert_eq!(found.len(), 1, "{form}");
        }
    }

    #[test]
    fn tests_and_a_module_and_those_below_it_may_import_each_other() {
        let c = "pub struct C; #[cfg(test)] mod tests { use crate::a::f; }";
        assert!(complaints_between("use crate::b::C; pub fn f() {}", c).is_empty());
        let found = complaints_of(&[
            ("lib.rs", "mod b;"),
            ("b.rs", "mod c; use c::C; pub fn f() {}"),
            ("b/c.rs", "pub struct C; fn g() { super::f() }"),
        ]);
        assert!(found.is_empty(), "{found:?}");
    }

    #[test]
    fn files_of_one_folder_are_a_circle_without_imports_of_the_module_above() {
        let complaints_with = |d: &str| {
            complaints_of(&[
                ("lib.rs", "mod b;"),
                ("b.rs", "mod c; mod d; use d::D; pub fn f() {}"),
                ("b/c.rs", "pub struct C; fn g() { super::d::h() }"),
                ("b/d.rs", d),
            ])
        };
        let found = complaints_with("use super::f; pub struct D; pub fn h() {}");
        assert!(found.is_empty(), "{found:?}");
        let found = complaints_with("use super::{c::C, f}; pub struct D; pub fn h() {}");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("2 files import each other in a circle:\n"), "{}", found[0]);
        assert!(found[0].contains("b/c.rs takes h from b/d.rs\n"), "{}", found[0]);
        assert!(found[0].contains("b/d.rs takes C from b/c.rs\n"), "{}", found[0]);
    }

    #[test]
    fn a_circle_of_several_folders_may_lead_through_the_module_above() {
        let found = complaints_of(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::c::C; pub fn f() {}"),
            ("b.rs", "pub mod c; pub fn g() { crate::a::f() }"),
            ("b/c.rs", "pub struct C; fn h() { super::g() }"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("3 files import each other in a circle:\n"), "{}", found[0]);
    }

    #[test]
    fn a_module_is_read_where_its_path_says() {
        let found = complaints_of(&[
            ("lib.rs", "mod a; #[path = \"other/place.rs\"] mod b;"),
            ("a.rs", "use crate::b::below::C; pub fn f() {}"),
            ("other/place.rs", "pub mod below;"),
            ("other/below.rs", "pub struct C; use crate::a::f;"),
        ]);
        assert_eq!(found.len(), 1);
    }
}
