//! Control groups: the one that a path, a systemd unit or a container names.
//!
//! All is read from the cgroup file systems and from the files that container engines keep. No
//! engine is asked: root would run a program that `PATH` names, and a name would be looked up by a
//! service that may hang.

mod containers;
mod mounts;
mod quota;
mod units;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use iotomy_record::{bytes_of, lossless};

use self::mounts::{Mount, mounts};
pub use self::quota::{CpuQuota, Throttling};
use crate::kernel_text;

/// A control group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgroup {
    /// Its directory.
    pub directory: PathBuf,
    /// Its path in its hierarchy, as `/proc/PID/cgroup` has it, in a record's text ([`lossless`]).
    pub path: String,
    /// The number of its hierarchy; 0 is version 2.
    pub hierarchy: u32,
    /// Its inode number, by which the kernel knows it.
    pub id: u64,
}

/// Why there is no such control group.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CgroupError {
    /// No cgroup file system is mounted.
    #[error(
        "cannot find {what}: no cgroup file system is mounted; mount one with `mount -t cgroup2 \
         none /sys/fs/cgroup`"
    )]
    NotMounted {
        /// What was looked for.
        what: String,
    },
    /// There is none by that name.
    #[error("cannot find {what}: {reason}; {remedy}")]
    Unknown {
        /// What was looked for.
        what: String,
        /// Where it was looked for.
        reason: String,
        /// The remedy.
        remedy: &'static str,
    },
    /// There are several by that name.
    #[error("cannot tell which is {what}: {}; name one of them with --cgroup", listed(several))]
    Several {
        /// What was looked for.
        what: String,
        /// Their directories.
        several: Vec<PathBuf>,
    },
    /// The system refused to tell.
    #[error("cannot find {what}{}: {source}", in_directory(.what, .path))]
    Refused {
        /// What was looked for.
        what: String,
        /// Its directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// A path as text.
fn shown(path: &Path) -> String {
    lossless(path.as_os_str().as_bytes())
}

/// The directory, if what was looked for does not name it.
fn in_directory(what: &str, path: &Path) -> String {
    let path = shown(path);
    if what.ends_with(&path) { String::new() } else { format!(": {path}") }
}

fn listed(several: &[PathBuf]) -> String {
    const SHOWN: usize = 4;
    let mut text: Vec<String> = several.iter().take(SHOWN).map(|one| shown(one)).collect();
    if several.len() > SHOWN {
        text.push(format!("and {} more", several.len() - SHOWN));
    }
    text.join(", ")
}

/// Where control groups and the files of container engines are.
#[derive(Debug, Clone)]
pub struct Cgroups {
    mounts: Vec<Mount>,
    /// In front of the paths of container engines.
    root: PathBuf,
}

impl Cgroups {
    /// Of this machine, as this process sees it.
    pub fn of_this_machine() -> Self {
        let read = |path| kernel_text(path).unwrap_or_default();
        let mounts = mounts(&read("/proc/self/mountinfo"), &read("/proc/self/cgroup"));
        Self { mounts, root: PathBuf::from("/") }
    }

    /// The control group at `path`: its directory, or its path in a hierarchy, with or without the
    /// slash in front.
    ///
    /// # Errors
    /// When there is none.
    pub fn at(&self, path: &Path) -> Result<Cgroup, CgroupError> {
        let what = || format!("the cgroup {}", shown(path));
        self.need_mounts(&what)?;
        if let Ok(whole) = path.canonicalize()
            && let Some(mount) =
                self.mounts.iter().find(|mount| whole.starts_with(&mount.directory))
        {
            return mount.cgroup(&whole, &what);
        }
        let inner = path.strip_prefix("/").unwrap_or(path);
        // A directory that is not there is not one within a hierarchy, either.
        let is_directory = self.mounts.iter().any(|mount| path.starts_with(&mount.directory));
        let found = self.mounts.iter().map(|mount| (mount, mount.directory.join(inner)));
        // One without processes may be left over in a hierarchy that nobody uses.
        let there = || found.clone().filter(|(_, directory)| directory.is_dir());
        let best = there().find(|(_, directory)| has_processes(directory)).or(there().next());
        match best {
            Some((mount, directory)) => mount.cgroup(&directory, &what),
            None => Err(CgroupError::Unknown {
                what: what(),
                reason: match path.exists() && path.is_absolute() {
                    true => String::from("that is not in a cgroup file system"),
                    false if is_directory => String::from("there is no such directory"),
                    false => format!("it is not below {}", listed(&self.directories())),
                },
                remedy: "list them with `systemd-cgls` or `find /sys/fs/cgroup -type d`",
            }),
        }
    }

    /// The control groups whose path in their hierarchy is matched, and that are in no other of them: of the first
    /// hierarchy that has any. `pattern` is what an error calls it.
    ///
    /// # Errors
    /// When there is none.
    pub fn matching(
        &self,
        pattern: &str,
        is_match: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Vec<Cgroup>, CgroupError> {
        let what = || format!("control groups by the pattern {pattern}");
        self.need_mounts(&what)?;
        let mut found: Vec<Cgroup> = Vec::new();
        for mount in &self.mounts {
            let is_wanted = |directory: &Path| is_match(&bytes_of(&mount.path_of(directory)));
            for (_, directory) in search(std::slice::from_ref(mount), &is_wanted) {
                // In the order of their paths: one that is above another comes before it.
                if found.iter().any(|above| directory.starts_with(&above.directory)) {
                    continue;
                }
                match mount.cgroup(&directory, &what) {
                    // It was removed a moment ago.
                    Err(CgroupError::Refused { source, .. })
                        if source.kind() == io::ErrorKind::NotFound => {}
                    one => found.push(one?),
                }
            }
            if !found.is_empty() {
                break;
            }
        }
        if found.is_empty() {
            return Err(CgroupError::Unknown {
                what: what(),
                reason: format!("none below {} has such a path", listed(&self.directories())),
                remedy: "list them with `systemd-cgls` or `find /sys/fs/cgroup -type d`",
            });
        }
        Ok(found)
    }

    /// The control group of a systemd unit; without a suffix, of a service.
    ///
    /// # Errors
    /// When there is none, or several.
    pub fn unit(&self, name: &str) -> Result<Cgroup, CgroupError> {
        let what = || format!("the unit {name}");
        self.need_mounts(&what)?;
        units::find(&self.mounts, name, &what)
    }

    /// The control groups of a container by its name or the beginning of its id, or of a Kubernetes
    /// pod by its name or id.
    ///
    /// # Errors
    /// When there is none, or several containers by that name.
    pub fn container(&self, name: &str) -> Result<Vec<Cgroup>, CgroupError> {
        let what = || format!("the container {name}");
        self.need_mounts(&what)?;
        containers::find(&self.mounts, &self.root, name, &what)
    }

    /// The names of the systemd units that run, without those that only group others.
    pub fn units(&self) -> BTreeSet<String> {
        units::all(&self.mounts)
    }

    /// The ids of the containers that run.
    pub fn containers(&self) -> BTreeSet<String> {
        containers::all(&self.mounts)
    }

    /// Where hierarchies are mounted.
    fn directories(&self) -> Vec<PathBuf> {
        self.mounts.iter().map(|mount| mount.directory.clone()).collect()
    }

    fn need_mounts(&self, what: &dyn Fn() -> String) -> Result<(), CgroupError> {
        match self.mounts.is_empty() {
            true => Err(CgroupError::NotMounted { what: what() }),
            false => Ok(()),
        }
    }
}

impl Mount {
    /// The control group with this directory in it.
    fn cgroup(&self, directory: &Path, what: &dyn Fn() -> String) -> Result<Cgroup, CgroupError> {
        let refused =
            |source| CgroupError::Refused { what: what(), path: directory.to_owned(), source };
        let facts = fs::metadata(directory).map_err(refused)?;
        if !facts.is_dir() {
            return Err(CgroupError::Unknown {
                what: what(),
                reason: String::from("that is a file in a control group, and not a group"),
                remedy: "name the directory it is in",
            });
        }
        Ok(Cgroup {
            directory: directory.to_owned(),
            path: self.path_of(directory),
            hierarchy: self.hierarchy,
            id: facts.ino(),
        })
    }

    /// The path of this directory in the hierarchy.
    fn path_of(&self, directory: &Path) -> String {
        let inner = directory.strip_prefix(&self.directory).unwrap_or(Path::new(""));
        let path = Path::new(&self.root).join(shown(inner));
        path.to_string_lossy().into_owned()
    }
}

/// Directories below which nothing is looked for any more: a machine has hundreds.
const MOST_DIRECTORIES: usize = 100_000;

/// Every directory below the mounts of the first hierarchy in which `is_wanted` finds any.
fn search(mounts: &[Mount], is_wanted: &dyn Fn(&Path) -> bool) -> Vec<(Mount, PathBuf)> {
    for mount in mounts {
        let mut found = Vec::new();
        let mut left = vec![mount.directory.clone()];
        let mut seen = 0;
        while let Some(directory) = left.pop() {
            if is_wanted(&directory) {
                found.push((mount.clone(), directory.clone()));
            }
            seen += 1;
            if seen > MOST_DIRECTORIES {
                break;
            }
            let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
            let inner = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
            left.extend(inner.map(|entry| entry.path()));
        }
        if !found.is_empty() {
            found.sort_by(|a, b| a.1.cmp(&b.1));
            return found;
        }
    }
    Vec::new()
}

/// Whether a process is in the control group or below it.
fn has_processes(directory: &Path) -> bool {
    let own = fs::read(directory.join("cgroup.procs")).is_ok_and(|list| !list.is_empty());
    own || fs::read_dir(directory).into_iter().flatten().flatten().any(|entry| {
        entry.file_type().is_ok_and(|kind| kind.is_dir()) && has_processes(&entry.path())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine of directories: `mounts` as `(hierarchy, directory)`.
    fn made(directories: &[&str]) -> (tempfile::TempDir, Cgroups) {
        let root = tempfile::tempdir().unwrap();
        for directory in directories {
            fs::create_dir_all(root.path().join(directory)).unwrap();
        }
        let mount = |name: &str, hierarchy| Mount {
            directory: root.path().join(name).canonicalize().unwrap(),
            root: String::from("/"),
            hierarchy,
        };
        fs::create_dir_all(root.path().join("v2")).unwrap();
        fs::create_dir_all(root.path().join("v1")).unwrap();
        let mounts = vec![mount("v2", 0), mount("v1", 7)];
        let cgroups = Cgroups { mounts, root: root.path().to_owned() };
        (root, cgroups)
    }

    #[test]
    fn a_path_is_a_directory_or_one_within_a_hierarchy() {
        let (root, cgroups) = made(&["v2/system.slice/a.service", "v1/only/here"]);
        let whole = cgroups.at(&root.path().join("v2/system.slice/a.service")).unwrap();
        assert_eq!((whole.path.as_str(), whole.hierarchy), ("/system.slice/a.service", 0));
        assert_eq!(cgroups.at(Path::new("/system.slice/a.service")).unwrap(), whole);
        assert_eq!(cgroups.at(Path::new("system.slice/a.service")).unwrap(), whole);
        let old = cgroups.at(Path::new("only/here")).unwrap();
        assert_eq!((old.path.as_str(), old.hierarchy), ("/only/here", 7));
        assert_ne!(old.id, 0);
        let error = cgroups.at(Path::new("/nowhere")).unwrap_err().to_string();
        let (v2, v1) = (root.path().join("v2"), root.path().join("v1"));
        let below = format!("it is not below {}, {}; list them", v2.display(), v1.display());
        assert!(error.contains(&format!("the cgroup /nowhere: {below}")), "{error}");
        // A path is told once.
        let error = cgroups.at(&v2.join("no/where")).unwrap_err().to_string();
        assert_eq!(error.matches("no/where").count(), 1, "{error}");
        assert!(error.contains("/v2/no/where: there is no such directory; "), "{error}");
        // What is there and is no control group is told apart from what is not there.
        fs::write(root.path().join("v2/system.slice/cgroup.procs"), "").unwrap();
        let error = |path: &str| cgroups.at(&root.path().join(path)).unwrap_err().to_string();
        assert!(error("").contains(": that is not in a cgroup file system; list them"));
        let file = error("v2/system.slice/cgroup.procs");
        assert!(file.contains("; name the directory it is in"), "{file}");
    }

    #[test]
    fn a_pattern_means_the_topmost_groups_of_the_first_hierarchy_that_has_any() {
        let (_root, cgroups) = made(&["v2/a/x1/inner", "v2/a/x2", "v2/b", "v1/a/x3", "v1/only/x4"]);
        let paths = |end: &'static str| {
            let is_match = move |path: &[u8]| String::from_utf8_lossy(path).contains(end);
            cgroups
                .matching(end, &is_match)
                .map(|all| all.into_iter().map(|one| (one.path, one.hierarchy)).collect::<Vec<_>>())
        };
        assert_eq!(paths("/x").unwrap(), [("/a/x1".into(), 0), ("/a/x2".into(), 0)]);
        assert_eq!(paths("/only").unwrap(), [("/only".into(), 7)]);
        let error = paths("/nowhere*").unwrap_err().to_string();
        assert!(
            error.starts_with("cannot find control groups by the pattern /nowhere*: none below ")
        );
    }

    #[test]
    fn of_two_hierarchies_the_one_with_processes_is_meant() {
        let (root, cgroups) = made(&["v2/a/b", "v1/a/b"]);
        assert_eq!(cgroups.at(Path::new("a")).unwrap().hierarchy, 0);
        fs::write(root.path().join("v1/a/b/cgroup.procs"), "17\n").unwrap();
        assert_eq!(cgroups.at(Path::new("a")).unwrap().hierarchy, 7);
    }

    #[test]
    fn a_unit_is_found_wherever_it_is_and_two_are_told() {
        let (_root, cgroups) = made(&[
            "v2/system.slice/nginx.service",
            "v1/system.slice/nginx.service",
            "v2/system.slice/system-getty.slice/getty@tty1.service",
            "v2/user.slice/user-1.slice/dbus.service",
            "v2/user.slice/user-2.slice/dbus.service",
        ]);
        let path = |name: &str| cgroups.unit(name).map(|found| found.path);
        assert_eq!(path("nginx").unwrap(), "/system.slice/nginx.service");
        assert_eq!(path("nginx.service").unwrap(), "/system.slice/nginx.service");
        assert_eq!(
            path("getty@tty1").unwrap(),
            "/system.slice/system-getty.slice/getty@tty1.service"
        );
        assert_eq!(path("user.slice").unwrap(), "/user.slice");
        let error = path("dbus").unwrap_err().to_string();
        assert!(error.contains("user-1.slice/dbus.service, "), "{error}");
        assert!(error.contains("name one of them with --cgroup"), "{error}");
        let error = path("no-such").unwrap_err().to_string();
        assert!(error.contains("the unit no-such: no cgroup is called no-such.service"), "{error}");
    }

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    const OTHER: &str = "0123456789abffff0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn a_container_is_found_by_the_beginning_of_its_id_under_every_engine_s_name() {
        for directory in [
            format!("v2/system.slice/docker-{ID}.scope"),
            format!("v1/docker/{ID}"),
            format!("v2/machine.slice/libpod-{ID}.scope"),
            format!(
                "v2/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice/cri-containerd-{ID}.scope"
            ),
            format!("v2/kubepods/besteffort/pod1-2/{ID}"),
            format!("v2/default/{ID}"),
        ] {
            let (_root, cgroups) =
                made(&[&directory, &format!("v2/machine.slice/libpod-conmon-{ID}.scope")]);
            for name in [ID, &ID[..12]] {
                let found = cgroups.container(name).unwrap();
                assert_eq!(found.len(), 1, "{directory}");
                assert!(directory.ends_with(&found[0].path), "{directory} {found:?}");
            }
            assert!(cgroups.container("abcd").is_err());
        }
        let one = format!("v2/docker/{ID}");
        let (_root, cgroups) = made(&[&one, &format!("v2/docker/{OTHER}")]);
        let error = cgroups.container("0123").unwrap_err().to_string();
        assert!(error.contains("cannot tell which is the container 0123"), "{error}");
        assert_eq!(cgroups.container(&ID[..14]).unwrap().len(), 1);
    }

    #[test]
    fn a_container_is_found_by_the_name_its_engine_has_written_down() {
        let directory = format!("v2/system.slice/docker-{ID}.scope");
        for (file, text) in [
            (
                format!("var/lib/docker/containers/{ID}/config.v2.json"),
                format!(r#"{{"ID":"{ID}","Name":"/web"}}"#),
            ),
            (
                "var/lib/containers/storage/overlay-containers/containers.json".to_owned(),
                format!(r#"[{{"id":"1","names":["x"]}},{{"id":"{ID}","names":["web"]}}]"#),
            ),
            ("var/lib/nerdctl/1935db59/names/default/web".to_owned(), ID.to_owned()),
            (
                format!("run/containerd/io.containerd.runtime.v2.task/k8s.io/{ID}/config.json"),
                r#"{"annotations":{"io.kubernetes.cri.container-name":"web"}}"#.to_owned(),
            ),
        ] {
            let (root, cgroups) = made(&[&directory]);
            let file = root.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, text).unwrap();
            let found = cgroups.container("web").unwrap();
            assert_eq!(found[0].path, directory[2..], "{}", file.display());
            let error = cgroups.container("wob").unwrap_err().to_string();
            assert!(error.contains("the container wob: "), "{error}");
        }
    }

    #[test]
    fn a_container_of_docker_is_found_where_docker_was_told_to_keep_it() {
        let (root, cgroups) = made(&[&format!("v2/docker/{ID}")]);
        let put = |file: &str, text: &str| {
            let file = root.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        put(
            &format!("data/docker/containers/{ID}/config.v2.json"),
            &format!(r#"{{"ID":"{ID}","Name":"/web"}}"#),
        );
        assert!(cgroups.container("web").is_err());
        put("etc/docker/daemon.json", r#"{"data-root": "/data/docker"}"#);
        assert_eq!(cgroups.container("web").unwrap()[0].path, format!("/docker/{ID}"));
    }

    #[test]
    fn a_pod_is_all_its_containers_by_its_name_and_its_own_cgroup_by_its_id() {
        let pod = "v2/kubepods.slice/kubepods-pod12345678_9abc.slice";
        let containers = [ID, OTHER].map(|id| format!("{pod}/cri-containerd-{id}.scope"));
        let (root, cgroups) = made(&[&containers[0], &containers[1]]);
        for id in [ID, OTHER] {
            let state = format!("run/containerd/io.containerd.runtime.v2.task/k8s.io/{id}");
            fs::create_dir_all(root.path().join(&state)).unwrap();
            let text = r#"{"annotations":{"io.kubernetes.cri.sandbox-name":"shop-0"}}"#;
            fs::write(root.path().join(state).join("config.json"), text).unwrap();
        }
        assert_eq!(cgroups.container("shop-0").unwrap().len(), 2);
        let whole = cgroups.container("12345678-9abc").unwrap();
        assert_eq!((whole.len(), whole[0].path.as_str()), (1, &pod[2..]));
    }

    #[test]
    fn a_container_that_has_ended_is_no_cgroup() {
        let (root, cgroups) = made(&[]);
        let file = root.path().join(format!("var/lib/docker/containers/{ID}/config.v2.json"));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, format!(r#"{{"ID":"{ID}","Name":"/web"}}"#)).unwrap();
        let error = cgroups.container("web").unwrap_err().to_string();
        assert!(error.contains("it is not running"), "{error}");
    }

    #[test]
    fn without_a_mount_the_remedy_is_one() {
        let cgroups = Cgroups { mounts: Vec::new(), root: PathBuf::from("/") };
        let error = cgroups.at(Path::new("/a")).unwrap_err().to_string();
        assert!(error.contains("no cgroup file system is mounted; mount one with"), "{error}");
    }
}
