//! Checks the direction of imports: `cargo run --package iotomy-imports`, part of `make lint`.
//!
//! Between crates, imports must point down the floors in the workspace's `Cargo.toml` ([`floors`]). Inside a crate,
//! files of different directories must not import each other in a cycle ([`circles`]). Test code is ignored.

mod circles;
mod floors;
mod names;
mod tree;
mod workspace;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use crate::tree::Tree;
use crate::workspace::{Member, Workspace};

fn main() -> Result<ExitCode> {
    let root = Path::new(".");
    let workspace = Workspace::read(root)?;
    let upward = floors::complaints(&workspace);
    let mut in_circles = Vec::new();
    for crate_root in workspace.members.iter().flat_map(Member::crate_roots) {
        in_circles.extend(circles::complaints(&Tree::read(&crate_root)?, root));
    }
    upward.iter().chain(&in_circles).for_each(|complaint| eprintln!("{complaint}\n"));
    if !in_circles.is_empty() {
        eprintln!("{}", circles::REMEDY);
    }
    let is_right = upward.is_empty() && in_circles.is_empty();
    Ok(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
