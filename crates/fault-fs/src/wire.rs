//! The FUSE protocol's messages as bytes, in the field order of `<linux/fuse.h>`.

use rustix::io::Errno;

/// Operation codes, as in `<linux/fuse.h>`.
pub(crate) mod opcode {
    pub(crate) const LOOKUP: u32 = 1;
    pub(crate) const FORGET: u32 = 2;
    pub(crate) const GETATTR: u32 = 3;
    pub(crate) const SETATTR: u32 = 4;
    pub(crate) const READLINK: u32 = 5;
    pub(crate) const SYMLINK: u32 = 6;
    pub(crate) const MKNOD: u32 = 8;
    pub(crate) const MKDIR: u32 = 9;
    pub(crate) const UNLINK: u32 = 10;
    pub(crate) const RMDIR: u32 = 11;
    pub(crate) const RENAME: u32 = 12;
    pub(crate) const LINK: u32 = 13;
    pub(crate) const OPEN: u32 = 14;
    pub(crate) const READ: u32 = 15;
    pub(crate) const WRITE: u32 = 16;
    pub(crate) const STATFS: u32 = 17;
    pub(crate) const RELEASE: u32 = 18;
    pub(crate) const FSYNC: u32 = 20;
    pub(crate) const FLUSH: u32 = 25;
    pub(crate) const INIT: u32 = 26;
    pub(crate) const OPENDIR: u32 = 27;
    pub(crate) const READDIR: u32 = 28;
    pub(crate) const RELEASEDIR: u32 = 29;
    pub(crate) const FSYNCDIR: u32 = 30;
    pub(crate) const CREATE: u32 = 35;
    pub(crate) const INTERRUPT: u32 = 36;
    pub(crate) const BATCH_FORGET: u32 = 42;
    pub(crate) const FALLOCATE: u32 = 43;
    pub(crate) const RENAME2: u32 = 45;
    pub(crate) const LSEEK: u32 = 46;
    pub(crate) const COPY_FILE_RANGE: u32 = 47;
    pub(crate) const TMPFILE: u32 = 51;
}

/// A request, whose fields are read one after the other.
pub(crate) struct Request<'a> {
    pub(crate) opcode: u32,
    pub(crate) unique: u64,
    pub(crate) node: u64,
    pub(crate) user: u32,
    pub(crate) group: u32,
    rest: &'a [u8],
}

/// The error for a request that is too short for its kind, or that contains an invalid name.
pub(crate) const BROKEN: Errno = Errno::PROTO;

impl<'a> Request<'a> {
    /// Parses a request's header.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, Errno> {
        let mut it = Self { opcode: 0, unique: 0, node: 0, user: 0, group: 0, rest: bytes };
        it.skip(4)?;
        it.opcode = it.u32()?;
        it.unique = it.u64()?;
        it.node = it.u64()?;
        it.user = it.u32()?;
        it.group = it.u32()?;
        // The caller's process id, and lengths of extensions that were not requested.
        it.skip(8)?;
        Ok(it)
    }

    pub(crate) fn bytes(&mut self, length: usize) -> Result<&'a [u8], Errno> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(BROKEN)?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn skip(&mut self, length: usize) -> Result<(), Errno> {
        self.bytes(length).map(drop)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Errno> {
        self.bytes(4)?.try_into().map(u32::from_le_bytes).map_err(|_| BROKEN)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Errno> {
        self.bytes(8)?.try_into().map(u64::from_le_bytes).map_err(|_| BROKEN)
    }

    /// Reads a length or an offset that refers to memory.
    pub(crate) fn size(&mut self) -> Result<usize, Errno> {
        usize::try_from(self.u64()?).map_err(|_| Errno::FBIG)
    }

    /// Reads a name, which ends with a zero byte.
    pub(crate) fn name(&mut self) -> Result<String, Errno> {
        let length = self.rest.iter().position(|byte| *byte == 0).ok_or(BROKEN)?;
        let name = self.bytes(length)?.to_vec();
        self.skip(1)?;
        String::from_utf8(name).map_err(|_| Errno::ILSEQ)
    }
}

/// An answer, to which fields are appended one after the other.
#[derive(Debug, Default)]
pub(crate) struct Answer(Vec<u8>);

impl Answer {
    pub(crate) fn u32(mut self, value: u32) -> Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(crate) fn u64(mut self, value: u64) -> Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(crate) fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Appends zeros up to this length.
    pub(crate) fn zeros(mut self, length: usize) -> Self {
        self.0.resize(length, 0);
        self
    }

    pub(crate) fn aligned(self) -> Self {
        let length = self.len().next_multiple_of(8);
        self.zeros(length)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn append(mut self, other: &Self) -> Self {
        self.0.extend_from_slice(&other.0);
        self
    }

    /// Returns the message that answers the request.
    pub(crate) fn message(unique: u64, answer: Result<Self, Errno>) -> Vec<u8> {
        let (error, body) = match answer {
            Ok(body) => (0, body.0),
            Err(errno) => (-errno.raw_os_error(), Vec::new()),
        };
        let length = u32::try_from(16 + body.len()).expect("an answer is small");
        let head = Self::default().u32(length).bytes(&error.to_le_bytes()).u64(unique);
        head.bytes(&body).0
    }
}
