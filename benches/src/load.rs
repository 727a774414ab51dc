//! `bench-load UNITS [FIFO]`: a program that does exactly the requested amount of work, so that two runs differ by
//! exactly the requested difference.
//!
//! A unit is 1,000 steps of a generator in which every step depends on the previous one: arithmetic in registers, no
//! call, no memory. Before the first unit, the program writes a byte to FIFO, from which the bench knows the progress
//! of a race.

use std::fs::OpenOptions;
use std::io::{Error, Write};
use std::process::ExitCode;

const STEPS: u32 = 1_000;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let Some(units) = words.next().and_then(|word| word.parse().ok()) else {
        eprintln!("usage: bench-load UNITS [FIFO]");
        return ExitCode::from(2);
    };
    if let Some(fifo) = words.next()
        && let Err(error) = tell(&fifo)
    {
        eprintln!("bench-load: cannot write to {fifo}: {error}");
        return ExitCode::from(2);
    }
    std::hint::black_box(work(units));
    ExitCode::SUCCESS
}

fn tell(fifo: &str) -> Result<(), Error> {
    OpenOptions::new().write(true).open(fifo)?.write_all(b".")
}

fn work(units: u64) -> u64 {
    // Marsaglia's xorshift64.
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    for _ in 0..units {
        for _ in 0..STEPS {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
        }
        state = std::hint::black_box(state);
    }
    state
}
