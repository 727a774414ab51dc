//! The observers compared, the command line with which each measures the same quantity, and the
//! parsing of its count.
//!
//! An observer that does not count would win every comparison. The output of each one is therefore
//! parsed, and its count of a known call is stored beside its overhead.

use std::fs;
use std::path::Path;

use iotomy_record::store;

use crate::peers;
use crate::trace::subject::Subject;

/// The observers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Observer {
    Bare,
    Empty,
    Clock,
    Trace,
    Bpftrace,
    Perf,
    Strace,
}

/// The number of calls in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Length {
    /// Enough for the bare run to take 100 ms.
    Full,
    /// Fewer calls, for observers that would need minutes for a full run.
    Short,
}

/// Counts, and distributions of return values and durations, by program, process and call, for the
/// started process: the closest that bpftrace comes to iotomy. It observes only that process,
/// because following its children would need more programs and increase the overhead.
pub(crate) const BPFTRACE_SCRIPT: &str = "\
tracepoint:raw_syscalls:sys_enter /pid == cpid/ {
	@start[tid] = nsecs;
}
tracepoint:raw_syscalls:sys_exit /@start[tid]/ {
	@calls[comm, pid, args->id] = count();
	@returns[comm, pid, args->id] = hist(args->ret);
	@durations[comm, pid, args->id] = hist(nsecs - @start[tid]);
	delete(@start[tid]);
}
END {
	clear(@start);
}
";

impl Observer {
    pub(crate) const ALL: [Self; 7] = [
        Self::Bare,
        Self::Empty,
        Self::Clock,
        Self::Trace,
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
            Self::Bpftrace => "bpftrace",
            Self::Perf => "perf trace -s",
            Self::Strace => "strace -f -c",
        }
    }

    pub(crate) fn length(self) -> Length {
        match self {
            Self::Perf | Self::Strace => Length::Short,
            _ => Length::Full,
        }
    }

    /// Returns the program to search for on this machine, for the peers.
    fn program(self) -> Option<&'static str> {
        match self {
            Self::Bpftrace => Some("bpftrace"),
            Self::Perf => Some("perf"),
            Self::Strace => Some("strace"),
            _ => None,
        }
    }

    /// Returns the first line of the peer's version output, or the reason why the peer cannot be
    /// run.
    pub(crate) fn version(self) -> Option<Result<String, String>> {
        self.program().map(peers::version)
    }

    /// Returns the command that watches `subject` and writes its observations to the directory.
    pub(crate) fn argv(self, iotomy: &str, subject: &[String], folder: &Path) -> Vec<String> {
        let output = folder.join("seen").to_string_lossy().into_owned();
        let script = folder.join("script.bt").to_string_lossy().into_owned();
        let joined = subject.join(" ");
        let trace = [iotomy, "trace", "--quiet", "--observer=bpf", "--json", &output];
        let before: Vec<&str> = match self {
            Self::Bare | Self::Empty | Self::Clock => Vec::new(),
            Self::Trace => [&trace[..], &["--"]].concat(),
            // bpftrace takes the command as one argument and splits it at spaces.
            Self::Bpftrace => {
                let words = ["bpftrace", "-q", "-o", &output, "-c", &joined, &script];
                return words.map(str::to_owned).to_vec();
            }
            Self::Perf => vec!["perf", "trace", "-s", "-o", &output, "--"],
            Self::Strace => vec!["strace", "-f", "-c", "-o", &output, "--"],
        };
        before.into_iter().map(str::to_owned).chain(subject.iter().cloned()).collect()
    }

    /// Returns the observer's report.
    ///
    /// # Errors
    /// When its output cannot be read.
    pub(crate) fn seen(
        self,
        subject: Subject,
        folder: &Path,
    ) -> Result<Option<CountedCall>, String> {
        let path = folder.join("seen");
        let (name, number, _) = subject.counted(0);
        match self {
            Self::Bare | Self::Empty | Self::Clock => return Ok(None),
            Self::Trace => return seen_by_iotomy(&path, subject).map(Some),
            _ => {}
        }
        let text = fs::read_to_string(&path).map_err(|error| format!("left no output: {error}"))?;
        let counts = text.lines().filter_map(|line| match self {
            Self::Bpftrace => peers::bpftrace_count(line, number),
            Self::Perf => peers::perf_count(line, name),
            _ => peers::strace_count(line, name),
        });
        // Programs that run earlier in the subject's process have a separate row.
        Ok(Some(CountedCall { calls: counts.max().unwrap_or(0), by_iotomy: None }))
    }
}

/// An observer's report about the counted call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CountedCall {
    pub(crate) calls: u64,
    pub(crate) by_iotomy: Option<SeenByIotomy>,
}

/// The figures that only iotomy reports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SeenByIotomy {
    /// ns from entry to return of the subject's calls.
    pub(crate) ns_per_call: f64,
    /// Its own overhead per call, as calibrated at its start.
    pub(crate) price_ns: f64,
}

fn seen_by_iotomy(path: &Path, subject: Subject) -> Result<CountedCall, String> {
    let trace = store::load_trace(path).map_err(|error| error.to_string())?;
    let (name, _, _) = subject.counted(0);
    let rows = || {
        let of_dd = subject == Subject::Dd;
        trace.calls.iter().filter(move |row| {
            row.syscall == name || of_dd && row.exec == "dd" && row.syscall == "write"
        })
    };
    let calls = rows().filter(|row| row.syscall == name).map(|row| row.calls).max().unwrap_or(0);
    let all: u64 = rows().map(|row| row.calls).sum();
    let wall: u64 = rows().map(|row| row.wall_ns).sum();
    if trace.observer.lost_events > 0 {
        return Err(format!("lost {} events", trace.observer.lost_events));
    }
    let by_iotomy = SeenByIotomy {
        ns_per_call: wall as f64 / all.max(1) as f64,
        price_ns: trace.observer.cost_ns_per_call,
    };
    Ok(CountedCall { calls, by_iotomy: Some(by_iotomy) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_slow_observers_make_short_runs() {
        let short: Vec<_> = Observer::ALL
            .iter()
            .filter(|o| o.length() == Length::Short)
            .map(|o| o.name())
            .collect();
        assert_eq!(short, ["perf trace -s", "strace -f -c"]);
    }
}
