//! Puts emitted instructions into the object, in place of its last function.
//!
//! The section of functions becomes longer: its copy stands behind everything else, where its header
//! then points. Nothing else of the object moves.

use iotomy_dtrace::Instruction;
use iotomy_dtrace::kernel::Functions;
use object::{Object, ObjectSection, ObjectSymbol, SectionIndex};

/// The function that emitted instructions take the place of.
const REPLACED: &str = "clauses";

/// What is known of the object's functions.
pub(super) struct Text<'o> {
    bytes: &'o [u8],
    names: Vec<(String, usize)>,
    section: SectionIndex,
    /// Where the section is in the file, and how long it is.
    range: (usize, usize),
    start: usize,
    /// Where the symbol of the replaced function is in the file.
    symbol: usize,
}

const BYTES: usize = 8;

impl<'o> Text<'o> {
    /// Looks at an object; `None`: it is not built as this needs it.
    pub(super) fn of(bytes: &'o [u8]) -> Option<Self> {
        const SYMBOL_BYTES: usize = 24;
        let file = object::File::parse(bytes).ok()?;
        let section = file.section_by_name(".text")?;
        let (from, length) = section.file_range()?;
        let symbols = file.section_by_name(".symtab")?.file_range()?.0;
        let is_here = |one: &object::Symbol<'_, '_>| one.section_index() == Some(section.index());
        let names = file
            .symbols()
            .filter(is_here)
            .filter_map(|one| Some((one.name().ok()?.to_owned(), one.address() as usize / BYTES)));
        let replaced = file.symbols().find(|one| one.name() == Ok(REPLACED))?;
        let ends = replaced.address() + replaced.size();
        (ends == length).then(|| Self {
            bytes,
            names: names.collect(),
            section: section.index(),
            range: (from as usize, length as usize),
            start: replaced.address() as usize / BYTES,
            symbol: symbols as usize + replaced.index().0 * SYMBOL_BYTES,
        })
    }

    /// Has a function called with where all others are.
    pub(super) fn with_functions<T>(&self, call: impl FnOnce(Functions<'_>) -> T) -> T {
        let place = |name: &str| self.names.iter().find(|(one, _)| one == name).map(|(_, at)| *at);
        call(Functions { place: &place, start: self.start })
    }

    /// The object with these instructions.
    pub(super) fn with(&self, instructions: &[Instruction]) -> Vec<u8> {
        const HEADERS: usize = 40;
        const HEADER_BYTES: usize = 64;
        const OFFSET: usize = 24;
        const SIZE: usize = 32;
        const SYMBOL_SIZE: usize = 16;
        let (from, _) = self.range;
        let mut object = self.bytes.to_vec();
        object.resize(object.len().next_multiple_of(BYTES), 0);
        let moved = object.len();
        object.extend_from_within(from..from + self.start * BYTES);
        object.extend(instructions.iter().flat_map(|one| one.to_le_bytes()));
        let length = object.len() - moved;
        let headers = object.get(HEADERS..HEADERS + 8).and_then(|bytes| bytes.try_into().ok());
        let headers = headers.map_or(0, u64::from_le_bytes) as usize;
        let header = headers + self.section.0 * HEADER_BYTES;
        let mut put = |at: usize, number: usize| {
            if let Some(place) = object.get_mut(at..at + 8) {
                place.copy_from_slice(&(number as u64).to_le_bytes());
            }
        };
        put(header + OFFSET, moved);
        put(header + SIZE, length);
        put(self.symbol + SYMBOL_SIZE, instructions.len() * BYTES);
        object
    }
}
