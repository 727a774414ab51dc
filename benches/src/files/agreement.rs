//! A question that fio, sysbench and the experiment `device` can all answer: the time of a read, one at a time, of the
//! same file, written beforehand.
//!
//! Each turn requests some hundred reads from each program, in random order, so that a change in the disk's state
//! affects all of them. A figure is the mean time of a read as the program itself reports it, without its start; there
//! is not a layout of files and no warm-up. For short reads, which the page cache answers, the program's own work between
//! two clock reads is a large part of the time. These reads are therefore also measured a second time by
//! `iotomy trace`, as the time in the call.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use iotomy_lab::mean_of_reads;
use iotomy_record::{Call, store};
use serde_json::Value;

use crate::child::{Signals, guard_of};
use crate::order::Order;
use crate::run::progress;
use crate::scratch::Scratch;

/// Number of turns of each program.
const TURNS: u32 = 40;

/// Number of reads in a turn: about fifty ms of a disk, so that the program's work at its first
/// reads does not matter; in memory, each block once.
const OF_DISK: usize = 512;
const OF_MEMORY: usize = BYTES / SMALL;
const OF_MEMORY_LARGE: usize = BYTES / LARGE;

/// Bytes per read.
const SMALL: usize = 4 << 10;
const LARGE: usize = 64 << 10;

/// The size of the file, its name in the experiment, and its name in sysbench.
const BYTES: usize = 32 << 20;
const CALLED: &str = "file";
const OF_SYSBENCH: &str = "test_file.0";

