//! The observers, attached to a server that runs: their command lines, the moment from which they watch, and their own
//! count of the calls by which the server answers.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use iotomy_record::store;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::child::{Signals, guarded};
use crate::floor::Floor;
use crate::peers;
use crate::services::service::{Call, Service};

/// An observer that needs longer to attach is considered failed.
const PATIENCE: Duration = Duration::from_secs(20);
/// The options of iotomy that ask for everything.
pub(crate) const EVERYTHING: [&str; 6] =
    ["--peers", "--paths", "--threads", "--slowest", "10", "--files"];

/// The observers, and what they watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Watcher {
    /// Nobody.
    Bare,
    /// Two programs that do nothing, on the same tracepoints, for all processes.
    Empty,
    /// The same, each of which reads the clock: no observer that times calls costs less.
    Clock,
    Trace,
    Everything,
    /// iotomy, which also tells requests from their answers.
    Requests,
    /// iotomy, which counts one call that the server makes seldom.
    Call,
    /// iotomy watches another process.
    TraceOther,
    EverythingOther,
    Bpftrace,
    Perf,
    Strace,
}

impl Watcher {
    pub(crate) const ALL: [Self; 12] = [
        Self::Bare,
        Self::Empty,
        Self::Clock,
        Self::Trace,
        Self::Everything,
        Self::Requests,
        Self::Call,
        Self::TraceOther,
        Self::EverythingOther,
        Self::Bpftrace,
        Self::Perf,
        Self::Strace,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Empty => "two empty BPF programs",
            Self::Clock => "two that read the clock",
            Self::Trace => "iotomy trace",
            Self::Everything => "iotomy trace with everything",
            Self::Requests => "iotomy trace --requests",
            Self::Call => "iotomy trace --call X",
            Self::TraceOther => "iotomy trace of another process",
            Self::EverythingOther => "iotomy trace of another process with everything",
            Self::Bpftrace => "bpftrace",
            Self::Perf => "perf trace -s",
            Self::Strace => "strace -c -f",
        }
    }

    /// Returns the programs that observe nothing, or the reason why the kernel rejects them.
    pub(crate) fn floor(self) -> Option<Result<Floor>> {
        match self {
            Self::Empty => Some(Floor::empty()),
            Self::Clock => Some(Floor::clock()),
            _ => None,
        }
    }

    pub(crate) fn is_peer(self) -> bool {
        matches!(self, Self::Bpftrace | Self::Perf | Self::Strace)
    }

    /// Returns whether the observer takes its turn only in every second block: its cost is far from the others'.
    pub(crate) fn is_seldom(self) -> bool {
        matches!(self, Self::Perf | Self::Strace)
    }

    fn is_iotomy(self) -> bool {
        self.watches_other()
            || matches!(self, Self::Trace | Self::Everything | Self::Requests | Self::Call)
    }

    pub(crate) fn watches_other(self) -> bool {
        matches!(self, Self::TraceOther | Self::EverythingOther)
    }

    fn program(self) -> Option<&'static str> {
        match self {
            Self::Bpftrace => Some("bpftrace"),
            Self::Perf => Some("perf"),
            Self::Strace => Some("strace"),
            _ => None,
        }
    }

    /// Returns whether its count is that of the calls by which the server answers.
    pub(crate) fn counts_answers(self) -> bool {
        self != Self::Call
    }

    /// Returns a peer's version, or the reason why it cannot be run.
    pub(crate) fn version(self) -> Option<Result<String, String>> {
        self.program().map(peers::version)
    }

    /// Returns the command that watches the process and writes its report to `output`; `None` if there is none.
    fn argv(self, iotomy: &str, service: &Service, pid: u32, output: &str) -> Option<Vec<String>> {
        let pid = pid.to_string();
        let trace = [iotomy, "trace", "-q", "--observer=bpf", "--json", output, "-p", &pid];
        let words: Vec<&str> = match self {
            Self::Bare | Self::Empty | Self::Clock => return None,
            Self::Trace | Self::TraceOther => trace.to_vec(),
            Self::Requests => [&trace[..], &["--requests"]].concat(),
            Self::Call => [&trace[..], &["--call", service.rare_call]].concat(),
            Self::Everything | Self::EverythingOther => [&trace[..], &EVERYTHING].concat(),
            Self::Bpftrace => {
                let script = bpftrace_script(service, &pid);
                return Some(
                    ["bpftrace", "-q", "-o", output, "-e", &script].map(str::to_owned).to_vec(),
                );
            }
            Self::Perf => vec!["perf", "trace", "-s", "-o", output, "-p", &pid],
            Self::Strace => vec!["strace", "-c", "-f", "-o", output, "-p", &pid],
        };
        Some(words.into_iter().map(str::to_owned).collect())
    }

    /// Attaches the observer to the process and waits until it watches.
    ///
    /// # Errors
    /// When it ends or does not attach in time.
    pub(crate) fn attach(
        self,
        signals: &Signals,
        iotomy: &str,
        service: &Service,
        pid: u32,
        folder: &Path,
    ) -> Result<Option<Attached>> {
        let output = folder.join("seen");
        let _ = fs::remove_file(&output);
        let output = output.to_str().context("a path is not UTF-8")?;
        let Some(argv) = self.argv(iotomy, service, pid, output) else { return Ok(None) };
        let errors = File::create(folder.join("errors")).context("cannot create a file")?;
        let mut command = guarded(&argv, errors)?;
        command.stdout(Stdio::null());
        let child = command.spawn().with_context(|| format!("cannot start {}", argv[0]))?;
        let mut attached = Attached { watcher: self, child };
        let until = Instant::now() + PATIENCE;
        while !attached.watches(pid) {
            signals.check()?;
            if let Some(status) = attached.child.try_wait().context("cannot wait")? {
                let stderr = fs::read_to_string(folder.join("errors")).unwrap_or_default();
                let last = stderr.lines().rfind(|line| !line.is_empty()).unwrap_or_default();
                bail!("it ended with {status}: {last}");
            }
            if Instant::now() > until {
                bail!("it did not attach");
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(Some(attached))
    }

    /// Returns the observer's count of the calls by which the server answers; where it counts others only, that of the
    /// calls it left out, which are no fewer.
    ///
    /// # Errors
    /// When its output cannot be read, when iotomy lost events, or counted what it was not asked for.
    pub(crate) fn seen(self, service: &Service, folder: &Path) -> Result<u64, String> {
        let path = folder.join("seen");
        let Call { name, number } = service.answer;
        if self.is_iotomy() {
            let trace = store::load_trace(&path).map_err(|error| error.to_string())?;
            if trace.observer.lost_events > 0 {
                return Err(format!("lost {} events", trace.observer.lost_events));
            }
            let observer = &trace.observer;
            let lost = [observer.lost_files, observer.lost_connections, observer.lost_exchanges];
            if lost.iter().any(|lost| *lost > 0) {
                return Err(format!("lost {lost:?} files, connections and requests"));
            }
            if self == Self::Call {
                let (rare, other): (Vec<_>, Vec<_>) =
                    trace.calls.iter().partition(|row| row.syscall == service.rare_call);
                return match other.first() {
                    Some(row) => Err(format!("counted {}", row.syscall)),
                    None if rare.is_empty() => Err(format!("counted no {}", service.rare_call)),
                    None => Ok(observer.calls_left_out.unwrap_or_default()),
                };
            }
            if self == Self::Requests && !trace.requests.iter().any(|row| row.requests > 0) {
                return Err("timed no request".to_owned());
            }
            return Ok(trace
                .calls
                .iter()
                .filter(|row| row.syscall == name)
                .map(|row| row.calls)
                .sum());
        }
        let text = fs::read_to_string(&path).map_err(|error| format!("left no output: {error}"))?;
        let counts = text.lines().filter_map(|line| match self {
            Self::Bpftrace => peers::bpftrace_count(line, number),
            Self::Perf => peers::perf_count(line, name),
            _ => peers::strace_count(line, name),
        });
        Ok(counts.sum())
    }
}

/// Counts and distributions of durations by call: a tenth of iotomy's table. The server's children are watched by the
/// name, which is the shortest that bpftrace has for it.
pub(crate) fn bpftrace_script(service: &Service, pid: &str) -> String {
    let filter = match service.comm {
        Some(comm) => format!("comm == \"{comm}\""),
        None => format!("pid == {pid}"),
    };
    format!(
        "tracepoint:raw_syscalls:sys_enter /{filter}/ {{ @start[tid] = nsecs; }} \
         tracepoint:raw_syscalls:sys_exit /@start[tid]/ {{ @calls[args->id] = count(); \
         @durations[args->id] = hist(nsecs - @start[tid]); delete(@start[tid]); }} \
         END {{ clear(@start); }}"
    )
}

/// An attached observer; it is killed and reaped when this value is dropped.
pub(crate) struct Attached {
    watcher: Watcher,
    child: Child,
}

impl Attached {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns whether the observer has attached: it waits for events, or is the tracer of every thread.
    fn watches(&self, pid: u32) -> bool {
        if self.watcher == Watcher::Strace {
            let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
            return threads.map(|thread| thread.path().join("status")).all(|status| {
                let status = fs::read_to_string(status).unwrap_or_default();
                status.lines().any(|line| is_traced_by(line, self.pid()))
            });
        }
        let call = fs::read_to_string(format!("/proc/{}/syscall", self.pid())).unwrap_or_default();
        waits_for_events(&call)
    }

    /// Asks the observer to end and waits until it has written its report.
    ///
    /// # Errors
    /// When it fails, or a signal has arrived.
    pub(crate) fn end(mut self, signals: &Signals) -> Result<()> {
        let pid = Pid::from_raw(self.child.id().cast_signed());
        kill(pid, Signal::SIGINT).context("cannot end an observer")?;
        let status = signals.wait(&mut self.child)?;
        // perf and strace end by the signal that they were sent.
        if self.watcher.is_iotomy() && !status.success() {
            bail!("it ended with {status}");
        }
        Ok(())
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Parses the line `TracerPid` of `/proc/PID/status`.
fn is_traced_by(line: &str, pid: u32) -> bool {
    line.strip_prefix("TracerPid:").is_some_and(|tracer| tracer.trim().parse() == Ok(pid))
}

/// Returns whether `/proc/PID/syscall` is of poll, epoll_wait, ppoll or epoll_pwait.
fn waits_for_events(call: &str) -> bool {
    ["7 ", "232 ", "271 ", "281 "].iter().any(|number| call.starts_with(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_observer_that_waits_for_events_has_attached() {
        assert!(waits_for_events("7 0x7ffc 0x1 0xffffffff"));
        assert!(!waits_for_events("72 0x7ffc"));
        assert!(!waits_for_events("running"));
        assert!(is_traced_by("TracerPid:\t123", 123));
        assert!(!is_traced_by("TracerPid:\t0", 123));
    }
}
