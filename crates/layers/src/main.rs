//! Checks the direction of imports: `cargo run --package iotomy-layers`, part of `make lint`.
//!
//! Between crates, imports must point down the floors in the workspace's `Cargo.toml` ([`floors`]). Inside a crate,
//! files must not import each other in a cycle ([`circles`]). What names of others may stand in is not read as UTF-8,
//! and no path is printed as it ([`texts`]). Test code is ignored.

mod circles;
mod floors;
mod names;
mod texts;
mod tree;
mod workspace;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use crate::tree::Tree;
use crate::workspace::Workspace;

fn main() -> Result<ExitCode> {
    let root = Path::new(".");
    let workspace = Workspace::read(root)?;
    let upward = floors::complaints(&workspace);
    let (mut in_circles, mut printers, mut readers) = (Vec::new(), Vec::new(), BTreeSet::new());
    for member in &workspace.members {
        for crate_root in member.crate_roots() {
            let tree = Tree::read(&crate_root)?;
            in_circles.extend(circles::complaints(&tree, root));
            if texts::is_checked(&member.name) {
                readers.extend(texts::readers(&tree, root));
                printers.extend(texts::printers(&tree, root));
            }
        }
    }
    let of_utf8 = texts::complaints(&readers);
    let all = upward.iter().chain(&in_circles).chain(&printers).chain(&of_utf8);
    all.for_each(|complaint| eprintln!("{complaint}\n"));
    for (complaints, remedy) in [(&in_circles, circles::REMEDY), (&of_utf8, texts::REMEDY)] {
        if !complaints.is_empty() {
            eprintln!("{remedy}");
        }
    }
    let is_right = [&upward, &in_circles, &printers, &of_utf8].iter().all(|all| all.is_empty());
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
