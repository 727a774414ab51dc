//! Which arguments of a call are paths.

/// An argument that is a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathArgument {
    /// The argument (0-based) that is its text.
    pub text: u8,
    /// The argument (0-based) that is the descriptor of the directory at which a relative path
    /// begins; `None` where that is the working directory.
    pub directory: Option<u8>,
}

/// Begins at the working directory.
const fn plain(text: u8) -> PathArgument {
    PathArgument { text, directory: None }
}

/// Begins at the directory of the argument in front of it.
const fn below(directory: u8) -> PathArgument {
    PathArgument { text: directory + 1, directory: Some(directory) }
}

/// The paths that call `name` takes, at most two; the text that a symbolic link is to hold is none.
pub fn paths(name: &str) -> &'static [PathArgument] {
    match name {
        "open" | "creat" | "stat" | "lstat" | "oldstat" | "oldlstat" | "stat64" | "lstat64"
        | "statfs" | "statfs64" | "access" | "readlink" | "unlink" | "mkdir" | "rmdir"
        | "mknod" | "chmod" | "chown" | "lchown" | "chown32" | "lchown32" | "chdir" | "chroot"
        | "truncate" | "truncate64" | "utime" | "utimes" | "execve" | "uselib" | "getxattr"
        | "lgetxattr" | "setxattr" | "lsetxattr" | "listxattr" | "llistxattr" | "removexattr"
        | "lremovexattr" | "umount" | "umount2" | "swapon" | "swapoff" | "acct" => {
            const { &[plain(0)] }
        }
        "inotify_add_watch" | "symlink" | "mount" | "quotactl" => const { &[plain(1)] },
        "openat" | "openat2" | "newfstatat" | "fstatat64" | "statx" | "faccessat"
        | "faccessat2" | "readlinkat" | "unlinkat" | "mkdirat" | "mknodat" | "fchmodat"
        | "fchmodat2" | "fchownat" | "utimensat" | "utimensat_time64" | "futimesat"
        | "execveat" | "name_to_handle_at" | "open_tree" | "open_tree_attr" | "fspick"
        | "mount_setattr" | "setxattrat" | "getxattrat" | "listxattrat" | "removexattrat"
        | "file_getattr" | "file_setattr" => const { &[below(0)] },
        "symlinkat" => const { &[below(1)] },
        "fanotify_mark" => const { &[below(3)] },
        "rename" | "link" | "pivot_root" => const { &[plain(0), plain(1)] },
        "renameat" | "renameat2" | "linkat" | "move_mount" => const { &[below(0), below(2)] },
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syscalls::{Abi, name};

    #[test]
    fn every_call_on_names_has_its_path_arguments() {
        let takes = |name: &str| !paths(name).is_empty();
        let names: Vec<String> =
            (0..512).map(|number| name(Abi::X86_64, number)).filter(|name| takes(name)).collect();
        for call in ["open", "openat", "execve", "renameat2", "statx", "inotify_add_watch"] {
            assert!(names.iter().any(|name| name == call), "{call}");
        }
        assert_eq!(names.len(), 73, "{names:?}");
    }

    #[test]
    fn a_path_below_a_directory_stands_behind_it() {
        assert_eq!(paths("openat"), [PathArgument { text: 1, directory: Some(0) }]);
        assert_eq!(paths("symlinkat"), [PathArgument { text: 2, directory: Some(1) }]);
        assert_eq!(paths("renameat2").len(), 2);
        assert!(paths("read").is_empty());
    }
}
