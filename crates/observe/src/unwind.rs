//! The functions that a thread was in, by the tables of the files that it runs (`.eh_frame`), from the copied end of its
//! stack.
//!
//! Pure but for the files, which [`Files`] has. Nothing here is trusted: the stack holds whatever a program has
//! written there, the files whatever they hold. Each step must lead up the stack and stay within the copied words, so a walk ends.
//! Where there is no table (code that was compiled while the program ran, files without one), a frame pointer is followed if
//! there is a place in code behind it.

mod expression;
mod registers;
mod tables;

use iotomy_record::{CopiedStack, MappedCode};

use crate::anatomy::user::FrameKept;
pub(crate) use tables::Tables;

use registers::Registers;

/// Most frames of a walk.
pub(crate) const MOST_FRAMES: usize = 64;

/// A frame that a walk found, the innermost first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frame {
    /// Of a function: the address behind the instruction where it is.
    Function(u64),
    /// The kernel's, from which a handler of a signal returns to what it has interrupted.
    Signal(u64),
    /// Any number of functions that nothing is known of.
    Unknown,
}

/// The frames of a stack.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Walk {
    pub(crate) frames: Vec<Frame>,
    /// Whether the last is the outermost of the thread.
    pub(crate) is_whole: bool,
}

/// What is known of the files that are mapped.
pub(crate) trait Files {
    /// The tables of the file of this code, if it has any.
    fn tables(&mut self, code: &MappedCode) -> Option<&mut Tables>;

    /// The frame that the function at an offset of the file has set up by then; `None` where that is unknown.
    fn frame_kept(&mut self, code: &MappedCode, offset: u64) -> Option<FrameKept>;
}

/// What a frame returns to.
#[derive(Debug)]
enum Caller {
    /// A function that has called it, with the registers that it will have then.
    Function(Registers),
    /// What a signal has interrupted.
    Interrupted(Registers),
    /// The same as a function, but some may be left out.
    Beyond(Registers),
    /// Nothing: it is where the thread began.
    Nobody,
    /// That is not known.
    Unknown,
}

/// The frames from the innermost on.
pub(crate) fn walk(stack: &CopiedStack, files: &mut impl Files) -> Walk {
    let mut registers = Registers::of(stack);
    let mut walk = Walk::default();
    let mut is_interrupted = false;
    while walk.frames.len() < MOST_FRAMES {
        // One that was interrupted goes on with the instruction there; others are in the one before, which called.
        let Some(inside) = registers.ip.checked_sub(u64::from(!is_interrupted)) else { break };
        let Some(code) = stack.code_at(inside) else { break };
        walk.frames.push(Frame::Function(inside + 1));
        is_interrupted = false;
        match caller(stack, files, code, inside, &registers) {
            Caller::Function(next) => registers = next,
            Caller::Interrupted(next) => {
                walk.frames.pop();
                walk.frames.push(Frame::Signal(inside + 1));
                is_interrupted = true;
                registers = next;
            }
            Caller::Beyond(next) => {
                walk.frames.push(Frame::Unknown);
                registers = next;
            }
            Caller::Nobody => {
                walk.is_whole = true;
                break;
            }
            Caller::Unknown => break,
        }
    }
    walk
}

fn caller(
    stack: &CopiedStack,
    files: &mut impl Files,
    code: &MappedCode,
    inside: u64,
    registers: &Registers,
) -> Caller {
    let offset = inside.wrapping_add(code.to_file);
    let by_table = files.tables(code).and_then(|of| of.caller(offset, registers, stack));
    by_table.unwrap_or_else(|| by_pointer(stack, registers, files.frame_kept(code, offset)))
}

/// Where a function without a table returns to, by its frame pointer or what is on top of the stack.
fn by_pointer(stack: &CopiedStack, registers: &Registers, kept: Option<FrameKept>) -> Caller {
    let returns_to = |address: u64| {
        let ip = stack.word(address)?;
        stack.code_at(ip.checked_sub(1)?).map(|_| ip)
    };
    let sp = registers.sp;
    if kept == Some(FrameKept::Bare) {
        let caller = returns_to(sp).map(|ip| registers.of_caller(sp.wrapping_add(8), ip));
        return caller.map_or(Caller::Unknown, Caller::Function);
    }
    let linked = || {
        let frame = registers.frame_pointer().filter(|frame| *frame >= sp)?;
        let ip = returns_to(frame.checked_add(8)?)?;
        Some(Registers::linked(frame, stack.word(frame)?, ip))
    };
    match (linked(), kept) {
        (None, _) => Caller::Unknown,
        (Some(next), Some(FrameKept::Unlinked)) => Caller::Beyond(next),
        (Some(next), _) => Caller::Function(next),
    }
}

#[cfg(test)]
mod tests;
