//! A file system: the duration of its smallest requests, and the throughput of large ones.
//!
//! The one invariant: nothing stays in the directory, however the process ends. The files have no
//! name or, if the file system cannot create such files, a name that is removed before anything is
//! written.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use iotomy_host::Skip;
use iotomy_host::folder::Folder;
use iotomy_sys::buffer::Aligned;
use rustix::fs::fsync;
use rustix::io::{pread, pwrite, retry_on_intr};

use super::limit::{Context, Figure, LimitDeclaration, Scope, Unit};
use super::sampling::Budget;
use super::storage_under_test::{LARGE, Storage, room_for, whole};

pub(super) static LIMITS: &[LimitDeclaration] = &[
    LimitDeclaration {
        name: "direct-read",
        unit: Unit::Ns,
        scope: Scope::FileSystem,
        summary: "a block read past the page cache",
        method: "O_DIRECT pread of 4 KiB at a random place in a file of at most 64 MiB, one at a time",
        man: &["open(2)", "pread(2)"],
        measure: direct_read,
    },
    LimitDeclaration {
        name: "buffered-write",
        unit: Unit::Ns,
        scope: Scope::FileSystem,
        summary: "a block written to the page cache",
        method: "pwrite of 4 KiB over cached blocks of a file of 4 MiB",
        man: &["pwrite(2)"],
        measure: buffered_write,
    },
    LimitDeclaration {
        name: "fsync",
        unit: Unit::Ns,
        scope: Scope::FileSystem,
        summary: "a block made durable",
        method: "fsync after a pwrite of 4 KiB over a file of 4 MiB, the pwrite not counted",
        man: &["fsync(2)"],
        measure: durable,
    },
    LimitDeclaration {
        name: "sequential-read",
        unit: Unit::BytesPerSecond,
        scope: Scope::FileSystem,
        summary: "a file read past the page cache",
        method: "O_DIRECT pread of 4 MiB a call, in order, of a file of at most 64 MiB",
        man: &["open(2)", "pread(2)"],
        measure: sequential_read,
    },
    LimitDeclaration {
        name: "sequential-write",
        unit: Unit::BytesPerSecond,
        scope: Scope::FileSystem,
        summary: "a file written past the page cache",
        method: "O_DIRECT pwrite of 4 MiB a call, in order, over a file of at most 64 MiB; no fsync",
        man: &["open(2)", "pwrite(2)"],
        measure: sequential_write,
    },
];

const BLOCK: usize = 4 << 10;

/// For requests to a device.
const DEVICE: Budget = Budget { time: Duration::from_millis(600), most: 2_001 };

fn of_folder<'a>(context: &Context<'a>) -> Result<&'a Storage<'a>, Skip> {
    context.storage.ok_or_else(|| Skip("no file system was named".to_owned()))
}

fn direct_read(context: &Context<'_>) -> Result<Figure, Skip> {
    let file = of_folder(context)?.direct()?;
    let mut buffer = Aligned::new(BLOCK);
    let mut place = Places::among(file.bytes / BLOCK as u64);
    DEVICE.figure(|| {
        let offset = place.next() * BLOCK as u64;
        let begun = Instant::now();
        let got = retry_on_intr(|| pread(&file.direct, &mut *buffer, offset));
        let took = begun.elapsed();
        whole("pread O_DIRECT", got, BLOCK)?;
        Ok(took.as_nanos() as f64)
    })
}

fn sequential_read(context: &Context<'_>) -> Result<Figure, Skip> {
    let file = of_folder(context)?.direct()?;
    let mut buffer = Aligned::new(LARGE);
    in_order(file.bytes, |offset| {
        whole("pread O_DIRECT", retry_on_intr(|| pread(&file.direct, &mut *buffer, offset)), LARGE)
    })
}

fn sequential_write(context: &Context<'_>) -> Result<Figure, Skip> {
    let file = of_folder(context)?.direct()?;
    let mut buffer = Aligned::new(LARGE);
    buffer.fill(0x5a);
    in_order(file.bytes, |offset| {
        whole("pwrite O_DIRECT", retry_on_intr(|| pwrite(&file.direct, &buffer, offset)), LARGE)
    })
}

