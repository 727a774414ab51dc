//! The registers of a frame, as far as they are known.

use iotomy_record::CopiedStack;

/// Those of x86-64, by their numbers in tables of frames.
const BX: usize = 3;
const BP: usize = 6;
pub(super) const SP: u16 = 7;
const R12: usize = 12;
const OTHERS: usize = 16;
/// Where the frame returns to.
pub(super) const IP: u16 = 16;

/// Values in a frame.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Registers {
    /// The stack pointer.
    pub(super) sp: u64,
    /// Where the frame goes on.
    pub(super) ip: u64,
    /// By number; the stack pointer's place is not used.
    others: [Option<u64>; OTHERS],
}

impl Registers {
    /// Those of the innermost frame.
    pub(super) fn of(stack: &CopiedStack) -> Self {
        let [bx, bp, r12, r13, r14, r15, sp, ip] = stack.registers;
        let mut registers = Self { sp, ip, others: [None; OTHERS] };
        for (at, value) in [(BX, bx), (BP, bp), (R12, r12), (13, r13), (14, r14), (15, r15)] {
            registers.others[at] = Some(value);
        }
        registers
    }

    /// Those of the caller of a function with this frame pointer, where the caller's is kept. What that function has made of
    /// the others is not known.
    pub(super) fn linked(frame: u64, callers: u64, ip: u64) -> Self {
        let mut registers = Self { sp: frame.wrapping_add(16), ip, others: [None; OTHERS] };
        registers.others[BP] = Some(callers);
        registers
    }

    pub(super) fn frame_pointer(&self) -> Option<u64> {
        self.others[BP]
    }

    /// By number.
    pub(super) fn value(&self, number: u16) -> Option<u64> {
        match number {
            SP => Some(self.sp),
            IP => Some(self.ip),
            _ => *self.others.get(usize::from(number))?,
        }
    }

    /// Sets one but the stack pointer and the place where the frame goes on.
    pub(super) fn set(&mut self, number: u16, value: Option<u64>) {
        if let Some(register) = self.others.get_mut(usize::from(number)) {
            *register = value;
        }
    }

    /// Those that a function leaves as they were are kept, the others forgotten.
    pub(super) fn of_caller(&self, sp: u64, ip: u64) -> Self {
        let kept =
            |at: usize| matches!(at, BX | BP | R12..OTHERS).then(|| self.others[at]).flatten();
        Self { sp, ip, others: std::array::from_fn(kept) }
    }
}
