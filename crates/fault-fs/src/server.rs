//! The server: reads one request after the other and answers it at once.

use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use nix::mount::{MsFlags, mount};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{FileType, Mode, OFlags, open};
use rustix::io::Errno;

use crate::faults::{Fault, Faults, Operation};
use crate::files::{Files, ROOT};
use crate::wire::{Answer, Request, opcode};

/// The largest number of bytes in a write request.
const MOST: usize = 128 * 1024;

/// Mounts the file system and serves it until it is unmounted or the other end of the line is closed. The first answer
/// on the line is the result of mounting.
pub(crate) fn run(at: &Path, files: &[(&str, &[u8])], faults: &[Fault], mut line: UnixStream) {
    // A panic must not continue into the code of the test, because this process is a fork of it.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        let mounted = mounted(at);
        let errno = mounted.as_ref().err().map_or(0, |e| e.raw_os_error());
        let told = line.write_all(&u64::from(errno.unsigned_abs()).to_le_bytes());
        if let (Ok(device), Ok(())) = (mounted, told) {
            Server { files: Files::new(files), faults: Faults::new(faults) }.serve(&device, line);
        }
    }));
}

fn mounted(at: &Path) -> Result<OwnedFd, Errno> {
    let device = open("/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let (flags, folder) = (MsFlags::MS_NOSUID | MsFlags::MS_NODEV, 0o040_000);
    let options = format!(
        "fd={},rootmode={folder:o},user_id=0,group_id=0,default_permissions,allow_other",
        device.as_raw_fd()
    );
    mount(Some("faults"), at, Some("fuse"), flags, Some(options.as_str()))
        .map_err(|e| Errno::from_raw_os_error(e as i32))?;
    Ok(device)
}

struct Server<'a> {
    files: Files,
    faults: Faults<'a>,
}

