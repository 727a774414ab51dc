//! Walks over the stacks of programs that are stopped, whose chains are known, and over garbage.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use iotomy_record::{CopiedStack, MappedCode};
use iotomy_test_requirements::{Need, skip};
use nix::sys::ptrace;
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use proptest::prelude::*;

use super::*;
use crate::anatomy::user::UserSymbols;
use crate::mapped_file;

/// The files of this machine.
#[derive(Default)]
struct Here {
    tables: HashMap<String, Option<Tables>>,
    symbols: UserSymbols,
}

impl Files for Here {
    fn tables(&mut self, code: &MappedCode) -> Option<&mut Tables> {
        let path = code.file.clone()?;
        let read = || Tables::read(mapped_file::open(&path, code.inode)?);
        self.tables.entry(path.clone()).or_insert_with(read).as_mut()
    }

    fn frame_kept(&mut self, code: &MappedCode, offset: u64) -> Option<FrameKept> {
        self.symbols.frame(code.file.as_ref()?, code.inode, offset)
    }
}

/// A program that waits in a call, and its end.
struct Stopped(Child);

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Writes a line and waits for another in functions that keep no frame pointer.
const CHAIN: &str = r#"
#include <string.h>
#include <unistd.h>
#define APART __attribute__((noinline))
volatile int sink;
APART int inner(char *to) { int got = write(1, "x", 1) + read(0, to, 1); sink += got; return got + 1; }
APART int middle(int n) { char room[300]; memset(room, n, sizeof(room)); return inner(room) + room[7]; }
#ifndef ROOM
#define ROOM n * 64
#endif
APART int outer(int n) { char room[ROOM]; memset(room, n, sizeof(room)); return middle(n) + room[3]; }
int main(int arguments, char **words) { return outer(arguments + 2) & 0; }
"#;

/// Where its threads are in, by name, the innermost first; `None` where this machine cannot try it.
fn chain(options: &[&str]) -> Option<(Vec<String>, Walk)> {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("chain.c"), folder.path().join("chain"));
    std::fs::write(&source, CHAIN).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-O2", "-fno-optimize-sibling-calls"]).args(options);
    match compiler.arg(&source).arg("-o").arg(&program).status() {
        Ok(status) => assert!(status.success()),
        Err(error) => {
            skip(Need::Machine, &format!("no C compiler: {error}"));
            return None;
        }
    }
    let (mut stopped, _input) = start(&program);
    let mut line = [0];
    stopped.0.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
    let pid = stopped.0.id();
    // It goes from the one call into the other.
    let is_reading = || {
        let call = iotomy_host::kernel_text(format!("/proc/{pid}/syscall")).unwrap_or_default();
        call.starts_with("0 ")
    };
    iotomy_test_requirements::wait::until("it reads", is_reading);
    let Some(stack) = copied(pid) else {
        skip(Need::Ptrace, "programs cannot be stopped");
        return None;
    };
    let mut files = Here::default();
    let walk = walk(&stack, &mut files);
    let name = |frame: &Frame| match frame {
        Frame::Function(address) => {
            let code = stack.code_at(address - 1).unwrap();
            let offset = (address - 1).wrapping_add(code.to_file);
            let name = files.symbols.name(code.file.as_ref().unwrap(), code.inode, offset);
            name.unwrap_or_else(|| "-".to_owned())
        }
        other => format!("{other:?}"),
    };
    Some((walk.frames.iter().map(name).collect(), walk))
}

fn start(program: &Path) -> (Stopped, ChildStdin) {
    let mut command = Command::new(program);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let input = child.stdin.take().unwrap();
    (Stopped(child), input)
}

/// The end of a process's stack.
fn copied(pid: u32) -> Option<CopiedStack> {
    let process = Pid::from_raw(pid.cast_signed());
    ptrace::attach(process).ok()?;
    waitpid(process, Some(WaitPidFlag::__WALL)).unwrap();
    let registers = ptrace::getregs(process).unwrap();
    let maps = iotomy_host::kernel_text(format!("/proc/{pid}/maps")).unwrap();
    let memory = File::open(format!("/proc/{pid}/mem")).unwrap();
    let from = registers.rsp & !511;
    let mut words = Vec::new();
    for part in 0..16 {
        let mut bytes = [0; 512];
        if memory.read_exact_at(&mut bytes, from + part * 512).is_err() {
            break;
        }
        let word = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap());
        words.extend(bytes.chunks_exact(8).map(word));
    }
    ptrace::detach(process, None).unwrap();
    let r = registers;
    Some(CopiedStack {
        registers: [r.rbx, r.rbp, r.r12, r.r13, r.r14, r.r15, r.rsp, r.rip],
        from,
        words,
        code: maps.lines().filter_map(code).collect(),
    })
}

/// A line of `/proc/PID/maps`.
fn code(line: &str) -> Option<MappedCode> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [range, rights, offset, _, inode, path] = words[..] else { return None };
    let hexadecimal = |text| u64::from_str_radix(text, 16).unwrap();
    let (start, end) = range.split_once('-')?;
    let (start, end) = (hexadecimal(start), hexadecimal(end));
    (rights.contains('x') && path.starts_with('/')).then(|| MappedCode {
        start,
        end,
        to_file: hexadecimal(offset).wrapping_sub(start),
        is_vdso: false,
        file: Some(path.to_owned()),
        inode: inode.parse().unwrap(),
    })
}

