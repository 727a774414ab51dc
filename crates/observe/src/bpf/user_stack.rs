//! The stack that a call was made on, from the kernel's table to the record.

use iotomy_record::{CopiedStack, MappedCode};

use super::layout::{Fields, FileKey, Wire};

/// As in `trace.h`.
const CODES: usize = 32;
const OTHERS: usize = 16;
const WORDS: usize = 1024;

/// `struct user_stack` of `trace.h`.
#[derive(Debug)]
pub(super) struct UserStack {
    end_ns: u64,
    from: u64,
    vdso: u64,
    registers: [u64; CopiedStack::REGISTERS],
    tid: u32,
    codes: Vec<CodeRow>,
    words: Vec<u64>,
}

/// `struct mapped_code` of `trace.h`.
#[derive(Debug)]
struct CodeRow {
    start: u64,
    end: u64,
    to_file: u64,
    /// A dentry of 0: none.
    file: FileKey,
}

impl UserStack {
    /// Whether the call that ended then in a thread was made on it.
    pub(super) fn is_of(&self, end_ns: u64, tid: u32) -> bool {
        self.end_ns == end_ns && self.tid == tid
    }

    /// The files of the code.
    pub(super) fn files(&self) -> impl Iterator<Item = FileKey> {
        self.codes.iter().map(|code| code.file)
    }

    /// In the record's terms; `place` has the paths of files.
    pub(super) fn copied(self, place: &dyn Fn(FileKey) -> Option<String>) -> CopiedStack {
        let vdso = self.vdso;
        let code = |row: CodeRow| MappedCode {
            start: row.start,
            end: row.end,
            to_file: row.to_file,
            is_vdso: vdso != 0 && row.start == vdso,
            file: place(row.file),
            inode: row.file.inode,
        };
        CopiedStack {
            registers: self.registers,
            from: self.from,
            words: self.words,
            code: self.codes.into_iter().map(code).collect(),
        }
    }
}

impl Wire for CodeRow {
    const SIZE: usize = 3 * 8 + FileKey::SIZE;

    fn read(from: &mut Fields<'_>) -> Self {
        Self { start: from.u64(), end: from.u64(), to_file: from.u64(), file: FileKey::read(from) }
    }
}

impl Wire for UserStack {
    const SIZE: usize =
        (4 + CopiedStack::REGISTERS) * 8 + 4 * 4 + CODES * CodeRow::SIZE + OTHERS * 16 + WORDS * 8;

    fn read(from: &mut Fields<'_>) -> Self {
        let _busy = from.u64();
        let (end_ns, stack_from, vdso) = (from.u64(), from.u64(), from.u64());
        let registers = std::array::from_fn(|_| from.u64());
        let (tid, words, codes, _finds) = (from.u32(), from.u32(), from.u32(), from.u32());
        let all: Vec<CodeRow> = (0..CODES).map(|_| CodeRow::read(from)).collect();
        let _others = from.bytes(OTHERS * 16);
        Self {
            end_ns,
            from: stack_from,
            vdso,
            registers,
            tid,
            codes: all.into_iter().take(codes as usize).collect(),
            words: (0..WORDS.min(words as usize)).map(|_| from.u64()).collect(),
        }
    }
}
