//! Wake-ups counted in the kernel. A program of its own: the children of other tests would count.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use iotomy_observe::Wakeups;

#[test]
fn a_child_that_is_woken_23_times_is_counted_23_times() {
    let mut child = Command::new("cat");
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut into = child.stdin.take().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    // `cat` answers: it has begun, and is about to sleep in its read again.
    let mut answer = |wanted: &str| {
        into.write_all(wanted.as_bytes()).unwrap();
        line.clear();
        out.read_line(&mut line).unwrap();
        assert_eq!(line, wanted);
    };
    let is_asleep = |pid: u32| {
        iotomy_test_requirements::wait::until("it is asleep", || {
            let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
            status.rsplit(')').next().unwrap().trim_start().starts_with('S')
        });
    };
    answer("hello\n");
    is_asleep(child.id());
    match Wakeups::of_children() {
        Err(reason) => iotomy_test_requirements::skip(iotomy_test_requirements::Need::Bpf, &reason),
        Ok(wakeups) => {
            assert!(wakeups.children() >= 1);
            let mut counted = || {
                let before = wakeups.so_far().unwrap();
                for _ in 0..23 {
                    answer("again\n");
                    is_asleep(child.id());
                }
                wakeups.so_far().unwrap() - before
            };
            // A look at /proc may itself make it wait for a lock, and be woken once more.
            let rounds: Vec<u64> = (0..20).map(|_| counted()).collect();
            assert_eq!(rounds.iter().min(), Some(&23), "{rounds:?}");
        }
    }
    drop(into);
    child.wait().unwrap();
}
