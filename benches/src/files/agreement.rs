//! What fio, sysbench and the experiment `device` can all be asked: the time of a read of 4 KiB, one at a
//! time, of one and the same file, written beforehand.
//!
//! Each turn asks each for a few hundred reads, in random order, so that what the disk did at that time
//! it did to all. A figure is the mean time of a read as the program itself tells it, without its start,
//! its laying out of files and its warming up: there are none.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};
use iotomy_benches::child::Signals;
use iotomy_benches::order::Order;
use iotomy_benches::run::progress;
use iotomy_lab::experiments::mean_of_reads;
use serde_json::Value;

/// Turns of each.
const TURNS: u32 = 60;

/// Reads of a turn: some ten ms of a disk, and of memory each block once.
const OF_DISK: usize = 256;
const OF_MEMORY: usize = BYTES / 4096;

/// The file, and what the experiment and sysbench each call it.
const BYTES: usize = 32 << 20;
const CALLED: &str = "file";
const OF_SYSBENCH: &str = "test_file.0";

/// What all are asked, a figure a turn in ns a read.
pub(crate) struct Agreement {
    pub(crate) name: &'static str,
    pub(crate) iotomy_ns: Vec<f64>,
    /// The others that are here, or why one is not.
    pub(crate) peers: Vec<(&'static str, Result<Vec<f64>, String>)>,
}

/// What is asked.
struct Question {
    name: &'static str,
    way: &'static str,
    pattern: &'static str,
    reads: usize,
}

const QUESTIONS: [Question; 3] = [
    Question {
        name: "direct random reads of 4 KiB",
        way: "direct",
        pattern: "random",
        reads: OF_DISK,
    },
    Question {
        name: "direct sequential reads of 4 KiB",
        way: "direct",
        pattern: "sequential",
        reads: OF_DISK,
    },
    Question {
        name: "cached random reads of 4 KiB",
        way: "buffered",
        pattern: "random",
        reads: OF_MEMORY,
    },
];

type Ask = fn(&Path, &Question) -> Result<f64>;

const PEERS: [(&str, Ask); 2] = [("fio", by_fio), ("sysbench", by_sysbench)];

/// Asks all in turns.
pub(crate) fn agreement(
    path: &Path,
    is_quick: bool,
    order: &mut Order,
    signals: &Signals,
) -> Result<Vec<Agreement>> {
    let folder = tempfile::Builder::new().prefix("iotomy-bench.").tempdir_in(path);
    let folder = folder.with_context(|| format!("cannot make a folder in {}", path.display()))?;
    lay_out(folder.path())?;
    let turns = if is_quick { 6 } else { TURNS };
    let mut found = Vec::new();
    for question in &QUESTIONS {
        let mut one = Agreement {
            name: question.name,
            iotomy_ns: Vec::new(),
            peers: PEERS.iter().map(|(name, _)| (*name, Ok(Vec::new()))).collect(),
        };
        for turn in 0..turns {
            progress(&format!("{}, turn {} of {turns}", question.name, turn + 1));
            let mut asked: Vec<usize> = (0..=PEERS.len()).collect();
            order.shuffle(&mut asked);
            for who in asked {
                signals.check()?;
                match who.checked_sub(1) {
                    None => one.iotomy_ns.push(by_iotomy(folder.path(), question, turn)?),
                    Some(at) => ask(&mut one.peers[at].1, PEERS[at].1, folder.path(), question),
                }
            }
        }
        found.push(one);
    }
    Ok(found)
}

/// One that fails once is not asked again.
fn ask(figures: &mut Result<Vec<f64>, String>, who: Ask, folder: &Path, question: &Question) {
    if let Ok(so_far) = figures {
        match who(folder, question) {
            Ok(ns) => so_far.push(ns),
            Err(error) => *figures = Err(format!("{error:#}")),
        }
    }
}

/// Bytes that nothing could compress or take for a hole, on the disk and in the page cache.
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
    mean_of_reads(folder, what, question.reads, u64::from(turn)).map_err(|reason| anyhow!(reason))
}

fn by_fio(folder: &Path, question: &Question) -> Result<f64> {
    let mut command = Command::new("fio");
    command.args(["--name=read", "--ioengine=psync", "--bs=4k", "--output-format=json"]);
    // Neither dropped from the page cache nor announced to it: it is as the others find it.
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
    let told = said(&mut command)?;
    let told: Value = serde_json::from_str(&told).context("fio told no JSON")?;
    let read = &told["jobs"][0]["read"];
    match (read["total_ios"].as_u64(), read["lat_ns"]["mean"].as_f64()) {
        (Some(ios), Some(mean)) if ios == question.reads as u64 => Ok(mean),
        _ => bail!("fio told no figure of {} reads", question.reads),
    }
}

fn by_sysbench(folder: &Path, question: &Question) -> Result<f64> {
    let mode = if question.pattern == "random" { "rndrd" } else { "seqrd" };
    let mut command = Command::new("sysbench");
    command.current_dir(folder).args(["fileio", "--file-num=1", "--threads=1", "--time=0"]);
    command
        .args(["--file-block-size=4096", "--file-io-mode=sync"])
        .arg(format!("--events={}", question.reads));
    command.arg(format!("--file-total-size={BYTES}")).arg(format!("--file-test-mode={mode}"));
    if question.way == "direct" {
        command.arg("--file-extra-flags=direct");
    }
    let told = said(command.arg("run"))?;
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

/// What a program said, which must have gone well.
fn said(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot run {name}"))?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        bail!("{name} failed: {}", error.lines().next().unwrap_or_default());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
