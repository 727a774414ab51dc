//! One run: the ends are created, the contender is started with them, and the time is measured from just before its
//! start until it has ended and the far end has received the last byte.
//!
//! A target file is new in each run, and its creation is timed for all contenders. For a contender that writes to its
//! standard output the runner creates it, as a shell does for `>`. Removing the file is not timed, nor is the
//! write-back to an image. Nothing is flushed to a disk.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use iotomy_movers::{End, Job, Reflink, chooser};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use rustix::pipe::fcntl_setpipe_size;

use crate::child::Signals;
use crate::copy::contender::{Contender, Line, Tool, Tools, Work};
use crate::copy::ends::{Channel, Content, compare, feed, read_all};
use crate::copy::lanes::Run;
use crate::copy::route::{Route, Sharing, Source, Target};
use crate::copy::volumes::Volume;
use crate::run::load_program;

/// The largest pipe size in bytes that ordinary users may set.
const WIDE: usize = 1 << 20;

/// The destination of a contender's standard output.
enum OutputTarget<'a> {
    /// A file that is created when the time starts.
    Made(&'a Path),
    There(OwnedFd),
    /// The null device.
    Null,
}

/// The environment of runs.
pub(crate) struct Runner<'a> {
    pub(crate) signals: &'a Signals,
    pub(crate) tools: &'a Tools,
    pub(crate) volume: &'a Volume,
    /// The file in memory that feeders read.
    pub(crate) feed: &'a Path,
    /// The source file on the volume.
    pub(crate) source: PathBuf,
    /// The file for the contenders' standard error.
    pub(crate) errors: PathBuf,
}

