//! The crates of the workspace and their floors, from the manifests.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use toml::{Table, Value};

/// A workspace and the floors of its crates.
#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) members: Vec<Member>,
    /// The names of members by floor, top floor first.
    pub(crate) floors: Vec<Vec<String>>,
}

/// A crate of the workspace.
#[derive(Debug)]
pub(crate) struct Member {
    /// The name of its directory, which the floors use.
    pub(crate) name: String,
    package: String,
    folder: PathBuf,
    /// The packages it depends on, except for tests.
    dependencies: Vec<String>,
}

impl Workspace {
    /// Reads the manifest in a directory, and those of its members.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let manifest = manifest(root)?;
        let workspace = manifest.get("workspace").context("Cargo.toml has no [workspace]")?;
        let mut members = Vec::new();
        for pattern in texts(workspace.get("members")) {
            match pattern.strip_suffix("/*") {
                None => members.push(Member::read(&root.join(pattern))?),
                Some(parent) => {
                    for entry in fs::read_dir(root.join(parent))? {
                        let folder = entry?.path();
                        if folder.join("Cargo.toml").exists() {
                            members.push(Member::read(&folder)?);
                        }
                    }
                }
            }
        }
        members.sort_by(|a, b| a.name.cmp(&b.name));
        let floors = workspace.get("metadata").and_then(|metadata| metadata.get("floors"));
        let floors = floors.and_then(Value::as_array).context("no [workspace.metadata] floors")?;
        Ok(Self { members, floors: floors.iter().map(|floor| texts(Some(floor))).collect() })
    }

    /// Returns the floor of a member, 0 for the top.
    pub(crate) fn floor(&self, name: &str) -> Option<usize> {
        self.floors.iter().position(|floor| floor.iter().any(|one| one == name))
    }

    /// Returns the members that a member imports.
    pub(crate) fn imports<'w>(&'w self, member: &'w Member) -> impl Iterator<Item = &'w Member> {
        self.members.iter().filter(|other| member.dependencies.contains(&other.package))
    }
}

impl Member {
    fn read(folder: &Path) -> Result<Self> {
        let manifest = manifest(folder)?;
        let package = manifest.get("package").and_then(|package| package.get("name"));
        let package = package.and_then(Value::as_str).context("a manifest without a name")?;
        let needs = ["dependencies", "build-dependencies"].map(|key| manifest.get(key));
        let needs = needs.into_iter().flatten().filter_map(Value::as_table);
        Ok(Self {
            name: folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            package: package.to_owned(),
            folder: folder.to_owned(),
            dependencies: needs.flat_map(|table| table.keys().cloned()).collect(),
        })
    }

    /// Returns the root files of its library and its programs.
    pub(crate) fn crate_roots(&self) -> Vec<PathBuf> {
        let source = self.folder.join("src");
        let programs = fs::read_dir(source.join("bin")).into_iter().flatten().flatten();
        let programs = programs.map(|entry| entry.path());
        let programs = programs.filter(|path| path.extension().is_some_and(|end| end == "rs"));
        let usual = ["lib.rs", "main.rs"].map(|name| source.join(name));
        usual.into_iter().chain(programs).filter(|path| path.exists()).collect()
    }
}

fn manifest(folder: &Path) -> Result<Table> {
    let path = folder.join("Cargo.toml");
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    text.parse().with_context(|| format!("cannot parse {}", path.display()))
}

fn texts(value: Option<&Value>) -> Vec<String> {
    let values = value.and_then(Value::as_array).into_iter().flatten();
    values.filter_map(|value| value.as_str().map(ToOwned::to_owned)).collect()
}
