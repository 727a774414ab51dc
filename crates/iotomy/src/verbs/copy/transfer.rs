//! Sources put one behind the other into one target: the order of the steps.
//!
//! The invariant: foreseeable failures are found before the target is changed. So sources are
//! opened (or, when there are several, examined) before the target, the target before it is
//! emptied, and it is emptied when a mover is sure to serve.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use iotomy_movers::chooser::{self, Failed, Plan, Report};
use iotomy_movers::{End, Job, Kind, MOVERS, Moved};
use iotomy_record::store::mode_without_mask;
use rustix::fs::{
    Access, AtFlags, CWD, FileType, Mode, OFlags, Stat, accessat, fdatasync, fstat, fsync, openat,
    stat,
};
use rustix::io::Errno;
use rustix::stdio::stdin;

use super::fault::{SMALLER, Stop, all_refused, failed};
use super::messages::{is_folder, message, number, open_at_start, shown, unclosed, unreadable};
use super::options::{Choice, INPUT, is_standard};
use super::rehearsal::rehearse;
use super::same::refuse_pipe_to_itself;
use super::source::Source;
use super::target::{Target, TargetPlace, articled};
use super::verify::{Begin, can_be_read_again, ends_behind, refuse_pipes};
use super::{Session, account, explain, preserve};

/// Copies every source into the target.
pub(super) fn transfer(
    session: &mut Session<'_>,
    sources: &[PathBuf],
    place: TargetPlace<'_>,
) -> Result<(), Stop> {
    refuse_pipe_to_itself(sources, place)?;
    refuse_pipes(session.args, sources, place)?;
    let looked_at = look_at(sources)?;
    let (Some(path), rest) = (sources.first(), sources.get(1..).unwrap_or_default()) else {
        return Ok(());
    };
    let args = session.args;
    let first = Source::open(path, &mut session.systems)?;
    let alone = rest.is_empty();
    let mode = new_mode(&first, alone, args.preserve);
    let target = Target::open(place, mode, args, &mut session.systems)?;
    let filled = check(session, &first, &looked_at, &target)
        .map_err(Stop::Failed)
        .and_then(|()| fill(session, first, rest, &target));
    let written = match filled {
        Ok(written) => written,
        Err(stop) => {
            target.give_up();
            return Err(stop);
        }
    };
    let syncs = args.fsync && place.folder.is_none() && target.changes_its_folder();
    let folder = match syncs {
        true => target
            .folder()
            .with_context(|| format!("cannot sync the directory of {}", target.name))?,
        false => None,
    };
    target.settle(!args.preserve, written)?;
    if let Some(folder) = folder {
        let name = place.path.parent().filter(|p| !p.as_os_str().is_empty());
        session.sync_folder(folder.as_fd(), name.unwrap_or_else(|| ".".as_ref()))?;
    }
    Ok(())
}

/// A source that is not open yet.
struct PlannedSource {
    name: String,
    stat: Stat,
}

/// Looks at sources of which there are several: one that cannot be read is found before anything has
/// been written.
fn look_at(sources: &[PathBuf]) -> Result<Vec<PlannedSource>> {
    let mut all = Vec::new();
    if sources.len() < 2 {
        return Ok(all);
    }
    for path in sources {
        if is_standard(path, INPUT) {
            let name = "standard input".to_owned();
            open_at_start(stdin()).map_err(|e| unreadable(&name, &e))?;
            let stat = fstat(stdin()).map_err(|e| unreadable(&name, &e.into()))?;
            all.push(PlannedSource { name, stat });
            continue;
        }
        let name = shown(path);
        let stat = stat(path).map_err(|e| unreadable(&name, &e.into()))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => return Err(is_folder(&name)),
            // As opening it would say.
            FileType::Socket => return Err(unreadable(&name, &Errno::NXIO.into())),
            _ => {}
        }
        accessat(CWD, path, Access::READ_OK, AtFlags::EACCESS)
            .map_err(|e| unreadable(&name, &e.into()))?;
        all.push(PlannedSource { name, stat });
    }
    Ok(all)
}

/// The mode of a new file, before the umask: the source's, less the set-id bits, and of an access list what its own group
/// may. A file made of
/// several sources has the default mode, and a file that will get the source's owner is accessible
/// to nobody else until then.
fn new_mode(source: &Source, alone: bool, preserve: bool) -> Mode {
    let mode = match source.end().kind() {
        Kind::Regular if alone => mode_without_mask(source.fd(), source.stat.st_mode & 0o777),
        _ => 0o666,
    };
    Mode::from_raw_mode(if preserve { mode & 0o700 } else { mode })
}

