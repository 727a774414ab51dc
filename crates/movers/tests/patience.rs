//! Requests of which nothing is heard for long: they are taken back and made again, and no byte is lost
//! or moved twice.

use crate::support;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use iotomy_movers::{End, Job, Mover, Outcome, Sparse, chooser};
use iotomy_test_requirements::{Need, skip};

use support::folders::{self, Folder};
use support::layouts::{self, Data, Hole};
use support::{carry, content, difference, job};

fn io_uring() -> &'static dyn Mover {
    iotomy_movers::mover("io-uring").unwrap()
}

/// A job that takes requests back after a microsecond.
fn hasty(progress: &AtomicU64) -> Job<'_> {
    Job { patience: Duration::from_micros(1), ..job(progress) }
}

/// How often a thread of this process has gone to sleep; `None` once it has ended.
fn sleeps(thread: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/self/task/{thread}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Waits until a thread has gone to sleep so many times more: its waits have ended in vain, each but
/// the last. `false`: it has ended before that.
fn has_waited(thread: &str, times: u64) -> bool {
    let before = sleeps(thread);
    // Not a bound on speed: without an end, a defect would hang the suite and name no test.
    for _ in 0..50_000 {
        match (before, sleeps(thread)) {
            (Some(before), Some(now)) if now < before + times => {}
            (before, now) => return before.is_some() && now.is_some(),
        }
        thread::sleep(Duration::from_millis(1));
    }
    panic!("a thread has not gone to sleep {times} times");
}

/// This thread, as `/proc` has it.
fn this_thread() -> String {
    rustix::thread::gettid().as_raw_nonzero().to_string()
}

#[test]
fn a_stream_that_rests_for_long_is_asked_again_and_again() {
    let all = content(300_000);
    let (out, mut into) = std::io::pipe().unwrap();
    let folder = folders::here();
    let path = folder.path().join("target");
    let target = File::create(&path).unwrap();
    let (says, hears) = channel();
    let outcome = thread::scope(|scope| {
        // In a thread that ends with it, and the pipe's reader with that: then nobody waits for it any more.
        let run = scope.spawn(|| {
            let out = out;
            let progress = AtomicU64::new(0);
            let (from, to) = (End::new(&out).unwrap(), End::new(&target).unwrap());
            says.send(this_thread()).unwrap();
            io_uring().run(&from, &to, &hasty(&progress))
        });
        let thread: String = hears.recv().unwrap();
        for piece in all.chunks(100_000) {
            if !has_waited(&thread, 8) || into.write_all(piece).is_err() {
                break;
            }
        }
        drop(into);
        run.join().unwrap().unwrap()
    });
    match outcome {
        Outcome::Done(moved) => assert_eq!(moved.bytes, all.len() as u64),
        Outcome::Refused { .. } => return skip(Need::IoUring, "no io_uring"),
    }
    assert_eq!(difference(&std::fs::read(path).unwrap(), &all), None);
}

/// A file system that takes no writes, until the value is gone.
struct Frozen(PathBuf);

impl Frozen {
    fn new(mount: &Path) -> Option<Self> {
        let frozen = Command::new("fsfreeze").arg("-f").arg(mount).stderr(Stdio::null()).status();
        frozen.is_ok_and(|status| status.success()).then(|| Self(mount.to_owned()))
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        assert!(Command::new("fsfreeze").arg("-u").arg(&self.0).status().unwrap().success());
    }
}

#[test]
fn writes_that_wait_for_a_frozen_file_system_arrive_once_it_thaws() {
    for kind in ["ext4", "xfs", "btrfs"] {
        let folder = match folders::image(kind) {
            Ok(folder) => folder,
            Err(reason) => {
                skip(Need::Devices, &reason);
                continue;
            }
        };
        // The source is elsewhere: nothing but the writes is to wait.
        let elsewhere = folders::here();
        let all = content(3_000_000);
        std::fs::write(elsewhere.path().join("source"), &all).unwrap();
        let source = File::open(elsewhere.path().join("source")).unwrap();
        let path = folder.path().join("target");
        let target = File::create(&path).unwrap();
        let (from, to) = (End::new(&source).unwrap(), End::new(&target).unwrap());
        let Some(frozen) = Frozen::new(folder.path()) else {
            skip(Need::Programs, &format!("{kind} cannot be frozen"));
            continue;
        };
        let (says, hears) = channel();
        let progress = AtomicU64::new(0);
        let outcome = thread::scope(|scope| {
            let run = scope.spawn(|| {
                says.send(this_thread()).unwrap();
                io_uring().run(&from, &to, &hasty(&progress))
            });
            let thread: String = hears.recv().unwrap();
            // Where there is no io_uring it is over before.
            let _ = has_waited(&thread, 8);
            drop(frozen);
            run.join().unwrap().unwrap()
        });
        match outcome {
            Outcome::Done(moved) => assert_eq!(moved.bytes, all.len() as u64, "{kind}"),
            Outcome::Refused { .. } => return skip(Need::IoUring, "no io_uring"),
        }
        assert_eq!(difference(&std::fs::read(&path).unwrap(), &all), None, "{kind}");
    }
}

/// Copies a file of thousands of extents with its holes.
fn thousands_of_extents(folder: &Folder, job: &Job<'_>) {
    let (from, to) = (folder.path().join("source"), folder.path().join("target"));
    let all = layouts::make(&from, &[Data(4096), Hole(4096)].repeat(3000));
    let source = File::open(&from).unwrap();
    let target = OpenOptions::new().write(true).create(true).truncate(true).open(&to).unwrap();
    let (begin, end) = (End::new(&source).unwrap(), End::new(&target).unwrap());
    let plan = chooser::only(io_uring(), &begin, &end, job).unwrap();
    let report = chooser::run(&plan, &begin, &end, job).unwrap();
    if report.mover.is_none() {
        return skip(Need::IoUring, "no io_uring");
    }
    assert_eq!(report.moved.bytes, all.len() as u64, "{}", folder.name);
    assert_eq!(difference(&std::fs::read(&to).unwrap(), &all), None, "{}", folder.name);
    let due = layouts::room(&from) + 16_384;
    assert!(layouts::room_within(&to, due) <= due, "{}", folder.name);
}

#[test]
fn thousands_of_extents_arrive_also_without_patience() {
    let mut folders = vec![folders::here()];
    match folders::image("btrfs") {
        Ok(folder) => folders.push(folder),
        Err(reason) => skip(Need::Devices, &reason),
    }
    for folder in folders {
        for patience in [Duration::from_micros(1), Duration::from_secs(5)] {
            let progress = AtomicU64::new(0);
            let sparse = Sparse::Auto;
            thousands_of_extents(&folder, &Job { patience, sparse, ..job(&progress) });
        }
    }
}

#[test]
fn a_run_over_many_extents_makes_one_ring() {
    if Command::new("strace").arg("-V").stdout(Stdio::null()).status().is_err() {
        return skip(Need::Programs, "no strace");
    }
    let folder = folders::here();
    let (source, target) = (folder.path().join("source"), folder.path().join("target"));
    let all = layouts::make(&source, &[Data(4096), Hole(4096)].repeat(100));
    let output = Command::new("strace")
        .args(["-f", "-qq", "-e", "trace=io_uring_setup"])
        .arg(carry())
        .arg("io-uring")
        .args([&source, &target])
        .args(["-", "auto"])
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    if stderr.contains("refused io_uring_setup") {
        return skip(Need::IoUring, "no io_uring");
    }
    assert_eq!(stderr.matches("io_uring_setup(").count(), 1);
    assert_eq!(difference(&std::fs::read(&target).unwrap(), &all), None);
}
