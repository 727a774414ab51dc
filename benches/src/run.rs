//! A run of a bench: its progress messages and its identification.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use iotomy_record::Machine;
use rustix::time::{ClockId, clock_gettime};

use crate::child::{Interrupted, own_path};

/// Returns the exit status of a bench: prints an error, and uses the conventional status for a
/// signal.
pub fn ended(bench: &str, done: Result<ExitCode>) -> ExitCode {
    done.unwrap_or_else(|error| {
        progress("");
        eprintln!("{bench}: {error:#}");
        let signal = error.downcast_ref::<Interrupted>().map(|by| by.0);
        ExitCode::from(signal.and_then(|signal| u8::try_from(128 + signal).ok()).unwrap_or(2))
    })
}

/// Returns the absolute path of the iotomy to measure.
///
/// # Errors
/// When the file does not exist.
pub fn built(iotomy: &Path) -> Result<PathBuf> {
    let place = || format!("cannot find {}; build it with `make build`", iotomy.display());
    iotomy.canonicalize().with_context(place)
}

/// Returns the path of the iotomy to measure as an observer, which takes root; `target` is what is made to try again.
///
/// # Errors
/// When the file does not exist, its path is not UTF-8, or the user is another.
pub fn built_observer(iotomy: &Path, target: &str) -> Result<String> {
    let path = built(iotomy)?;
    let path = path.to_str().context("the path of iotomy is not UTF-8")?.to_owned();
    be_root(target)?;
    Ok(path)
}

/// # Errors
/// When the user is not root, whom observing takes; `target` is what is made to try again.
pub fn be_root(target: &str) -> Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!("observing by BPF takes root; try `sudo make {target}`");
    }
    Ok(())
}

/// Returns the path of the program that does exactly the requested amount of work; it is beside
/// this program.
///
/// # Errors
/// When the path of this program is unknown.
pub fn load_program() -> Result<PathBuf> {
    Ok(own_path()?.with_file_name("bench-load"))
}

/// Returns the version of a program, in one line.
pub fn version(program: &Path) -> Option<String> {
    let output = std::process::Command::new(program).arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().next().map(str::to_owned)
}

/// Prints the progress, only if standard error is a terminal.
pub fn progress(text: &str) {
    use std::io::IsTerminal;
    if std::io::stderr().is_terminal() {
        eprint!("\r\x1b[K{text}");
    }
}

/// Returns the CPU time of this thread, in ns.
pub fn thread_ns() -> i64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// Returns a seed for a run without a requested seed.
pub fn seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    // A short number is easier to repeat.
    now.map_or(1, |now| u64::from(now.subsec_nanos()) ^ (now.as_secs() & 0xFFFF_FFFF))
}

/// Returns the load averages of the last one and five minutes.
pub fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(2).collect::<Vec<_>>().join(" and ")
}

/// Returns the command line as typed, with programs without their directories.
pub fn command() -> String {
    let name = |path: &str| Path::new(path).file_name().map(|n| n.to_string_lossy().into_owned());
    let words = std::env::args().map(|word| name(&word).unwrap_or(word));
    words.collect::<Vec<_>>().join(" ")
}

/// Returns the directory of a run below `results`, named by day and machine.
pub fn folder(results: &Path, started: &str, machine: &Machine) -> PathBuf {
    let date = started.split('T').next().unwrap_or("undated");
    results.join(format!("{date}-{}", slug(machine)))
}

/// Returns the machine's part of a directory name, as in `xeon-2cpu-linux-6.18`.
fn slug(machine: &Machine) -> String {
    const NOISE: [&str; 8] =
        ["intel", "amd", "cpu", "processor", "with", "core", "virtual", "genuine"];
    let model = machine.cpu.replace("(R)", " ").replace("(TM)", " ").to_lowercase();
    let model = model.split('@').next().unwrap_or_default();
    let words: Vec<&str> = model
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty() && !NOISE.contains(word))
        .take(3)
        .collect();
    let model = if words.is_empty() { "unknown".to_owned() } else { words.join("-") };
    let release = machine.kernel.split_whitespace().nth(1).unwrap_or("unknown");
    let release: Vec<&str> = release.split(['.', '-']).take(2).collect();
    format!("{model}-{}cpu-linux-{}", machine.cpus, release.join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_named_after_the_machine() {
        let machine = |cpu: &str, cpus| Machine {
            cpu: cpu.to_owned(),
            cpus,
            kernel: "Linux 6.18.44-fc x86_64".to_owned(),
            ..Machine::default()
        };
        assert_eq!(slug(&machine("Intel(R) Xeon(R) Processor", 2)), "xeon-2cpu-linux-6.18");
        assert_eq!(
            slug(&machine("AMD EPYC 7763 64-Core Processor", 8)),
            "epyc-7763-64-8cpu-linux-6.18"
        );
        let core = machine("Intel(R) Core(TM) i7-9750H CPU @ 2.60GHz", 12);
        assert_eq!(slug(&core), "i7-9750h-12cpu-linux-6.18");
        assert_eq!(slug(&machine("", 1)), "unknown-1cpu-linux-6.18");
    }
}
