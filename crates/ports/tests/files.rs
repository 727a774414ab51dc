//! Changes of files, as events of a port.

use std::fs::{self, File, FileTimes, OpenOptions, hard_link, rename};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use iotomy_ports::{Closes, Errno, FileChanges, FileObject, Port, Source};
use tempfile::TempDir;

const NOW: Option<Duration> = Some(Duration::ZERO);

const CONTENTS: FileChanges = FileChanges::MODIFIED;

struct Folder {
    port: Port,
    folder: TempDir,
}

impl Folder {
    /// A folder with a file `a` of ten bytes.
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("a"), "0123456789").unwrap();
        Self { port: Port::new(Closes::Checked).unwrap(), folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn watch(&self, object: usize, path: &Path, changes: FileChanges) -> Result<(), Errno> {
        let status = match changes.has(FileChanges::NOFOLLOW) {
            true => path.symlink_metadata(),
            false => path.metadata(),
        };
        let stamps = status.map_or([(0, 0); 3], |status| {
            [
                (status.atime(), status.atime_nsec()),
                (status.mtime(), status.mtime_nsec()),
                (status.ctime(), status.ctime_nsec()),
            ]
        });
        let [accessed, modified, changed] = stamps;
        let file = FileObject { path, accessed, modified, changed };
        self.port.associate_file(object, file, changes, object + 100)
    }

    /// The changes of the one event that there is.
    fn changes(&self, object: usize) -> u32 {
        let event = self.port.get(Some(Duration::from_secs(10))).unwrap();
        assert_eq!((event.source, event.object, event.user), (Source::File, object, object + 100));
        self.nothing();
        event.events.cast_unsigned()
    }

    fn nothing(&self) {
        assert_eq!(self.port.get(NOW), Err(Errno::TIME));
    }

    fn append(&self, name: &str) {
        let mut file = OpenOptions::new().append(true).open(self.path(name)).unwrap();
        file.write_all(b"x").unwrap();
    }
}

#[test]
fn a_write_is_a_modification() {
    let folder = Folder::new();
    folder.watch(1, &folder.path("a"), CONTENTS).unwrap();
    folder.nothing();
    folder.append("a");
    assert_eq!(folder.changes(1), FileChanges::MODIFIED.bits());
}

#[test]
fn a_write_changes_the_modification_time_and_the_change_time() {
    let folder = Folder::new();
    let asked = FileChanges::MODIFIED | FileChanges::ATTRIB | FileChanges::ACCESS;
    folder.watch(1, &folder.path("a"), asked).unwrap();
    folder.append("a");
    assert_eq!(folder.changes(1), (FileChanges::MODIFIED | FileChanges::ATTRIB).bits());
}

#[test]
fn a_read_is_an_access() {
    let folder = Folder::new();
    folder.watch(1, &folder.path("a"), FileChanges::ACCESS).unwrap();
    File::open(folder.path("a")).unwrap().read_exact(&mut [0; 4]).unwrap();
    assert_eq!(folder.changes(1), FileChanges::ACCESS.bits());
}

