//! The structs of `trace.h`, read field by field: no cast, no alignment to get wrong. The sizes are
//! asserted against the loaded object's maps by `object.rs`.

use iotomy_host::title;
use iotomy_record::lossless;

use crate::naming::{basename, called};
use crate::sockets::SocketName;
use crate::title::Known;

/// Slots of a distribution: zeroes, then one for each power of two. As in `trace.h`.
pub(super) const SLOTS: usize = 65;
/// Buckets of times, and of those of short calls that never left their CPU. As in `trace.h`.
pub(super) const TIMES: usize = 576;
pub(super) const PLAIN_TIMES: usize = 232;
/// Numbers of the counters that overflow: the first of each array. As in `trace.h`.
pub(super) const CARRY_STEP: u16 = 1024;
pub(super) const CALL_I386: u16 = 0x8000;
pub(super) const CALL_NUMBER: u16 = 0x3fff;
pub(super) const SECOND_PATH: u16 = 0x4000;

/// Takes integers in the order they stand.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    pub(super) fn bytes(&mut self, n: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        taken
    }

    pub(super) fn u64(&mut self) -> u64 {
        self.bytes(8).try_into().map_or(0, u64::from_ne_bytes)
    }

    pub(super) fn u32(&mut self) -> u32 {
        self.bytes(4).try_into().map_or(0, u32::from_ne_bytes)
    }

    pub(super) fn u16(&mut self) -> u16 {
        self.bytes(2).try_into().map_or(0, u16::from_ne_bytes)
    }
}

/// A struct of `trace.h`.
pub(super) trait Wire {
    /// Its size in bytes.
    const SIZE: usize;

    /// Reads it.
    fn read(from: &mut Fields<'_>) -> Self;
}

impl Wire for u32 {
    const SIZE: usize = 4;

    fn read(from: &mut Fields<'_>) -> Self {
        from.u32()
    }
}

/// A row that is one number.
pub(super) struct Count(pub(super) u64);

impl Wire for Count {
    const SIZE: usize = 8;

    fn read(from: &mut Fields<'_>) -> Self {
        Self(from.u64())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct CallKey {
    pub(super) thread: u32,
    pub(super) call: u16,
    pub(super) error: u16,
}

impl Wire for CallKey {
    const SIZE: usize = 8;

    fn read(from: &mut Fields<'_>) -> Self {
        Self { thread: from.u32(), call: from.u16(), error: from.u16() }
    }
}

/// Counts of the buckets that are not empty.
pub(super) type Sparse = Vec<(u16, u64)>;

/// Counters of one, two or four bytes each.
pub(super) fn sparse(from: &mut Fields<'_>, length: usize, width: usize) -> Sparse {
    let counters = from.bytes(length * width).chunks_exact(width);
    let counts = counters.map(|bytes| match *bytes {
        [one] => one.into(),
        [low, high] => u16::from_ne_bytes([low, high]).into(),
        [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]).into(),
        _ => 0u64,
    });
    (0..).zip(counts).filter(|(_, count)| *count > 0).collect()
}

pub(super) struct ErrorCount {
    pub(super) count: u64,
    pub(super) image: u32,
}

impl Wire for ErrorCount {
    const SIZE: usize = 16;

