//! Imports between crates: each crate is on a floor and imports only crates of lower floors.

use crate::workspace::Workspace;

/// Describes imports that do not point down, and crates without a floor.
pub(crate) fn complaints(workspace: &Workspace) -> Vec<String> {
    let mut found = Vec::new();
    for member in &workspace.members {
        let name = &member.name;
        let Some(floor) = workspace.floor(name) else {
            found.push(format!(
                "{name} is on no floor: add it to `floors` in Cargo.toml, above every crate it imports"
            ));
            continue;
        };
        for other in workspace.imports(member) {
            if workspace.floor(&other.name).is_some_and(|below| below <= floor) {
                let (low, high) = (&other.name, name);
                found.push(format!(
                    "{high} imports {low}, which is not on a lower floor: move what {high} needs into a \
                     crate below both, or what needs {low} into a crate above both (`floors` in Cargo.toml)"
                ));
            }
        }
    }
    for name in workspace.floors.iter().flatten() {
        if !workspace.members.iter().any(|member| member.name == *name) {
            found.push(format!("{name} is no crate: remove it from `floors` in Cargo.toml"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// Returns the complaints about a workspace of crates `a`, `b` and `c` with these floors, where
    /// `a` imports `b`.
    fn complaints_with(floors: &str) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let manifest =
            format!("[workspace]\nmembers = [\"c\", \"crates/*\"]\nmetadata.floors = {floors}\n");
        fs::write(folder.path().join("Cargo.toml"), manifest).unwrap();
        for (path, needs) in [("c", ""), ("crates/a", "x-b.workspace = true"), ("crates/b", "")] {
            let name = path.rsplit('/').next().unwrap();
            let text = format!("[package]\nname = \"x-{name}\"\n[dependencies]\n{needs}\n");
            fs::create_dir_all(folder.path().join(path)).unwrap();
            fs::write(folder.path().join(path).join("Cargo.toml"), text).unwrap();
        }
        complaints(&Workspace::read(folder.path()).unwrap())
    }

    #[test]
    fn an_import_of_a_lower_floor_is_right() {
        assert!(complaints_with("[['a', 'c'], ['b']]").is_empty());
    }

    #[test]
    fn an_import_upward_or_on_one_floor_is_found() {
        for floors in ["[['b'], ['a', 'c']]", "[['a', 'b', 'c']]"] {
            let found = complaints_with(floors);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(
                found[0].starts_with("a imports b, which is not on a lower floor"),
                "{found:?}"
            );
        }
    }

    #[test]
    fn every_crate_has_a_floor_and_every_name_a_crate() {
        let found = complaints_with("[['a'], ['b', 'd']]");
        assert!(found[0].starts_with("c is on no floor") && found[1].starts_with("d is no crate"));
    }

    /// The picture has a line for each floor: its crates, followed by their descriptions.
    #[test]
    fn the_picture_of_the_architecture_has_these_floors() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
        let workspace = Workspace::read(root).unwrap();
        let page = fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
        let picture = page.split("```").nth(1).unwrap();
        let mut drawn = Vec::new();
        for word in picture.split(|sign: char| !sign.is_alphanumeric() && sign != '-') {
            let is_new = !drawn.iter().any(|(name, _)| *name == word);
            if let Some(floor) = workspace.floor(word).filter(|_| is_new) {
                drawn.push((word, floor));
            }
        }
        assert!(drawn.is_sorted_by_key(|(_, floor)| floor), "{drawn:?}");
        let all = workspace.floors.iter().flatten();
        let missing: Vec<_> =
            all.filter(|name| !drawn.iter().any(|(drawn, _)| drawn == name)).collect();
        assert!(missing.is_empty(), "not in the picture: {missing:?}");
    }
}