/// The figures of all programs: one per turn, in ns per read.
pub(crate) struct Agreement {
    pub(crate) name: &'static str,
    pub(crate) iotomy_ns: Vec<f64>,
    /// The other programs: their figures, or the reason why they are missing.
    pub(crate) peers: Vec<(&'static str, Result<Vec<f64>, String>)>,
}

/// A question.
struct Question {
    name: &'static str,
    /// The name of the same question for `iotomy trace`, where the calls are short.
    in_call: Option<&'static str>,
    way: &'static str,
    pattern: &'static str,
    reads: usize,
    block: usize,
}

const QUESTIONS: [Question; 4] = [
    Question {
        name: "direct random reads of 4 KiB",
        in_call: None,
        way: "direct",
        pattern: "random",
        reads: OF_DISK,
        block: SMALL,
    },
    Question {
        name: "direct sequential reads of 4 KiB",
        in_call: None,
        way: "direct",
        pattern: "sequential",
        reads: OF_DISK,
        block: SMALL,
    },
    Question {
        name: "cached random reads of 4 KiB",
        in_call: Some("cached random reads of 4 KiB, in the call"),
        way: "buffered",
        pattern: "random",
        reads: OF_MEMORY,
        block: SMALL,
    },
    Question {
        name: "cached random reads of 64 KiB",
        in_call: Some("cached random reads of 64 KiB, in the call"),
        way: "buffered",
        pattern: "random",
        reads: OF_MEMORY_LARGE,
        block: LARGE,
    },
];

/// A program that reads, and the function that extracts its own figure from its output.
struct Peer {
    name: &'static str,
    command: fn(&Path, &Question) -> Command,
    told: fn(&str, &Question) -> Result<f64>,
}

const PEERS: [Peer; 2] = [
    Peer { name: "fio", command: fio, told: told_by_fio },
    Peer { name: "sysbench", command: sysbench, told: told_by_sysbench },
];

/// Measures with all programs in turns; `iotomy` is the command that watches.
pub(crate) fn agreement(
    (path, iotomy): (&Path, &Path),
    is_quick: bool,
    order: &mut Order,
    signals: &Signals,
) -> Result<Vec<Agreement>> {
    let folder = Scratch::below(path)?;
    lay_out(folder.path())?;
    let folder = folder.path();
    let turns = if is_quick { 6 } else { TURNS };
    let mut found = Vec::new();
    for question in &QUESTIONS {
        let asked = (question.name, turns);
        found.push(in_turns(asked, order, signals, |who, turn| match who {
            None => by_iotomy(folder, question, turn),
            Some(peer) => (peer.told)(&stdout_of(&mut (peer.command)(folder, question))?, question),
        })?);
    }
    for question in &QUESTIONS {
        let Some(name) = question.in_call else { continue };
        let asked = (name, turns);
        found.push(in_turns(asked, order, signals, |who, turn| {
            let command = match who {
                None => reads(folder, question, turn)?,
                Some(peer) => (peer.command)(folder, question),
            };
            time_in_call(iotomy, folder, &command, question)
        })?);
    }
    Ok(found)
}

/// Measures with iotomy (`None`) and each peer once per turn, in random order.
fn in_turns(
    (name, turns): (&'static str, u32),
    order: &mut Order,
    signals: &Signals,
    mut ask: impl FnMut(Option<&Peer>, u32) -> Result<f64>,
) -> Result<Agreement> {
    let peers = PEERS.iter().map(|peer| (peer.name, Ok(Vec::new()))).collect();
    let mut found = Agreement { name, iotomy_ns: Vec::new(), peers };
    for turn in 0..turns {
        progress(&format!("{}, turn {} of {turns}", found.name, turn + 1));
        let mut asked: Vec<usize> = (0..=PEERS.len()).collect();
        order.shuffle(&mut asked);
        for who in asked {
            signals.check()?;
            let Some(at) = who.checked_sub(1) else {
                found.iotomy_ns.push(ask(None, turn)?);
                continue;
            };
            // A program that has failed once is not run again.
            let figures = &mut found.peers[at].1;
            if let Ok(so_far) = figures {
                match ask(Some(&PEERS[at]), turn) {
                    Ok(ns) => so_far.push(ns),
                    Err(error) => *figures = Err(format!("{error:#}")),
                }
            }
        }
    }
    Ok(found)
}

/// Creates a file on the disk and in the page cache, with bytes that cannot be compressed or stored
/// as a hole.
fn lay_out(folder: &Path) -> Result<()> {
    let mut random = Order::new(BYTES as u64);
    let bytes: Vec<u8> = (0..BYTES / 8).flat_map(|_| random.bits().to_ne_bytes()).collect();
    let path = folder.join(CALLED);
    let mut file = fs::File::create(&path).context("cannot make the file to read")?;
    file.write_all(&bytes).and_then(|()| file.sync_all()).context("cannot write it")?;
    fs::hard_link(&path, folder.join(OF_SYSBENCH)).context("cannot give it another name")
}

fn by_iotomy(folder: &Path, question: &Question, turn: u32) -> Result<f64> {
    let what = (question.way, question.pattern);
    let each = (question.reads, question.block as u64);
    mean_of_reads(folder, what, each, u64::from(turn)).map_err(|reason| anyhow!(reason))
}

fn fio(folder: &Path, question: &Question) -> Command {
    let mut command = Command::new("fio");
    command.args(["--name=read", "--ioengine=psync", "--output-format=json"]);
    command.arg(format!("--bs={}", question.block));
    // The file is neither dropped from the page cache nor announced to it: fio finds it as the
    // others do.
    command.args([
        "--thread",
        "--readonly",
        "--invalidate=0",
        "--fadvise_hint=0",
        "--randrepeat=0",
    ]);
    command.arg(format!("--number_ios={}", question.reads)).arg(format!("--size={BYTES}"));
    command.arg(if question.way == "direct" { "--direct=1" } else { "--direct=0" });
    command.arg(if question.pattern == "random" { "--rw=randread" } else { "--rw=read" });
    command.arg(format!("--filename={}", folder.join(CALLED).display()));
    command
}

fn told_by_fio(told: &str, question: &Question) -> Result<f64> {
    let told: Value = serde_json::from_str(told).context("fio told no JSON")?;
    let read = &told["jobs"][0]["read"];
    match (read["total_ios"].as_u64(), read["lat_ns"]["mean"].as_f64()) {
        (Some(ios), Some(mean)) if ios == question.reads as u64 => Ok(mean),
        _ => bail!("fio told no figure of {} reads", question.reads),
    }
}

fn sysbench(folder: &Path, question: &Question) -> Command {
    let mode = if question.pattern == "random" { "rndrd" } else { "seqrd" };
    let mut command = Command::new("sysbench");
    command.current_dir(folder).args(["fileio", "--file-num=1", "--threads=1", "--time=0"]);
    command
        .arg(format!("--file-block-size={}", question.block))
        .arg("--file-io-mode=sync")
        .arg(format!("--events={}", question.reads));
    command.arg(format!("--file-total-size={BYTES}")).arg(format!("--file-test-mode={mode}"));
    if question.way == "direct" {
        command.arg("--file-extra-flags=direct");
    }
    command.arg("run");
    command
}

fn told_by_sysbench(told: &str, _: &Question) -> Result<f64> {
    // The sum of the times of all events, in ms.
    let field = |name: &str| {
        let line = told.lines().find_map(|line| line.trim().strip_prefix(name))?;
        line.trim().parse::<f64>().ok()
    };
    match (field("sum:"), field("total number of events:")) {
        (Some(ms), Some(events)) if events > 0.0 => Ok(ms * 1e6 / events),
        _ => bail!("sysbench told no figure"),
    }
}

/// The argument with which this program makes the reads and ends, so that it can be watched like
/// the peers.
pub const READS: &str = "reads-of-device";

/// Returns the command with which this program makes the reads of a question.
fn reads(folder: &Path, question: &Question, turn: u32) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("cannot tell its own path")?);
    command.args([READS, question.way, question.pattern]);
    command.args([question.reads, question.block, turn as usize].map(|number| number.to_string()));
    command.arg(folder);
    Ok(command)
}