    fn read(from: &mut Fields<'_>) -> Self {
        Self { count: from.u64(), image: from.u32() }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Image {
    pub(super) pid: u32,
    pub(super) ppid: u32,
    pub(super) origin: u32,
    pub(super) threads: u32,
    pub(super) live: u32,
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    pub(super) thread_ns: u64,
    pub(super) user_ns: u64,
    pub(super) calls_on_cpu_ns: u64,
    pub(super) blocked_ns: u64,
    pub(super) runnable_ns: u64,
    pub(super) utime_ns: u64,
    pub(super) stime_ns: u64,
    pub(super) runtime_ns: u64,
    pub(super) minor_faults: u64,
    pub(super) major_faults: u64,
    pub(super) voluntary_switches: u64,
    pub(super) involuntary_switches: u64,
    pub(super) max_rss_pages: u64,
    pub(super) storage_read_bytes: u64,
    pub(super) fault_ns: u64,
    pub(super) stopped_ns: u64,
    pub(super) calls_left_out: u64,
    pub(super) calls_passed: u64,
}

impl Wire for Image {
    const SIZE: usize = 24 + 20 * 8;

    fn read(from: &mut Fields<'_>) -> Self {
        let mut small = || from.u32();
        let (pid, ppid, origin, threads, live) = (small(), small(), small(), small(), small());
        let _pad = small();
        Self {
            pid,
            ppid,
            origin,
            threads,
            live,
            start_ns: from.u64(),
            end_ns: from.u64(),
            thread_ns: from.u64(),
            user_ns: from.u64(),
            calls_on_cpu_ns: from.u64(),
            blocked_ns: from.u64(),
            runnable_ns: from.u64(),
            utime_ns: from.u64(),
            stime_ns: from.u64(),
            runtime_ns: from.u64(),
            minor_faults: from.u64(),
            major_faults: from.u64(),
            voluntary_switches: from.u64(),
            involuntary_switches: from.u64(),
            max_rss_pages: from.u64(),
            storage_read_bytes: from.u64(),
            fault_ns: from.u64(),
            stopped_ns: from.u64(),
            calls_left_out: from.u64(),
            calls_passed: from.u64(),
        }
    }
}

/// One thread in one image.
pub(super) struct ThreadRow {
    pub(super) image: u32,
    pub(super) tid: u32,
    pub(super) comm: String,
    pub(super) has_ended: bool,
    pub(super) is_first: bool,
    pub(super) thread_ns: u64,
    pub(super) user_ns: u64,
    pub(super) calls_on_cpu_ns: u64,
    pub(super) blocked_ns: u64,
    pub(super) runnable_ns: u64,
    pub(super) voluntary_switches: u64,
    pub(super) involuntary_switches: u64,
}

impl Wire for ThreadRow {
    const SIZE: usize = 16 + COMM_LEN + 7 * 8;

    fn read(from: &mut Fields<'_>) -> Self {
        let (image, tid) = (from.u32(), from.u32());
        let comm = text(from.bytes(COMM_LEN));
        let [has_ended, is_first] = [from.u32() != 0, from.u32() != 0];
        Self {
            image,
            tid,
            comm,
            has_ended,
            is_first,
            thread_ns: from.u64(),
            user_ns: from.u64(),
            calls_on_cpu_ns: from.u64(),
            blocked_ns: from.u64(),
            runnable_ns: from.u64(),
            voluntary_switches: from.u64(),
            involuntary_switches: from.u64(),
        }
    }
}

/// An image that ran before it was watched.
pub(super) struct Attached {
    pub(super) pid: u32,
    /// The kernel's name of its process then.
    pub(super) comm: String,
}

pub(super) const COMM_LEN: usize = 16;

impl Wire for Attached {
    const SIZE: usize = 8 + COMM_LEN;

    fn read(from: &mut Fields<'_>) -> Self {
        let pid = from.u32();
        let _pad = from.u32();
        Self { pid, comm: text(from.bytes(COMM_LEN)) }
    }
}

/// The program of an image: its file, its names, and its arguments. The names other than `exec` are
/// empty where they equal it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) exec: String,
    pub(super) called: String,
    pub(super) binary: String,
    pub(super) argv: Vec<String>,
    /// The number of arguments where `argv` has only the first of them; 0 where it has all.
    pub(super) argv_words: u32,
    /// The title that it had when the watch began.
    pub(super) title: String,
}

pub(super) const EXEC_LEN: usize = 128;
const ARGV_LEN: usize = 1024;

impl Wire for Program {
    const SIZE: usize = 8 + 2 * EXEC_LEN + ARGV_LEN;

    fn read(from: &mut Fields<'_>) -> Self {
        let argv_bytes = from.u32() as usize;
        let words = from.u32();
        let exec = text(from.bytes(EXEC_LEN));
        let binary = text(from.bytes(EXEC_LEN));
        let argv = from.bytes(ARGV_LEN);
        let kept = argv.get(..argv_bytes).unwrap_or(argv);
        let kept = kept.strip_suffix(b"\0").unwrap_or(kept);
        let mut argv: Vec<String> = kept.split(|b| *b == 0).map(lossless).collect();
        if argv_bytes > ARGV_LEN {
            argv.push(String::from("…"));
        }
        if argv_bytes == 0 {
            argv.clear();
        }
        let exec = basename(&exec).to_owned();
        // A link or a script is called by its own name; a file executed by its own may be of many programs.
        let called = match binary == exec {
            true => called(&exec, None, &argv),
            false => String::new(),
        };
        let binary = if binary == exec { String::new() } else { binary };
        let argv_words = if argv_bytes > ARGV_LEN { words } else { 0 };
        Self { exec, called, binary, argv, argv_words, title: String::new() }
    }
}

impl Program {
    /// What titles are told by.
    pub(super) fn known(&self) -> Known<'_> {
        let names = [&*self.exec, &self.called, &self.binary];
        Known { names, argv: &self.argv, title: &self.title }
    }
}

/// The first argument of a process when it ended.
pub(super) struct FirstArgument(pub(super) Vec<u8>);

impl Wire for FirstArgument {
    const SIZE: usize = title::LONGEST + 1;

    fn read(from: &mut Fields<'_>) -> Self {
        let mut text = from.bytes(Self::SIZE).to_vec();
        text.truncate(text.iter().position(|byte| *byte == 0).unwrap_or(title::LONGEST));
        Self(text)
    }
}

pub(super) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    lossless(&bytes[..end])
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FileKey {
    pub(super) dentry: u64,
    pub(super) inode: u64,
    pub(super) device: u32,
    pub(super) thread: u32,
}

impl FileKey {
    /// As the kernel has the key of `file_names`: of no thread.
    pub(super) fn wire(&self) -> Vec<u8> {
        let mut wire = [self.dentry, self.inode].map(u64::to_ne_bytes).concat();
        wire.extend([self.device, 0].map(u32::to_ne_bytes).concat());
        wire
    }
}

impl Wire for FileKey {
    const SIZE: usize = 24;