impl Server<'_> {
    fn serve(&mut self, device: &OwnedFd, mut line: UnixStream) {
        let mut buffer = vec![0; MOST + 8192];
        loop {
            let mut ready = [
                PollFd::from_borrowed_fd(device.as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(line.as_fd(), PollFlags::IN),
            ];
            match poll(&mut ready, None) {
                Err(Errno::INTR) => continue,
                Err(_) => return,
                Ok(_) => {}
            }
            let [has_request, is_asked] = ready.map(|end| !end.revents().is_empty());
            if has_request {
                match rustix::io::read(device, &mut buffer[..]) {
                    Ok(length) => self.answer(device, &buffer[..length]),
                    // The request was withdrawn meanwhile.
                    Err(Errno::NOENT | Errno::INTR | Errno::AGAIN) => {}
                    Err(_) => return,
                }
            }
            if is_asked {
                let mut place = [0];
                if line.read_exact(&mut place).is_err() {
                    return;
                }
                let Some(times) = self.faults.times(place[0].into()) else { return };
                if line.write_all(&times.to_le_bytes()).is_err() {
                    return;
                }
            }
        }
    }

    fn answer(&mut self, device: &OwnedFd, bytes: &[u8]) {
        let Ok(mut request) = Request::parse(bytes) else { return };
        let unanswered = [opcode::FORGET, opcode::BATCH_FORGET, opcode::INTERRUPT];
        if unanswered.contains(&request.opcode) {
            return;
        }
        let unique = request.unique;
        let answer = self.carry_out(&mut request);
        // The requesting process may have been killed.
        let _ = rustix::io::write(device, &Answer::message(unique, answer));
    }

    fn carry_out(&mut self, request: &mut Request<'_>) -> Result<Answer, Errno> {
        let node = request.node;
        match request.opcode {
            opcode::INIT => init(request),
            opcode::LOOKUP => {
                let id = self.files.child(node, &request.name()?)?;
                Ok(self.entry(id))
            }
            opcode::GETATTR => Ok(self.attributes(node)),
            opcode::SETATTR => self.change(request),
            opcode::READLINK => Ok(Answer::default().bytes(&self.files.at(node).content)),
            opcode::OPEN => Ok(self.opened(node)),
            opcode::OPENDIR => Ok(opened(0)),
            opcode::READ => self.read(request),
            opcode::WRITE => self.write(request),
            opcode::STATFS => Ok(statfs()),
            opcode::RELEASE | opcode::RELEASEDIR => Ok(Answer::default()),
            opcode::FSYNC | opcode::FSYNCDIR => self.check(node, Operation::Fsync),
            opcode::FLUSH => self.check(node, Operation::Close),
            opcode::READDIR => self.list(request),
            opcode::FALLOCATE => self.give_room(request),
            opcode::LSEEK => self.seek(request),
            opcode::COPY_FILE_RANGE => self.copy_range(request),
            opcode::UNLINK | opcode::RMDIR => {
                self.files.remove(node, &request.name()?).map(|_| Answer::default())
            }
            opcode::RENAME | opcode::RENAME2 => self.rename(request),
            _ => self.make(request),
        }
    }

    /// Creates a file, a directory or a link.
    fn make(&mut self, request: &mut Request<'_>) -> Result<Answer, Errno> {
        let folder = request.node;
        let owner = (request.user, request.group);
        let mut target = String::new();
        let mode = match request.opcode {
            opcode::CREATE | opcode::TMPFILE => {
                request.skip(4)?;
                let mode = request.u32()?;
                request.skip(8)?;
                mode
            }
            opcode::MKNOD => {
                let mode = request.u32()?;
                request.skip(12)?;
                mode
            }
            opcode::MKDIR => {
                let mode = request.u32()?;
                request.skip(4)?;
                mode & 0o7777 | FileType::Directory.as_raw_mode()
            }
            opcode::SYMLINK => FileType::Symlink.as_raw_mode() | 0o777,
            opcode::LINK => {
                let id = request.u64()?;
                let name = request.name()?;
                self.faults.check(&name, |operation| operation == Operation::Make)?;
                if self.files.child(folder, &name).is_ok() {
                    return Err(Errno::EXIST);
                }
                self.files.enter(folder, &name, id);
                return Ok(self.entry(id));
            }
            _ => return Err(Errno::NOSYS),
        };
        let name = request.name()?;
        if request.opcode == opcode::SYMLINK {
            target = request.name()?;
        }
        if request.opcode == opcode::TMPFILE {
            self.faults.check("", |operation| operation == Operation::Make)?;
            let id = self.files.add("", mode, owner);
            return Ok(self.entry(id).append(&self.opened(id)));
        }
        self.faults.check(&name, |operation| operation == Operation::Make)?;
        if self.files.child(folder, &name).is_ok() {
            return Err(Errno::EXIST);
        }
        let id = self.files.add(&name, mode, owner);
        self.files.at(id).content = target.into_bytes();
        self.files.enter(folder, &name, id);
        let entry = self.entry(id);
        Ok(if request.opcode == opcode::CREATE { entry.append(&self.opened(id)) } else { entry })
    }

    fn rename(&mut self, request: &mut Request<'_>) -> Result<Answer, Errno> {
        let to = request.u64()?;
        if request.opcode == opcode::RENAME2 {
            if request.u32()? != 0 {
                return Err(Errno::INVAL);
            }
            request.skip(4)?;
        }
        let (old, new) = (request.name()?, request.name()?);
        self.faults.check(&new, |operation| operation == Operation::Rename)?;
        self.files.rename((request.node, &old), (to, &new))?;
        Ok(Answer::default())
    }

    fn change(&mut self, request: &mut Request<'_>) -> Result<Answer, Errno> {
        const MODE: u32 = 1;
        const USER: u32 = 2;
        const GROUP: u32 = 4;
        const SIZE: u32 = 8;
        const TIMES: [u32; 2] = [16, 32];
        let changes = request.u32()?;
        let has = |what| changes & what != 0;
        request.skip(12)?;
        let size = request.size()?;
        request.skip(8)?;
        let seconds = [request.u64()?, request.u64()?];
        request.skip(8)?;
        let nanoseconds = [request.u32()?, request.u32()?];
        request.skip(4)?;
        let mode = request.u32()?;
        request.skip(4)?;
        let (user, group) = (request.u32()?, request.u32()?);
        if has(SIZE) {
            self.check(request.node, Operation::Truncate)?;
        }
        let node = self.files.at(request.node);
        if has(SIZE) {
            node.content.resize(size, 0);
        }
        if has(MODE) {
            node.mode = node.mode & !0o7777 | mode & 0o7777;
        }
        if has(USER) {
            node.user = user;
        }
        if has(GROUP) {
            node.group = group;
        }
        for which in 0..2 {
            if has(TIMES[which]) {
                node.times[which] = (seconds[which], nanoseconds[which]);
            }
        }
        Ok(self.attributes(request.node))
    }

    fn read(&mut self, request: &mut Request<'_>) -> Result<Answer, Errno> {
        request.skip(8)?;
        let (at, length) = (request.size()?, request.u32()? as usize);
        let node = self.files.at(request.node);
        let bytes = node.read(at, length);
        let end = (at + bytes.len()) as u64;
        let reaches = |operation| matches!(operation, Operation::Read(from) if end > from);
        match self.faults.answer(&node.name, reaches) {
            Some(Some(errno)) => Err(errno),
            Some(None) => Ok(Answer::default()),
            None => Ok(Answer::default().bytes(bytes)),
        }
    }

    fn write(&mut self, request: &mut Request<'_>) -> Result<Answer, Errno> {
        request.skip(8)?;
        let (at, length) = (request.size()?, request.u32()?);
        request.skip(20)?;
        let bytes = request.bytes(length as usize)?;
        let node = self.files.at(request.node);
        let end = (at + bytes.len()) as u64;
        self.faults.check(&node.name, |operation| writes_to(operation, end))?;
        node.write(at, bytes);
        Ok(Answer::default().u32(length).u32(0))
    }

    fn give_room(&mut self, request: &mut Request<'_>) -> Result<Answer, Errno> {
        request.skip(8)?;
        let (at, length) = (request.size()?, request.size()?);
        if request.u32()? != 0 {
            return Err(Errno::OPNOTSUPP);
        }
        let node = self.files.at(request.node);
        let end = at.checked_add(length).ok_or(Errno::FBIG)?;
        self.faults.check(&node.name, |operation| writes_to(operation, end as u64))?;
        node.content.resize(node.content.len().max(end), 0);
        Ok(Answer::default())
    }

    /// Seeks in a file; no file has holes.
    fn seek(&mut self, request: &mut Request<'_>) -> Result<Answer, Errno> {
        const DATA: u32 = 3;
        self.check(request.node, Operation::Seek)?;
        request.skip(8)?;
        let (at, whence) = (request.u64()?, request.u32()?);
        let size = self.files.at(request.node).content.len() as u64;
        match (whence, at < size) {
            (_, false) => Err(Errno::NXIO),
            (DATA, true) => Ok(Answer::default().u64(at)),
            _ => Ok(Answer::default().u64(size)),
        }
    }

    fn copy_range(&mut self, request: &mut Request<'_>) -> Result<Answer, Errno> {
        if !self.faults.any(|operation| matches!(operation, Operation::CopyRange(_))) {
            return Err(Errno::NOSYS);
        }
        request.skip(8)?;
        let (from, to) = (request.size()?, request.u64()?);
        request.skip(8)?;
        let (at, length) = (request.size()?, request.size()?);
        let node = self.files.at(request.node);
        let mut bytes = node.read(from, length.min(MOST)).to_vec();
        let starts = from as u64;
        let is_behind = |operation| matches!(operation, Operation::CopyRange(at) if starts >= at);
        match self.faults.answer(&node.name, is_behind) {
            Some(Some(errno)) => return Err(errno),
            Some(None) => bytes.clear(),
            None => {}
        }
        self.files.at(to).write(at, &bytes);
        Ok(Answer::default().u32(u32::try_from(bytes.len()).unwrap_or(0)).u32(0))
    }

    fn list(&mut self, request: &mut Request<'_>) -> Result<Answer, Errno> {
        request.skip(8)?;
        let (from, room) = (request.size()?, request.u32()? as usize);
        let folder = request.node;
        let mut names = vec![(".".to_owned(), folder), ("..".to_owned(), ROOT)];
        names.extend(self.files.at(folder).entries.iter().map(|(name, id)| (name.clone(), *id)));
        let mut answer = Answer::default();
        for (at, (name, id)) in names.iter().enumerate().skip(from) {
            let length = u32::try_from(name.len()).map_err(|_| Errno::NAMETOOLONG)?;
            let entry = Answer::default().u64(*id).u64(at as u64 + 1).u32(length).u32(0);
            let entry = entry.bytes(name.as_bytes()).aligned();
            if answer.len() + entry.len() > room {
                break;
            }
            answer = answer.append(&entry);
        }
        Ok(answer)
    }

    /// Returns the error of a fault for the operation on this file, or an empty answer.
    fn check(&mut self, node: u64, operation: Operation) -> Result<Answer, Errno> {
        let name = &self.files.at(node).name;
        self.faults.check(name, |meant| meant == operation).map(|()| Answer::default())
    }

    fn entry(&mut self, id: u64) -> Answer {
        // The node number, and validity times of 0, so that the kernel caches nothing.
        Answer::default().u64(id).zeros(40).append(&self.claims(id))
    }

    fn attributes(&mut self, id: u64) -> Answer {
        Answer::default().zeros(16).append(&self.claims(id))
    }

    /// Returns the attributes, as the faults want them.
    fn claims(&mut self, id: u64) -> Answer {
        let name = &self.files.at(id).name;
        let size = self.faults.claim(name, |operation| match operation {
            Operation::Size(size) => Some(size),
            _ => None,
        });
        let blocks = self.faults.claim(name, |operation| match operation {
            Operation::Blocks(blocks) => Some(blocks),
            _ => None,
        });
        self.files.attributes(id, (size, blocks))
    }

    /// Answers the opening of a file.
    fn opened(&mut self, id: u64) -> Answer {
        const DIRECT_IO: u32 = 1;
        let name = &self.files.at(id).name;
        let is_uncached = self
            .faults
            .claim(name, |operation| (operation == Operation::Cache).then_some(()))
            .is_some();
        opened(if is_uncached { DIRECT_IO } else { 0 })
    }
}

