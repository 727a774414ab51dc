//! Files by their names and places: `fds[]`, `args[2]` of block requests, and the directories of a process.

use super::KernelError;
use super::clause::Emitter;
use crate::assembler::Code;
use crate::form::{Fact, Register};
use crate::program::Holder;

/// Names of a file by number, as `enum file_text` of the observer's `d_files.bpf.h` has them.
const TEXTS: [&str; 5] = ["fi_name", "fi_dirname", "fi_pathname", "fi_fs", "fi_mount"];

/// Numbers of an open file, as `enum file_number` has them.
const NUMBERS: [&str; 2] = ["fi_offset", "fi_oflags"];

impl Emitter<'_> {
    /// Finds a fact that is of a file; whether it is one.
    pub(super) fn file_fact(
        &self,
        code: &mut Code,
        to: Register,
        fact: &Fact,
        descriptor: Option<Register>,
    ) -> Result<bool, KernelError> {
        let place = |all: &[&str], name: &str| all.iter().position(|one| *one == name);
        let slot = self.slots.slot(to) as i64;
        match fact {
            Fact::Variable(variable) if matches!(variable.name, "cwd" | "root") => {
                code.number(2, slot);
                code.number(3, i64::from(variable.name == "root"));
                self.try_call(code, "d_directory")?;
            }
            Fact::Member(Holder::File, member) => {
                code.number(2, slot);
                match descriptor {
                    Some(descriptor) => self.value(code, 3, descriptor),
                    None => code.number(3, -1),
                }
                match (place(&TEXTS, member.name), place(&NUMBERS, member.name)) {
                    (Some(which), _) => {
                        code.number(4, which as i64);
                        self.try_call(code, "d_fd_text")?;
                    }
                    (_, Some(which)) => {
                        code.number(4, which as i64);
                        self.call(code, "d_fd_number")?;
                    }
                    _ => return Err(self.unsupported(format!("the member {}", member.name))),
                }
            }
            Fact::Member(Holder::Argument(_), member) if place(&TEXTS, member.name).is_some() => {
                code.number(2, slot);
                code.number(3, place(&TEXTS, member.name).unwrap_or(0) as i64);
                self.try_call(code, "d_io_text")?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}