    fn read(from: &mut Fields<'_>) -> Self {
        Self { dentry: from.u64(), inode: from.u64(), device: from.u32(), thread: from.u32() }
    }
}

/// The file system of sockets.
pub(super) const SOCKFS: u64 = 0x534F_434B;

/// The identity of a file, its state when it was first met, and the components of its path, leaf
/// first.
#[derive(Debug, Clone)]
pub(super) struct FileName {
    pub(super) magic: u64,
    pub(super) mode: u32,
    pub(super) whole: bool,
    pub(super) size_bytes: u64,
    pub(super) cached_pages: u64,
    pub(super) components: Vec<String>,
    /// In place of these, of a socket.
    pub(super) socket: Option<SocketName>,
}

const PATH_LEN: usize = 1024;

impl Wire for FileName {
    const SIZE: usize = 40 + PATH_LEN;

    fn read(from: &mut Fields<'_>) -> Self {
        let (magic, mode, length, whole) = (from.u64(), from.u32(), from.u32(), from.u32() != 0);
        let _pad = from.u32();
        let (size_bytes, cached_pages) = (from.u64(), from.u64());
        let path = from.bytes(PATH_LEN);
        if magic == SOCKFS {
            let socket = Some(SocketName::read(&mut Fields(path)));
            let components = Vec::new();
            return Self { magic, mode, whole, size_bytes, cached_pages, components, socket };
        }
        let used = path.get(..length as usize).unwrap_or(path);
        let components = used
            .split_inclusive(|b| *b == 0)
            .map(|c| lossless(c.strip_suffix(b"\0").unwrap_or(c)))
            .collect();
        Self { magic, mode, whole, size_bytes, cached_pages, components, socket: None }
    }
}

/// A thread that ended, with complete rows; 0 asks for a run of `adopt`.
pub(super) struct Death {
    pub(super) thread: u32,
}

impl Wire for Death {
    const SIZE: usize = 8;

    fn read(from: &mut Fields<'_>) -> Self {
        Self { thread: from.u32() }
    }
}

/// The counters of the kernel side.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counters {
    pub(super) lost_events: u64,
    pub(super) incomplete_calls: u64,
    pub(super) lost_files: u64,
    pub(super) lost_paths: u64,
    pub(super) lost_connections: u64,
    pub(super) lost_requests: u64,
    pub(super) live_threads: u32,
    pub(super) open_books: u32,
    pub(super) adopted: u32,
}

impl Wire for Counters {
    const SIZE: usize = 72;

    fn read(from: &mut Fields<'_>) -> Self {
        Self {
            lost_events: from.u64(),
            incomplete_calls: from.u64(),
            lost_files: from.u64(),
            lost_paths: from.u64(),
            lost_connections: from.u64(),
            lost_requests: from.u64(),
            live_threads: from.u32(),
            open_books: from.u32(),
            adopted: {
                let _last_ids = from.u64();
                from.u32()
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::call_numbers::RareStats;
    use super::*;

    #[test]
    fn arguments_are_split_at_their_nul_bytes() {
        let mut wire = vec![0; Program::SIZE];
        wire[..4].copy_from_slice(&9u32.to_ne_bytes());
        wire[8..15].copy_from_slice(b"/bin/dd");
        wire[8 + EXEC_LEN..][..9].copy_from_slice(b"coreutils");
        wire[8 + 2 * EXEC_LEN..][..9].copy_from_slice(b"dd\0if=f\0\0");
        let program = Program::read(&mut Fields(&wire));
        assert_eq!((&*program.exec, &*program.called, &*program.binary), ("dd", "", "coreutils"));
        assert_eq!(
            (&program.argv[..], program.argv_words),
            (&["dd", "if=f", ""].map(String::from)[..], 0)
        );
    }

    #[test]
    fn arguments_that_are_cut_have_the_number_of_all() {
        let mut wire = vec![0; Program::SIZE];
        wire[..4].copy_from_slice(&1201u32.to_ne_bytes());
        wire[4..8].copy_from_slice(&600u32.to_ne_bytes());
        wire[8..15].copy_from_slice(b"/bin/dd");
        wire[8 + 2 * EXEC_LEN..].copy_from_slice(&b"a\0".repeat(ARGV_LEN / 2));
        let program = Program::read(&mut Fields(&wire));
        assert_eq!((program.argv.len(), program.argv_words), (513, 600));
        assert_eq!(program.argv[511..], ["a", "…"]);
    }

    #[test]
    fn an_only_argument_that_is_empty_is_one() {
        let mut wire = vec![0; Program::SIZE];
        wire[..4].copy_from_slice(&1u32.to_ne_bytes());
        assert_eq!(Program::read(&mut Fields(&wire)).argv, [""]);
        wire[..4].copy_from_slice(&0u32.to_ne_bytes());
        assert!(Program::read(&mut Fields(&wire)).argv.is_empty());
    }

    #[test]
    fn a_short_buffer_reads_as_zeroes_instead_of_panicking() {
        assert_eq!(RareStats::read(&mut Fields(&[1, 2, 3])).numbers.wall_ns, 0);
        assert!(FileName::read(&mut Fields(&[])).components.is_empty());
    }
}
