//! The end of a stack of user space, as it was when a call returned: where the functions that called are found. It is
//! in no saved record.

/// Registers, words and the code that the words may lead to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CopiedStack {
    /// Those that functions leave as they were (rbx, rbp, r12 to r15), the stack pointer, and the instruction behind
    /// the call.
    pub registers: [u64; Self::REGISTERS],
    /// The address of the first word; some may be below the stack pointer.
    pub from: u64,
    /// Upwards from there.
    pub words: Vec<u64>,
    /// Mapped code that the registers or any of the words point into.
    pub code: Vec<MappedCode>,
}

/// A mapping of code.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MappedCode {
    /// Its first address.
    pub start: u64,
    /// The one behind it.
    pub end: u64,
    /// From an address to its place in the file, modulo 2^64.
    pub to_file: u64,
    /// Whether it is the code that the kernel maps into each process.
    pub is_vdso: bool,
    /// The file; absent for memory of no file.
    pub file: Option<String>,
    /// Of the file.
    pub inode: u64,
}

impl CopiedStack {
    /// How many registers are kept.
    pub const REGISTERS: usize = 8;

    /// The word at an address, if it was copied.
    #[must_use]
    pub fn word(&self, address: u64) -> Option<u64> {
        let offset = address.checked_sub(self.from)?;
        let place = usize::try_from(offset / 8).ok()?;
        if offset % 8 != 0 {
            return None;
        }
        self.words.get(place).copied()
    }

    /// The mapping that an address lies in.
    #[must_use]
    pub fn code_at(&self, address: u64) -> Option<&MappedCode> {
        self.code.iter().find(|code| (code.start..code.end).contains(&address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_the_copied_words_is_read() {
        let stack = CopiedStack { from: 0x1000, words: vec![7, 8], ..CopiedStack::default() };
        let words: Vec<_> = (0xff0..0x1020).map(|address| stack.word(address)).collect();
        assert_eq!(words.iter().flatten().collect::<Vec<_>>(), [&7, &8]);
        assert_eq!([stack.word(0x1000), stack.word(0x1008)], [Some(7), Some(8)]);
        assert_eq!([stack.word(0), stack.word(u64::MAX)], [None; 2]);
    }

    #[test]
    fn code_ends_before_its_end() {
        let code = MappedCode { start: 16, end: 32, ..MappedCode::default() };
        let stack = CopiedStack { code: vec![code], ..CopiedStack::default() };
        let inside = [15, 16, 31, 32].map(|address| stack.code_at(address).is_some());
        assert_eq!(inside, [false, true, true, false]);
    }
}
