//! The functions of programs, as calls.

use super::clause::Emitter;
use super::values::slot_at;
use super::{KernelError, layout};
use crate::assembler::{Code, code};
use crate::form::Register;
use crate::program::functions::Function;

impl Emitter<'_> {
    pub(super) fn function(
        &self,
        code: &mut Code,
        to: Register,
        function: Function,
        arguments: &[Register],
    ) -> Result<(), KernelError> {
        let argument = |at: usize| arguments.get(at).copied();
        let first = argument(0).unwrap_or(0);
        let second = argument(1).unwrap_or(0);
        let slot = |register: Register| self.slots.slot(register) as i64;
        let length_at = |register: Register| slot_at(self.slots.slot(register) + 1);
        let or = |code: &mut Code, register: u8, at: usize, otherwise: i64| match argument(at) {
            Some(value) => self.value(code, register, value),
            None => code.number(register, otherwise),
        };
        match function {
            Function::Strlen => code.push(code::LOAD, 0, layout::MACHINE, length_at(first), 0),
            Function::Strjoin => {
                code.number(2, slot(to));
                code.number(3, slot(first));
                code.number(4, slot(second));
                return self.try_call(code, "d_strjoin");
            }
            Function::Copyinstr => {
                self.value(code, 3, first);
                code.number(2, slot(to));
                or(code, 4, 1, layout::STRING_MOST as i64);
                return self.try_call(code, "d_copyinstr");
            }
            Function::Substr => {
                code.number(2, slot(to));
                code.number(3, slot(first));
                self.value(code, 4, second);
                match argument(2) {
                    Some(length) => self.value(code, 5, length),
                    None => code.push(code::LOAD, 5, layout::MACHINE, length_at(first), 0),
                }
                return self.call(code, "d_substr");
            }
            Function::Index | Function::Rindex | Function::Strstr => {
                code.number(2, slot(first));
                code.number(3, slot(second));
                let is_last = function == Function::Rindex;
                or(code, 4, 2, if is_last { i64::from(i32::MAX) } else { 0 });
                self.call(code, if is_last { "d_rindex" } else { "d_index" })?;
                if function == Function::Strstr {
                    return self.tail(code, to, first);
                }
            }
            Function::Strchr | Function::Strrchr => {
                code.number(2, slot(first));
                self.value(code, 3, second);
                code.number(4, i64::from(function == Function::Strrchr));
                self.call(code, "d_place_of")?;
                return self.tail(code, to, first);
            }
            Function::Basename | Function::Dirname => {
                code.number(2, slot(to));
                code.number(3, slot(first));
                let is_base = function == Function::Basename;
                return self.try_call(code, if is_base { "d_basename" } else { "d_dirname" });
            }
            Function::Tolower | Function::Toupper => {
                code.number(2, slot(to));
                code.number(3, slot(first));
                code.number(4, i64::from(function == Function::Toupper));
                return self.try_call(code, "d_case");
            }
            Function::Lltostr => {
                code.number(2, slot(to));
                self.value(code, 3, first);
                or(code, 4, 1, 10);
                return self.try_call(code, "d_lltostr");
            }
            Function::Strtoll => {
                code.number(2, slot(to));
                code.number(3, slot(first));
                or(code, 4, 1, 10);
                return self.try_call(code, "d_strtoll");
            }
            Function::Progenyof => {
                self.value(code, 2, first);
                self.call(code, "d_progenyof")?;
            }
            Function::Rand => self.call_bare(code, "d_random")?,
            Function::Htons | Function::Ntohs => self.swapped(code, first, 16),
            Function::Htonl | Function::Ntohl => self.swapped(code, first, 32),
            Function::Htonll | Function::Ntohll => self.swapped(code, first, 64),
            Function::Alloca => {
                self.value(code, 3, first);
                code.number(2, slot(to));
                return self.try_call(code, "d_alloca");
            }
            Function::Copyin => {
                self.value(code, 3, first);
                self.value(code, 4, second);
                code.number(2, slot(to));
                return self.try_call(code, "d_copyin");
            }
            Function::Copyinto => {
                self.value(code, 2, first);
                self.value(code, 3, second);
                self.value(code, 4, argument(2).unwrap_or(0));
                return self.try_call(code, "d_copyinto");
            }
            Function::InetNtoa => {
                self.value(code, 3, first);
                code.number(2, slot(to));
                return self.try_call(code, "d_inet_ntoa");
            }
            Function::Cleanpath => {
                code.number(2, slot(to));
                code.number(3, slot(first));
                return self.try_call(code, "d_cleanpath");
            }
            Function::Strtok => {
                code.number(2, slot(to));
                // Without a text, it goes on with that of the call before.
                let text =
                    if self.slots.is_string(first) { slot(first) } else { layout::SLOTS as i64 };
                code.number(3, text);
                code.number(4, slot(second));
                return self.call(code, "d_strtok");
            }
        }
        self.keep(code, 0, to);
        Ok(())
    }

    /// What of a string begins at the place in `r0`; nothing at -1.
    fn tail(&self, code: &mut Code, to: Register, from: Register) -> Result<(), KernelError> {
        code.operate(code::MOV, 4, 0);
        code.number(2, self.slots.slot(to) as i64);
        code.number(3, self.slots.slot(from) as i64);
        self.call(code, "d_tail")
    }

    /// Has in `r0` a value with its bytes in the other order.
    fn swapped(&self, code: &mut Code, from: Register, bits: i32) {
        self.value(code, 2, from);
        code.push(code::TO_BIG_ENDIAN, 2, 0, 0, bits);
        code.operate(code::MOV, 0, 2);
    }
}