/// Makes reads as requested on the command line.
///
/// # Errors
/// When the arguments are invalid or a read fails.
pub fn make_reads(argv: &[OsString]) -> Result<()> {
    let [way, pattern, reads, block, seed, folder] = argv else { bail!("six words make reads") };
    let word = |of: &OsString| of.to_str().map(str::to_owned).context("no UTF-8");
    let number = |of: &OsString| Ok::<u64, anyhow::Error>(word(of)?.parse()?);
    let each = (usize::try_from(number(reads)?)?, number(block)?);
    mean_of_reads(Path::new(folder), (&word(way)?, &word(pattern)?), each, number(seed)?)
        .map(drop)
        .map_err(|reason| anyhow!(reason))
}

/// Returns the mean on-CPU time of a program in a read, as `iotomy trace` reports it. It excludes the program's work
/// outside the call and includes the overhead of watching, which is the same for each program.
fn time_in_call(
    iotomy: &Path,
    folder: &Path,
    command: &Command,
    question: &Question,
) -> Result<f64> {
    let record = folder.join("trace.json");
    // Sysbench expects its file in the working directory.
    let iotomy =
        iotomy.canonicalize().with_context(|| format!("cannot find {}", iotomy.display()))?;
    let mut trace = Command::new(iotomy);
    trace.args(["trace", "--json"]).arg(&record).arg("--");
    trace.arg(command.get_program()).args(command.get_args());
    trace.current_dir(command.get_current_dir().unwrap_or(folder));
    stdout_of(&mut trace)?;
    let trace = store::load_trace(&record).context("cannot load the trace")?;
    // `device` stops at its time limit, which on a busy machine comes before the last read.
    let is_asked = |row: &&Call| row.syscall == "pread64" && row.calls > question.reads as u64 / 2;
    let of_each = |row: &Call| Some(row.on_cpu_ns? as f64 / row.calls as f64);
    match trace.calls.iter().filter(is_asked).map(of_each).collect::<Vec<_>>()[..] {
        [Some(ns)] => Ok(ns),
        _ => bail!("the trace has not one row of these reads with its time"),
    }
}

/// Returns the standard output of a program, which must succeed.
fn stdout_of(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = guard_of(command)?
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {name}"))?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        bail!("{name} failed: {}", error.lines().next().unwrap_or_default());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
