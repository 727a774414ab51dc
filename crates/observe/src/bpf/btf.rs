//! The kernel's format of types, BTF, as far as it is needed to find types by name. It is read when the objects
//! are compiled, and when they are loaded.

/// Kinds of types, as the format numbers them.
pub(super) mod kind {
    pub(in super::super) const POINTER: u8 = 2;
    pub(in super::super) const ARRAY: u8 = 3;
    pub(in super::super) const STRUCT: u8 = 4;
    pub(in super::super) const UNION: u8 = 5;
    pub(in super::super) const ENUM: u8 = 6;
    pub(in super::super) const TYPEDEF: u8 = 8;
    pub(in super::super) const VOLATILE: u8 = 9;
    pub(in super::super) const CONST: u8 = 10;
    pub(in super::super) const RESTRICT: u8 = 11;
    pub(in super::super) const FUNC_PROTO: u8 = 13;
    pub(in super::super) const TYPE_TAG: u8 = 18;
    pub(in super::super) const ENUM64: u8 = 19;
}

/// Types by number: that of the first is 1, and 0 is `void`.
pub(super) struct Btf<'b> {
    types: &'b [u8],
    strings: &'b [u8],
    /// Where each type begins in `types`.
    starts: Vec<u32>,
}

/// A type: the three words that each has, and what its kind has behind them.
#[derive(Clone, Copy)]
pub(super) struct Type<'b> {
    pub(super) name: u32,
    pub(super) info: u32,
    /// Or the number of the type that it is made of.
    pub(super) size: u32,
    pub(super) rest: &'b [u8],
}

impl<'b> Type<'b> {
    /// That at the beginning of these bytes.
    fn read(bytes: &'b [u8]) -> Option<Self> {
        const HEAD: usize = 12;
        let (name, info) = (word(bytes, 0)?, word(bytes, 4)?);
        let entries = (info & 0xffff) as usize;
        let rest = match info >> 24 & 0x1f {
            1 | 14 | 17 => 4,
            3 => 12,
            4 | 5 | 15 | 19 => 12 * entries,
            6 | 13 => 8 * entries,
            2 | 7..=12 | 16 | 18 => 0,
            _ => return None,
        };
        let rest = bytes.get(HEAD..HEAD + rest)?;
        Some(Self { name, info, size: word(bytes, 8)?, rest })
    }

    pub(super) fn kind(&self) -> u8 {
        (self.info >> 24 & 0x1f) as u8
    }
}

impl<'b> Btf<'b> {
    /// The types in the bytes of a section or of a file; none if they have a form that is not known here.
    pub(super) fn parse(bytes: &'b [u8]) -> Option<Self> {
        let part = |offset: usize| {
            let (start, length) = (word(bytes, offset)?, word(bytes, offset + 4)?);
            bytes.get(word(bytes, 4)? as usize + start as usize..)?.get(..length as usize)
        };
        let (types, strings) = (part(8)?, part(16)?);
        let mut starts = Vec::new();
        let mut at = 0;
        while at < types.len() {
            starts.push(at as u32);
            at += 12 + Type::read(&types[at..])?.rest.len();
        }
        Some(Self { types, strings, starts })
    }

    /// All types, by number.
    pub(super) fn types(&self) -> impl Iterator<Item = (u32, Type<'b>)> {
        let numbered = (1..).zip(&self.starts);
        numbered.filter_map(|(id, start)| Some((id, Type::read(&self.types[*start as usize..])?)))
    }

    /// The type of a number that is not 0.
    pub(super) fn get(&self, id: u32) -> Option<Type<'b>> {
        let start = *self.starts.get((id as usize).checked_sub(1)?)?;
        Type::read(&self.types[start as usize..])
    }

    /// A name: where there is none, an empty one.
    pub(super) fn name(&self, offset: u32) -> &'b [u8] {
        let text = self.strings.get(offset as usize..).unwrap_or_default();
        &text[..memchr::memchr(0, text).unwrap_or(text.len())]
    }
}

/// A name without its flavour: programs name several forms of a type of the kernel `NAME___FORM`.
pub(super) fn essential(name: &[u8]) -> &[u8] {
    let flavour = name.windows(3).rposition(|part| part == b"___").filter(|at| *at > 0);
    &name[..flavour.unwrap_or(name.len())]
}

/// A word, as this machine has it.
pub(super) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_ne_bytes(*word))
}
