//! An object without what only costs time when it is loaded.

use std::collections::BTreeSet;

use object::{Object, ObjectSection};

use crate::btf::{Btf, word};

/// What clang has made, less:
/// - its table of source lines, which is a fifth of it: the kernel would check that with each program;
/// - where it reads many types, the relocations by which libbpf would fill in the kernel's numbers of types.
pub(super) struct Reduced {
    pub(super) object: Vec<u8>,
    /// The types of the kernel that it reads, if these are many: of few, libbpf's own search is as fast.
    pub(super) types: BTreeSet<String>,
    /// Where instructions have the number of a type, with its kind and name.
    pub(super) numbers: Vec<(usize, u8, String)>,
}

const MANY: usize = 8;

/// Of the table of relocations, the kind whose value is the kernel's number of a type.
const TYPE_NUMBER: u32 = 7;

/// The header of `.BTF.ext`, and what it says of where tables are, behind itself, and how long.
const EXT_HEADER: usize = 32;
const FUNCTIONS: usize = 8;
const LINES: usize = 16;
const RELOCATIONS: usize = 24;

/// Each table begins with the size of its entries.
const ENTRY_SIZE: usize = 4;

impl Reduced {
    /// `None`: the object is not as it is taken to be here.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let file = object::File::parse(bytes).ok()?;
        let as_it_is =
            || Self { object: bytes.to_vec(), types: BTreeSet::new(), numbers: Vec::new() };
        // One without programs.
        let Some(ext) = file.section_by_name(".BTF.ext") else { return Some(as_it_is()) };
        let (start, data) = (ext.file_range()?.0 as usize, ext.data().ok()?);
        if word(data, 4)? as usize != EXT_HEADER {
            return None;
        }
        let table = |at: usize| {
            let (start, length) = (word(data, at)? as usize, word(data, at + 4)? as usize);
            data.get(EXT_HEADER + start..EXT_HEADER + start + length)
        };
        let own_types = file.section_by_name(".BTF")?.data().ok()?;
        let own_types = Btf::parse(own_types)?;
        let section_start = |name: &[u8]| {
            let section = file.section_by_name_bytes(name)?;
            Some(section.file_range()?.0 as usize)
        };
        let functions = table(FUNCTIONS)?;
        let all = table(RELOCATIONS)?;
        let mut relocations = Relocations::read(all, &own_types, section_start)?;
        if relocations.types.len() < MANY {
            relocations =
                Relocations { kept: all.to_vec(), types: BTreeSet::new(), numbers: Vec::new() };
        }
        let mut ext = data[..EXT_HEADER].to_vec();
        put(&mut ext, LINES, functions.len());
        put(&mut ext, LINES + 4, 0);
        put(&mut ext, RELOCATIONS, functions.len());
        put(&mut ext, RELOCATIONS + 4, relocations.kept.len());
        let ext = [&*ext, functions, &relocations.kept].concat();
        let object = with_last_section(bytes, start, &ext)?;
        Some(Self { object, types: relocations.types, numbers: relocations.numbers })
    }
}

struct Relocations {
    /// The table, without those of numbers of types.
    kept: Vec<u8>,
    types: BTreeSet<String>,
    numbers: Vec<(usize, u8, String)>,
}

impl Relocations {
    /// Of each section, the table has the offset of its name, how many there are, and these.
    fn read(
        table: &[u8],
        types: &Btf<'_>,
        section_start: impl Fn(&[u8]) -> Option<usize>,
    ) -> Option<Self> {
        const SECTION_HEAD: usize = 8;
        let mut read = Self { kept: Vec::new(), types: BTreeSet::new(), numbers: Vec::new() };
        let Some(size) = word(table, 0) else { return Some(read) };
        let size = size as usize;
        let mut left = &table[ENTRY_SIZE..];
        while !left.is_empty() {
            let (name, count) = (word(left, 0)?, word(left, 4)? as usize);
            let entries = left.get(SECTION_HEAD..SECTION_HEAD + count * size)?;
            let mut kept = Vec::new();
            for entry in entries.chunks_exact(size) {
                let (instruction, id, kind) = (word(entry, 0)?, word(entry, 4)?, word(entry, 12)?);
                let of_type = types.get(id)?;
                let type_name = String::from_utf8(types.name(of_type.name).to_vec()).ok()?;
                if kind == TYPE_NUMBER {
                    let at = section_start(types.name(name))? + instruction as usize;
                    read.numbers.push((at, of_type.kind(), type_name.clone()));
                } else {
                    kept.push(entry);
                }
                read.types.insert(type_name);
            }
            if !kept.is_empty() {
                read.kept.extend(name.to_ne_bytes());
                read.kept.extend((kept.len() as u32).to_ne_bytes());
                read.kept.extend(kept.concat());
            }
            left = &left[SECTION_HEAD + entries.len()..];
        }
        if !read.kept.is_empty() {
            read.kept.splice(0..0, (size as u32).to_ne_bytes());
        }
        Some(read)
    }
}

/// The ELF file with other contents of its last section, which is before the headers of sections.
fn with_last_section(bytes: &[u8], start: usize, contents: &[u8]) -> Option<Vec<u8>> {
    const HEADER: usize = 64;
    const PLACE_OF_HEADERS: usize = 40;
    const SIZE: usize = 32;
    let headers = u64::from_ne_bytes(*bytes.get(PLACE_OF_HEADERS..)?.first_chunk()?) as usize;
    let table = bytes.get(headers..)?;
    let last = table.len().checked_sub(HEADER)?;
    let of_last = u64::from_ne_bytes(*table.get(last + 24..)?.first_chunk()?) as usize;
    if of_last != start || start > headers || !table.len().is_multiple_of(HEADER) {
        return None;
    }
    let mut shorter = [&bytes[..start], contents].concat();
    shorter.resize(shorter.len().next_multiple_of(8), 0);
    let moved = shorter.len();
    shorter.extend(table);
    put(&mut shorter, PLACE_OF_HEADERS, moved);
    put(&mut shorter, moved + last + SIZE, contents.len());
    Some(shorter)
}

fn put(bytes: &mut [u8], at: usize, number: usize) {
    bytes[at..at + 4].copy_from_slice(&(number as u32).to_ne_bytes());
}
