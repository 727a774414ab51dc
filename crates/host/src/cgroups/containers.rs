//! Containers and pods: their control groups carry their ids; names are in the engines' files.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::mounts::Mount;
use super::{Cgroup, CgroupError, search};
use crate::kernel_text;

/// Larger files are not state of a container.
const MOST_BYTES: u64 = 16 << 20;

/// The fewest characters of an id that may stand for it.
const FEWEST: usize = 4;

/// How many characters the id of a container has.
const ID: usize = 64;

pub(super) fn find(
    mounts: &[Mount],
    root: &Path,
    name: &str,
    what: &dyn Fn() -> String,
) -> Result<Vec<Cgroup>, CgroupError> {
    if let Some((mount, directory)) = only(search(mounts, &|at| is_pod(at, name)), what)? {
        return Ok(vec![mount.cgroup(&directory, what)?]);
    }
    if let Some((mount, directory)) = only(search(mounts, &|at| is_container(at, name)), what)? {
        return Ok(vec![mount.cgroup(&directory, what)?]);
    }
    let Named { ids, is_pod } = named(root, name);
    let found = search(mounts, &|at| ids.iter().any(|id| is_container(at, id)));
    if found.len() > 1 && !is_pod {
        return Err(several(&found, what));
    }
    let groups: Result<Vec<Cgroup>, CgroupError> =
        found.iter().map(|(mount, directory)| mount.cgroup(directory, what)).collect();
    match groups {
        Ok(none) if none.is_empty() => Err(CgroupError::Unknown {
            what: what(),
            reason: match ids.is_empty() {
                true => String::from(
                    "no cgroup has that id, and no file of docker, podman or containerd that name",
                ),
                false => String::from("it is not running"),
            },
            remedy: "list them with `docker ps`, `podman ps`, `nerdctl ps` or `crictl ps`",
        }),
        groups => groups,
    }
}

pub(super) fn all(mounts: &[Mount]) -> BTreeSet<String> {
    let own = |directory: &Path| id(directory).filter(|id| is_id(id)).map(str::to_owned);
    let found = search(mounts, &|directory| own(directory).is_some());
    found.iter().filter_map(|(_, directory)| own(directory)).collect()
}

/// The only one found, or none.
fn only(
    mut found: Vec<(Mount, PathBuf)>,
    what: &dyn Fn() -> String,
) -> Result<Option<(Mount, PathBuf)>, CgroupError> {
    // A container may have control groups of its own.
    let mut outermost: Vec<(Mount, PathBuf)> = Vec::new();
    found.sort_by(|a, b| a.1.cmp(&b.1));
    for one in found {
        if !outermost.iter().any(|outer| one.1.starts_with(&outer.1)) {
            outermost.push(one);
        }
    }
    match outermost.len() {
        0 | 1 => Ok(outermost.pop()),
        _ => Err(several(&outermost, what)),
    }
}

fn several(found: &[(Mount, PathBuf)], what: &dyn Fn() -> String) -> CgroupError {
    let several = found.iter().map(|(_, directory)| directory.clone()).collect();
    CgroupError::Several { what: what(), several }
}

/// The id in the name of a container's control group: all of it, or behind the engine's name.
fn id(directory: &Path) -> Option<&str> {
    let name = directory.file_name()?.to_str()?;
    let name = name.strip_suffix(".scope").unwrap_or(name);
    match name.rsplit_once('-') {
        // Podman's monitor is beside the container.
        Some((engine, _)) if engine.ends_with("conmon") => None,
        Some((_, id)) if is_id(id) => Some(id),
        _ => Some(name),
    }
}

