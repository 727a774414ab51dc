//! `iotomy copy`: moves bytes by the fastest mover for a pair of descriptors.
//!
//! This module owns the command line, the messages and the results; the choice of the mover and the
//! work are in [`iotomy_movers`]. A small copy makes no call that it could do without: no thread,
//! no probe, no clock but the monotonic one.
//!
//! The flow:
//!
//! 1. A FIFO that is source and target is refused. Sources are opened (several are looked at first), then the
//!    target, which is not changed yet. The same file at both ends, and options that do not fit the ends, are refused.
//! 2. The chooser makes a plan. A mover that the kernel may refuse as a whole is tried on a file beside the target. A
//!    regular target is emptied, and the plan is carried out.
//! 3. The target is read back, given the source's attributes and synced, as requested. Both ends are closed, as write
//!    errors may appear only then, and the target is put in place.

mod account;
mod explain;
mod fault;
mod list;
mod messages;
mod options;
mod preserve;
mod progress;
mod rehearsal;
mod same;
pub(super) mod sizes;
mod source;
mod target;
mod transfer;
mod verify;

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use anyhow::{Result, anyhow, bail};
use iotomy_host::{machine, rfc3339};
use iotomy_movers::Moved;
use iotomy_record::store::{OutputFile, Place, RecordRef, StoreError, same_output};
use iotomy_record::{CopyPart, CopyRun};
use rustix::fs::{FileType, Mode, OFlags, Stat, open};
use rustix::io::Errno;

use self::account::nanoseconds;
use self::fault::Stop;
use self::messages::{shown, unwritable};
pub(crate) use self::options::{CopyArgs, MANUAL};
use self::options::{INPUT, OUTPUT, is_standard};
use self::progress::Meter;
use self::same::lies_in;
use self::source::{FileSystems, Source};
use self::target::TargetPlace;
use super::{judging, outputs};
use crate::errors::{COULD_NOT_RUN, one_line, print_error};

/// A check of the result failed.
const CHECK_FAILED: u8 = 1;

/// A run in progress, and its results so far.
struct Session<'a> {
    args: &'a CopyArgs,
    systems: FileSystems,
    meter: Meter,
    /// Whether there are several targets, whose sizes are not all known in advance.
    is_folder: bool,
    moved: Moved,
    fsync: Duration,
    /// Whether all that was read back was right; nothing was when it is `None`.
    verified: Option<bool>,
    status: u8,
    /// The printed errors.
    messages: Vec<String>,
    /// For records and explanations only.
    contract: String,
    parts: Vec<CopyPart>,
    /// Why not all of the explanation was written.
    unexplained: Option<StoreError>,
}

/// Copies.
///
/// # Errors
/// The error that prevents any copy; errors of single sources are printed and counted.
pub(crate) fn run(args: &CopyArgs) -> Result<ExitCode> {
    if args.list {
        list::print()?;
        return Ok(ExitCode::SUCCESS);
    }
    let (sources, target) = args.ends()?;
    let json = args.json.as_ref().map(|json| spares(json, sources, target)).transpose()?;
    let started = makes_record(args).then(SystemTime::now);
    let mut session = Session::new(args);
    if session.keeps() {
        session.contract = account::contract(args);
    }
    match folder(target) {
        Ok(_) if args.concat => bail!(
            "cannot write the sources into {}: it is a directory; name a file in it, or leave out \
             --concat",
            shown(target)
        ),
        // The file is replaced in the directory that was found, whoever owns the links on the way.
        Ok(_) if args.atomic => match Place::folder(target) {
            Ok(folder) => session.fill_folder(sources, target, &folder),
            Err(error) => session.print_error(&unwritable(&shown(target), &error)),
        },
        Ok(folder) => session.fill_folder(sources, target, &folder),
        Err(errno) => {
            is_no_folder(args, sources, target, errno)?;
            let is_there = errno == Errno::NOTDIR;
            let place = TargetPlace { folder: None, name: target, path: target, is_there };
            session.copy_into(sources, place);
        }
    }
    session.meter.end();
    if let Some(started) = started {
        let mut record = session.record(started, sources, target);
        account::note_dirty(&mut record.copies);
        record.findings = judging::findings(true, |limits| iotomy_judge::copy(&record, limits));
        if args.explain {
            session.explained(explain::end(&record));
        }
        let saved = json.map_or(Ok(()), |json| RecordRef::Copy(&record).save(json));
        let is_kept = args.save.keep_if_wanted(RecordRef::Copy(&record), false);
        let explained = session.unexplained.take().map_or(Ok(()), Err);
        outputs::all([explained, saved].map(|one| one.map_err(Into::into)))?;
        session.status = session.status.max(if is_kept { 0 } else { COULD_NOT_RUN });
    }
    Ok(ExitCode::from(session.status))
}