#[test]
fn a_change_of_attributes_is_one() {
    let folder = Folder::new();
    folder.watch(1, &folder.path("a"), FileChanges::ATTRIB).unwrap();
    fs::set_permissions(folder.path("a"), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(folder.changes(1), FileChanges::ATTRIB.bits());
}

#[test]
fn a_time_stamp_that_is_set_is_a_change_of_it() {
    let folder = Folder::new();
    folder.watch(1, &folder.path("a"), CONTENTS).unwrap();
    let file = File::options().write(true).open(folder.path("a")).unwrap();
    file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(folder.changes(1), FileChanges::MODIFIED.bits());
}

#[test]
fn a_truncation_is_told_if_it_was_asked_for() {
    let folder = Folder::new();
    for asked in [CONTENTS, CONTENTS | FileChanges::TRUNC] {
        fs::write(folder.path("a"), "0123456789").unwrap();
        folder.watch(1, &folder.path("a"), asked).unwrap();
        File::options().write(true).open(folder.path("a")).unwrap().set_len(3).unwrap();
        assert_eq!(folder.changes(1), asked.bits());
    }
    // A longer file was not truncated.
    folder.watch(1, &folder.path("a"), CONTENTS | FileChanges::TRUNC).unwrap();
    folder.append("a");
    assert_eq!(folder.changes(1), CONTENTS.bits());
}

#[test]
fn changes_that_were_not_asked_for_send_nothing() {
    let folder = Folder::new();
    folder.watch(1, &folder.path("a"), FileChanges::ACCESS).unwrap();
    folder.append("a");
    fs::set_permissions(folder.path("a"), fs::Permissions::from_mode(0o600)).unwrap();
    folder.nothing();
    folder.port.dissociate_file(1).unwrap();
}

#[test]
fn a_time_stamp_that_differs_at_association_is_an_event_at_once() {
    let folder = Folder::new();
    let path = folder.path("a");
    let status = path.metadata().unwrap();
    let stamps = [
        (status.atime(), status.atime_nsec()),
        (status.mtime(), status.mtime_nsec()),
        (status.ctime(), status.ctime_nsec()),
    ];
    let all = [FileChanges::ACCESS, FileChanges::MODIFIED, FileChanges::ATTRIB];
    for (which, change) in all.into_iter().enumerate() {
        let mut known = stamps;
        known[which].1 ^= 1;
        let [accessed, modified, changed] = known;
        let file = FileObject { path: &path, accessed, modified, changed };
        folder.port.associate_file(1, file, all[0] | all[1] | all[2], 101).unwrap();
        assert_eq!(folder.changes(1), change.bits());
        // A stamp that is of no interest may differ.
        let other = all[(which + 1) % 3];
        folder.port.associate_file(1, file, other, 101).unwrap();
        folder.nothing();
        folder.port.dissociate_file(1).unwrap();
    }
}

#[test]
fn retrieval_ends_the_association() {
    let folder = Folder::new();
    folder.watch(1, &folder.path("a"), CONTENTS).unwrap();
    folder.append("a");
    folder.changes(1);
    folder.append("a");
    folder.nothing();
    assert_eq!(folder.port.dissociate_file(1), Err(Errno::NOENT));
    folder.watch(1, &folder.path("a"), CONTENTS).unwrap();
    folder.append("a");
    folder.changes(1);
}

#[test]
fn changes_before_retrieval_are_one_event() {
    let folder = Folder::new();
    folder.watch(1, &folder.path("a"), CONTENTS | FileChanges::ACCESS).unwrap();
    folder.append("a");
    assert_eq!(folder.port.queued(), 1);
    folder.append("a");
    fs::read(folder.path("a")).unwrap();
    assert_eq!(folder.port.queued(), 1);
    assert_eq!(folder.changes(1), (CONTENTS | FileChanges::ACCESS).bits());
}

#[test]
fn re_association_updates_the_changes_and_makes_an_event_void() {
    let folder = Folder::new();
    folder.watch(1, &folder.path("a"), CONTENTS).unwrap();
    folder.append("a");
    assert_eq!(folder.port.queued(), 1);
    folder.watch(1, &folder.path("a"), FileChanges::ACCESS).unwrap();
    assert_eq!(folder.port.queued(), 0);
    folder.append("a");
    folder.nothing();
    fs::read(folder.path("a")).unwrap();
    assert_eq!(folder.changes(1), FileChanges::ACCESS.bits());
}

#[test]
fn dissociation_ends_the_association_and_its_event() {
    let folder = Folder::new();
    folder.watch(1, &folder.path("a"), CONTENTS).unwrap();
    folder.append("a");
    assert_eq!(folder.port.queued(), 1);
    folder.port.dissociate_file(1).unwrap();
    folder.nothing();
    assert_eq!(folder.port.dissociate_file(1), Err(Errno::NOENT));
}

#[test]
fn a_deleted_file_is_told_of_unasked() {
    let folder = Folder::new();
    for keeps_open in [false, true] {
        fs::write(folder.path("b"), "").unwrap();
        let open = File::open(folder.path("b")).unwrap();
        folder.watch(1, &folder.path("b"), FileChanges::ACCESS).unwrap();
        let open = keeps_open.then_some(open);
        fs::remove_file(folder.path("b")).unwrap();
        assert_eq!(folder.changes(1), FileChanges::DELETE.bits());
        drop(open);
    }
}

#[test]
fn a_name_of_a_file_that_has_another_one_is_deleted_too() {
    let folder = Folder::new();
    hard_link(folder.path("a"), folder.path("b")).unwrap();
    folder.watch(1, &folder.path("b"), FileChanges::ACCESS).unwrap();
    fs::remove_file(folder.path("b")).unwrap();
    assert_eq!(folder.changes(1), FileChanges::DELETE.bits());
}

#[test]
fn renames_from_and_to_a_file_are_told_apart() {
    let folder = Folder::new();
    fs::write(folder.path("b"), "").unwrap();
    folder.watch(1, &folder.path("a"), FileChanges::ACCESS).unwrap();
    rename(folder.path("a"), folder.path("c")).unwrap();
    assert_eq!(folder.changes(1), FileChanges::RENAME_FROM.bits());
    folder.watch(2, &folder.path("c"), FileChanges::ACCESS | CONTENTS).unwrap();
    // The other file's time stamps are not this one's.
    let file = File::options().write(true).open(folder.path("b")).unwrap();
    let long_ago = SystemTime::UNIX_EPOCH;
    file.set_times(FileTimes::new().set_accessed(long_ago).set_modified(long_ago)).unwrap();
    rename(folder.path("b"), folder.path("c")).unwrap();
    assert_eq!(folder.changes(2), FileChanges::RENAME_TO.bits());
}

#[test]
fn a_directory_is_modified_by_what_is_made_in_it() {
    let folder = Folder::new();
    let inner = folder.path("d");
    fs::create_dir(&inner).unwrap();
    type Act<'a> = &'a dyn Fn(&Path);
    let acts: [Act<'_>; 4] = [
        &|inner| fs::write(inner.join("x"), "").unwrap(),
        &|inner| rename(inner.join("x"), inner.join("y")).unwrap(),
        &|inner| fs::remove_file(inner.join("y")).unwrap(),
        &|inner| fs::create_dir(inner.join("z")).unwrap(),
    ];
    for act in acts {
        folder.watch(1, &inner, CONTENTS).unwrap();
        folder.nothing();
        act(&inner);
        assert_eq!(folder.changes(1), CONTENTS.bits());
    }
    // What happens to the files in it is no change of it.
    fs::write(inner.join("w"), "").unwrap();
    folder.watch(1, &inner, CONTENTS | FileChanges::ACCESS).unwrap();
    fs::write(inner.join("w"), "more").unwrap();
    fs::read(inner.join("w")).unwrap();
    folder.nothing();
    assert!(fs::read_dir(&inner).unwrap().count() > 0);
    assert_eq!(folder.changes(1), FileChanges::ACCESS.bits());
}

#[test]
fn a_directory_and_a_file_in_it_are_watched_side_by_side() {
    let folder = Folder::new();
    folder.watch(1, folder.folder.path(), CONTENTS).unwrap();
    folder.watch(2, &folder.path("a"), CONTENTS).unwrap();
    folder.append("a");
    assert_eq!(folder.changes(2), CONTENTS.bits());
    fs::write(folder.path("new"), "").unwrap();
    assert_eq!(folder.changes(1), CONTENTS.bits());
    folder.watch(2, &folder.path("a"), CONTENTS).unwrap();
    fs::remove_file(folder.path("a")).unwrap();
    assert_eq!(folder.changes(2), FileChanges::DELETE.bits());
}

#[test]
fn one_file_can_be_watched_under_several_names() {
    let folder = Folder::new();
    folder.watch(1, &folder.path("a"), CONTENTS).unwrap();
    folder.watch(2, &folder.path("a"), CONTENTS).unwrap();
    folder.append("a");
    let mut objects: Vec<_> =
        folder.port.get_many(9, 2, NOW).unwrap().iter().map(|event| event.object).collect();
    objects.sort_unstable();
    assert_eq!(objects, [1, 2]);
}

#[test]
fn a_symbolic_link_is_followed_unless_it_is_watched_itself() {
    let folder = Folder::new();
    symlink("a", folder.path("link")).unwrap();
    folder.watch(1, &folder.path("link"), CONTENTS).unwrap();
    folder.append("a");
    assert_eq!(folder.changes(1), CONTENTS.bits());
    folder.watch(1, &folder.path("link"), CONTENTS | FileChanges::NOFOLLOW).unwrap();
    folder.append("a");
    folder.nothing();
    fs::remove_file(folder.path("link")).unwrap();
    assert_eq!(folder.changes(1), FileChanges::DELETE.bits());
}

#[test]
fn errors_are_those_of_the_manual_page() {
    let folder = Folder::new();
    assert_eq!(folder.watch(1, Path::new(""), CONTENTS), Err(Errno::NOENT));
    assert_eq!(folder.watch(1, &folder.path("none"), CONTENTS), Err(Errno::NOENT));
    assert_eq!(folder.watch(1, &folder.path("none/a"), CONTENTS), Err(Errno::NOENT));
    assert_eq!(folder.watch(1, &folder.path("a/b"), CONTENTS), Err(Errno::NOTDIR));
    symlink("none", folder.path("link")).unwrap();
    assert_eq!(folder.watch(1, &folder.path("link"), CONTENTS), Err(Errno::NOENT));
    folder.watch(1, &folder.path("link"), CONTENTS | FileChanges::NOFOLLOW).unwrap();
    assert_eq!(folder.port.dissociate_file(2), Err(Errno::NOENT));
    assert_eq!(FileChanges::from_bits(0x8), None);
}

#[test]
fn a_failed_association_leaves_nothing() {
    let folder = Folder::new();
    folder.watch(1, &folder.path("a"), CONTENTS).unwrap();
    assert_eq!(folder.watch(1, &folder.path("none"), CONTENTS), Err(Errno::NOENT));
    folder.append("a");
    folder.nothing();
    assert_eq!(folder.port.dissociate_file(1), Err(Errno::NOENT));
}

#[test]
fn a_change_wakes_a_thread_that_waits() {
    let folder = Folder::new();
    folder.watch(1, &folder.path("a"), CONTENTS).unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| folder.port.get(None).unwrap());
        folder.append("a");
        assert_eq!(waiter.join().unwrap().object, 1);
    });
}