fn is_id(text: &str) -> bool {
    text.len() == ID && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether that is the container of this id, or of one that begins so.
fn is_container(directory: &Path, wanted: &str) -> bool {
    let Some(id) = id(directory) else { return false };
    id == wanted || (is_id(id) && wanted.len() >= FEWEST && id.starts_with(wanted))
}

/// Whether that is the pod of this id; systemd has no dashes in names.
fn is_pod(directory: &Path, wanted: &str) -> bool {
    let name = directory.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let name = name.strip_suffix(".slice").unwrap_or(name);
    let Some(at) = name.rfind("pod").filter(|_| !wanted.is_empty()) else { return false };
    name[at + 3..].replace('_', "-") == wanted
}

/// The containers that go by a name.
#[derive(Default)]
struct Named {
    ids: Vec<String>,
    /// Whether it is the name of a pod, of which several containers may be part.
    is_pod: bool,
}

fn named(root: &Path, name: &str) -> Named {
    let mut found = Named::default();
    let docker = docker_roots(root).into_iter().map(|one| one.join("containers"));
    for (file, id) in docker.flat_map(|one| directories(&one, "config.v2.json")) {
        let is_it =
            |text: &Value| text["Name"].as_str().is_some_and(|own| own == format!("/{name}"));
        if json(&file).as_ref().is_some_and(is_it) {
            found.ids.push(id);
        }
    }
    for list in stores(root) {
        let Some(Value::Array(containers)) = json(&list) else { continue };
        for one in containers {
            let names = one["names"].as_array().into_iter().flatten();
            let mut names = names.filter_map(Value::as_str);
            if names.any(|own| own == name)
                && let Some(id) = one["id"].as_str()
            {
                found.ids.push(id.to_owned());
            }
        }
    }
    let nerdctl = inner(&root.join("var/lib/nerdctl"));
    for namespace in nerdctl.iter().flat_map(|one| inner(&one.join("names"))) {
        // No path: a name stands for one file.
        let is_name = !name.contains('/') && name != "..";
        if is_name && let Ok(id) = kernel_text(namespace.join(name)) {
            found.ids.push(id.trim().to_owned());
        }
    }
    let containerd = inner(&root.join("run/containerd/io.containerd.runtime.v2.task"));
    let bundles = containerd.iter().flat_map(|one| directories(one, "config.json"));
    let crio = directories(
        &root.join("run/containers/storage/overlay-containers"),
        "userdata/config.json",
    );
    for (file, id) in bundles.chain(crio) {
        let Some(text) = json(&file) else { continue };
        let has = |keys: [&str; 2]| {
            keys.iter().any(|key| text["annotations"][*key].as_str().is_some_and(|own| own == name))
        };
        let is_pod = has(["io.kubernetes.cri.sandbox-name", "io.kubernetes.pod.name"]);
        if is_pod || has(["io.kubernetes.cri.container-name", "io.kubernetes.container.name"]) {
            found.is_pod |= is_pod;
            found.ids.push(id);
        }
    }
    found.ids.sort();
    found.ids.dedup();
    found.ids.retain(|id| !id.is_empty());
    found
}

/// Where docker keeps its containers: as it is packaged, as it was configured, and where it runs
/// without root.
fn docker_roots(root: &Path) -> Vec<PathBuf> {
    let mut roots =
        vec![root.join("var/lib/docker"), root.join("var/snap/docker/common/var-lib-docker")];
    let configured = json(&root.join("etc/docker/daemon.json"));
    let configured = configured.as_ref().and_then(|text| text["data-root"].as_str());
    roots.extend(configured.map(|one| root.join(one.trim_start_matches('/'))));
    roots.extend(homes(root).map(|home| home.join(".local/share/docker")));
    roots
}

/// The home directories, as they usually are.
fn homes(root: &Path) -> impl Iterator<Item = PathBuf> {
    inner(&root.join("home")).into_iter().chain([root.join("root")])
}

/// The lists of podman's containers, of root and of the users.
fn stores(root: &Path) -> Vec<PathBuf> {
    let mut roots = vec![root.join("var/lib/containers/storage")];
    roots.extend(homes(root).map(|home| home.join(".local/share/containers/storage")));
    let lists = roots.iter().flat_map(|store| inner(store));
    let lists = lists.filter(|one| one.to_string_lossy().ends_with("-containers"));
    lists.map(|one| one.join("containers.json")).collect()
}

/// The file `name` of each directory in `of`, with the directory's name.
fn directories(of: &Path, name: &str) -> Vec<(PathBuf, String)> {
    let with_name = |one: PathBuf| {
        let id = one.file_name()?.to_str()?.to_owned();
        Some((one.join(name), id))
    };
    inner(of).into_iter().filter_map(with_name).collect()
}

fn inner(of: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(of).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

fn json(file: &Path) -> Option<Value> {
    let facts = fs::metadata(file).ok()?;
    if !facts.is_file() || facts.len() > MOST_BYTES {
        return None;
    }
    serde_json::from_slice(&fs::read(file).ok()?).ok()
}
