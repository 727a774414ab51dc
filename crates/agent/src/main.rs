//! `iotomy-agent`: the program that `iotomy agent` becomes.

use std::process::ExitCode;

use iotomy_sys::memory::{Memory, share_one_arena};

#[global_allocator]
static MEMORY: Memory = Memory;

fn main() -> ExitCode {
    share_one_arena();
    // A limit on file sizes must be an error to report, not the end.
    iotomy_sys::signals::ignore_file_size();
    iotomy_agent::main(std::env::args_os())
}
