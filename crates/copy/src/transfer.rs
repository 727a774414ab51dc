//! Sources put one behind the other into one target: the order of the steps.
//!
//! The invariant: foreseeable failures are found before the target is changed. So sources are
//! opened (or, when there are several, examined) before the target, the target before it is
//! emptied, and it is emptied when a mover is sure to serve.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::time::Instant;

use iotomy_movers::Kind;
use iotomy_record::path_text;
use iotomy_record::store::mode_without_mask;
use rustix::fs::{
    Access, AtFlags, CWD, FileType, Mode, OFlags, Stat, accessat, fdatasync, fstat, fsync, openat,
    stat,
};
use rustix::io::Errno;
use rustix::stdio::stdin;

use crate::carry::carry;
use crate::error::{
    Result, is_folder, open_at_start, unclosed, unreadable, unsuited, unsynced_folder,
};
use crate::fault::Stop;
use crate::names::is_standard_input;
use crate::same::refuse_pipe_to_itself;
use crate::session::CopySession;
use crate::source::Source;
use crate::target::{Target, TargetPlace, articled};
use crate::verify::{Begin, can_be_read_again, ends_behind, refuse_pipes, settle};
use crate::{CopyError, Options, preserve};

/// Copies every source into the target.
pub(crate) fn transfer(
    session: &mut CopySession<'_>,
    sources: &[PathBuf],
    place: TargetPlace<'_>,
) -> Result<(), Stop> {
    refuse_pipe_to_itself(sources, place)?;
    refuse_pipes(session.options, sources, place)?;
    let looked_at = look_at(sources)?;
    let (Some(path), rest) = (sources.first(), sources.get(1..).unwrap_or_default()) else {
        return Ok(());
    };
    let options = session.options;
    let first = Source::open(path, &mut session.systems)?;
    let alone = rest.is_empty();
    let mode = new_mode(&first, alone, options.preserve);
    let target = Target::open(place, mode, options, &mut session.systems)?;
    let filled = check(session, &first, &looked_at, &target)
        .map_err(Stop::Error)
        .and_then(|()| fill(session, first, rest, &target));
    let written = match filled {
        Ok(written) => written,
        Err(stop) => {
            target.give_up();
            return Err(stop);
        }
    };
    let syncs = options.fsync && place.folder.is_none() && target.changes_its_folder();
    let folder = match syncs {
        true => target.folder().map_err(|e| unsynced_folder(&format!("of {}", target.name), e))?,
        false => None,
    };
    target.settle(!options.preserve, written)?;
    if let Some(folder) = folder {
        let name = place.path.parent().filter(|p| !p.as_os_str().is_empty());
        sync_folder(session, folder.as_fd(), name.unwrap_or_else(|| ".".as_ref()))?;
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
        if is_standard_input(path) {
            let name = "standard input".to_owned();
            open_at_start(stdin()).map_err(|e| unreadable(&name, e))?;
            let stat = fstat(stdin()).map_err(|e| unreadable(&name, e))?;
            all.push(PlannedSource { name, stat });
            continue;
        }
        let name = path_text(path);
        let stat = stat(path).map_err(|e| unreadable(&name, e))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => return is_folder(&name),
            // As opening it would say.
            FileType::Socket => return Err(unreadable(&name, Errno::NXIO)),
            _ => {}
        }
        accessat(CWD, path, Access::READ_OK, AtFlags::EACCESS).map_err(|e| unreadable(&name, e))?;
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
    session: &mut CopySession<'_>,
    first: &Source,
    looked_at: &[PlannedSource],
    target: &Target<'_>,
) -> Result<()> {
    let options = session.options;
    target.is_writable()?;
    target.apart_from(first, options.skip, options.job.count)?;
    for source in looked_at.iter().skip(1) {
        target.apart_from_named(&source.name, &source.stat)?;
    }
    if options.verify {
        can_be_read_again(first, target)?;
    }
    let kind = target.end().kind();
    if options.fsync && !matches!(kind, Kind::Regular | Kind::Block) {
        let what = articled(kind.name());
        return unsuited(format!(
            "cannot sync {}: it is {what}, which is not stored on disk; leave out --fsync",
            target.name
        ));
    }
    if options.preserve {
        if looked_at.len() > 1 {
            return unsuited(
                "cannot preserve the attributes of several sources in one target; leave out \
                 --preserve",
            );
        }
        for (end, name) in [(first.end(), &first.name), (target.end(), &target.name)] {
            if end.kind() != Kind::Regular {
                let what = articled(end.kind().name());
                return unsuited(format!(
                    "cannot preserve attributes: {name} is {what}; leave out --preserve"
                ));
            }
        }
    }
    let rest = looked_at.iter().skip(1).map(|source| &source.stat);
    session.progress.expect(expected(first, rest, options));
    Ok(())
}

