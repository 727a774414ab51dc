//! The expressions of tables of frames, as far as such have them: those of the linker's stubs, of the C library's return
//! from signals, and of functions in assembler.

use gimli::{Encoding, Expression, Operation, Reader};
use iotomy_record::CopiedStack;

use super::registers::Registers;

/// Most values at once, and most operations.
const DEPTH: usize = 32;
const STEPS: usize = 256;

/// The value; `None` where a part of it is not known or an operation is none of these.
pub(super) fn value<R: Reader>(
    expression: Expression<R>,
    encoding: Encoding,
    registers: &Registers,
    stack: &CopiedStack,
    first: Option<u64>,
) -> Option<u64> {
    let mut values = Values(first.into_iter().collect());
    let mut operations = expression.operations(encoding);
    let mut steps = 0;
    while let Some(operation) = operations.next().ok()? {
        steps += 1;
        if steps > STEPS || values.0.len() > DEPTH {
            return None;
        }
        match operation {
            Operation::Nop => {}
            Operation::Drop => _ = values.pop()?,
            Operation::Pick { index } => {
                let at = values.0.len().checked_sub(usize::from(index) + 1)?;
                values.0.push(values.0[at]);
            }
            Operation::Swap => {
                let (above, below) = (values.pop()?, values.pop()?);
                values.0.extend([above, below]);
            }
            Operation::UnsignedConstant { value } => values.0.push(value),
            Operation::SignedConstant { value } => values.0.push(value.cast_unsigned()),
            Operation::RegisterOffset { register, offset, .. } => {
                values.0.push(registers.value(register.0)?.wrapping_add_signed(offset));
            }
            Operation::Deref { size: 8, space: false, .. } => {
                let address = values.pop()?;
                values.0.push(stack.word(address)?);
            }
            Operation::PlusConstant { value } => {
                let of = values.pop()?;
                values.0.push(of.wrapping_add(value));
            }
            Operation::Plus => values.put_together(u64::wrapping_add)?,
            Operation::Minus => values.put_together(u64::wrapping_sub)?,
            Operation::Mul => values.put_together(u64::wrapping_mul)?,
            Operation::And => values.put_together(|a, b| a & b)?,
            Operation::Or => values.put_together(|a, b| a | b)?,
            Operation::Xor => values.put_together(|a, b| a ^ b)?,
            Operation::Shl => values.put_together(|a, by| shifted(a, by, u64::checked_shl))?,
            Operation::Shr => values.put_together(|a, by| shifted(a, by, u64::checked_shr))?,
            Operation::Eq => values.compare(|a, b| a == b)?,
            Operation::Ne => values.compare(|a, b| a != b)?,
            Operation::Ge => values.compare(|a, b| a >= b)?,
            Operation::Gt => values.compare(|a, b| a > b)?,
            Operation::Le => values.compare(|a, b| a <= b)?,
            Operation::Lt => values.compare(|a, b| a < b)?,
            _ => return None,
        }
    }
    values.pop()
}

fn shifted(value: u64, by: u64, shift: fn(u64, u32) -> Option<u64>) -> u64 {
    u32::try_from(by).ok().and_then(|by| shift(value, by)).unwrap_or(0)
}

/// The last one is on top.
struct Values(Vec<u64>);

impl Values {
    fn pop(&mut self) -> Option<u64> {
        self.0.pop()
    }

    /// Puts what becomes of the two on top in their place.
    fn put_together(&mut self, how: impl Fn(u64, u64) -> u64) -> Option<()> {
        let (above, below) = (self.pop()?, self.pop()?);
        self.0.push(how(below, above));
        Some(())
    }

    fn compare(&mut self, holds: impl Fn(i64, i64) -> bool) -> Option<()> {
        self.put_together(|a, b| u64::from(holds(a.cast_signed(), b.cast_signed())))
    }
}
