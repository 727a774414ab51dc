//! The routes: the source and the target of the bytes, and the file system that holds the files.

use crate::copy::volumes::FileSystem;

/// The source of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    /// A regular file, in the page cache.
    File,
    /// A pipe that is fed with page references.
    Pipe,
    /// A TCP connection on loopback that is fed with page references.
    Socket,
    /// The zero device.
    Zero,
}

/// The target of the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    /// A new regular file.
    File,
    /// A pipe whose reader reads every byte.
    Pipe,
    /// A TCP connection on loopback whose reader reads every byte.
    Socket,
    /// The null device.
    Null,
}

/// Whether the target may share extents with the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sharing {
    /// Not applicable.
    None,
    /// The default of each tool.
    Auto,
    /// Disabled in tools that would share: the bytes exist twice.
    Never,
}

/// A route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Route {
    /// The file system of its files.
    pub(crate) files: FileSystem,
    pub(crate) source: Source,
    pub(crate) target: Target,
    pub(crate) sharing: Sharing,
}

impl Route {
    const fn new(files: FileSystem, source: Source, target: Target) -> Self {
        Self { files, source, target, sharing: Sharing::None }
    }

    const fn sharing(files: FileSystem, sharing: Sharing) -> Self {
        Self { files, source: Source::File, target: Target::File, sharing }
    }

    /// Every route, grouped by file system.
    pub(crate) const ALL: [Self; 15] = {
        use FileSystem::{Btrfs, Ext4, Tmpfs, Xfs};
        [
            Self::new(Tmpfs, Source::File, Target::File),
            Self::new(Tmpfs, Source::File, Target::Pipe),
            Self::new(Tmpfs, Source::Pipe, Target::Pipe),
            Self::new(Tmpfs, Source::File, Target::Null),
            Self::new(Tmpfs, Source::Pipe, Target::File),
            Self::new(Tmpfs, Source::File, Target::Socket),
            Self::new(Tmpfs, Source::Socket, Target::File),
            Self::new(Tmpfs, Source::Zero, Target::File),
            Self::new(Ext4, Source::File, Target::File),
            Self::new(Ext4, Source::File, Target::Pipe),
            Self::new(Ext4, Source::Pipe, Target::File),
            Self::sharing(Xfs, Sharing::Never),
            Self::sharing(Xfs, Sharing::Auto),
            Self::sharing(Btrfs, Sharing::Never),
            Self::sharing(Btrfs, Sharing::Auto),
        ]
    };

    /// Returns the name of the route, in tables and on the command line.
    pub(crate) fn name(self) -> String {
        let source = match self.source {
            Source::File => "file",
            Source::Pipe => "pipe",
            Source::Socket => "socket",
            Source::Zero => "zero",
        };
        let target = match self.target {
            Target::File => "file",
            Target::Pipe => "pipe",
            Target::Socket => "socket",
            Target::Null => "null",
        };
        let sharing = if self.sharing == Sharing::Auto { "-shared" } else { "" };
        if self.uses_files() {
            format!("{source}-{target}-{}{sharing}", self.files.name())
        } else {
            format!("{source}-{target}")
        }
    }

    fn uses_files(self) -> bool {
        self.source == Source::File || self.target == Target::File
    }

    /// Returns a remark for readers of the figures.
    pub(crate) fn remark(self) -> &'static str {
        match self {
            Self { target: Target::Null, .. } => "moved without touching",
            Self { source: Source::Zero, .. } => "room reserved that reads as zeros, by iotomy",
            Self { sharing: Sharing::Auto, .. } => "extents shared, nothing copied",
            Self { source: Source::File, target: Target::Pipe | Target::Socket, .. } => {
                "by reference, where the contender splices"
            }
            _ => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_has_a_name_of_its_own() {
        let mut names: Vec<String> = Route::ALL.iter().map(|route| route.name()).collect();
        names.sort();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(names.contains(&"pipe-pipe".to_owned()));
        assert!(names.contains(&"file-file-btrfs-shared".to_owned()));
    }

    #[test]
    fn routes_on_one_file_system_stand_together() {
        let mut files: Vec<FileSystem> = Route::ALL.iter().map(|route| route.files).collect();
        files.dedup();
        assert_eq!(files, FileSystem::ALL);
    }
}
