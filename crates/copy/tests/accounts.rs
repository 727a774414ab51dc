//! What an account and its record say of a copy, and what a watcher is told.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use iotomy_copy::{CopyError, Detail, Options, Progress, Watcher, copy};
use iotomy_movers::{Job, MOVERS};
use iotomy_record::{CopyPart, CopyRun};

use crate::support::{Folder, any, by, content, joined};

const LARGE: usize = 3_000_001;

/// Copies with an account of every part, and makes its record.
fn recorded(folder: &Folder, options: Options, sources: &[&str], target: &str) -> CopyRun {
    let account = folder.try_copy(&Options { detail: Detail::Parts, ..options }, sources, target);
    let machine = iotomy_host::machine();
    let sources: Vec<_> = sources.iter().map(Into::into).collect();
    account.record("2026-11-27T00:00:00Z".to_owned(), machine, (&sources, Path::new(target)))
}

#[test]
fn a_record_says_what_happened() {
    let folder = Folder::new();
    folder.write("a", content(LARGE));
    let checked = Options { verify: true, fsync: true, ..by("read-write") };
    let record = recorded(&folder, checked, &["a"], "b");
    let bytes = LARGE as u64;
    assert_eq!((record.sources.as_slice(), record.target.as_str()), (&["a".to_owned()][..], "b"));
    assert_eq!(record.mover.as_deref(), Some("read-write"));
    assert_eq!((record.bytes, record.copied_bytes), (bytes, 2 * bytes));
    assert_eq!((record.touched_bytes, record.referenced_bytes), (bytes, 0));
    assert_eq!((record.verified, record.errors), (Some(true), 0));
    assert!(record.fsync_ns.unwrap() > 0 && record.wall_ns > record.fsync_ns.unwrap());
    assert!(record.wall_ns >= record.copies[0].wall_ns);

    // What is read back is synced before.
    let read_back = recorded(&folder, Options { verify: true, ..by("read-write") }, &["a"], "c");
    assert!(read_back.fsync_ns.unwrap() > 0);

    let several = recorded(&folder, joined(), &["a", "/proc/version"], "b");
    assert_eq!(several.copies.len(), 2);
    assert_eq!((several.mover.as_deref(), several.verified), (None, None));
    assert_eq!(several.bytes, fs::metadata(folder.path("b")).unwrap().len());
    assert!(several.fsync_ns.is_none());

    fs::create_dir(folder.path("d")).unwrap();
    let folders = recorded(&folder, any(), &["a", "nope", "b"], "d");
    assert_eq!((folders.copies.len(), folders.errors), (2, 1));
    assert!(folders.copies[1].target.ends_with("/d/b"));
    assert!(folders.messages[0].starts_with("cannot read "), "{:?}", folders.messages);

    let failed = recorded(&folder, any(), &["a"], "/dev/full");
    assert_eq!((failed.bytes, failed.errors), (0, 1));
    assert!(failed.copies[0].error.as_ref().unwrap().contains("No space left"));
}

#[test]
fn an_account_is_as_detailed_as_was_asked_for() {
    let folder = Folder::new();
    folder.write("a", content(LARGE));
    let account = |detail| folder.try_copy(&Options { detail, ..any() }, &["a"], "b");
    let sums = account(Detail::Sums);
    assert_eq!((sums.moved.bytes, sums.parts.len(), sums.wall.as_nanos()), (LARGE as u64, 0, 0));
    let parts = account(Detail::Parts);
    assert!(parts.parts[0].plan.unsuited.is_empty() && parts.wall.as_nanos() > 0);
    let plan = &account(Detail::Reasons).parts[0].plan;
    assert_eq!(plan.tried.len() + plan.spare.len() + plan.unsuited.len(), MOVERS.len());
}

/// What was told, in order.
#[derive(Default)]
struct Told {
    events: Vec<String>,
    progress: Option<Arc<Progress>>,
}

impl Watcher for Told {
    fn planned(&mut self, contract: &str, part: &CopyPart) {
        assert!(contract.contains("holes") && part.mover.is_none());
        self.events.push(format!("planned {}", part.plan.spare[0].mover));
    }

    fn begins(&mut self, progress: &Arc<Progress>, is_on_terminal: &dyn Fn() -> bool) {
        assert!(!is_on_terminal());
        self.events.push(format!("{:?} expected", progress.expected()));
        self.progress = Some(Arc::clone(progress));
    }

    fn carried(&mut self, part: &CopyPart) {
        self.events.push(format!("carried {}", part.bytes));
    }

    fn failed(&mut self, error: &CopyError) {
        let text = error.to_string();
        self.events.push(text.split(' ').take(2).collect::<Vec<_>>().join(" "));
    }
}

#[test]
fn a_watcher_is_told_of_each_part_in_order() {
    let folder = Folder::new();
    let sources = [folder.write("a", content(1000)), folder.path("nope"), folder.write("c", "x")];
    let [one, read_write] = [any(), by("read-write")];
    let options = Options { detail: Detail::Parts, ..read_write };
    fs::create_dir(folder.path("d")).unwrap();
    let mut told = Told::default();
    copy(&options, &sources, &folder.path("d"), &mut told).unwrap();
    let part = ["planned read-write", "Some(1000) expected", "carried 1000", "cannot read"];
    let last = ["planned read-write", "Some(1) expected", "carried 1"];
    assert_eq!(told.events, [&part[..], &last].concat());
    let progress = told.progress.unwrap();
    assert_eq!((progress.moved(), progress.mover()), (1001, "read-write"));
    assert_eq!(progress.total(), None, "of several targets it is not known");
    // Of one target it is: what there is, or what is wanted of it.
    let joined =
        Options { concat: true, job: Job { count: Some(900), ..one.job }, skip: 200, ..one };
    let mut told = Told::default();
    copy(&joined, &[sources[0].clone(), sources[2].clone()], &folder.path("e"), &mut told).unwrap();
    assert_eq!(told.progress.unwrap().total(), Some(801));
}