/// Whether the traffic has to be recorded. The setting that keeps all runs is not read here:
/// reading it takes a small copy too long, so it applies only to runs that make a record anyway.
fn makes_record(args: &CopyArgs) -> bool {
    args.json.is_some() || args.explain || args.save.is_given()
}

/// The target as a directory, or the reason why it is none.
fn folder(target: &Path) -> Result<OwnedFd, Errno> {
    if is_standard(target, OUTPUT) {
        return Err(Errno::NOENT);
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    open(target, flags, Mode::empty())
}

/// Refuses a target that must be a directory and is none.
///
/// # Errors
/// It ends with a slash, or there are several sources that are not to be joined.
fn is_no_folder(args: &CopyArgs, sources: &[PathBuf], target: &Path, errno: Errno) -> Result<()> {
    let several = sources.len() > 1 && !args.concat && !is_standard(target, OUTPUT);
    let has_slash = target.as_os_str().as_encoded_bytes().ends_with(b"/");
    if !several && !has_slash {
        return Ok(());
    }
    let (why, make) = match errno {
        Errno::NOENT => ("there is no such directory".to_owned(), "make it first"),
        Errno::NOTDIR => ("it is not a directory".to_owned(), "name one"),
        errno => (messages::message(&errno.into()), "name a directory"),
    };
    let what = match sources {
        [source] => shown(source),
        _ => format!("{} sources", sources.len()),
    };
    let hint = match several {
        true => "use --concat to write the sources one after another into a file",
        false => "leave out the slash to write a file",
    };
    bail!("cannot copy {what} into {}: {why}; {make}, or {hint}", shown(target))
}

/// Refuses a record that would overwrite a source or the target, or cannot be written; otherwise
/// returns its place.
fn spares(json: &Path, sources: &[PathBuf], target: &Path) -> Result<OutputFile> {
    let here = outputs::here();
    let is_taken = |path: &Path| same_output(json, path, &here);
    let mut named = vec![target.to_path_buf()];
    for source in sources.iter().filter(|source| !is_standard(source, INPUT)) {
        named.push(source.clone());
        named.extend(source.file_name().map(|name| target.join(name)));
    }
    let clash = named.into_iter().find(|path| is_taken(path));
    match clash {
        Some(path) => {
            let (json, path) = (shown(json), shown(&path));
            bail!("--json {json} would be written over {path}; give the record another file")
        }
        None => outputs::open_one("--json", json, &here),
    }
}

impl<'a> Session<'a> {
    fn new(args: &'a CopyArgs) -> Self {
        Self {
            args,
            systems: FileSystems::default(),
            meter: Meter::new(args.progress, makes_record(args)),
            is_folder: false,
            moved: Moved::default(),
            fsync: Duration::ZERO,
            verified: None,
            status: 0,
            messages: Vec::new(),
            contract: String::new(),
            parts: Vec::new(),
            unexplained: None,
        }
    }

    /// Notes whether a part of the explanation was written: it costs the status, and no copy.
    fn explained(&mut self, written: Result<(), StoreError>) {
        self.unexplained = self.unexplained.take().or(written.err());
    }

    /// As [`makes_record`].
    fn keeps(&self) -> bool {
        makes_record(self.args)
    }

    /// Copies every source into a directory, under the last component of its name. A failure does
    /// not prevent the other copies.
    fn fill_folder(&mut self, sources: &[PathBuf], path: &Path, folder: &OwnedFd) {
        self.is_folder = sources.len() > 1;
        let mut made: HashSet<&OsStr> = HashSet::new();
        for source in sources {
            let name = match source.file_name() {
                Some(name) if !is_standard(source, INPUT) => name,
                _ => {
                    let (source, path) = (shown(source), shown(path));
                    self.print_error(&anyhow!(
                        "cannot copy {source} into {path}: it has no name of its own; name a file in it"
                    ));
                    continue;
                }
            };
            let to = path.join(name);
            if sources.len() > 1 && !made.insert(name) {
                let (source, to) = (shown(source), shown(&to));
                self.print_error(&anyhow!(
                    "cannot copy {source} to {to}: another source was just copied there; copy it \
                     separately"
                ));
                continue;
            }
            let place = TargetPlace {
                folder: Some(folder.as_fd()),
                name: name.as_ref(),
                path: &to,
                is_there: lies_in(source, path),
            };
            self.copy_into(std::slice::from_ref(source), place);
        }
        if self.args.fsync {
            let synced = self.sync_folder(folder.as_fd(), path);
            self.settle(synced.map_err(Stop::Failed));
        }
    }

    /// Copies sources into one file, and prints errors.
    fn copy_into(&mut self, sources: &[PathBuf], place: TargetPlace<'_>) {
        let done = transfer::transfer(self, sources, place);
        self.settle(done);
    }

    fn settle(&mut self, done: Result<(), Stop>) {
        match done {
            // A reader that has seen enough.
            Ok(()) | Err(Stop::ReaderGone) => {}
            Err(Stop::Failed(error)) => self.print_error(&error),
            Err(Stop::Differs(error)) => {
                self.say_with(&error, CHECK_FAILED);
            }
        }
    }

    fn print_error(&mut self, error: &anyhow::Error) {
        self.say_with(error, COULD_NOT_RUN);
    }

    fn say_with(&mut self, error: &anyhow::Error, status: u8) {
        self.meter.clear();
        print_error(error);
        self.status = self.status.max(status);
        self.messages.push(one_line(error));
        if let Some(part) = self.parts.last_mut().filter(|part| part.mover.is_none()) {
            part.error.get_or_insert_with(|| format!("{error:#}"));
        }
    }

    /// The total for the progress meter, with the sources that come after `first`.
    fn expect<'s>(&mut self, first: &Source, rest: impl Iterator<Item = &'s Stat>) {
        let is_regular = |stat: &Stat| {
            FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_size > 0
        };
        let sizes = rest.map(|stat| u64::try_from(stat.st_size).ok().filter(|_| is_regular(stat)));
        let rest = { sizes }.try_fold(0, |sum: u64, size| sum.checked_add(size?));
        let there = first.left().and_then(|left| left.checked_add(rest?));
        let there = there.map(|there| there.saturating_sub(self.args.skip));
        let wanted = match (there, self.args.count) {
            (Some(there), Some(count)) => Some(there.min(count)),
            (there, count) => there.or(count),
        };
        self.meter.expect(wanted, self.is_folder);
    }

    /// The result of comparing a part.
    fn verified<T>(&mut self, outcome: Result<T, Stop>) -> Result<T, Stop> {
        self.verified = Some(self.verified.unwrap_or(true) && outcome.is_ok());
        outcome
    }

    fn synced(&mut self, took: Duration) {
        self.fsync += took;
    }

    /// A source has been carried, a mover has failed, or every mover was refused.
    fn carried(&mut self, moved: Moved, part: Option<CopyPart>) {
        self.moved = self.moved + moved;
        if let Some(part) = part {
            if self.args.explain {
                self.explained(explain::outcome(&part));
            }
            self.parts.push(part);
        }
    }

    fn record(&mut self, started: SystemTime, sources: &[PathBuf], target: &Path) -> CopyRun {
        let parts = std::mem::take(&mut self.parts);
        let mover = parts.first().and_then(|part| part.mover.clone());
        CopyRun {
            schema: CopyRun::SCHEMA.to_owned(),
            started: rfc3339(started),
            machine: machine(),
            sources: sources.iter().map(|path| shown(path)).collect(),
            target: shown(target),
            mover: mover.filter(|_| parts.iter().all(|part| part.mover == parts[0].mover)),
            bytes: self.moved.bytes,
            referenced_bytes: self.moved.traffic.referenced,
            copied_bytes: self.moved.traffic.copied,
            touched_bytes: self.moved.traffic.touched,
            wall_ns: nanoseconds(self.meter.elapsed()),
            fsync_ns: self.args.fsync.then(|| nanoseconds(self.fsync)),
            verified: self.verified,
            errors: self.messages.len() as u64,
            messages: std::mem::take(&mut self.messages),
            contract: std::mem::take(&mut self.contract),
            copies: parts,
            findings: Vec::new(),
        }
    }
}
