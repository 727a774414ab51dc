//! The table of frames of a file (`.eh_frame`): for each place in its code, where the function's caller has what.

use std::collections::HashMap;
use std::fs::File;

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, FrameDescriptionEntry, LittleEndian,
    Register, RegisterRule, UnwindContext, UnwindExpression, UnwindSection,
};
use iotomy_record::CopiedStack;
use object::{Architecture, Object, ObjectSection, ObjectSegment, ReadCache};

use super::registers::{IP, Registers, SP};
use super::{Caller, expression};

/// A larger table is not read: a file may say anything of its size.
const LARGEST: u64 = 64 << 20;

/// Bytes of an address.
const ADDRESS: u8 = 8;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// Of one file.
pub(crate) struct Tables {
    /// (offset in the file, bytes, address).
    segments: Vec<(u64, u64, u64)>,
    frames: Vec<u8>,
    /// Finds entries by address; empty: there is none.
    index: Vec<u8>,
    bases: BaseAddresses,
    context: UnwindContext<usize>,
    /// Where the entry of an address is that was looked up, if it has one.
    entries: HashMap<u64, Option<usize>>,
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
        Some(Self {
            segments: segments.collect(),
            frames: bytes(".eh_frame").filter(|frames| !frames.is_empty())?,
            index: bytes(".eh_frame_hdr").unwrap_or_default(),
            bases,
            context: UnwindContext::new(),
            entries: HashMap::new(),
        })
    }

    /// Changes bytes, and perhaps leaves the index out.
    #[cfg(test)]
    pub(super) fn damage(&mut self, bytes: &[(proptest::sample::Index, u8)], keeps_index: bool) {
        for (at, byte) in bytes {
            *at.get_mut(&mut self.frames) = *byte;
        }
        if keeps_index && !self.index.is_empty() {
            bytes.iter().take(8).for_each(|(at, byte)| *at.get_mut(&mut self.index) = *byte);
        } else {
            self.index.clear();
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
        let at = self.entry(address)?;
        let section = section(&self.frames);
        let entry = section.fde_from_offset(&self.bases, at.into(), EhFrame::cie_from_offset);
        let step = Step { section, entry: entry.ok()?, registers, stack };
        Some(step.caller(&self.bases, &mut self.context, address).unwrap_or(Caller::Unknown))
    }

    /// Where the entry of an address is.
    fn entry(&mut self, address: u64) -> Option<usize> {
        let (frames, index, bases) = (&self.frames, &self.index, &self.bases);
        *self.entries.entry(address).or_insert_with(|| find(frames, index, bases, address))
    }
}

fn section(frames: &[u8]) -> EhFrame<Slice<'_>> {
    let mut section = EhFrame::new(frames, LittleEndian);
    section.set_address_size(ADDRESS);
    section
}

/// By the index, or one entry after another where there is none.
fn find(frames: &[u8], index: &[u8], bases: &BaseAddresses, address: u64) -> Option<usize> {
    let section = section(frames);
    let index = EhFrameHdr::new(index, LittleEndian).parse(bases, ADDRESS);
    let entry = match index.as_ref().ok().and_then(|index| index.table()) {
        Some(table) => table.fde_for_address(&section, bases, address, EhFrame::cie_from_offset),
        None => section.fde_for_address(bases, address, EhFrame::cie_from_offset),
    };
    entry.ok().map(|entry| entry.offset())
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
