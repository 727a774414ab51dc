//! `bench-live`: what the view of `iotomy trace --live` takes of a CPU.
//!
//! A number of processes that make calls are watched on a terminal of 120 by 40, once with the view
//! and once without, in turn; the CPU time of iotomy itself is the kernel's (`schedstat`), second by
//! second, once all of them are there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail};
use clap::Parser;
use iotomy_benches::record::{Case, Sweep};
use iotomy_benches::run::{command, folder, load, progress};
use iotomy_benches::stats::estimate;
use iotomy_benches::tables::interval;
use iotomy_observe::{machine, rfc3339};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Processes that each make 40 calls a second and end with the first of them.
const WORK: &str = r#"
use Time::HiRes "sleep";
my ($n, $ready) = @ARGV;
$SIG{TERM} = sub { exit 0 };
my $first = $$;
for (2 .. $n) {
    next if fork;
    $SIG{TERM} = "DEFAULT";
    while (getppid == $first) { sleep 0.1; sysread STDIN, my $x, 1 for 1 .. 2 }
    exit 0;
}
open my $file, ">", $ready or die; close $file;
while (1) { sleep 0.1; sysread STDIN, my $x, 1 for 1 .. 2 }
"#;

/// What is watched.
const PROCESSES: [u32; 3] = [1, 100, 1_000];
const VIEWS: [&str; 2] = ["none", "live"];

/// The first looks have everything to draw.
const SETTLE: Duration = Duration::from_secs(3);

/// How long the processes may take to be made before it is given up.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the view of `iotomy trace --live` takes of a CPU
#[derive(Debug, Parser)]
struct Args {
    /// The iotomy to measure
    #[arg(long, value_name = "FILE", default_value = "target/release/iotomy")]
    iotomy: PathBuf,

    /// Seconds of each watch
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=1_000))]
    seconds: u32,

    /// Keep the table and the raw record below this folder
    #[arg(long, value_name = "FOLDER", default_value = "results")]
    results: PathBuf,
}

/// Shares of a CPU, in percent, second by second.
struct Measured {
    processes: u32,
    view: &'static str,
    shares: Vec<f64>,
}

fn main() -> ExitCode {
    bench(&Args::parse()).map_or_else(
        |error| {
            progress("");
            eprintln!("bench-live: {error:#}");
            ExitCode::from(2)
        },
        |()| ExitCode::SUCCESS,
    )
}

fn bench(args: &Args) -> Result<()> {
    let started = rfc3339(SystemTime::now());
    let before = load();
    let mut measured = Vec::new();
    for processes in PROCESSES {
        for view in VIEWS {
            progress(&format!("{processes} processes, view: {view}"));
            let shares = watched(args, processes, view)?;
            measured.push(Measured { processes, view, shares });
        }
    }
    progress("");
    let text = text(&measured, [&before, &load()]);
    print!("{text}");
    let folder = folder(&args.results, &started, &machine()).join("trace-live");
    keep(&folder, &text, &sweep(&started, &measured))?;
    println!("\nkept in {}", folder.display());
    Ok(())
}

/// A watch on a terminal of its own, by script(1).
struct Watch {
    script: Child,
    iotomy: Pid,
}

impl Watch {
    fn begin(args: &Args, work: &Path, processes: u32, view: &str) -> Result<Self> {
        let iotomy = fs::canonicalize(&args.iotomy)
            .with_context(|| format!("cannot find {}", args.iotomy.display()))?;
        fs::write(work.join("work.pl"), WORK).context("cannot write the work")?;
        let live = if view == "live" { "--live" } else { "" };
        let line = format!(
            "cd {folder}; stty rows 40 cols 120; echo $$ > pid.new; mv pid.new pid; \
             exec {iotomy} trace -q {live} --observer bpf perl work.pl {processes} ready < /dev/zero",
            folder = work.display(),
            iotomy = iotomy.display(),
        );
        let mut script = Command::new("setpriv");
        script.args(["--pdeathsig", "KILL", "script", "-qec", &line, "/dev/null"]);
        script.env("TERM", "xterm").env("SHELL", "/bin/sh");
        // Kept open until the end: an end of file would be one of the terminal.
        script.stdin(Stdio::piped()).stdout(Stdio::null());
        let script = script.spawn().context("cannot run script; is it installed?")?;
        let mut watch = Self { script, iotomy: Pid::from_raw(0) };
        let pid = watch.wait_for(&work.join("pid"))?;
        watch.iotomy = Pid::from_raw(pid.trim().parse().context("the shell has no id")?);
        watch.wait_for(&work.join("ready"))?;
        Ok(watch)
    }

