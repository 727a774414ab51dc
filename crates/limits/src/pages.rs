//! The cost of getting memory: faults and windows.
//!
//! Only faults that the kernel counts are measured: otherwise a kernel that maps several pages at a
//! time, or returns no huge page when one was requested, would be measured as something else.

use std::fs::File;
use std::hint::black_box;
use std::os::fd::AsFd;
use std::time::Instant;

use iotomy_host::{Skip, room};
use iotomy_sys::bare::minor_faults;
use iotomy_sys::mapping::{Pages, Window};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::param::page_size;

use super::limit::{Context, Figure, LimitDeclaration, Scope, Unit};
use super::sampling::Budget;

pub(super) static LIMITS: &[LimitDeclaration] = &[
    LimitDeclaration {
        name: "minor-fault",
        unit: Unit::Ns,
        scope: Scope::Machine,
        summary: "the first touch of a page",
        method: "first write to each of 1,024 fresh pages without huge pages, one fault each; \
            mapping not counted",
        man: &["mmap(2)", "madvise(2)", "getrusage(2)"],
        measure: minor_fault,
    },
    LimitDeclaration {
        name: "huge-page-fault",
        unit: Unit::Ns,
        scope: Scope::Machine,
        summary: "the first touch of a huge page",
        method: "first write to each of 4 fresh huge pages (madvise), checked to be huge; mapping \
            not counted",
        man: &["madvise(2)", "mmap(2)"],
        measure: huge_page_fault,
    },
    LimitDeclaration {
        name: "mmap-munmap",
        unit: Unit::Ns,
        scope: Scope::Machine,
        summary: "a window of a file mapped and unmapped",
        method: "mmap of 8 MiB of a file in memory, shared, never touched, and munmap",
        man: &["mmap(2)", "munmap(2)"],
        measure: window,
    },
];

/// Pages per batch; a thousand take about 0.1 ms.
const PAGES: i32 = 1_024;
const HUGE_PAGES: i32 = 4;
const WINDOW_BYTES: usize = 8 << 20;

/// Number of batches without any huge page after which there are assumed to be none.
const TRIES: u32 = 16;

fn minor_fault(_: &Context<'_>) -> Result<Figure, Skip> {
    let page = page_size();
    Budget::SHORT.figure(|| {
        let mut memory = Pages::new(PAGES as usize * page).map_err(|e| Skip::refused("mmap", e))?;
        // A kernel without huge pages refuses this, which has the same effect.
        let _ = memory.advise_huge_pages(false);
        let before = minor_faults();
        let begun = Instant::now();
        touch(&mut memory, page);
        let took = begun.elapsed();
        let faults = minor_faults() - before;
        if faults < PAGES.into() {
            return Err(Skip(format!(
                "{faults} faults for {PAGES} pages: the kernel maps several at once"
            )));
        }
        Ok(took.as_nanos() as f64 / f64::from(PAGES))
    })
}

fn huge_page_fault(_: &Context<'_>) -> Result<Figure, Skip> {
    let huge = huge_page_bytes()?;
    // One more, because memory need not begin at a huge page boundary.
    let bytes = (HUGE_PAGES as usize + 1) * huge;
    room::check_memory(bytes)?;
    let mut misses = 0;
    Budget::LONG.figure(|| {
        loop {
            let mut memory = Pages::new(bytes).map_err(|e| Skip::refused("mmap", e))?;
            memory
                .advise_huge_pages(true)
                .map_err(|e| Skip::refused("madvise MADV_HUGEPAGE", e))?;
            let start = memory.as_ptr().addr().next_multiple_of(huge) - memory.as_ptr().addr();
            let memory = &mut memory[start..start + HUGE_PAGES as usize * huge];
            let before = minor_faults();
            let begun = Instant::now();
            touch(memory, huge);
            let took = begun.elapsed();
            // Every page of a huge page is present after its first touch.
            touch(memory, page_size());
            if minor_faults() - before <= HUGE_PAGES.into() {
                return Ok(took.as_nanos() as f64 / f64::from(HUGE_PAGES));
            }
            misses += 1;
            if misses >= TRIES {
                return Err(Skip(format!(
                    "madvise MADV_HUGEPAGE: the kernel mapped small pages ({})",
                    room::text_of("/sys/kernel/mm/transparent_hugepage/enabled")
                )));
            }
        }
    })
}

fn huge_page_bytes() -> Result<usize, Skip> {
    const SIZE: &str = "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size";
    let text = iotomy_host::kernel_text(SIZE).map_err(|e| Skip::refused(SIZE, e))?;
    let bytes = text.trim().parse::<usize>().ok();
    bytes
        .filter(|bytes| bytes.is_power_of_two() && *bytes <= 1 << 30)
        .ok_or_else(|| Skip(format!("{SIZE}: invalid size {:?}", text.trim())))
}

/// Writes a byte every `step`.
fn touch(memory: &mut [u8], step: usize) {
    for byte in memory.iter_mut().step_by(step) {
        *black_box(byte) = 1;
    }
}

fn window(_: &Context<'_>) -> Result<Figure, Skip> {
    room::check_file_size(WINDOW_BYTES as u64)?;
    let file = memfd_create("iotomy-window", MemfdFlags::CLOEXEC);
    let file = File::from(file.map_err(|e| Skip::refused("memfd_create", e))?);
    file.set_len(WINDOW_BYTES as u64).map_err(|e| Skip::refused("ftruncate", e))?;
    Budget::SHORT.ns_per_call(|count| {
        for _ in 0..count {
            let window = Window::map(file.as_fd(), 0, WINDOW_BYTES, false);
            black_box(window.map_err(|e| Skip::refused("mmap", e))?);
        }
        Ok(())
    })
}