fn writes_to(operation: Operation, end: u64) -> bool {
    matches!(operation, Operation::Write(from) if end > from)
}

/// Negotiates the protocol version and the features: writes of more than a page.
fn init(request: &mut Request<'_>) -> Result<Answer, Errno> {
    const BIG_WRITES: u32 = 1 << 5;
    const MINOR: u32 = 38;
    let (major, minor) = (request.u32()?, request.u32()?);
    if major != 7 || minor < 31 {
        return Err(Errno::PROTO);
    }
    let read_ahead = request.u32()?;
    let most = u32::try_from(MOST).expect("a few KiB");
    let answer = Answer::default().u32(7).u32(minor.min(MINOR)).u32(read_ahead).u32(BIG_WRITES);
    // The kernel chooses the number of pending requests. Timestamps have a resolution of a
    // nanosecond.
    Ok(answer.u32(0).u32(most).u32(1).zeros(64))
}

/// Answers the opening of a file or directory: no file handle, and no reuse of cached pages.
fn opened(flags: u32) -> Answer {
    Answer::default().u64(0).u32(flags).u32(0)
}

/// Reports enough free space.
fn statfs() -> Answer {
    let answer = [1 << 20, 1 << 19, 1 << 19, 1 << 20, 1 << 19].into_iter();
    let answer = answer.fold(Answer::default(), Answer::u64);
    answer.u32(4096).u32(255).u32(4096).zeros(80)
}