    /// The content of a file, once it is there.
    fn wait_for(&mut self, file: &Path) -> Result<String> {
        let began = Instant::now();
        loop {
            if let Ok(text) = fs::read_to_string(file) {
                return Ok(text);
            }
            if self.script.try_wait()?.is_some() || began.elapsed() > PATIENCE {
                bail!("the watch did not begin; `iotomy doctor` says what is missing");
            }
            sleep(Duration::from_millis(10));
        }
    }

    /// CPU time of all its threads so far, in ns.
    fn cpu_ns(&self) -> Result<f64> {
        let tasks = format!("/proc/{}/task", self.iotomy);
        let mut sum = 0.0;
        for task in fs::read_dir(&tasks).with_context(|| format!("cannot read {tasks}"))? {
            // A thread may have ended meanwhile; what it took is then lost, and there are none such here.
            let text = fs::read_to_string(task?.path().join("schedstat")).unwrap_or_default();
            sum += text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0);
        }
        Ok(sum)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if self.iotomy.as_raw() > 0 && matches!(self.script.try_wait(), Ok(None)) {
            // The command gets it, and the watch ends with it.
            let _ = kill(self.iotomy, Signal::SIGTERM);
        } else {
            let _ = self.script.kill();
        }
        let _ = self.script.wait();
    }
}

fn watched(args: &Args, processes: u32, view: &str) -> Result<Vec<f64>> {
    let work = tempfile::Builder::new().prefix("iotomy-bench.").tempdir();
    let work = work.context("cannot make a temporary folder")?;
    let watch = Watch::begin(args, work.path(), processes, view)?;
    sleep(SETTLE);
    let mut shares = Vec::new();
    let mut last = (Instant::now(), watch.cpu_ns()?);
    for _ in 0..args.seconds {
        sleep(Duration::from_secs(1));
        let now = (Instant::now(), watch.cpu_ns()?);
        shares.push((now.1 - last.1) / (now.0 - last.0).as_nanos() as f64 * 100.0);
        last = now;
    }
    Ok(shares)
}

fn text(measured: &[Measured], loads: [&str; 2]) -> String {
    let mut text = String::from(
        "What iotomy itself takes of a CPU while it watches, in %: the median of seconds with its \
         95 % interval, the mean, and the most of a second.\n\n\
         | processes | view | median | mean | most |\n| ---: | --- | ---: | ---: | ---: |\n",
    );
    for one in measured {
        let median = estimate(&one.shares).map_or_else(String::new, |found| interval(found, 2));
        let mean = one.shares.iter().sum::<f64>() / one.shares.len().max(1) as f64;
        let most = one.shares.iter().copied().fold(0.0, f64::max);
        text +=
            &format!("| {} | {} | {median} | {mean:.2} | {most:.2} |\n", one.processes, one.view);
    }
    text += &format!(
        "\n- every process makes 40 calls a second; a terminal of 120 by 40\n\
         - loads before and after: {}; {}\n- `{}`\n",
        loads[0],
        loads[1],
        command()
    );
    text
}

fn sweep(started: &str, measured: &[Measured]) -> Sweep {
    let axes = [
        ("processes", PROCESSES.map(|n| n.to_string()).to_vec()),
        ("view", VIEWS.map(str::to_owned).to_vec()),
    ];
    let mut sweep = Sweep::new("trace-live", started, &machine(), &axes);
    for one in measured {
        let params = [("processes", &*one.processes.to_string()), ("view", one.view)];
        sweep.cases.push(Case::new(&params, "cpu", "%", &one.shares));
    }
    sweep
}

fn keep(folder: &Path, text: &str, sweep: &Sweep) -> Result<()> {
    fs::create_dir_all(folder)
        .with_context(|| format!("cannot create the folder {}", folder.display()))?;
    let readme = format!("# What the live view takes of a CPU\n\n{text}");
    fs::write(folder.join("README.md"), readme).context("cannot write README.md")?;
    sweep.write_on_one_line(&folder.join("raw.json"))
}
