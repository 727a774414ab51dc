//! The cgroup file systems that are mounted, and the hierarchies they show.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use iotomy_record::{bytes_of, lossless};

/// A mounted hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    /// Where it is mounted.
    pub(super) directory: PathBuf,
    /// The path, in the hierarchy, of the control group that is mounted there, as a record has it.
    pub(super) root: String,
    /// The number of the hierarchy; 0 is version 2.
    pub(super) hierarchy: u32,
}

/// The mounts of `/proc/self/mountinfo`, with the numbers of `/proc/self/cgroup`: version 2 first,
/// then systemd's own hierarchy, then those of the controllers.
pub(super) fn mounts(mountinfo: &str, memberships: &str) -> Vec<Mount> {
    let mut found: Vec<(u8, Mount)> = Vec::new();
    for line in mountinfo.lines() {
        let Some((place, system)) = line.split_once(" - ") else { continue };
        let place: Vec<&str> = place.split(' ').collect();
        let system: Vec<&str> = system.split(' ').collect();
        let (&[_, _, _, root, directory, ..], &[kind, _, options, ..]) = (&*place, &*system) else {
            continue;
        };
        let (rank, hierarchy) = match kind {
            "cgroup2" => (0, Some(0)),
            "cgroup" => {
                let is_systemd = options.split(',').any(|one| one == "name=systemd");
                (if is_systemd { 1 } else { 2 }, number(options, memberships))
            }
            _ => continue,
        };
        let Some(hierarchy) = hierarchy else { continue };
        let directory = PathBuf::from(OsString::from_vec(unescaped(directory)));
        let root = lossless(&unescaped(root));
        let is_known =
            found.iter().any(|(_, known)| known.hierarchy == hierarchy && known.root == root);
        if !is_known {
            found.push((rank, Mount { directory, root, hierarchy }));
        }
    }
    found.sort_by_key(|(rank, mount)| (*rank, mount.hierarchy));
    found.into_iter().map(|(_, mount)| mount).collect()
}

/// The number of the hierarchy whose controllers, or name, are among the options of its mount.
fn number(options: &str, memberships: &str) -> Option<u32> {
    let options: Vec<&str> = options.split(',').collect();
    memberships.lines().find_map(|line| {
        let (number, rest) = line.split_once(':')?;
        let (controllers, _) = rest.split_once(':')?;
        let all = controllers.split(',').all(|one| options.contains(&one));
        (!controllers.is_empty() && all).then(|| number.parse().ok())?
    })
}

/// Without the octal escapes of blanks, tabs, line ends and backslashes.
fn unescaped(text: &str) -> Vec<u8> {
    const ESCAPES: [(&[u8], u8); 4] =
        [(br"\040", b' '), (br"\011", b'\t'), (br"\012", b'\n'), (br"\134", b'\\')];
    let bytes = bytes_of(text);
    let (mut rest, mut plain) = (&bytes[..], Vec::with_capacity(bytes.len()));
    while let Some((first, after)) = rest.split_first() {
        let escape = ESCAPES.iter().find(|(escape, _)| rest.starts_with(escape));
        plain.push(escape.map_or(*first, |(_, byte)| *byte));
        rest = escape.map_or(after, |(escape, _)| &rest[escape.len()..]);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hierarchies_are_numbered_as_the_kernel_does() {
        let mountinfo = "\
31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
36 31 0:37 /a\\040b /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd
37 31 0:37 /a\\040b /elsewhere rw - cgroup cgroup rw,xattr,name=systemd
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
cut";
        let memberships = "9:name=systemd:/\n2:cpu,cpuacct:/x\n0::/\n";
        let mount = |directory: &str, root: &str, hierarchy| Mount {
            directory: directory.into(),
            root: root.into(),
            hierarchy,
        };
        assert_eq!(
            mounts(mountinfo, memberships),
            [
                mount("/sys/fs/cgroup/unified", "/", 0),
                mount("/sys/fs/cgroup/systemd", "/a b", 9),
                mount("/sys/fs/cgroup/cpu,cpuacct", "/", 2),
            ]
        );
    }

    #[test]
    fn a_mount_point_that_is_no_utf8_is_found_and_hides_no_other() {
        let mountinfo = lossless(
            b"30 1 0:9 / /mnt/a\xff\\134x rw - tmpfs tmpfs rw\n\
              31 1 0:8 /in\xfe /mnt/\xff\\040b rw - cgroup2 cgroup2 rw\n",
        );
        let directory = OsString::from_vec(b"/mnt/\xff b".to_vec()).into();
        let root = String::from(r"/in\xfe");
        assert_eq!(mounts(&mountinfo, "0::/\n"), [Mount { directory, root, hierarchy: 0 }]);
    }
}