/// Measures the bytes per second of large requests from the start to the end, repeatedly.
fn in_order(bytes: u64, mut request: impl FnMut(u64) -> Result<(), Skip>) -> Result<Figure, Skip> {
    let mut at = 0;
    DEVICE.figure(|| {
        let begun = Instant::now();
        request(at)?;
        let took = begun.elapsed();
        at = (at + LARGE as u64) % bytes;
        Ok(LARGE as f64 / took.as_secs_f64().max(1e-9))
    })
}

fn buffered_write(context: &Context<'_>) -> Result<Figure, Skip> {
    let (file, bytes) = cached_file(of_folder(context)?.folder)?;
    let mut at = 0;
    Budget::SHORT.ns_per_call(|count| {
        for _ in 0..count {
            write_block(&file, at)?;
            at = (at + BLOCK as u64) % bytes;
        }
        Ok(())
    })
}

fn durable(context: &Context<'_>) -> Result<Figure, Skip> {
    let (file, bytes) = cached_file(of_folder(context)?.folder)?;
    let mut at = 0;
    DEVICE.figure(|| {
        write_block(&file, at)?;
        at = (at + BLOCK as u64) % bytes;
        let begun = Instant::now();
        fsync(&file).map_err(|e| Skip::refused("fsync", e))?;
        Ok(begun.elapsed().as_nanos() as f64)
    })
}

fn write_block(file: &OwnedFd, at: u64) -> Result<(), Skip> {
    #[repr(align(4096))]
    struct Block([u8; BLOCK]);
    static BLOCK_OF_BYTES: Block = Block([0x5a; BLOCK]);
    whole("pwrite", retry_on_intr(|| pwrite(file, &BLOCK_OF_BYTES.0, at)), BLOCK)
}

/// Creates a file of [`LARGE`] bytes in the page cache and on its device.
fn cached_file(folder: &Folder) -> Result<(OwnedFd, u64), Skip> {
    let file = folder.unnamed().map_err(|(call, e)| Skip::refused(call, e))?;
    let bytes = room_for(&file, LARGE as u64)?;
    for at in (0..bytes).step_by(BLOCK) {
        write_block(&file, at)?;
    }
    fsync(&file).map_err(|e| Skip::refused("fsync", e))?;
    Ok((file, bytes))
}

/// Positions in an order that a device cannot predict: the high bits of a linear congruential
/// generator, with the constants of Knuth's MMIX.
struct Places {
    state: u64,
    count: u64,
}

impl Places {
    fn among(count: u64) -> Self {
        Self { state: 1, count: count.max(1) }
    }

    fn next(&mut self) -> u64 {
        self.state = self
            .state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.state >> 33) % self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_all_over_the_file() {
        let mut places = Places::among(1_024);
        let met: std::collections::BTreeSet<u64> = (0..1_024).map(|_| places.next()).collect();
        assert!(met.len() > 500 && met.iter().all(|place| *place < 1_024), "{}", met.len());
    }

    #[test]
    fn a_short_transfer_is_no_measurement() {
        assert_eq!(whole("pread", Ok(4), 4), Ok(()));
        assert_eq!(whole("pread", Ok(3), 4), Err(Skip("pread: 3 of 4 bytes".to_owned())));
    }

    #[test]
    fn measuring_leaves_nothing_in_the_folder() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let opened = Folder::open(folder.path()).unwrap();
        let storage = Storage::new(&opened);
        let context = Context { storage: Some(&storage) };
        for limit in LIMITS {
            match (limit.measure)(&context) {
                Ok(figure) => assert!(figure.value > 0.0, "{}: {figure:?}", limit.name),
                Err(Skip(reason)) => iotomy_test_requirements::skip(
                    iotomy_test_requirements::Need::Machine,
                    &format!("{}: {reason}", limit.name),
                ),
            }
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }
}
