//! The whole of a copy: where the target leads, and each source into it.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use iotomy_record::path_text;
use iotomy_record::store::Place;
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;

use crate::error::{Result, message, unsuited, unwritable};
use crate::fault::Stop;
use crate::names::{is_standard_input, is_standard_output};
use crate::same::lies_in;
use crate::session::CopySession;
use crate::target::TargetPlace;
use crate::transfer::{sync_folder, transfer};
use crate::{Account, CopyError, Detail, Options, Placement, Watcher};

/// Copies each source into the target if that is a directory. If it is a file or standard output (`-`), writes the
/// sources one behind the other into it; `-` as a source is standard input.
///
/// # Errors
/// What prevents any copy, found before anything was changed. Errors of single sources are told to the watcher, and are
/// in the account.
pub fn copy(
    options: &Options,
    sources: &[PathBuf],
    target: &Path,
    watcher: &mut dyn Watcher,
) -> Result<Account> {
    let begun = (options.detail >= Detail::Parts).then(Instant::now);
    let folder = folder(target);
    match &folder {
        Ok(_) if options.concat => {
            return unsuited(format!(
                "cannot write the sources into {}: it is a directory; name a file in it, or leave out \
                 --concat",
                path_text(target)
            ));
        }
        Ok(_) => {}
        Err(errno) => is_no_folder(options, sources, target, *errno)?,
    }
    let has_more = folder.is_ok() && sources.len() > 1;
    let mut session = CopySession::new(options, watcher, has_more);
    match folder {
        // The file is replaced in the directory that was found, whoever owns the links on the way.
        Ok(_) if options.placement == Placement::Atomic => match Place::folder(target) {
            Ok(folder) => fill_folder(&mut session, sources, target, &folder),
            Err(error) => session.failed(unwritable(&path_text(target), error)),
        },
        Ok(folder) => fill_folder(&mut session, sources, target, &folder),
        Err(errno) => {
            let is_there = errno == Errno::NOTDIR;
            let place = TargetPlace { folder: None, name: target, path: target, is_there };
            copy_into(&mut session, sources, place);
        }
    }
    let mut account = session.account;
    account.wall = begun.map_or(Duration::ZERO, |begun| begun.elapsed());
    Ok(account)
}

/// The target as a directory, or the reason why it is none.
fn folder(target: &Path) -> Result<OwnedFd, Errno> {
    if is_standard_output(target) {
        return Err(Errno::NOENT);
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    open(target, flags, Mode::empty())
}

/// Refuses a target that must be a directory and is none.
///
/// # Errors
/// It ends with a slash, or there are several sources that are not to be joined.
fn is_no_folder(options: &Options, sources: &[PathBuf], target: &Path, errno: Errno) -> Result<()> {
    let several = sources.len() > 1 && !options.concat && !is_standard_output(target);
    let has_slash = target.as_os_str().as_encoded_bytes().ends_with(b"/");
    if !several && !has_slash {
        return Ok(());
    }
    let (why, make) = match errno {
        Errno::NOENT => ("there is no such directory".to_owned(), "make it first"),
        Errno::NOTDIR => ("it is not a directory".to_owned(), "name one"),
        errno => (message(&errno.into()), "name a directory"),
    };
    let what = match sources {
        [source] => path_text(source),
        _ => format!("{} sources", sources.len()),
    };
    let hint = match several {
        true => "use --concat to write the sources one after another into a file",
        false => "leave out the slash to write a file",
    };
    unsuited(format!("cannot copy {what} into {}: {why}; {make}, or {hint}", path_text(target)))
}

/// Copies every source into a directory, under the last component of its name. A failure does
/// not prevent the other copies.
fn fill_folder(session: &mut CopySession<'_>, sources: &[PathBuf], path: &Path, folder: &OwnedFd) {
    let mut made: HashSet<&OsStr> = HashSet::new();
    for source in sources {
        let name = match source.file_name() {
            Some(name) if !is_standard_input(source) => name,
            _ => {
                let (source, path) = (path_text(source), path_text(path));
                session.failed(CopyError::Unsuited(format!(
                    "cannot copy {source} into {path}: it has no name of its own; name a file in it"
                )));
                continue;
            }
        };
        let to = path.join(name);
        if sources.len() > 1 && !made.insert(name) {
            let (source, to) = (path_text(source), path_text(&to));
            session.failed(CopyError::Unsuited(format!(
                "cannot copy {source} to {to}: another source was just copied there; copy it \
                 separately"
            )));
            continue;
        }
        let place = TargetPlace {
            folder: Some(folder.as_fd()),
            name: name.as_ref(),
            path: &to,
            is_there: lies_in(source, path),
        };
        copy_into(session, std::slice::from_ref(source), place);
    }
    if session.options.fsync
        && let Err(error) = sync_folder(session, folder.as_fd(), path)
    {
        session.failed(error);
    }
}

/// Copies sources into one file.
fn copy_into(session: &mut CopySession<'_>, sources: &[PathBuf], place: TargetPlace<'_>) {
    match transfer(session, sources, place) {
        // A reader that has seen enough.
        Ok(()) | Err(Stop::ReaderGone) => {}
        Err(Stop::Error(error)) => session.failed(error),
    }
}
