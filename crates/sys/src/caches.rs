//! Empties the nearest caches: of data, of instructions, and of where jumps lead to.

use std::hint::black_box;

/// A line of a cache, in bytes.
const LINE: usize = 64;
/// More than a first-level cache holds, twice and more.
const BYTES: usize = 128 << 10;

/// Memory to read, so that it replaces the content of the caches.
#[derive(Debug)]
pub struct Evictor {
    lines: Vec<[u8; LINE]>,
}

impl Default for Evictor {
    fn default() -> Self {
        // Ones: zeroes would be one page that is never written to.
        Self { lines: vec![[1; LINE]; BYTES / LINE] }
    }
}

impl Evictor {
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
        let evictor = Evictor::default();
        assert!(evictor.lines.len() >= 2 * 48 * 1024 / LINE);
        evictor.evict();
    }
}
