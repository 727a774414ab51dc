//! The kernel's copy out of the page cache, which bounds the speed of every read of a cached file.

use std::fs::File;
use std::hint::black_box;
use std::io::Write;
use std::time::Instant;

use iotomy_host::{Skip, room};
use iotomy_sys::buffer::Aligned;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::pread;

use super::limit::{Context, Figure, LimitDeclaration, Scope, Unit};
use super::sampling::Budget;

pub(super) static LIMITS: &[LimitDeclaration] = &[LimitDeclaration {
    name: "page-cache-copy",
    unit: Unit::BytesPerSecond,
    scope: Scope::Machine,
    summary: "a cached file read",
    method: "pread of 128 KiB a call, in order, of a file of 128 MiB in memory (memfd) into one aligned buffer",
    man: &["pread(2)", "memfd_create(2)"],
    measure: copy,
}];

const FILE_BYTES: usize = 128 << 20;
/// The request size of cat(1).
const CALL_BYTES: usize = 128 << 10;
/// Calls per sample: 1 MiB.
const CALLS: usize = 8;

fn copy(_: &Context<'_>) -> Result<Figure, Skip> {
    room::check_memory(FILE_BYTES)?;
    room::check_file_size(FILE_BYTES as u64)?;
    let file = memfd_create("iotomy-page-cache", MemfdFlags::CLOEXEC);
    let mut file = File::from(file.map_err(|e| Skip::refused("memfd_create", e))?);
    // Aligned as in cat(1) and dd(1): some processors copy to an address just after a page boundary
    // at a seventh of the speed.
    let mut buffer = Aligned::new(CALL_BYTES);
    buffer.fill(1);
    for _ in 0..FILE_BYTES / CALL_BYTES {
        file.write_all(&buffer).map_err(|e| Skip::refused("write", e))?;
    }
    let mut at = 0;
    Budget::LONG.figure(|| {
        let begun = Instant::now();
        for call in 0..CALLS {
            let offset = (at + call * CALL_BYTES) as u64;
            let got = pread(&file, &mut *buffer, offset).map_err(|e| Skip::refused("pread", e))?;
            if got != CALL_BYTES {
                return Err(Skip(format!("pread: {got} of {CALL_BYTES} bytes")));
            }
            black_box(&*buffer);
        }
        let took = begun.elapsed();
        at = (at + CALLS * CALL_BYTES) % FILE_BYTES;
        Ok((CALLS * CALL_BYTES) as f64 / took.as_secs_f64().max(1e-9))
    })
}
