//! The calls that execute a program.

use iotomy_sys::syscalls::{self, Abi};

use crate::naming::CallNumber;

/// The calls that execute a program, and the argument that is its path.
#[derive(Debug)]
pub(super) struct ExecCalls(Vec<(CallNumber, usize)>);

impl ExecCalls {
    pub(super) fn new() -> Self {
        let calls = [("execve", 0), ("execveat", 1)];
        let abis = [Abi::X86_64, Abi::I386];
        let known = abis.into_iter().flat_map(|abi| {
            calls
                .into_iter()
                .filter_map(move |(name, path)| Some(((abi, syscalls::number(abi, name)?), path)))
        });
        Self(known.collect())
    }

    pub(super) fn path_argument(&self, call: CallNumber) -> Option<usize> {
        self.0.iter().find(|(known, _)| *known == call).map(|(_, path)| *path)
    }
}
