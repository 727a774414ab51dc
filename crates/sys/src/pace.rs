//! Work that takes as long as it takes to issue its instructions, and so longer where a CPU shares its core with a busy one.

/// Makes `turns` turns of 32 additions that do not depend on each other.
pub fn busy_work(turns: u32) {
    if turns == 0 {
        return;
    }
    // SAFETY: the block counts a register of its own down to zero and adds to four others, all of them declared; it touches
    // no memory.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!(
            ".p2align 6",
            "2:",
            ".rept 8",
            "lea {a}, [{a} + 1]",
            "lea {b}, [{b} + 1]",
            "lea {c}, [{c} + 1]",
            "lea {d}, [{d} + 1]",
            ".endr",
            "dec {turns:e}",
            "jnz 2b",
            turns = inout(reg) turns => _,
            a = inout(reg) 0u64 => _,
            b = inout(reg) 0u64 => _,
            c = inout(reg) 0u64 => _,
            d = inout(reg) 0u64 => _,
            options(nomem, nostack)
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    for turn in 0..turns {
        let [mut a, mut b, mut c, mut d] = [turn; 4];
        for _ in 0..8 {
            a = std::hint::black_box(a).wrapping_add(1);
            b = std::hint::black_box(b).wrapping_add(1);
            c = std::hint::black_box(c).wrapping_add(1);
            d = std::hint::black_box(d).wrapping_add(1);
        }
        std::hint::black_box([a, b, c, d]);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn more_turns_take_longer() {
        let time = |turns| {
            let start = Instant::now();
            busy_work(turns);
            start.elapsed()
        };
        busy_work(0);
        let least = |turns| (0..9).map(|_| time(turns)).min();
        assert!(least(1_000_000) > least(1));
    }
}
