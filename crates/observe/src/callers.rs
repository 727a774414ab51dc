//! Names of the functions of user space that single calls were made in.
//!
//! The kernel's side has noted the files that were mapped there, and user space reads their symbols: after the watch, or
//! before a record is written. Where the frame pointers led to is known to be wrong where nothing is mapped, and the rest
//! is dropped there; where the innermost function keeps no frame, its caller is on top of the stack if the function has
//! not moved that, and else it is not known.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;

use iotomy_record::{Caller, Trace, WholeCall, lossless};

use crate::anatomy::user::{FrameKept, UserSymbols};

/// Names the callers of the calls that a record has whole.
pub fn name_callers(record: &mut Trace) {
    let mut names = Names::default();
    let ended_by = record.ended_by.as_mut().map(|end| &mut end.call);
    record.slowest.iter_mut().chain(ended_by).for_each(|call| names.name(call));
}

/// What was read so far.
#[derive(Default)]
struct Names {
    symbols: UserSymbols,
    /// Of JIT compilers, by process.
    jits: HashMap<u32, JitMap>,
}

impl Names {
    fn name(&mut self, call: &mut WholeCall) {
        let (pid, on_top) = (call.pid, call.on_top.take());
        let walked = std::mem::take(&mut call.callers).into_iter();
        let mut found: Vec<Caller> = walked.map_while(|one| self.named(pid, one)).collect();
        if let Some(first) = found.first() {
            let frame = |names: &mut Self, of: &Caller| names.frame(pid, of);
            let mut frame_of_linked = frame(self, first);
            let caller = match frame_of_linked {
                Some(FrameKept::Bare) => on_top.and_then(|one| self.named(pid, one)),
                _ => None,
            };
            if let Some(caller) = &caller {
                frame_of_linked = frame(self, caller);
            }
            let is_unknown = frame_of_linked.is_some_and(|frame| frame != FrameKept::Linked);
            let gap = is_unknown.then(Caller::default);
            found.splice(1..1, caller.into_iter().chain(gap));
        }
        call.callers = found;
    }

    /// `None` where there is no code.
    fn named(&mut self, pid: u32, caller: Caller) -> Option<Caller> {
        let Some(file) = &caller.file else {
            let jit = self.jits.entry(pid).or_insert_with(|| JitMap::of(pid));
            let function = jit.function(caller.offset.checked_sub(1)?)?.to_owned();
            return Some(Caller { function: Some(function), ..caller });
        };
        // Behind the instruction that calls.
        let at = caller.offset.checked_sub(1)?;
        let function = [&seen_by(pid, file), file]
            .into_iter()
            .find_map(|path| self.symbols.name(path, caller.inode, at));
        Some(Caller { function, ..caller })
    }

    fn frame(&mut self, pid: u32, of: &Caller) -> Option<FrameKept> {
        let (file, at) = (of.file.as_ref()?, of.offset.checked_sub(1)?);
        [&seen_by(pid, file), file]
            .into_iter()
            .find_map(|path| self.symbols.frame(path, of.inode, at))
    }
}

/// A path of a process, which may be in a container of its own.
fn seen_by(pid: u32, path: &str) -> String {
    format!("/proc/{pid}/root{path}")
}

/// The functions that a JIT compiler has told of: `perf-PID.map`, in lines of address, bytes and name.
#[derive(Debug, Default)]
struct JitMap {
    /// By address; where the memory was used again, the later ones hold.
    functions: Vec<(u64, u64, String)>,
}

/// More of it is not read.
const LONGEST_MAP: u64 = 64 << 20;

impl JitMap {
    fn of(pid: u32) -> Self {
        // By its number in its own namespace, where it has one.
        let status = iotomy_host::kernel_text(format!("/proc/{pid}/status")).unwrap_or_default();
        let own = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        let own = own.and_then(|ids| ids.split_whitespace().last()?.parse().ok()).unwrap_or(pid);
        let inside = || text(&format!("/proc/{pid}/root/tmp/perf-{own}.map"));
        let text = inside().or_else(|| text(&format!("/tmp/perf-{pid}.map")));
        Self::parse(&text.unwrap_or_default())
    }

    fn parse(text: &[u8]) -> Self {
        let hexadecimal = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok();
        let function = |line: &[u8]| {
            let line = lossless(line);
            let mut words = line.splitn(3, ' ');
            let (start, bytes) = (hexadecimal(words.next()?)?, hexadecimal(words.next()?)?);
            Some((start, bytes, words.next()?.to_owned()))
        };
        let mut functions: Vec<_> =
            text.split(|byte| *byte == b'\n').filter_map(function).collect();
        functions.sort_by_key(|(start, ..)| *start);
        Self { functions }
    }

    fn function(&self, address: u64) -> Option<&str> {
        let behind = self.functions.partition_point(|(start, ..)| *start <= address);
        let (start, bytes, name) = self.functions.get(behind.checked_sub(1)?)?;
        (address - start < *bytes).then_some(name)
    }
}

/// Of a file that the process has written; anything else that lies there is not read.
fn text(path: &str) -> Option<Vec<u8>> {
    let mut file = File::options();
    file.read(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    let file = file.open(path).ok()?;
    let mut text = Vec::new();
    file.metadata().ok()?.is_file().then_some(())?;
    file.take(LONGEST_MAP).read_to_end(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_of_a_jit_is_the_last_one_that_was_put_there() {
        let map = JitMap::parse(
            b"1000 20 first\nnonsense\n0x2000 10 a b\xff\n1000 20 second\n1020 8 third\n",
        );
        let name = |address| map.function(address);
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
        Names::default().name(&mut call);
        // Of functions that cannot be looked into, it is not known that they keep no frame.
        assert_eq!(call.callers, walked[..2]);
        assert_eq!(call.on_top, None);
    }
}
