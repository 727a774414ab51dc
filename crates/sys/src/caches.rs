//! Empties the nearest caches: of data, of instructions, and of where jumps lead to.

use std::hint::black_box;

/// A line of a cache, in bytes.
const LINE: usize = 64;
/// Memory to read, so that it replaces the content of the caches.
#[derive(Debug)]
pub struct Evictor {
    /// Ones: zeroes would be one page that is never written to.
    lines: Vec<[u8; LINE]>,
}

/// Bounds of a second-level cache, where its size is to be read in a moment.
const SECOND_LEVEL: std::ops::RangeInclusive<usize> = (256 << 10)..=(2 << 20);
const USUAL_SECOND_LEVEL: usize = 1 << 20;

/// The size that `/sys/devices/system/cpu/cpu0/cache/index2` has of it: `1024K`.
fn second_level() -> Option<usize> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cache/index2/size").ok()?;
    let kib: usize = text.trim().strip_suffix('K')?.parse().ok()?;
    Some(kib << 10)
}

impl Evictor {
    /// One with half as many lines as the second-level cache has: it replaces all that the first level holds, and much of
    /// the second, as the work of a server between two calls does. With more, the times depend on what the machine's
    /// other CPUs leave in the level that they share.
    pub fn of_half_the_second_level() -> Self {
        let bytes = second_level().unwrap_or(USUAL_SECOND_LEVEL);
        let bytes = bytes.clamp(*SECOND_LEVEL.start(), *SECOND_LEVEL.end()) / 2;
        Self { lines: vec![[1; LINE]; bytes / LINE] }
    }

    /// Reads and executes other lines, more than the first-level caches have.
    pub fn evict(&self) {
        let sum = self.lines.iter().fold(0u8, |sum, line| sum.wrapping_add(line[0]));
        black_box(sum);
        evict_instructions();
    }
}

/// Jumps from line to line, through more of them than a first-level cache of instructions has.
#[inline(never)]
fn evict_instructions() {
    // SAFETY: the block only jumps forward to its own next line, until it ends; it touches no register, no flag and
    // no memory.
    unsafe {
        std::arch::asm!(
            ".p2align 6",
            ".rept 1024",
            "jmp 2f",
            ".p2align 6",
            "2:",
            ".endr",
            options(nomem, nostack, preserves_flags)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_evictor_has_more_lines_than_a_first_level_cache() {
        let evictor = Evictor::of_half_the_second_level();
        assert!(evictor.lines.len() >= 2 * 48 * 1024 / LINE);
        evictor.evict();
    }
}
