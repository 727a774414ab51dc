//! A watch whose part of the time changes while it goes on: which calls count, and which do not.

use std::io::{Read, Write};
use std::os::fd::BorrowedFd;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use iotomy_observe::{
    ObserveError, Request, TakeSnapshot, Target, Viewer, ViewerRequest, WatchStart, observer,
};
use iotomy_test_requirements::wait::until;
use iotomy_test_requirements::{Need, is_required, skip};

/// Reads a byte, makes a thousand calls that fail, and answers.
const WORKS: &str =
    "while (sysread STDIN, $_, 1) { rmdir '/nope' for 1..1000; syswrite STDOUT, 'x' }";

/// What a look has of the child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Seen {
    factor: u32,
    rmdir: u64,
    read: u64,
}

/// What is being done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    All,
    AllAgain,
    Quarter,
    AllAtLast,
}

/// Has the child work between looks, stage by stage.
struct Script {
    child: Child,
    stage: Stage,
    wanted: u32,
    /// With the last look of a stage.
    last: Seen,
    /// Times that the part was to change.
    changes: u32,
}

impl Script {
    fn work(&mut self) {
        let (to, from) = (self.child.stdin.as_mut(), self.child.stdout.as_mut());
        to.unwrap().write_all(b"x").unwrap();
        from.unwrap().read_exact(&mut [0]).unwrap();
    }

    fn look(look: &mut TakeSnapshot<'_>) -> Seen {
        let now = look().unwrap().unwrap();
        let count = |name: &str| {
            now.calls.iter().filter(|one| one.syscall == name).map(|one| one.calls).sum()
        };
        let factor = now.sampled.as_ref().unwrap().factor;
        Seen { factor, rmdir: count("rmdir"), read: count("read") }
    }
}

impl Viewer for Script {
    fn begin(&mut self, outset: &WatchStart) {
        assert!(outset.price.unwrap().call.high > 0.0);
    }

    fn wakers(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    fn deadline(&self) -> Option<Instant> {
        Some(Instant::now())
    }

    fn update(&mut self, look: Option<&mut TakeSnapshot<'_>>) -> ViewerRequest {
        let look = look.unwrap();
        match self.stage {
            // The read that it was in when the watch began does not count.
            Stage::All => {
                self.work();
                self.work();
                assert_eq!(Self::look(look), Seen { factor: 1, rmdir: 2_000, read: 1 });
                (self.wanted, self.stage) = (4, Stage::AllAgain);
            }
            // The change was refused: all count as before, but for the read that was let go.
            Stage::AllAgain if self.changes == 1 => {
                self.work();
                assert_eq!(Self::look(look), Seen { factor: 1, rmdir: 3_000, read: 1 });
                self.stage = Stage::Quarter;
            }
            Stage::Quarter => {
                let mut made = 0;
                loop {
                    self.work();
                    made += 1_000;
                    let now = Self::look(look);
                    assert_eq!(now.factor, 4);
                    let more = now.rmdir - self.last.rmdir;
                    assert!(more <= made, "{more} of {made}");
                    if more > 0 {
                        break;
                    }
                }
                (self.wanted, self.stage) = (1, Stage::AllAtLast);
            }
            // Of three reads, the first was entered before.
            Stage::AllAtLast => {
                (0..3).for_each(|_| self.work());
                let Seen { rmdir, read, .. } = self.last;
                let expected = Seen { factor: 1, rmdir: rmdir + 3_000, read: read + 2 };
                assert_eq!(Self::look(look), expected);
                self.changes = 9;
                return ViewerRequest::End;
            }
            Stage::AllAgain => unreachable!("a change is asked for"),
        }
        ViewerRequest::GoOn
    }

    fn sample(&self) -> Option<u32> {
        Some(self.wanted)
    }

    fn end_sample(&mut self, look: &mut TakeSnapshot<'_>) -> bool {
        let now = Self::look(look);
        self.changes += 1;
        match self.changes {
            1 => assert_eq!(now, Seen { factor: 1, rmdir: 2_000, read: 1 }),
            2 => assert_eq!(now, Seen { factor: 1, rmdir: 3_000, read: 1 }),
            _ => assert_eq!((now.factor, self.stage), (4, Stage::AllAtLast)),
        }
        self.last = now;
        self.changes > 1
    }

    fn takes_signal(&mut self, _: i32) -> bool {
        false
    }
}

#[test]
fn the_part_of_the_time_changes_while_no_call_counts() {
    let perl = Command::new("perl")
        .args(["-e", WORKS])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let Ok(child) = perl else { return skip(Need::Programs, "no perl") };
    let pid = child.id();
    let (stage, last) = (Stage::All, Seen::default());
    let mut script = Script { child, stage, wanted: 1, last, changes: 0 };
    // It has executed its program, and is in a read that waits for work.
    script.work();
    until("it is asleep", || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        status.rsplit(')').next().unwrap().trim_start().starts_with('S')
    });
    let request = Request { sample: Some(1), ..Request::new(Target::process(pid)) };
    let watched = observer("bpf").unwrap().watch_before(&request, Some(&mut script));
    if let Err(error @ ObserveError::Unsupported { .. }) = &watched {
        assert!(!is_required(Need::Bpf), "{error}");
        skip(Need::Bpf, &error.to_string());
    } else {
        watched.unwrap();
        assert_eq!(script.changes, 9, "the script has come to its end");
    }
    drop(script.child.stdin.take());
    script.child.wait().unwrap();
}
