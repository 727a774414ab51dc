//! Names of the functions of user space that single calls were made in.
//!
//! The kernel's side has noted the files that were mapped there, and user space reads their symbols: after the watch, or
//! before a record is written. Where the frame pointers led to is known to be wrong where nothing is mapped, and the rest
//! is dropped there; where the innermost function keeps no frame, its caller is on top of the stack if the function has
//! not moved that, and else it is not known.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

use iotomy_record::{Caller, Trace, WholeCall, bytes_of, lossless};

use crate::anatomy::user::{FrameKept, UserSymbols};

/// Names the callers of the calls that a record has whole.
pub fn name_callers(record: &mut Trace) {
    CallerNames::default().name_all(record);
}

/// Names of functions, as far as files were read for them: several records may need the same.
#[derive(Default)]
pub struct CallerNames {
    symbols: UserSymbols,
    /// Where a file of a process is to be had, by its path there and its inode.
    places: HashMap<(String, u64), String>,
    /// What a JIT compiler has told of, of the process that was asked for last.
    jit: Option<(u32, JitMap)>,
}

impl CallerNames {
    /// Names the callers of the calls that a record has whole.
    pub fn name_all(&mut self, record: &mut Trace) {
        let ended_by = record.ended_by.as_mut().map(|end| &mut end.call);
        record.slowest.iter_mut().chain(ended_by).for_each(|call| self.name(call));
        // What a process is called may change until the next record.
        self.jit = None;
    }

    fn name(&mut self, call: &mut WholeCall) {
        let (pid, on_top) = (call.pid, call.on_top.take());
        let walked = std::mem::take(&mut call.callers).into_iter();
        let mut found: Vec<Caller> = walked.map_while(|one| self.named(pid, one)).collect();
        if let Some(first) = found.first() {
            let mut frame = self.frame(pid, first);
            let caller = match frame {
                Some(FrameKept::Bare) => on_top.and_then(|one| self.named(pid, one)),
                _ => None,
            };
            if let Some(caller) = &caller {
                frame = self.frame(pid, caller);
            }
            let is_unknown = frame.is_some_and(|frame| frame != FrameKept::Linked);
            let gap = is_unknown.then(Caller::default);
            found.splice(1..1, caller.into_iter().chain(gap));
        }
        call.callers = found;
    }

    /// `None` where there is no code.
    fn named(&mut self, pid: u32, caller: Caller) -> Option<Caller> {
        // Behind the instruction that calls.
        let at = caller.offset.checked_sub(1)?;
        let function = match &caller.file {
            Some(file) => {
                let path = self.place(pid, file, caller.inode);
                self.symbols.name(&path, caller.inode, at)
            }
            None => Some(self.of_jit(pid, at)?),
        };
        Some(Caller { function, ..caller })
    }

    fn frame(&mut self, pid: u32, of: &Caller) -> Option<FrameKept> {
        let (file, at) = (of.file.as_ref()?, of.offset.checked_sub(1)?);
        let path = self.place(pid, file, of.inode);
        self.symbols.frame(&path, of.inode, at)
    }

    /// A file by its path here, or, where that is another one, by its path in the container of the process.
    fn place(&mut self, pid: u32, path: &str, inode: u64) -> String {
        let found = || {
            let is_it = |path: &String| {
                std::fs::metadata(OsStr::from_bytes(&bytes_of(path)))
                    .is_ok_and(|file| file.ino() == inode)
            };
            let inside = format!("/proc/{pid}/root{path}");
            [path.to_owned(), inside].into_iter().find(is_it).unwrap_or_else(|| path.to_owned())
        };
        self.places.entry((path.to_owned(), inode)).or_insert_with(found).clone()
    }

    fn of_jit(&mut self, pid: u32, address: u64) -> Option<String> {
        if self.jit.as_ref().is_none_or(|(known, _)| *known != pid) {
            self.jit = Some((pid, JitMap::of(pid)));
        }
        let (_, map) = self.jit.as_ref()?;
        map.function(address)
    }
}

