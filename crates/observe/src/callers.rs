//! Names of the functions of user space that single calls were made in.
//!
//! The kernel's side has noted the files that were mapped there, and user space reads their tables and symbols: after the
//! watch, or before a record is written. Where it has copied the stack, the functions are found by the tables of frames
//! (`unwind`). Where it has not, or the stack goes on beyond what was copied, by the frame pointers that the kernel has followed: where these
//! led to is known to be wrong where nothing is mapped, and the rest is dropped there; where the innermost function
//! keeps no frame, its caller is on top of the stack if the function has not moved that, and else it is not known.

mod files;
mod jit;

use iotomy_record::{Caller, CopiedStack, Trace, WholeCall};

use self::files::MappedFiles;
use self::jit::JitMap;
use crate::anatomy::user::FrameKept;
use crate::unwind::{self, Frame, Walk};

/// In place of the name of the kernel's frame under a handler of a signal.
const SIGNAL: &str = "[signal]";

/// The function that programs begin with, as they see it, and the most that has called it.
const MAIN: &str = "main";
const ABOVE_MAIN: usize = 3;

/// Names the callers of the calls that a record has whole.
pub fn name_callers(record: &mut Trace) {
    CallerNames::default().name_all(record);
}

/// Names of functions, as far as files were read for them: several records may need the same.
#[derive(Default)]
pub struct CallerNames {
    files: MappedFiles,
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
        let linked = std::mem::take(&mut call.callers);
        let stack = call.stack.take().filter(|stack| !stack.code.is_empty());
        call.callers = match stack {
            Some(stack) => self.by_tables(pid, &stack, linked),
            None => self.by_pointers(pid, on_top, linked),
        };
        end_at_main(&mut call.callers);
    }

    /// By the copied stack; the frame pointers may lead on where that ends.
    fn by_tables(&mut self, pid: u32, stack: &CopiedStack, linked: Vec<Caller>) -> Vec<Caller> {
        let Walk { frames, is_whole } = unwind::walk(stack, &mut self.files.of(pid));
        let mut callers: Vec<Caller> =
            frames.iter().map(|frame| self.of_frame(pid, stack, *frame)).collect();
        if !is_whole {
            let last = frames.last().copied().and_then(|frame| place(stack, frame));
            let at = last.and_then(|last| linked.iter().position(|one| *one == last));
            let mut rest = at.map_or(Vec::new(), |at| linked[at + 1..].to_vec());
            rest = rest.into_iter().map_while(|one| self.named(pid, one)).collect();
            let kept = callers.last().and_then(|last| self.files.frame(pid, last));
            if rest.is_empty() || kept.is_some_and(|kept| kept != FrameKept::Linked) {
                callers.push(Caller::default());
            }
            callers.extend(rest);
        }
        let is_unknown = |caller: &Caller| caller.function.is_none() && caller.file.is_none();
        callers.dedup_by(|next, before| is_unknown(next) && is_unknown(before));
        callers
    }

    fn of_frame(&mut self, pid: u32, stack: &CopiedStack, frame: Frame) -> Caller {
        let Some(caller) = place(stack, frame) else { return Caller::default() };
        match frame {
            Frame::Signal(_) => Caller { function: Some(SIGNAL.to_owned()), ..caller },
            _ => self.named(pid, caller).unwrap_or_default(),
        }
    }

    /// By the frame pointers that the kernel has followed.
    fn by_pointers(
        &mut self,
        pid: u32,
        on_top: Option<Caller>,
        linked: Vec<Caller>,
    ) -> Vec<Caller> {
        let mut found: Vec<Caller> =
            linked.into_iter().map_while(|one| self.named(pid, one)).collect();
        if let Some(first) = found.first() {
            let mut frame = self.files.frame(pid, first);
            let caller = match frame {
                Some(FrameKept::Bare) => on_top.and_then(|one| self.named(pid, one)),
                _ => None,
            };
            if let Some(caller) = &caller {
                frame = self.files.frame(pid, caller);
            }
            let is_unknown = frame.is_some_and(|frame| frame != FrameKept::Linked);
            let gap = is_unknown.then(Caller::default);
            found.splice(1..1, caller.into_iter().chain(gap));
        }
        found
    }

    /// `None` where there is no code.
    fn named(&mut self, pid: u32, caller: Caller) -> Option<Caller> {
        let function = match &caller.file {
            Some(_) => self.files.function(pid, &caller)?,
            // Behind the instruction that calls.
            None => Some(self.of_jit(pid, caller.offset.checked_sub(1)?)?),
        };
        Some(Caller { function, ..caller })
    }

    fn of_jit(&mut self, pid: u32, address: u64) -> Option<String> {
        if self.jit.as_ref().is_none_or(|(known, _)| *known != pid) {
            self.jit = Some((pid, JitMap::of(pid)));
        }
        let (_, map) = self.jit.as_ref()?;
        map.function(address)
    }
}