/// The bytes that a target will get of `first` and the sources behind it, where that is known.
fn expected<'s>(
    first: &Source,
    rest: impl Iterator<Item = &'s Stat>,
    options: &Options,
) -> Option<u64> {
    let is_regular = |stat: &Stat| {
        FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_size > 0
    };
    let sizes = rest.map(|stat| u64::try_from(stat.st_size).ok().filter(|_| is_regular(stat)));
    let rest = { sizes }.try_fold(0, |sum: u64, size| sum.checked_add(size?));
    let there = first.left().and_then(|left| left.checked_add(rest?));
    let there = there.map(|there| there.saturating_sub(options.skip));
    match (there, options.job.count) {
        (Some(there), Some(count)) => Some(there.min(count)),
        (there, count) => there.or(count),
    }
}

/// The bytes still to be skipped, and those still wanted.
struct RemainingBytes {
    skip: u64,
    count: Option<u64>,
}

/// Brings all that is wanted of the sources into the target, and sees to it that it stays; returns how many bytes
/// that was.
fn fill(
    session: &mut CopySession<'_>,
    first: Source,
    rest: &[PathBuf],
    target: &Target<'_>,
) -> Result<u64, Stop> {
    let options = session.options;
    let mut left = RemainingBytes { skip: options.skip, count: options.job.count };
    let (mut written, mut compared) = (0, 0);
    let mut source = first;
    let sources = rest.len() + 1;
    let mut rest = rest.iter();
    loop {
        left.skip -= source.skip(left.skip)?;
        if left.count != Some(0) && !target.is_spent(&source) {
            let begin = options.verify.then(|| Begin::now(&source, target)).transpose()?;
            let moved = carry(session, &source, target, (left.count, written, sources))?;
            if let Some(begin) = begin {
                let same = settle(session, target)
                    .and_then(|()| begin.compare(&source, target, (moved.bytes, left.count)));
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
    if options.verify {
        session.verified(ends_behind(target, compared))?;
    }
    if options.preserve {
        preserve::keep(&source, target)?;
    }
    if options.fsync {
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
        unclosed(&name, e, written, &state)
    })
}

fn sync(session: &mut CopySession<'_>, target: &Target<'_>) -> Result<()> {
    let begun = Instant::now();
    // Preserved attributes, and a new file's inode, are more than its data.
    let whole = session.options.preserve || target.changes_its_folder();
    let done = if whole { fsync(target.fd()) } else { fdatasync(target.fd()) };
    session.synced(begun.elapsed());
    done.map_err(|e: Errno| {
        let hint = "; its data may be in memory only; see `dmesg`";
        CopyError::failed(format!("sync {}", target.name), e).with(hint)
    })
}

/// Syncs a directory in which a name was created or replaced; errors call it `name`.
pub(crate) fn sync_folder(
    session: &mut CopySession<'_>,
    folder: BorrowedFd<'_>,
    name: &Path,
) -> Result<()> {
    let begun = Instant::now();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let done = openat(folder, c".", flags, Mode::empty()).and_then(fsync);
    session.synced(begun.elapsed());
    done.map_err(|e| unsynced_folder(&path_text(name), e.into()))
}