/// The functions that a JIT compiler has told of: `perf-PID.map`, in lines of address, bytes and name.
#[derive(Debug, Default)]
struct JitMap(Vec<u8>);

/// A longer one names nothing.
const LONGEST_MAP: u64 = 32 << 20;

impl JitMap {
    fn of(pid: u32) -> Self {
        // By its number in its own namespace, where it has one.
        let status = iotomy_host::kernel_text(format!("/proc/{pid}/status")).unwrap_or_default();
        let field = |name| status.lines().find_map(|line: &str| line.strip_prefix(name));
        let own = field("NSpid:").and_then(|ids| ids.split_whitespace().last()?.parse().ok());
        let owner = field("Uid:").and_then(|ids| ids.split_whitespace().nth(1)?.parse().ok());
        let inside = format!("/proc/{pid}/root/tmp/perf-{}.map", own.unwrap_or(pid));
        let text = text(&inside, owner).or_else(|| text(&format!("/tmp/perf-{pid}.map"), owner));
        Self(text.unwrap_or_default())
    }

    /// Where memory was used again, the later ones hold.
    fn function(&self, address: u64) -> Option<String> {
        let hexadecimal = |word: &[u8]| {
            let word = std::str::from_utf8(word).ok()?;
            u64::from_str_radix(word.trim_start_matches("0x"), 16).ok()
        };
        let around = |line: &[u8]| {
            let mut words = line.splitn(3, |byte| *byte == b' ');
            let (start, bytes) = (hexadecimal(words.next()?)?, hexadecimal(words.next()?)?);
            let name = words.next()?;
            (address.checked_sub(start)? < bytes).then(|| lossless(name))
        };
        self.0.rsplit(|byte| *byte == b'\n').find_map(around)
    }
}

/// Of a file that the process has written, or root: nothing else that lies there is read.
fn text(path: &str, owner: Option<u32>) -> Option<Vec<u8>> {
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW;
    let of_file = std::fs::symlink_metadata(path).ok()?;
    let is_trusted = of_file.uid() == 0 || owner.is_none_or(|owner| of_file.uid() == owner);
    (of_file.is_file() && is_trusted && of_file.len() <= LONGEST_MAP).then_some(())?;
    let mut file = File::options();
    file.read(true).custom_flags(flags.bits().cast_signed());
    let file = file.open(path).ok()?;
    // It may have become another one.
    file.metadata().is_ok_and(|opened| opened.ino() == of_file.ino()).then_some(())?;
    let mut text = Vec::new();
    file.take(LONGEST_MAP).read_to_end(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_of_a_jit_is_the_last_one_that_was_put_there() {
        let map = JitMap(
            b"1000 20 first\nnonsense\n0x2000 10 a b\xff\n1000 20 second\n1020 8 third\n".to_vec(),
        );
        let found = |address| map.function(address);
        let names: Vec<_> = (0..0x3000).map(found).collect();
        let name = |address: usize| names[address].as_deref();
        assert_eq!(name(0x1000), Some("second"));
        assert_eq!(name(0x101f), Some("second"));
        assert_eq!(name(0x1020), Some("third"));
        assert_eq!(name(0x200f), Some(r"a b\xff"));
        assert_eq!([name(0xfff), name(0x1028), name(0x2010)], [None; 3]);
    }

    #[test]
    fn a_chain_ends_where_no_code_is_known() {
        let at = |file: Option<&str>, offset| Caller {
            file: file.map(str::to_owned),
            offset,
            ..Caller::default()
        };
        let walked =
            [at(Some("/nope/a"), 5), at(Some("/nope/b"), 9), at(None, 77), at(Some("/c"), 1)];
        let mut call = WholeCall {
            pid: u32::MAX,
            callers: walked.to_vec(),
            on_top: Some(at(Some("/nope/d"), 3)),
            ..WholeCall::default()
        };
        CallerNames::default().name(&mut call);
        // Of functions that cannot be looked into, it is not known that they keep no frame.
        assert_eq!(call.callers, walked[..2]);
        assert_eq!(call.on_top, None);
    }
}