/// Finds what can be known to fail.
fn check(
    session: &mut Session<'_>,
    first: &Source,
    looked_at: &[PlannedSource],
    target: &Target<'_>,
) -> Result<()> {
    let args = session.args;
    target.apart_from(first, args.skip, args.count)?;
    for source in looked_at.iter().skip(1) {
        target.apart_from_named(&source.name, &source.stat)?;
    }
    if args.verify {
        can_be_read_again(first, target)?;
    }
    let kind = target.end().kind();
    if args.fsync && !matches!(kind, Kind::Regular | Kind::Block) {
        let what = articled(kind.name());
        bail!(
            "cannot sync {}: it is {what}, which is not stored on disk; leave out --fsync",
            target.name
        );
    }
    if args.preserve {
        if looked_at.len() > 1 {
            bail!(
                "cannot preserve the attributes of several sources in one target; leave out \
                 --preserve"
            );
        }
        for (end, name) in [(first.end(), &first.name), (target.end(), &target.name)] {
            if end.kind() != Kind::Regular {
                let what = articled(end.kind().name());
                bail!("cannot preserve attributes: {name} is {what}; leave out --preserve");
            }
        }
    }
    session.expect(first, looked_at.iter().skip(1).map(|source| &source.stat));
    Ok(())
}

/// The bytes still to be skipped, and those still wanted.
struct RemainingBytes {
    skip: u64,
    count: Option<u64>,
}

/// Brings all that is wanted of the sources into the target, and sees to it that it stays; returns how many bytes
/// that was.
fn fill(
    session: &mut Session<'_>,
    first: Source,
    rest: &[PathBuf],
    target: &Target<'_>,
) -> Result<u64, Stop> {
    let args = session.args;
    let mut left = RemainingBytes { skip: args.skip, count: args.count };
    let (mut written, mut compared) = (0, 0);
    let mut source = first;
    let sources = rest.len() + 1;
    let mut rest = rest.iter();
    loop {
        left.skip -= source.skip(left.skip)?;
        if left.count != Some(0) && !target.is_spent(&source) {
            let begin = args.verify.then(|| Begin::now(&source, target)).transpose()?;
            let moved = carry(session, &source, target, (left.count, written, sources))?;
            if let Some(begin) = begin {
                let same = begin.compare(&source, target, (moved.bytes, left.count));
                compared += session.verified(same)?;
            }
            written += moved.bytes;
            left.count = left.count.map(|count| count.saturating_sub(moved.bytes));
        }
        match rest.next() {
            Some(path) => {
                let next = Source::open(path, &mut session.systems)?;
                close(std::mem::replace(&mut source, next), target, written, true)?;
            }
            None => break,
        }
    }
    target.begin()?;
    if args.verify {
        session.verified(ends_behind(target, compared))?;
    }
    if args.preserve {
        preserve::keep(&source, target)?;
    }
    if args.fsync {
        sync(session, target)?;
    }
    close(source, target, written, false)?;
    Ok(written)
}

/// Closes a source of which all was copied that is wanted; `written` bytes of the target are behind it, and there may
/// be `more` sources.
fn close(source: Source, target: &Target<'_>, written: u64, more: bool) -> Result<()> {
    source.close().map_err(|(name, e)| {
        let has_all = || format!("{} holds everything that was read", target.name);
        let is_partial = more || target.is_put_in_place_later();
        let state = target.state(written).filter(|_| is_partial).unwrap_or_else(has_all);
        unclosed(&name, &e, written, &state)
    })
}

fn sync(session: &mut Session<'_>, target: &Target<'_>) -> Result<()> {
    let begun = Instant::now();
    // Preserved attributes, and a new file's inode, are more than its data.
    let whole = session.args.preserve || target.changes_its_folder();
    let done = if whole { fsync(target.fd()) } else { fdatasync(target.fd()) };
    session.synced(begun.elapsed());
    done.map_err(|e: Errno| {
        let hint = "its data may be in memory only; see `dmesg`";
        anyhow!("cannot sync {}: {}; {hint}", target.name, message(&e.into()))
    })
}

impl Session<'_> {
    /// Syncs a directory in which a name was created or replaced; errors call it `name`.
    pub(super) fn sync_folder(&mut self, folder: BorrowedFd<'_>, name: &Path) -> Result<()> {
        let begun = Instant::now();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let done = openat(folder, c".", flags, Mode::empty()).and_then(fsync);
        self.synced(begun.elapsed());
        done.map_err(std::io::Error::from)
            .with_context(|| format!("cannot sync the directory {}", shown(name)))
    }
}

