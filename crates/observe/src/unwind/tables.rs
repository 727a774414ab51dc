//! The table of frames of a file (`.eh_frame`): for each place in its code, where the function's caller has what.
//!
//! A file may hold anything: what it takes to look an address up is bounded.

use std::fs::File;

use gimli::{
    BaseAddresses, CfaRule, CieOrFde, EhFrame, EhFrameHdr, EndianSlice, FrameDescriptionEntry,
    LittleEndian, Register, RegisterRule, UnwindContext, UnwindExpression, UnwindSection,
};
use iotomy_record::CopiedStack;
use object::{Architecture, Object, ObjectSection, ObjectSegment, ReadCache};

use super::registers::{IP, Registers, SP};
use super::{Caller, expression};

/// A larger table is not read: a file may say anything of its size.
const LARGEST: u64 = 64 << 20;

/// Nor is an index made of one that has none and is larger than this.
const LARGEST_WITHOUT_INDEX: usize = 8 << 20;

/// A longer entry is not followed: those of the longest functions have some thousand bytes.
const LONGEST_ENTRY: usize = 64 << 10;

/// Bytes of an address.
const ADDRESS: u8 = 8;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// Of one file.
pub(crate) struct Tables {
    /// (offset in the file, bytes, address).
    segments: Vec<(u64, u64, u64)>,
    frames: Vec<u8>,
    index: Index,
    bases: BaseAddresses,
    context: UnwindContext<usize>,
}

/// Finds the entry of an address.
enum Index {
    /// The file's own, which is sorted.
    Section(Vec<u8>),
    /// (first address, place of the entry), by address.
    Made(Vec<(u64, usize)>),
}

impl Tables {
    /// `None` of a file without such a table, or that is none of this machine's programs.
    pub(crate) fn read(file: File) -> Option<Self> {
        let cache = ReadCache::new(file);
        let image = object::File::parse(&cache).ok()?;
        if image.architecture() != Architecture::X86_64 || !image.is_little_endian() {
            return None;
        }
        let address = |name| image.section_by_name(name).map(|section| section.address());
        let bytes = |name| {
            let section = image.section_by_name(name).filter(|one| one.size() <= LARGEST)?;
            section.data().ok().map(<[u8]>::to_vec)
        };
        let bases = BaseAddresses::default().set_eh_frame(address(".eh_frame")?);
        let bases =
            address(".eh_frame_hdr").into_iter().fold(bases, BaseAddresses::set_eh_frame_hdr);
        let bases = address(".text").into_iter().fold(bases, BaseAddresses::set_text);
        let segments = image.segments().map(|segment| {
            let (start, bytes) = segment.file_range();
            (start, bytes, segment.address())
        });
        let frames = bytes(".eh_frame").filter(|frames| !frames.is_empty())?;
        let index = bytes(".eh_frame_hdr").filter(|index| has_table(index, &bases));
        let index = match index {
            Some(index) => Index::Section(index),
            None => Index::made(&frames, &bases)?,
        };
        let context = UnwindContext::new();
        Some(Self { segments: segments.collect(), frames, index, bases, context })
    }

    /// That are kept.
    pub(crate) fn bytes(&self) -> usize {
        let of_index = match &self.index {
            Index::Section(bytes) => bytes.len(),
            Index::Made(entries) => size_of_val(entries.as_slice()),
        };
        self.frames.len() + of_index
    }

    /// Changes bytes, and perhaps leaves the index out.
    #[cfg(test)]
    pub(super) fn damage(&mut self, bytes: &[(proptest::sample::Index, u8)], keeps_index: bool) {
        for (at, byte) in bytes {
            *at.get_mut(&mut self.frames) = *byte;
        }
        match &mut self.index {
            Index::Section(index) if keeps_index => {
                bytes.iter().take(8).for_each(|(at, byte)| *at.get_mut(index) = *byte);
            }
            index => *index = Index::made(&self.frames, &self.bases).expect("it is no large one"),
        }
    }

    /// The caller of the function that is at an offset of the file; `None`: the table does not have the function.
    pub(super) fn caller(
        &mut self,
        offset: u64,
        registers: &Registers,
        stack: &CopiedStack,
    ) -> Option<Caller> {
        let inside = |(start, bytes, _): &&(u64, u64, u64)| {
            offset.checked_sub(*start).is_some_and(|at| at < *bytes)
        };
        let (start, _, address) = self.segments.iter().find(inside)?;
        let address = address.wrapping_add(offset - start);
        let section = section(&self.frames);
        let entry = self.index.entry(&section, &self.bases, address)?;
        let is_long = entry.entry_len().max(entry.cie().entry_len()) > LONGEST_ENTRY;
        let step = Step { section, entry, registers, stack };
        let caller = (!is_long).then(|| step.caller(&self.bases, &mut self.context, address));
        Some(caller.flatten().unwrap_or(Caller::Unknown))
    }
}