impl Runner<'_> {
    /// Makes a run over `bytes` bytes, the size of the source if that is a file.
    ///
    /// # Errors
    /// When the contender fails, does not transfer all bytes, or, in a checked run, transfers
    /// different bytes.
    pub(crate) fn run(
        &self,
        route: Route,
        contender: &Contender,
        bytes: u64,
        checked: bool,
    ) -> Result<Run> {
        let target = self.volume.path().join("target");
        let _ = fs::remove_file(&target);
        self.volume.settle()?;
        let work = Work { route, bytes, source: &self.source, target: &target };
        let line = contender.line(self.tools, work);
        let (from, to) = (Channel::of_source(route.source)?, Channel::of_target(route.target)?);
        let (stdin, feeding) = from.map_or((None, None), |end| (Some(end.out), Some(end.into)));
        let (reading, stdout) = to.map_or((None, None), |end| (Some(end.out), Some(end.into)));
        let stdout = match (route.target, line.writes_stdout) {
            (Target::File, true) => OutputTarget::Made(&target),
            (Target::Null, true) => OutputTarget::Null,
            _ => stdout.map_or(OutputTarget::Null, OutputTarget::There),
        };
        let run = self.timed(&line, route, (stdin, stdout), (feeding, reading), bytes, checked);
        let run = run.and_then(|run| {
            if route.target == Target::File {
                self.check_file(route, &target, bytes, checked)?;
            }
            Ok(run)
        });
        let _ = fs::remove_file(&target);
        run
    }

    /// Makes a run of a program that does nothing, while the far ends are connected directly. Its
    /// time is the part of every contender's time that the contender does not cause.
    pub(crate) fn floor(&self, route: Route, bytes: u64) -> Result<Run> {
        let nothing = vec!["0".into()];
        let line = Line { program: load_program()?, arguments: nothing, ..Line::default() };
        let channel = match Channel::of_target(route.target)? {
            None => Channel::of_source(route.source)?,
            some => some,
        };
        if let Some(channel) = &channel {
            // As wide as a contender could have made it; the call fails on a connection.
            let _ = fcntl_setpipe_size(&channel.into, WIDE);
        }
        let ends = channel.map_or((None, None), |end| (Some(end.into), Some(end.out)));
        self.timed(&line, route, (None, OutputTarget::Null), ends, bytes, false)
    }

    /// Makes a run in which one command copies many small files: `names` of the directory `from`.
    pub(crate) fn many(&self, tool: Tool, from: &Path, names: &[String]) -> Result<Run> {
        let target = self.volume.path().join("copies");
        let _ = fs::remove_dir_all(&target);
        fs::create_dir(&target).context("cannot create the target folder")?;
        self.volume.settle()?;
        let mut line = Contender::plain(tool).line_of_many(self.tools, names, &target);
        line.folder = Some(from.to_owned());
        let route = Route::ALL[0];
        let run = self.timed(&line, route, (None, OutputTarget::Null), (None, None), 0, false)?;
        let copies = fs::read_dir(&target).context("cannot list the target folder")?.count();
        ensure!(copies == names.len(), "{copies} of {} files arrived", names.len());
        for name in [names.first(), names.last()].into_iter().flatten() {
            let pair = [from.join(name), target.join(name)].map(fs::read);
            let [Ok(source), Ok(copy)] = pair else { bail!("{name} cannot be read") };
            ensure!(source == copy, "{name} is not what it was");
        }
        Ok(run)
    }

    fn timed(
        &self,
        line: &Line,
        route: Route,
        (stdin, stdout): (Option<OwnedFd>, OutputTarget),
        (feeding, reading): (Option<OwnedFd>, Option<OwnedFd>),
        bytes: u64,
        checked: bool,
    ) -> Result<Run> {
        let errors = File::create(&self.errors).context("cannot create a temporary file")?;
        let mut command = Command::new(&line.program);
        command.args(&line.arguments).env("LC_ALL", "C").stderr(errors);
        if let Some(folder) = &line.folder {
            command.current_dir(folder);
        }
        command.stdin(stdin.map_or_else(Stdio::null, Stdio::from));
        let content = if checked { Some(self.content(route)?) } else { None };
        let reader = reading.map(|out| read_all(out, content));
        let is_pipe = match route.source {
            Source::File | Source::Zero => route.target == Target::Pipe,
            source => source == Source::Pipe,
        };
        let feeder = feeding.map(|into| feed(self.feed, bytes, into, is_pipe)).transpose()?;

        let cpu_before = cpu_ns()?;
        let start = Instant::now();
        command.stdout(match stdout {
            OutputTarget::Made(path) => {
                File::create_new(path).context("cannot create the target")?.into()
            }
            OutputTarget::There(end) => Stdio::from(end),
            OutputTarget::Null => Stdio::null(),
        });
        let child = command.spawn();
        // Only the contender holds its ends now, so they are closed when it ends.
        drop(command);
        let mut child = child.with_context(|| format!("cannot run {}", line.program.display()))?;
        let status = self.signals.wait(&mut child);
        let mut end = Instant::now();
        let seen = reader.map(|reader| reader.join().expect("readers do not panic"));
        let cpu_ns = cpu_ns()? - cpu_before;
        let fed = feeder.map(|feeder| feeder.join().expect("feeders do not panic"));
        let status = status?;
        if !status.success() {
            let said = fs::read(&self.errors).unwrap_or_default();
            let said = String::from_utf8_lossy(&said);
            let last = said.lines().rfind(|line| !line.is_empty()).unwrap_or("it said nothing");
            bail!("ended with {status}: {last}");
        }
        if let Some(seen) = seen.transpose()? {
            ensure!(seen.bytes == bytes, "{} of {bytes} bytes arrived", seen.bytes);
            end = end.max(seen.at);
        }
        fed.transpose().context("cannot feed")?;
        Ok(Run { wall_ns: end.duration_since(start).as_nanos() as f64, cpu_ns })
    }

    fn content(&self, route: Route) -> Result<Content> {
        let file = match route.source {
            Source::Zero => return Ok(Content::Zeros),
            Source::File => File::open(&self.source),
            Source::Pipe | Source::Socket => File::open(self.feed),
        };
        file.map(Content::File).context("cannot open the source")
    }

    fn check_file(&self, route: Route, target: &Path, bytes: u64, checked: bool) -> Result<()> {
        let mut file = File::open(target).context("cannot open the target")?;
        let size = file.metadata().context("cannot look at the target")?.size();
        ensure!(size == bytes, "the target has {size} of {bytes} bytes");
        if checked {
            compare(&mut file, &self.content(route)?)?;
        }
        Ok(())
    }

    /// Returns the first choice of iotomy's chooser on a route, and its reason.
    pub(crate) fn first_choice(&self, route: Route) -> Result<String> {
        let target = self.volume.path().join("target");
        let from: OwnedFd = match route.source {
            Source::File => File::open(&self.source).context("cannot open the source")?.into(),
            Source::Zero => File::open("/dev/zero").context("cannot open /dev/zero")?.into(),
            Source::Pipe => Channel::pipe()?.out,
            Source::Socket => Channel::socket()?.out,
        };
        let to: OwnedFd = match route.target {
            Target::File => File::create(&target).context("cannot create the target")?.into(),
            Target::Null => File::options()
                .write(true)
                .open("/dev/null")
                .context("cannot open /dev/null")?
                .into(),
            Target::Pipe => Channel::pipe()?.into,
            Target::Socket => Channel::socket()?.into,
        };
        let progress = AtomicU64::new(0);
        let reflink = if route.sharing == Sharing::Never { Reflink::Never } else { Reflink::Auto };
        let count = (route.source == Source::Zero).then_some(1 << 30);
        let job = Job { reflink, count, ..Job::new(&progress) };
        let (from, to) = (End::new(&from)?, End::new(&to)?);
        let plan = chooser::choose(&from, &to, &job);
        let _ = fs::remove_file(&target);
        Ok(plan.steps.first().map_or_else(|| "nothing".to_owned(), |step| format!("{step:?}")))
    }
}

/// Returns the user and system time of all children that have ended.
fn cpu_ns() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("cannot tell the children's time")?;
    Ok((usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 * 1e3)
}