/// Where a frame is, without its name; `None` where that is not known.
fn place(stack: &CopiedStack, frame: Frame) -> Option<Caller> {
    let (Frame::Function(address) | Frame::Signal(address)) = frame else { return None };
    let code = stack.code_at(address.checked_sub(1)?)?;
    let file = files::file_of(code);
    let offset = file.as_ref().map_or(address, |_| address.wrapping_add(code.to_file));
    Some(Caller { function: None, file, offset, inode: code.inode })
}

/// What has called `main` is the same in all programs.
fn end_at_main(callers: &mut Vec<Caller>) {
    let is_main =
        |caller: &Caller| caller.function.as_deref() == Some(MAIN) && caller.file.is_some();
    if let Some(at) = callers.iter().rposition(is_main)
        && callers.len() - at - 1 <= ABOVE_MAIN
    {
        callers.truncate(at + 1);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use iotomy_record::MappedCode;

    use super::*;

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

    /// A call at 0x1010, in code of a file that is not there, of whose stack nothing was copied.
    fn copied(linked: &[Caller]) -> WholeCall {
        let code = MappedCode {
            start: 0x1000,
            end: 0x2000,
            to_file: 0u64.wrapping_sub(0x800),
            file: Some("/nope/a".to_owned()),
            ..MappedCode::default()
        };
        let mut registers = [0; CopiedStack::REGISTERS];
        registers[CopiedStack::REGISTERS - 1] = 0x1010;
        let stack = CopiedStack { registers, code: vec![code], ..CopiedStack::default() };
        let stack = Some(Arc::new(stack));
        WholeCall { pid: u32::MAX, callers: linked.to_vec(), stack, ..WholeCall::default() }
    }

    #[test]
    fn beyond_what_was_copied_frame_pointers_lead_on() {
        let at = |file: &str, offset| Caller {
            file: Some(file.to_owned()),
            offset,
            ..Caller::default()
        };
        let named = |linked: &[Caller]| {
            let mut call = copied(linked);
            CallerNames::default().name(&mut call);
            assert_eq!(call.stack, None);
            call.callers
        };
        let first = at("/nope/a", 0x810);
        assert_eq!(named(&[]), [first.clone(), Caller::default()]);
        let linked = [first.clone(), at("/nope/b", 9)];
        assert_eq!(named(&linked), linked);
        // Those of another place are none of this stack.
        assert_eq!(named(&[at("/nope/a", 0x811), at("/nope/b", 9)]), [first, Caller::default()]);
    }

    #[test]
    fn what_has_called_main_is_left_out() {
        let of = |names: &str| -> Vec<Caller> {
            let caller = |name: &str| Caller {
                function: Some(name.to_owned()).filter(|name| name != "-"),
                file: Some("/bin/a".to_owned()),
                ..Caller::default()
            };
            names.split(' ').map(caller).collect()
        };
        for (names, rest) in [
            ("read f main - __libc_start_main _start", "read f main"),
            ("read f main", "read f main"),
            ("read - - __libc_start_main _start", "read - - __libc_start_main _start"),
            // That is another function of this name.
            ("read main a b c main - -", "read main a b c main"),
            ("read main a b c d", "read main a b c d"),
        ] {
            let mut callers = of(names);
            end_at_main(&mut callers);
            assert_eq!(callers, of(rest), "{names}");
        }
    }
}
