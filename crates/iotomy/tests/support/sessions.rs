//! A terminal of a test's own, on which a shell runs lines.

use std::fs;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::{Arc, Mutex};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use super::{bare, children, has, until};

pub(crate) const ENTERED: &str = "\x1b[?1049h";
pub(crate) const LEFT: &str = "\x1b[?1049l";

/// A shell on a terminal by script(1), which writes the terminal's attributes down before and after it
/// has run a line.
pub(crate) struct TerminalSession {
    child: Child,
    keys: ChildStdin,
    seen: Arc<Mutex<Vec<u8>>>,
    folder: TempDir,
}

impl TerminalSession {
    pub(crate) fn start(line: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // The shell goes on after keys that the line under test is to see.
        let script = format!(
            "trap : INT QUIT TERM HUP\ncd {0}\nstty -g > before\n{line}\n\
             echo \"status $?\"\nstty -g > after\nread end\n",
            folder.path().display()
        );
        fs::write(folder.path().join("session.sh"), script).unwrap();
        let shell = format!("exec sh {}/session.sh", folder.path().display());
        // Were this process killed, the terminal would go, and with it what runs on it.
        let words = ["--pdeathsig", "KILL", "script", "-qec", &shell, "/dev/null"];
        let mut script = bare("setpriv", &words);
        script.env("TERM", "xterm");
        let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let keys = child.stdin.take().unwrap();
        let mut output = child.stdout.take().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let collected = Arc::clone(&seen);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(n @ 1..) = output.read(&mut bytes) {
                collected.lock().unwrap().extend_from_slice(&bytes[..n]);
            }
        });
        Self { child, keys, seen, folder }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
    }

    pub(crate) fn seen(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap()).into_owned()
    }

    pub(crate) fn until_shown(&self, what: &str) {
        self.until(&format!("{what:?} is shown"), || self.seen().contains(what).then_some(()));
    }

    /// Waits for what only the line can bring about: its end, with whatever status, is the end of the wait.
    pub(crate) fn until<T>(&self, what: &str, mut answer: impl FnMut() -> Option<T>) -> T {
        let mut looks_after_its_end = 0;
        until(what, || {
            let answer = answer();
            looks_after_its_end += u32::from(self.attributes("after").ends_with('\n'));
            // What was written may still be on its way.
            let is_over = answer.is_none() && looks_after_its_end > 2_000;
            assert!(!is_over, "the line has ended before {what}: {}", self.seen());
            answer
        })
    }

    /// What the shell has written down of its terminal.
    fn attributes(&self, when: &str) -> String {
        fs::read_to_string(self.folder.path().join(when)).unwrap_or_default()
    }

    /// What is shown when the line has ended with `status`; the terminal is unchanged.
    pub(crate) fn end(mut self, status: i32) -> String {
        until("the line has ended", || self.attributes("after").ends_with('\n').then_some(()));
        assert_eq!(self.attributes("before"), self.attributes("after"));
        assert!(!self.attributes("before").is_empty());
        // What was written may still be on its way.
        self.until_shown("status ");
        let seen = self.seen();
        assert!(seen.contains(&format!("status {status}")), "{seen}");
        assert!(seen.rfind(LEFT) > seen.rfind(ENTERED), "{seen}");
        assert!(seen.rfind("\x1b[?25h") > seen.rfind("\x1b[?25l"), "the cursor is back: {seen}");
        self.press("\n");
        self.child.wait().unwrap();
        seen
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The shell, which leads the terminal's session.
    pub(crate) fn shell(&self) -> u32 {
        until("the shell is there", || children(self.child.id()).first().copied())
    }

    /// Gives the terminal another size.
    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        let terminal = fs::read_link(format!("/proc/{}/fd/0", self.shell())).unwrap();
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let words = ["-F", terminal.to_str().unwrap(), "rows", &rows, "cols", &columns];
        assert!(bare("stty", &words).status().unwrap().success());
    }

    /// Takes the terminal away, as when its window is closed.
    pub(crate) fn hang_up(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for TerminalSession {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("shown: {:?}", self.seen());
        }
        // Before it is waited for, its id is nobody else's.
        if let Ok(None) = self.child.try_wait() {
            for shell in children(self.child.id()) {
                kill_session(shell);
            }
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Kills all that runs on the terminal of the shell `leader`, which heeds no hang-up itself.
fn kill_session(leader: u32) {
    // What was made while they were looked for is found the next time.
    for _ in 0..100 {
        let members = members(leader);
        if members.is_empty() {
            return;
        }
        for pid in members {
            // It may have ended meanwhile.
            let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
        }
    }
}

/// The processes of a session.
pub(crate) fn members(leader: u32) -> Vec<u32> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| session_of(*pid) == Some(leader)).collect()
}

/// The session of a process that has not ended.
fn session_of(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit(')').next()?.split_whitespace();
    let state = fields.next()?;
    fields.nth(2)?.parse().ok().filter(|_| !matches!(state, "Z" | "X"))
}

/// Calls without end, and no handler of a signal. The call's name is in the table only, not in the title.
pub(crate) const BUSY: &str = r#"perl -e 'eval lc q(GETPPID WHILE 1)'"#;

pub(crate) fn tools() -> bool {
    has("script") && has("setpriv") && has("perl") && has("stty")
}
