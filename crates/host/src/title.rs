//! The title of a process: what it has written over its first argument, as servers do (`nginx: worker process`).
//!
//! Most processes never do, and their first argument names their program. The programs of the kernel's side decide
//! alike (`title.bpf.h`).

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of a first argument that are looked at.
pub const LONGEST: usize = 255;

/// Bytes of the kernel's name of a process, which may be cut.
const COMM: usize = 15;

/// In place of a file that was removed, in the kernel's words.
const DELETED: &[u8] = b" (deleted)";

/// The first argument of a process as it is now; empty where the process is gone, or has none.
pub fn first_argument(pid: u32) -> Vec<u8> {
    let mut text = Vec::with_capacity(LONGEST);
    if let Ok(file) = File::open(format!("/proc/{pid}/cmdline")) {
        // What was read before an error is there.
        let _ = file.take(LONGEST as u64).read_to_end(&mut text);
    }
    let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
    text.truncate(end);
    text
}

/// How long the first arguments of processes are waited for.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether a thread that reads them was given up, and is still at it.
static IS_GIVEN_UP: AtomicBool = AtomicBool::new(false);

/// The first arguments of processes as they are now. They are in the memory of these processes, which one that is stuck
/// may keep locked: so another thread reads them, and what it has not read within a second is left out.
pub fn first_arguments(pids: Vec<u32>) -> HashMap<u32, Vec<u8>> {
    read_each(pids, first_argument, &IS_GIVEN_UP, PATIENCE)
}

fn read_each(
    pids: Vec<u32>,
    read: impl Fn(u32) -> Vec<u8> + Send + 'static,
    is_given_up: &'static AtomicBool,
    patience: Duration,
) -> HashMap<u32, Vec<u8>> {
    let mut first_arguments = HashMap::new();
    if pids.is_empty() || is_given_up.load(SeqCst) {
        return first_arguments;
    }
    let (sender, receiver) = mpsc::channel();
    let reads = move || {
        for pid in pids {
            // Nobody waits any more.
            if sender.send((pid, read(pid))).is_err() {
                break;
            }
        }
        is_given_up.store(false, SeqCst);
    };
    if thread::Builder::new().name("titles".to_owned()).spawn(reads).is_err() {
        return first_arguments;
    }
    let until = Instant::now() + patience;
    loop {
        match receiver.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok((pid, first)) => first_arguments.insert(pid, first),
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                is_given_up.store(true, SeqCst);
                break;
            }
        };
    }
    first_arguments
}

/// The title that a first argument is, without the directories of its first word: none where it is a path to the
/// program, which has these names, or a whole path at all.
pub fn title<'f>(first: &'f [u8], names: &[&[u8]]) -> Option<&'f [u8]> {
    let first = &first[..first.len().min(LONGEST)];
    let path = first.strip_suffix(DELETED).unwrap_or(first);
    // Words are no path, even if one of them is, or if the kernel was told to name the process so.
    let is_words = path.contains(&b' ') && !path.starts_with(b"/") && !path.starts_with(b".");
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    // A login shell's has a dash in front.
    let plain = name.strip_prefix(b"-").unwrap_or(name);
    let is_program = names.iter().any(|known| is_name(name, known) || is_name(plain, known));
    let is_program = is_program && !is_words;
    let is_path = path.starts_with(b"/") && !path.contains(&b' ');
    let first_word = first.iter().position(|byte| *byte == b' ').unwrap_or(first.len());
    let from = first[..first_word].iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    (!first.is_empty() && !is_program && !is_path).then_some(&first[from..])
}

/// Whether a program of this name is meant; `known` may be cut.
fn is_name(name: &[u8], known: &[u8]) -> bool {
    !known.is_empty() && (name == known || (known.len() == COMM && name.starts_with(known)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn what_leads_to_the_program_is_no_title() {
        for (first, names) in [
            (&b"sleep"[..], &["sleep"][..]),
            (b"/bin/sleep", &["sleep"]),
            (b"./naps", &["sleep", "naps"]),
            (b"bin/sleep", &["sleep"]),
            (b"-bash", &["bash"]),
            (b"/usr/bin/sleep (deleted)", &["sleep"]),
            (b"sleep (deleted)", &["sleep"]),
            // The interpreter of a script, a link, and a name that was cut.
            (b"/bin/sh", &["dash", "run.sh"]),
            (b"python3", &["python3.11", "python3"]),
            (b"./a-script-with-a-name", &["dash", "a-script-with-a"]),
            (b"/opt/My App/bin/app", &["app"]),
            (b"../My App/bin/app", &["app"]),
            (b"a\xff", &["a", ""]),
            (b"", &["sleep"]),
        ] {
            let names: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
            let names = [&names[..], &[&b"a\xff"[..]]].concat();
            assert_eq!(title(first, &names), None, "{}", String::from_utf8_lossy(first));
        }
    }

    #[test]
    fn what_a_process_has_written_is_one() {
        for (first, name) in [
            (&b"postgres: walwriter"[..], "postgres"),
            (b"nginx: master process /usr/sbin/nginx", "nginx"),
            (b"(sd-pam)", "systemd"),
            (b"sshd: ann@pts/0", "sshd"),
            (b"a\xfe", "a"),
        ] {
            assert_eq!(title(first, &[name.as_bytes()]), Some(first));
        }
        assert_eq!(title(b"worker 1", &[b"perl", b"worker 1"]), Some(&b"worker 1"[..]));
        let redis = b"/usr/bin/redis-server 127.0.0.1:6379";
        assert_eq!(title(redis, &[b"redis-check-rdb"]), Some(&redis[9..]));
        let long = vec![b'x'; 300];
        assert_eq!(title(&long, &[]).map(<[u8]>::len), Some(LONGEST));
    }

    #[test]
    fn the_first_argument_is_that_of_the_process() {
        let mut child = Command::new("sleep").arg0("a title\u{e9}").arg("1000").spawn().unwrap();
        // The arguments of the program are there last.
        while first_argument(child.id()) != "a title\u{e9}".as_bytes() {
            assert!(child.try_wait().unwrap().is_none());
            std::thread::yield_now();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(first_argument(child.id()).is_empty());
        assert!(first_argument(u32::MAX).is_empty());
    }

    #[test]
    fn a_process_that_is_stuck_takes_nobody_with_it() {
        static IS_GIVEN_UP: AtomicBool = AtomicBool::new(false);
        let (lets_go, is_stuck) = mpsc::channel::<()>();
        let is_stuck = Mutex::new(is_stuck);
        let reads = move |pid: u32| {
            if pid == 2 {
                let _ = is_stuck.lock().unwrap().recv();
            }
            vec![b'0' + u8::try_from(pid).unwrap()]
        };
        let read = |pids: &[u32]| {
            read_each(pids.to_vec(), |pid| vec![pid as u8], &IS_GIVEN_UP, Duration::from_secs(60))
        };
        let stuck = read_each(vec![1, 2, 3], reads, &IS_GIVEN_UP, Duration::from_secs(1));
        assert_eq!(stuck, HashMap::from([(1, b"1".to_vec())]));
        // Nothing is begun beside it, until it has ended.
        assert!(read(&[7]).is_empty());
        lets_go.send(()).unwrap();
        while IS_GIVEN_UP.load(SeqCst) {
            thread::yield_now();
        }
        assert_eq!(read(&[7, 8]), HashMap::from([(7, vec![7]), (8, vec![8])]));
        let own = first_arguments(vec![std::process::id(), u32::MAX]);
        assert_eq!(own[&std::process::id()], first_argument(std::process::id()));
        assert!(own[&u32::MAX].is_empty());
    }
}