/// Copies one of this many sources to the target's position.
fn carry(
    session: &mut Session<'_>,
    source: &Source,
    target: &Target<'_>,
    (count, before, sources): (Option<u64>, u64, usize),
) -> Result<Moved, Stop> {
    let (from, to) = (source.end(), target.end());
    let shared = session.meter.shared();
    let mut plan = plan(session, source, target, &session.args.job(count, &shared.moved))?;
    let mut part = session.keeps().then(|| account::begin(session.args, source, target, &plan));
    if let Some(part) = part.as_ref().filter(|_| session.args.explain) {
        let written = explain::plan(&session.contract, part);
        session.explained(written);
    }
    if target.has_what_goes() {
        let job = session.args.job(count, &shared.moved);
        chooser::has_memory(&plan, &from, &to, &job)
            .map_err(|bytes| no_memory(source, target, bytes))?;
    }
    rehearse(session.args, source, target, &plan, sources)?;
    target.begin()?;
    session.meter.begin(&mut plan, || [from, to].iter().any(is_terminal));
    // Drawing may have begun, and counts in a place of its own.
    let shared = session.meter.shared();
    let job = session.args.job(count, &shared.moved);
    let begun = part.is_some().then(Instant::now);
    let outcome = chooser::run(&plan, &from, &to, &job);
    let took = begun.map(|begun| begun.elapsed());
    let (report, error) = match outcome {
        Ok(report) => (report, None),
        Err(Failed { error, refused }) => {
            (Report { mover: Some(error.mover), moved: error.moved, refused }, Some(error))
        }
    };
    if let (Some(part), Some(took)) = (&mut part, took) {
        account::settle(part, &report, took);
        part.error = error.as_ref().map(ToString::to_string);
    }
    session.carried(report.moved, part);
    if let Some(error) = error {
        return Err(failed(&error, source, target, before));
    }
    if report.mover.is_none() {
        return Err(Stop::Failed(all_refused(source, target, &report, before)));
    }
    Ok(report.moved)
}

fn is_terminal(end: &End<'_>) -> bool {
    end.kind() == Kind::Char && rustix::termios::isatty(end.fd())
}

/// The movers for this pair.
fn plan(
    session: &Session<'_>,
    source: &Source,
    target: &Target<'_>,
    job: &Job<'_>,
) -> Result<Plan> {
    let args = session.args;
    let (from, to) = (source.end(), target.end());
    let pair = || format!("cannot copy {} to {}", source.name, target.name);
    let Some(mover) = args.mover() else {
        if !args.explain && args.json.is_none() {
            let plan = chooser::choose_only(&from, &to, job);
            if !plan.steps.is_empty() {
                return Ok(plan);
            }
        }
        let plan = chooser::choose(&from, &to, job);
        if plan.steps.is_empty() {
            let why = plan.unsuited.first().map_or("no mover serves", |first| &first.reason);
            let hint = if args.reflink == Choice::Always { "; use --reflink auto" } else { "" };
            bail!("{}: {why}{hint}", pair());
        }
        return Ok(plan);
    };
    let name = mover.declaration().name;
    let only_shares = args.reflink == Choice::Always && name != "reflink";
    let refused = match chooser::only(mover, &from, &to, job) {
        Ok(_) if only_shares => "it copies, and extents must be shared".to_owned(),
        Ok(_) if mover.declaration().calls.is_empty() && target.replaces_something() => {
            "it moves nothing, and the target would lose its content".to_owned()
        }
        Ok(plan) => return Ok(plan),
        Err(reason) => reason,
    };
    let others: Vec<&str> = MOVERS
        .iter()
        .filter(|other| !other.declaration().calls.is_empty())
        .filter(|other| chooser::only(**other, &from, &to, job).is_ok())
        .map(|other| other.declaration().name)
        .filter(|other| *other != name && (args.reflink != Choice::Always || *other == "reflink"))
        .collect();
    let can = if others.is_empty() {
        "no other mover can".to_owned()
    } else {
        format!("these can: {}", others.join(", "))
    };
    bail!("{} by {name}: {refused}; {can}", pair())
}

/// No mover of the plan could have its buffers.
fn no_memory(source: &Source, target: &Target<'_>, bytes: u64) -> Stop {
    Stop::Failed(anyhow!(
        "cannot copy {} to {}: there is no memory for buffers of {} bytes; {SMALLER}",
        source.name,
        target.name,
        number(bytes)
    ))
}