/// Those of the program, which the C library's calls stand before and behind.
fn of_program(names: &[String]) -> &[String] {
    let first = names.iter().position(|name| name == "inner").unwrap_or(names.len());
    &names[first..(first + 4).min(names.len())]
}

const WHOLE: [&str; 4] = ["inner", "middle", "outer", "main"];

#[test]
fn functions_without_frame_pointers_are_found_by_their_tables() {
    for options in [&["-fomit-frame-pointer"][..], &["-fomit-frame-pointer", "-static", "-no-pie"]]
    {
        let Some((names, walk)) = chain(options) else { return };
        assert_eq!(of_program(&names), WHOLE, "{options:?}: {names:?}");
        assert!(walk.is_whole, "{options:?}: {names:?}");
        assert!(names.len() < 12, "{options:?}: {names:?}");
        assert!(!walk.frames.contains(&Frame::Unknown), "{options:?}: {names:?}");
    }
}

#[test]
fn functions_without_tables_are_found_by_frame_pointers() {
    let options = ["-fno-asynchronous-unwind-tables", "-fno-omit-frame-pointer"];
    let Some((names, walk)) = chain(&options) else { return };
    assert_eq!(of_program(&names), WHOLE, "{names:?}");
    assert!(walk.is_whole && !walk.frames.contains(&Frame::Unknown), "{names:?}");
}

#[test]
fn functions_with_neither_are_no_reason_to_name_others() {
    let options = ["-fno-asynchronous-unwind-tables", "-fomit-frame-pointer"];
    let Some((names, walk)) = chain(&options) else { return };
    assert_eq!(of_program(&names)[0], "inner", "{names:?}");
    assert!(!walk.is_whole || walk.frames.contains(&Frame::Unknown), "{names:?}");
}

#[test]
fn a_stack_that_was_cut_off_has_what_is_below() {
    let Some((names, whole)) = chain(&["-fomit-frame-pointer", "-DROOM=16384"]) else { return };
    assert_eq!(of_program(&names), ["inner", "middle", "outer"], "{names:?}");
    assert!(!whole.is_whole, "{names:?}");
}

/// The C library's file and its table.
fn library() -> Option<(MappedCode, Tables)> {
    let maps = iotomy_host::kernel_text("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.contains(" r-xp ") && line.contains("/libc."))?;
    let code = code(line)?;
    let tables = Tables::read(mapped_file::open(code.file.as_ref()?, code.inode)?)?;
    Some((code, tables))
}

/// One table for all code.
struct Only(Tables);

impl Files for Only {
    fn tables(&mut self, _: &MappedCode) -> Option<&mut Tables> {
        Some(&mut self.0)
    }

    fn frame_kept(&mut self, code: &MappedCode, offset: u64) -> Option<FrameKept> {
        const KEPT: [Option<FrameKept>; 4] =
            [None, Some(FrameKept::Linked), Some(FrameKept::Unlinked), Some(FrameKept::Bare)];
        KEPT[(offset.wrapping_add(code.start) % 4) as usize]
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Words that are places in code, in the stack, or neither; a table some of whose bytes are others.
    #[test]
    fn garbage_ends_a_walk_and_does_no_harm(
        words in prop::collection::vec((0u8..4, any::<u64>()), 0..1024),
        registers in prop::collection::vec((0u8..4, any::<u64>()), CopiedStack::REGISTERS),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4096),
        keeps_index in any::<bool>(),
    ) {
        let Some((code, mut tables)) = library() else { return Ok(()) };
        let from = 0x7ffe_0000_0000;
        let value = |(kind, word): &(u8, u64)| match kind {
            0 => code.start + word % (code.end - code.start),
            1 => from + word % 8192 / 8 * 8,
            2 => word % 64,
            _ => *word,
        };
        let mut stack = CopiedStack {
            from,
            words: words.iter().map(value).collect(),
            code: vec![code.clone()],
            ..CopiedStack::default()
        };
        for (to, of) in stack.registers.iter_mut().zip(&registers) {
            *to = value(of);
        }
        // Else nearly every walk would end at once.
        stack.registers[6] = from + registers[6].1 % 4096 / 8 * 8;
        stack.registers[7] = code.start + 1 + registers[7].1 % (code.end - code.start - 1);
        tables.damage(&damage, keeps_index);
        let walk = walk(&stack, &mut Only(tables));
        prop_assert!(!walk.frames.is_empty() && walk.frames.len() <= MOST_FRAMES + 1);
        for frame in &walk.frames {
            if let Frame::Function(address) | Frame::Signal(address) = frame {
                prop_assert!(stack.code_at(address - 1).is_some());
            }
        }
    }
}

#[test]
fn frame_pointers_in_a_circle_end_a_walk() {
    let from = 0x1000;
    // Each frame says that the one before it, and it itself, is its caller's.
    let words = (0..64).map(|at| if at % 2 == 0 { from } else { 0x40_0010 }).collect();
    let code = MappedCode { start: 0x40_0000, end: 0x41_0000, ..MappedCode::default() };
    let registers = [0, from, 0, 0, 0, 0, from, 0x40_0010];
    let stack = CopiedStack { registers, from, words, code: vec![code] };
    let walk = walk(&stack, &mut Here::default());
    // Of code without a table, the frame pointer is believed only up the stack.
    assert_eq!(walk.frames, [Frame::Function(0x40_0010); 2]);
    assert!(!walk.is_whole);
}