fn section(frames: &[u8]) -> EhFrame<Slice<'_>> {
    let mut section = EhFrame::new(frames, LittleEndian);
    section.set_address_size(ADDRESS);
    section
}

fn has_table(index: &[u8], bases: &BaseAddresses) -> bool {
    let index = EhFrameHdr::new(index, LittleEndian).parse(bases, ADDRESS);
    index.is_ok_and(|index| index.table().is_some())
}

impl Index {
    /// As the linker leaves it out of programs that are linked statically.
    fn made(frames: &[u8], bases: &BaseAddresses) -> Option<Self> {
        if frames.len() > LARGEST_WITHOUT_INDEX {
            return None;
        }
        let mut found = Vec::new();
        let section = section(frames);
        let mut entries = section.entries(bases);
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(entry) = entry else { continue };
            if let Ok(entry) = entry.parse(EhFrame::cie_from_offset) {
                found.push((entry.initial_address(), entry.offset()));
            }
        }
        found.sort_unstable();
        Some(Self::Made(found))
    }

    fn entry<'a>(
        &self,
        section: &EhFrame<Slice<'a>>,
        bases: &BaseAddresses,
        address: u64,
    ) -> Option<FrameDescriptionEntry<Slice<'a>>> {
        let entry = match self {
            Self::Section(index) => {
                let index = EhFrameHdr::new(index, LittleEndian).parse(bases, ADDRESS).ok()?;
                let found = index.table()?.lookup(address, bases).ok()?.direct().ok()?;
                usize::try_from(found.checked_sub(bases.eh_frame.section?)?).ok()?
            }
            Self::Made(entries) => {
                let behind = entries.partition_point(|(start, ..)| *start <= address);
                entries.get(behind.checked_sub(1)?)?.1
            }
        };
        let entry = section.fde_from_offset(bases, entry.into(), EhFrame::cie_from_offset).ok()?;
        entry.contains(address).then_some(entry)
    }
}

/// From a frame to its caller.
struct Step<'a> {
    section: EhFrame<Slice<'a>>,
    entry: FrameDescriptionEntry<Slice<'a>>,
    registers: &'a Registers,
    stack: &'a CopiedStack,
}

impl Step<'_> {
    /// `None` where that is not known.
    fn caller(
        &self,
        bases: &BaseAddresses,
        context: &mut UnwindContext<usize>,
        address: u64,
    ) -> Option<Caller> {
        let row = self.entry.unwind_info_for_address(&self.section, bases, context, address);
        let row = row.ok()?;
        let frame = match row.cfa() {
            CfaRule::RegisterAndOffset { register, offset } => {
                self.registers.value(register.0)?.wrapping_add_signed(*offset)
            }
            CfaRule::Expression(of) => self.evaluated(of, None)?,
        };
        if row.register(Register(IP)) == Some(RegisterRule::Undefined) {
            return Some(Caller::Nobody);
        }
        // Each frame is above the one that it has called.
        if frame <= self.registers.sp || self.entry.cie().return_address_register().0 != IP {
            return None;
        }
        let ip = self.value(row.register(Register(IP))?, IP, frame)?;
        if ip == 0 {
            return Some(Caller::Nobody);
        }
        let mut next = self.registers.of_caller(frame, ip);
        for (register, rule) in row.registers() {
            match register.0 {
                IP => {}
                SP => next.sp = self.value(rule.clone(), SP, frame)?,
                number => next.set(number, self.value(rule.clone(), number, frame)),
            }
        }
        if next.sp <= self.registers.sp {
            return None;
        }
        Some(match self.entry.is_signal_trampoline() {
            true => Caller::Interrupted(next),
            false => Caller::Function(next),
        })
    }

    /// The caller's value of a register.
    fn value(&self, rule: RegisterRule<usize>, number: u16, frame: u64) -> Option<u64> {
        match rule {
            RegisterRule::SameValue => self.registers.value(number),
            RegisterRule::Offset(offset) => self.stack.word(frame.wrapping_add_signed(offset)),
            RegisterRule::ValOffset(offset) => Some(frame.wrapping_add_signed(offset)),
            RegisterRule::Register(other) => self.registers.value(other.0),
            RegisterRule::Expression(of) => self.stack.word(self.evaluated(&of, Some(frame))?),
            RegisterRule::ValExpression(of) => self.evaluated(&of, Some(frame)),
            RegisterRule::Constant(value) => Some(value),
            _ => None,
        }
    }

    fn evaluated(&self, of: &UnwindExpression<usize>, first: Option<u64>) -> Option<u64> {
        let expression = of.get(&self.section).ok()?;
        let encoding = self.entry.cie().encoding();
        expression::value(expression, encoding, self.registers, self.stack, first)
    }
}
